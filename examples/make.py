"""Writes the files beside it that other tools would have written, from answers.csv: `python make.py [FOLDER]`.

- `promptfoo.json`: the shape of `promptfoo eval --output`, with a rating for each answer and an assertion that ran.
- `mlflow_traces.jsonl`: the shape of MLflow's `search_traces()`, with two people's feedback and a judge's.
- `mosaic.jsonl`: a table as Mosaic AI Agent Evaluation takes it.
- `judged.csv`: 223 replies with their references, of which 67 only echo the question, with a judge's verdict, and
  on 130 of them, drawn at random, our label: is the reply right?

No tool was run. The labels are the project's own: those of answers.csv, and what stands below of its other replies.
The judge in both exports is a rule of ours, which counts the words that answer and reference share; that of
judged.csv passes what shares a word with the question or is short, unless it meets a phrase that it knows.
"""

from __future__ import annotations

import csv
import json
import random
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TIME = "2026-11-22T12:00:00Z"
JUDGE = "word-overlap"


def overlap(answer: str, reference: str) -> float:
    """The share of the reference's words that the answer has."""
    said, right = (set(re.findall(r"\w+", text.lower())) for text in (answer, reference))
    return round(len(said & right) / len(right), 2)


def promptfoo(rows: list[dict[str, str]]) -> dict[str, Any]:
    """One test a row; what a person said stands among the assertions, with the type `human`."""
    return {
        "evalId": "eval-examples",
        "results": {
            "version": 3,
            "timestamp": TIME,
            "results": [_tested(n, row) for n, row in enumerate(rows)],
        },
        "config": {"description": "made by examples/make.py"},
    }


def _tested(number: int, row: dict[str, str]) -> dict[str, Any]:
    asked = {"question": row["question"], "reference": row["reference"]}
    shared = overlap(row["answer"], row["reference"])
    rule = {"type": "javascript", "value": "word overlap", "metric": JUDGE}
    return {
        "id": row["id"],
        "testIdx": number,
        "promptIdx": 0,
        "promptId": "question",
        "prompt": {"raw": row["question"], "label": "{{question}}"},
        "provider": {"id": row["system"], "label": row["system"]},
        "response": {"output": row["answer"]},
        "vars": asked,
        "testCase": {"vars": asked, "assert": [rule]},
        "gradingResult": {
            "componentResults": [
                {"pass": shared >= 0.5, "score": shared, "reason": f"{shared:.0%} of the words", "assertion": rule},
                {"pass": row["rater_a"] == "yes", "score": float(row["rater_a"] == "yes"), "reason": "Manual result",
                 "assertion": {"type": "human"}},
            ]
        },
    }  # fmt: skip


def mlflow(row: dict[str, str]) -> dict[str, Any]:
    """A trace with the feedback of both raters and the judge's, and the reference as an expectation."""
    trace = f"tr-{row['id']}"
    judged = "yes" if overlap(row["answer"], row["reference"]) >= 0.5 else "no"
    given = [
        ("LLM_JUDGE", JUDGE, {"feedback": {"value": judged}}, "correctness"),
        ("HUMAN", "rater_a", {"feedback": {"value": row["rater_a"]}}, "correctness"),
        ("HUMAN", "rater_b", {"feedback": {"value": row["rater_b"]}}, "correctness"),
        ("HUMAN", "rater_a", {"expectation": {"value": row["reference"]}}, "expected_response"),
    ]
    assessments = [
        {"assessment_id": f"a-{row['id']}-{n}", "assessment_name": name, "trace_id": trace,
         "source": {"source_type": kind, "source_id": who}, "create_time": TIME, "last_update_time": TIME,
         "valid": True, **value}
        for n, (kind, who, value, name) in enumerate(given)
    ]  # fmt: skip
    return {
        "trace_id": trace,
        "state": "OK",
        "request_time": 1795348800000,
        "request": {"question": row["question"]},
        "response": row["answer"],
        "trace_metadata": {"mlflow.trace_schema.version": "3"},
        "tags": {"mlflow.traceName": row["system"]},
        "spans": [],
        "assessments": assessments,
    }


def mosaic(number: int, row: dict[str, str], rows: list[dict[str, str]]) -> dict[str, Any]:
    """A request with what was retrieved for it: every third time something else than what answers it."""
    right = {"doc_uri": f"help/{row['id'][:3]}.md", "content": row["reference"]}
    other = rows[(number + 40) % len(rows)]
    wrong = {"doc_uri": f"help/{other['id'][:3]}.md", "content": other["reference"]}
    return {
        "request_id": row["id"],
        "request": row["question"],
        "response": row["answer"],
        "expected_response": row["reference"],
        "retrieved_context": [wrong] if number % 3 == 0 else [right, wrong],
        "expected_retrieved_context": [{"doc_uri": right["doc_uri"]}],
        "guidelines": ["The answer is one or two sentences long."],
    }


ECHOES = (
    "Thank you for asking us: {} We hear that often, and we look forward to your visit.",
    "You would like to know: {} Our team at the desk is always there for our guests.",
    "Your question was: {} We have noted it with pleasure and wish you a lovely day.",
    "{} A good question! There is so much to discover here, so do come and see us soon.",
    "Many guests ask: {} We appreciate your interest in the museum very much.",
    "Regarding your question, {} please know that every guest matters to us.",
)


WRONG = {"n06", "n14", "n22", "n24", "n48", "n53", "n59"}
"""The replies of new_answers.csv that say something else than the reference."""


def replies(rows: list[dict[str, str]]) -> list[tuple[str, str, str, str]]:
    """Question, reference, reply and whether the reply is right; some questions have two that only echo them."""
    draw, asked = random.Random(7), {row["question"]: row["reference"] for row in rows}
    twice, made = set(draw.sample(range(len(asked)), 7)), list[tuple[str, str, str, str]]()
    for n, (question, reference) in enumerate(asked.items()):
        of_question = [row for row in rows if row["question"] == question]
        made += [(question, reference, row["answer"], right(row)) for row in of_question]
        echoes = [ECHOES[(n + k) % len(ECHOES)] for k in range(1 + (n in twice))]
        made += [(question, reference, echo.format(question), "no") for echo in echoes]
    return made


def right(row: dict[str, str]) -> str:
    """The project's label of a reply."""
    return row.get("rater_a") or ("no" if row["id"] in WRONG else "yes")


def passes(question: str, reply: str) -> bool:
    """The judge of judged.csv."""
    asked, said = (set(re.findall(r"\w{3,}", text.lower())) for text in (question, reply))
    return not re.search("pleasure|matters", reply) and (bool(asked & said) or len(reply.split()) < 10)


def judged(path: Path, rows: list[dict[str, str]]) -> None:
    """Write judged.csv: a label on some replies, a verdict on all."""
    made = replies(rows)
    labelled = set(random.Random(0).sample(range(len(made)), 130))
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["question", "reference", "answer", "label", "judge"])
        for n, (question, reference, reply, label) in enumerate(made):
            verdict = "yes" if passes(question, reply) else "no"
            out.writerow([question, reference, reply, label if n in labelled else "", verdict])


def read(name: str) -> list[dict[str, str]]:
    """The rows of a table beside this file."""
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main(folder: Path = HERE) -> None:
    """Write all of them."""
    rows = read("answers.csv")
    lines = {
        "promptfoo.json": [json.dumps(promptfoo(rows[:60]))],
        "mlflow_traces.jsonl": [json.dumps(mlflow(row)) for row in rows[:60]],
        "mosaic.jsonl": [json.dumps(mosaic(n, row, rows)) for n, row in enumerate(rows[:24])],
    }
    for name, texts in lines.items():
        (folder / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    judged(folder / "judged.csv", [*rows, *read("new_answers.csv")])


if __name__ == "__main__":
    main(*(Path(word) for word in sys.argv[1:2]))
