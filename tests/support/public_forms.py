"""Small made-up files in the form of each public set that can be fetched."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
import polars as pl

from judgecal.exchange.public_sets import PublicSet, read_catalogue
from judgecal.scale import Scale
from tests.support.hub import hub_folder

SETS = read_catalogue()
READY = {name: one for name, one in SETS.items() if not one.refusal}
TEXT, NUMBER, WHOLE, FLAG = (datasets.Value(name) for name in ("string", "float64", "int64", "bool"))
FIVE = datasets.ClassLabel(
    names=["correct", "contradictory", "partially_correct_incomplete", "irrelevant", "non_domain"]
)
SRA = dict.fromkeys(("id", "question", "reference_answer", "student_answer"), TEXT) | {"label": FIVE}
SAF = {
    **dict.fromkeys(("id", "question", "reference_answer", "provided_answer"), TEXT),
    **dict.fromkeys(("answer_feedback", "verification_feedback"), TEXT),
    "score": NUMBER,
}
SPLITS = ("train", "validation", "test_unseen_answers", "test_unseen_questions")
CAFÉ = "a song by the Café"
Rows = Sequence[Mapping[str, Any]]


# --- made-up files of each form


def lines(rows: Rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def table(rows: Rows) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def qags() -> bytes:
    def sentence(text: str, *said: tuple[int, str]) -> dict[str, Any]:
        return {"sentence": text, "responses": [{"worker_id": who, "response": what} for who, what in said]}

    first = [
        sentence("A.", (0, "yes"), (3, "no"), (25, "yes")),
        sentence("B.", (0, "no"), (3, "no"), (25, "no")),
    ]
    rows = [{"article": "An article.", "summary_sentences": first}]
    rows += [
        {"article": "Another.", "summary_sentences": [sentence("C.", (1, "yes"), (0, "yes"), (2, "no"))]}
    ]
    return lines(rows)


def ragtruth() -> tuple[bytes, bytes]:
    def response(n: int, source: str, *spans: str) -> dict[str, Any]:
        labels = [{"start": 0, "end": 1, "text": span, "label_type": "Evident Conflict"} for span in spans]
        facts = {"model": "m", "temperature": 0.7, "labels": labels, "split": "train", "quality": "good"}
        return {"id": str(n), "source_id": source, **facts, "response": f"answer {n}"}

    sources: Rows = [
        {"source_id": "1", "task_type": "QA", "source": "MARCO", "prompt": "Briefly answer:\nwhy?",
         "source_info": {"question": "why?", "passages": "passage 1: because"}},
        {"source_id": "2", "task_type": "Data2txt", "source": "Yelp", "source_info": {"name": "Inn", "stars": 3.0},
         "prompt": "Instruction:\nWrite an overview\nOverview:"},
    ]  # fmt: skip
    return lines([response(1, "1"), response(2, "1", "x"), response(3, "2", "y", "z")]), lines(sources)


def faithbench() -> bytes:
    words = ("Unwanted", "Consistent", "Questionable", "Benign")
    return table([{"source": f"S{n // 2}", "summary": f"s{n}", "LLM": "m", "worst-label": word, "best-label": word}
                  for n, word in enumerate(words)])  # fmt: skip


def healthbench() -> bytes:
    def example(completion: str, rubric: str, said: Mapping[str, bool]) -> dict[str, Any]:
        prompt = [{"role": "user", "content": "I cough"}, {"role": "assistant", "content": "Since when?"},
                  {"role": "user", "content": "Monday"}]  # fmt: skip
        by = {"anonymized_physician_ids": list(said), "binary_labels": list(said.values())}
        told = {"prompt": prompt, "prompt_id": "p", "completion": "Rest.", "completion_id": completion}
        return {**told, "rubric": rubric, "category": "cluster:context", **by}

    return lines([example("c1", "asks", {"a": True, "b": False}), example("c1", "asks", {"c": True}),
                  example("c1", "warns", {"a": False, "b": False})])  # fmt: skip


def inspector() -> bytes:
    """Two answers to one task, two raters, one metric of a machine."""

    def said(human: Mapping[str, int], machine: float) -> dict[str, Any]:
        by = {who: {"value": str(value), "duration": 3} for who, value in human.items()}
        return {"faithfulness": by, "naturalness": by, "rl_f": {"system": {"value": machine}}}

    grades = [{"value": str(n), "numeric_value": n} for n in range(1, 5)]
    human = [{"name": name, "author": "human", "values": grades} for name in ("faithfulness", "naturalness")]
    metrics = [*human, {"name": "rl_f", "author": "algorithm"}]
    task = {"task_id": "c1<::>2", "input": [{"speaker": "user", "text": "hi"}, {"speaker": "agent", "text": "hello"},
            {"speaker": "user", "text": "and?"}], "contexts": [{"document_id": "d1"}],
            "targets": [{"text": "the target"}]}  # fmt: skip
    answers = [
        {
            "task_id": "c1<::>2",
            "model_id": "m1",
            "model_response": "one",
            "annotations": said({"w1": 4, "w2": 1}, 0.5),
        },
        {
            "task_id": "c1<::>2",
            "model_id": "m2",
            "model_response": "two",
            "annotations": said({"w2": 2}, 0.25),
        },
    ]
    whole = {"name": "x", "models": [{"model_id": "m1"}, {"model_id": "m2"}], "metrics": metrics, "tasks": [task],
             "documents": [{"document_id": "d1", "text": "the document"}], "evaluations": answers}  # fmt: skip
    return json.dumps(whole).encode()


def judge_bench(one: PublicSet) -> bytes:
    scale = Scale.parse(one.scale)
    values: list[Any] = {"binary": ["Yes", "No"], "nominal": ["Serious", "Critical"]}.get(
        scale.kind, [1, int(scale.high)]
    )
    values = ["model_a", "model_b"] if "llmbar" in one.name else values
    how: dict[str, Any] = {"category": "categorical", "labels_list": values}
    if scale.graded:
        how = {"category": "graded", "worst": int(scale.low), "best": int(scale.high)}
    asked = [{"metric": metric, "prompt": "{{ instance }}", **how} for metric in one.metrics]
    said = {
        metric: {"majority_human": values[0], "individual_human_scores": values} for metric in one.metrics
    }
    text: Any = {"output_a": "one", "output_b": "two"} if "llmbar" in one.name else {}
    texts = ({"input": f"ask {n}", **text} if text else f"text {n}" for n in range(3))
    instances = [{"id": n, "instance": text, "annotations": said} for n, text in enumerate(texts)]
    return json.dumps({"dataset": "d", "annotations": asked, "instances": instances}).encode()


def nq301() -> tuple[bytes, bytes]:
    """Cells without quoting, one of which begins with a quote; the second file quotes, and spells one
    otherwise."""
    head = "id\tQuestion\tModel answer\tAcceptable?\tannotator1\tannotator2\tannotator3"
    rows = (
        f'1\twhat is it\t"Mercy" is {CAFÉ}\tYes\tYes\tYes\t',
        "1\twhat is it\tnothing\tNo\tNo\tYes\tNo",
        "2\twho was it\tAda\tYes\tYes\t\t",
    )
    head2 = "id\tQuestion\tGold answers\tModel answer\tAcceptable?\tBEM probs per gold answer"
    rows2 = (
        f'1\twhat is it\t"Mercy, a song | {CAFÉ}"\t"""Mercy"" is {CAFÉ}"\tYes\t"[[0.1, 0.9], [0.2, 0.8]]"',
        f'2\twhat is it\t"Mercy, a song | {CAFÉ}"\tnothing\tNo\t"[[0.9, 0.1], [0.9, 0.1]]"',
        '3\twho was it\tAda Lovelace\tAdaÂ\tYes\t"[[0.1, 0.9]]"',
    )
    return ("\n".join((head, *rows)) + "\n").encode(), ("\n".join((head2, *rows2)) + "\n").encode()


def evouna() -> bytes:
    systems = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")

    def row(question: str, *, improper: bool, labels: Mapping[str, bool | None]) -> dict[str, Any]:
        row: dict[str, Any] = {"question": question, "golden_answer": "Cyrus/Cyrus the Great"}
        for system in systems:
            row[f"answer_{system}"] = None if labels[system] is None else f"{system} says"
            row[f"judge_{system}"] = labels[system]
        return row | {"improper": improper}

    mixed = dict(zip(systems, (True, False, True, True, None), strict=True))
    rows = [
        row("who was first", improper=False, labels=dict.fromkeys(systems, True)),
        row("when is the next one", improper=True, labels=dict.fromkeys(systems, None) | {"chatgpt": False}),
        row("who wrote it", improper=False, labels=mixed),
    ]
    return json.dumps(rows, indent=1).encode()


def answer_equivalence() -> bytes:
    row = {"qid": "q", "gold_index": 0, "context": "C", "question": "Q", "reference": "R"}
    return lines(
        [row | {"candidate": f"A{score}", "score": score, "raw_rating": ["yes"]} for score in (0.0, 1.0, 0.5)]
    )


def halueval() -> bytes:
    return lines([{"ID": str(n), "user_query": f"q{n}", "chatgpt_response": "r", "hallucination": word,
                   "hallucination_spans": []} for n, word in enumerate(("yes", "no"))])  # fmt: skip


def helpsteer2(one: PublicSet) -> bytes:
    grades = {metric: [4, 0, 2] for metric in one.metrics}
    rows = [{"prompt": f"p{n}", "response": f"r{n}", **grades, "complexity": [1, 2]} for n in range(2)]
    return gzip.compress(lines(rows))


def from_feedback() -> bytes:
    axes = {"overall": 7, "accuracy": 1, "coverage": 4, "coherence": 2}
    rows = [
        {"info": {"id": "t3_1", "post": "A post.", "article": None},
         "summary": {"text": f"s{n // 2}", "policy": "sup", "axes": axes}, "worker": f"w{n % 2}"}
        for n in range(4)
    ]  # fmt: skip
    file = io.BytesIO()
    pl.DataFrame(rows).write_parquet(file)
    return file.getvalue()


def dices() -> bytes:
    said = ("Yes", "No", "Unsure", "No")
    return table([{"rater_id": f"r{n % 2}", "item_id": str(n // 2), "context": f"c{n // 2}", "response": "r",
                   "Q_overall": word} for n, word in enumerate(said)])  # fmt: skip


def pandalm() -> bytes:
    return json.dumps([
        {"idx": n, "cmp_key": "a_b", "instruction": "Do it", "input": math.nan if n else "x", "response1": "r1",
         "response2": "r2", "annotator1": n, "annotator2": 1, "annotator3": 2} for n in range(3)
    ]).encode()  # fmt: skip


def ragchecker(one: PublicSet) -> bytes:
    labels = dict.fromkeys(one.metrics, 0)
    pair = {"dataset": "kiwi", "query_id": "41", "query": "q?", "gt_answer": "gold",
            "model1": {"response": "r1"}, "model2": {"response": "r2"}}  # fmt: skip
    rows = [{"instance_id": n // 2, **pair, **labels, one.metrics[0]: (-2, 2, 1, -1)[n]} for n in range(4)]
    return json.dumps(rows).encode()


def hub(
    split: str, rows: Rows, features: Mapping[str, Any], *, config: str = "default"
) -> Callable[[Path], None]:
    return lambda folder: (hub_folder(folder, {config: {split: rows}}, features, licence="cc-by-4.0"), None)[
        1
    ]


def sra() -> Callable[[Path], None]:
    return hub("train", [
        {"id": f"{n}", "question": f"Why {n // 2}?", "reference_answer": "R", "student_answer": f"A{n}", "label": n}
        for n in range(5)
    ], SRA)  # fmt: skip


def saf(scores: tuple[float, float, float]) -> Callable[[Path], None]:
    words = ("Incorrect", "Partially correct", "Correct")
    shared = {"reference_answer": "Ja, das ist eine Frage.", "answer_feedback": "Korrekt!"}
    splits = {
        split: [{"id": f"{split}-{n}", "question": f"Warum {split}?", "provided_answer": f"Antwort {n}", **shared,
                 "verification_feedback": words[n], "score": scores[n]} for n in range(3)]
        for split in SPLITS
    }  # fmt: skip
    return lambda folder: (hub_folder(folder, {"default": splits}, SAF, licence="cc-by-4.0"), None)[1]


def asag() -> Callable[[Path], None]:
    features = dict.fromkeys(("question", "provided_answer", "reference_answer", "data_source"), TEXT)
    row = {"question": "Q", "reference_answer": "R", "data_source": "SAF", "weight": 0.1}
    rows = [{**row, "provided_answer": f"A{grade}", "grade": grade, "normalized_grade": share}
            for grade, share in ((3.5, 0.7), (0.0, 0.0))]  # fmt: skip
    return hub("train", rows, {**features, **dict.fromkeys(("grade", "normalized_grade", "weight"), NUMBER)})


def aggrefact() -> Callable[[Path], None]:
    rows = [{"dataset": "d", "doc": f"D{n // 2}", "claim": f"c{n}", "label": n % 2} for n in range(3)]
    return hub("test", rows, {"dataset": TEXT, "doc": TEXT, "claim": TEXT, "label": WHOLE})


def attribution() -> Callable[[Path], None]:
    words = ("attributable", "not attributable")
    rows = [{"question": "q", "claim": f"c{n}", "references": ["r1", "r2"], "src_dataset": "s",
             "attribution_label": word} for n, word in enumerate(words)]  # fmt: skip
    features = {**dict.fromkeys(("question", "claim", "src_dataset", "attribution_label"), TEXT)}
    return hub("test", rows, {**features, "references": datasets.List(TEXT)}, config="subset_balanced")


def summeval() -> Callable[[Path], None]:
    metrics = ("consistency", "relevance", "coherence", "fluency")
    row = {
        "id": "dm-1",
        "text": "An article.",
        "machine_summaries": ["s0", "s1", "s2"],
        "human_summaries": ["h"],
    }
    features = {
        "id": TEXT,
        "text": TEXT,
        **dict.fromkeys(("machine_summaries", "human_summaries"), datasets.List(TEXT)),
    }
    rows = [{**row, **{metric: [1.0, 3.3333333, 5.0] for metric in metrics}}]
    return hub("test", rows, {**features, **dict.fromkeys(metrics, datasets.List(NUMBER))})


def beavertails() -> Callable[[Path], None]:
    rows = [{"prompt": f"p{n}", "response": "r", "is_safe": bool(n)} for n in range(2)]
    return hub("30k_test", rows, {"prompt": TEXT, "response": TEXT, "is_safe": FLAG})


def toxicchat() -> Callable[[Path], None]:
    rows = [{"conv_id": f"c{n}", "user_input": "u", "model_output": "m", "human_annotation": n < 2, "toxicity": n % 2}
            for n in range(3)]  # fmt: skip
    features = dict.fromkeys(("conv_id", "user_input", "model_output"), TEXT)
    return hub(
        "test", rows, {**features, "human_annotation": FLAG, "toxicity": WHOLE}, config="toxicchat0124"
    )


def arena(split: str) -> Callable[[Path], None]:
    """Two votes on one pair, shown in both orders, and one after the second turn."""
    chats = {model: [{"content": f"{who} {n}", "role": role} for n in (1, 2)
                     for who, role in (("ask", "user"), (model, "assistant"))] for model in ("mia", "zoe")}  # fmt: skip
    said = (("mia", "model_a", "x"), ("zoe", "tie (inconsistent)", "y"), ("zoe", "model_a", "x"))
    rows = []
    for n, (a, word, judge) in enumerate(said):
        b = "zoe" if a == "mia" else "mia"
        rows.append({"question_id": f"{n // 2}", "model_a": a, "model_b": b, "winner": word, "judge": judge,
                     "turn": 1 + n // 2, "conversation_a": chats[a], "conversation_b": chats[b]})  # fmt: skip
    rows = rows if split == "human" else [{**row, "question_id": f"q{n}"} for n, row in enumerate(rows)]
    features = {
        **dict.fromkeys(("question_id", "model_a", "model_b", "winner", "judge"), TEXT),
        "turn": WHOLE,
    }
    conversation = datasets.List({"content": TEXT, "role": TEXT})
    return hub(split, rows, {**features, "conversation_a": conversation, "conversation_b": conversation})


Made = bytes | tuple[bytes, ...] | Callable[[Any], Any]
PLAYED: dict[str, tuple[Made, tuple[int, int], dict[str, int]]] = {
    "mtrag": (inspector(), (2, 1), {"w1": 1, "w2": 2}),
    "qags-cnndm": (qags(), (3, 2), {"worker-0": 3, "worker-1": 1, "worker-2": 1, "worker-25": 2, "worker-3": 2}),
    "qags-xsum": (qags(), (3, 2), {"worker-0": 3, "worker-1": 1, "worker-2": 1, "worker-25": 2, "worker-3": 2}),
    "ragtruth": (ragtruth(), (3, 2), {"gold": 3}),
    "llm-aggrefact": (aggrefact(), (3, 2), {"label": 3}),
    "faithbench": (faithbench(), (4, 2), {"worst-label": 4}),
    "attributionbench": (attribution(), (2, 1), {"attribution_label": 2}),
    "healthbench-meta": (healthbench(), (2, 1), {"physician-a": 2, "physician-b": 2, "physician-c": 1}),
    "nq301": (nq301(), (3, 2), {"annotator1": 3, "annotator2": 2, "annotator3": 1, "gold": 3}),
    "evouna-nq": (evouna(), (9, 2), {"judge": 9}),  # five answers, and four: one system gave none
    "evouna-tq": (evouna(), (9, 2), {"judge": 9}),
    "scientsbank": (sra(), (5, 3), {"label": 5}),
    "beetle": (sra(), (5, 3), {"label": 5}),
    "saf-german": (saf((0.0, 0.07, 1.0)), (12, 4), {"score": 12}),
    "saf-english": (saf((0.0, 1.0, 3.5)), (12, 4), {"verification_feedback": 12}),
    "answer-equivalence": (answer_equivalence(), (3, 1), {"score": 3}),
    "asag2024": (asag(), (2, 1), {"normalized_grade": 2}),
    "halueval-general": (halueval(), (2, 2), {"hallucination": 2}),
    "summeval": (summeval(), (3, 1), {"gold": 3}),
    "helpsteer2": (helpsteer2, (2, 2), {"r1": 2, "r2": 2, "r3": 2}),
    "summarize-from-feedback": (from_feedback(), (2, 1), {"w0": 2, "w1": 2}),
    "dices-350": (dices(), (2, 2), {"r0": 1, "r1": 2}),
    "beavertails": (beavertails(), (2, 2), {"is_safe": 2}),
    "toxicchat": (toxicchat(), (2, 2), {"toxicity": 2}),
    "pandalm": (pandalm(), (3, 2), {"annotator1": 3, "annotator2": 3, "annotator3": 3}),
    "ragchecker": (ragchecker, (2, 1), {"r1": 2, "r2": 2}),
    "mt-bench-human": (arena("human"), (2, 2), {"x": 2, "y": 1}),
    "chatbot-arena": (arena("train"), (3, 2), {"label": 3}),
    **{name: (judge_bench, (3, 3), {"r1": 3, "r2": 3})
       for name, one in READY.items() if one.reader == "judge-bench"},
}  # fmt: skip
"""Set -> its source as it is played, items and questions, ratings by rater."""
