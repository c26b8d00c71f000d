"""`judgecal retrieval` end to end: sources, outputs, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import datasets
import pytest

from tests.support.command import Ran, Run
from tests.support.corpora import documents, local_repliqa, questions, table
from tests.support.pages import Parsed, page_of

ESTIMATE = {"value", "low", "high", "level", "n", "n_expected", "n_groups", "n_unscored", "method", "reason"}
HOSTILE = "</script><img src=x onerror=alert(1)> | `x` \x1b[31m"


def one_object(ran: Ran) -> dict[str, Any]:
    assert (ran.code, ran.err) == (0, "")
    found: dict[str, Any] = json.loads(ran.out)
    return found


def files(folder: Path) -> list[str | Path]:
    return ["retrieval", "--documents", documents(folder), "--questions", questions(folder)]


@pytest.mark.parametrize("argv", [(), ("--gold", "starter")])
def test_the_starter_set_gives_the_contract_s_keys(
    judgecal: Run, argv: tuple[str, ...], workspace_dir: Path
) -> None:
    found = one_object(judgecal("retrieval", *argv, "--json"))
    for name in ("reference_document_score", "mrr"):
        assert set(found[name]) == ESTIMATE
    for name in ("recall", "ndcg"):
        assert {"1", "3", "5", "10"} <= set(found[name])
        assert all(set(one) == ESTIMATE for one in found[name].values())
    assert found["n_questions"] == found["mrr"]["n"] + found["n_without_reference"]
    assert found["k"] == 5 and isinstance(found["n_documents"], int)
    assert all({"name", "n", "score"} <= set(row) for row in found["windows"])
    assert re.fullmatch(
        r"documents:gold:starter@\w{12}@\w{12}\|questions:.*\|k:5\|window:110\|seed:0\|.*", found["run_line"]
    )
    folder = workspace_dir / "experiments" / found["experiment"]
    assert sorted(path.name for path in folder.iterdir()) == [
        "experiment.toml",
        "ranks.jsonl",
        "summary.json",
    ]
    rows = [json.loads(line) for line in (folder / "ranks.jsonl").read_text().splitlines()]
    assert len(rows) == found["n_questions"]
    assert json.loads((folder / "summary.json").read_text())["run_line"] == found["run_line"]


@pytest.mark.shared_data
def test_xquad_on_the_command_line(judgecal: Run, shared_data: Path) -> None:
    folder = shared_data / "xquad"
    argv = ("--documents", folder / "documents.csv", "--questions", folder / "questions.csv")
    found = one_object(judgecal("retrieval", *argv, "--json"))
    assert found["recall"]["1"]["value"] == pytest.approx(0.918, abs=0.001)
    assert found["experiment"].startswith("retrieval-xquad-")
    ran = judgecal("retrieval", *argv, "--full")
    assert ran.said.startswith(
        "The reference document is among the first 5 for 98.6% [97.4, 99.2] of 1,190 questions on 240 "
        "documents, and first for 91.8% [89.7, 93.6]"
    )
    parts = (
        "Rank of the reference document",
        "How many documents",
        "Windows of",
        "Worst questions",
        "Measures",
    )
    assert [ran.out.index(f"\n{part}") for part in parts] == sorted(
        ran.out.index(f"\n{part}") for part in parts
    )
    assert f"run: {found['run_line']}\nnext: judgecal report {found['experiment']} --open\n" in ran.out


@pytest.mark.shared_data
def test_qrels_and_a_run_alone(judgecal: Run, shared_data: Path) -> None:
    folder = shared_data / "trec_eval"
    argv = ("retrieval", "--qrels", folder / "qrels.test", "--run", folder / "results.test")
    found = one_object(judgecal(*argv, "--json"))
    assert (found["n_questions"], found["n_documents"]) == (3, None)
    assert round(found["mrr"]["value"], 4) == 0.4064
    text = judgecal(*argv, "--full").said
    assert "Tokens are not known: no documents were given." in text
    assert "A document that nobody judged counts as no reference" in text


def test_another_k_tokenizer_and_window(judgecal: Run, tmp_path: Path) -> None:
    found = one_object(
        judgecal(
            *files(tmp_path),
            "-k",
            "2",
            "--tokenizer",
            "stem:english",
            "--window",
            "2",
            "--seed",
            "4",
            "--json",
        )
    )
    assert found["k"] == 2 and "2" in found["recall"]
    assert [row["name"] for row in found["windows"]] == ["00000_00002", "00002_00001"]
    assert "tokenizer:stem:english|indexed:text|k:2|window:2|seed:4" in found["run_line"]


def test_a_run_of_ones_own(judgecal: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.run"
    path.write_text("q1 Q0 d1 1 3.0 me\nq2 Q0 d1 1 3.0 me\nq2 Q0 d2 2 2.0 me\n")
    ran = judgecal(*files(tmp_path), "--run", path, "--full")
    assert ran.code == 0
    assert "1 of 3 questions are absent from the run and score 0: q3." in ran.said
    assert "Which words won is not known of a retriever of your own" in ran.said
    found = one_object(judgecal(*files(tmp_path), "--run", path, "--json"))
    assert found["reference_document_score"]["value"] == pytest.approx((1.0 + 0.8) / 3)


def test_no_document_found_is_the_first_sentence(judgecal: Run, tmp_path: Path) -> None:
    asked = questions(tmp_path, [("q1", "sun?", "D1"), ("q2", "rain?", "D2")])
    ran = judgecal("retrieval", "--documents", documents(tmp_path), "--questions", asked)
    assert ran.code == 0
    assert ran.said.startswith("None of the 2 questions on 3 documents can be answered from this corpus")
    assert "2 of 2 would match but for case: make the ids the same" in ran.said


def test_repliqa_from_a_local_copy(judgecal: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    folder = local_repliqa(tmp_path / "copy")
    ran = judgecal("retrieval", "--repliqa", f"{folder}:repliqa_0", "--json")
    assert ran.code == 0
    found = json.loads(ran.out)  # stderr holds the progress of `datasets`
    assert (found["n_questions"], found["n_without_reference"], found["n_documents"]) == (5, 2, 3)
    ran = judgecal("retrieval", "--repliqa", f"{folder}:repliqa_0")
    assert "2 of 5 questions name no reference document and are left out of the means." in ran.said


def test_the_outputs_hold_no_script_and_load_nothing(judgecal: Run, tmp_path: Path) -> None:
    corpus = documents(
        tmp_path, [("d1", "sun"), (f"d2 {HOSTILE}", "rain rain"), ("d3", "snow"), ("d4", "hail")]
    )
    rows = [
        ("q1", "sun?", "d1"),
        (f"q2{HOSTILE}", f"hail {HOSTILE}", "d1"),
        ("q3", "rain", f"gone {HOSTILE}"),
    ]
    argv = ["retrieval", "--documents", corpus, "--questions", questions(tmp_path, rows), "--window", "1"]
    page, picture, text = (tmp_path / f"out.{ending}" for ending in ("html", "svg", "md"))
    ran = judgecal(*argv, "--chart", page, "--markdown", text)
    assert ran.code == 0
    assert "\x1b" not in ran.out
    html = page.read_text()
    parsed = Parsed(html)
    assert not parsed.scripts and not parsed.all("img") and "&lt;img src=x" in html
    assert html.count("<svg") == 6
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?(?!#)[a-z]+:""", html)
    slug = html.partition("<title>")[2].partition(":")[0]
    assert page_of(judgecal, slug) == html  # the command's page and the report's are one
    marked = text.read_text()
    assert "<img" not in marked.replace("\\<img", "") and marked.startswith("**")
    assert "| k | tokens | recall |" in marked
    assert judgecal(*argv, "--chart", picture).code == 0
    drawn = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    assert drawn.tag.endswith("svg") and "var(--" not in picture.read_text(encoding="utf-8")


def test_the_same_command_is_the_same_experiment_and_another_is_not(judgecal: Run, tmp_path: Path) -> None:
    argv = [*files(tmp_path), "--json"]
    first, again = one_object(judgecal(*argv)), one_object(judgecal(*argv))
    assert first == again
    assert one_object(judgecal(*argv, "-k", "3"))["experiment"] != first["experiment"]
    assert one_object(judgecal(*argv, "--name", "mine"))["experiment"] == "mine"
    ran = judgecal(*argv, "--name", "mine", "-k", "3")
    assert ran.code == 2 and "another configuration (it differs in k)" in ran.err


@pytest.mark.parametrize(
    ("argv", "messages"),
    [
        (("--gold", "starter", "--repliqa", "repliqa_0"), ["--gold and --repliqa exclude each other"]),
        (("--documents", "d.csv"), ["--questions FILE is missing"]),
        (("--questions", "q.csv"), ["--documents FILE is missing"]),
        (("--qrels", "q"), ["--documents FILE is missing", "--questions FILE is missing"]),
        (("--documents", "d.csv", "--questions", "q.csv"), ["d.csv: there is no such file"]),
        (("--tokenizer", "word"), ["unknown tokenizer 'word': did you mean words"]),
        (("-k", "0", "--window", "0"), ["-k 0: it must be from 1 to", "--window 0: it must be from 1 to"]),
        (("-k", "9" * 400), ["-k 999999999999: it must be from 1 to 1,000,000,000"]),
        (("--chart", "x.pdf"), ["--chart x.pdf: the ending must be one of .html, .svg"]),
        (("--gold", "startr"), ["did you mean starter"]),
    ],
)
def test_wrong_use_is_one_message(
    judgecal: Run, argv: tuple[str, ...], messages: list[str], workspace_dir: Path
) -> None:
    before = sorted(workspace_dir.rglob("*"))
    ran = judgecal("retrieval", *argv)
    assert (ran.code, ran.out) == (2, "")
    assert [message for message in messages if message not in ran.err] == []
    assert sorted(workspace_dir.rglob("*")) == before


def test_a_set_without_documents_is_refused(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ("question", "answer", "label"), [("Q?", "A", "yes"), ("R?", "B", "no")])
    columns = ("--question", "question", "--answer", "answer", "--label", "label", "--scale", "binary")
    assert judgecal("gold", "import", path, "--as", "bare", *columns).code == 0
    ran = judgecal("retrieval", "--gold", "bare")
    assert ran.code == 2 and "gold set bare has no documents" in ran.err
