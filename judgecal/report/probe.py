"""The document of `probe`: what breaks which judge, what the rules made, every probe with both verdicts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from judgecal.judges.protocol import JudgeName
from judgecal.probes.family import Kind
from judgecal.probes.result import (
    FamilyResult,
    KeptProbes,
    ProbedAnswer,
    ProbedJudge,
    ProbeResult,
    ProbeVerdict,
)
from judgecal.probes.rules import families
from judgecal.records import Headline
from judgecal.report.charts import Axis, in_percent, interval_picture, share_row
from judgecal.report.document import Block, Document, Section, section, stored_document, table
from judgecal.report.explorer import Explorer, ExplorerRow, Said, shown
from judgecal.report.wording import DASH, count, count_of, fitting, gold_in_words, points, sentence, sentences

_WORDS: dict[Kind, tuple[str, str]] = {
    "full": ("fails", "full marks"),
    "none": ("passes", "no marks"),
    "falls": ("misses", "fall"),
    "still": ("moves on", "not move"),
    "no_rise": ("rises on", "not rise"),
}
"""What a judge does that breaks, before `11 of 50 refusals`; and what the probe must."""


def _worst(result: ProbeResult) -> ProbedJudge:
    """The judge that the headline names: of those asked for, the one that most families break."""
    return max(result.judges, key=lambda judge: len(judge.broken))


def probe_document(result: ProbeResult) -> Document:
    """Lay out a ProbeResult as a Document: which judges the probes fooled."""
    worst = _worst(result)
    document = stored_document(
        result,
        f"{result.experiment}: probes",
        f"Up to {count(result.n_per_family)} probes of a family, made by rules of the open answers; "
        f"{gold_in_words(result.gold)}.",
        _headline(result),
        section(
            "families",
            f"What breaks {worst.judge}",
            f"Worst first, by {'calibrated' if worst.mapped else 'raw'} verdicts. Noise: how often the same "
            "answer does so when the judge is asked again.",
            *family_blocks(worst),
        ),
        notes=map(sentence, result.notes),
    )
    return replace(document, explorer=_explorer(result, worst))


def _explorer(result: ProbeResult, worst: ProbedJudge) -> Explorer:
    """Every probe that breaks a judge, by family, the worst first."""
    order = dict.fromkeys(
        [*(family.family for family in worst.families), *(answer.family for answer in result.answers)]
    )
    judges, binary = [judge.judge for judge in result.judges], result.gold.scale == "binary"
    rows = [
        _row(answer, judges, binary=binary)
        for name in order
        for answer in result.answers
        if answer.family == name and any(verdict.broken for verdict in answer.said)
    ]
    return Explorer(
        f"{count(len(rows))} of {count(len(result.answers))} probes that break a judge",
        rows,
        judges,
        chips={f"family:{name}": name for name in order},
        heads={"id": "probe", "question": "question", "answer": "answer, changed", "label": "must"},
    )


def _row(answer: ProbedAnswer, judges: list[str], *, binary: bool) -> ExplorerRow:
    def before_and_after(verdict: ProbeVerdict) -> Said:
        before, after = (shown(label, binary=binary) for label in (verdict.before, verdict.after))
        raw = " → ".join(shown(label, binary=False) for label in verdict.raw)
        return Said(f"{before} → {after}", raw, "broken" if verdict.broken else "", verdict.why)

    by_judge = {verdict.judge: before_and_after(verdict) for verdict in answer.said}
    return ExplorerRow(
        answer.item_id,
        answer.question,
        answer.answer,
        answer.references,
        [("Made of the answer", answer.original)],
        label=_WORDS[answer.kind][1],
        said=[by_judge.get(judge) for judge in judges],
        marks=[
            f"family:{answer.family}",
            *(f"wrong:{verdict.judge}" for verdict in answer.said if verdict.broken),
        ],
    )


def family_blocks(judge: ProbedJudge, *, short: bool = True) -> Iterator[Block]:
    """Yield Blocks on the probe families of a ProbedJudge: a table, worst first, and a picture."""
    numbers = table(
        judge.families,
        {
            "family": lambda family: family.family,
            "must": lambda family: _WORDS[family.kind][1],
            "broken (95%)": lambda family: in_percent(family.broken),
            "noise": lambda family: (
                in_percent(family.noise) if family.noise.value else "0" if family.n else DASH
            ),
            "n": lambda family: count(family.n),
            "unscored": lambda family: count(family.n_unscored),
            "shown": lambda family: "yes" if family.shown else "",
        },
        left=2,
        short=short,
    )
    rungs = [
        replace(
            share_row(family.family, family.broken, strong=family.shown),
            show=f"family:{family.family}\nwrong:{judge.judge}" * short,
        )
        for family in judge.families
        if family.n
    ]
    note = "In bold: shown to lie above the noise, all families together." + " Click one to read it." * short
    axis = Axis("broken probes, %", low=0.0, high=100.0)
    yield interval_picture(rungs, axis, title=judge.judge, numbers=numbers, note=note, short=short)


def probes_section(probed: KeptProbes | None) -> Section | None:
    """Return a Section from a judge's KeptProbes, or None; None where nobody probed it on this set."""
    if probed is None:
        return None
    slug = probed.result.experiment
    caption = f"Probes of {slug}, worst first; judgecal report {slug} --open shows each."
    return section("probes", "Can it be fooled?", caption, *family_blocks(probed.judge, short=False))


def family_line(family: FamilyResult) -> str:
    """Write a FamilyResult as a line of text: `rises on 11 of 50 pleas for 100%, 22% [14, 33]`."""
    n, ends = (
        round((family.broken.value or 0.0) * family.n),
        (family.broken.value, family.broken.low, family.broken.high),
    )
    whole, low, high = (points(end, 0) for end in ends)
    there = f", {whole}%" + f" [{low}, {high}]" * (family.broken.low is not None)
    return f"{_WORDS[family.kind][0]} {count(n)} of {count(family.n)} {families()[family.family].what}{there}"


def _headline(result: ProbeResult) -> Headline:
    """What breaks the worst judge most; below it what else does, and what breaks the others."""
    worst, judges = _worst(result), result.judges
    name = JudgeName.read(worst.judge)
    following = f"judgecal score --judge {shlex.quote(worst.judge)} --gold {result.gold.set}"
    unknown = sentences("Whether every probe is what it claims: about 2 in 100 are not.")
    if not any(family.excess.low is not None for judge in judges for family in judge.families):
        few = f"Too few questions to tell whether {worst.judge} breaks."
        return Headline("too few", few, (), unknown, following)
    others = (
        f"Probes of {count_of(len(judge.broken), 'kind')} break {judge.judge}."
        if judge.broken
        else f"No kind is shown to break {judge.judge}."
        for judge in result.judges
        if judge is not worst
    )
    if not worst.broken:
        what = f"No kind of probe is shown to break {worst.judge}."
        most = [family for family in worst.families if family.broken.value][:1]
        because, more = fitting(*(f"Not shown: it {family_line(family)}." for family in most), *others)
        return Headline("holds", what, because, unknown, following, more=more)
    first, *also = worst.broken
    others_hold = (
        "Everything else holds." if len(also) < 2 else f"Probes of {len(also) - 1} more kinds break it."
    )
    because, more = fitting(*(f"It {family_line(family)}." for family in also[:1]), others_hold, *others)
    if name is not None and name.kind == "prompt" and "#" not in worst.judge:
        command = f"judgecal optimize --signature {name.signature} --model {name.model} --probes"
        following = f"{command} --gold {result.gold.set}"
    return Headline("broken", f"{worst.judge} {family_line(first)}.", because, unknown, following, more=more)
