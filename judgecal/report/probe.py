"""The document of `probe`: what breaks which judge, what the rules made, every probe with both verdicts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from judgecal.judges import JudgeName
from judgecal.probes.family import Kind, families
from judgecal.probes.result import (
    FamilyResult,
    KeptProbes,
    ProbedAnswer,
    ProbedJudge,
    ProbeResult,
    SaidOfProbe,
)
from judgecal.records import Headline
from judgecal.report.charts import Axis, in_percent, interval_picture, share_row
from judgecal.report.document import Block, Document, Section, section, stored_document, table
from judgecal.report.explorer import Explorer, ExplorerRow, Said, shown
from judgecal.report.wording import DASH, count, count_of, fitting, points, sentence, sentences

_WHOLE = 10  # probes that hold, of a family, that the explorer has beside those that break
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
    return max((one for one in result.judges if not one.beside), key=lambda one: len(one.broken))


def probe_document(result: ProbeResult) -> Document:
    """What the probes of a set come to."""
    worst = _worst(result)
    document = stored_document(
        result,
        f"{result.experiment}: probes",
        f"Up to {count(result.n_per_family)} probes of a family, made by rules of the open answers; "
        f"{result.gold.in_words}.",
        _headline(result),
        section(
            "families",
            f"What breaks {worst.judge}",
            f"Worst first, by {'calibrated' if worst.mapped else 'raw'} verdicts. Noise: how often the same "
            "answer does so when the judge is asked again.",
            *probed_blocks(worst),
        ),
        notes=map(sentence, result.notes),
    )
    return replace(document, explorer=_explorer(result, worst))


def _explorer(result: ProbeResult, worst: ProbedJudge) -> Explorer:
    """Every probe that breaks a judge, and some that hold."""
    order = dict.fromkeys([*(one.family for one in worst.families), *(one.family for one in result.made)])
    loud, quiet = (
        [
            [
                one
                for one in result.answers
                if one.family == name and any(s.broken for s in one.said) == broken
            ]
            for name in order
        ]
        for broken in (True, False)
    )
    few = [one for of in quiet for one in of[:_WHOLE]]
    judges, binary = [judge.judge for judge in result.judges], result.gold.scale == "binary"
    return Explorer(
        f"{count(sum(map(len, loud)))} of {count(len(result.answers))} probes that break a judge",
        [_row(answer, judges, binary=binary) for answer in (*chain(*loud), *few)],
        judges,
        chips={f"family:{name}": name for name in order},
        n_quiet=len(few),
        n_agreed=sum(map(len, quiet)),
        others="probes that hold",
        heads={"id": "probe", "question": "question", "answer": "answer, changed", "label": "must"},
    )


def _row(answer: ProbedAnswer, judges: list[str], *, binary: bool) -> ExplorerRow:
    def said(one: SaidOfProbe) -> Said:
        before, after = (shown(label, binary=binary) for label in (one.before, one.after))
        raw = " → ".join(shown(label, binary=False) for label in one.raw)
        return Said(f"{before} → {after}", raw, "broken" if one.broken else "", one.why)

    by_judge = {one.judge: said(one) for one in answer.said}
    return ExplorerRow(
        answer.item_id,
        answer.question,
        answer.answer,
        answer.references,
        [("Made of the answer", answer.original)],
        label=_WORDS[answer.kind][1],
        said=[by_judge.get(judge) for judge in judges],
        marks=[f"family:{answer.family}", *(f"wrong:{one.judge}" for one in answer.said if one.broken)],
    )


def probed_blocks(judge: ProbedJudge, *, short: bool = True) -> Iterator[Block]:
    """A line a family, worst first, and the same as a picture."""
    numbers = table(
        judge.families,
        {
            "family": lambda one: one.family,
            "must": lambda one: _WORDS[one.kind][1],
            "broken (95%)": lambda one: in_percent(one.broken),
            "noise": lambda one: in_percent(one.noise) if one.noise.value else "0" if one.n else DASH,
            "n": lambda one: count(one.n),
            "unscored": lambda one: count(one.n_unscored),
            "shown": lambda one: "yes" if one.shown else "",
        },
        left=2,
        short=short,
    )
    rungs = [
        replace(
            share_row(one.family, one.broken, strong=one.shown),
            show=f"family:{one.family}\nwrong:{judge.judge}" * short,
        )
        for one in judge.families
        if one.n
    ]
    note = "In bold: shown to lie above the noise, all families together." + " Click one to read it." * short
    axis = Axis("broken probes, %", low=0.0, high=100.0)
    yield interval_picture(rungs, axis, title=judge.judge, numbers=numbers, note=note, short=short)


def probes_section(kept: KeptProbes | None) -> Section | None:
    """A judge's probes on its own page; None where nobody probed it on this set."""
    if kept is None:
        return None
    slugs = [*dict.fromkeys(result.experiment for result in kept.by_family.values())]
    caption = f"Probes of {', '.join(slugs)}, worst first; judgecal report {slugs[0]} --open shows each."
    return section("probes", "Can it be fooled?", caption, *probed_blocks(kept.judge, short=False))


def in_words(one: FamilyResult) -> str:
    """What a family shows of a judge: `rises on 11 of 50 pleas for 100%, 22% [14, 33]`."""
    n, ends = round((one.broken.value or 0.0) * one.n), (one.broken.value, one.broken.low, one.broken.high)
    whole, low, high = (points(end, 0) for end in ends)
    there = f", {whole}%" + f" [{low}, {high}]" * (one.broken.low is not None)
    known = families().get(one.family)  # an old result may have a family that is gone
    return f"{_WORDS[one.kind][0]} {count(n)} of {count(one.n)} {known.what if known else one.family}{there}"


def _headline(result: ProbeResult) -> Headline:
    """What breaks the worst judge most; below it what else does, and what breaks the others."""
    worst, asked = _worst(result), [judge for judge in result.judges if not judge.beside]
    name = JudgeName.read(worst.judge)
    following = f"judgecal score --judge {shlex.quote(worst.judge)} --gold {result.gold.set}"
    unknown = sentences("Whether every probe is what it claims: about 2 in 100 are not.")
    if not any(one.excess.low is not None for judge in asked for one in judge.families):
        few = f"Too few questions to tell whether {worst.judge} breaks."
        return Headline("too few", few, (), unknown, following)
    others = (
        f"{'Probes' if not judge.beside else 'Of the free judges, probes'} of "
        f"{count_of(len(judge.broken), 'kind')} break {judge.judge}."
        for judge in result.judges
        if judge is not worst
    )
    if not worst.broken:
        what = f"No kind of probe is shown to break {worst.judge}."
        most = [one for one in worst.families if one.broken.value][:1]
        because, more = fitting(*(f"Not shown: it {in_words(one)}." for one in most), *others)
        return Headline("holds", what, because, unknown, following, more=more)
    first, *also = worst.broken
    rest = "Everything else holds." if len(also) < 2 else f"Probes of {len(also) - 1} more kinds break it."
    because, more = fitting(*(f"It {in_words(one)}." for one in also[:1]), rest, *others)
    if name is not None and name.kind == "prompt" and "#" not in worst.judge:
        command = f"judgecal optimize --signature {name.signature} --model {name.model} --probes"
        following = f"{command} --gold {result.gold.set}"
    return Headline("broken", f"{worst.judge} {in_words(first)}.", because, unknown, following, more=more)
