"""The documents of `gold list`, `gold check` and `gold sheet`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from judgecal.goldset import GoldCheck, GoldChecks, GoldList, ListedSet, Problem, Sheets
from judgecal.goldset.gold_set import SplitCounts
from judgecal.records import Estimate, Headline
from judgecal.report.document import Block, Bullets, Document, Paragraph, Section, Table
from judgecal.report.numbers import count_of

_SHOWN = 6  # kinds of findings in the short form


def list_document(result: GoldList) -> Document:
    """A row a set."""
    n = len(result.sets)
    if not n:
        headline = Headline("none", "There is no gold set here yet.", next="judgecal gold import --help")
        return Document("Gold sets", "", headline, [])
    broken = [one.set_ for one in result.sets if one.error is not None]
    because = tuple(f"{name} cannot be loaded: see judgecal gold check {name}." for name in broken)
    headline = Headline(
        "sets",
        f"There {'is 1 gold set' if n == 1 else f'are {n} gold sets'} here.",
        because,
        next=f"judgecal gold check {broken[0] if broken else result.sets[0].set_}",
    )
    header = ("set", "scale", "sampling", "labels by", "items", "questions", "raters")
    table = Table(header, [_list_row(one) for one in result.sets], left=4, short=True)
    return Document("Gold sets", "", headline, [Section("sets", "Sets", "", [table])])


def _list_row(one: ListedSet) -> tuple[str, ...]:
    if one.error is not None:
        return (one.set_, "cannot be loaded", "-", "-", "-", "-", "-")
    texts = (
        one.set_,
        one.scale,
        one.sampling,
        one.labels_by,
        one.n_items,
        one.n_groups,
        len(one.raters or ()),
    )
    return tuple(map(str, texts))


def check_document(result: GoldCheck, *, full: bool = False) -> Document:
    """The counts of a set, what a constant reaches on it, and its findings; `full` prints all of them."""
    still_open = [problem for problem in result.problems if problem.explained is None]
    if still_open:
        found = f"{count_of(len(still_open), 'finding')} of {count_of(len(_by_kind(still_open)), 'kind')}"
        again = (
            _after(result.set_, result.n_labelled) if full else f"judgecal gold check {result.set_} --full"
        )
        headline = Headline("findings", f"{result.set_} has {found}.", next=again)
    else:
        found = "no findings but those that the card explains" if result.problems else "no findings"
        headline = Headline(
            "sound", f"{result.set_} has {found}.", next=_after(result.set_, result.n_labelled)
        )
    return Document(f"Gold set {result.set_}", _about(result), headline, [_check_section(result)])


def _after(name: str, n_labelled: int) -> str:
    """What a set that was looked through is for: to hold judges against its labels, once it has some."""
    return f"judgecal score --gold {name}" if n_labelled else f"judgecal gold sheet {name} -o sheet.csv"


def checks_document(result: GoldChecks) -> Document:
    """All sets of a workspace, one below the other."""
    counts = {one.set_: sum(problem.explained is None for problem in one.problems) for one in result.sets}
    n, worst = sum(counts.values()), max(result.sets, key=lambda one: counts[one.set_], default=None)
    headline = Headline(
        "findings" if n else "sound",
        f"{count_of(len(result.sets), 'gold set')} checked: {count_of(n, 'finding')}.",
        next=f"judgecal gold check {worst.set_} --full" if worst else "judgecal gold list",
    )
    sections = []
    for one in result.sets:
        section = _check_section(one)
        blocks = [Paragraph(_about(one), short=True), *section.blocks]
        sections.append(replace(section, blocks=blocks))
    return Document("Gold sets", "", headline, sections)


def _about(result: GoldCheck) -> str:
    return (
        f"{result.set_}@{result.sha256[:12]}: {result.n_items} items on {result.n_groups} questions, "
        f"{result.n_documents} documents, scale {result.scale}, {result.n_labelled} with a gold label"
    )


def _check_section(result: GoldCheck) -> Section:
    tags = [(tag, str(count)) for tag, count in result.tags.items()]
    blocks: list[Block] = [splits_table(result.splits)]
    blocks += [Table(("tag", "items"), tags)] if tags else []
    blocks += [Bullets(list(_baselines(result)), short=True)]
    still_open = [problem for problem in result.problems if problem.explained is None]
    explained = [problem for problem in result.problems if problem.explained is not None]
    blocks += _findings(still_open)
    if explained:
        lines = [f"{own[0].kind} ({len(own)}): {own[0].explained}" for own in _by_kind(explained).values()]
        blocks += [Paragraph("Explained in the card:", short=True), Bullets(lines, short=True)]
        blocks += [_all("explained", explained)]
    return Section(result.set_, result.set_, "Serves whoever relies on the set.", blocks)


def splits_table(splits: Mapping[str, SplitCounts]) -> Table:
    """How many items and questions each split has."""
    rows = [(name, str(part.n_items), str(part.n_groups)) for name, part in splits.items()]
    return Table(("split", "items", "questions"), rows, short=True)


def _baselines(result: GoldCheck) -> Iterator[str]:
    """What a judge that looks at nothing reaches, and how many labels stand at the mark."""
    from judgecal.report.intervals import of_metric  # loads scipy, which `gold list` does without

    for metric, best in result.baselines.items():
        constant = best.label if isinstance(best.label, str) else f"{best.label:g}"
        reached = of_metric(Estimate(best.estimate.value), metric, result.scale)
        labels = count_of(best.estimate.n, "label")
        yield f"Best constant in {metric}: {constant} reaches {reached} over {labels}."
    near = result.near_pass_mark
    if near.share.value is not None:
        yield f"{near.share.value:.1%} of {near.share.n} labels lie within {near.within:g} of the pass mark."


def _findings(problems: Sequence[Problem]) -> list[Block]:
    """The first finding of each kind in short, all of them in full."""
    if not problems:
        return []
    kinds = list(_by_kind(problems).values())
    lines = [f"{own[0].kind} ({len(own)}): {own[0].where}: {own[0].message}" for own in kinds[:_SHOWN]]
    if len(kinds) > _SHOWN:
        lines.append(f"... and {len(kinds) - _SHOWN} more kinds of findings (all of them with --full)")
    return [Bullets(lines, short=True), _all("finding", problems, title="All findings")]


def _all(name: str, problems: Sequence[Problem], *, title: str = "") -> Table:
    rows = [(problem.kind, problem.where, problem.message) for problem in problems]
    return Table((name, "where", "what"), rows, left=3, title=title)


def _by_kind(problems: Sequence[Problem]) -> dict[str, list[Problem]]:
    kinds: dict[str, list[Problem]] = {}
    for problem in problems:
        kinds.setdefault(problem.kind, []).append(problem)
    return kinds


def sheets_document(result: Sheets, following: str) -> Document:
    """Which sheets were written, what the raters must be told, and the command that reads the sheets back."""
    rows = [(path, str(result.n_items)) for path in result.sheets]
    blocks: list[Block] = [Table(("sheet", "items"), rows, short=True), Bullets(result.notes, short=True)]
    written = (
        f"{count_of(len(result.sheets), 'sheet')} of {count_of(result.n_items, 'item')} of {result.set_}."
    )
    headline = Headline("written", written, next=following)
    return Document(f"Sheets of {result.set_}", "", headline, [Section("sheets", "Sheets", "", blocks)])
