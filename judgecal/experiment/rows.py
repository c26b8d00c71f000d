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
from judgecal.engine import Journal
from judgecal.errors import InputError, listed
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
from judgecal.records import Estimate, Item, Judgement, digest
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

    @property
    def more(self) -> int | None:
        """Labels beside those that there are; None where it is decided, or where none would do."""
        if self.decision is not None or self.labels_needed is None:
            return None
        left = self.labels_needed - self.n_labels
        return max(LEAST_DRAWN, left if left > 0 else self.n_labels // 2)  # as planned, or half as many again


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

    @classmethod
    def of(
        cls,
        gold: GoldSet,
        metric: str,
        judges: Mapping[str, RowJudge],
        known: tuple[Sequence[Item], Mapping[str, Verdicts]],
        rows: Iterable[tuple[Item, Verdicts]],
        *,
        where: str,
    ) -> JudgedRows | None:
        """From raw verdicts, each text once; None where the metric is no mean over answers, or too little is
        known."""
        if not by_rows(metric, gold.scale) or gold.n_groups(known[0]) < MIN_GROUPS:
            return None
        items, said = dict[str, Item](), list[Verdicts]()
        for item, verdicts in rows:
            first = items.setdefault(item.item_id, item)
            if first is not item and first.sha != item.sha:
                raise InputError(f"{where}: other texts have one id, {item.item_id!r}: leave --item out")
            said += [verdicts] if first is item else []
        by_judge = zip(judges.items(), zip(*said, strict=True), strict=True) if said else ()
        mapped = {name: of.mapped(column) for (name, of), column in by_judge}
        of_known = {name: of.mapped(known[1][name]) for name, of in judges.items()}
        if not said:
            return None
        return cls(gold, metric, tuple(items.values()), mapped, tuple(known[0]), of_known, where)

    @classmethod
    def of_experiment(
        cls,
        stored: StoredExperiment,
        columns: Sequence[JudgeColumn],
        metric: str,
        called: Mapping[str, Judge],
        *,
        table: TableRows | None,
        journal: Journal,
    ) -> JudgedRows | None:
        """From the judges of an experiment, their maps fitted on its open items: of a table that they have
        judged (`called`) or that holds their verdicts, else of the set's items without a label."""
        gold = stored.gold
        known = tuple(item for item in stored.items if item.item_id not in gold.test_ids)
        on, judges, on_known = dataclasses.replace(stored.table, items=known), dict[str, RowJudge](), {}
        for column in columns:
            by = on.calibration(column, fitted_on="") if known and metric_facts(metric).calibrated else None
            judges[column.judge] = RowJudge(called.get(column.judge), column.scale, by)
            on_known[column.judge] = [row[0] for row in on.verdicts(column)]
        rows: Iterable[tuple[Item, Verdicts]]
        if table is not None:
            of_table, where = judgements_of_rows(table, judges, journal), table.source.path.name
            rows = (
                (row.item, [one.verdict for one in said]) for _, row, said in of_table if said is not None
            )
        else:
            of = [{row.item_id: row.verdict for row in column.rows if row.repeat == 0} for column in columns]
            shared = set(of[0]).intersection(*of[1:]) - gold.labels.keys()
            left, where = [item for item in gold.items if item.item_id in shared], f"gold set {gold.name}"
            rows = ((item, [verdicts[item.item_id] for verdicts in of]) for item in left)
        return cls.of(gold, metric, judges, (known, on_known), rows, where=where)

    @property
    def scale(self) -> Scale:
        return self.gold.scale

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
        return TwoJudges(a, b, self._groups, self.scale, self.metric)

    def outlook(self, reference: str, candidate: str) -> tuple[Outlook, KnownClasses]:
        """What the labelled items let expect, and the mix of their labels."""
        labels, groups = self._numbers(self._labels), [item.group for item in self.known]
        a, b = (self._numbers(self.of_known[name]) for name in (reference, candidate))
        two = TwoJudges(a, b, codes_of(groups, len(labels)), self.scale, self.metric)
        return Outlook.of(two, labels), KnownClasses(two.class_of(labels), two.groups)

    @cached_property
    def strata(self) -> tuple[Ints, Floats]:
        """Strata that serve every pair of the judges, and their spreads."""
        names = list(self.verdicts)
        shares = self.outlook(names[0], names[-1])[0].shares
        pairs = [self.pair(a, b) for a, b in itertools.combinations(names, 2)]
        return draw_strata(pairs, shares)

    def write(self, folder: Path) -> None:
        """Keep the rows with their strata, so that `gold sheet` can draw from them."""
        strata, spreads = self.strata
        write_json_lines(folder / ROWS, [item_row(item) for item in self.items])
        (folder / ROWS).chmod(0o600)  # texts of production, as in the journal
        about = {"schema": SCHEMA, "judges": list(self.verdicts), "where": self.where}
        differ = np.any([self.pair(a, b).differ for a, b in itertools.combinations(self.verdicts, 2)], axis=0)
        kinds = np.bincount(strata, differ) > 0
        names = [f"they {'differ' if of else 'agree'}, {at}" for at, of in enumerate(kinds.tolist(), 1)]
        numbers = {"strata": strata.tolist(), "spreads": spreads.tolist(), "names": names}
        write_text(folder / _ABOUT, json.dumps({**about, **numbers}) + "\n")

    def labelled(self, gold: GoldSet, trained: frozenset[str] = frozenset()) -> DrawnLabels:
        """The labels of rows that a drawn set has, with their chances.

        Of a stratum that is labelled in part, that part counts as drawn: sheets show a draw in random order.
        """
        place = {item.item_id: at for at, item in enumerate(self.items)}
        drawn = [item for item in gold.items if item.inclusion_probability is not None]
        done = [item for item in drawn if item.item_id in gold.labels]
        lost = [item.item_id for item in done if item.item_id not in place]
        problems = []
        if not done or len(drawn) < len(gold.items):
            problems.append(
                f"gold set {gold.name}: labels that decide are of rows drawn with a recorded chance "
                f"(inclusion_probability), and {len(done)} of its {len(gold.items)} items have both: import "
                "the filled sheet of judgecal gold sheet EXPERIMENT --strata disagreement"
            )
        if lost:
            problems.append(
                f"gold set {gold.name}: {len(lost)} of its labelled items are none of these rows "
                f"({listed(lost)}): name the table that they were drawn from with --on"
            )
        if str(gold.scale) != str(self.scale):
            problems.append(f"gold set {gold.name} is on {gold.scale}, the judges' people on {self.scale}")
        if trained & {item.group for item in gold.items}:
            problems.append(f"gold set {gold.name}: a judge was trained on some of it, so it is not fresh")
        if problems:
            raise InputError(problems)
        of, here = (Counter(item.inclusion_probability or 0.0 for item in some) for some in (drawn, done))
        each = [item.inclusion_probability or 0.0 for item in done]
        chances = [chance * here[chance] / of[chance] for chance in each]
        at = np.array([place[item.item_id] for item in done], dtype=np.int64)
        return DrawnLabels(at, self._numbers([gold.labels[item.item_id] for item in done]), np.array(chances))

    def look(self, experiments: Path, gold: GoldSet, experiment: Experiment) -> Look:
        """Which decision on a draw this is, written down; what two commands ask of one draw are two."""
        items = [item for item in gold.items if item.item_id in gold.labels]
        judges = {name: digest([name, *map(str, said)])[:16] for name, said in self.verdicts.items()}
        by = f"{experiment.config['command']} where judges differ by {self.metric}"
        how: dict[str, Any] = {"experiment": experiment.slug, "kind": DRAW, "by": by, "judges": judges}
        return look_at_test(experiments, gold, items, **how)

    def at_level(
        self, experiment: Experiment, gold: GoldSet | None, trained: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        """The labels of a drawn set, and the level that is left for this decision on them, written down."""
        if gold is None:
            return {"level": Look(1, new=True).level}
        drawn, look = self.labelled(gold, trained), self.look(experiment.folder.parent, gold, experiment)
        seen = look.sentence(gold.name, labels="drawn labels")
        return {"drawn": drawn, "level": look.level, "look": seen, "labels": gold.name}

    def decide(
        self,
        reference: str,
        candidate: str,
        *,
        margin: float,
        level: float,
        drawn: DrawnLabels | None = None,
        look: str | None = None,
        labels: str | None = None,
        tell: bool = False,
    ) -> OnRows:
        """Whether the candidate is shown to lose less than the margin, by any labels or by those drawn.

        With `tell` it is about who is better: labels are planned to find a difference of the margin.
        """
        two, (outlook, classes) = self.pair(reference, candidate), self.outlook(reference, candidate)
        worst = worst_loss(two, classes, level=level)
        groups = len(np.unique(two.groups))
        differ = Differ(two.n, groups, two.share_differing(level=level), worst)
        on = None if drawn is None else loss_on_labels(two, drawn, level=level)
        strata, spreads = self.strata
        sizes = np.bincount(strata).tolist()
        plan_at = level
        if tell:
            outlook, plan_at = dataclasses.replace(outlook, loss=0.0), (1.0 + level) / 2.0
        needed = partial(labels_needed, two, outlook, margin=margin, level=plan_at)
        where_differ = needed(
            strata=strata, sizes=lambda n: allocate(sizes, spreads.tolist(), n, at_large=0.0)
        )
        at_random = needed(strata=np.zeros_like(strata), sizes=lambda n: [n])
        decided: tuple[Literal["rows", "labels"] | None, Literal["pass", "fail"] | None] = (None, None)
        if on is not None and on.upper is not None and on.upper < margin:
            decided = "labels", "pass"
        elif on is not None and (on.loss.low or 0.0) > margin:
            decided = "labels", "fail"
        elif worst is not None and worst.high is not None and worst.high < margin:
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
            labels=labels,
        )
        return dataclasses.replace(rows, why=self._why(rows, margin, tell=tell))

    def _why(self, on: OnRows, margin: float, *, tell: bool) -> str:
        """What the rows and their labels come to, and how many labels go on, in a sentence."""
        scale, n = str(self.scale), round((on.differ.share.value or 0.0) * on.differ.n)
        why = f"they differ on {n:,} of {on.differ.n:,} answers ({100.0 * n / on.differ.n:.1f}%)"

        def amount(loss: float) -> str:
            return amount_of(max(loss, 0.0), self.metric, scale)

        allowed, loss, worst = f"we allow {amount(margin)}", on.loss, on.differ.worst_loss
        if loss is not None and (loss.low is None or loss.high is None or on.loss_below is None):
            why += f"; the labels do not tell: {loss.reason}"
        elif loss is not None and tell:
            value, low, high = (100.0 * (end or 0.0) for end in (loss.value, loss.low, loss.high))
            why += f"; on {on.n_labels:,} labels {on.reference} leads by {value:+.1f} points"
            why += f" ({low:+.1f} to {high:+.1f})"
        elif loss is not None:
            fails, least, most = on.decision == "fail", amount(loss.low or 0.0), amount(on.loss_below or 0.0)
            end = f"at least {least}" if fails else f"at most {most}"
            why += f"; on {on.n_labels:,} labels {on.candidate} loses {end}, and {allowed}"
        if on.decided_by == "rows" and worst is not None:
            sure = self.gold.card.sampling == "random" or self.metric not in MACRO
            mix = "" if sure else "if good and bad answers are as common as in the gold set, "
            at_most = f"{on.candidate} loses at most {amount(worst.high or 0.0)}"
            return f"{why}: {mix}whatever people say of these, {at_most}{'' if tell else f', and {allowed}'}"
        if on.decision is not None or on.more is None:
            return why if on.decision or tell else f"{why}; labels of all of them would hardly settle it"
        would = f"would show a gap of {amount(margin)}" if tell else "would settle it"
        random = on.labels_at_random if not on.n_labels else None
        instead = "" if random is None else f" ({random:,} at random)"
        more = f"{on.more:,}{' more' * bool(on.n_labels)} labels"
        return f"{why}; about {more}, mostly on those, {would}{instead}"


def sheet_command(experiment: str, on_rows: Sequence[OnRows]) -> str | None:
    """The command that writes the sheet for all that is open; None where labels settle nothing."""
    wanted = [more for on in on_rows if (more := on.more) is not None]
    if not wanted:
        return None
    known = next((on.labels for on in on_rows if on.labels), None)
    n = on_rows[0].n_labels + max(wanted)
    extends, to = ("", "labels") if known is None else (f" --labels {known}", f"{known}-{n}")
    return f"judgecal gold sheet {experiment} --strata disagreement -n {max(wanted)}{extends} -o {to}.csv"


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
    for piece in table.source.pieces(table.limit):
        for row in piece.rows:
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
            judges[name] = judge_named(name, workspace=workspace)
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
        budget = self.options.open_budget(experiment.folder)
        with open_journal(experiment.journal, self.options, long=True) as journal:
            for one in rows_due(self.table, list(self.judges.values())):
                judge_to_journal([Due(one.judge, one, journal, self.options)], budget=budget)
            return journal


def rows_of(
    stored: StoredExperiment,
    columns: Sequence[JudgeColumn],
    metric: str,
    on: JudgedTable | None,
    experiment: Experiment,
) -> JudgedRows | None:
    """The rows of `--on`, judged and kept in an experiment, else the set's judged items without a label."""
    journal = Journal(None) if on is None else on.judge(experiment)
    table, called = (None, {}) if on is None else (on.table, on.judges)
    rows = JudgedRows.of_experiment(stored, columns, metric, called, table=table, journal=journal)
    if rows is not None:
        rows.write(experiment.folder)
    return rows


def drawn_from(folder: Path) -> tuple[list[Stratum], str] | None:
    """The strata of the rows that an experiment kept, and what they are; None where it kept none."""
    if not (folder / ROWS).is_file():
        return None
    about, items = read_json(folder / _ABOUT, absent="is not there"), read_items(folder / ROWS)
    strata, spreads = np.array(about["strata"]), about["spreads"]
    names = about["names"]
    parts = [np.flatnonzero(strata == number).tolist() for number in range(len(spreads))]
    return [
        Stratum(name, tuple(items[at] for at in places), spread)
        for name, places, spread in zip(names, parts, spreads, strict=True)
    ], f"{about['where']} where {', '.join(about['judges'])} differ"
