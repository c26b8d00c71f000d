"""The commands of gold/README.md for public sets run on files of the same form, made up here."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import datasets
import polars as pl
import pytest

from judgecal.goldset import GoldSet, load_gold
from judgecal.workspace import Workspace
from tests.support.command import Ran
from tests.support.hub import hub_folder, keep_off_the_hub

README = Path(__file__).resolve().parents[1] / "gold" / "README.md"
TEXT = datasets.Value("string")
FIVE = datasets.ClassLabel(
    names=["correct", "contradictory", "partially_correct_incomplete", "irrelevant", "non_domain"]
)
SRA = dict.fromkeys(("id", "question", "reference_answer", "student_answer"), TEXT) | {"label": FIVE}
SAF = {
    **dict.fromkeys(("id", "question", "reference_answer", "provided_answer"), TEXT),
    **dict.fromkeys(("answer_feedback", "verification_feedback"), TEXT),
    "score": datasets.Value("float64"),
}
ASAG = {
    **dict.fromkeys(("question", "provided_answer", "reference_answer", "data_source"), TEXT),
    **{name: datasets.Value("float64") for name in ("grade", "normalized_grade", "weight")},
}
SPLITS = ("train", "validation", "test_unseen_answers", "test_unseen_questions")
CAFÉ = "a song by the Café"


def sra(folder: Path) -> None:
    rows = [
        {"id": f"{n}", "question": f"Why {n // 2}?", "reference_answer": "R", "student_answer": f"A{n}", "label": n}
        for n in range(5)
    ]
    hub_folder(folder, {"default": {"train": rows, "test_ua": rows[:1]}}, SRA, licence="cc-by-4.0")


def saf(folder: Path, scores: tuple[float, float, float]) -> None:
    words = ("Incorrect", "Partially correct", "Correct")
    splits = {
        split: [
            {
                "id": f"{split}-{n}",
                "question": f"Warum {split}?",
                "reference_answer": "Ja, das ist eine Frage.",
                "provided_answer": f"Antwort {n}",
                "answer_feedback": "Korrekt!",
                "verification_feedback": words[n],
                "score": scores[n],
            }
            for n in range(3)
        ]
        for split in SPLITS
    }
    hub_folder(folder, {"default": splits}, SAF, licence="cc-by-4.0")


def asag(folder: Path) -> None:
    row = {"question": "Q", "reference_answer": "R", "data_source": "SAF", "weight": 0.1}
    grades = [(3.5, 0.7), (0.0, 0.0)]
    rows = [{**row, "provided_answer": f"A{g}", "grade": g, "normalized_grade": share} for g, share in grades]
    hub_folder(folder, {"default": {"train": rows}}, ASAG)


def nq301_labels(path: Path) -> None:
    """Cells without quoting, one of which begins with a quote."""
    head = "id\tQuestion\tModel answer\tAcceptable?\tannotator1\tannotator2\tannotator3"
    rows = (
        f'1\twhat is it\t"Mercy" is {CAFÉ}\tYes\tYes\tYes\t',
        "1\twhat is it\tnothing\tNo\tNo\tYes\tNo",
        "2\twho was it\tAda\tYes\tYes\t\t",
    )
    path.write_text("\n".join((head, *rows)) + "\n", encoding="utf-8")


def nq301_references(path: Path) -> None:
    """The same answers with quoting, under other ids; one is spelt in another way."""
    head = "id\tQuestion\tGold answers\tModel answer\tAcceptable?\tBEM probs per gold answer"
    rows = (
        f'1\twhat is it\t"Mercy, a song | {CAFÉ}"\t"""Mercy"" is {CAFÉ}"\tYes\t"[[0.1, 0.9], [0.2, 0.8]]"',
        f'2\twhat is it\t"Mercy, a song | {CAFÉ}"\tnothing\tNo\t"[[0.9, 0.1], [0.9, 0.1]]"',
        '3\twho was it\tAda Lovelace\tAdaÂ\tYes\t"[[0.1, 0.9]]"',
    )
    path.write_text("\n".join((head, *rows)) + "\n", encoding="utf-8")


def evouna(path: Path) -> None:
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
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def ae(path: Path) -> None:
    row = {"qid": "q", "gold_index": 0, "context": "C", "question": "Q", "reference": "R"}
    rows = [
        row | {"candidate": f"A{score}", "score": score, "raw_rating": ["yes", "no", "null", "null"]}
        for score in (0.0, 1.0, 0.5)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


REMOTE: dict[str, Callable[[Path], None]] = {
    "ehsk/OpenQA-eval/HEAD/data/NQ301_human.tsv": nq301_labels,
    "ehsk/OpenQA-eval/HEAD/data/NQ301_BEM.tsv": nq301_references,
    "wangcunxiang/QA-Eval/HEAD/EVOUNA/NQ.json": evouna,
    "wangcunxiang/QA-Eval/HEAD/EVOUNA/TQ.json": evouna,
    "google-research-datasets/answer-equivalence-dataset/HEAD/v1/train.jsonl": ae,
    "nkazi/SciEntsBank": sra,
    "nkazi/Beetle": sra,
    "Short-Answer-Feedback/saf_micro_job_german": lambda folder: saf(folder, (0.0, 0.07, 1.0)),
    "Short-Answer-Feedback/saf_communication_networks_english": lambda folder: saf(folder, (0.0, 1.0, 3.5)),
    "Meyerger/ASAG2024": asag,
}
"""What a command fetches: a file of github.com by its path, or a data set of the Hub."""

# set -> items, questions, and the labels of the first rater in order.
EXPECTED: dict[str, tuple[int, int, list[float]]] = {
    "nq301": (3, 2, [1, 0, 1]),
    "nq301-bare": (3, 2, [1, 0, 1]),
    "evouna-nq": (9, 2, [1, 1, 1, 1, 1, 1, 0, 1, 1]),  # five answers, and four: one system gave none
    "evouna-tq": (9, 2, [1, 1, 1, 1, 1, 1, 0, 1, 1]),
    "scientsbank": (5, 3, [1, 0, 0, 0, 0]),
    "beetle": (5, 3, [1, 0, 0, 0, 0]),
    "saf-german": (12, 4, [0, 7, 100] * 4),
    "saf-english": (12, 4, [0, 1, 2] * 4),
    "ae": (3, 1, [0, 100, 50]),
    "asag2024": (2, 1, [70, 0]),
}


def commands() -> list[list[str]]:
    """The command lines of every sh block, as words."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def run_all(run: Callable[..., Ran], remote: Mapping[str, Callable[[Path], None]], only: str = "") -> set[str]:
    """Run the README's commands in the current folder; the names of the sets that they write."""
    written = set()
    for words in commands():
        if words[0] == "curl":
            fetch(words[1:], remote)
        elif words[0] == "python":
            if Path(re.findall(r"'([\w-]+\.\w+)'", words[2])[0]).exists():
                subprocess.run([sys.executable, *words[1:]], check=True, timeout=120)
        elif not only or words[words.index("--as") + 1].startswith(only):
            assert words[:3] == ["judgecal", "gold", "import"]
            place_hub(words[3], remote)
            done = run(*words[1:])
            assert done.code == 0, f"{shlex.join(words)}\n{done.err}"
            written.add(words[words.index("--as") + 1])
    return written


def fetch(words: list[str], remote: Mapping[str, Callable[[Path], None]]) -> None:
    """What `curl -L [-O URL]... [-o FILE URL]` would do."""
    assert words[0] == "-L"
    for position, word in enumerate(words):
        if not word.startswith("https://"):
            continue
        path = word.removeprefix("https://raw.githubusercontent.com/")
        named = words[position - 2] == "-o"
        assert named or words[position - 1] == "-O"
        if path in remote:
            remote[path](Path(words[position - 1] if named else Path(path).name))


def place_hub(address: str, remote: Mapping[str, Callable[[Path], None]]) -> None:
    if address.startswith("hf:"):
        name = address.removeprefix("hf:").partition(":")[0]
        if not Path(name).exists():
            remote[name](Path(name))


@pytest.fixture
def run(judgecal: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Ran]:
    keep_off_the_hub(monkeypatch, tmp_path)
    return judgecal


def of_workspace(name: str) -> GoldSet:
    here = Path.cwd()
    return load_gold(name, workspace=Workspace(here, here / "experiments"))


def test_every_command_of_the_readme(run: Callable[..., Ran]) -> None:
    assert run_all(run, REMOTE) == set(EXPECTED)
    for name, (n_items, n_questions, labels) in EXPECTED.items():
        gold = of_workspace(name)
        assert (len(gold.items), gold.n_groups(gold.items)) == (n_items, n_questions), name
        first = gold.ratings_by_rater[gold.raters[0]]
        assert [first[item.item_id] for item in gold.items] == labels, name
    nq301 = of_workspace("nq301")
    assert nq301.raters == ("annotator1", "annotator2", "annotator3")
    assert [item.reference_answers for item in nq301.items] == [("Mercy, a song", CAFÉ)] * 2 + [()]
    assert nq301.items[0].answer == f'"Mercy" is {CAFÉ}'
    assert of_workspace("nq301-bare").items[0].answer == f'"Mercy" is {CAFÉ}'
    evouna_nq = of_workspace("evouna-nq")
    assert [item.system for item in evouna_nq.items[:5]] == ["fid", "gpt35", "chatgpt", "gpt4", "newbing"]
    assert evouna_nq.items[0].reference_answers == ("Cyrus", "Cyrus the Great")
    assert evouna_nq.raters == ("judge",)
    source = of_workspace("scientsbank").card.source
    assert source.startswith("hf:nkazi/SciEntsBank:train (") and of_workspace("beetle").card.licence == "cc-by-4.0"


def test_every_set_of_the_table_has_a_command() -> None:
    """Each repository that the table links to is fetched by a command, and each licence is stated."""
    text = README.read_text(encoding="utf-8")
    table = text[text.index("| name | what |") :].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    links = [re.search(r"\]\(https://(?:github\.com|huggingface\.co/datasets)/([^)]+)\)", row[0]) for row in rows]
    fetched = " ".join(word for words in commands() for word in words)
    assert all(link is not None and link[1] in fetched for link in links)
    assert all(len(row) == 6 and all(row) for row in rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def real_evouna(file: Path) -> Callable[[Path], None]:
    """The columns side by side again, as the repository has them."""

    def write(path: Path) -> None:
        rows: dict[str, dict[str, Any]] = {}
        for item in read_csv(file):
            row = rows.setdefault(
                item["group"],
                {"question": item["question"], "golden_answer": item["reference_answer"], "improper": False},
            )
            for system in ("fid", "gpt35", "chatgpt", "gpt4", "newbing"):
                row.setdefault(f"answer_{system}", None)
                row.setdefault(f"judge_{system}", None)
            row[f"answer_{item['system']}"] = item["answer"]
            row[f"judge_{item['system']}"] = item["correct"] == "yes"
        path.write_text(json.dumps(list(rows.values())), encoding="utf-8")

    return write


def real_nq301(file: Path, *, references: bool) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        rows = read_csv(file)
        if references:
            frame = pl.DataFrame(
                {
                    "id": range(len(rows)),
                    "Question": [row["question"] for row in rows],
                    "Gold answers": [row["reference_answer"] for row in rows],
                    "Model answer": [row["answer"] for row in rows],
                }
            )
            frame.write_csv(path, separator="\t")
            return
        names = ("group", "question", "answer", "acceptable", "annotator1", "annotator2", "annotator3")
        head = "id\tQuestion\tModel answer\tAcceptable?\tannotator1\tannotator2\tannotator3"
        lines = ["\t".join(row[name] for name in names) for row in rows]
        path.write_text("\n".join((head, *lines)) + "\n", encoding="utf-8")

    return write


def real_saf(folder: Path) -> Callable[[Path], None]:
    def write(place: Path) -> None:
        files = {"train": "training", "test_unseen_answers": "unseen_answers"}
        splits = {
            split: [
                {
                    "id": row["item_id"],
                    "question": row["question"],
                    "reference_answer": row["reference_answer"],
                    "provided_answer": row["answer"],
                    "score": float(row["score_percent"]) / 100,
                }
                for row in read_csv(folder / f"{name}_german.csv")
            ]
            for split, name in files.items()
        }
        splits |= {"validation": [], "test_unseen_questions": []}
        hub_folder(place, {"default": splits}, SAF)

    return write


@pytest.mark.shared_data
def test_on_the_real_answers(run: Callable[..., Ran], shared_data: Path) -> None:
    """The same commands on the public data itself, put back into the form of its source."""
    remote = {
        "ehsk/OpenQA-eval/HEAD/data/NQ301_human.tsv": real_nq301(shared_data / "nq301/items.csv", references=False),
        "ehsk/OpenQA-eval/HEAD/data/NQ301_BEM.tsv": real_nq301(shared_data / "nq301/items.csv", references=True),
        "wangcunxiang/QA-Eval/HEAD/EVOUNA/NQ.json": real_evouna(shared_data / "evouna/nq.csv"),
        "wangcunxiang/QA-Eval/HEAD/EVOUNA/TQ.json": real_evouna(shared_data / "evouna/tq.csv"),
        "Short-Answer-Feedback/saf_micro_job_german": real_saf(shared_data / "saf"),
    }
    for only in ("nq301", "evouna", "saf-german"):
        run_all(run, remote, only)
    nq301 = of_workspace("nq301")
    both = [nq301.ratings_by_rater[name] for name in ("annotator1", "annotator2")]
    shared = both[0].keys() & both[1].keys()
    assert len(nq301.items) == 1490 and len(shared) == 1483
    # 0.8685 of 1,483 is 1,288: the agreement that the data's own README states.
    assert sum(both[0][item] == both[1][item] for item in shared) == 1288
    assert all(item.reference_answers for item in nq301.items)
    # one NQ question stands there twice, and the text of the question is the group
    for name, counts in {"evouna-nq": (15098, 3019), "evouna-tq": (9690, 1938)}.items():
        gold = of_workspace(name)
        assert (len(gold.items), gold.n_groups(gold.items)) == counts
    saf_rows = [
        row for name in ("training", "unseen_answers") for row in read_csv(shared_data / f"saf/{name}_german.csv")
    ]
    saf_german = of_workspace("saf-german")
    labels = [saf_german.labels[item.item_id] for item in saf_german.items]
    assert labels == [pytest.approx(float(row["score_percent"])) for row in saf_rows]
