"""Each set of the catalogue is fetched from a host on 127.0.0.1 that plays its source: made-up files of the same form,
and the public data itself, put back into the form of its source.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
import polars as pl
import pytest

from judgecal.goldset import GoldSet, catalogue, load_gold
from judgecal.goldset.catalogue import CATALOGUE, PublicSet, read_catalogue
from judgecal.scale import Scale
from judgecal.tables import public_sets
from judgecal.tables.exports import formats
from judgecal.tables.public_sets import READERS
from judgecal.workspace import Workspace
from tests.support.command import Ran, Run, one_object
from tests.support.hub import hub_folder, keep_off_the_hub
from tests.support.raw_host import RawHost, raw_host

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

    first = [sentence("A.", (0, "yes"), (3, "no"), (25, "yes")), sentence("B.", (0, "no"), (3, "no"), (25, "no"))]
    rows = [{"article": "An article.", "summary_sentences": first}]
    rows += [{"article": "Another.", "summary_sentences": [sentence("C.", (1, "yes"), (0, "yes"), (2, "no"))]}]
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
        {"task_id": "c1<::>2", "model_id": "m1", "model_response": "one", "annotations": said({"w1": 4, "w2": 1}, 0.5)},
        {"task_id": "c1<::>2", "model_id": "m2", "model_response": "two", "annotations": said({"w2": 2}, 0.25)},
    ]
    whole = {"name": "x", "models": [{"model_id": "m1"}, {"model_id": "m2"}], "metrics": metrics, "tasks": [task],
             "documents": [{"document_id": "d1", "text": "the document"}], "evaluations": answers}  # fmt: skip
    return json.dumps(whole).encode()


def judge_bench(one: PublicSet) -> bytes:
    scale = Scale.parse(one.scale)
    values: list[Any] = {"binary": ["Yes", "No"], "nominal": ["Serious", "Critical"]}.get(
        scale.kind, [1, int(scale.high)]
    )
    how: dict[str, Any] = {"category": "categorical", "labels_list": values}
    if scale.graded:
        how = {"category": "graded", "worst": int(scale.low), "best": int(scale.high)}
    asked = [{"metric": metric, "prompt": "{{ instance }}", **how} for metric in one.metrics]
    said = {metric: {"majority_human": values[0], "individual_human_scores": values} for metric in one.metrics}
    instances = [{"id": n, "instance": f"text {n}", "annotations": said} for n in range(3)]
    return json.dumps({"dataset": "d", "annotations": asked, "instances": instances}).encode()


def nq301() -> tuple[bytes, bytes]:
    """Cells without quoting, one of which begins with a quote; the second file quotes, and spells one otherwise."""
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
    return lines([row | {"candidate": f"A{score}", "score": score, "raw_rating": ["yes"]} for score in (0.0, 1.0, 0.5)])


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


def hub(split: str, rows: Rows, features: Mapping[str, Any], *, config: str = "default") -> Callable[[Path], None]:
    return lambda folder: (hub_folder(folder, {config: {split: rows}}, features, licence="cc-by-4.0"), None)[1]


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
    row = {"id": "dm-1", "text": "An article.", "machine_summaries": ["s0", "s1", "s2"], "human_summaries": ["h"]}
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
    return hub("test", rows, {**features, "human_annotation": FLAG, "toxicity": WHOLE}, config="toxicchat0124")


def arena(split: str) -> Callable[[Path], None]:
    turns = [{"content": "hi", "role": "user"}]
    said = (("model_a", "x"), ("tie", "y"), ("model_b", "x"))
    rows = [{"question_id": f"{n // 2}", "model_a": "A", "model_b": "B", "winner": word, "judge": judge, "turn": n // 2,
             "conversation_a": turns, "conversation_b": turns} for n, (word, judge) in enumerate(said)]  # fmt: skip
    rows = rows if split == "human" else [{**row, "question_id": f"q{n}"} for n, row in enumerate(rows)]
    features = {**dict.fromkeys(("question_id", "model_a", "model_b", "winner", "judge"), TEXT), "turn": WHOLE}
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
    "chatbot-arena": (arena("train"), (3, 3), {"winner": 3}),
    **{name: (judge_bench, (3, 3), {"r1": 3, "r2": 3})
       for name, one in READY.items() if one.reader == "judge-bench"},
}  # fmt: skip
"""Set -> its source as it is played, items and questions, ratings by rater."""


@pytest.fixture(scope="module")
def host() -> Iterator[RawHost]:
    with raw_host() as running:
        yield running


@pytest.fixture
def fetch(judgecal: Run, host: RawHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Ran]:
    """Fetch a set from what plays its source; the catalogue is the one that comes with judgecal, its hosts are here."""
    keep_off_the_hub(monkeypatch, tmp_path)
    local = tmp_path / "catalogue.toml"
    text = CATALOGUE.read_text(encoding="utf-8")
    local.write_text(re.sub(r"(?m)^source = .*$", lambda m: m[0].replace("https:/", host.root), text), encoding="utf-8")
    monkeypatch.setattr(catalogue, "CATALOGUE", local)

    def call(name: str, made: Made, *options: str) -> Ran:
        host.files.clear()
        one = READY[name]
        if one.source[0].startswith("hf:"):
            folder = Path("/".join(re.split(r"[/:@]", one.source[0])[1:3]))
            assert callable(made)
            made(folder)
        else:
            bodies = made(one) if callable(made) else made
            for url, body in zip(one.source, bodies if isinstance(bodies, tuple) else (bodies,), strict=True):
                host.put(url.removeprefix("https:/"), body)
        return judgecal("gold", "fetch", name, "--accept-licence", *options)

    return call


def of_workspace(name: str) -> GoldSet:
    here = Path.cwd()
    return load_gold(name, workspace=Workspace(here, here / "experiments"))


def test_every_set_that_can_be_fetched_is_played() -> None:
    assert set(PLAYED) == set(READY)


@pytest.mark.parametrize("name", PLAYED)
def test_a_file_of_its_form(fetch: Callable[..., Ran], name: str) -> None:
    made, (n_items, n_questions), raters = PLAYED[name]
    ran = fetch(name, made, "--json")
    found = one_object(ran)["imported"]
    assert (found["n_items"], found["n_groups"], found["raters"]) == (n_items, n_questions, raters), ran.err
    card = of_workspace(name).card
    assert str(card.scale) == ("percentage" if READY[name].scale == "fraction" else READY[name].scale)
    assert card.licence.startswith(READY[name].licence) and card.labels_by == "people" and card.sampling == "curated"
    assert card.made_by.startswith(f"judgecal gold fetch {name}") and READY[name].home in card.source
    hub_set = READY[name].source[0].startswith("hf:")
    assert hub_set or len(re.findall(r"\(sha256 [0-9a-f]{64}, ", card.source)) == len(READY[name].source)


@pytest.mark.parametrize("name", [name for name, one in READY.items() if len(one.metrics) > 1])
def test_another_label(fetch: Callable[..., Ran], name: str) -> None:
    label = READY[name].metrics[-1]
    found = one_object(fetch(name, PLAYED[name][0], "--label", label, "--json"))
    assert found["imported"]["n_items"] == PLAYED[name][1][0]
    assert f"--label {shlex.quote(label)}" in of_workspace(name).card.made_by


def test_what_stands_in_the_items(fetch: Callable[..., Ran]) -> None:
    for name in ("nq301", "evouna-nq", "ragtruth", "mtrag", "healthbench-meta", "halueval-general", "scientsbank"):
        assert fetch(name, PLAYED[name][0]).code == 0
    sets = {name: of_workspace(name) for name in ("nq301", "evouna-nq", "ragtruth", "mtrag", "healthbench-meta")}
    assert [item.reference_answers for item in sets["nq301"].items] == [("Mercy, a song", CAFÉ)] * 2 + [()]
    assert sets["nq301"].items[0].answer == f'"Mercy" is {CAFÉ}'
    assert [item.system for item in sets["evouna-nq"].items[:5]] == ["fid", "gpt35", "chatgpt", "gpt4", "newbing"]
    assert sets["evouna-nq"].items[0].reference_answers == ("Cyrus", "Cyrus the Great")
    assert [item.question for item in sets["ragtruth"].items] == ["why?", "why?", "Write an overview"]
    assert list(sets["ragtruth"].labels.values()) == [1.0, 0.0, 0.0]
    mtrag = sets["mtrag"].items[0]
    assert (mtrag.question, mtrag.group, len(mtrag.conversation)) == ("and?", "c1", 2)
    assert mtrag.contexts[0].text == "the document" and mtrag.reference_answers == ("the target",)
    assert one_object(fetch("mtrag", PLAYED["mtrag"][0], "--replace", "--json"))["imported"]["judges"] == {"rl_f": 2}
    health = sets["healthbench-meta"].items[0]
    assert (health.question, len(health.conversation), dict(health.fields)) == ("Monday", 2, {"criterion": "asks"})
    assert list(of_workspace("halueval-general").labels.values()) == [0.0, 1.0]
    assert list(of_workspace("scientsbank").labels.values()) == [1.0, 0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("name", READERS)
def test_a_reader_refuses_another_form_in_one_message(fetch: Callable[..., Ran], name: str) -> None:
    public = next(key for key, one in READY.items() if one.reader == name)
    if public == "summeval":
        made: Made = hub("test", [{"text": "t"}], {"text": TEXT})
    else:
        body = b'{"other": 1}\n'
        body = gzip.compress(body) if public == "helpsteer2" else body if public != "ragchecker" else b'[{"other": 1}]'
        made = (body,) * len(READY[public].source)
    ran = fetch(public, made)
    assert ran.code == 2 and not Path("gold", public).exists(), ran.err
    assert "is not in the form of" in ran.err or "no column" in ran.err or "no rows" in ran.err, ran.err


@pytest.mark.parametrize(
    ("body", "says"), [(gzip.compress(b"0" * 2000), "unpacks to more than 1,000 bytes"), (b"{}", "cannot be unpacked")]
)
def test_what_does_not_unpack(
    fetch: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, body: bytes, says: str
) -> None:
    monkeypatch.setattr(public_sets, "MOST_UNPACKED", 1000)
    ran = fetch("helpsteer2", body)
    assert ran.code == 2 and says in ran.err and not Path("gold/helpsteer2").exists()


def test_the_catalogue_says_of_each_set_what_is_needed() -> None:
    for name, one in SETS.items():
        assert one.about and one.calibrates and one.raters and one.languages and one.home.startswith("https://"), name
        assert not one.metrics or one.metric(None) == one.metrics[0]
        if one.refusal:
            assert not one.source or one.labels_by != "people", f"{name}: a source that nobody fetches"
            continue
        assert one.labels_by == "people" and one.source and one.mapping, name
        assert len(one.sha256) in (0, len(one.source))
        assert all(url.startswith(("https://", "hf:")) for url in one.source), name
        assert str(Scale.parse(one.scale)) == one.scale or one.scale == "fraction"
        assert one.reader in ("", *READERS, *formats()), name
        if one.reader not in formats():
            columns = one.columns.columns(one.metric(None))
            assert not columns.problems() and (columns.labels or columns.gold_label), name
        assert one.reader or len(one.source) == 1
    assert len(READY) >= 20 and {"model", "construction"} <= {one.labels_by for one in SETS.values()}


# --- the public data itself


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def real_nq301(rows: list[dict[str, str]]) -> tuple[bytes, bytes]:
    names = ("group", "question", "answer", "acceptable", "annotator1", "annotator2", "annotator3")
    head = "id\tQuestion\tModel answer\tAcceptable?\tannotator1\tannotator2\tannotator3"
    labels = "\n".join((head, *("\t".join(row[name] for name in names) for row in rows))) + "\n"
    named = {"Question": "question", "Gold answers": "reference_answer", "Model answer": "answer"}
    frame = pl.DataFrame({"id": range(len(rows)), **{name: [row[key] for row in rows] for name, key in named.items()}})
    return labels.encode(), frame.write_csv(separator="\t").encode()


def real_evouna(rows: list[dict[str, str]]) -> bytes:
    """The columns side by side again, as the repository has them."""
    found: dict[str, dict[str, Any]] = {}
    for item in rows:
        asked = {"question": item["question"], "golden_answer": item["reference_answer"], "improper": False}
        row = found.setdefault(item["group"], asked)
        for system in ("fid", "gpt35", "chatgpt", "gpt4", "newbing"):
            row.setdefault(f"answer_{system}", None)
            row.setdefault(f"judge_{system}", None)
        row[f"answer_{item['system']}"] = item["answer"]
        row[f"judge_{item['system']}"] = item["correct"] == "yes"
    return json.dumps(list(found.values())).encode()


def real_sra(rows: list[dict[str, str]]) -> Callable[[Path], None]:
    named = {"question": "question", "reference_answer": "reference_answer", "student_answer": "answer"}
    five = {"correct": 0, "contradictory": 1, "incorrect": 3}
    return hub("train", [{"id": row["item_id"], **{name: row[key] for name, key in named.items()},
                          "label": five[row["label"]]} for row in rows], SRA)  # fmt: skip


def real_saf(folder: Path, language: str) -> Callable[[Path], None]:
    files = {"train": "training", "test_unseen_answers": "unseen_answers"}
    named = {
        "id": "item_id",
        "question": "question",
        "reference_answer": "reference_answer",
        "provided_answer": "answer",
    }
    splits: dict[str, Rows] = {
        split: [{**{name: row[key] for name, key in named.items()}, "score": float(row["score_percent"]) / 100}
                for row in read_csv(folder / f"{file}_{language}.csv")]
        for split, file in files.items()
    }  # fmt: skip
    splits |= {"validation": [], "test_unseen_questions": []}
    return lambda place: (hub_folder(place, {"default": splits}, SAF), None)[1]


def real_mtrag(folder: Path) -> bytes:
    """Items, ratings and recorded judgements put together as InspectorRAGet has them."""
    items = [json.loads(line) for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    said: dict[str, dict[str, Any]] = {item["item_id"]: {} for item in items}
    for row in read_csv(folder / "ratings.csv"):
        by = {f"r{n}": {"value": int(row[f"r{n}"])} for n in range(1, 8) if row[f"r{n}"]}
        said[row["item_id"]][row["metric"]] = by
    for row in read_csv(folder / "judgements.csv"):
        said[row["item_id"]][row["judge"]] = {"system": {"value": float(row["verdict"])}}
    tasks, documents = {}, {}
    for item in items:
        documents |= {one["document_id"]: one for one in item["contexts"]}
        spoken = [{"speaker": turn["role"], "text": turn["content"]} for turn in item["conversation"]]
        asked = {"speaker": "user", "text": item["question"]}
        tasks[f"{item['group']}<::>{item['turn']}"] = {
            "task_id": f"{item['group']}<::>{item['turn']}", "input": [*spoken, asked],
            "contexts": [{"document_id": one["document_id"]} for one in item["contexts"]],
            "targets": [{"text": item["reference_answer"]}],
        }  # fmt: skip
    human = {name for metrics in said.values() for name, by in metrics.items() if "system" not in by}
    names = {name for metrics in said.values() for name in metrics}
    evaluations = [
        {"task_id": f"{item['group']}<::>{item['turn']}", "model_id": item["system"], "model_response": item["answer"],
         "annotations": said[item["item_id"]]} for item in items
    ]  # fmt: skip
    metrics = [{"name": name, "author": "human" if name in human else "algorithm"} for name in sorted(names)]
    whole = {"models": [], "metrics": metrics, "tasks": list(tasks.values()), "documents": list(documents.values()),
             "evaluations": evaluations}  # fmt: skip
    return json.dumps(whole).encode()


def real_pandalm(rows: list[dict[str, str]]) -> bytes:
    back = {"1": 1, "2": 2, "tie": 0}
    return json.dumps([
        {"idx": n, "cmp_key": row["systems"], "instruction": row["instruction"], "input": row["input"] or math.nan,
         "response1": row["response_1"], "response2": row["response_2"],
         **{f"annotator{k}": back[row[f"annotator{k}"]] for k in (1, 2, 3)}} for n, row in enumerate(rows)
    ]).encode()  # fmt: skip


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["nq301", "evouna-nq", "evouna-tq", "scientsbank", "beetle", "saf-german", "mtrag",
                                  "pandalm", "ragchecker"])  # fmt: skip
def test_on_the_real_data(fetch: Callable[..., Ran], shared_data: Path, name: str) -> None:
    """Each gives as many items, questions, raters and labels as its README and its file say."""
    sources: dict[str, Callable[[], Made]] = {
        "nq301": lambda: real_nq301(read_csv(shared_data / "nq301/items.csv")),
        "evouna-nq": lambda: real_evouna(read_csv(shared_data / "evouna/nq.csv")),
        "evouna-tq": lambda: real_evouna(read_csv(shared_data / "evouna/tq.csv")),
        "scientsbank": lambda: real_sra(read_csv(shared_data / "semeval2013/scientsbank_train.csv")),
        "beetle": lambda: real_sra(read_csv(shared_data / "semeval2013/beetle_train.csv")),
        "saf-german": lambda: real_saf(shared_data / "saf", "german"),
        "mtrag": lambda: real_mtrag(shared_data / "mtrag"),
        "pandalm": lambda: real_pandalm(read_csv(shared_data / "pandalm/items.csv")),
        "ragchecker": (shared_data / "ragchecker/human.json").read_bytes,
    }
    graded = [row for row in read_csv(shared_data / "mtrag/ratings.csv") if row["metric"] == "faithfulness"]
    expected: dict[str, tuple[int, int, dict[str, int]]] = {
        "nq301": (1490, 301, {"annotator1": 1490, "annotator2": 1483, "annotator3": 223, "gold": 1490}),
        "evouna-nq": (15098, 3019, {"judge": 15098}),  # one NQ question stands there twice, and its text is the group
        "evouna-tq": (9690, 1938, {"judge": 9690}),
        "scientsbank": (4969, 135, {"label": 4969}),
        "beetle": (3941, 36, {"label": 3941}),
        "saf-german": (1805, 6, {"score": 1805}),  # two of its four splits
        "mtrag": (477, 20, {f"r{n}": sum(bool(row[f"r{n}"]) for row in graded) for n in range(1, 8)}),
        "pandalm": (999, 170, {f"annotator{k}": 999 for k in (1, 2, 3)}),
        "ragchecker": (140, 140, {"r1": 140, "r2": 140}),
    }
    found = one_object(fetch(name, sources[name](), "--json"))["imported"]
    gold = of_workspace(name)
    assert (found["n_items"], found["n_groups"], found["raters"]) == expected[name]
    assert name == "saf-german" or found["n_items"] == READY[name].n
    if name == "nq301":  # 0.8685 of 1,483 is 1,288: the agreement that the data's own README states
        first, second = (gold.ratings_by_rater[rater] for rater in ("annotator1", "annotator2"))
        assert sum(first[item] == second[item] for item in first.keys() & second.keys()) == 1288
        assert all(item.reference_answers for item in gold.items)
    if name == "pandalm":
        assert all(len(item.fields) == 3 for item in gold.items), "no judge lacks an input"
    if name == "mtrag":
        assert found["judges"] == dict.fromkeys(("conditional-idk", "radbench-llm", "ragas-faithfulness"), 477)
