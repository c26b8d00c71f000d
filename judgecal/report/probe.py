"""The document of `probe`: what breaks which judge, what the rules made, every probe with both verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from judgecal.judges import JudgeName
from judgecal.probes.family import Kind, families
from judgecal.probes.kept import KeptProbes
from judgecal.probes.result import FamilyResult, ProbedAnswer, ProbedJudge, ProbeResult, SaidOfProbe
from judgecal.records import Headline
from judgecal.report.charts import Axis, change_in_points, in_percent, in_points, interval_picture
from judgecal.report.document import Block, Document, Rung, Section, Table, section, stored_document, table
from judgecal.report.explorer import Explorer, Row, Said, shown
from judgecal.report.numbers import DASH, count, count_of, p_value
from judgecal.report.wording import fitting, sentence, sentences

_NAMED = 2  # families in the headline
_WHOLE = 10  # probes that hold, of a family, that the explorer has beside those that break
_DOES: dict[Kind, str] = {
    "full": "it fails",
    "none": "it passes",
    "falls": "it does not mark down",
    "still": "its verdict moves on",
    "no_rise": "its verdict rises on",
}
"""What a broken probe shows, by kind; then how many answers, and what was done to them."""
_MUST: dict[Kind, str] = {
    "full": "full marks",
    "none": "no marks",
    "falls": "fall",
    "still": "not move",
    "no_rise": "not rise",
}


def probe_document(result: ProbeResult) -> Document:
    """What the probes of a set come to."""
    first, several = result.judges[0], len(result.judges) > 1
    document = stored_document(
        result,
        f"{result.experiment}: probes",
        f"Up to {count(result.n_per_family)} probes of a family, made by rules of the open answers; "
        f"{result.gold.in_words}.",
        _headline(result),
        section(
            "families",
            "What breaks it",
            f"Worst first, by {'calibrated' if first.mapped else 'raw'} verdicts. Noise: how often the same "
            "answer does so when the judge is asked again.",
            *probed_blocks(first),
            several and _beside(result.judges),
        ),
        section(
            "systems",
            "Does it favour a system?",
            "Verdict less label by system, less the same over all answers so labelled; above 0: favoured.",
            *(_systems(judge) for judge in result.judges if judge.systems and not judge.beside),
        )
        if any(judge.systems and not judge.beside for judge in result.judges)
        else None,
        section(
            "made",
            "What the rules made",
            "Where a rule cannot be sure it makes no probe.",
            table(
                result.made,
                {
                    "family": lambda one: one.family,
                    "must": lambda one: _MUST[one.kind],
                    "probes": lambda one: count(one.n),
                    "of": lambda one: count(one.n_possible),
                    "left out": lambda one: "; ".join(
                        f"{why} ({count(n)})" for why, n in one.left_out.items()
                    ),
                },
                left=2,
            ),
        ),
        notes=map(sentence, result.notes),
        words=(
            ("probe", "An answer made by a rule: its right verdict, or the way it must move, is known."),
            ("broken", "Share of the probes that could break and did, with a 95% interval by question."),
        ),
    )
    return replace(document, explorer=_explorer(result))


def _explorer(result: ProbeResult) -> Explorer:
    """Every probe that breaks a judge, and some that hold."""
    loud = [answer for answer in result.answers if any(said.broken for said in answer.said)]
    names = {answer.item_id for answer in loud}
    quiet = [answer for answer in result.answers if answer.item_id not in names]
    few = [one for family in families() for one in [q for q in quiet if q.family == family][:_WHOLE]]
    order = {family.family: place for place, family in enumerate(result.judges[0].families)}
    loud.sort(key=lambda answer: order.get(answer.family, len(order)))
    judges, binary = [judge.judge for judge in result.judges], result.gold.scale == "binary"
    return Explorer(
        f"{count(len(loud))} of {count(len(result.answers))} probes that break a judge",
        [_row(answer, judges, binary=binary) for answer in (*loud, *few)],
        judges,
        chips={f"family:{name}": name for name in order},
        n_quiet=len(few),
        n_agreed=len(quiet),
        others="probes that hold",
        heads={"id": "probe", "question": "question", "answer": "answer, changed", "label": "must"},
        key=result.experiment,
    )


def _row(answer: ProbedAnswer, judges: Sequence[str], *, binary: bool) -> Row:
    by_judge = {said.judge: said for said in answer.said}

    def said(one: SaidOfProbe | None) -> Said | None:
        if one is None:
            return None
        before, after = (shown(label, binary=binary) for label in (one.before, one.after))
        raw = " → ".join(shown(label, binary=False) for label in one.raw)
        return Said(f"{before} → {after}", raw, "broken" if one.broken else "", one.why)

    marks = [f"family:{answer.family}", *(f"wrong:{one.judge}" for one in answer.said if one.broken)]
    return Row(
        answer.item_id,
        answer.question,
        answer.answer,
        answer.references,
        [("Made of the answer", answer.original)],
        label=_MUST[answer.kind],
        said=[said(by_judge.get(judge)) for judge in judges],
        marks=marks,
    )


def _share(one: FamilyResult) -> str:
    return in_percent(one.broken) if one.n else DASH


def probed_blocks(judge: ProbedJudge, *, short: bool = True) -> Iterator[Block]:
    """A line a family, worst first, and the same as a picture."""
    numbers = Table(
        ["family", "must", "broken (95%)", "noise", "n", "unscored", "shown", "raw"],
        [
            [
                one.family,
                _MUST[one.kind],
                _share(one),
                in_percent(one.noise) if one.noise.value else "0" if one.n else DASH,
                count(one.n),
                count(one.n_unscored),
                "yes" if one.shown else "",
                _share(one) if not judge.mapped else in_percent(one.raw),
            ]
            for one in judge.families
        ],
        left=2,
        title=judge.judge,
        short=short,
    )
    wrong = f"family:{{}}\nwrong:{judge.judge}"
    rungs = [
        Rung(one.family, in_points(one.broken), _share(one), one.shown, show=wrong.format(one.family) * short)
        for one in judge.families
        if one.n
    ]
    note = "In bold: shown to lie above the noise, all families together." + " Click one to read it." * short
    axis = Axis("broken probes, %", low=0.0, high=100.0)
    yield interval_picture(rungs, axis, numbers=numbers, note=note, short=short)


def probes_section(kept: KeptProbes | None) -> Section | None:
    """A judge's probes on its own page; None where nobody probed it on this set."""
    if kept is None:
        return None
    slugs = dict.fromkeys(result.experiment for result in kept.by_family.values())
    caption = (
        f"Probes of {', '.join(slugs)}, worst first; judgecal report {next(iter(slugs))} --open shows each."
    )
    return section("probes", "Can it be fooled?", caption, *probed_blocks(kept.judge, short=False))


def _beside(judges: Sequence[ProbedJudge]) -> Table:
    """Every judge by family."""
    by_judge = [{one.family: one for one in judge.families} for judge in judges]
    names = dict.fromkeys(name for of in by_judge for name in of)
    rows = [[name, *(_share(of[name]) if name in of else DASH for of in by_judge)] for name in names]
    return Table(["broken probes of", *(judge.judge for judge in judges)], rows)


def _systems(judge: ProbedJudge) -> Table:
    return table(
        judge.systems,
        {
            "system": lambda one: one.system,
            "favoured by, points": lambda one: change_in_points(one.error),
            "p": lambda one: p_value(one.p_value),
            "stands out (Holm)": lambda one: "yes" if one.stands_out else "",
            "n (questions)": lambda one: f"{count(one.n)} ({count(one.n_groups)})",
        },
        title=judge.judge,
    )


def in_words(one: FamilyResult) -> str:
    """What a family shows of a judge: `its verdict rises on 11 of 50 answers that ...: 22% [14, 33]`."""
    n = round((one.broken.value or 0.0) * one.n)
    return f"{_DOES[one.kind]} {count(n)} of {count_of(one.n, 'answer')} {families()[one.family].does}"


def _headline(result: ProbeResult) -> Headline:
    """The first judge, or how many of several break; the worst families of it, and the free one beside it."""
    asked = [judge for judge in result.judges if not judge.beside]
    first, following = asked[0], f"judgecal report {result.experiment} --open"
    unknown = sentences("Whether every probe is what it claims: about 2 in 100 are not.")
    few = not any(one.excess.low is not None for one in first.families)
    broken = [judge for judge in asked if judge.broken]
    if few and not broken:
        what = f"Too few questions to tell whether {first.judge} breaks."
        return Headline("too few", what, (), unknown, following)
    worst = max(asked, key=lambda judge: len(judge.broken))
    if len(asked) > 1:
        what = f"Probes break {len(broken)} of {len(asked)} judges."
    elif broken:
        what = f"{first.judge} breaks on {len(first.broken)} of {len(first.families)} kinds of probes."
    else:
        what = f"No kind of probe is shown to break {first.judge}."
    said = (
        f"{worst.judge}: {in_words(one)} ({in_percent(one.broken)})."
        for one in (worst.broken or [one for one in worst.families if one.broken.value])[:_NAMED]
    )
    free = [judge for judge in result.judges if judge.beside]
    beside = (f"The free {judge.judge} breaks on {len(judge.broken)} kinds." for judge in free)
    because, more = fitting(*said, *beside)
    if broken and JudgeName.parse(worst.judge).kind == "prompt" and "#" not in worst.judge:
        name = JudgeName.parse(worst.judge)
        command = f"judgecal optimize --signature {name.signature} --model {name.model} --probes"
        more = (*more, f"{command} --gold {result.gold.set} may mend it.")
    return Headline("broken" if broken else "holds", what, because, unknown, following, more=more)
