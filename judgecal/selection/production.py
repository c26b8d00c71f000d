"""`judge`: a locked judge on a table of production answers, and what its verdicts come to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from judgecal import __version__
from judgecal.engine import Journal, require_prices
from judgecal.errors import InputError
from judgecal.experiment import (
    CostEstimate,
    Experiment,
    RunOptions,
    full_name,
    item_scale,
    judge_config,
    keep_trials,
    models_of,
    open_experiment,
    open_journal,
    plan_calls,
    plan_experiment,
    require_keys,
    stored_rows,
    whole_item,
)
from judgecal.goldset import Columns
from judgecal.judges import Judge, units_of
from judgecal.records import Estimate, Item, Judgement, Key, Result
from judgecal.scale import Scale
from judgecal.selection.lock import Lock, load_lock
from judgecal.selection.pass_rates import Overview, PassRule, SystemRates, chance
from judgecal.selection.row_items import Judged, RowItems, RowReader, judged_columns
from judgecal.tables import FileSource, Row, check_output, open_source, writing
from judgecal.tables.formats import Layout
from judgecal.workspace import Workspace, find_workspace

INPUT = "input"
"""The kind of the error of a row that lacks what the judge asks for; it is never called for."""


@dataclass(frozen=True, slots=True)
class LockedOn:
    """The gold set and split that a lock was confirmed on."""

    set: str
    sha256: str
    split: str


@dataclass(frozen=True, slots=True)
class RawRate:
    """The share that passes as the judge sees it, or of nominal verdicts that of each word: its errors are in it."""

    raw: Estimate
    words: Mapping[str, Estimate]  # the most frequent first; empty where verdicts are numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeResult(Result):
    """What a judged table comes to."""

    experiment: str
    lock: str
    judge: str
    gold: LockedOn
    input: str  # the tables, and the names that the added columns have in the output
    output: str
    columns: Mapping[str, str]
    named: Mapping[str, str]  # question, answer, item and group: the columns of the table that hold them, where named
    n: int  # rows, and those without a verdict
    n_unscored: int
    systems: tuple[SystemRates, ...]  # by system (all rows alone, where none is named), and of all rows
    overall: SystemRates
    pass_at: float | None
    rates: Mapping[str, RawRate]
    sensitivity: Estimate | None  # of the judge when it was locked; None where the lock does not know
    specificity: Estimate | None
    note: str
    warning: str | None  # why the rate says nothing: the judge tells right from wrong no better than a coin; else None
    # usd, usd_per_1k: what the rows' calls cost, and what a thousand rows cost where a stored reply counts as if it had
    # been called for; None where some cost is not known
    usd: float | None
    usd_per_1k: float | None
    model_ids: tuple[str, ...]  # the ids that the provider answered as
    notes: tuple[str, ...]
    run_line: str


@dataclass(frozen=True)
class ProductionRun:
    """Everything that `judge` needs, checked before the first call."""

    workspace: Workspace
    lock: Lock
    lock_path: Path
    source: FileSource
    reader: RowReader
    judge: Judge  # the lock's judge
    output: Path
    options: RunOptions
    out: str | None = None  # the slug of the experiment, or None for the usual one
    replace: bool = False  # whether a file of the output's name is written over that another command wrote

    @cached_property
    def experiment(self) -> Experiment:
        """Where calls and result go."""
        config = {
            "command": "judge",
            "gold": {"set": self.lock.gold.set, "sha256": self.lock.gold.sha256},
            "lock": self.lock.sha256,
            "judge": judge_config(self.judge),
            "input": input_config(self.workspace, self.source, self.reader),
        }
        return plan_experiment(self.workspace, config, out=self.out)

    def check(self) -> None:
        """Refuse what cannot be done before anything is called or written.

        Raises:
            InputError: the output is no place to write to, a column is missing or not named, or a budget meets a
                model without a price.
        """
        may = self.replace or self.experiment.wrote(self.output)
        check_output(self.output, self.source.path, self.source.n_rows, replace=may)
        self.reader.check(self.source)
        require_prices(models_of([self.judge]), self.options.limit_usd)

    @property
    def items(self) -> RowItems:
        """The rows that the judge is called for."""
        return RowItems(self.source, self.reader, self.options.limit)

    def preview(self) -> CostEstimate:
        """What a run would call; nothing is written."""
        self.check()
        stored = stored_rows(self.experiment.journal, long=True)
        return plan_calls([self.judge], self.items, stored, self.options)

    def run(self) -> JudgeResult:
        """Make the calls that are due, write the output, and say what the verdicts come to.

        The output appears when all rows are done, whole: after Ctrl-C there is none, and the same command resumes.

        Raises:
            InputError: as `check`; a key is not set and a call is due, or the table changed while it was being read.
        """
        self.check()
        stored = stored_rows(self.experiment.journal, long=True)
        require_keys([self.judge], self.items, stored, self.options)
        open_experiment(self.experiment)
        layout = Layout.of(self.source, self.output, judged_columns(words=not self.judge.scale.numeric))
        with open_journal(self.experiment.journal, self.options, long=True) as journal:
            budget = self.options.open_budget(self.experiment.folder)
            keep_trials(self.judge, self.items, journal=journal, options=self.options, budget=budget)
            written = _Written(self, journal)
            with writing(self.output, layout.output, before=partial(self.experiment.mark_output, self.output)) as write:
                for piece in self.source.pieces(self.options.limit):
                    write(piece, [written.row(row) for row in piece.rows])
        result = self._result(written, layout)
        self.experiment.write_summary(result)
        return result

    def _result(self, written: _Written, layout: Layout) -> JudgeResult:
        overall, gold = written.overview.overall(), self.lock.gold
        sensitivity, specificity = PassRule.of(gold, item_scale(self.judge)).class_rates(self.lock.agreement)
        raw = overall.intervals.share_passing
        return JudgeResult(
            experiment=self.experiment.slug,
            lock=str(self.lock_path),
            judge=self.lock.judge,
            gold=LockedOn(gold.set, gold.sha256, gold.split),
            input=str(self.source.path),
            output=str(self.output),
            columns=dict(zip(Judged._fields, layout.names, strict=True)),
            named={name: column for name, column in self._named() if column},
            n=overall.n_expected,
            n_unscored=overall.n_unscored,
            systems=tuple(written.overview.entries() or [overall]),
            overall=overall,
            pass_at=gold.pass_at,
            rates={self.lock.judge: RawRate(raw, overall.intervals.words)},
            sensitivity=sensitivity,
            specificity=specificity,
            note=(
                _note_on_words(self.lock)
                if overall.intervals.words
                else _note(raw, sensitivity, specificity, lock=self.lock)
            ),
            warning=chance(Scale.parse(gold.scale, pass_at=gold.pass_at), self.lock.agreement),
            usd=written.costs.usd,
            usd_per_1k=written.costs.usd_per_1k,
            model_ids=tuple(sorted(written.model_ids)),
            notes=(*self.source.notes, *layout.notes, *self._notes(written)),
            run_line=self._run_line(overall.n_expected),
        )

    def _named(self) -> Iterator[tuple[str, str | None]]:
        columns = self.reader.columns
        yield from (("question", columns.question), ("answer", columns.answer))
        yield from (("item", columns.item), ("group", columns.group))

    def _notes(self, written: _Written) -> list[str]:
        notes = []
        locked = self.lock.model_id
        others = sorted(written.model_ids - {locked})
        if locked is not None and others:
            answered = f"the provider answered as {', '.join(others)}"
            notes.append(f"{answered}, and the judge was locked on {locked}: run judgecal gate")
        if self.options.limit is not None and self.options.limit < self.source.n_rows:
            rows = f"{self.options.limit:,} of {self.source.n_rows:,} rows"
            notes.append(f"only the first {rows} are in the output (--limit)")
        return notes

    def _run_line(self, n: int) -> str:
        gold = self.lock.gold
        return (
            f"lock:{self.lock.sha256[:12]}|gold:{gold.set}@{gold.sha256[:12]}|split:{gold.split}|"
            f"judge:{full_name(self.judge)}|input:{self.source.path.name}|n:{n}|level:0.95|by:group|"
            f"version:{__version__}"
        )


class _Written:
    """The rows as they go into the output, counted on the way."""

    def __init__(self, run: ProductionRun, journal: Journal) -> None:
        self._reader, self._judge, self._journal = run.reader, run.judge, journal
        self._rule = PassRule.of(run.lock.gold, item_scale(run.judge))
        self._calibration = run.lock.calibration
        self.overview = Overview(self._rule, calibration=self._calibration)
        self.model_ids: set[str] = set()
        self.costs = Costs(None if run.judge.model is None else run.judge.model.cost_usd)

    def row(self, row: Row) -> Judged:
        """What is added to a row."""
        item = self._reader.read(row)
        lacking = self._reader.lacking(item)
        if lacking is not None:
            self.overview.add(item.system, item.group, None, error=INPUT)
            return Judged(None, error=f"{INPUT}: {lacking}")
        found = judgement_of(self._journal, self._judge, item)
        kind = found.error.kind if found.error else "parse"
        self.overview.add(item.system, item.group, found.verdict, error=kind)
        self.costs.add(found)
        if found.model_id:
            self.model_ids.add(found.model_id)
        return Judged(
            found.verdict,
            found.reasoning,
            None if found.verdict is not None else f"{kind}: {found.error.message if found.error else ''}",
            self._rule.passes(found.verdict),
            found.model_id,
            found.cost_usd,
            found.latency_s,
            None if self._calibration is None else self._calibration.apply(found.verdict),
        )


class Costs:
    """What calls cost; of no use where the cost of one is not known."""

    def __init__(self, price: Callable[[int | None, int | None], float | None] | None) -> None:
        self._price, self._n = price, 0
        self.usd: float | None = 0.0
        self.usd_anew: float | None = 0.0  # what they would cost without stored replies

    def add(self, row: Judgement) -> None:
        """Count a judgement."""
        anew = row.cost_usd
        if row.cached and self._price is not None:
            anew = self._price(row.prompt_tokens, row.completion_tokens)
        self._n += 1
        self.usd = None if self.usd is None or row.cost_usd is None else self.usd + row.cost_usd
        self.usd_anew = None if self.usd_anew is None or anew is None else self.usd_anew + anew

    @property
    def usd_per_1k(self) -> float | None:
        """What a thousand rows cost; a stored reply counts as if it had been called for."""
        return None if self.usd_anew is None or not self._n else 1000.0 * self.usd_anew / self._n


def judgement_of(journal: Journal, judge: Judge, item: Item, unit: str | None = None) -> Judgement:
    """The journal's row of an item, or of one of its chunks; of a judge of chunks the mean of all of them.

    Raises InputError: there is none.
    """
    units = [unit] if unit is not None else [name for name, _ in units_of(judge, item)]
    try:
        return whole_item([journal.latest[Key(item.item_id, item.sha, judge.fingerprint, 0, one)] for one in units])
    except KeyError:
        raise InputError(
            f"{journal.path}: holds no judgement of item {item.item_id} by {judge.name}: the table changed while it "
            "was being judged, run the same command again"
        ) from None


def input_config(workspace: Workspace, source: FileSource, reader: RowReader) -> dict[str, Any]:
    """What a configuration says of a table: where it is and which column is what.

    Its content is no part of that: a row is known by its text, so that of a table that has grown, or in which a
    row was mended, only what is new is called for.
    """
    return {"file": file_config(workspace, source), "columns": reader.columns.options()}


def file_config(workspace: Workspace, source: FileSource) -> str:
    """What a configuration says of a file: its path, within the workspace from there."""
    path, root = source.path.resolve(), workspace.root.resolve()
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def _note(raw: Estimate, sensitivity: Estimate | None, specificity: Estimate | None, *, lock: Lock) -> str:
    """One line on what the raw rate is not."""
    if raw.value is None:
        return f"no share passing: {raw.reason}"
    gold = f"{lock.gold.set}@{lock.gold.sha256[:12]} {lock.gold.split}"
    if all(rate is None or rate.value is None for rate in (sensitivity, specificity)):
        return f"raw rate {_shown(raw)}, not corrected for the judge's error, which the lock does not know on {gold}"
    return (
        f"raw rate {_shown(raw)}, not corrected for the judge's error, whose sensitivity and specificity on {gold} are "
        f"{_shown(sensitivity)} and {_shown(specificity)}"
    )


def _note_on_words(lock: Lock) -> str:
    """One line on what the shares of words are not."""
    gold = f"{lock.gold.set}@{lock.gold.sha256[:12]} {lock.gold.split}"
    accuracy = lock.agreement.get("accuracy")
    if accuracy is None or accuracy.value is None:
        return f"the shares are not corrected for the judge's error, which the lock does not know on {gold}"
    return f"the shares are not corrected for the judge's error: its accuracy on {gold} is {_shown(accuracy)}"


def _shown(found: Estimate | None) -> str:
    if found is None or found.value is None:
        return "not known"
    if found.low is None or found.high is None:
        return f"{found.value:.3f}"
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def judge(
    table: str | Path,
    *,
    lock: str | Path,
    output: str | Path,
    columns: Columns,
    replace: bool = False,
    limit: int | None = None,
    budget_usd: float | None = None,
    trust_lock: bool = False,
    name: str | None = None,
    workspace: str | Path | None = None,
) -> JudgeResult:
    """Judge a table of production answers with a locked judge: every row comes out, in order, with its verdict.

    Args:
        table, output: the file with the answers, and where the same goes with the verdicts, by its ending.
        lock: the judge.lock.json of select.
        columns: which column is what: `judgecal.Columns("question", "answer", reference="reference")`.
        replace: also over an output that another call wrote.
        limit: only the first so many rows.
        trust_lock: run the lock's own signature where the workspace has another.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.

    Raises:
        InputError: as `ProductionRun.run`.
    """
    where = find_workspace(None if workspace is None else Path(workspace))
    locked = load_lock(Path(lock))
    runnable = locked.runnable(where, trust_lock=trust_lock)
    options = RunOptions(limit=limit, budget_usd=budget_usd)
    options.check()
    return ProductionRun(
        workspace=where,
        lock=locked,
        lock_path=Path(lock),
        source=open_source(Path(table)),
        reader=RowReader.of(columns, runnable),
        judge=runnable,
        output=Path(output),
        options=options,
        out=name,
        replace=replace,
    ).run()
