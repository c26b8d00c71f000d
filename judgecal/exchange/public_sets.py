"""Public sets in forms of their own, where one row is not one item: each as rows that an import takes.

A reader gets what stands in the set's files (the rows of a table, or the value of a JSON file) and what
people were asked, and gives rows and how many records they were made of. A rater's labels are a column,
`worker-3`, or `r1` where the raters have no names. What cannot be read is an InputError that names the
record.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.tables.formats import read_table
from judgecal.tables.json_files import json_value, read_json

MOST_UNPACKED = 1 << 29
"""Bytes of a gzipped file's content; a small file may unpack to any size."""
Record = Mapping[str, Any]
Reader = Callable[..., Iterator[dict[str, Any]]]
"""From the records of each source, and `metric` where the set has several, to rows."""


def load_source(source: str | Path) -> Any:
    """What a source holds: the value of a JSON file, else the rows of a table (JSON lines may be gzipped)."""
    path = Path(source)
    if str(source).startswith("hf:") or path.suffix.lower() not in (".json", ".gz"):
        return [row.raw for row in read_table(source).rows]
    return read_json(path) if path.suffix.lower() == ".json" else _gzipped_lines(path)


def _gzipped_lines(path: Path) -> list[Any]:
    try:
        with gzip.open(path) as file:
            data = file.read(MOST_UNPACKED + 1)
        if len(data) > MOST_UNPACKED:
            raise InputError(
                f"{path.name}: unpacks to more than {MOST_UNPACKED:,} bytes, which no set here does"
            )
        lines = data.decode().split("\n")
        return [json_value(line, f"{path.name}:{n}") for n, line in enumerate(lines, start=1) if line.strip()]
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name}: cannot be unpacked ({error}): delete it and fetch again") from None


def read_public(reader: str, sources: Sequence[Any], metric: str) -> list[dict[str, Any]]:
    """The rows of a set."""
    first, *rest = sources
    named = {"metric": metric} if metric else {}
    left = iter(first)
    try:
        return list(READERS[reader](left, *rest, **named))
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"record {len(first) - len(list(left)):,} is not in the form of {reader} that is known here "
            f"({what}): the set has changed: see its page, and gold import"
        ) from None


def _qags(articles: Iterator[Record]) -> Iterator[dict[str, Any]]:
    """A row a sentence: does the article bear it out?"""
    for number, article in enumerate(articles):
        for place, part in enumerate(article["summary_sentences"]):
            by = {f"worker-{one['worker_id']}": one["response"] for one in part["responses"]}
            if len(by) < len(part["responses"]):
                raise ValueError("a worker answers twice on one sentence")
            texts = {"article": article["article"], "answer": part["sentence"]}
            yield {"item_id": f"{number:03d}-{place}", "group": f"{number:03d}", **texts, **by}


def _ragtruth(responses: Iterator[Record], infos: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """A row an answer, with what it was made from; it is borne out where no span of it is marked."""
    by_id = {str(one["source_id"]): one for one in infos}
    for response in responses:
        info = by_id[str(response["source_id"])]
        source, prompt = info["source_info"], [line for line in info["prompt"].splitlines() if line.strip()]
        of_questions = isinstance(source, dict) and "question" in source
        instruction = next((line for line in prompt if line.strip() != "Instruction:"), "")
        yield {
            "item_id": str(response["id"]),
            "group": str(response["source_id"]),
            "question": source["question"] if of_questions else instruction,
            "answer": response["response"],
            "system": response["model"],
            "source": [source["passages"]] if of_questions else [_text(source)],
            "task_type": info["task_type"],
            "quality": response.get("quality"),
            "supported": "no" if response["labels"] else "yes",
        }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _nq301(labels: Iterator[Record], references: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """The rows with labels, each with the reference answers of the same question and answer."""
    found = {(one["Question"], one["Model answer"]): one["Gold answers"] for one in references}
    for row in labels:
        yield {**row, "Gold answers": found.get((row["Question"], row["Model answer"]), "")}


def _summeval(articles: Iterator[Record], *, metric: str) -> Iterator[dict[str, Any]]:
    """A row a summary; the file holds those of an article side by side."""
    for number, row in enumerate(articles):
        group = str(row.get("id") or number)
        for place, (summary, label) in enumerate(zip(row["machine_summaries"], row[metric], strict=True)):
            texts = {"article": row["text"], "answer": summary, "system": f"system-{place:02d}"}
            yield {"item_id": f"{group}-{place:02d}", "group": group, **texts, "label": label}


def _helpsteer2(replies: Iterator[Record], *, metric: str) -> Iterator[dict[str, Any]]:
    """The rows with each grade of a list as a column."""
    for row in replies:
        grades = {f"r{place}": grade for place, grade in enumerate(row[metric], start=1)}
        yield {"prompt": row["prompt"], "response": row["response"], **grades}


def _healthbench_meta(examples: Iterator[Record]) -> Iterator[dict[str, Any]]:
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
                raise ValueError(f"a physician's label is {met!r}, and true or false is needed")
            said = "yes" if met else "no"
            if row.setdefault(name := f"physician-{physician}", said) != said:
                raise ValueError(f"{name} says yes and no of one reply and criterion")
    yield from rows.values()


def _ragchecker(pairs: Iterator[Record], *, metric: str) -> Iterator[dict[str, Any]]:
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


def _pandalm(pairs: Iterator[Record]) -> Iterator[dict[str, Any]]:
    """The rows, each with all that its two replies answer: of instruction and input either may be empty.

    A reply may be empty too, and a judge must be given something in its place.
    """
    for pair in pairs:
        replies = {name: pair[name] or "(empty)" for name in ("response1", "response2")}
        yield {**pair, **replies, "asked": "\n\n".join(filter(None, (pair["instruction"], pair["input"])))}


READERS: Mapping[str, Reader] = {
    "qags": _qags,
    "ragtruth": _ragtruth,
    "nq301": _nq301,
    "summeval": _summeval,
    "helpsteer2": _helpsteer2,
    "healthbench-meta": _healthbench_meta,
    "ragchecker": _ragchecker,
    "pandalm": _pandalm,
}
"""By the name that the catalogue has for them."""
