"""What `migrate` comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from judgecal.experiment import GoldSummary
from judgecal.records import Estimate, Result
from judgecal.selection.churn import ChurnResult
from judgecal.selection.gate_rule import GateDecision


@dataclass(frozen=True, slots=True)
class UnscoredSides:
    """The share of items without a verdict of the locked judge, and of the new one; 0..1."""

    locked: float
    now: float


@dataclass(frozen=True, slots=True)
class OldAndNew:
    """Two judges on the same items, by the lock's metric: new less old, and the value of either."""

    difference: Estimate
    old_value: float | None
    new_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateResult(Result):
    """What a migration comes to."""

    experiment: str
    lock: str
    old: str
    new: str
    # pass where the new judge is shown to lose less than the margin on `all_items`, and test bears that out;
    # fail where test shows that it loses more, or where it tells right from wrong no better than a coin
    decision: GateDecision
    why: str
    more_questions: (
        int | None
    )  # about how many more questions would tell; None where it is told, or none would
    metric: str
    margin: float
    difference: Estimate  # new - old on test, an unscored item counted as wrong
    loss_below: (
        float | None
    )  # of `all_items`: the loss stays below, one-sided at the level; None without a bound
    smallest_detectable: float | None  # None where there is no interval
    # METRIC -> Estimate on test of the locked judge and of the new one, an unscored item counted as wrong
    locked: Mapping[str, Estimate]
    now: Mapping[str, Estimate]
    flip_rate: Estimate  # share of test items on which the two lie on different sides of the mark, or differ in words
    noise: Estimate  # flips of two calls of the locked judge at lock time
    unscored: UnscoredSides  # of the test items
    model_changed: bool  # whether another model answered than the locked one
    old_value: float | None
    new_value: float | None
    # the same on all items but those that trained or chose the new judge: that they chose the old one
    # flatters that one
    all_items: OldAndNew
    churn: ChurnResult | None  # what changes on production answers; None where no table was given
    new_lock: (
        str | None
    )  # where the new lock went, or why there is none; `forced` where the decision spoke against it
    new_lock_reason: str | None
    forced: bool
    n_unscored: int  # of all calls
    gold: GoldSummary
    test_looks: int  # decisions so far, what this one is in words, and whether test had served before
    test_look: str
    reused: bool
    n_called_again: int  # items that the lock holds no verdict of, for which the old judge was called
    notes: tuple[str, ...]
    run_line: str
