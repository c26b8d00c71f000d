"""Exports of other tools as gold sets: everything counted, people's labels as ratings, judges beside the
set."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from judgecal.exchange import exports
from judgecal.exchange.exports import Export, ExportFormat, Score
from judgecal.exchange.texts import contexts_of, item_of, word
from judgecal.goldset import load_gold
from tests.support.command import Ran, Run, journal, one_object


def read_made_up(files: Sequence[Path], export: Export) -> None:
    """The made-up tool: {"items": [...], "scores": [{item, name, by, human, value, ...}], "spans": n}."""
    for file in files:
        whole = json.loads(file.read_text(encoding="utf-8"))
        for row in whole.get("items", []):
            export.count()
            further = {"group": row.get("group"), "contexts": contexts_of(row.get("contexts"))}
            export.add_item(item_of(word(row["id"]), row.get("question"), row.get("answer"), **further))
        for place, row in enumerate(whole.get("scores", []), start=1):
            export.count()
            by = word(row["by"])
            score = Score(
                word(row["item"]), row.get("name", "correct"), by, row.get("value"), row.get("note", ""),
                where=f"{file.name}:{place}", error=row.get("error"),
            )  # fmt: skip
            (export.add_rating if row.get("human") else export.add_judgement)(score)
        export.count(whole.get("spans", 0))
        export.skip("a span without a score", whole.get("spans", 0))


def is_made_up(begun: Sequence[Any]) -> bool:
    return all(isinstance(part, dict) and part.get("tool") == "made-up" for part in begun)


MADE_UP = ExportFormat("made-up", is_made_up, read_made_up, "what it writes, and its scores")


def items(n: int = 40) -> list[dict[str, Any]]:
    """Questions with an answer each."""
    return [{"id": f"i{k}", "question": f"What is {k}?", "answer": f"It is {k}."} for k in range(n)]


def scores(by: str, values: Sequence[Any], *, human: bool = False, **more: Any) -> list[dict[str, Any]]:
    """One score an item, in their order."""
    return [
        {"item": f"i{k}", "by": by, "value": value, "human": human, **more} for k, value in enumerate(values)
    ]


AGREE = ("agreement", "--gold", "brought", "--name", "seen")


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A tool that is nobody's, beside the real ones."""
    known = exports.formats()
    monkeypatch.setattr(exports, "formats", lambda: {**known, "made-up": MADE_UP})
    yield


PEOPLE = [*scores("ann", [k % 3 > 0 for k in range(40)], human=True),
          *scores("bob", [k % 3 > 0 for k in range(40)], human=True)]  # fmt: skip


@pytest.fixture
def bring(judgecal: Run, tmp_path: Path) -> Callable[..., Ran]:
    def call(
        said: Sequence[dict[str, Any]],
        *more: str,
        these: Sequence[dict[str, Any]] | None = None,
        **extra: Any,
    ) -> Ran:
        whole = {
            "tool": "made-up",
            "items": items() if these is None else these,
            "scores": list(said),
            **extra,
        }
        path = tmp_path / "export.json"
        path.write_text(json.dumps(whole), encoding="utf-8")
        return judgecal("gold", "import", path, "--as", "brought", *more)

    return call


def accounted(found: dict[str, Any]) -> None:
    out = found["n_items"] + sum(found["raters"].values()) + sum(found["judges"].values())
    assert found["n_rows"] == out + sum(found["skipped"].values())


def brought(bring: Callable[..., Ran], *args: Any, **more: Any) -> dict[str, Any]:
    found = one_object(bring(*args, "--json", **more))
    accounted(found)
    return found


def test_people_judges_and_errors_then_agreement(
    bring: Callable[..., Ran], judgecal: Run, workspace_dir: Path
) -> None:
    judged = scores("correct@gpt", [k % 3 > 0 if k % 7 else None for k in range(40)], error=None)
    for row in judged:
        row["error"] = "grader timed out" if row["value"] is None else None
    ran = bring([*PEOPLE, *judged, *judged[:5]], spans=3)
    assert ran.code == 0, ran.err
    assert "168 records read: 40 items, 80 ratings, 40 judgements, 8 skipped." in ran.said
    assert ran.out.splitlines()[-1] == "next: judgecal agreement --gold brought"
    found = one_object(judgecal(*AGREE, "--json"))
    judge = found["judges"][0]
    n = found["gold"]["n_items"]  # where ann and bob agree
    assert (judge["judge"], judge["n_expected"], n) == ("correct@gpt", n, 40)
    assert judge["n"] == 34
    failed = [row for row in journal(workspace_dir, "seen") if row["judge"] == "correct@gpt" and row["error"]]
    assert {row["error"]["message"] for row in failed} == {"grader timed out"}


def test_one_of_several_names_is_the_label(bring: Callable[..., Ran]) -> None:
    tone = scores("ann", ["warm", "cold"] * 9, human=True, name="tone")
    tone += scores("t@m", ["warm"] * 9, name="tone")
    other = scores("length@m", [0.1 * k for k in range(10)], name="length")
    ran = bring([*PEOPLE, *tone, *other])
    assert ran.code == 2
    assert "choose one with --label NAME: correct (80), tone (18)" in ran.err
    ran = bring([*PEOPLE, *tone, *other], "--label", "ton")
    assert ran.code == 2 and "did you mean tone?" in ran.err and "correct (80)" in ran.err
    found = brought(bring, [*PEOPLE, *tone, *other], "--label", "correct")
    assert found["raters"] == {"ann": 40, "bob": 40}
    assert found["judges"] == {"length@m": 10}
    assert found["skipped"] == {
        "a rating of tone, and the label is correct": 18,
        "a judgement of tone, which people rated apart from correct": 9,
    }


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (["4", "5", "maybe"], "numbers and, among them, maybe; --map maybe= makes one no label"),
        ([f"It says {k}, which is wrong." for k in range(40)], "40 different texts"),
        ([-2], "they are all -2"),
    ],
)
def test_labels_that_tell_no_scale_are_refused(
    bring: Callable[..., Ran], values: list[Any], problem: str
) -> None:
    ran = bring(scores("ann", [values[k % len(values)] for k in range(40)], human=True))
    assert ran.code == 2 and problem in " ".join(ran.err.split()) and "give --scale" in ran.err


def test_a_scale_that_the_labels_contradict(bring: Callable[..., Ran]) -> None:
    said = scores("ann", [k % 5 + 1 for k in range(40)], human=True)
    ran = bring(said, "--scale", "binary")
    assert ran.code == 2
    assert "export.json:2: label '2' of 8: '2' is none of yes/no" in ran.err
    assert "--scale ordinal:1:5 fits them all" in ran.err
    assert len(ran.err.splitlines()) == 5, "each value, and what to do"
    ran = bring(said, "--scale", "percentage")
    assert ran.code == 2 and "the scale ordinal:1:5 fits them" in ran.err
    assert brought(bring, said, "--scale", "percentage", "--force")["n_ratings"] == 40


def test_judges_on_other_scales(bring: Callable[..., Ran], judgecal: Run) -> None:
    people = scores("ann", [k % 5 + 1 for k in range(40)], human=True)
    judges = [
        *scores("share", [(k % 5) / 4 for k in range(40)]),
        *scores("few", [0.5, 0.75, 1.0]),
        *scores("percent", [25 * (k % 5) for k in range(40)]),
        *scores("flag", [k % 5 > 2 for k in range(40)]),
        *scores("verdict", ["pass", "fail"] * 20),
        *scores("words", ["splendid", "dreadful"] * 20),
        *scores("broken", [float("nan")] * 40),
    ]
    found = brought(bring, [*people, *judges])
    assert found["skipped"] == {"a judgement of words, none of whose verdicts can be read beside labels that are "
                                "ordinal:1:5": 40}  # fmt: skip
    assert found["unscored"] == {"share": 0, "few": 0, "percent": 0, "flag": 0, "verdict": 0, "broken": 40}
    ran = judgecal(*AGREE, "--json")
    judged = {one["judge"]: one for one in one_object(ran)["judges"]}
    assert judged["share"]["agreement"]["mean_agreement"]["value"] == 1.0
    assert judged["percent"]["agreement"]["mean_agreement"]["value"] == 1.0
    assert judged["flag"]["n"] == judged["verdict"]["n"] == 40
    assert (judged["broken"]["n"], judged["broken"]["n_unscored"]) == (0, 40)
    assert judged["few"]["n"] == 3


def test_adjudicated_scores_are_the_gold_label(bring: Callable[..., Ran], workspace_dir: Path) -> None:
    brought(bring, [*PEOPLE, *scores("gold", [True] * 40, human=True)])
    gold = load_gold(workspace_dir / "gold" / "brought")
    assert (set(gold.labels.values()), gold.raters) == ({1.0}, ("ann", "bob"))
    assert gold.card.source == "made-up: export.json"
    assert gold.card.made_by == (
        "judgecal gold import export.json --from made-up --as brought --label correct --scale binary"
    )
    assert exports.person("gold") != "gold", "whoever is only called so settles nothing"


def test_bad_use_is_one_message(
    bring: Callable[..., Ran], judgecal: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = bring(PEOPLE, "--from", "made-upp")
    assert ran.code == 2 and "unknown tool 'made-upp': did you mean made-up?" in ran.err
    ran = judgecal("gold", "import", tmp_path / "none.json", "b.json", "--as", "x", "--from", "made-up")
    assert ran.code == 2 and ran.err.count("there is no such file") == 2
    ran = judgecal("gold", "import", tmp_path / "none.json", "--as", "x")
    assert ran.code == 2 and "none.json: there is no such file" in ran.err and "--from TOOL" not in ran.err
    ran = bring(scores("j", [True]), "--label", "correct")
    assert ran.code == 2 and "--label correct: nobody rated anything in" in ran.err
    ran = bring(PEOPLE, "--sheet", "--from", "made-up")
    assert ran.code == 2 and "--from with --sheet" in ran.err
    ran = bring(PEOPLE, "--label", "a", "--label", "b")
    assert ran.code == 2 and "a gold set has one label" in ran.err
    twin = ExportFormat("twin", is_made_up, read_made_up, "the same")
    known = exports.formats()
    monkeypatch.setattr(exports, "formats", lambda: {**known, "twin": twin})
    ran = bring(PEOPLE)
    assert ran.code == 2 and "may be an export of made-up, twin: name the tool with --from" in ran.err
    assert not list(Path("gold").glob("*brought*")), "nothing was written"
    assert bring(PEOPLE, "--from", "twin").code == 0
    ran = bring(PEOPLE, "--from", "twin")
    assert ran.code == 2 and "add --replace" in ran.err


def test_hostile_items(bring: Callable[..., Ran], judgecal: Run, workspace_dir: Path) -> None:
    names = ["../../up", "a\x1b[2Jb", "line\nend", "half\ud800", "/etc/passwd", "gold"]
    these = [{"id": name, "question": f"Q {name}?", "answer": "A"} for name in names]
    these += [{"id": "bare", "answer": "No question."}, {"id": "empty"}, {"id": "i0", "question": "Twice?"}]
    these += [{"id": "i0", "question": "Twice?"}]
    said = [
        {"item": name, "by": "an\x1b[31mn", "value": k % 2, "human": True} for k, name in enumerate(names)
    ]
    said += [{"item": name, "by": "j@\ud800", "value": k % 2} for k, name in enumerate(names)]
    said += [
        {"item": "empty", "by": "ann", "value": 1, "human": True},
        {"item": "far", "by": "j", "value": 1},
    ]
    before = {path for path in workspace_dir.parent.rglob("*") if "brought" not in str(path)}
    found = brought(bring, said, these=these)
    assert found["n_items"] == 7
    assert found["skipped"] == {
        "an item that is there more than once": 1,
        "an item without a question": 2,
        "a score of an item that the export does not hold": 2,
    }
    after = {path for path in workspace_dir.parent.rglob("*") if "brought" not in str(path)}
    assert {path.name for path in after - before} <= {"export.json"}
    ran = bring(said, "--replace", these=these)
    assert ran.code == 0 and "\x1b" not in ran.out + ran.err
    assert judgecal(*AGREE).code == 0
    ran = bring([], "--replace", these=[{"id": " ", "question": "Q?"}])
    assert ran.code == 2 and "an item has no id: 'Q?'" in ran.err
    ran = bring([], "--replace", these=[{"id": "a", "question": "Q?"}, {"id": "a", "question": "R?"}])
    assert ran.code == 2 and "two items with different texts have the id 'a'" in ran.err
    ran = bring(PEOPLE, "--replace", these=[])
    assert ran.code == 2 and "holds no item (a score of an item that the export does not hold: 80)" in ran.err
