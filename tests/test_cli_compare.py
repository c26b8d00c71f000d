"""`judgecal compare` and `plan`: judges of an experiment held against each other, from its journal alone."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from judgecal.experiment.compare import draws
from judgecal.experiment.looks import looks_so_far
from judgecal.goldset import load_gold
from judgecal.workspace import Workspace
from tests.support.command import Run, check_estimate, one_object, tree
from tests.support.gold import harsh_gold, import_nq301, made_gold, made_items, rated

N_GROUPS = 20
CONTRACT = {"a", "b", "metric", "difference", "p_value", "decision", "smallest_detectable"}
ALL_DEV = "seed = 0\ntrain = 0.0\ndev = 1.0\ntest = 0.0"


def compared(judgecal: Run, *words: Any, code: int = 0) -> dict[str, Any]:
    return one_object(judgecal("compare", *words, "--json"), code=code)


@pytest.fixture
def rows(workspace_dir: Path) -> list[dict[str, Any]]:
    """A binary set: 20 questions, of three answers each the full one passes. Nothing of it is test."""
    made = made_items(N_GROUPS)
    labels = rated(made, {"full": 1, "half": 0, "none": 0})
    made_gold(workspace_dir / "gold" / "pass", made, labels, scale='kind = "binary"', splits=ALL_DEV)
    return made


def record(
    judgecal: Run,
    path: Path,
    verdicts: Mapping[str, Sequence[object]],
    rows: Sequence[Mapping[str, Any]],
    *more: str,
) -> str:
    """Have `agreement` take these judges in; the slug."""
    lines = ["item_id,judge,verdict"]
    for judge, own in verdicts.items():
        lines += [
            f"{row['item_id']},{judge},{verdict}"
            for row, verdict in zip(rows, own, strict=False)
            if verdict is not None
        ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    ran = judgecal("agreement", "--gold", "pass", "--judgements", path, "--name", "rec", *more)
    assert ran.code == 0, ran.err
    return "rec"


def answers(rows: Sequence[Mapping[str, Any]], wrong: Callable[[int, str], bool]) -> list[str]:
    """yes and no, right but where `wrong` says so of the place and kind."""
    right = {"full": "yes", "half": "no", "none": "no"}
    other = {"yes": "no", "no": "yes"}
    return [
        other[right[row["kind"]]] if wrong(place, row["kind"]) else right[row["kind"]]
        for place, row in enumerate(rows)
    ]


def two_of_three_right(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Two judges as good as each other, each wrong on another kind of answer."""
    return {
        "half": answers(rows, lambda place, kind: kind == "half"),
        "none": answers(rows, lambda place, kind: kind == "none"),
    }


@pytest.fixture
def slug(judgecal: Run, rows: list[dict[str, Any]], tmp_path: Path) -> str:
    """Three recorded judges: `sharp` is always right, `twin` too, `lax` passes every half answer."""
    judges = {
        "sharp": answers(rows, lambda place, kind: False),
        "twin": answers(rows, lambda place, kind: False),
        "lax": answers(rows, lambda place, kind: kind == "half"),
    }
    return record(judgecal, tmp_path / "r.csv", judges, rows)


# --- recorded judgements


def test_the_object_of_the_contract(judgecal: Run, slug: str, workspace_dir: Path) -> None:
    before = tree(workspace_dir)
    found = compared(judgecal, slug, "sharp", "lax")
    assert found.keys() >= CONTRACT
    check_estimate(found["difference"])
    # lax is right on all full and half of the other answers: 1 - (1 + 0.5) / 2.
    assert found["difference"]["value"] == pytest.approx(0.25)
    assert (found["a"], found["b"], found["metric"]) == ("sharp", "lax", "macro_agreement")
    assert found["decision"] == "A" and 0 < found["p_value"] < 0.001 and found["smallest_detectable"] > 0
    assert (found["a_value"], found["b_value"]) == (1.0, 0.75)
    assert (found["gold"]["n_items"], found["gold"]["split"], found["difference"]["n"]) == (60, "all", 60)
    assert found["test_looks"] == 0 and found["test_look"] is None and not found["reused"]
    assert "|experiment:rec|metric:macro_agreement|" in found["run_line"]
    back = compared(judgecal, slug, "lax", "sharp")
    assert back["decision"] == "B" and back["difference"]["value"] == pytest.approx(-0.25)
    assert back["p_value"] == found["p_value"]
    # Nothing of test was looked at: each comparison writes its own folder, and nothing else.
    own = f"experiments/{found['experiment'][:13]}"
    assert {name: one for name, one in tree(workspace_dir).items() if not name.startswith(own)} == before


def test_every_pair(judgecal: Run, slug: str) -> None:
    found = compared(judgecal, slug)
    pairs = found["pairs"]
    assert [pair["a"] + " " + pair["b"] for pair in pairs] == ["sharp twin", "sharp lax", "twin lax"]
    assert [pair["decision"] for pair in pairs] == ["cannot tell", "A", "A"]
    # Holm: the smaller of three counts three times; the two are equal, so both do.
    assert pairs[1]["p_adjusted"] == pytest.approx(3 * pairs[1]["p_value"]) == pairs[2]["p_adjusted"]
    assert pairs[0]["p_adjusted"] == 1.0
    assert found == compared(judgecal, slug, "sharp", "twin", "lax")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rec", "sharp", "lacks"), "unknown judge in rec 'lacks': did you mean lax?"),
        (("rec", "sharp"), "a comparison takes two judges; rec holds sharp, twin, lax"),
        (("rec", "lax", "lax"), "lax is named twice"),
        (("reck",), "unknown experiment 'reck': did you mean rec?"),
        (("rec", "sharp", "lax", "--metric", "kapa"), "unknown metric 'kapa': did you mean kappa?"),
        (("rec", "sharp", "lax", "--level", "95"), "level is 95"),
    ],
)
def test_wrong_use(judgecal: Run, slug: str, words: Sequence[str], message: str) -> None:
    ran = judgecal("compare", *words)
    assert (ran.code, ran.out) == (2, "") and message in ran.err


def test_a_changed_gold_set_is_refused(judgecal: Run, slug: str, workspace_dir: Path) -> None:
    ratings = workspace_dir / "gold" / "pass" / "ratings.jsonl"
    ratings.write_text(ratings.read_text().replace('"label": 0', '"label": 1', 1), encoding="utf-8")
    ran = judgecal("compare", slug, "sharp", "lax")
    assert ran.code == 2 and "gold set pass has changed since this experiment" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_missing_rows_count_as_wrong_and_are_named(
    judgecal: Run, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    full = answers(rows, lambda place, kind: False)
    short: list[str | None] = [None if place < 6 else verdict for place, verdict in enumerate(full)]
    empty = [verdict if place > 2 else "" for place, verdict in enumerate(full)]
    slug = record(judgecal, tmp_path / "r.csv", {"full": full, "short": short, "empty": empty}, rows)
    found = compared(judgecal, slug, "full", "short", "--metric", "accuracy")
    assert found["difference"]["value"] == pytest.approx(6 / 60)
    assert (found["difference"]["n_unscored"], found["difference"]["n_expected"]) == (6, 60)
    assert found["complete_case"]["difference"]["value"] == 0.0
    assert found["notes"][0].startswith("short has no judgement of 6 items (i000-full, ")
    blank = compared(judgecal, slug, "full", "empty", "--metric", "accuracy")
    assert blank["difference"]["n_unscored"] == 3 and blank["notes"] == []


def test_eight_questions(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> None:
    made = made_items(8)
    made_gold(
        workspace_dir / "gold" / "pass",
        made,
        rated(made, {"full": 1, "half": 0, "none": 0}),
        scale='kind = "binary"',
    )
    judges = two_of_three_right(made)
    ran = judgecal("compare", record(judgecal, tmp_path / "r.csv", judges, made), "--json")
    found = one_object(ran)
    assert (found["decision"], found["p_value"], found["smallest_detectable"]) == ("cannot tell", None, None)
    assert found["difference"]["value"] == 0.0 and found["difference"]["low"] is None
    assert "fewer than 10" in found["why"]


# --- looks at test


def test_a_decision_on_test_items_is_a_look(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> None:
    made = made_items(N_GROUPS)
    labels = rated(made, {"full": 1, "half": 0, "none": 0})
    made_gold(workspace_dir / "gold" / "pass", made, labels, scale='kind = "binary"')
    judges = {
        "sharp": answers(made, lambda place, kind: False),
        "lax": answers(made, lambda place, kind: kind == "half"),
        "blind": answers(made, lambda place, kind: kind != "none"),
    }
    slug = record(judgecal, tmp_path / "r.csv", judges, made)
    experiments = workspace_dir / "experiments"
    assert looks_so_far(experiments, load_gold(workspace_dir / "gold" / "pass")) == 0
    first = compared(judgecal, slug, "sharp", "lax")
    assert (first["level"], first["test_looks"], first["reused"]) == (pytest.approx(0.96960364), 1, False)
    second = compared(judgecal, slug, "sharp", "blind")
    assert (second["difference"]["level"], second["test_looks"]) == (pytest.approx(0.99240091), 2)
    assert second["reused"] and "reused: shown at level 0.9924" in second["test_look"]
    # The same question again, in whatever order, is the same look; another metric is another question.
    assert compared(judgecal, slug, "sharp", "lax") == first
    assert compared(judgecal, slug, "lax", "sharp")["level"] == first["level"]
    third = compared(judgecal, slug, "sharp", "lax", "--metric", "kappa", "--level", "0.9")
    assert third["level"] == pytest.approx(1 - 0.1 * 6 / (math.pi * 3) ** 2) and third["test_looks"] == 3
    assert judgecal("compare", slug, "sharp", "lex").code == 2  # refused before it is a look
    assert judgecal("compare", slug, "sharp", "lax", "--metric", "mse").code == 2
    kinds = [json.loads(line)["kind"] for line in (experiments / "test_looks.jsonl").read_text().splitlines()]
    assert kinds == ["report", "decision", "decision", "decision"]
    # Neither another name of the experiment, nor another of the set, nor the test items alone make it a new
    # one.
    asked = ("--judgements", tmp_path / "r.csv", "--split", "test")
    shutil.copytree(workspace_dir / "gold" / "pass", workspace_dir / "gold" / "copy")
    card = workspace_dir / "gold" / "copy" / "card.toml"
    card.write_text(card.read_text().replace('name = "pass"', 'name = "copy"'))
    for gold in ("pass", "copy"):
        assert judgecal("agreement", "--gold", gold, *asked, "--name", f"{gold}-again").code == 0
        again = compared(judgecal, f"{gold}-again", "lax", "sharp")
        assert (again["test_looks"], again["level"]) == (1, first["level"])


def test_what_trained_a_judge_is_left_out(judgecal: Run, workspace_dir: Path) -> None:
    harsh_gold(workspace_dir)
    assert judgecal("optimize", "--gold", "harsh", "--optimizer", "fewshot", "--name", "opt").code == 0
    program = json.loads((workspace_dir / "experiments" / "opt" / "program.json").read_text())
    trained = set(program["judgecal"]["trained_on"])
    assert trained, "the optimiser takes demos from train"
    judges = ("--judge", "correctness_v3@embedded", "--judge", "correctness_v3@embedded#opt")
    assert judgecal("score", "--gold", "harsh", *judges, "--split", "train", "--name", "sc").code == 0
    found = compared(judgecal, "sc")
    gold = load_gold("harsh", workspace=Workspace(workspace_dir, workspace_dir / "experiments"))
    kept = [
        item for item in gold.select("train") if item.group not in trained and item.item_id in gold.labels
    ]
    assert found["difference"]["n_expected"] == len(kept)
    assert found["notes"][0] == f"we left out {len(trained)} questions that a compiled judge was trained on"


# --- how many questions tell two judges apart

PLANNED, REPS = 60, 2


# --- known values


@pytest.mark.shared_data
def test_nq301(judgecal: Run, shared_data: Path) -> None:
    folder = shared_data / "nq301"
    import_nq301(judgecal, folder)
    recorded = ("--judgements", folder / "judgements.csv", "--col", "judge=judge", "--name", "nq")
    assert judgecal("agreement", "--gold", "nq301", *recorded).code == 0
    close = compared(judgecal, "nq", "gpt-4", "text-davinci-003", "--metric", "accuracy")
    # 1,262 and 1,248 of 1,490 right; two empty verdicts of gpt-4 count as wrong.
    assert close["difference"]["value"] == pytest.approx((1262 - 1248) / 1490)
    assert (close["decision"], close["difference"]["n_unscored"]) == ("cannot tell", 2)
    assert close["difference"]["low"] < 0 < close["difference"]["high"]
    assert close["smallest_detectable"] > close["difference"]["value"]
    far = compared(judgecal, "nq", "gpt-4", "bem", "--metric", "accuracy")
    assert far["difference"]["value"] == pytest.approx((1262 - 1201) / 1490)
    assert (far["decision"], far["difference"]["level"]) == ("A", pytest.approx(0.99240091))
    assert far["difference"]["low"] > 0 and far["p_value"] < 0.01


@pytest.mark.parametrize(
    ("level", "n_judges", "n"), [(0.97, 2, 10_000), (0.9997, 4, 400_001), (1 - 1e-8, 2, 2_000_000)]
)
def test_as_many_sign_flips_as_the_lowest_p_takes(level: float, n_judges: int, n: int) -> None:
    """Twenty at the level itself, for each of the pairs: of four judges there are six."""
    assert draws(level, n_judges) == n
