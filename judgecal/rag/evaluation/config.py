"""The configuration of `evaluate`: a TOML file.

    schema = 1
    design = "one_at_a_time"             # how the levels under [sweep] are varied; or "grid"

    [questions]
    gold = "starter"                     # or file = "questions.csv"
    split = "open"                       # of a gold set; questions of test are counted and shown nowhere
    limit = 50

    [documents]
    path = "documents.jsonl"             # a table, a folder or a file; left out: those of the gold set

    [judges]
    suite = "rag"
    model = "embedded"                   # of its judges that name none
    repeats = 5                          # of judges that call a model
    locks = { correctness = "judge.lock.json" }   # columns of the suite that a locked judge fills
    local = ["token_f1@local"]           # further columns

    [costs]
    wrong = 1.0
    refusal = 0.0

    [[systems]]
    name = "ours"
    kind = "local"                       # http, python or answers; the other keys are those of this kind
    top_n = 2                            # held where another option changes; by default the first level

    [sweep.ours]                         # the options of `ours` that are varied, with their levels
    "chunk.max" = [128, 256, 512]
    top_n = [1, 2, 3]

A list that does not stand under [sweep] is that option's own value. Paths are taken from the file's folder.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from judgecal.artefacts import read_toml, validated
from judgecal.errors import InputError, refuse, unknown_name
from judgecal.goldset import Document
from judgecal.rag.evaluation.comparisons import Design
from judgecal.rag.evaluation.function import FunctionConfig, FunctionSystem
from judgecal.rag.evaluation.http import HttpConfig, HttpSystem
from judgecal.rag.evaluation.local import LocalConfig, LocalSystem
from judgecal.rag.evaluation.recorded import RecordedConfig, RecordedSystem
from judgecal.rag.evaluation.system import Setting, System
from judgecal.workspace import Workspace, shown

SystemKind = Literal["local", "http", "python", "answers"]
Factors = Mapping[str, Sequence[Setting]]  # dotted path of an option -> its levels, in the order of the file

_CONFIGS: Mapping[SystemKind, type[BaseModel]] = {
    "local": LocalConfig,
    "http": HttpConfig,
    "python": FunctionConfig,
    "answers": RecordedConfig,
}
_HEAD = ("name", "kind")
_MOST = 1000  # systems of one table
_TABLE = ConfigDict(extra="forbid", strict=True)
Cost = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class QuestionsTable(BaseModel):
    """What is asked: a gold set, or a table of questions with reference answers."""

    model_config = _TABLE
    gold: str | None = None  # a set under gold/, or its path; None where there is a file
    split: Literal["open", "train", "dev", "test", "all"] = "open"  # of the set; open is train and dev
    file: str | None = None  # CSV, TSV, JSONL, xlsx or Parquet, with the columns below
    question: str = "question"
    reference: str = "reference_answer"
    separator: str | None = None  # the text between equally right reference answers in one cell
    id: str | None = None  # the column by which a question is known; None for its wording
    documents: str | None = None  # reference documents: an id, or a list of them; None where there is none
    tags: list[str] = []
    limit: Annotated[int, Field(ge=1)] | None = None  # only the first ones


class DocumentsTable(BaseModel):
    """A table (document_id, title, text), a folder of files, or a file; None for the set's own."""

    model_config = _TABLE
    path: str | None = None


class JudgesTable(BaseModel):
    """Who judges the answers.

    The column `correctness` of the suite says how right an answer is, 0..1, and its column `answered` whether
    it is one at all; a suite without the second leaves that to a rule (questions.refuses).
    """

    model_config = _TABLE
    suite: str = "rag"  # a name under suites/, or the path of a TOML file
    model: str = "embedded"  # of its judges that name none
    repeats: Annotated[int, Field(ge=1, le=1000)] = 5
    """Judgements of each answer by a judge that calls a model; one that calls nobody says the same again."""
    locks: dict[str, str] = {}  # column of the suite -> the lock of the judge that fills it
    local: list[str] = []  # further judges; each fills a column that is called as itself
    right_at: Annotated[float, Field(ge=0, le=1)] | None = None
    """Correctness from which an answer is right; None for the pass mark of the lock, else 0.5."""
    trust_lock: bool = False  # run a lock's own signature where the workspace has another


class CostsTable(BaseModel):
    """What a wrong answer and a wrong refusal take away, where a right one gives 1."""

    model_config = _TABLE
    wrong: Cost = 1.0
    refusal: Cost = 0.0


class EvaluateConfig(BaseModel):
    """The whole file; the tables of systems are read by the models of their kinds."""

    model_config = _TABLE
    design: Design | None = None
    questions: QuestionsTable
    documents: DocumentsTable = DocumentsTable()
    judges: JudgesTable = JudgesTable()
    costs: CostsTable = CostsTable()
    systems: list[dict[str, Any]]
    sweep: dict[str, dict[str, Any]] = {}  # name of a system -> option -> levels


class _Head(BaseModel):
    """What every system's table has beside the keys of its kind."""

    model_config = _TABLE
    name: Annotated[str, Field(min_length=1, max_length=100)]
    kind: SystemKind


@dataclass(frozen=True, slots=True)
class Variant:
    """A system's table with one level of each factor."""

    name: str  # `NAME`, in a sweep `NAME(chunk.max=512, top_n=2)`
    settings: Mapping[str, Setting]  # the factors with their values, in the order of the file
    table: Mapping[str, Any]
    is_base: bool = False  # whether the others of its sweep differ from it in one factor


@dataclass(frozen=True, slots=True)
class SystemTable:
    """A table of systems, read: its variants, and the configuration of each."""

    name: str
    kind: SystemKind
    variants: tuple[tuple[Variant, Any], ...]


@dataclass(frozen=True, slots=True)
class ReadConfig:
    """A configuration that holds no mistake that its text shows; paths are taken from `folder`."""

    path: Path
    tables: EvaluateConfig
    systems: tuple[SystemTable, ...]

    @property
    def folder(self) -> Path:
        """The file's own."""
        return self.path.parent


@dataclass(frozen=True, slots=True)
class ConfiguredSystem:
    """A system, and where it stands in the configuration: its table, its kind, whether it is a base."""

    system: System
    table: str
    kind: str
    is_base: bool = False


def read_evaluate_config(path: Path) -> ReadConfig:
    """Read a configuration; every problem is told at once: where, what was found, the nearest key."""
    table, where = read_toml(path), shown(path)
    problems: list[str] = []
    tables: EvaluateConfig | None = None
    try:
        tables = validated(EvaluateConfig, table, where)
        problems += [f"{where}: {problem}" for problem in _problems(tables)]
    except InputError as error:
        problems += error.problems
    rows, sweep = table.get("systems"), table.get("sweep")
    design = table.get("design") if table.get("design") in ("one_at_a_time", "grid") else None
    read: list[SystemTable] = []
    for place, row in enumerate(rows if isinstance(rows, list) else [], start=1):
        if not isinstance(row, Mapping):
            continue
        name = row.get("name")
        levels = sweep.get(name) if isinstance(sweep, Mapping) and isinstance(name, str) else None
        try:
            read.append(
                _system_table(row, levels if isinstance(levels, Mapping) else {}, design, where, place, path)
            )
        except InputError as error:
            problems += error.problems
    names = [variant.name for one in read for variant, _ in one.variants]
    problems += [
        f"{where}: systems: {name} stands there twice: give each a name of its own"
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    refuse(list(dict.fromkeys(problems)))
    assert tables is not None
    return ReadConfig(path, tables, tuple(read))


def _problems(tables: EvaluateConfig) -> Iterator[str]:
    asked = tables.questions
    if (asked.gold is None) == (asked.file is None):
        yield "questions: give either gold, a gold set, or file, a table of questions with reference answers"
    if asked.file is not None and "split" in asked.model_fields_set:
        yield "questions: split belongs to a gold set: leave it out, or name the set with gold"
    of_file = {"question", "reference", "separator", "id", "documents", "tags"} & asked.model_fields_set
    if asked.gold is not None and of_file:
        yield (
            f"questions: {', '.join(sorted(of_file))}: columns of a file, and a gold set has its own: leave "
            "them out"
        )
    if not tables.systems:
        yield "systems: there is none: add [[systems]] with name and kind"
    names = [name for table in tables.systems if isinstance(name := table.get("name"), str)]
    for name in tables.sweep:
        if name not in names:
            yield f"sweep: {unknown_name('system', name, names)}: options stand under the name of a system"


def _system_table(
    row: Mapping[str, Any], sweep: Mapping[str, Any], design: Design | None, file: str, place: int, path: Path
) -> SystemTable:
    """A table of systems with its variants; `place` is its number, for one without a name."""
    name = row.get("name")
    where = (
        f"{file}: systems: {name}" if isinstance(name, str) and name else f"{file}: systems: number {place}"
    )
    head = validated(_Head, {key: row[key] for key in _HEAD if key in row}, where)
    table = {key: value for key, value in row.items() if key not in _HEAD}
    factors = dict(_flat(sweep))
    problems = [f"{file}: sweep: {head.name}: {text}" for text in sweep_problems(factors, table, design)]
    if problems:  # the rest is read all the same, so that every mistake is told at once
        factors = {name: levels for name, levels in factors.items() if isinstance(levels, list) and levels}
        design = "one_at_a_time"
    lists = [key for key, value in _flat(table) if isinstance(value, list)]
    read = []
    for variant in variants(head.name, table, factors, design):
        filled = dict(variant.table)
        if head.kind == "answers" and isinstance(filled.get("answers"), str):
            filled["answers"] = str(path.parent / filled["answers"])
        try:
            read.append((variant, validated(_CONFIGS[head.kind], filled, where)))
        except InputError as error:
            for problem in error.problems:
                if any(problem.startswith((f"{where}: {key}:", f"{where}: {key} must")) for key in lists):
                    problem += f"; the levels of a sweep stand under [sweep.{head.name}]"
                problems.append(problem)
    refuse(list(dict.fromkeys(problems)))
    return SystemTable(head.name, head.kind, tuple(read))


# --- factors of a sweep


def sweep_problems(
    factors: Mapping[str, Any], table: Mapping[str, Any], design: Design | None
) -> Iterator[str]:
    """What is wrong with the levels of a system, beside what its own table says of the same options."""
    for factor, levels in factors.items():
        if not isinstance(levels, list) or not levels:
            yield f"{factor}: give its levels as a list, found {levels!r:.60}"
        elif odd := [level for level in levels if not isinstance(level, str | int | float | bool)]:
            yield f"{factor}: a level is a text, a number, true or false, found {odd[0]!r:.60}"
        else:
            for a, b in itertools.combinations(levels, 2):
                if a == b or printed(a) == printed(b):
                    yield f"{factor}: the levels {a!r} and {b!r} cannot be told apart: keep one"
            yield from _held_problems(factor, levels, dict(_flat(table)), design)
    if factors and design is None:
        yield (
            'say design = "one_at_a_time" (the others held at the base) or design = "grid" (every '
            "combination) "
            "at the top of the file"
        )
    n = math.prod(len(levels) for levels in factors.values() if isinstance(levels, list))
    if design == "grid" and n > _MOST:
        yield f'{n:,} systems: at most {_MOST:,} are taken: leave out levels, or say design = "one_at_a_time"'


def _held_problems(
    factor: str, levels: Sequence[Setting], table: Mapping[str, Any], design: Design | None
) -> Iterator[str]:
    """What a system's own table says of an option that is swept: the level that is held."""
    if factor not in table:
        return
    if design == "grid":
        yield (
            f'{factor}: with design = "grid" no level is held: leave it out of the system\'s table, or say '
            'design = "one_at_a_time"'
        )
    elif not any(_same(table[factor], level) for level in levels):
        yield (
            f"{factor} is {table[factor]!r} in the system's table, and its levels are "
            f"{', '.join(map(repr, levels))}"
        )


def variants(name: str, table: Mapping[str, Any], factors: Factors, design: Design | None) -> list[Variant]:
    """The systems of a table, each level in the order of the file; `factors` are without `sweep_problems`.

    One at a time the other factors are held at what the table says of them, else at their first level.
    """
    if not factors:
        return [Variant(name, {}, table)]
    own = dict(_flat(table))
    base = [
        next((place for place, level in enumerate(levels) if factor in own and _same(own[factor], level)), 0)
        for factor, levels in factors.items()
    ]
    places = [range(len(levels)) for levels in factors.values()]
    if design == "grid":
        wanted = list(itertools.product(*places))
    else:
        one_changed = (
            (*base[:n], place, *base[n + 1 :]) for n, levels in enumerate(places) for place in levels
        )
        wanted = sorted(set(one_changed))
    found = []
    for chosen in wanted:
        settings = {
            factor: levels[place] for (factor, levels), place in zip(factors.items(), chosen, strict=True)
        }
        filled: Mapping[str, Any] = table
        for factor, level in settings.items():
            filled = _with(filled, factor.split("."), level)
        label = ", ".join(f"{factor}={printed(level)}" for factor, level in settings.items())
        is_base = design == "one_at_a_time" and list(chosen) == base
        found.append(Variant(f"{name}({label})", settings, filled, is_base))
    return found


def printed(level: Setting) -> str:
    """A level as names show it, as TOML has it but for the quotes of a text."""
    return str(level).lower() if isinstance(level, bool) else str(level)


def _flat(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted path -> value; a key may be dotted already."""
    for key, value in table.items():
        name = f"{path}.{key}" if path else key
        if isinstance(value, Mapping):
            yield from _flat(value, name)
        else:
            yield name, value


def _same(a: Any, b: Any) -> bool:
    """Whether two values are one level: TOML's true is no 1."""
    return type(a) is type(b) and bool(a == b)


def _with(table: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """A table with a value at a path in it."""
    key, *rest = path
    inner = table.get(key)
    return {**table, key: _with(inner if isinstance(inner, Mapping) else {}, rest, value) if rest else value}


# --- systems


def systems_of(
    config: ReadConfig, workspace: Workspace, documents: Callable[[], Sequence[Document]]
) -> tuple[ConfiguredSystem, ...]:
    """Every system in the order of the file; nobody is called, `documents` are read when they are needed."""
    found = []
    for table in config.systems:
        for variant, options in table.variants:
            name, settings = variant.name, variant.settings
            system: System
            if table.kind == "local":
                system = LocalSystem(
                    name, options, settings=settings, documents=documents, workspace=workspace
                )
            elif table.kind == "http":
                system = HttpSystem(name, options, settings=settings, documents=documents)
            elif table.kind == "python":
                folders = (config.folder, workspace.root, Path())
                system = FunctionSystem(name, options, settings=settings, folders=folders)
            else:
                system = RecordedSystem(name, options, settings=settings)
            found.append(ConfiguredSystem(system, table.name, table.kind, variant.is_base))
    return tuple(found)
