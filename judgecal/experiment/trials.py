"""Trials: judges over items, each judgement had once and kept in the journal; and what they would cost."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from judgecal.engine.budget import Budget, CostEstimate, likely_usd, require_prices, together, worst_cost_usd
from judgecal.engine.cache import ReplyCache, open_cache
from judgecal.engine.calls import Call, OwnVerdict
from judgecal.engine.log import Journal
from judgecal.engine.run import Progress, RunOptions, run_calls, take_verdicts
from judgecal.errors import InputError, notice
from judgecal.experiment.folder import VERDICTS, Experiment
from judgecal.experiment.judgements import VerdictRows, of_calls, read_verdicts
from judgecal.judges.protocol import Caller, Respondent, calls_a_model, decides_itself, single_calls, units_of
from judgecal.models import ModelSpec
from judgecal.records import Item, Judgement, Key

_CHARS_PER_TOKEN = 4.0  # a rule of thumb for the preview; the bill comes from the provider's own count


def open_journal(path: Path | None, options: RunOptions) -> Journal:
    """Open, from a path or None and RunOptions, a Journal to append to; a torn last line is on stderr."""
    journal = Journal(path)
    _say_mended(journal, options)
    return journal


def _say_mended(journal: Journal, options: RunOptions) -> None:
    if journal.mended and not options.quiet:
        notice(
            f"judgecal: {journal.path}: the last line was incomplete ({journal.mended} bytes), so we cut it "
            "off and make its call again"
        )


class ExperimentJournal(Journal):
    """The journal of an experiment's calls; what free judges say is held in memory, and at the end written as
    Parquet beside it, behind the verdicts that were `recorded` elsewhere.
    """

    def __init__(
        self,
        experiment: Experiment,
        judges: Iterable[Respondent],
        options: RunOptions,
        recorded: Sequence[Sequence[Judgement]] = (),
    ) -> None:
        super().__init__(None if all(map(is_free, judges)) else experiment.journal)
        _say_mended(self, options)
        self._verdicts, self._recorded = experiment.verdicts, recorded
        prints = {rows[0].judge_fingerprint for rows in recorded}
        stored = read_verdicts(experiment.verdicts)
        self._kept = {row.key: row for row in stored if row.judge_fingerprint not in prints}
        self.latest.update(self._kept)

    def keep(self, *judgements: Judgement) -> None:
        """Add Judgements (any number) that cost nothing, to the journal."""
        rows = {row.key: row for row in judgements}
        self._kept.update(rows)
        self.latest.update(rows)

    def __exit__(self, *reason: object) -> None:
        super().__exit__(*reason)
        if self._kept or self._recorded:
            parts = (*self._recorded, [*self._kept.values()])
            frames = (
                part if isinstance(part, VerdictRows) else VerdictRows.from_rows(part) for part in parts
            )
            VerdictRows.joined([*frames]).write(self._verdicts)


def stored_rows(path: Path) -> Journal:
    """Read a Journal to look at, from the path of a journal and the Parquet of verdicts beside it.

    The journal is read when a row is first asked for.
    """
    journal, verdicts = Journal.looked_at(path), path.with_name(VERDICTS)
    if verdicts.is_file():
        journal.latest.update((row.key, row) for row in read_verdicts(verdicts))
    return journal


def is_free(judge: Respondent) -> bool:
    """Whether its verdicts come from no paid call, so that Parquet keeps them and no journal does."""
    return judge.model.embedded if judge.model is not None else getattr(judge, "kind", None) == "local"


def recorder(journal: Journal, judge: Respondent) -> Callable[..., None]:
    """What takes a judge's judgements: of a free one nothing goes into the journal of calls."""
    return journal.keep if isinstance(journal, ExperimentJournal) and is_free(judge) else journal.append


class Due:
    """What a judge is asked about some items, `options.repeats` times each.

    Gone through, it gives the judgements that are still owed, in order, with the item as it is shown.
    """

    def __init__(
        self, judge: Respondent, items: Iterable[Item], journal: Journal, options: RunOptions
    ) -> None:
        self.judge, self.items, self.journal, self.options = judge, items, journal, options

    def all_keys(self) -> Iterator[tuple[Item, Key]]:
        """Yield (Item, Key) for every item and each of its calls, also those that the journal holds."""
        fingerprint, calls = single_calls(self.judge.fingerprint)
        return (
            (shown, Key(item.item_id, item.sha, fingerprint, repeat, unit, order))
            for item in self.items
            for unit, order, shown in units_of(self.judge, item)
            for repeat in range(calls * self.options.repeats)
        )

    def judgements(self) -> Iterator[Judgement]:
        """Yield each Judgement of all its own items, from its own journal; several calls as a single row."""
        keys = (key for _, key in self.all_keys())
        for key in keys:
            more = itertools.islice(keys, single_calls(self.judge.fingerprint)[1] - 1)
            yield of_calls(self.judge.name, [self.journal.latest[call] for call in (key, *more)])

    def __iter__(self) -> Iterator[tuple[Item, Key]]:
        for item, key in self.all_keys():
            if self.journal.settled(key, retry_unscored=self.options.retry_unscored) is None:
                yield item, key

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    def count(self) -> int:
        return sum(1 for _ in self)


def models_of(judges: Iterable[Respondent]) -> list[ModelSpec]:
    return [judge.model for judge in judges if judge.model is not None]


def require_keys(
    judges: Sequence[Respondent], items: Iterable[Item], journal: Journal, options: RunOptions
) -> None:
    """Refuse to run judges on Items, by a Journal and RunOptions, for due calls without an API key."""
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
) -> tuple[Judgement, ...]:
    """Have judges judge Items, by a Journal and RunOptions; return a tuple of Judgements, all of them.

    Gives one row for each judge, item and repeat.

    Args:
        items: what is judged, or asked; `options.limit` has been applied by the caller.
        budget: shared between several calls of this function; made from the options otherwise.
        label: what progress shows instead of the judge's name.

    Raises:
        AuthError: a provider refused the key.
    """
    require_prices(models_of(judges), options.budget_usd)
    for judge in judges:
        judge.check_items(items)
    trials = [Due(judge, items, journal, options) for judge in judges]
    judge_to_journal(trials, budget=budget, label=label, in_turn=True)
    return tuple(row for trial in trials for row in trial.judgements())


def judge_to_journal(
    trials: Sequence[Due], *, budget: Budget | None = None, label: str | None = None, in_turn: bool = False
) -> None:
    """Make the calls that a sequence of Due holds and append judgements to their journal; return nothing.

    As one run: the one place where judges are called. It shows one progress and spends one budget.

    Items are read from the start several times, so that there may be more of them than memory holds; each has
    what its judge asks for. Journal, cache and the way to call are those of the first trial.

    Args:
        label: what progress shows; the judge's name by default.
        in_turn: one judge after the other; else the calls of one model are made together.

    Raises:
        AuthError: a provider refused the key.
    """
    if not trials:
        return
    options, journal = trials[0].options, trials[0].journal
    models = models_of(trial.judge for trial in trials)
    require_prices(models, options.budget_usd)
    for trial in trials:
        require_keys([trial.judge], trial.items, journal, trial.options)
    budget = budget or Budget(options.budget_usd)
    counted = [(trial, trial.count()) for trial in trials]
    total, progress = sum(count for _, count in counted), None
    if total and not options.quiet:  # else nothing is due, or nobody watches
        progress = Progress(label or f"{len(trials)} judges", total)
    opened: contextlib.AbstractContextManager[ReplyCache | None] = contextlib.nullcontext()
    if not all(model.embedded for model in models):
        opened = open_cache(use=options.use_cache)
    with opened as cache:
        parts = [[pair] for pair in counted] if in_turn else [counted]
        for number, part in enumerate(parts, 1):
            if progress and not label and len(part) == 1:
                place = f" ({number} of {len(trials)})" if len(trials) > 1 else ""
                progress.label = f"{part[0][0].judge.name}{place}"
            _call(part, journal, options, budget, cache, progress)


def _call(
    counted: Sequence[tuple[Due, int]],
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
            take_verdicts(verdicts, record=recorder(journal, judge), progress=progress)

    def calls_of(model: ModelSpec) -> Iterator[Call]:
        return (
            Call(key, judge.name, partial(judge.messages, item), judge.read, judge.schema, weigh)
            for judge, due, _ in by_model[model]
            for weigh in [getattr(judge, "weigh", None)]
            for item, key in due
        )

    for model, callers in by_model.items():
        run_calls(
            calls_of(model),
            model,
            record=recorder(journal, callers[0][0]),
            budget=budget,
            cache=cache,
            progress=progress,
            total=sum(count for *_, count in callers),
            processes=options.processes,
        )
    if progress:
        progress.close()
    if not options.quiet:
        say_remarks(budget)


def say_remarks(budget: Budget, *, ended: bool = True) -> None:
    """Print the remarks of a Budget on stderr, each once. `ended`: also that the money ran out."""
    for remark in budget.remarks(ended=ended):
        notice(f"judgecal: {remark}")


def plan_calls(
    judges: Sequence[Respondent], items: Iterable[Item], journal: Journal, options: RunOptions
) -> CostEstimate:
    """Return the CostEstimate of calls due: judges, Items, a Journal that has some, and RunOptions."""
    return plan_trials([Due(judge, items, journal, options) for judge in judges])


def plan_trials(trials: Sequence[Due]) -> CostEstimate:
    """Return the CostEstimate of the calls that a sequence of Due leaves to make; nothing is called."""
    planned: set[int] = set()  # hashes of keys: equal rows, and two names with one fingerprint, are one call
    return together([_plan(trial, planned) for trial in trials])


def _plan(due: Due, planned: set[int]) -> CostEstimate:
    judge, model = due.judge, due.judge.model
    wanted = calls = 0
    tokens = usd = 0.0
    for item, key in due:
        wanted += 1
        if hash(key) in planned:
            continue
        planned.add(hash(key))
        if calls_a_model(judge):
            messages = judge.messages(item)
            calls += 1
            tokens += sum(len(message["content"]) for message in messages) / _CHARS_PER_TOKEN
            usd += worst_cost_usd(judge.model, messages, judge.schema)
    stored = sum(1 for _ in due.all_keys()) - wanted
    if model is None or not calls:
        return CostEstimate(0, stored, 0, 0.0)
    return CostEstimate(
        calls,
        stored,
        round(tokens),
        usd if model.priced and model.bounded else None,
        likely_usd(model, calls, tokens),
        () if model.bounded else (model.alias,),
    )
