"""`plan`: how many questions tell two judges apart. How many labels a rate takes is in `test_cli_rate.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judgecal.stats import compare
from tests.support.command import Run, one_object
from tests.support.gold import made_gold, made_items, rated

N, REPS = 60, 2
SPLITS = {
    "dev": "seed = 0\ntrain = 0.0\ndev = 1.0\ntest = 0.0",
    "test": "seed = 0\ntrain = 0.0\ndev = 0.0\ntest = 1.0",
}


def recorded(judgecal: Run, folder: Path, split: str) -> str:
    """Two recorded judges, right on 85 and 80% of single answers; the slug of their experiment."""
    made = made_items(N)
    labels = rated(made, {"full": 1, "half": 0, "none": 0})
    made_gold(folder / "gold" / split, made, labels, scale='kind = "binary"', splits=SPLITS[split])
    rng = np.random.default_rng(2)
    lines = ["item_id,judge,verdict"]
    for row in made:
        for judge, right in (("sharp", 0.85), ("dull", 0.8)):
            verdict = (row["kind"] == "full") == (rng.random() < right)
            lines.append(f"{row['item_id']},{judge},{'yes' if verdict else 'no'}")
    path = folder / f"{split}.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    ran = judgecal(
        "agreement", "--gold", split, "--judgements", path, "--split", split, "--name", f"from-{split}"
    )
    assert ran.code == 0, ran.err
    return f"from-{split}"


def test_questions_that_tell_two_judges_apart(judgecal: Run, workspace_dir: Path) -> None:
    slug = recorded(judgecal, workspace_dir, "dev")
    found = one_object(judgecal("plan", slug, "--json"))
    assert (found["a"], found["b"], found["metric"], found["difference"]) == (
        "sharp",
        "dull",
        "macro_agreement",
        0.03,
    )
    assert found["n_questions"] == N and found["smallest_detectable"] > 0.03 and found["questions"] > N
    assert f"{found['questions']:,} questions" in found["headline"]["sentence"]
    assert found["headline"]["next"] == f"judgecal report {found['experiment']} --open"
    sizes = [point["difference"] for point in found["curve"]]
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] < 0.03
    least = next(one for one in found["rows"] if one["what"] == "the least of its interval")
    assert (least["difference"], least["questions"]) == (0.0, None)  # the interval holds 0
    half = one_object(judgecal("plan", slug, "dull", "sharp", "--difference", "0.015", "--json"))
    assert half["questions"] == pytest.approx(4 * found["questions"], rel=0.1)  # for half the difference
    compared = one_object(judgecal("compare", slug, "--json"))
    assert found["smallest_detectable"] == pytest.approx(compared["smallest_detectable"])
    again = one_object(judgecal("plan", compared["experiment"], "--json"))
    assert again["questions"] == found["questions"] and again["seen"] == found["seen"]
    shown = judgecal("plan", slug)
    lines = shown.out.splitlines()
    assert shown.code == 0 and len(lines) <= 30 and max(map(len, lines)) <= 80
    assert lines[-1].startswith("next: judgecal report ")
    page = workspace_dir / "experiments" / found["experiment"] / "report.html"
    assert judgecal("report", found["experiment"], "--format", "html").code == 0
    assert "smallest difference, points" in page.read_text(encoding="utf-8")
    text = judgecal("report", found["experiment"], "--format", "md").out
    assert found["headline"]["sentence"] in text and "| questions | smallest difference |" in text


def test_what_cannot_be_planned_is_one_message(judgecal: Run, workspace_dir: Path) -> None:
    sealed = recorded(judgecal, workspace_dir, "test")
    looks = workspace_dir / "experiments" / "test_looks.jsonl"
    before = looks.read_text() if looks.exists() else ""

    def refused(*command: Any) -> str:
        ran = judgecal("plan", *command)
        assert ran.code == 2 and ran.out == "", ran.out
        return " ".join(ran.err.split())

    assert "a plan looks at no test label" in refused(sealed)
    assert (looks.read_text() if looks.exists() else "") == before
    assert judgecal("compare", sealed, "--name", "looked").code == 0
    assert one_object(judgecal("plan", "looked", "--json"))["level"] > 0.95  # the look is paid for
    assert "name both" in refused("looked", "sharp", "blunt")
    assert "a difference that is to be shown is above 0" in refused("looked", "--difference", "0")
    assert "compared by macro_agreement" in refused("looked", "--metric", "accuracy")
    assert "say what to plan" in refused()
    assert "--half-width is of the other plan" in refused("looked", "--half-width", "0.05")


def test_so_many_questions_find_the_difference_in_80_percent() -> None:
    """Planned from 100 questions on which two judges are as good as each other."""
    rng = np.random.default_rng(0)
    how: dict[str, Any] = {"scale": "binary", "metric": "accuracy", "calibrate": False}

    def judged(n: int, *rates: float) -> list[Any]:
        gold = rng.random(n) < 0.5
        return [gold.astype(int), *((gold == (rng.random(n) < rate)).astype(int) for rate in rates)]

    pilots = [compare(*judged(100, 0.8, 0.8), **how, n_perm=99).planned for _ in range(40)]
    told = []
    for pilot in pilots:
        assert pilot is not None
        n = pilot.groups_for(0.1)
        assert n is not None and pilot.detectable(n) <= 0.1 < pilot.detectable(n - 1)
        told += [compare(*judged(n, 0.85, 0.75), **how, n_perm=400).decision == "A" for _ in range(REPS)]
    assert 0.68 < np.mean(told) < 0.95  # of 80 runs two standard errors are 9 points
