"""The document of `gold agreement`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judgecal.experiment.people import RaterAgreement, RaterAmongOthers
from judgecal.records import Estimate, Headline
from judgecal.report.document import Block, Bullets, Document, Paragraph, Section, Table
from judgecal.report.intervals import of_metric
from judgecal.report.numbers import between, count, count_of, estimate
from judgecal.report.wording import sentence
from judgecal.stats import columns_of, metric_facts
from judgecal.stats.stand_in import MIN_SHARED


def agreement_document(result: RaterAgreement) -> Document:
    """A table a pair of raters, and one of all of them."""
    n = len(result.raters) - len(result.tie_breakers)
    blocks: list[Block] = _ceiling(result)
    blocks += [
        Paragraph(f"{rater} is in no ceiling: {why}.", short=True)
        for rater, why in result.tie_breakers.items()
    ]
    for pair in result.pairs:
        blocks.append(Paragraph(f"{pair.a} with {pair.b}, {count_of(pair.n, 'item')} with both"))
        blocks += _estimates(pair.agreement)
    if result.reliability:
        together = {name: found for name, found in result.reliability.items() if "[" not in name}
        blocks += [Paragraph(f"all {n} raters at once (each pair's kappas: --json)"), *_estimates(together)]
    blocks += [
        Paragraph(
            f"{rater} saw a machine's label beside {count} items: that agreement is no independent one",
            short=True,
        )
        for rater, count in result.saw_draft.items()
    ]
    blocks += [
        Paragraph(f"{rater} could not tell {count_of(count, 'item')}: no number here counts them", short=True)
        for rater, count in result.cannot_tell.items()
    ]
    section = Section("raters", "Raters", "Serves whoever asks how far people agree.", blocks)
    about = f"{result.set_}@{result.sha256[:12]}, scale {result.scale}: raters against raters"
    return Document(
        f"Gold set {result.set_}: raters against raters", about, _agreement_headline(result), [section]
    )


def _ceiling(result: RaterAgreement) -> list[Block]:
    """A line a rater: the ceiling as reports print it; raters with few items in the whole table alone."""
    many = [one for one in result.ceiling if one.n >= MIN_SHARED]
    few = [one for one in result.ceiling if one.n < MIN_SHARED]
    blocks: list[Block] = []
    if many:
        blocks.append(_against_others(many, result.scale, short=True))
    if few:
        names = ", ".join(one.rater for one in few)
        what = f"Fewer than {MIN_SHARED} items with another, so in the whole table alone (--full): {names}."
        blocks += [Paragraph(what, short=True), _against_others(few, result.scale, short=False)]
    return blocks


def _against_others(raters: Sequence[RaterAmongOthers], scale: str, *, short: bool) -> Table:
    columns = columns_of(raters[0].agreement, scale)
    names = [name for name in columns if (facts := metric_facts(name)).unit != "scale" and not facts.is_rate]
    ranked = sorted(raters, key=lambda one: -(one.agreement[names[0]].value or 0.0))
    rows = [
        (rater.rater, count(rater.n), *(of_metric(rater.agreement[name], name, scale) for name in names))
        for rater in ranked
    ]
    title = "Each rater against each other one, on all items that they share"
    return Table(("rater", "items", *names), rows, title=title, short=short)


def _agreement_headline(result: RaterAgreement) -> Headline:
    again = f"judgecal score --gold {result.set_}"
    if not result.pairs:
        sheet = f"judgecal gold sheet {result.set_} -o sheet.csv"
        return Headline(
            "none", f"No two human raters ({len(result.raters)} there): nothing to compare.", next=sheet
        )
    ties: tuple[str, ...] = ()
    if result.n_tied:
        ties = (f"They tie on {count_of(result.n_tied, 'item')}, which have no gold label.",)
        again = f"judgecal gold adjudicate {result.set_}"
    alpha = result.reliability.get("krippendorff_alpha")
    many = [one for one in result.ceiling if one.n >= MIN_SHARED]
    if alpha is None or alpha.value is None or not many:
        return Headline("raters", f"{len(result.raters)} raters rated {result.set_}.", ties, next=again)
    leading = columns_of(many[0].agreement, result.scale)[0]
    reach = between([one.agreement[leading].value for one in many])
    on = "to" if leading == "macro_agreement" and result.scale != "binary" else "on"
    who = "The project's raters" if result.labels_by == "project" else "People"
    of = "of" if on == "on" else "on"
    what = f"{who} agree with each other {on} {reach} {of} {result.set_}."
    n = len(result.raters) - len(result.tie_breakers)
    how = f"{metric_facts(leading).name} of {n} raters; Krippendorff's alpha {estimate(alpha)}"
    rests = f"{sentence(how)} It rests on {count_of(alpha.n, 'item')}."
    return Headline("raters", what, (rests, *ties), next=again)


def _estimates(found: Mapping[str, Estimate]) -> list[Block]:
    """The estimates, and below them why one has no value or no interval."""
    rows = [
        (name, estimate(one, 4), *map(str, (one.n, one.n_expected, one.n_unscored, one.n_groups)))
        for name, one in found.items()
    ]
    reasons = [f"{name}: {one.reason}" for name, one in found.items() if one.reason]
    header = ("metric", "value [interval]", "n", "of", "unscored", "questions")
    blocks: list[Block] = [Table(header, rows, left=2)] if rows else []
    return blocks + ([Bullets(reasons)] if reasons else [])
