"""Trials: judges over items, each judgement had once and kept in the journal."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, overload

from judgecal.engine import (
    Budget,
    Call,
    Journal,
    Ledger,
    LongJournal,
    OwnVerdict,
    Progress,
    ReplyCache,
    open_cache,
    require_prices,
    run_calls,
    take_verdicts,
)
from judgecal.errors import InputError, notice
from judgecal.judges import Caller, Respondent, calls_a_model, decides_itself, units_of
from judgecal.models import ModelSpec
from judgecal.records import Item, Judgement, Key
from judgecal.wings import wing

MOST_REPEATS = 1000
"""Judgements of one item by one judge in a run; the noise of a judge with itself is known long before."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a command calls models; no part of what it asks, so no part of an experiment's configuration.

    `budget_usd` is for this run, `budget_total_usd` for all runs of the experiment; `repeats` are judgements
    of each item by each judge; `use_cache` takes stored replies of other experiments, and without it replies
    are stored all the same; no verdict from before `stored_since` (seconds since 1970) is taken, stored or in
    the journal; `retry_unscored` also tries again where a reply gave no verdict; `quiet` shows no progress on
    stderr; `batch` sends calls by the batch API of a provider that has one.
    """

    repeats: int = 1
    limit: int | None = None
    budget_usd: float | None = None
    budget_total_usd: float | None = None
    use_cache: bool = True
    stored_since: float = 0.0
    retry_unscored: bool = False
    quiet: bool = False
    batch: bool = False

    def check(self) -> None:
        """Refuse what cannot be run.

        Raises:
            InputError: lists every wrong option.
        """
        problems = []
        if not 1 <= self.repeats <= MOST_REPEATS:
            problems.append(f"--repeats must be from 1 to {MOST_REPEATS:,}, found {str(self.repeats)[:12]}")
        if self.limit is not None and self.limit < 1:
            problems.append(f"--limit must be at least 1, found {self.limit}")
        if self.budget_usd is not None and not self.budget_usd > 0:
            problems.append(f"--budget-usd must be above 0, found {self.budget_usd:g}")
        if self.budget_total_usd is not None and not self.budget_total_usd > 0:
            problems.append(f"--budget-total-usd must be above 0, found {self.budget_total_usd:g}")
        if problems:
            raise InputError(problems)

    def check_models(self, models: Sequence[ModelSpec]) -> None:
        """Refuse models that cannot be called in this way.

        Raises:
            InputError: a budget meets a model without a price, or `batch` one without a batch API.
        """
        require_prices(models, self.limit_usd)
        if self.batch:
            wing("needs batches")(models)

    @property
    def limit_usd(self) -> float | None:
        """The smaller of both budgets; None where there is none."""
        return min((one for one in (self.budget_usd, self.budget_total_usd) if one is not None), default=None)

    def open_budget(self, folder: Path) -> Budget:
        """The money for the calls of the experiment in a folder, which must be there when the first call is
        made.

        Raises:
            InputError: what it has spent before cannot be read.
        """
        return Budget(
            self.budget_usd, total_usd=self.budget_total_usd, ledger=Ledger(folder / "spending.json")
        )


class Judgements(Sequence[Judgement]):
    """Judgements in the order asked for: by judge, then item, then repeat."""

    def __init__(self, rows: Iterable[Judgement]) -> None:
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, index: int) -> Judgement: ...
    @overload
    def __getitem__(self, index: slice) -> Judgements: ...
    def __getitem__(self, index: int | slice) -> Judgement | Judgements:
        return Judgements(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Judgement]:
        return iter(self._rows)

    @property
    def unscored(self) -> Judgements:
        """Those without a verdict; each has an `error`."""
        return Judgements(row for row in self._rows if row.verdict is None)

    def of(self, judge: str) -> Judgements:
        """Those of one judge."""
        return Judgements(row for row in self._rows if row.judge == judge)

    def frame(self) -> Any:
        """A `polars.DataFrame`, a row a judgement, columns as in `judgements.jsonl`."""
        import polars

        return polars.DataFrame([row.as_json() for row in self._rows], infer_schema_length=None)


def open_journal(path: Path | None, options: RunOptions, *, long: bool = False) -> Journal:
    """Open a journal to append to; a torn last line that was cut off is said on stderr.

    A long one leaves its rows in the file.
    """
    journal = LongJournal(path) if long else Journal(path)
    if journal.mended and not options.quiet:
        notice(
            f"judgecal: {path}: the last line was torn ({journal.mended} bytes) and is cut off; "
            "its call will be made again"
        )
    return journal


def stored_rows(path: Path, *, long: bool = False) -> Journal:
    """What a journal holds, to look at: nothing is written, and a torn last line is passed over.

    The file is read when a row is first asked for; of a long one, only the rows that are asked for are held.
    """
    return (LongJournal if long else Journal).looked_at(path)


class Due:
    """What a judge is asked about some items, `options.repeats` times each.

    Gone through, it gives the judgements that are still owed, in order, with the item as it is shown.
    """

    def __init__(
        self, judge: Respondent, items: Iterable[Item], journal: Journal, options: RunOptions
    ) -> None:
        self.judge, self.items, self.journal, self.options = judge, items, journal, options

    def all_keys(self) -> Iterator[tuple[Item, Key]]:
        """All that it is asked, what the journal holds too."""
        fingerprint = self.judge.fingerprint
        return (
            (shown, Key(item.item_id, item.sha, fingerprint, repeat, unit))
            for item in self.items
            for unit, shown in units_of(self.judge, item)
            for repeat in range(self.options.repeats)
        )

    def __iter__(self) -> Iterator[tuple[Item, Key]]:
        return ((item, key) for item, key in self.all_keys() if self._owes(key))

    def _owes(self, key: Key) -> bool:
        row = self.journal.settled(key, retry_unscored=self.options.retry_unscored)
        if row is None or not self.options.stored_since:
            return row is None
        return datetime.fromisoformat(row.replied_at or row.at).timestamp() < self.options.stored_since

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    def count(self) -> int:
        """How many it owes."""
        return sum(1 for _ in self)

    def count_all(self) -> int:
        """How many it is asked, those that the journal holds among them."""
        units = sum(1 for item in self.items for _ in units_of(self.judge, item))
        return units * self.options.repeats


def models_of(judges: Iterable[Respondent]) -> list[ModelSpec]:
    """The models that some judges call."""
    return [judge.model for judge in judges if judge.model is not None]


def require_keys(
    judges: Sequence[Respondent], items: Iterable[Item], journal: Journal, options: RunOptions
) -> None:
    """Refuse a run whose calls lack a key; judgements that the journal holds need none.

    Raises:
        InputError: a key's variable is not set.
    """
    for judge in judges:
        try:
            if judge.model is not None:
                judge.model.key()
        except InputError:
            if Due(judge, items, journal, options):
                raise


def run_trials(
    judges: Sequence[Respondent],
    items: Sequence[Item],
    *,
    journal: Journal,
    options: RunOptions,
    budget: Budget | None = None,
    label: str | None = None,
) -> Judgements:
    """Have every judge judge every item, `options.repeats` times; what the journal holds is not called again.

    Gives one row for each judge, item and repeat.

    Args:
        items: what is judged, or asked; `options.limit` has been applied by the caller.
        budget: shared between several calls of this function; made from the options otherwise.
        label: what progress shows instead of the judge's name.

    Raises:
        InputError: a key is not set, an item lacks an input, a budget meets a model without a price.
        AuthError: a provider refused the key.
    """
    require_prices(models_of(judges), options.limit_usd)
    for judge in judges:
        judge.check_items(items)
    trials = [Due(judge, items, journal, options) for judge in judges]
    judge_to_journal(trials, budget=budget, label=label, in_turn=True)
    return Judgements(_row(journal, trial.judge, key) for trial in trials for _, key in trial.all_keys())


def judge_to_journal(
    trials: Sequence[Due], *, budget: Budget | None = None, label: str | None = None, in_turn: bool = False
) -> None:
    """Have the judgements that are due put into the journal of these trials, as one run: the one place where
    judges are called. It shows one progress and spends one budget.

    Items are read from the start several times, so that there may be more of them than memory holds; each has
    what its judge asks for. Journal, cache and the way to call are those of the first trial.

    Args:
        label: what progress shows; the judge's name by default.
        in_turn: one judge after the other; else the calls of one model are made together. Batches always wait
            together.

    Raises:
        InputError: a key is not set, or a budget meets a model without a price.
        AuthError: a provider refused the key.
    """
    if not trials:
        return
    judges, options, journal = [trial.judge for trial in trials], trials[0].options, trials[0].journal
    require_prices(models_of(judges), options.limit_usd)
    for trial in trials:
        require_keys([trial.judge], trial.items, journal, trial.options)
    budget = budget or Budget(options.limit_usd)
    counts = [trial.count() for trial in trials]
    progress = None  # where nothing is due, or nobody watches
    if sum(counts) and not options.quiet:
        progress = Progress(label or f"{len(trials)} judges", sum(counts))
    counted = list(zip(trials, counts, strict=True))
    if all(model.embedded for model in models_of(judges)):
        opened: contextlib.AbstractContextManager[ReplyCache | None] = contextlib.nullcontext()
    else:
        opened = open_cache(use=options.use_cache, since=options.stored_since)
    with opened as cache:
        parts = [[one] for one in counted] if in_turn and not options.batch else [counted]
        for number, part in enumerate(parts, 1):
            if progress and not label and len(part) == 1:
                place = f" ({number} of {len(trials)})" if len(trials) > 1 else ""
                progress.label = f"{part[0][0].judge.name}{place}"
            _call(part, journal=journal, options=options, budget=budget, cache=cache, progress=progress)


def _call(
    counted: Sequence[tuple[Due, int]],
    *,
    journal: Journal,
    options: RunOptions,
    budget: Budget,
    cache: ReplyCache | None,
    progress: Progress | None,
) -> None:
    """Have the judgements that are due: those that take no call first, then those of each model."""
    by_model: dict[ModelSpec, list[tuple[Caller, Due, int]]] = {}
    for due, count in counted:
        judge = due.judge
        if calls_a_model(judge):
            by_model.setdefault(judge.model, []).append((judge, due, count))
        elif decides_itself(judge):
            verdicts = (OwnVerdict(key, judge.name, partial(judge.verdict, item)) for item, key in due)
            take_verdicts(verdicts, record=journal.append, progress=progress)
    batched = {
        model: by_model.pop(model) for model in list(by_model) if options.batch and model.takes_batches
    }
    for model, callers in by_model.items():
        wing("refuse waiting batches")(_calls(callers), model, journal)
        n = sum(count for *_, count in callers)
        try:
            run_calls(
                _calls(callers),
                model,
                record=journal.append,
                budget=budget,
                cache=cache,
                progress=progress,
                total=n,
            )
        finally:
            budget.save()
    if any(count for callers in batched.values() for *_, count in callers):
        waiting = [(model, partial(_calls, callers)) for model, callers in batched.items()]
        try:
            wing("batches")(waiting, journal=journal, budget=budget, cache=cache, progress=progress)
        finally:
            budget.save()
    if progress:
        progress.close()
    if not options.quiet:
        say_remarks(budget)


def _calls(callers: Iterable[tuple[Caller, Due, int]]) -> Iterator[Call]:
    return (
        Call(key, judge.name, partial(judge.messages, item), judge.read, judge.schema)
        for judge, due, _ in callers
        for item, key in due
    )


def say_remarks(budget: Budget, *, ended: bool = True) -> None:
    """Say on stderr what a user must hear of the money; each remark once. `ended`: also that it ran out."""
    for remark in budget.remarks(ended=ended):
        notice(f"judgecal: {remark}")


def _row(journal: Journal, judge: Respondent, key: Key) -> Judgement:
    """The journal's row under this judge's name: two names with one fingerprint are one judge and one
    call."""
    row = journal.latest[key]
    return row if row.judge == judge.name else dataclasses.replace(row, judge=judge.name)
