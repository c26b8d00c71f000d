"""Labels of people and verdicts of judges on the same items, as arrays that are made once and kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from judgecal.errors import InputError
from judgecal.experiment.judgements import item_scale, values_of, whole_items
from judgecal.goldset import GoldSet
from judgecal.judges.protocol import Judge, JudgeKind
from judgecal.records import Estimate, Item, Judgement
from judgecal.scale import Label, Scale
from judgecal.stats import Calibration, agreement, cross_fitted_probabilities, fit_calibration
from judgecal.stats.calibration import CrossFit, DecidingVerdicts, cross_fit
from judgecal.stats.sample import Bools, Floats, Ints, Labels, codes_of

Matrix = npt.NDArray[Any]
"""Verdicts, items x repeats: floats with NaN where there is none, words as objects with None."""
FREE_ITEMS = 2_000
"""A free judge answers at most so many items of a large table: its place is known well enough by then."""
_T = TypeVar("_T")
_Name = TypeVar("_Name", bound=Hashable)


def is_absent(verdicts: Matrix) -> Bools:
    """Return the boolean mask of a matrix of verdicts: where it has none."""
    if verdicts.dtype.kind == "f":
        return cast(Bools, np.isnan(verdicts))
    return np.array([verdict is None for verdict in verdicts.flat], dtype=np.bool_).reshape(verdicts.shape)


def as_lists(verdicts: Matrix) -> list[list[Any]]:
    """Return a matrix of verdicts as a list of lists, a row each, None where there is no verdict."""
    rows: list[list[Any]] = verdicts.tolist()
    if verdicts.dtype.kind != "f" or not np.isnan(verdicts).any():
        return rows
    return [[None if verdict != verdict else verdict for verdict in row] for row in rows]


@dataclass(frozen=True, eq=False)
class Verdicts:
    """One judge's verdicts with the judgements that they are of, unscored ones included."""

    judge: str
    scale: Scale  # of its verdicts
    rows: Sequence[Judgement]  # of whole items
    # cost in US dollars of prompt and completion tokens, for the replies that came from the store
    price: Callable[[int | None, int | None], float | None] | None = None
    kind: JudgeKind = "recorded"  # how it comes to its verdicts; `recorded` where nobody here can ask it
    calls: Sequence[Judgement] = ()  # the rows as the journal holds them, where these are of single contexts
    # the one label that it gives to every item by its making, so that no map would make it another
    constant: Label | None = None

    @classmethod
    def from_calls(cls, judge: Judge, rows: Sequence[Judgement]) -> Verdicts:
        """From a Judge that judgecal called and the Judgements (rows), return the Verdicts."""
        price = None if judge.model is None else judge.model.cost_usd
        return cls(judge.name, item_scale(judge), whole_items(rows, judge.scale), price, judge.kind, rows)

    @property
    def key(self) -> Hashable:
        """The key of its arrays, the same for a copy with another price."""
        return id(self.rows), self.judge, self.constant

    @property
    def stored(self) -> Sequence[Judgement]:
        """The judgements as the journal holds them."""
        return self.calls or self.rows

    def cost_usd(self, row: Judgement) -> float | None:
        """Return the cost in USD, or None, of a Judgement in production, a stored reply as if called for."""
        if not row.cached or self.price is None:
            return row.cost_usd
        return self.price(row.prompt_tokens, row.completion_tokens)

    @cached_property
    def places(self) -> dict[str, int]:
        """Item id -> line of `row_at`."""
        item_ids = dict.fromkeys(values_of(self.rows, "item_id"))
        return {item_id: place for place, item_id in enumerate(item_ids)}

    @cached_property
    def row_at(self) -> Ints:
        """Which of `rows` it is, items x repeats, -1 where there is none; last an item without any."""
        repeats = np.array(values_of(self.rows, "repeat"), dtype=np.int64)
        at = np.fromiter(map(self.places.__getitem__, values_of(self.rows, "item_id")), np.int64)
        rows = np.full((len(self.places) + 1, 1 + int(repeats.max(initial=0))), -1, dtype=np.int64)
        rows[at, repeats] = np.arange(len(self.rows))
        return rows

    @cached_property
    def verdicts(self) -> Matrix:
        """The verdict of each of `rows`, and behind them none, for the place -1."""
        dtype = np.float64 if self.scale.numeric else object
        return np.array([*values_of(self.rows, "verdict"), None], dtype=dtype)

    def rows_of(self, items: Sequence[Item]) -> Ints:
        """Return an int matrix, Items x repeats, of places in the rows, -1 where there is none."""
        item_ids, places = [item.item_id for item in items], self.places
        if item_ids == list(places):
            return self.row_at[:-1]
        return self.row_at[np.fromiter((places.get(item_id, -1) for item_id in item_ids), np.int64)]


@dataclass(frozen=True)
class AgreementTable:
    """What every entry of a table shares: the people's labels of the items asked for."""

    gold: GoldSet
    items: tuple[Item, ...]  # the labelled ones, after `--limit`
    repeats: int = 1  # the judgements asked for of each
    seed: int = 0  # of the bootstrap
    level: float = 0.95  # the nominal coverage of the intervals
    # the items beside them on which raters tie: without a gold label, raters and judges stand beside each
    # other there
    tied: tuple[Item, ...] = ()
    # arrays of these items by what they are: a table with another level, seed or repeats has the same ones
    _arrays: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self._arrays.setdefault("items", self.items) is not self.items:
            object.__setattr__(self, "_arrays", {"items": self.items})

    def _once(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """What was made under a key, or is made now."""
        if key not in self._arrays:
            self._arrays[key] = make()
        return cast(_T, self._arrays[key])

    @property
    def labels(self) -> Labels:
        """Gold labels, n floats; words as a list."""

        def make() -> Labels:
            labels = [self.gold.labels[item.item_id] for item in self.items]
            return np.array(labels, dtype=np.float64) if self.gold.scale.numeric else labels

        return self._once("labels", make)

    @property
    def groups(self) -> Ints:
        """The question number, 0..G-1, of each item."""
        return self._once("groups", lambda: codes_of([item.group for item in self.items], len(self.items)))

    @property
    def weights(self) -> Floats | None:
        return self._once("weights", lambda: drawing_weights(self.gold, self.items))

    @property
    def drawn_notes(self) -> tuple[str, ...]:
        """What follows from items that were not all as likely to be drawn; mostly nothing."""
        if self.weights is None:
            return ()
        return (
            "the items were drawn with unequal probabilities: means are weighted by 1 / probability, "
            "and all counts are of the items drawn; we leave out what cannot be weighted (coefficients, "
            "parts, people compared with people)",
        )

    def verdicts(self, judge: Verdicts) -> Matrix:
        """Return the Matrix, items x repeats, of a judge passed as Verdicts, on the judge's scale."""
        n = self.repeats

        def make() -> Matrix:
            if judge.constant is not None:
                dtype = np.float64 if judge.scale.numeric else object
                return np.full((len(self.items), n), judge.constant, dtype)
            at = self.row_at(judge)[:, :n]
            return judge.verdicts[np.pad(at, ((0, 0), (0, n - at.shape[1])), constant_values=-1)]

        return self._once(("verdicts", judge.key, n), lambda: (judge, make()))[1]

    def row_at(self, judge: Verdicts) -> Ints:
        """From a judge's Verdicts, return the int matrix, items x repeats, of places in its rows, or -1."""
        make = lambda: (judge, judge.rows_of(self.items))  # noqa: E731
        return self._once(("rows", judge.key), make)[1]

    @property
    def shared(self) -> dict[str, Any]:
        """What statistics on these items have in common, by its names there."""
        scale, groups, weights = self.gold.scale, self.groups, self.weights
        return {"scale": scale, "groups": groups, "level": self.level, "seed": self.seed, "weights": weights}

    def scaled(self, judge: Verdicts | None = None) -> dict[str, Any]:
        """Return a dict of keyword arguments: people's scale, the judge's and the items' questions."""
        judge_scale = self.gold.scale if judge is None else judge.scale
        return {"scale": self.gold.scale, "judge_scale": judge_scale, "groups": self.groups}

    def agreement(
        self,
        verdicts: Iterable[object],
        judge: Verdicts | None = None,
        *,
        against: Any = None,
        **options: Any,
    ) -> dict[str, Estimate]:
        """Return METRIC -> Estimate of verdicts (an iterable) against the table's gold labels, or others."""
        labels = self.labels if against is None else against
        return agreement(labels, verdicts, **{**self.shared, **self.scaled(judge), **options})

    def agreements(
        self, judge: Verdicts, *, labels: Labels | None = None, metrics: Sequence[str] | None = None
    ) -> dict[str, dict[str, Estimate]]:
        """Return a dict of METRIC -> Estimate by `agreement`, `as_wrong` and `calibrated`, of Verdicts.

        `calibrated` counts an unscored item as wrong too, and is empty where nothing can be calibrated: of
        labels without an order, and of a constant. By all metrics where none are named.
        """
        verdicts, calibrated = self.verdicts(judge), dict[str, Estimate]()
        options: dict[str, Any] = {"against": labels, "metrics": metrics}
        complete = as_wrong = self.agreement(verdicts, judge, **options)
        if is_absent(verdicts).any():
            as_wrong = self.agreement(verdicts, judge, **options, unscored="wrong")
        mapped = self.calibrated(judge, labels)
        if mapped is not None:
            calibrated = self.agreement(mapped, **options, unscored="wrong")
        if mapped is not None and (metrics is None or "brier" in metrics):
            gold_labels = self.labels if labels is None else labels
            chances = cross_fitted_probabilities(
                gold_labels, verdicts, weights=self.weights, **self.scaled(judge)
            )
            if chances is not None:
                brier: dict[str, Any] = {"judge_scale": "percentage", "metrics": ["brier"]}
                calibrated |= self.agreement(chances, against=labels, unscored="wrong", **brier)
        return {"agreement": complete, "as_wrong": dict(as_wrong), "calibrated": calibrated}

    def cross_fit(self, judge: Verdicts) -> CrossFit | None:
        """Return the CrossFit of Verdicts to people's scale: maps, each without some questions; or None."""
        make = lambda: (judge, self._fit(judge, self.labels))  # noqa: E731
        return self._once(("map", judge.key, self.repeats), make)[1]

    def _fit(self, judge: Verdicts, labels: Labels) -> CrossFit | None:
        """Return the CrossFit of Verdicts to Labels; None of a constant, which no map changes."""
        if judge.constant is not None:
            return None
        return cross_fit(labels, self.verdicts(judge), weights=self.weights, **self.scaled(judge))

    def calibrated(self, judge: Verdicts, labels: Labels | None = None) -> Floats | None:
        """Return an array of Verdicts on the people's scale, by maps that did not see the item, or None."""
        fit = self.cross_fit(judge) if labels is None else self._fit(judge, labels)
        return None if fit is None else fit.verdicts

    def deciding(
        self, judges: Mapping[_Name, Verdicts], *, calibrated: bool = True
    ) -> DecidingVerdicts[_Name]:
        """Return DecidingVerdicts of judges (name -> Verdicts): mapped where `calibrated` and possible."""
        fits = {name: self.cross_fit(judge) for name, judge in judges.items() if calibrated}
        return DecidingVerdicts.from_fits(
            {name: self.verdicts(judge) for name, judge in judges.items()},
            {name: judge.scale for name, judge in judges.items()},
            {name: fit for name, fit in fits.items() if fit is not None},
            scale=self.gold.scale,
        )

    def asked_of(self, judge: Verdicts) -> AgreementTable:
        """Return an AgreementTable of only those items that Verdicts of a free judge are of."""
        if len(self.items) <= FREE_ITEMS or judge.constant is not None:
            return self
        items = tuple(item for item in self.items if item.item_id in judge.places)
        return self if len(items) == len(self.items) else dataclasses.replace(self, items=items)

    def described(self, judge: Verdicts) -> tuple[Matrix, Scale]:
        """Return the matrix and the Scale that describe a judge's Verdicts, calibrated where possible."""
        mapped = self.calibrated(judge)
        return (self.verdicts(judge), judge.scale) if mapped is None else (mapped, self.gold.scale)

    def calibration(self, judge: Verdicts, *, fitted_on: str) -> Calibration | None:
        """The map of a judge, fitted on these items; None without an order of labels or a scored verdict."""
        return fit_calibration(self.labels, self.verdicts(judge), fitted_on=fitted_on, **self.scaled(judge))

    def through(self, calibration: Calibration | None, judge: Verdicts) -> dict[str, Estimate]:
        """Return METRIC -> Estimate (unscored as wrong) of Verdicts through a Calibration; empty for None."""
        if calibration is None:
            return {}
        mapped = calibration.mapped(self.verdicts(judge))
        return self.agreement(mapped, unscored="wrong", weights=None)


def free_items(items: Sequence[Item], seed: int) -> tuple[Item, ...]:
    """Return, from Items and a seed, those that free judges answer: `FREE_ITEMS` at most, whole questions."""
    groups = codes_of([item.group for item in items], len(items))
    sizes = np.bincount(groups)
    order = np.random.default_rng(seed).permutation(len(sizes))
    n = max(1, int((np.cumsum(sizes[order]) <= FREE_ITEMS).sum()))
    return tuple(items[at] for at in np.flatnonzero(np.isin(groups, order[:n])).tolist())


def drawing_weights(gold: GoldSet, items: Sequence[Item]) -> Floats | None:
    """Return an array of weights, 1 / drawing probability, mean 1, of a GoldSet and Items in it; or None."""
    chances = [item.inclusion_probability for item in items]
    stated = [chance for chance in chances if chance is not None]
    if not stated:
        return None
    if len(stated) < len(chances):
        lacking = next(item.item_id for item in items if item.inclusion_probability is None)
        raise InputError(
            f"gold set {gold.name}: {len(chances) - len(stated)} of {len(chances)} items have no "
            f"inclusion_probability, such as {lacking!r}, and the others do: give it in items.jsonl, or "
            "keep those in a set of their own"
        )
    weights = 1.0 / np.array(stated)
    return None if np.ptp(weights) <= 1e-9 * weights.max() else weights / weights.mean()
