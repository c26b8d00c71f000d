"""Items that were drawn with unequal probabilities: means are weighted, what cannot be weighted says so."""

from __future__ import annotations

import numpy as np
import pytest

from judgecal.errors import InputError
from judgecal.experiment.agreement import refuse_unequal
from judgecal.experiment.agreement_table import drawing_weights
from judgecal.goldset import GoldSet, load_gold
from judgecal.records import Item
from judgecal.stats import agreement, best_constant, compare, cross_fit
from judgecal.stats.simultaneous import losses_against_best

MEANS = (
    "macro_agreement", "mean_agreement", "accuracy", "balanced_accuracy", "f1", "tpr", "tnr", "mae", "bias",
)  # fmt: skip


def sample(seed: int = 0, n: int = 60) -> tuple[list[float], list[float], list[float], list[int]]:
    """Labels and two judges' verdicts of yes or no, and how often each item stands for itself: 1 or 4."""
    rng = np.random.default_rng(seed)
    gold = (rng.random(n) < 0.6).astype(float)
    a, b = (np.where(rng.random(n) < right, gold, 1.0 - gold) for right in (0.9, 0.75))
    return gold.tolist(), a.tolist(), b.tolist(), np.where(a == b, 4, 1).tolist()


def repeated(values: list[float], times: list[int]) -> list[float]:
    return np.repeat(values, times).tolist()


def test_a_weight_of_four_is_worth_four_of_the_same() -> None:
    gold, a, b, times = sample()
    weights = np.array(times) / np.mean(times)
    groups = list(range(len(gold)))
    many = [group for group, n in zip(groups, times, strict=True) for _ in range(n)]
    found = agreement(gold, a, scale="binary", groups=groups, weights=weights)
    whole = agreement(repeated(gold, times), repeated(a, times), scale="binary", groups=many)
    plain = agreement(gold, a, scale="binary", groups=groups)
    for metric in MEANS:
        assert found[metric].value == pytest.approx(whole[metric].value), metric
        assert found[metric].n == plain[metric].n
    assert found["accuracy"].value != pytest.approx(plain["accuracy"].value)
    for metric in ("accuracy", "macro_agreement"):
        one = compare(gold, a, b, scale="binary", metric=metric, groups=groups, weights=weights)
        all_ = compare(
            repeated(gold, times), repeated(a, times), repeated(b, times), scale="binary", metric=metric,
            groups=many,
        )  # fmt: skip
        assert one.difference.value == pytest.approx(all_.difference.value)
        # The errors are by group: those of the same groups with four times the items.
        assert one.difference.low == pytest.approx(all_.difference.low, abs=0.02)
    best = best_constant([1, 1, 0], scale="binary", metric="accuracy", weights=np.array([0.5, 0.5, 2.0]))
    assert best == 0.0


def test_equal_weights_change_nothing() -> None:
    gold, a, b, _ = sample()
    ones = np.ones(len(gold))
    for metric in ("mean_agreement", "macro_agreement"):
        with_, without = (
            agreement(gold, a, scale="binary", weights=w, metrics=[metric])[metric] for w in (ones, None)
        )
        assert (with_.value, with_.low, with_.high) == pytest.approx(
            (without.value, without.low, without.high)
        )
    judges = {"a": a, "b": b}
    bounds = [
        losses_against_best(gold, judges, scale="binary", weights=w).by_judge["b"] for w in (ones, None)
    ]
    assert bounds[0].upper == pytest.approx(bounds[1].upper)


def test_the_map_is_fitted_on_what_items_stand_for() -> None:
    """Verdicts of 20 and 80 of which the drawn items say the reverse of what most items do."""
    gold = [0.0, 100.0] * 20 + [100.0, 0.0] * 30
    said = [20.0, 80.0] * 50
    weights = np.array([9.0] * 40 + [1.0] * 60)
    mapped = cross_fit(gold, said, scale="percentage", weights=weights / weights.mean())
    plain = cross_fit(gold, said, scale="percentage")
    assert mapped is not None and plain is not None
    assert mapped.verdicts[:2].tolist() == [[0.0], [100.0]]
    assert len(np.unique(plain.verdicts)) == 1  # a map never falls: unweighted it is a constant


@pytest.fixture
def gold() -> GoldSet:
    return load_gold("starter")


def drawn(*chances: float | None) -> list[Item]:
    return [Item(f"i{place}", "g", "q", "a", inclusion_probability=one) for place, one in enumerate(chances)]


def test_the_weights_of_items(gold: GoldSet) -> None:
    assert drawing_weights(gold, drawn(None, None)) is None
    assert drawing_weights(gold, drawn(0.25, 0.25)) is None
    found = drawing_weights(gold, drawn(0.25, 0.75))
    assert found is not None and found.tolist() == pytest.approx([1.5, 0.5])
    with pytest.raises(InputError, match="1 of 2 items have no inclusion_probability, such as 'i1'"):
        drawing_weights(gold, drawn(0.25, None))
    refuse_unequal(gold, drawn(0.5, 0.5), "gate")
    with pytest.raises(InputError, match="gate would count all items of gold set starter alike"):
        refuse_unequal(gold, drawn(0.5, 0.25), "gate")
