"""`judgecal answer` as a script sees it: the object, the journals, resuming, what ends unscored, and the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from judgecal.models import embedded as transport
from judgecal.rag.evaluation.run import answered_items
from tests.support.command import Ran, Run, one_object, tree
from tests.support.gold import THINGS, made_gold
from tests.support.pages import OPEN, check_page, items_of, printed_by, told
from tests.support.server import StubServer, priced
from tests.support.tables import read as lines

N = 12  # answerable questions
TOWNS = [
    "Arnel", "Bower", "Culm", "Dorran", "Ewes", "Fenwick", "Garth", "Holm", "Ilsley", "Jarrow", "Kelso", "Lorn",
]  # fmt: skip
NOWHERE = "The answer is not in the document."
A, B = "answer_v1@embedded", "answer_v2@embedded"


def item(number: int, **more: Any) -> dict[str, Any]:
    town = TOWNS[number]
    return {
        "item_id": f"i{number:02d}",
        "group": f"g{number:02d}",
        "question": f"What did {town} sell at the fair?",
        "answer": "",
        "reference_answer": f"{town} sold {THINGS[number]} at the fair.",
        "reference_documents": [f"d{number:02d}"],
        **more,
    }


def document(number: int) -> dict[str, Any]:
    town = TOWNS[number]
    text = f"The mayor of {town} was pleased. {town} sold {THINGS[number]} at the fair. It rained."
    return {"document_id": f"d{number:02d}", "text": text}


@pytest.fixture
def fair(workspace_dir: Path) -> Path:
    """Twelve questions with a document each, and one that no document answers."""
    nobody = {"group": "nobody", "item_id": "z", "question": "Who dug the canal to Zandt?", "answer": ""}
    rows = [*map(item, range(N)), {**nobody, "reference_answer": NOWHERE, "tags": ["unanswerable"]}]
    ratings = [(row["item_id"], "ann", 0) for row in rows]
    folder = made_gold(workspace_dir / "gold" / "fair", rows, ratings, splits=OPEN)
    write_documents(folder, [document(number) for number in range(N)])
    return folder


def write_documents(folder: Path, rows: Sequence[dict[str, Any]]) -> None:
    (folder / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The last message of every call of the embedded model, in this process."""
    seen: list[str] = []
    real = transport.weighed_reply

    def reply(messages: Sequence[Any]) -> tuple[str, dict[str, float]]:
        seen.append(messages[-1]["content"])
        return real(messages)

    monkeypatch.setattr(transport, "weighed_reply", reply)
    return seen


def answering(
    monkeypatch: pytest.MonkeyPatch, say: Callable[[str], str | None], *, rating: bool = False
) -> None:
    """The embedded model says something else where `say` gives it, as an answerer or as the rater."""
    real = transport.weighed_reply

    def reply(messages: Sequence[Any]) -> tuple[str, dict[str, float]]:
        text = messages[-1]["content"]
        said = say(text) if ("answer_under_test" in text) == rating else None
        return real(messages) if said is None else (said, {})

    monkeypatch.setattr(transport, "weighed_reply", reply)


def in_answer(text: str) -> str:
    return f"[[ ## answer ## ]]\n{text}\n\n[[ ## completed ## ]]"


def asked_about(number: int) -> Callable[[str], bool]:
    return lambda text: f"What did {TOWNS[number]} sell" in text


def experiment(workspace: Path, found: dict[str, Any]) -> Path:
    return workspace / "experiments" / str(found["experiment"])


def outcomes(system: dict[str, Any]) -> dict[str, int]:
    """What became of the questions, without what became of none."""
    cells = ("right_answer", "wrong_answer", "right_refusal", "wrong_refusal")
    return {cell: n for cell in cells if (n := system["outcomes"][cell]["count"])}


def fair_run(judgecal: Run, *more: str | Path) -> Ran:
    return judgecal("answer", "--gold", "fair", "--json", *more)


# --- the object


def test_the_same_command_calls_nobody(
    judgecal: Run, fair: Path, calls: list[str], workspace_dir: Path
) -> None:
    first = one_object(fair_run(judgecal))
    assert len(calls) == 26
    before = tree(workspace_dir / "experiments")
    assert one_object(fair_run(judgecal)) == first
    assert len(calls) == 26
    assert tree(workspace_dir / "experiments") == before


# --- one engine: resume, failures, money


def test_a_failed_answer_is_a_row_with_an_error(
    judgecal: Run, fair: Path, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    third = asked_about(3)
    answering(monkeypatch, lambda text: '{"thought": "Who knows."}' if third(text) else None)
    ran = fair_run(judgecal)
    found = one_object(ran, 4)
    (one,) = found["systems"]
    assert (one["n"], one["n_expected"], one["n_unscored"]) == (12, 13, 1)
    assert one["total"]["value"] == pytest.approx(one["total_complete_case"]["value"] * 12 / 13)
    assert [(row["kind"], row["n"]) for row in found["failures"]] == [("parse", 1)]
    folder = experiment(workspace_dir, found)
    (replies,) = folder.glob("systems/*/replies.jsonl")
    (failed,) = [row for row in lines(replies) if row["verdict"] is None]
    assert (failed["item_id"], failed["error"]["kind"]) == ("g03", "parse") and "knows" in failed["raw_reply"]
    assert len(lines(folder / "judgements.jsonl")) == 12
    assert "1 of 13 answers lack some verdict" in ran.err
    monkeypatch.undo()
    monkeypatch.chdir(workspace_dir)
    again = one_object(fair_run(judgecal), 4)  # only asked for once more on request
    assert again["systems"][0]["n_unscored"] == 1
    assert one_object(fair_run(judgecal, "--retry-unscored"))["systems"][0]["n_unscored"] == 0


def test_a_failed_rating_is_unscored_and_no_nought(
    judgecal: Run, fair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    third = asked_about(3)
    answering(monkeypatch, lambda text: "Hm." if third(text) else None, rating=True)
    found = one_object(fair_run(judgecal), 4)
    (one,) = found["systems"]
    assert (one["n"], one["n_unscored"], one["points"]["count"]) == (12, 1, 12)
    assert [(row["name"], row["kind"]) for row in found["failed_verdicts"]] == [("correctness", "parse")]
    assert one["points"]["min"] > 0
    assert one["answered"]["value"] == pytest.approx(12 / 13)  # the answer itself was had


@pytest.fixture
def served(workspace_dir: Path) -> Iterator[StubServer]:
    """A model `mine` that always answers "tin" and has a price."""
    with priced(workspace_dir, lambda _: in_answer("tin")) as stub:
        yield stub


def test_a_budget_stops_answers_and_says_so(
    judgecal: Run, fair: Path, served: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-not-to-be-seen")
    found = one_object(fair_run(judgecal, "--models", "mine", "--budget-usd", "0.0001"), 4)
    (one,) = found["systems"]
    assert (served.calls, [(row["kind"], row["n"]) for row in found["failures"]]) == (0, [("budget", 13)])
    assert one["points"]["average"] is None and one["total"]["value"] == 0.0
    (resumed,) = one_object(fair_run(judgecal, "--models", "mine"))["systems"]
    assert (served.calls, resumed["n_unscored"]) == (13, 0)


def test_a_key_is_asked_for_before_anything_is_written(
    judgecal: Run, fair: Path, served: StubServer, workspace_dir: Path
) -> None:
    ran = fair_run(judgecal, "--models", "mine")
    assert (ran.code, "MY_KEY" in ran.err) == (2, True)
    assert not (workspace_dir / "experiments").exists()


# --- contexts


def test_controlled_beside_retrieved_contexts_and_closed_book(
    judgecal: Run, fair: Path, workspace_dir: Path
) -> None:
    argv = ("--contexts", "controlled,topk,none", "-k", "1", "--name", "kinds")
    printed = printed_by(judgecal, "answer", "--gold", "fair", *argv)
    controlled, naive, closed = printed["systems"]
    names = [f"{A} (controlled)", f"{A} (topk)", f"{A} (none)"]
    assert [one["system"] for one in printed["systems"]] == names
    assert outcomes(closed) == {"right_refusal": 1, "wrong_refusal": 12}
    (pair,) = [one for one in printed["comparisons"] if (one["a"], one["b"]) == (names[0], names[1])]
    costs = controlled["total"]["value"] - naive["total"]["value"]
    assert pair["difference"]["value"] == pytest.approx(costs)
    assert {item.system for item in answered_items(workspace_dir / "experiments" / "kinds")} == set(names)
    check_page(
        judgecal,
        printed,
        ["outcomes", "systems", "contexts", "pairs", "documents", "judges", "notes"],
        told(pair["difference"], 2),
    )


# --- looking closer


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--contexts", "top"), "contexts.kind must be one of search, controlled, topk, none, own, found 'top'"),
        (("--contexts", ","), "--contexts is empty"),
        (("--models", ","), "no answerer is named"),
        (("--signatures", "correctness_v3"), "it judges, and cannot answer"),
        (("--judge", "answer_v1@embedded"), "cannot judge"),
        (("-k", "0"), "contexts.k: Input should be greater"),
        (("--limit", "0"), "--limit must be at least 1"),
    ],
)  # fmt: skip
def test_wrong_use(judgecal: Run, fair: Path, workspace_dir: Path, argv: Sequence[str], said: str) -> None:
    ran = fair_run(judgecal, *argv)
    assert (ran.code, said in ran.err) == (2, True), ran.err
    assert (ran.out, (workspace_dir / "experiments").exists()) == ("", False)


def test_the_explorer_says_where_the_document_stands_and_what_is_known_by_heart(
    judgecal: Run, fair: Path, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, closed = asked_about(3), "rained"  # which every document says
    by_heart = in_answer(f"Dorran sold {THINGS[3]} at the fair.")
    answering(monkeypatch, lambda text: by_heart if known(text) and closed not in text else None)
    found = one_object(fair_run(judgecal, "--contexts", "controlled,none", "--name", "closed"))
    assert len(found["systems"]) == 2
    assert judgecal("report", "closed", "--format", "html").code == 0
    page = workspace_dir / "experiments" / "closed" / "report.html"
    carried = items_of(page.read_text(encoding="utf-8"))
    assert list(carried["heads"].values())[3:5] == ["reference document", "closed book"]
    rows = [item for item in carried["items"] if known(item["question"])]
    assert sorted(item.get("label", "") for item in rows) == ["", "1 of 4"]
    assert all(item["note"] == "right" and "heart:right" in item["marks"] for item in rows)
    others = {item["note"] for item in carried["items"] if asked_about(5)(item["question"])}
    assert others == {"not right"} and ["heart:right", "right by heart"] in carried["chips"]
