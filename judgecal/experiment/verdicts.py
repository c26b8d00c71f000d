"""Verdicts beside labels: where they fall at the pass mark, how they lie, and the items on which they part most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgecal.experiment.agreement import Column, Table, verdict_matrix
from judgecal.experiment.stored import StoredExperiment
from judgecal.goldset import GOLD
from judgecal.records import Item, Judgement
from judgecal.scale import Label, Scale, common_scale, onto
from judgecal.stats.breakdown import breakdown
from judgecal.stats.sample import Floats

__all__ = [
    "POINTS",
    "WORST",
    "Cut",
    "judge_shape",
    "strange_examples",
]


@dataclass(frozen=True, slots=True)
class Cut:
    """One judge's verdicts beside the people's labels, on the scale common to both.

    Attributes:
        people, judge: the two scales.
    """

    people: Scale
    judge: Scale

    @property
    def marked(self) -> bool:
        """Whether the people said what passes."""
        return self.people.kind == "binary" or (self.people.numeric and self.people.pass_at is not None)

    @property
    def common(self) -> Scale:
        """The scale that labels and verdicts are brought onto."""
        return common_scale(self.people, self.judge)

    @property
    def mark(self) -> float | None:
        """The pass mark on the common scale; None where there is none."""
        if not self.marked:
            return None
        common = self.common
        middle = common.low + common.span / 2.0
        return middle if common.kind == "binary" or common.pass_at is None else common.pass_at

    def label_passes(self, label: Label) -> bool | None:
        """Whether people pass an item; None without a mark."""
        mark = self.mark
        if mark is None:
            return None
        common = self.common
        at = common.low + common.span / 2.0 if self.people.kind == "binary" else mark
        return self.label_at(label) >= at

    def verdict_passes(self, verdict: Label) -> bool | None:
        """Whether a verdict passes an item; None without a mark."""
        mark = self.mark
        return None if mark is None else self.verdict_at(verdict) >= mark

    def label_at(self, label: Label) -> float:
        """A label on the common scale."""
        return onto(self.common, self.people, float(label))

    def verdict_at(self, verdict: Label) -> float:
        """A verdict on the common scale."""
        return onto(self.common, self.judge, float(verdict))

    def distance(self, label: Label, verdict: Label) -> float:
        """Verdict less label as a share of the range, -1..1; on words 0 or 1."""
        if not self.people.numeric:
            return float(str(label) != str(verdict))
        return (self.verdict_at(verdict) - self.label_at(label)) / self.common.span

    def error(self, label: Label, verdict: Label) -> str | None:
        """`false pass` or `false fail`; without a mark `too high`, `too low` or `another word`; None where right."""
        if self.marked:
            said, is_pass = self.verdict_passes(verdict), self.label_passes(label)
            return None if said == is_pass else "false pass" if said else "false fail"
        apart = self.distance(label, verdict)
        if not self.people.numeric:
            return "another word" if apart else None
        return None if apart == 0.0 else "too high" if apart > 0.0 else "too low"


POINTS = 400
"""Points of a scatter plot; of more judgements that many are drawn at random, and the plot says so."""

_BINS = 21  # of differences, -100% to +100% of the range: one stands around 0
_CUTS = 41
_CALIBRATION_BINS = 10


def judge_shape(stored: StoredExperiment, table: Table, column: Column, *, repeats: int) -> dict[str, Any]:
    """One judge's verdicts beside the labels of a table.

    Returns:
        `judge`; `at_cut` (counts of judgements, None without a pass mark); `differences` (share of judgements in
        each bin of verdict - label, in percent of the range), `bias` (their mean); `points` (label, verdict),
        a sample of at most 400, `n_points` of how many; `kappa_over_cut` and `calibration` for graded verdicts.
    """
    cut = Cut(stored.gold.scale, column.scale)
    verdicts = verdict_matrix(column.rows, table.items, repeats)
    found: dict[str, Any] = {"judge": column.judge, "at_cut": _at_cut(table, column, verdicts, cut)}
    if not stored.gold.scale.numeric:
        return found
    pairs = [
        (cut.label_at(label), cut.verdict_at(verdict))
        for label, row in zip(table.labels, verdicts, strict=True)
        for verdict in row
        if verdict is not None
    ]
    both = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return {
        **found,
        "low": cut.common.low,
        "high": cut.common.high,
        "mark": cut.mark,
        "binary": cut.common.kind == "binary",
        **_differences(both, cut),
        **_points(both, seed=table.seed),
        **_curves(both, cut),
    }


def _at_cut(
    table: Table, column: Column, verdicts: Sequence[Sequence[Label | None]], cut: Cut
) -> dict[str, int] | None:
    """The people x judge counts at the mark."""
    if not cut.marked:
        return None
    part = breakdown(
        table.labels,
        verdicts,
        parts=[("all",)] * len(table.items),
        scale=table.gold.scale,
        judge_scale=column.scale,
        groups=table.groups,
    )["all"]
    passes, fails = part.passes or 0, part.fails or 0
    wrong = {"false_passes": part.false_passes or 0, "false_fails": part.false_fails or 0}
    return {"passes": passes, "fails": fails, **wrong, "n_unscored": part.n_unscored}


def _differences(both: Floats, cut: Cut) -> dict[str, Any]:
    if not len(both):
        return {"differences": [], "bias": None, "n": 0}
    apart = 100.0 * (both[:, 1] - both[:, 0]) / cut.common.span
    edges = np.linspace(-105.0, 105.0, _BINS + 1)
    counts = np.histogram(apart, edges)[0]
    middles = (edges[:-1] + edges[1:]) / 2.0
    bins = [
        {"at": float(at), "share": float(count) / len(both)}
        for at, count in zip(middles, counts, strict=True)
        if count
    ]
    return {"differences": bins, "bias": float(apart.mean()), "n": len(both)}


def _points(both: Floats, *, seed: int) -> dict[str, Any]:
    chosen = both
    if len(both) > POINTS:
        drawn = np.random.default_rng(seed).choice(len(both), POINTS, replace=False)
        chosen = both[np.sort(drawn)]
    return {"points": chosen.tolist(), "n_points": len(both)}


def _curves(both: Floats, cut: Cut) -> dict[str, Any]:
    """Kappa with the people over the judge's cut, and how often people pass what got such a verdict."""
    if cut.mark is None or cut.common.kind == "binary" or not len(both):
        return {}
    people = cut.common.low + cut.common.span / 2.0 if cut.people.kind == "binary" else cut.mark
    passes, verdicts = both[:, 0] >= people, both[:, 1]
    cuts = np.linspace(cut.common.low, cut.common.high, _CUTS)[1:]
    kappas = [{"cut": float(at), "kappa": _kappa(passes, verdicts >= at)} for at in cuts]
    return {"kappa_over_cut": kappas, "calibration": _calibration(passes, verdicts, cut)}


def _kappa(passes: Any, said: Any) -> float | None:
    """Cohen's kappa of two classes; None where both sides are constant and equal (Cohen 1960)."""
    p, q = float(passes.mean()), float(said.mean())
    by_chance = p * q + (1.0 - p) * (1.0 - q)
    return None if by_chance >= 1.0 else (float((passes == said).mean()) - by_chance) / (1.0 - by_chance)


def _calibration(passes: Any, verdicts: Floats, cut: Cut) -> list[dict[str, Any]]:
    """Share that people pass among verdicts of about the same height, ten bins of the scale."""
    place = (verdicts - cut.common.low) / cut.common.span * _CALIBRATION_BINS
    bins = np.minimum(place.astype(np.int64), _CALIBRATION_BINS - 1)
    return [
        {
            "verdict": float(verdicts[bins == number].mean()),
            "share": float(passes[bins == number].mean()),
            "n": int((bins == number).sum()),
        }
        for number in range(_CALIBRATION_BINS)
        if (bins == number).any()
    ]


WORST = 10
"""Examples of each kind of error that are shown of each judge."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What one judge said of one item: the verdict of its repeats that lies farthest from the label."""

    judge: str
    binary: bool
    verdicts: tuple[Label | None, ...]
    row: Judgement
    error: str | None
    distance: float

    def plain(self) -> dict[str, Any]:
        return {
            "judge": self.judge,
            "binary": self.binary,
            "verdicts": list(self.verdicts),
            "verdict": self.row.verdict,
            "reasoning": self.row.reasoning,
            "error": self.error,
            "distance": self.distance,
            "unscored": self.row.error.kind if self.row.error else None,
        }


def strange_examples(
    stored: StoredExperiment, columns: Sequence[Column], items: Sequence[Item]
) -> list[dict[str, Any]]:
    """The ten worst errors of each kind and judge, as items: an item on which several judges err stands here once.

    Worst is farthest from the label, then farthest from what the single raters said, then first in the file.

    Args:
        stored: the experiment.
        columns: the judges.
        items: where to look; test items are not for reading.

    Returns:
        The items, worst first, with texts, ratings, what every judge said (`said`), and in `worst_of` the
        (judge, kind) lists that the item is among.
    """
    ratings = _ratings(stored)
    said = {column.judge: _judged(stored, column, items) for column in columns}
    worst: dict[str, list[tuple[str, str]]] = {}
    for judge, own in said.items():
        for kind in dict.fromkeys(one.error for one in own.values() if one.error):
            wrong = [item for item in items if item.item_id in own and own[item.item_id].error == kind]
            ranked = sorted(wrong, key=lambda item: _badness(stored, own[item.item_id], item, ratings))
            for item in ranked[:WORST]:
                worst.setdefault(item.item_id, []).append((judge, str(kind)))
    found = [
        _example(stored, item, [own[item.item_id] for own in said.values() if item.item_id in own], ratings)
        | {"worst_of": worst[item.item_id]}
        for item in items
        if item.item_id in worst
    ]
    return sorted(found, key=lambda one: -float(one["distance"]))


def _ratings(stored: StoredExperiment) -> Mapping[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in stored.gold.ratings:
        rating = {"rater": one.rater, "label": one.label, "note": one.note}
        found.setdefault(one.item_id, []).append(rating)
    return found


def _judged(stored: StoredExperiment, column: Column, items: Sequence[Item]) -> dict[str, _Said]:
    cut, rows = Cut(stored.gold.scale, column.scale), dict[str, list[Judgement]]()
    for row in column.rows:
        rows.setdefault(row.item_id, []).append(row)
    return {
        item.item_id: _farthest(column.judge, cut, stored.gold.labels[item.item_id], rows[item.item_id])
        for item in items
        if item.item_id in rows
    }


def _farthest(judge: str, cut: Cut, label: Label, rows: Sequence[Judgement]) -> _Said:
    verdicts, binary = tuple(row.verdict for row in rows), cut.judge.kind == "binary"
    scored = [(row, row.verdict) for row in rows if row.verdict is not None]
    if not scored:
        return _Said(judge, binary, verdicts, rows[0], None, 0.0)
    wrong = [one for one in scored if cut.error(label, one[1])] or scored
    row, verdict = max(wrong, key=lambda one: abs(cut.distance(label, one[1])))
    return _Said(judge, binary, verdicts, row, cut.error(label, verdict), cut.distance(label, verdict))


def _badness(
    stored: StoredExperiment, said: _Said, item: Item, ratings: Mapping[str, list[dict[str, Any]]]
) -> tuple[float, float]:
    """Smaller is worse. Where raters were of one mind, an error is worse than where they were not."""
    labels = [one["label"] for one in ratings.get(item.item_id, ()) if one["rater"] != GOLD]
    gold = stored.gold.labels[item.item_id]
    against = sum(label == gold for label in labels) / len(labels) if labels else 0.0
    return -abs(said.distance), -against


def _example(
    stored: StoredExperiment, item: Item, said: Sequence[_Said], ratings: Mapping[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    return {
        "item_id": item.item_id,
        "question": item.question,
        "reference": item.reference_answer,
        "answer": item.answer,
        "system": item.system,
        "tags": list(item.tags),
        "label": stored.gold.labels[item.item_id],
        "binary": stored.gold.scale.kind == "binary",
        "ratings": ratings.get(item.item_id, []),
        "said": [one.plain() for one in said],
        "n_wrong": sum(one.error is not None for one in said),
        "distance": max((abs(one.distance) for one in said), default=0.0),
    }
