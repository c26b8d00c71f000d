"""Rows without labels that judges have judged: what their differences decide, alone and with a few labels."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from judgecal.artefacts import SCHEMA, read_json
from judgecal.engine import Budget, Journal
from judgecal.errors import InputError, LostCallsError, listed, refuse
from judgecal.experiment.agreement import JudgeColumn, StoredExperiment
from judgecal.experiment.folder import Experiment
from judgecal.experiment.looks import DRAW, Look, look_at_test
from judgecal.experiment.table_rows import (
    JudgedItems,
    ReadRow,
    RowReader,
    TableRows,
    input_config,
    judgement_of,
)
from judgecal.experiment.trials import (
    CostEstimate,
    Due,
    RunOptions,
    judge_to_journal,
    open_journal,
    plan_calls,
    stored_rows,
    together,
)
from judgecal.goldset import GoldSet
from judgecal.goldset.draw import Stratum, allocate
from judgecal.goldset.load import read_items
from judgecal.goldset.write import item_row
from judgecal.judges import Judge, judge_named
from judgecal.records import RETRIED_ON_RESUME, Estimate, Item, Judgement, digest
from judgecal.scale import Label, Scale
from judgecal.stats.calibration import Calibration
from judgecal.stats.disagreement import (
    MACRO,
    DrawnLabels,
    KnownClasses,
    Outlook,
    TwoJudges,
    by_rows,
    draw_strata,
    labels_needed,
    loss_on_labels,
    worst_loss,
)
from judgecal.stats.intervals import MIN_GROUPS
from judgecal.stats.metrics import amount_of, metric_facts
from judgecal.stats.sample import Floats, Ints, codes_of
from judgecal.tables import Columns, open_source, write_json_lines
from judgecal.workspace import Workspace, write_text

DecidedBy = Literal["rows", "labels", "gold"]
Verdicts = Sequence[Label | None]
LEAST_DRAWN = 10
"""Fewer labels than this decide nothing."""
ROWS, _ABOUT = "rows.jsonl", "rows.json"


@dataclass(frozen=True, slots=True)
class Differ:
    """How far two judges differ on rows without labels; `worst_loss` is one-sided, None where nothing bounds
    it."""

    n: int
    n_groups: int
    share: Estimate
    worst_loss: Estimate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OnRows:
    """What rows, and labels of some of them, say of what a candidate loses against a reference."""

    reference: str
    candidate: str
    differ: Differ
    loss: Estimate | None  # on the labels, two-sided; None without labels
    loss_below: float | None  # one-sided at the level
    n_labels: int
    labels_needed: int | None  # about how many in all, drawn where they differ; None where none would do
    labels_at_random: int | None  # the same drawn at random
    decided_by: Literal["rows", "labels"] | None  # None: neither decides
    decision: Literal["pass", "fail"] | None
    why: str
    look: str | None  # which decision on the draw this is, in words
    labels: str | None = None  # the set that they are in
    n_tied: int = 0  # drawn rows on which raters tie, and those that nobody rated yet
    n_waiting: int = 0

    @property
    def more(self) -> int | None:
        """Labels beside those that there are; None where it is decided, or where none would do."""
        if self.decision is not None or self.labels_needed is None:
            return None
        left = self.labels_needed - self.n_labels
        return max(LEAST_DRAWN, left if left > 0 else self.n_labels // 2)  # as planned, or half as many again


def sheet_command(experiment: str, on_rows: Sequence[OnRows]) -> str | None:
    """The command that brings the labels for all that is open: first those of the draw that are missing, then
    a sheet; None where labels settle nothing."""
    wanted = [more for on in on_rows if (more := on.more) is not None]
    if not wanted:
        return None
    known, n = on_rows[0].labels, on_rows[0].n_labels + max(wanted)
    if on_rows[0].n_tied:
        return f"judgecal gold adjudicate {known}"
    if on_rows[0].n_waiting:
        return f"judgecal gold label {known}"
    extends, to = ("", "labels") if known is None else (f" --labels {known}", f"{known}-{n}")
    return f"judgecal gold sheet {experiment} --strata disagreement -n {max(wanted)}{extends} -o {to}.csv"


@dataclass(frozen=True, slots=True)
class RowJudge:
    """A judge of rows: who is called, on which scale, through which map onto the people's."""

    judge: Judge | None  # None where nobody here can call it
    scale: Scale
    calibration: Calibration | None = None

    def mapped(self, verdicts: Iterable[Label | None]) -> list[Label | None]:
        """Its verdicts through the map, where it has one."""
        by = self.calibration
        return [verdict if by is None else by.apply(verdict) for verdict in verdicts]


def boundable(metric: str, scale: Scale) -> None:
    """Refuse a metric that is no mean over answers."""
    if not by_rows(metric, scale):
        raise InputError(
            f"{metric} is no mean over answers: rows without labels (--on, --labels) bound no loss by it"
        )


@dataclass(frozen=True)
class JudgedRows:
    """Items without labels with the verdicts of judges on the people's scale, each through its own map."""

    gold: GoldSet
    metric: str
    items: tuple[Item, ...]
    verdicts: Mapping[str, Verdicts]
    # labelled items of train and dev with the same judges' verdicts, for the mix of labels and for planning
    known: tuple[Item, ...]
    of_known: Mapping[str, Verdicts]
    where: str = ""  # what the rows are, in words
    trained: frozenset[str] = frozenset()  # questions that a judge was trained on
    n_left_out: int = 0  # rows on these, and rows that lack what a judge asks for

    @classmethod
    def of(
        cls,
        gold: GoldSet,
        metric: str,
        judges: Mapping[str, RowJudge],
        known: tuple[Sequence[Item], Mapping[str, Verdicts]],
        rows: Iterable[tuple[Item, Verdicts | None]],
        *,
        where: str,
        trained: frozenset[str] = frozenset(),
    ) -> JudgedRows | None:
        """From raw verdicts, each text once, without rows on questions that a judge was `trained` on (groups
        of the set; a table may know them by their texts); None where too little is known."""
        if gold.n_groups(known[0]) < MIN_GROUPS:
            return None
        seen = trained | {item.question.strip() for item in gold.items if item.group in trained}
        items, said, n_left_out = dict[str, Item](), list[Verdicts](), 0
        for item, verdicts in rows:
            if verdicts is None or seen & {item.group, item.question.strip()}:
                n_left_out += 1
                continue
            first = items.setdefault(item.item_id, item)
            if first is not item and first.sha != item.sha:
                raise InputError(f"{where}: other texts have one id, {item.item_id!r}: leave --item out")
            said += [verdicts] if first is item else []
        if not said:
            return None
        columns = zip(judges.items(), zip(*said, strict=True), strict=True)
        mapped = {name: of.mapped(column) for (name, of), column in columns}
        of_known = {name: of.mapped(known[1][name]) for name, of in judges.items()}
        rest = where, seen, n_left_out
        return cls(gold, metric, tuple(items.values()), mapped, tuple(known[0]), of_known, *rest)

    @classmethod
    def of_experiment(
        cls,
        stored: StoredExperiment,
        columns: Sequence[JudgeColumn],
        metric: str,
        on: JudgedTable | None = None,
        experiment: Experiment | None = None,
    ) -> JudgedRows | None:
        """From the judges of an experiment, their maps fitted on its open items: of a table that they judge
        in another `experiment`, else of the set's judged items without a label."""
        gold, journal = stored.gold, Journal(None)
        known = tuple(item for item in stored.items if item.item_id not in gold.test_ids)
        if on is not None and experiment is not None:
            boundable(metric, gold.scale)
            if gold.n_groups(known) < MIN_GROUPS:
                raise InputError(
                    f"{stored.experiment.slug} has {gold.n_groups(known)} labelled questions in train, dev: "
                    f"rows without labels (--on) need {MIN_GROUPS} to be planned from"
                )
            journal = on.judge(experiment)
        if not by_rows(metric, gold.scale):
            return None
        table, judges, on_known = dataclasses.replace(stored.table, items=known), dict[str, RowJudge](), {}
        for column in columns:
            by = (
                table.calibration(column, fitted_on="") if known and metric_facts(metric).calibrated else None
            )
            judges[column.judge] = RowJudge(on.judges.get(column.judge) if on else None, column.scale, by)
            on_known[column.judge] = [row[0] for row in table.verdicts(column)]
        rows: Iterable[tuple[Item, Verdicts | None]]
        if on is not None:
            of_table, where = list(judgements_of_rows(on.table, judges, journal)), on.table.source.path.name
            errors = [one.error for _, _, said in of_table for one in said or () if one.error is not None]
            if n_lost := sum(error.kind in RETRIED_ON_RESUME for error in errors):
                why = "calls were lost (connection or budget), and decide nothing"
                raise LostCallsError(f"{where}: {n_lost} {why}: the same command makes them again")
            rows = (
                (row.item, None if said is None else [one.verdict for one in said])
                for _, row, said in of_table
            )
        else:
            of = [{row.item_id: row.verdict for row in column.rows if row.repeat == 0} for column in columns]
            shared = set(of[0]).intersection(*of[1:]) - gold.labels.keys()
            left, where = [item for item in gold.items if item.item_id in shared], f"gold set {gold.name}"
            rows = ((item, [verdicts[item.item_id] for verdicts in of]) for item in left)
        how: dict[str, Any] = {"where": where, "trained": stored.trained_on}
        judged = cls.of(gold, metric, judges, (known, on_known), rows, **how)
        if judged is not None and experiment is not None:
            judged.write(experiment.folder)
        return judged

    @property
    def title(self) -> str:
        """What is drawn from, in words."""
        return f"{self.where} where {', '.join(self.verdicts)} differ"

    @cached_property
    def _labels(self) -> list[Label]:
        return [self.gold.labels[item.item_id] for item in self.known]

    @cached_property
    def _words(self) -> dict[str, float]:
        sides = [self._labels, *self.of_known.values(), *self.verdicts.values()]
        words = {str(label) for side in sides for label in side if isinstance(label, str)}
        return {word: float(code) for code, word in enumerate(sorted(words))}

    def _numbers(self, labels: Sequence[Label | None]) -> Floats:
        """Labels as numbers; a word that no judge gave has a code beyond all."""
        words = self._words
        codes = (words.get(label, len(words)) if isinstance(label, str) else label for label in labels)
        return np.array([np.nan if code is None else code for code in codes], dtype=np.float64)

    @cached_property
    def _groups(self) -> Ints:
        return codes_of([item.group for item in self.items], len(self.items))

    def pair(self, reference: str, candidate: str) -> TwoJudges:
        a, b = (self._numbers(self.verdicts[name]) for name in (reference, candidate))
        return TwoJudges(a, b, self._groups, self.gold.scale, self.metric)

    def outlook(self, reference: str, candidate: str) -> tuple[Outlook, KnownClasses]:
        """What the labelled items let expect, and the mix of their labels."""
        labels, groups = self._numbers(self._labels), [item.group for item in self.known]
        a, b = (self._numbers(self.of_known[name]) for name in (reference, candidate))
        two = TwoJudges(a, b, codes_of(groups, len(labels)), self.gold.scale, self.metric)
        return Outlook.of(two, labels), KnownClasses(two.class_of(labels), two.groups)

    @cached_property
    def _pairs(self) -> list[TwoJudges]:
        return [self.pair(a, b) for a, b in itertools.combinations(self.verdicts, 2)]

    @cached_property
    def strata(self) -> tuple[Ints, Floats]:
        """Strata that serve every pair of the judges, and their spreads."""
        names = list(self.verdicts)
        return draw_strata(self._pairs, self.outlook(names[0], names[-1])[0].shares)

    def draws(self) -> list[Stratum]:
        """The same, as `gold sheet` draws from them."""
        (codes, spreads), differ = self.strata, np.any([pair.differ for pair in self._pairs], axis=0)
        strata = []
        for number, spread in enumerate(spreads.tolist()):
            at = np.flatnonzero(codes == number)
            name = f"they {'differ' if differ[at].any() else 'agree'}, {number + 1}"
            strata.append(Stratum(name, tuple(self.items[place] for place in at.tolist()), spread))
        return strata

    def write(self, folder: Path) -> None:
        """Keep the rows with their strata, so that `gold sheet` can draw from them."""
        write_json_lines(folder / ROWS, [item_row(item) for item in self.items])
        (folder / ROWS).chmod(0o600)  # texts of production, as in the journal
        strata = [[of.name, [item.item_id for item in of.items], of.spread] for of in self.draws()]
        about = {"schema": SCHEMA, "where": self.title, "strata": strata}
        write_text(folder / _ABOUT, json.dumps(about) + "\n")

    def labelled(self, gold: GoldSet) -> DrawnLabels:
        """The labels of rows that a drawn set has, with their chances.

        Of a stratum that is labelled in part, that part counts as drawn: sheets show a draw in random order.
        """
        place = {(item.item_id, item.sha): at for at, item in enumerate(self.items)}
        chance = {item.item_id: item.inclusion_probability or 0.0 for item in gold.items}
        done = [item for item in gold.items if item.item_id in gold.labels]
        lost, n_rows = [item.item_id for item in done if (item.item_id, item.sha) not in place], 0.0
        problems = []
        if not done or not all(chance.values()):
            n = sum(chance[item.item_id] > 0.0 for item in done)
            problems.append(
                f"gold set {gold.name}: labels that decide are of rows drawn with a recorded chance "
                f"(inclusion_probability), and {n} of its {len(gold.items)} items have both: import "
                "the filled sheet of judgecal gold sheet EXPERIMENT --strata disagreement"
            )
        else:  # each row had a chance: those drawn stand for all
            n_rows = sum(1.0 / one for one in chance.values())
        if lost:
            problems.append(
                f"gold set {gold.name}: {len(lost)} of its labelled items are none of these rows "
                f"({listed(lost)}): name the table that they were drawn from with --on"
            )
        elif n_rows and abs(n_rows - len(self.items)) > 0.5:
            problems.append(
                f"gold set {gold.name} was drawn from {n_rows:,.0f} rows, and these are {len(self.items):,}: "
                "name the table that it was drawn from with --on, as it was then"
            )
        if str(gold.scale) != str(self.gold.scale):
            problems.append(
                f"gold set {gold.name} is on {gold.scale}, the judges' people on {self.gold.scale}"
            )
        if self.trained & {item.group for item in gold.items}:
            problems.append(f"gold set {gold.name}: a judge was trained on some of it, so it is not fresh")
        refuse(problems)
        of, here = Counter(chance.values()), Counter(chance[item.item_id] for item in done)
        chances = [one * here[one] / of[one] for one in (chance[item.item_id] for item in done)]
        at = np.array([place[item.item_id, item.sha] for item in done], dtype=np.int64)
        return DrawnLabels(at, self._numbers([gold.labels[item.item_id] for item in done]), np.array(chances))

    def at_level(
        self, experiment: Experiment, gold: GoldSet | None, *, shared_by: int = 1, level: float = 0.95
    ) -> dict[str, Any]:
        """The labels of a drawn set, and the level left for each claim of this decision, which is logged.

        What two commands ask of one draw are two decisions.
        """
        look, left = Look(1, new=True), dict[str, Any]()
        if gold is not None:
            drawn, done = self.labelled(gold), [item for item in gold.items if item.item_id in gold.labels]
            by = f"{experiment.config['command']} where judges differ by {self.metric}"
            shas, judges = [item.sha for item in self.items], dict[str, str]()
            for name, said in self.verdicts.items():
                judges[name] = digest(sorted(zip(shas, map(str, said), strict=True)))[:16]
            how: dict[str, Any] = {"experiment": experiment.slug, "kind": DRAW, "by": by, "judges": judges}
            look = look_at_test(experiment.folder.parent, gold, done, **how)
            seen = look.sentence(gold.name, level, labels="drawn labels")
            left = {"drawn": drawn, "look": seen, "labels": gold}
        return {**left, "level": 1.0 - (1.0 - look.level_within(level)) / shared_by}

    def decide(
        self,
        reference: str,
        candidate: str,
        *,
        margin: float,
        level: float,
        drawn: DrawnLabels | None = None,
        look: str | None = None,
        labels: GoldSet | None = None,
        tell: bool = False,
    ) -> OnRows:
        """Whether the candidate is shown to lose less than the margin, by any labels or by those drawn.

        With `tell` it is about who is better, decided where one is, or where neither can be by the margin:
        labels are planned to find a difference of the margin.
        """
        two, (outlook, classes) = self.pair(reference, candidate), self.outlook(reference, candidate)
        one_sided = (1.0 + level) / 2.0 if tell else level
        worst = worst_loss(two, classes, level=one_sided)
        bounds = [worst, worst_loss(self.pair(candidate, reference), classes, level=one_sided)][: 1 + tell]
        differ = Differ(two.n, len(np.unique(two.groups)), two.share_differing(level=level), worst)
        n_all = two.n + self.n_left_out
        differ = dataclasses.replace(differ, share=dataclasses.replace(differ.share, n_expected=n_all))
        on = None if drawn is None else loss_on_labels(two, drawn, level=level)
        strata, spreads = self.strata
        sizes = np.bincount(strata).tolist()
        planned = dataclasses.replace(outlook, loss=0.0) if tell else outlook
        needed = partial(labels_needed, two, planned, margin=margin, level=one_sided)
        where_differ = needed(
            strata=strata, sizes=lambda n: allocate(sizes, spreads.tolist(), n, at_large=0.0)
        )
        at_random = needed(strata=np.zeros_like(strata), sizes=lambda n: [n])
        decided: tuple[Literal["rows", "labels"] | None, Literal["pass", "fail"] | None] = (None, None)
        if on is not None and on.upper is not None and on.loss.low is not None and on.loss.high is not None:
            low, high = on.loss.low, on.loss.high
            if low > (0.0 if tell else margin):
                decided = "labels", "fail"
            elif (high < 0.0 or max(high, -low) < margin) if tell else on.upper < margin:
                decided = "labels", "pass"
        if decided[0] is None and all(
            b is not None and b.high is not None and b.high < margin for b in bounds
        ):
            decided = "rows", "pass"
        rows = OnRows(
            reference=reference,
            candidate=candidate,
            differ=differ,
            loss=None if on is None else on.loss,
            loss_below=None if on is None else on.upper,
            n_labels=0 if drawn is None else len(drawn.at),
            labels_needed=where_differ,
            labels_at_random=at_random,
            decided_by=decided[0],
            decision=decided[1],
            why="",
            look=look,
            labels=None if labels is None else labels.name,
            n_tied=0 if labels is None else len(labels.tied),
            n_waiting=0 if labels is None else len(labels.items) - len({of.item_id for of in labels.ratings}),
        )
        return dataclasses.replace(rows, why=self._why(rows, margin, tell=tell))

    def _why(self, on: OnRows, margin: float, *, tell: bool) -> str:
        """What the rows and their labels come to, and how many labels go on, in a sentence."""
        n_rows, n = on.differ.n, round((on.differ.share.value or 0.0) * on.differ.n)
        out = f" ({self.n_left_out:,} rows left out)" * bool(self.n_left_out)
        why = f"they differ on {n:,} of {n_rows:,} rows ({100.0 * n / n_rows:.1f}%){out}"

        def amount(loss: float | None) -> str:
            return amount_of(max(loss or 0.0, 0.0), self.metric, str(self.gold.scale))

        allowed, loss, worst = f", and we allow {amount(margin)}" * (not tell), on.loss, on.differ.worst_loss
        if loss is not None and (loss.low is None or loss.high is None):
            why += f"; the labels do not tell: {loss.reason}"
        elif loss is not None and tell:
            value, low, high = (100.0 * (end or 0.0) for end in (loss.value, loss.low, loss.high))
            why += f"; on {on.n_labels:,} labels {on.reference} leads by {value:+.1f} points"
            why += f" ({low:+.1f} to {high:+.1f})"
        elif loss is not None:
            end = f"least {amount(loss.low)}" if on.decision == "fail" else f"most {amount(on.loss_below)}"
            why += f"; on {on.n_labels:,} labels {on.candidate} loses at {end}{allowed}"
        if on.decided_by == "rows" and worst is not None:
            sure = self.gold.card.sampling == "random" or self.metric not in MACRO
            mix = "" if sure else "if good and bad answers are as common as in the gold set, "
            why += f": {mix}whatever people say of these, {on.candidate} loses at most {amount(worst.high)}"
            return why + allowed
        if on.decision is not None or on.more is None:
            return why if on.decision or tell else f"{why}; labels of all of them would hardly settle it"
        would = f"would show a gap of {amount(margin)}" if tell else "would settle it"
        at_random = None if on.n_labels else on.labels_at_random
        more = f"{on.more:,}{' more' * bool(on.n_labels)} labels, mostly on those, {would}"
        return f"{why}; about {more}" + (f" ({at_random:,} at random)" if at_random else "")


def in_table(table: TableRows, judges: Iterable[str]) -> bool:
    """Whether a table holds the verdicts of all judges, each in a column of its name: nobody is called."""
    return set(judges) <= set(table.source.columns)


def rows_due(table: TableRows, judges: Sequence[Judge]) -> list[JudgedItems]:
    """The rows that hold what all judges ask for, as each is shown them; none where the table holds their
    verdicts."""
    if in_table(table, [judge.name for judge in judges]):
        return []

    def takes(row: ReadRow) -> bool:
        return all(row.lacking(judge) is None for judge in judges)

    return [JudgedItems(judge, table, takes) for judge in judges]


def judgements_of_rows(
    table: TableRows, judges: Mapping[str, RowJudge], journal: Journal
) -> Iterator[tuple[int, ReadRow, list[Judgement] | None]]:
    """Each row with its line and what every judge said of it; None where it lacks what a judge asks for."""
    recorded = in_table(table, judges)
    for row in (row for piece in table.source.pieces(table.limit) for row in piece.rows):
        read, said = table.reader.read(row), list[Judgement]()
        if not recorded and any(of.judge and read.lacking(of.judge) for of in judges.values()):
            yield row.line, read, None
            continue
        for name, of in judges.items():
            if not recorded and of.judge is not None:
                said.append(judgement_of(journal, of.judge, read.shown(of.judge)))
                continue
            cell = str(row.cells.get(name, "")).strip()
            try:
                verdict = of.scale.read(cell) if cell else None
            except (ValueError, OverflowError) as error:
                raise InputError(f"{table.source.where}:{row.line}: column {name}: {error}") from None
            said.append(Judgement(read.item.item_id, read.item.sha, name, "table", 0, verdict))
        yield row.line, read, said


@dataclass(frozen=True, slots=True)
class JudgedTable:
    """A table without labels, and how the judges of an experiment are called for its rows."""

    table: TableRows
    judges: Mapping[str, Judge]  # of those that can be called
    options: RunOptions

    @classmethod
    def of(
        cls,
        stored: StoredExperiment,
        path: Path,
        columns: Columns,
        options: RunOptions,
        *,
        names: Sequence[str],
        workspace: Workspace,
    ) -> JudgedTable:
        """A file for some judges of an experiment; refused where one can neither be called nor read there."""
        judges, source = dict[str, Judge](), open_source(path)
        lacking = [name for name in names if name not in source.columns]
        for name in names if lacking else ():
            if stored.column(name).kind == "recorded":
                raise InputError(
                    f"{path}: {name} was recorded, so we cannot call it: give its verdicts in a column "
                    f"named {name}, and those of each other judge ({listed(lacking)})"
                )
            judges[name] = stored.asked_as(judge_named(name, workspace=workspace))
        reader = RowReader.of(columns, source, *judges.values())
        reader.check(source)
        return cls(TableRows(source, reader, options.limit), judges, options)

    def config(self, workspace: Workspace) -> dict[str, str]:
        """What the configuration of an experiment says of it."""
        return input_config(workspace, self.table.source, self.table.reader)

    def plan(self, journal: Path) -> CostEstimate:
        """What a run would call."""
        stored = stored_rows(journal, long=True)
        due = rows_due(self.table, list(self.judges.values()))
        return together([plan_calls([one.judge], one, stored, self.options) for one in due])

    def judge(self, experiment: Experiment) -> Journal:
        """Call whoever is due; gives the journal."""
        budget = Budget(self.options.budget_usd)
        with open_journal(experiment.journal, self.options, long=True) as journal:
            for one in rows_due(self.table, list(self.judges.values())):
                judge_to_journal([Due(one.judge, one, journal, self.options)], budget=budget)
            return journal


def kept_rows(folder: Path) -> tuple[list[Stratum], str] | None:
    """The strata of the rows that an experiment kept, and what they are; None where it kept none."""
    if not (folder / ROWS).is_file():
        return None
    about, items = read_json(folder / _ABOUT, absent="is not there"), read_items(folder / ROWS)
    of = {item.item_id: item for item in items}
    strata = [Stratum(name, tuple(of[one] for one in ids), spread) for name, ids, spread in about["strata"]]
    return strata, about["where"]
