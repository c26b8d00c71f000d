"""The judges of a run on a table: loaded, put to the columns that they fill, and what goes into these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from judgecal.engine.calls import ParsedReply
from judgecal.engine.log import Journal
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError, refuse
from judgecal.experiment.judgements import item_scale, whole_item
from judgecal.experiment.table_rows import JudgedItems, ReadRow, judgement_of
from judgecal.experiment.trials import Due
from judgecal.judges import judge_named
from judgecal.judges.protocol import Judge, JudgeName, decides_itself, units_of
from judgecal.judges.suite import Aggregate, Suite, SuiteJudge
from judgecal.records import Judgement
from judgecal.scale import Label
from judgecal.selection.lock import Lock, load_lock
from judgecal.selection.pass_rates import PassRule
from judgecal.signatures import CHUNK
from judgecal.workspace import Workspace

Naming = Literal["plain", "mosaic", "mlflow"]
NAMINGS: tuple[Naming, ...] = ("plain", "mosaic", "mlflow")
"""What `--columns` takes."""
INPUT = "input"
"""The kind of the error of a row that lacks what the judge asks for; it is never called for."""

_LOCKS = "locks"  # the name of a suite that is a list of locks
_WORDS = {True: "yes", False: "no"}
# The part of a verdict -> the column that it fills; {column} is the suite's, {name} the judge's.
_PARTS: Mapping[Naming, Mapping[str, str]] = {
    "plain": {
        "verdict": "{name}_verdict",
        "passed": "{name}_passed",
        "reasoning": "{name}_reasoning",
        "error": "{name}_error",
    },
    "mosaic": {
        "rating": "{column}/rating",
        "reasoning": "{column}/rationale",
        "error": "{column}/error_message",
    },
    "mlflow": {
        "rating": "{name}/value",
        "reasoning": "{name}/rationale",
        "error": "{name}/error_message",
        "error_code": "{name}/error_code",
    },
}
# The column of an item's share: of its chunks that pass, or its verdict's place on its scale.
_SHARES: Mapping[tuple[Naming, Aggregate], str] = {
    ("plain", "precision"): "{name}_precision",
    ("plain", "share"): "{name}_share",
    ("mosaic", "precision"): "{column}/precision",
    ("mosaic", "share"): "{column}",
    ("mlflow", "precision"): "{name}/precision/value",
    ("mlflow", "share"): "{name}/value",
}
# Who gave a value, in MLflow's words: columns of ours, by which `gold import --from mlflow` knows the judge.
_SOURCE = {"source_type": "{name}/source_type", "source_id": "{name}/source_id"}
# Beside verdicts of judges that call a model or have a lock, under plain names.
_OF_CALL = {"model_id": "{name}_model_id", "cost_usd": "{name}_cost_usd", "latency_s": "{name}_latency_s"}


class RowReply(NamedTuple):
    """What a judge replied on an item or on one chunk; `error` is `kind: message` without a verdict."""

    verdict: Label | None
    reasoning: str = ""
    error: str | None = None
    row: Judgement | None = None  # None where the judge was not asked

    @classmethod
    def of(cls, row: Judgement) -> RowReply:
        """Return the RowReply of a Judgement."""
        if row.verdict is not None:
            return cls(row.verdict, row.reasoning, row=row)
        kind, message = (row.error.kind, row.error.message) if row.error else ("parse", "")
        return cls(None, row.reasoning, f"{kind}: {message}", row)

    @property
    def error_kind(self) -> str:
        """The kind of the failure; empty where there is a verdict."""
        return (self.error or "").partition(":")[0]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A judge of the suite that judged nothing, and why."""

    name: str
    judge: str
    why: str


@dataclass(frozen=True, slots=True)
class LoadedJudge:
    """A judge of a run: its name in the suite, and which of its verdicts on whole items pass."""

    name: str
    judge: Judge
    rule: PassRule
    lock: Lock | None = None
    lock_path: str | None = None

    @classmethod
    def locked(cls, name: str | None, path: Path, workspace: Workspace, *, trust_lock: bool) -> LoadedJudge:
        """Return the LoadedJudge of a name or None, a lock's path, a Workspace and trust_lock (bool)."""
        lock = load_lock(path)
        judge = lock.runnable(workspace, trust_lock=trust_lock)
        rule = PassRule.for_scale(lock.gold, item_scale(judge), lock.calibration)
        return cls(name or lock.judge, judge, rule, lock, str(path))

    @property
    def unit_rule(self) -> PassRule:
        """The rule for a verdict on one chunk, which the lock's map, one of whole items, is not for."""
        if self.lock is None or self.judge.unit != CHUNK:
            return self.rule
        return PassRule.for_scale(self.lock.gold, self.judge.scale)

    def label(self, verdict: Label | None) -> Label | None:
        """Return a verdict as a Label on the people's scale where the lock has a map to it, else as it is."""
        mapped = self.rule.calibrated(verdict) if self.judge.unit != CHUNK else None
        return verdict if mapped is None else mapped

    def replies(self, row: ReadRow, journal: Journal, *, whole: bool) -> list[RowReply]:
        """From a ReadRow, a Journal and `whole` (bool), list the RowReplies: whole, or by context.

        `whole`: of the item whatever its unit.
        """
        item = row.shown(self.judge)
        if whole or self.judge.unit != CHUNK:
            return [RowReply.of(judgement_of(journal, self.judge, item))]
        units = (name for name, *_ in units_of(self.judge, item))
        return [
            RowReply.of(judgement_of(journal, self.judge, item, unit=next(units)))
            if context in item.contexts
            else RowReply(None, error=f"{INPUT}: the chunk has no text")
            for context in row.item.contexts
        ]


@dataclass(frozen=True, slots=True)
class SuiteColumn:
    """One place in the table and the judges that fill it, who stand in for each other; named as the first of
    them. `alone`: the one judge of a lock, of whole items, in columns named as the parts of its verdict.
    """

    column: str
    aggregate: Aggregate
    judges: tuple[LoadedJudge, ...]
    alone: bool = False

    @classmethod
    def of_lock(cls, path: Path, workspace: Workspace, *, trust_lock: bool) -> SuiteColumn:
        judge = LoadedJudge.locked(None, path, workspace, trust_lock=trust_lock)
        return cls(judge.name, "rating", (judge,), alone=True)

    @property
    def name(self) -> str:
        return self.judges[0].name

    @property
    def calibrates(self) -> bool:
        """Whether locks bring all its verdicts to the people's scale, by a map or because both sides say yes
        or no.
        """
        return self.aggregate != "precision" and all(
            judge.lock is not None and judge.rule.calibrated(judge.judge.scale.low) is not None
            for judge in self.judges
        )

    @property
    def rated(self) -> bool:
        """Whether its ratings are yes and no: its verdicts pass or fail."""
        return all(judge.rule.mark is not None for judge in self.judges)

    def problems(self) -> list[str]:
        """Return a list of reasons why the judges cannot fill this place together."""
        units = {judge.judge.unit for judge in self.judges}
        kinds = {str(judge.judge.scale) for judge in self.judges}
        names = ", ".join(judge.name for judge in self.judges)
        problems = []
        if len(units) > 1 or len(kinds) > 1:
            problems.append(
                f"{names} fill one column, and differ in unit or scale ({', '.join(sorted(units | kinds))})"
            )
        if (self.aggregate == "precision") != ("chunk" in units):
            problems.append(
                f"{names}: aggregate {self.aggregate!r} fits no judge of {' and '.join(sorted(units))}"
            )
        if self.aggregate == "share" and "nominal" in kinds:
            problems.append(f"{names}: aggregate 'share' needs numbers, and its verdicts are words")
        return problems

    # --- which judge judges a row

    def judge_of(self, row: ReadRow) -> tuple[LoadedJudge, str | None]:
        """From a ReadRow, return (LoadedJudge, lacking text or None): the first judge that can take it."""
        first = self.judges[0]
        lacking = row.lacking(first.judge)
        if lacking is None:
            return first, None
        able = next((judge for judge in self.judges[1:] if row.lacking(judge.judge) is None), None)
        return (first, lacking) if able is None else (able, None)

    def trials(self, rows: Iterable[ReadRow], journal: Journal, options: RunOptions) -> list[Due]:
        """Return a list of Due, calls by judge, for ReadRows, less those in a Journal, by RunOptions."""

        def trial(judge: LoadedJudge) -> Due:
            def takes(row: ReadRow) -> bool:
                chosen, lacking = self.judge_of(row)
                return chosen is judge and lacking is None

            return Due(judge.judge, JudgedItems(judge.judge, rows, takes), journal, options)

        return [trial(judge) for judge in self.judges]

    # --- what goes into its columns

    def columns(self, naming: Naming) -> dict[str, str]:
        """Return part of a result -> its column's name, in order, by a Naming."""
        parts = _PARTS[naming]
        if self.aggregate == "precision":
            parts = {part: f"{name}s" for part, name in parts.items() if part != "passed"}
            parts["share"] = _SHARES[naming, self.aggregate]
        elif self.aggregate == "share":
            errors = {part: name for part, name in parts.items() if part.startswith("error")}
            parts = {"share": _SHARES[naming, self.aggregate], **errors}
        if naming == "mlflow":
            parts = {**parts, **_SOURCE}
        if naming == "plain" and any(judge.lock is not None for judge in self.judges):
            parts = {**parts, "calibrated": "{name}_calibrated", **_OF_CALL}
        elif naming == "plain" and any(judge.judge.model is not None for judge in self.judges):
            parts = {**parts, **_OF_CALL}
        return {part: self._filled(name) for part, name in parts.items()}

    def _filled(self, name: str) -> str:
        if self.alone:
            return name.removeprefix("{name}_")
        return name.replace("{column}", self.column).replace("{name}", self.name)

    def dtype(self, part: str) -> type:
        """Return the Python type of the values in the column of a part so named, as polars takes it."""
        if part in ("share", "calibrated", "cost_usd", "latency_s"):
            return float
        if part == "passed":
            return bool
        if part == "model_id" or part in _SOURCE:
            return str
        words = (part != "verdict" and part != "rating") or not self.judges[0].judge.scale.numeric
        text = words or (part == "rating" and self.rated)
        if self.aggregate == "precision":
            return list[str] if text else list[float]
        return str if text else float

    def share(self, judge: LoadedJudge, replies: Iterable[RowReply], *, raw: bool = False) -> float | None:
        """Return an item's share, 0..1, by the replies to a LoadedJudge: of passing chunks, or its scale.

        `raw`: before the lock's map.
        """
        verdicts = [reply.verdict for reply in replies if reply.verdict is not None]
        if not verdicts:
            return None
        if self.aggregate == "share":
            mapped = None if raw or judge.lock is None else judge.rule.calibrated(verdicts[0])
            label, scale = (verdicts[0], judge.judge.scale) if mapped is None else (mapped, judge.rule.people)
            return (float(label) - scale.low) / scale.span
        flags = (self._rule(judge).passes(verdict, raw=raw) for verdict in verdicts)
        passed = [flag for flag in flags if flag is not None]
        return sum(passed) / len(passed) if passed else None

    def values(self, judge: LoadedJudge, replies: Sequence[RowReply], naming: Naming) -> list[Any]:
        """From a LoadedJudge, RowReplies and a Naming of columns, return the list of cells."""
        rows = [reply.row for reply in replies if reply.row is not None]
        whole = whole_item(rows, judge.judge.scale) if rows else None
        model = judge.judge.model
        of_item = {
            "model_id": whole and whole.model_id,
            "cost_usd": whole and whole.cost_usd,
            "latency_s": whole and whole.latency_s,
            "calibrated": judge.rule.calibrated(whole.verdict) if whole else None,
            "source_type": "CODE" if model is None else "LLM_JUDGE",
            "source_id": judge.judge.name,
        }
        of_units = [self._of_unit(judge, reply) for reply in replies]
        values: list[Any] = []
        for part in self.columns(naming):
            if part == "share":
                values.append(self.share(judge, replies))
            elif part in of_item:
                values.append(of_item[part])
            else:
                cells = [unit[part] for unit in of_units]
                values.append(cells if self.aggregate == "precision" else cells[0])
        return values

    def _rule(self, judge: LoadedJudge) -> PassRule:
        return judge.rule if self.alone else judge.unit_rule

    def _of_unit(self, judge: LoadedJudge, reply: RowReply) -> dict[str, Any]:
        """The parts of what was said of an item or of one chunk."""
        passed = self._rule(judge).passes(reply.verdict)
        return {
            "verdict": reply.verdict,
            "passed": passed,
            "rating": judge.label(reply.verdict) if not self.rated or passed is None else _WORDS[passed],
            "reasoning": reply.reasoning or None,
            "error": reply.error,
            "error_code": reply.error_kind or None,
        }


def locks_as_suite(paths: Sequence[Path]) -> Suite:
    """Read the locks at some paths as a Suite, each judge named as its signature."""
    names: list[str] = []
    for path in paths:
        name = JudgeName.parse(load_lock(path).judge).stem
        names.append(name if name not in names else f"{name}_{len(names) + 1}")
    return Suite(_LOCKS, tuple(SuiteJudge(name, lock=path) for name, path in zip(names, paths, strict=True)))


def load_columns(
    suite: Suite, workspace: Workspace, *, model: str, trust_lock: bool = False
) -> tuple[SuiteColumn, ...]:
    """Load the judges of a Suite from a Workspace as a tuple of SuiteColumns; `model`: for those without."""
    judges_of: dict[str, list[tuple[SuiteJudge, LoadedJudge]]] = {}
    problems: list[str] = []
    for entry in suite.judges:
        try:
            if entry.lock is None:
                unlocked = judge_named(entry.judge_on(model), workspace=workspace)
                scale = unlocked.scale
                mark = 0.5 if scale.kind == "binary" else scale.pass_at
                judge = LoadedJudge(entry.name, unlocked, PassRule(scale, scale, scale, mark))
            else:
                judge = LoadedJudge.locked(entry.name, entry.lock, workspace, trust_lock=trust_lock)
        except InputError as error:
            problems += [f"suite {suite.name}: {entry.name}: {problem}" for problem in error.problems]
            continue
        judges_of.setdefault(entry.column_of(judge.judge.unit), []).append((entry, judge))
    refuse(problems)
    columns = tuple(
        SuiteColumn(name, first.aggregate_of(judge.judge.unit), tuple(judge for _, judge in judges))
        for name, judges in judges_of.items()
        for first, judge in judges[:1]
    )
    refuse([f"suite {suite.name}: {problem}" for column in columns for problem in column.problems()])
    return columns


def survey(
    columns: Sequence[SuiteColumn], rows: Iterable[ReadRow]
) -> tuple[tuple[SuiteColumn, ...], tuple[LeftOut, ...]]:
    """From SuiteColumns and ReadRows, return the columns that can be judged, and the LeftOut with reasons."""
    able: set[str] = set()
    chosen: set[str] = set()
    reasons: dict[str, Counter[str]] = {
        judge.name: Counter() for column in columns for judge in column.judges
    }
    n = 0
    for row in rows:
        n += 1
        for column in columns:
            lacking = {judge.name: _lacking(judge, row, tried=judge.name in able) for judge in column.judges}
            fit = [name for name, why in lacking.items() if why is None]
            able.update(fit)
            chosen.update(fit[:1])
            for name, why in lacking.items():
                reasons[name].update([why] if why else [])

    def why_not(judge: LoadedJudge, column: SuiteColumn) -> str:
        if judge.name in able:
            others = ", ".join(other.name for other in column.judges if other.name != judge.name)
            return f"{others} already judges every row that it could judge, and fills the same column"
        ((reason, times),) = reasons[judge.name].most_common(1)
        return f"{reason} in {times:,} of {n:,} rows"

    running = (
        replace(column, judges=tuple(judge for judge in column.judges if judge.name in chosen))
        for column in columns
    )
    left_out = tuple(
        LeftOut(judge.name, judge.judge.name, why_not(judge, column))
        for column in columns
        for judge in column.judges
        if judge.name not in chosen
    )
    return tuple(column for column in running if column.judges), left_out


def _lacking(loaded: LoadedJudge, row: ReadRow, *, tried: bool) -> str | None:
    """Why a judge cannot judge a row; a rule of ours that reads the whole item is tried, as that is free."""
    judge = loaded.judge
    lacking = row.lacking(judge)
    if lacking is not None or tried or judge.kind != "local" or "item" not in judge.inputs:
        return lacking
    if decides_itself(judge):
        reading = judge.verdict(row.item)
        if isinstance(reading, ParsedReply) and reading.verdict is None:
            return reading.failure.message if reading.failure else "it gave no verdict"
    return None
