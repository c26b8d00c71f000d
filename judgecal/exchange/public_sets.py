"""The catalogue of public sets: what each holds, who labelled it, its terms, where it lies, how it is read.

A set in a form of its own, where one row is not one item, has a reader here: from what stands in the set's
files (the rows of a table, or the value of a JSON file) and what people were asked, to rows that an import
takes. A rater's labels are a column, `worker-3`, or `r1` where the raters have no names. What cannot be read
is an InputError that names the record.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, with_config

from judgecal.artefacts import read_toml, validated
from judgecal.errors import InputError, unknown_name
from judgecal.tables.columns import Columns
from judgecal.tables.formats import read_table
from judgecal.tables.json_files import json_value, read_json

CATALOGUE = Path(__file__).with_name("catalogue.toml")
"""The file that comes with judgecal, which explains its keys."""
MOST_UNPACKED = 1 << 29
"""Bytes of a gzipped file's content; a small file may unpack to any size."""
_FORBID = ConfigDict(extra="forbid")
_TERMS = {
    "NC": "it is not for commercial use",
    "ND": "nothing that is made of it may be passed on",
    "gated": "its page asks for terms of its own to be accepted",
    "none stated": "no licence is stated, so nothing is allowed beyond the law",
}
Labeller = Literal["people", "model", "construction", "unknown"]
Term = Literal["NC", "ND", "gated", "none stated"]


@with_config(_FORBID)
@dataclass(frozen=True, slots=True)
class ColumnMap:
    """The options of `gold import` by their names: which column is what."""

    question: str | None = None
    answer: str | None = None
    answer_a: str | None = None
    answer_b: str | None = None
    reference: str | None = None
    reference_separator: str | None = None
    context: tuple[str, ...] = ()
    conversation: str | None = None
    field: Mapping[str, str] = field(default_factory=dict)
    tag: tuple[str, ...] = ()
    item: str | None = None
    group: str | None = None
    system: str | None = None
    system_a: str | None = None
    system_b: str | None = None
    label: tuple[str, ...] = ()
    gold_label: str | None = None
    rater: str | None = None

    def columns(self, metric: str) -> Columns:
        """As a table is read by them; `metric` is what the label is of, "" where there is only one."""
        named = {column.name: getattr(self, column.name) for column in fields(self)}
        contexts, tags, labels, texts = (named.pop(name) for name in ("context", "tag", "label", "field"))
        labels = tuple(name.replace("{metric}", metric) for name in labels)
        return Columns(**named, contexts=contexts, tags=tags, labels=labels, fields=tuple(texts.items()))


@with_config(_FORBID)
@dataclass(frozen=True, slots=True)
class PublicSet:
    """A set of the catalogue."""

    about: str  # what it holds
    calibrates: tuple[str, ...]  # the kinds of judges that its labels can be held against
    labels_by: Labeller  # people's alone are gold
    scale: str  # as `gold import --scale` has it
    raters: str  # who, in words
    languages: tuple[str, ...]  # of its texts, as two letters
    licence: str  # in words
    licence_read: bool  # in the set's own repository or card
    home: str  # the page to read before use
    name: str = ""  # its key in the file
    metrics: tuple[
        str, ...
    ] = ()  # what people were asked, if several things; the first unless `--label` says
    n: int | None = None  # how many things have a label; None where nobody says
    n_exact: bool = False  # whether they were counted
    terms: tuple[Term, ...] = ()  # what to know before use
    source: tuple[str, ...] = ()  # where it lies
    sha256: tuple[str, ...] = ()  # of each source, where that is known
    reader: str = ""  # of this module or an export's, where one row is not one item
    file_form: str = ""  # the ending of its form, where the file's name has another
    mapping: Literal["seen", "converted", "described", ""] = ""  # how far the columns are known
    note: str = ""
    columns: ColumnMap = field(default_factory=ColumnMap)
    where: Mapping[str, str] = field(default_factory=dict)  # as the options of `gold import`
    map: Mapping[str, str] = field(default_factory=dict)
    why_not: str = ""  # why it cannot be fetched

    @property
    def refusal(self) -> str:
        """Why it is not fetched as gold; "" where it is."""
        made = {
            "model": "a model gave its labels",
            "construction": "its labels were made, not given by people",
        }
        if how := made.get(self.labels_by):
            return f"{how} ({self.raters}): a judge calibrated on it would learn that, not what people say"
        return self.why_not

    @property
    def to_accept(self) -> str:
        """What must be accepted before it is fetched; "" where nothing."""
        terms = [_TERMS[term] for term in self.terms]
        return "; ".join(terms if self.licence_read else [*terms, "its licence was not verified"])

    def metric(self, wanted: str | None) -> str:
        """What people were asked: what is wanted, else the first; "" where the set has one alone."""
        if wanted is not None and not self.metrics:
            alone = f"the public set {self.name} has one label alone"
            raise InputError(f"--label {wanted}: {alone}: leave it out")
        if wanted is not None and wanted not in self.metrics:
            raise unknown_name(f"label of the public set {self.name}", wanted, self.metrics)
        return wanted or next(iter(self.metrics), "")


@with_config(_FORBID)
@dataclass(frozen=True, slots=True)
class _Catalogue:
    sets: dict[str, PublicSet]


def read_catalogue(path: Path | None = None) -> dict[str, PublicSet]:
    """The sets of a catalogue by name, by default of the one that comes with judgecal."""
    return _read(path or CATALOGUE)


@cache
def _read(path: Path) -> dict[str, PublicSet]:
    sets = validated(_Catalogue, read_toml(path), str(path)).sets
    return {name: replace(entry, name=name) for name, entry in sets.items()}


# --- readers

Record = Mapping[str, Any]
Rows = Iterator[dict[str, Any]]


def read_public(reader: str, sources: Sequence[str | Path], metric: str) -> list[dict[str, Any]]:
    """The rows of a set; `metric`: what people were asked, where the set has several."""
    first, *rest = map(_load, sources)
    left = iter(first)
    try:
        return list(READERS[reader](left, *rest, **({"metric": metric} if metric else {})))
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"record {len(first) - len(list(left)):,} is not in the form of {reader} that is known here "
            f"({what}): the set has changed: see its page, and gold import"
        ) from None


def _load(source: str | Path) -> Any:
    """What a source holds: the value of a JSON file, else the rows of a table (JSON lines may be gzipped)."""
    path = Path(source)
    if str(source).startswith("hf:") or path.suffix.lower() not in (".json", ".gz"):
        return [row.raw for row in read_table(source).rows]
    if path.suffix.lower() == ".json":
        return read_json(path)
    try:
        with gzip.open(path) as file:
            data = file.read(MOST_UNPACKED + 1)
        if len(data) > MOST_UNPACKED:
            raise InputError(
                f"{path.name}: unpacks to more than {MOST_UNPACKED:,} bytes, which no set here does"
            )
        lines = enumerate(data.decode().split("\n"), start=1)
        return [json_value(line, f"{path.name}:{n}") for n, line in lines if line.strip()]
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name}: cannot be unpacked ({error}): delete it and fetch again") from None


def _qags(articles: Iterator[Record]) -> Rows:
    """A row a sentence: does the article bear it out?"""
    for number, article in enumerate(articles):
        for place, part in enumerate(article["summary_sentences"]):
            by = {f"worker-{given['worker_id']}": given["response"] for given in part["responses"]}
            if len(by) < len(part["responses"]):
                raise ValueError("a worker answers twice on one sentence")
            texts = {"article": article["article"], "answer": part["sentence"]}
            yield {"item_id": f"{number:03d}-{place}", "group": f"{number:03d}", **texts, **by}


def _ragtruth(responses: Iterator[Record], infos: Sequence[Record]) -> Rows:
    """A row an answer, with what it was made from; it is borne out where no span of it is marked."""
    by_id = {str(info["source_id"]): info for info in infos}
    for response in responses:
        info = by_id[str(response["source_id"])]
        source, prompt = info["source_info"], [line for line in info["prompt"].splitlines() if line.strip()]
        question = next((line for line in prompt if line.strip() != "Instruction:"), "")
        passages = source if isinstance(source, str) else json.dumps(source, ensure_ascii=False)
        if isinstance(source, dict) and "question" in source:
            question, passages = source["question"], source["passages"]
        yield {
            "item_id": str(response["id"]),
            "group": str(response["source_id"]),
            "question": question,
            "answer": response["response"],
            "system": response["model"],
            "source": [passages],
            "task_type": info["task_type"],
            "quality": response.get("quality"),
            "supported": "no" if response["labels"] else "yes",
        }


def _nq301(labels: Iterator[Record], references: Sequence[Record]) -> Rows:
    """The rows with labels, each with the reference answers of the same question and answer."""
    gold = {(row["Question"], row["Model answer"]): row["Gold answers"] for row in references}
    for row in labels:
        yield {**row, "Gold answers": gold.get((row["Question"], row["Model answer"]), "")}


def _summeval(articles: Iterator[Record], *, metric: str) -> Rows:
    """A row a summary; the file holds those of an article side by side."""
    for number, row in enumerate(articles):
        group = str(row.get("id") or number)
        for place, (summary, label) in enumerate(zip(row["machine_summaries"], row[metric], strict=True)):
            texts = {"article": row["text"], "answer": summary, "system": f"system-{place:02d}"}
            yield {"item_id": f"{group}-{place:02d}", "group": group, **texts, "label": label}


def _helpsteer2(replies: Iterator[Record], *, metric: str) -> Rows:
    """The rows with each grade of a list as a column."""
    for row in replies:
        grades = {f"r{place}": grade for place, grade in enumerate(row[metric], start=1)}
        yield {"prompt": row["prompt"], "response": row["response"], **grades}


def _healthbench_meta(examples: Iterator[Record]) -> Rows:
    """A row a reply and criterion, whatever rows its physicians' answers stand in."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for example in examples:
        key = (str(example["completion_id"]), example["rubric"])
        *before, asked = example["prompt"]
        row = rows.setdefault(key, {
            "item_id": f"{key[0]}-{len(rows):05d}", "group": str(example["prompt_id"]),
            "question": asked["content"], "conversation": before, "answer": example["completion"],
            "criterion": example["rubric"], "category": example["category"],
        })  # fmt: skip
        for physician, met in zip(example["anonymized_physician_ids"], example["binary_labels"], strict=True):
            if not isinstance(met, bool):
                raise ValueError(f"a physician's label is {met!r}; it must be true or false")
            label = "yes" if met else "no"
            if row.setdefault(name := f"physician-{physician}", label) != label:
                raise ValueError(f"{name} says yes and no of one reply and criterion")
    yield from rows.values()


def _ragchecker(pairs: Iterator[Record], *, metric: str) -> Rows:
    """A row a pair; its two people's labels stand in two rows of the file."""
    rows: dict[str, dict[str, Any]] = {}
    for pair in pairs:
        row = rows.setdefault(str(pair["instance_id"]), {
            "item_id": str(pair["instance_id"]),
            **{name: pair[name] for name in ("query_id", "query", "gt_answer", "dataset")},
            **{f"response_{n}": pair[f"model{n}"]["response"] for n in (1, 2)},
        })  # fmt: skip
        if (row["query"], row["response_1"]) != (pair["query"], pair["model1"]["response"]):
            raise ValueError("two rows of one pair have different texts")
        row[f"r{sum(name[1:].isdigit() for name in row) + 1}"] = pair[metric]
    yield from rows.values()


def _pandalm(pairs: Iterator[Record]) -> Rows:
    """The rows, each with all that its two replies answer: of instruction and input either may be empty."""
    for pair in pairs:
        a, _, b = pair["cmp_key"].partition("_")
        asked = "\n\n".join(filter(None, (pair["instruction"], pair["input"])))
        yield {**pair, "asked": asked, "system_a": a, "system_b": b}


def _arena(votes: Iterator[Record]) -> Rows:
    """A row a vote on two chats up to a turn; A is whose name comes first, so that a pair is one item
    whichever way round it was shown. Of several votes of one person on one pair the first counts.
    """
    seen = set()
    for vote in votes:
        a, b = sorted(("model_a", "model_b"), key=lambda side: str(vote[side]))
        row = {**vote, "system_a": vote[a], "system_b": vote[b]}
        row["item_id"] = "-".join(str(row[key]) for key in ("question_id", "system_a", "system_b", "turn"))
        for side, model in (("a", a), ("b", b)):
            chat = vote[f"conversation{model.removeprefix('model')}"][: 2 * vote["turn"]]
            row["question"], row[f"answer_{side}"] = (
                "\n\n".join(turn["content"] for turn in chat if (turn["role"] == "user") is user)
                for user in (True, False)
            )
        row["label"] = "tie" if "tie" in vote["winner"] else {a: "A", b: "B"}[vote["winner"]]
        if (key := (row["item_id"], vote["judge"])) not in seen:
            seen.add(key)
            yield row


READERS: Mapping[str, Callable[..., Rows]] = {
    "qags": _qags,
    "ragtruth": _ragtruth,
    "nq301": _nq301,
    "summeval": _summeval,
    "helpsteer2": _helpsteer2,
    "healthbench-meta": _healthbench_meta,
    "ragchecker": _ragchecker,
    "pandalm": _pandalm,
    "arena": _arena,
}
"""By the name that the catalogue has for them."""
