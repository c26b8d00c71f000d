"""`judge --suite`: several judges on one table as one run, with one journal, one progress and one budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

from judgecal._version import __version__
from judgecal.engine import Journal
from judgecal.errors import InputError
from judgecal.experiment import (
    CostEstimate,
    Experiment,
    RunOptions,
    judge_config,
    keep_together,
    models_of,
    open_experiment,
    open_journal,
    plan_calls,
    plan_experiment,
    require_keys,
    stored_rows,
    together,
)
from judgecal.judges import ITEM_INPUTS, Judge, units_of
from judgecal.production.judge import file_config, judgement_of, since_gate
from judgecal.production.judge_result import INPUT, Costs
from judgecal.production.read_row import ReadRow
from judgecal.production.row_items import RowReader
from judgecal.production.suite_columns import Measure, Member, Naming, Said
from judgecal.production.suite_judges import Survey, pick, survey
from judgecal.production.suite_result import SuiteMember, SuiteRate, SuiteResult, Tally, ToLabel
from judgecal.records import ITEM_UNIT, Item, Judgement
from judgecal.tables import Columns, FileSource, Row, check_output, write_beside, writing
from judgecal.tables.formats import Layout
from judgecal.workspace import Workspace


class Reader(Protocol):
    """Rows of one naming as items."""

    def check(self, source: FileSource) -> None:
        """InputError: the table lacks a column."""

    def options(self) -> str:
        """What a configuration says of it."""
        ...

    def read(self, row: Row) -> ReadRow:
        """The item of a row."""
        ...

    def sheet_columns(self) -> Mapping[str, str | None]:
        """What `gold sheet` calls the columns of texts, by its options; None for those that are not there."""
        ...


@dataclass(frozen=True, slots=True)
class PlainReader:
    """Rows whose columns the options name."""

    rows: RowReader

    def check(self, source: FileSource) -> None:
        """Refuse a table without the columns that are named; a judge that lacks one is left out instead."""
        replace(self.rows, inputs=frozenset(self.rows.inputs & ITEM_INPUTS - _FROM_COLUMNS)).check(source)

    def options(self) -> str:
        """The options as they are typed."""
        return self.rows.columns.options()

    def read(self, row: Row) -> ReadRow:
        """The item of a row."""
        item = self.rows.read(row)
        return ReadRow(item, {} if item.question.strip() else {"request": "the question is empty"})

    def sheet_columns(self) -> Mapping[str, str | None]:
        """As the options named them."""
        named = self.rows.columns
        return {
            "question": named.question,
            "answer": named.answer,
            "reference": named.reference,
            "item": named.item,
            "group": named.group,
        }


_FROM_COLUMNS = frozenset(
    {"reference_answer", "reference_answers", "context", "contexts", "chunk", "conversation", "expect"}
)


_ON_SHEETS = frozenset({"question", "answer", "answer_under_test", "response"})
_MOST_LABELS = 200  # rows that people are asked to label first


@dataclass(frozen=True)
class SuiteRun:
    """Everything that `judge --suite` needs, checked before the first call."""

    workspace: Workspace
    suite: str
    measures: tuple[Measure, ...]
    source: FileSource
    reader: Reader
    naming: Naming
    output: Path
    options: RunOptions
    out: str | None = None  # the slug of the experiment, or None for the usual one
    replace: bool = False  # whether a file of the output's name is written over that another command wrote

    @cached_property
    def experiment(self) -> Experiment:
        """Where calls and result go; how the output names its columns is no part of what was asked."""
        config: dict[str, Any] = {
            "command": "judge",
            "suite": self.suite,
            "judges": [
                {"name": member.name, "column": measure.column, **judge_config(member.judge)}
                for measure in self.measures
                for member in measure.members
            ],
            "input": {"file": file_config(self.workspace, self.source), "columns": self.reader.options()},
        }
        return plan_experiment(self.workspace, config, out=self.out)

    @cached_property
    def asking(self) -> RunOptions:
        """The options, with no verdict from before the last gate of its locks taken."""
        return since_gate(
            self.options, self.workspace, [one.lock for one in self._all if one.lock is not None]
        )

    @property
    def _all(self) -> list[Member]:
        return [member for measure in self.measures for member in measure.members]

    def check(self) -> None:
        """Refuse what cannot be done before anything is called or written.

        Raises:
            InputError: the output is no place to write to, the table lacks a column, no judge finds what it
                asks for in any row, or a budget meets a model without a price.
        """
        may = self.replace or self.experiment.wrote(self.output)
        check_output(self.output, self.source.path, self.source.n_rows, replace=may)
        self.reader.check(self.source)
        self.options.check_models(models_of([member.judge for member in self._all]))
        if not self.survey.running:
            raise InputError(f"{one.name} is left out: {one.why}" for one in self.survey.left_out)

    @cached_property
    def survey(self) -> Survey:
        """Which judges have anything to judge in this table; it is read once for this."""
        return survey(self.measures, self._read())

    def _read(self) -> Iterator[ReadRow]:
        for piece in self.source.pieces(self.options.limit):
            yield from map(self.reader.read, piece.rows)

    def _asked(self) -> list[tuple[Judge, _Items]]:
        return [
            (member.judge, _Items(self, measure, member))
            for measure in self.survey.running
            for member in measure.members
        ]

    def preview(self) -> CostEstimate:
        """What a run would call; nothing is written."""
        self.check()
        stored = stored_rows(self.experiment.journal, long=True)
        return together([plan_calls([judge], items, stored, self.asking) for judge, items in self._asked()])

    def run(self) -> SuiteResult:
        """Make the calls that are due, write the output, and say what the verdicts come to.

        The output appears when all rows are done, whole: after Ctrl-C there is none, and the same command
        resumes.

        Raises:
            InputError: as `check`; a key is not set and a call is due, or the table changed while it was
                being read.
        """
        self.check()
        asked = self._asked()
        stored = stored_rows(self.experiment.journal, long=True)
        for judge, items in asked:
            require_keys([judge], items, stored, self.asking)
        open_experiment(self.experiment)
        layout, columns = self._layout()
        with open_journal(self.experiment.journal, self.options, long=True) as journal:
            budget = self.options.open_budget(self.experiment.folder)
            keep_together(
                asked, journal=journal, options=self.asking, budget=budget, label=f"suite {self.suite}"
            )
            written = _Written(self, journal)
            with writing(self.output, layout.output, before=partial(self._mark_output, layout)) as write:
                for piece in self.source.pieces(self.options.limit):
                    write(piece, [written.row(self.reader.read(row)) for row in piece.rows])
        result = self._result(written, columns, layout.notes)
        self.experiment.write_summary(result)
        return result

    def _mark_output(self, layout: Layout) -> None:
        """Note that the output is ours, and say beside it which of its columns is what."""
        self.experiment.mark_output(self.output)
        header = (*layout.output.own, *layout.names)
        named: Any = {part: name for part, name in self.reader.sheet_columns().items() if name in header}
        write_beside(self.output, Columns(**named), header)

    def _layout(self) -> tuple[Layout, Mapping[str, Mapping[str, str]]]:
        """How the output is written, and measure -> part of its result -> column."""
        parts = [
            (one, part, name)
            for one in self.survey.running
            for part, name in one.columns(self.naming).items()
        ]
        layout = Layout.of(self.source, self.output, [(name, one.kind(part)) for one, part, name in parts])
        columns: dict[str, dict[str, str]] = {}
        for (measure, part, _), name in zip(parts, layout.names, strict=True):
            columns.setdefault(measure.name, {})[part] = name
        return layout, columns

    def _result(
        self, written: _Written, columns: Mapping[str, Mapping[str, str]], notes: Sequence[str]
    ) -> SuiteResult:
        rates = {tally.name: tally.rate() for tally in written.tallies}
        metrics = {
            name: found
            for tally in written.tallies
            for name, found in tally.metrics(rates[tally.name], self.naming).items()
        }
        members = [member for measure in self.survey.running for member in measure.members]
        costs = list(written.costs.values())
        return SuiteResult(
            experiment=self.experiment.slug,
            suite=self.suite,
            input=str(self.source.path),
            output=str(self.output),
            naming=self.naming,
            columns=columns,
            n=written.n,
            n_unscored=written.n_unscored,
            rates=rates,
            metrics=metrics,
            judges=tuple(
                SuiteMember(one.name, one.judge.name, one.judge.kind, one.lock_path) for one in members
            ),
            left_out=self.survey.left_out,
            to_label=self._to_label(rates, written.n),
            usd=_sum([one.usd for one in costs]),
            usd_per_1k=_per_1k(costs, written.n),
            model_ids=tuple(sorted(written.model_ids)),
            notes=(*self.source.notes, *notes, *self._notes(written, rates)),
            run_line=self._run_line(members, written.n),
        )

    def _to_label(self, rates: Mapping[str, SuiteRate], n: int) -> ToLabel | None:
        """The judge that people can be asked about first: the lowest of those whose inputs a sheet can
        hold."""
        columns = {
            option: name
            for option, name in self.reader.sheet_columns().items()
            if name in self.source.columns
        }
        if not {"question", "answer"} <= columns.keys():
            return None
        held = _ON_SHEETS | ({"reference_answer", "reference_answers"} if "reference" in columns else set())
        fitting = [
            (rates[measure.name].raw.value, member)
            for measure in self.survey.running
            for member in measure.members
            if member.lock is None and member.judge.kind != "local" and held.issuperset(member.judge.inputs)
        ]
        if not fitting:
            return None
        _, member = min(fitting, key=lambda one: (one[0] is None, one[0]))
        known = Columns(usual=True).resolved(self.source.columns, self.source.path)
        more = {option: str(name) for option, name in columns.items() if name != getattr(known, option)}
        return ToLabel(member.name, member.judge.name, str(member.judge.scale), min(n, _MOST_LABELS), more)

    def _notes(self, written: _Written, rates: Mapping[str, SuiteRate]) -> Iterator[str]:
        every = Costs(None)
        for costs in written.costs.values():
            every.extend(costs)
        yield from every.notes()
        for name, rate in rates.items():
            if len(rate.judged_by) > 1:
                said = ", ".join(f"{judge} {n:,} rows" for judge, n in rate.judged_by.items())
                yield f"{name} is judged by the first judge that a row has the inputs for: {said}"
        for member in self._all:
            ids = written.ids_of.get(member.name, set()) - {None}
            locked = member.lock.model_id if member.lock is not None else None
            if locked is not None and ids - {locked}:
                others = ", ".join(sorted(str(one) for one in ids - {locked}))
                yield f"{member.name}: the provider answered as {others}, and it was locked on {locked}: run gate"
        if self.options.limit is not None and self.options.limit < self.source.n_rows:
            rows = f"{self.options.limit:,} of {self.source.n_rows:,} rows"
            yield f"only the first {rows} are in the output (--limit)"

    def _run_line(self, members: Sequence[Member], n: int) -> str:
        judges = "+".join(f"{one.judge.name}:{one.judge.fingerprint[:8]}" for one in members)
        return (
            f"suite:{self.suite}|judges:{judges}|input:{self.source.path.name}|n:{n}|level:0.95|by:group|"
            f"version:{__version__}"
        )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _per_1k(costs: Sequence[Costs], n: int) -> float | None:
    anew = _sum([one.usd_anew for one in costs])
    return None if anew is None or not n else 1000.0 * anew / n


@dataclass(frozen=True, slots=True)
class _Items:
    """The items of a table that one judge judges, read from the file whenever they are gone through."""

    run: SuiteRun
    measure: Measure
    member: Member

    def __iter__(self) -> Iterator[Item]:
        for row in self.run._read():
            member, lacking = pick(self.measure, row)
            if member is self.member and lacking is None:
                yield row.shown(member.judge)


class _Written:
    """The rows as they go into the output, counted on the way."""

    def __init__(self, run: SuiteRun, journal: Journal) -> None:
        self._journal, self._naming = journal, run.naming
        self.tallies = [Tally(measure) for measure in run.survey.running]
        self.costs = {
            member.name: Costs(None if member.judge.model is None else member.judge.model.cost_usd)
            for measure in run.survey.running
            for member in measure.members
        }
        self.ids_of: dict[str, set[str | None]] = {}
        self.n = self.n_unscored = 0

    @property
    def model_ids(self) -> set[str]:
        """As which the providers answered."""
        return {one for ids in self.ids_of.values() for one in ids if one is not None}

    def row(self, row: ReadRow) -> list[Any]:
        """What is added to a row."""
        values: list[Any] = []
        unscored = False
        for tally in self.tallies:
            member, lacking = pick(tally.measure, row)
            said = (
                list(self._said(member, row))
                if lacking is None
                else [Said(None, error=f"{INPUT}: {lacking}")]
            )
            unscored |= tally.add(member, row.item.group, said)
            values += tally.measure.values(member, said, self._naming)
        self.n += 1
        self.n_unscored += unscored
        return values

    def _said(self, member: Member, row: ReadRow) -> Iterator[Said]:
        """What a judge said of an item, or of each of its contexts; one without a text was not asked
        about."""
        item = row.shown(member.judge)
        units = iter(units_of(member.judge, item))
        if member.judge.unit == ITEM_UNIT:
            yield self._of(member, judgement_of(self._journal, member.judge, item))
            return
        for context in row.item.contexts:
            if context in item.contexts:
                unit, _ = next(units)
                yield self._of(member, judgement_of(self._journal, member.judge, item, unit))
            else:
                yield Said(None, error=f"{INPUT}: the chunk has no text")

    def _of(self, member: Member, found: Judgement) -> Said:
        self.costs[member.name].add(found)
        self.ids_of.setdefault(member.name, set()).add(found.model_id)
        if found.verdict is not None:
            return Said(found.verdict, found.reasoning, row=found)
        kind, message = (found.error.kind, found.error.message) if found.error else ("parse", "")
        return Said(None, found.reasoning, f"{kind}: {message}", found)
