"""What scripts call to score judges and to hold them against a gold set: `judgecal.score`, `agreement`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from judgecal.engine.budget import require_prices
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError
from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.experiment.judgements import item_scale, whole_items
from judgecal.experiment.looks import look_at_test, seen_judges
from judgecal.experiment.score import asked_items, check_judge
from judgecal.experiment.trials import models_of, open_journal, run_trials
from judgecal.goldset import GoldSet
from judgecal.judges import judge_named
from judgecal.judges.function import GivenFunction
from judgecal.judges.protocol import Judge
from judgecal.records import PAIR_UNIT, Judgement, Result
from judgecal.scale import Scale
from judgecal.stats import Agreement, cross_fit, leading_metric, metric_facts
from judgecal.stats import agreement as agreement_of_arrays
from judgecal.stats.sample import Floats, Unscored, as_scale, as_sequence
from judgecal.workspace import find_workspace


class Judgements(tuple[Judgement, ...], Result):
    """What `judgecal.score` gives: judgements by judge, then item, then repeat, and each judge's agreement
    with the gold set."""

    gold: GoldSet | None
    scales: Mapping[str, Scale]  # judge -> the scale of its verdicts

    def __new__(
        cls,
        rows: Iterable[Judgement],
        *,
        gold: GoldSet | None = None,
        scales: Mapping[str, Scale] | None = None,
    ) -> Self:
        made = super().__new__(cls, rows)
        made.gold, made.scales = gold, scales or {}
        return made

    def _where(self, takes: Callable[[Judgement], bool]) -> Self:
        return type(self)(filter(takes, self), gold=self.gold, scales=self.scales)

    @property
    def unscored(self) -> Self:
        """Those without a verdict; each has an `error`."""
        return self._where(lambda row: row.verdict is None)

    def of(self, judge: str) -> Self:
        return self._where(lambda row: row.judge == judge)

    def frame(self) -> Any:
        """Return a `polars.DataFrame`, a row a judgement, columns as in `judgements.jsonl`."""
        import polars

        return polars.DataFrame([row.as_json() for row in self], infer_schema_length=None)

    def as_json(self) -> dict[str, Any]:
        """Return a dict with a row a judge: counts, and agreement with its own gold set (on test a look)."""
        judges = []
        for name in self.scales:
            rows = self.of(name)
            counts = {"judge": name, "n": len(rows) - len(rows.unscored), "n_expected": len(rows)}
            measured = agreement(self.gold, rows).as_json() if self.gold and rows else {}
            judges.append({**counts, "n_unscored": len(rows.unscored), **measured})
        return {"gold": self.gold and {"set": self.gold.name, "sha256": self.gold.sha256}, "judges": judges}


def score(
    judge: Judge | str | Callable[..., Any] | Sequence[Judge | str | Callable[..., Any]],
    gold: GoldSet,
    *,
    split: str = "open",
    repeats: int = 1,
    limit: int | None = None,
    budget_usd: float | None = None,
    journal: str | Path | None = None,
    quiet: bool = True,
) -> Judgements:
    """Have a judge, or several, judge a split of a GoldSet; return the `Judgements`, unscored too.

    >>> rows = judgecal.score("exact_match@local", judgecal.load_gold("starter"), limit=3)
    >>> [row.verdict for row in rows], len(rows.unscored)
    ([0.0, 0.0, 0.0], 0)

    Args:
        judge: one or several: strings, functions (`judgecal.Judge` says what they take), judges.
        split: train, dev, test, open or all, without the questions that some judge was trained on.
        limit: only the first so many items.
        budget_usd: money that may be spent.
        journal: a `judgements.jsonl` to resume from and to append to; None keeps nothing.
        quiet: no progress on stderr.
    """
    given = [*judge] if isinstance(judge, Sequence) and not isinstance(judge, str) else [judge]
    judges = [judge_named(judge) if isinstance(judge, str) or callable(judge) else judge for judge in given]
    judges = [judge.on(gold.scale) if isinstance(judge, GivenFunction) else judge for judge in judges]
    names = [judge.name for judge in judges]
    if not names:
        raise InputError("score: no judge is given: name one, such as 'token_f1@local'")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"several judges are called {', '.join(twice)}: give each a name of its own")
    options = RunOptions(repeats=repeats, limit=limit, budget_usd=budget_usd, quiet=quiet)
    options.check()
    require_prices(models_of(judges), options.budget_usd)
    for judge in judges:
        check_judge(gold, judge)
    trained = frozenset[str]().union(*(judge.trained_on for judge in judges))
    items = asked_items(gold, split, limit=limit, without_groups=trained)
    with open_journal(None if journal is None else Path(journal), options) as stored:
        rows = run_trials(judges, items, journal=stored, options=options)
    of_judges = [(judge, [row for row in rows if row.judge == judge.name]) for judge in judges]
    whole = [
        whole_items(judged, judge.scale) if judge.unit == PAIR_UNIT else judged for judge, judged in of_judges
    ]
    return Judgements(
        itertools.chain(*whole), gold=gold, scales={judge.name: item_scale(judge) for judge in judges}
    )


def agreement(
    gold_labels: GoldSet | Iterable[object],
    judge_labels: Iterable[object],
    *,
    scale: Scale | str | None = None,
    judge_scale: Scale | str | None = None,
    groups: Iterable[Hashable] | None = None,
    level: float = 0.95,
    seed: int = 0,
    metrics: Sequence[str] | None = None,
    unscored: Unscored = "drop",
    weights: Floats | None = None,
) -> Agreement:
    """Return the Agreement of gold labels (or a GoldSet) and a judge's labels: `judgecal.agreement`.

    >>> found = judgecal.agreement([1, 0, 1, 0], [1, 0, 1, None], scale="binary")
    >>> list(found)[0], found["accuracy"].value, found.decides.value
    ('macro_agreement', 1.0, 0.75)

    With a gold set the verdicts are what `judgecal.score` gave of one judge, and both say their scales; of
    test items that is a look, which `experiments/test_looks.jsonl` of the workspace then holds.

    Args:
        gold_labels: a gold set, or n labels of people; None or NaN = missing: the item is left out.
        judge_labels: judgements of the set's items, or n verdicts, or n rows of R repeats; None or NaN =
            unscored.
        scale, groups: of arrays only, where `scale` must be given: that of the labels, with its pass mark;
            the question of each item, each its own where not given.
        judge_scale: the verdicts', where it is another and `judgecal.score` does not say it.
        metrics: which, in this order; all that the scale has where not given.
        unscored: "drop", or "wrong" = as the verdict farthest from its label.
        level, seed, weights: as in `stats.agreement`, and so are the repeats and the errors.
    """
    if not isinstance(gold_labels, GoldSet):
        labels, verdicts = as_sequence(gold_labels), as_sequence(judge_labels)
    elif scale is not None or groups is not None or weights is not None:
        raise InputError("agreement: a gold set says its scale, questions and weights: leave them out")
    else:
        table, rows = _judged_table(gold_labels, [*judge_labels])
        column = Verdicts(rows[0].judge, table.gold.scale, whole_items(rows))
        labels, verdicts = table.labels, column.verdicts[column.rows_of(table.items)]
        scales = judge_labels.scales if isinstance(judge_labels, Judgements) else {}
        judge_scale = judge_scale or scales.get(rows[0].judge)
        scale, groups, weights = gold_labels.scale, table.groups, table.weights
    if scale is None:
        raise InputError("agreement: labels in an array need their scale=, such as 'percentage'")
    people = as_scale(scale)
    groups = None if groups is None else as_sequence(groups)
    of_items: dict[str, Any] = {
        "scale": people,
        "judge_scale": judge_scale,
        "groups": groups,
        "weights": weights,
    }
    shared = {**of_items, "level": level, "seed": seed}
    estimates = agreement_of_arrays(labels, verdicts, metrics=metrics, unscored=unscored, **shared)
    leading = leading_metric(people)
    fit = cross_fit(labels, verdicts, **of_items) if metric_facts(leading).calibrated else None
    deciding = shared if fit is None else {**shared, "judge_scale": None}
    decided = verdicts if fit is None else fit.verdicts
    decides = agreement_of_arrays(labels, decided, metrics=[leading], unscored="wrong", **deciding)
    return Agreement(estimates, metric=leading, decides=decides[leading], calibrated=fit is not None)


def _judged_table(gold: GoldSet, rows: Sequence[object]) -> tuple[AgreementTable, list[Judgement]]:
    """The items of a set that a judge judged, with its judgements; of test items that is a look."""
    judged = [row for row in rows if isinstance(row, Judgement)]
    if len(judged) != len(rows):
        raise InputError("agreement: with a gold set verdicts are judgements, as judgecal.score gives them")
    if len(names := sorted({row.judge for row in judged})) > 1:
        raise InputError(f"agreement: verdicts of {', '.join(names)}: take one, as rows.of({names[0]!r})")
    item_ids = {row.item_id for row in judged}
    items = tuple(item for item in gold.items if item.item_id in item_ids and item.item_id in gold.labels)
    if not items:
        raise InputError(f"no judgement is of a labelled item of gold set {gold.name}")
    if any(gold.split_of(item.group) == "test" for item in items):
        look: dict[str, Any] = {"experiment": "judgecal.agreement", "kind": "report", "by": "report"}
        look["judges"] = seen_judges(gold, items, [judged])
        look_at_test(find_workspace().experiments, gold, items, **look)
    return AgreementTable(gold, items), judged
