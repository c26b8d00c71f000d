"""The configuration of `evaluate`: a TOML file.

    schema = 1
    design = "one_at_a_time"             # how lists among the systems' settings are varied; or "grid"

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
    base = { top_n = 2 }                 # with one_at_a_time: the levels that are held, by default the first
    of each chunk = { max = [128, 256, 512] }    # a list where the field takes none is a factor, here
    `chunk.max` top_n = [1, 2, 3]

Paths are taken from the file's own folder.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from judgecal.artefacts import read_toml, validated
from judgecal.errors import InputError, refuse
from judgecal.goldset import Document
from judgecal.rag.evaluation.comparisons import Design
from judgecal.rag.evaluation.factors import Variant, factors_of, problems_of, variants
from judgecal.rag.evaluation.function import FunctionSystem
from judgecal.rag.evaluation.http import HttpSystem
from judgecal.rag.evaluation.recorded import RecordedSystem
from judgecal.rag.evaluation.system import System
from judgecal.workspace import Workspace, shown

SystemKind = Literal["local", "http", "python", "answers"]

_CONFIGS: Mapping[str, str] = {
    "local": "local:LocalConfig",
    "http": "http:HttpConfig",
    "python": "function:FunctionConfig",
    "answers": "recorded:RecordedConfig",
}
"""Kind -> the model of its table, loaded where a system is of this kind."""
_HEAD = ("name", "kind", "base")
_TABLE = ConfigDict(extra="forbid", strict=True)
Cost = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class QuestionsTable(BaseModel):
    """What is asked: a gold set, or a table of questions with reference answers.

    Attributes:
        gold: a set under gold/, or its path; None where there is a file.
        split: of the set: open (train and dev), train, dev, test or all.
        file: CSV, TSV, JSONL, xlsx or Parquet.
        question, reference: columns of the file.
        separator: the text between equally right reference answers in one cell.
        id: the column by which a question is known; None for its wording.
        documents: the column of reference documents: an id, or a list of them; None where there is none.
        tags: columns of tags.
        limit: only the first ones.
    """

    model_config = _TABLE
    gold: str | None = None
    split: Literal["open", "train", "dev", "test", "all"] = "open"
    file: str | None = None
    question: str = "question"
    reference: str = "reference_answer"
    separator: str | None = None
    id: str | None = None
    documents: str | None = None
    tags: list[str] = []
    limit: Annotated[int, Field(ge=1)] | None = None


class DocumentsTable(BaseModel):
    """Where the documents are: a table (document_id, title, text), a folder of files, or a file; None for the
    set's."""

    model_config = _TABLE
    path: str | None = None


class JudgesTable(BaseModel):
    """Who judges the answers. The column `correctness` of the suite says how right an answer is, 0..1, and
    its column `answered` whether it is one at all; a suite without the second leaves that to a rule
    (answering.questions.refuses).

    Attributes:
        suite: a name under suites/, or the path of a TOML file.
        model: of its judges that name none.
        repeats: judgements of each answer by each judge that calls a model; one that calls nobody says the
            same again.
        locks: column of the suite -> the lock of the judge that fills it.
        local: further judges, by their strings; each fills a column that is called as itself.
        right_at: correctness, 0..1, from which an answer is right; None for the pass mark of the lock, else
            0.5.
        trust_lock: run a lock's own signature where the workspace has another.
    """

    model_config = _TABLE
    suite: str = "rag"
    model: str = "embedded"
    repeats: Annotated[int, Field(ge=1, le=1000)] = 5
    locks: dict[str, str] = {}
    local: list[str] = []
    right_at: Annotated[float, Field(ge=0, le=1)] | None = None
    trust_lock: bool = False


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


class _Head(BaseModel):
    """What every system's table has beside the keys of its kind."""

    model_config = _TABLE
    name: Annotated[str, Field(min_length=1, max_length=100)]
    kind: SystemKind
    base: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class SystemTable:
    """A table of systems, read: `variants` are its systems, `configs` their configurations beside them."""

    name: str
    kind: SystemKind
    variants: tuple[Variant, ...]
    configs: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ReadConfig:
    """A configuration that was read and holds no mistake that its text shows; `path` is its file's."""

    path: Path
    tables: EvaluateConfig
    systems: tuple[SystemTable, ...]

    @property
    def folder(self) -> Path:
        """From where its paths are taken."""
        return self.path.parent


@dataclass(frozen=True, slots=True)
class ConfiguredSystem:
    """A system, and where it stands in the configuration: the table's name, its kind, and its place in the
    sweep."""

    system: System
    table: str
    kind: SystemKind
    is_base: bool


def read_evaluate_config(path: Path) -> ReadConfig:
    """Read a configuration of `evaluate`.

    Raises:
        InputError: lists every problem of the file: where, what was found, and the nearest valid key.
    """
    table = read_toml(path)
    problems: list[str] = []
    tables: EvaluateConfig | None = None
    try:
        tables = validated(EvaluateConfig, table, shown(path))
        problems += [f"{shown(path)}: {one}" for one in _problems(tables)]
    except InputError as error:
        problems += error.problems
    given = table.get("systems")
    design = table.get("design") if table.get("design") in ("one_at_a_time", "grid") else None
    read: list[SystemTable] = []
    for place, one in enumerate(given if isinstance(given, list) else [], start=1):
        if isinstance(one, Mapping):
            try:
                read.append(_system_table(one, f"{shown(path)}: systems", place, path.parent, design))
            except InputError as error:
                problems += error.problems
    names = [variant.name_of(one.name) for one in read for variant in one.variants]
    problems += [
        f"{shown(path)}: systems: {name} stands there twice: give each a name of its own"
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
        yield f"questions: {', '.join(sorted(of_file))}: columns of a file, and a gold set has its own: leave them out"
    if not tables.systems:
        yield "systems: there is none: add [[systems]] with name and kind"


def _system_table(
    table: Mapping[str, Any], where: str, place: int, folder: Path, design: Design | None
) -> SystemTable:
    given = table.get("name")
    where = f"{where}: {given}" if isinstance(given, str) and given else f"{where}: number {place}"
    head = validated(_Head, {key: table[key] for key in _HEAD if key in table}, where)
    model: type[BaseModel] = _loaded(_CONFIGS[head.kind])
    own = {key: value for key, value in table.items() if key not in _HEAD}
    factors = factors_of(own, model)
    problems = [f"{where}: {one}" for one in problems_of(factors, head.base, design=design)]
    levels = {name: some for name, some in factors.items() if some}
    found = variants(own, levels, head.base, "grid" if design == "grid" and not problems else "one_at_a_time")
    configs = []
    for one in found:
        try:
            table = one.table if head.kind != "answers" else _with_path(one.table, folder)
            configs.append(validated(model, table, where))
        except InputError as error:
            problems += error.problems
    refuse(list(dict.fromkeys(problems)))
    return SystemTable(head.name, head.kind, tuple(found), tuple(configs))


def _with_path(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The file of recorded answers is named from the folder of the configuration."""
    answers = table.get("answers")
    return {**table, **({"answers": str(folder / answers)} if isinstance(answers, str) else {})}


def _loaded(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(f"judgecal.rag.evaluation.{module}"), attribute)


@dataclass(frozen=True, slots=True)
class SystemMaker:
    """Makes systems of their tables; nobody is called and no document is read.

    Attributes:
        documents: gives those that systems search, when they are needed.
    """

    config: ReadConfig
    workspace: Workspace
    documents: Callable[[], Sequence[Document]]

    def systems(self) -> tuple[ConfiguredSystem, ...]:
        """Every system of the configuration, in its order."""
        return tuple(
            ConfiguredSystem(self._made(table, variant, own), table.name, table.kind, variant.is_base)
            for table in self.config.systems
            for variant, own in zip(table.variants, table.configs, strict=True)
        )

    def _made(self, table: SystemTable, variant: Variant, own: Any) -> System:
        name, how = variant.name_of(table.name), {"settings": variant.settings}
        if table.kind == "local":
            local: System = _loaded("local:LocalSystem")(
                name, own, documents=self.documents, workspace=self.workspace, **how
            )
            return local
        if table.kind == "http":
            return HttpSystem(name, own, documents=self.documents, **how)
        if table.kind == "python":
            folders = (self.config.folder, self.workspace.root, Path())
            return FunctionSystem(name, own, folders=folders, **how)
        return RecordedSystem(name, own, **how)
