"""The configuration of `evaluate`: a TOML file, whose keys stand in the handbook, made of the models here.

A comment behind a key, or above it, is its line there. A list that does not stand under [sweep] is that
option's own value. Paths are taken from the file's folder. `answer` makes one in memory, of its options.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from judgecal.artefacts import read_toml, validated
from judgecal.errors import InputError, refuse, unknown_name
from judgecal.goldset import GoldDocument, load_gold
from judgecal.rag.evaluation.function import FunctionConfig, FunctionSystem
from judgecal.rag.evaluation.http import HttpConfig, HttpSystem
from judgecal.rag.evaluation.local import LocalConfig, LocalSystem
from judgecal.rag.evaluation.recorded import RecordedConfig, RecordedSystem
from judgecal.rag.evaluation.system import Setting, System
from judgecal.rag.questions import Collection, collection_of_files, collection_of_gold, read_documents
from judgecal.tables import read_columns
from judgecal.workspace import Workspace, shown

KINDS: Mapping[str, type[BaseModel]] = {
    "local": LocalConfig,
    "http": HttpConfig,
    "python": FunctionConfig,
    "answers": RecordedConfig,
}
"""The keys of each kind of system."""
_TABLE = ConfigDict(extra="forbid", strict=True)
_JUDGE = "correctness_v3@embedded"  # of `answer`
_PARTS = ("question", "reference", "group", "document", "tag")  # of a table of questions


class QuestionsTable(BaseModel):
    """What is asked: a gold set, or a table of questions with reference answers."""

    model_config = _TABLE
    gold: str | None = None  # a set under gold/, or its path; else give `file`
    split: Literal["open", "train", "dev", "test", "all"] = "open"  # of the set; open is train and dev
    file: str | None = None  # CSV, TSV, JSONL, xlsx or Parquet
    # Of the file, as `--col`: `PART=COLUMN`, of question, reference (what answers it), group (by which it is
    # known, by default its wording), document (the ids of reference documents), tag, answerable (yes or no).
    col: list[str] = []
    reference_separator: str | None = None  # the text between equally right reference answers in one cell
    limit: Annotated[int, Field(ge=1)] | None = None  # only the first ones


class DocumentsTable(BaseModel):
    """What systems search."""

    model_config = _TABLE
    path: str | None = None  # a table (document_id, title, text), a folder, a file; by default the set's own


class PanelTable(BaseModel):
    """Who judges the answers.

    The column `correctness` of the suite says how right an answer is, 0..1, and its column `answered` whether
    it is one at all; a suite without the second leaves that to a rule (questions.refuses).
    """

    model_config = _TABLE
    suite: str = "rag"  # a name under suites/, or the path of a TOML file
    judge: str | None = None  # in the place of a suite, who alone says how right an answer is, by its string
    model: str = "embedded"  # of its judges that name none
    # Judgements of each answer by a judge that calls a model; one that calls nobody says the same again.
    repeats: Annotated[int, Field(ge=1, le=1000)] = 5
    locks: dict[str, str] = {}  # column of the suite -> the lock of the judge that fills it
    local: list[str] = []  # further judges; each fills a column that is called as itself
    # A measure -> columns: the mean over all verdicts of these, as RAG-IFEval totals its conditions.
    pooled: dict[str, list[str]] = {}
    # Correctness from which an answer is right, by default the pass mark of the lock, else 0.5.
    right_at: Annotated[float, Field(ge=0, le=1)] | None = None
    trust_lock: bool = False  # run a lock's own signature where the workspace has another


class EvaluateConfig(BaseModel):
    """The whole file; the tables of systems are read by the models of their kinds."""

    model_config = _TABLE
    questions: QuestionsTable  # what is asked
    documents: DocumentsTable = DocumentsTable()  # what systems search
    judges: PanelTable = PanelTable()  # who judges the answers
    systems: list[dict[str, Any]]  # who answers: a table each, with `name`, `kind` and the keys of its kind
    # By the name of a system: an option, dotted, and the list of its levels. Each is
    # varied alone, the others held at what the system's table says, else at their first level.
    sweep: dict[str, dict[str, Any]] = {}

    def problems(self) -> Iterator[str]:
        """Yield messages on the configuration's tables that do not go together."""
        questions = self.questions
        if (questions.gold is None) == (questions.file is None):
            either = "either gold, a gold set, or file, a table of questions with reference answers"
            yield f"questions: give {either}"
        if questions.file is not None and "split" in questions.model_fields_set:
            yield "questions: split belongs to a gold set: leave it out, or name the set with gold"
        if questions.gold is not None and (questions.col or questions.reference_separator):
            yield "questions: col is of a file, and a gold set has columns of its own: leave it out"
        if not self.systems:
            yield "systems: none is named: add [[systems]] with name and kind"
        names = [name for table in self.systems if isinstance(name := table.get("name"), str)]
        for name in self.sweep:
            if name not in names:
                unknown = unknown_name("system", name, names)
                yield f"sweep: {unknown}: options belong under the name of a system"


class SystemHead(BaseModel):
    """What every system's table has beside the keys of its kind."""

    model_config = _TABLE
    name: Annotated[str, Field(min_length=1, max_length=100)]  # as tables and pages call it
    kind: Literal["local", "http", "python", "answers"]  # which of the keys below are its own


@dataclass(frozen=True, slots=True)
class SystemTable:
    """A table of systems with one level of each of its factors."""

    name: str  # `NAME`, in a sweep with the setting that differs from the base: `NAME(chunk.max=512)`
    table: str  # NAME, which all systems of a sweep share
    kind: str  # local, http, python or answers
    options: Any  # the model of its kind
    settings: Mapping[str, Setting]  # the factors with their values, in the order of the file
    is_base: bool  # whether the others of its sweep differ from it in one factor


@dataclass(frozen=True, slots=True)
class ReadConfig:
    """A configuration that holds no mistake that its text shows: a file, or made by `answer` in memory."""

    command: str  # `evaluate` or `answer`
    typed: str  # what stands behind it
    folder: Path  # from where paths in it are taken
    tables: EvaluateConfig
    systems: tuple[SystemTable, ...]


def read_evaluate_config(path: Path) -> ReadConfig:
    """Read the configuration file at a path as a ReadConfig; all problems are raised at once."""
    where = shown(path)
    tables, systems = _tables_of(read_toml(path), where, path.parent)
    return ReadConfig("evaluate", shlex.quote(where), path.parent, tables, tuple(systems))


def _tables_of(
    table: Mapping[str, Any], where: str, folder: Path
) -> tuple[EvaluateConfig, list[SystemTable]]:
    problems, tables = list[str](), None
    try:
        tables = validated(EvaluateConfig, table, where)
        problems += [f"{where}: {problem}" for problem in tables.problems()]
    except InputError as error:
        problems += error.problems
    rows, sweep = table.get("systems"), table.get("sweep")
    systems: list[SystemTable] = []
    for place, row in enumerate(rows if isinstance(rows, list) else [], start=1):
        if isinstance(row, Mapping):
            try:
                systems += _read_systems(
                    row, sweep if isinstance(sweep, Mapping) else {}, place, where, folder
                )
            except InputError as error:
                problems += error.problems
    names = [system.name for system in systems]
    problems += [
        f"{where}: systems: {name} is there twice: give each its own name"
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    refuse(list(dict.fromkeys(problems)))
    assert tables is not None
    return tables, systems


def _read_systems(
    row: Mapping[str, Any], sweep: Mapping[str, Any], place: int, file: str, folder: Path
) -> list[SystemTable]:
    """The systems of one table; `place` is its number, for one without a name."""
    name = row.get("name")
    where = f"{file}: systems: {name if isinstance(name, str) and name else f'number {place}'}"
    head = validated(SystemHead, {key: row[key] for key in SystemHead.model_fields if key in row}, where)
    table = {key: value for key, value in row.items() if key not in SystemHead.model_fields}
    levels = sweep.get(head.name)
    factors = dict(levels) if isinstance(levels, Mapping) else {}
    if wrong := [f"{file}: sweep: {head.name}: {text}" for text in sweep_problems(factors, table)]:
        raise InputError(wrong)
    systems, problems = [], list[str]()
    every = [*variants(table, factors)]
    base = next((settings for settings, _, is_base in every if is_base), {})
    for settings, filled, is_base in every:
        if head.kind == "answers" and isinstance(filled.get("answers"), str):
            filled = {**filled, "answers": str(folder / filled["answers"])}
        try:
            options = validated(KINDS[head.kind], filled, where)
        except InputError as error:
            problems += error.problems
            continue
        apart = [f"({name}={level_text(level)})" for name, level in settings.items() if level != base[name]]
        full = "".join([head.name, *apart])
        systems.append(SystemTable(full, head.name, head.kind, options, settings, is_base))
    refuse(list(dict.fromkeys(problems)))
    return systems


# --- factors of a sweep


def sweep_problems(factors: Mapping[str, Any], table: Mapping[str, Any]) -> Iterator[str]:
    """Yield messages on factors (factor -> levels) swept over a system's table (mapping)."""
    held = dict(_flat(table))
    for factor, levels in factors.items():
        if not isinstance(levels, list) or not levels:
            yield f"{factor}: give its levels as a list, found {levels!r:.60}"
        elif odd := [level for level in levels if not isinstance(level, str | int | float | bool)]:
            yield f"{factor}: a level is a text, a number, true or false, found {odd[0]!r:.60}"
        elif len(set(map(level_text, levels))) < len(levels):
            yield f"{factor}: two of the levels {', '.join(map(repr, levels))} are the same: keep one"
        elif held.get(factor, levels[0]) not in levels:
            listed_levels = ", ".join(map(repr, levels))
            yield f"{factor} is {held[factor]!r} in the system's table, and its levels are {listed_levels}"


def variants(
    table: Mapping[str, Any], factors: Mapping[str, Sequence[Setting]]
) -> Iterator[tuple[Mapping[str, Setting], Mapping[str, Any], bool]]:
    """Yield (settings, table, whether base) for each system that a table and its swept factors make.

    Each level comes in the order of the file; `factors` (by dotted path) are without `sweep_problems`. The
    base has what the table says of them, else their first level; each other differs from it in one factor.
    """
    held = dict(_flat(table))
    base = {factor: held.get(factor, levels[0]) for factor, levels in factors.items()}
    others = [{**base, factor: level} for factor, levels in factors.items() for level in levels]
    every = [base, *(settings for settings in others if settings != base)]
    for settings in sorted(every, key=lambda each: [factors[name].index(each[name]) for name in factors]):
        filled = dict(table)
        for factor, level in settings.items():
            *path, last = factor.split(".")
            inner = filled
            for key in path:
                inner[key] = dict(inner[key]) if isinstance(inner.get(key), Mapping) else {}
                inner = inner[key]
            inner[last] = level
        yield settings, filled, bool(factors) and settings is base


def level_text(level: Setting) -> str:
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


# --- what a configuration names


def system_of(
    table: SystemTable,
    config: ReadConfig,
    workspace: Workspace,
    documents: Callable[[], Sequence[GoldDocument]],
) -> System:
    """Make the System of a SystemTable, ReadConfig, Workspace and `documents`, a function to read them."""
    name, options = table.name, table.options
    if table.kind == "local":
        return LocalSystem(name, options, documents, workspace)
    if table.kind == "http":
        return HttpSystem(name, options)
    if table.kind == "python":
        return FunctionSystem(name, options, (config.folder, workspace.root, Path()))
    return RecordedSystem(name, options, workspace)


def collection_of(config: ReadConfig, workspace: Workspace) -> Collection:
    """Return the Collection, questions and documents, of a ReadConfig in a Workspace."""
    table, folder = config.tables.questions, config.folder
    documents = config.tables.documents.path and folder / config.tables.documents.path
    if table.file is None:
        place = folder / str(table.gold)
        gold = load_gold(place if (place / "items.jsonl").is_file() else str(table.gold), workspace=workspace)
        collection = collection_of_gold(gold, table.split)
    else:
        columns = read_columns(
            table.col,
            takes=_PARTS,
            inputs=("answerable",),
            workspace=workspace,
            reference_separator=table.reference_separator,
        )
        references, columns = columns.document, replace(columns, document=None)
        collection = collection_of_files(None, folder / table.file, columns=columns, references=references)
    if documents:
        read, notes = read_documents(documents)
        collection = replace(collection, documents=read, notes=(*collection.notes, *notes))
    return collection


def answer_config(
    typed: str,
    *,
    gold: str,
    signatures: Sequence[str],
    models: Sequence[str],
    contexts: Sequence[str],
    k: int,
    judge: str | None,
    lock: Path | None,
    trust_lock: bool,
    repeats: int,
) -> ReadConfig:
    """Make a ReadConfig of typed, gold, signatures, models, contexts, k, judge, lock, trust_lock, repeats.

    `typed`: the options, as they were typed.
    """
    problems = []
    if lock is not None and judge is not None:
        problems.append(f"--lock {lock} and --judge {judge} both name who rates: give one of them")
    if not (signatures and models):
        problems.append("no answerer is named: give --models A,B and --signatures S,T")
    if not contexts:
        problems.append("--contexts is empty: give controlled, topk, none or own, or several by commas")
    refuse(problems)
    kinds = list(dict.fromkeys(contexts))
    answerers = {
        f"{signature}@{model} ({kind})" if len(kinds) > 1 else f"{signature}@{model}": {
            "kind": "local",
            "contexts": {"kind": kind, "k": k},
            "answerer": {"signature": signature, "model": model},
        }
        for signature, model, kind in itertools.product(signatures, models, kinds)
    }
    systems = [{"name": name, **table} for name, table in answerers.items()]
    judges: dict[str, Any] = {"judge": judge or _JUDGE, "repeats": repeats, "trust_lock": trust_lock}
    judges |= {} if lock is None else {"locks": {"correctness": str(lock)}}
    questions = {"gold": gold, "split": "all"}
    config = {"questions": questions, "judges": judges, "systems": systems}
    tables, read = _tables_of(config, "answer", Path())
    shared = (replace(system, table=system.name.rpartition(" (")[0] or system.name) for system in read)
    return ReadConfig("answer", typed.strip(), Path(), tables, tuple(shared))
