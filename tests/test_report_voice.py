"""One voice: terminal, page, Markdown and index say of the same judges the same, and nothing that is not
shown."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from judgecal.report.wording import CHIPS
from tests.support.command import Run
from tests.support.gold import made_gold, made_items
from tests.support.golden import GOLDEN
from tests.support.pages import BINARY, OPEN, PERCENTAGE, Parsed, by_kind, made_set, printed_by, recorded


def right(made: Sequence[dict[str, Any]], *, but_every: int = 0) -> list[str]:
    """Whether the answer is whole; every so many items otherwise."""
    said = [row["kind"] == "full" for row in made]
    return ["yes" if one != (but_every > 0 and n % but_every == 0) else "no" for n, one in enumerate(said)]


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("n", "more"), [(16, "4 more questions"), (18, "2 more questions"), (19, "1 more question")]
)
def test_few_questions_recommend_nobody(
    judgecal: Run, workspace_dir: Path, tmp_path: Path, n: int, more: str
) -> None:
    """Perfect or not, how many more is said."""
    made = made_set(workspace_dir, n)
    slug = recorded(judgecal, tmp_path, {"good": right(made), "poor": right(made, but_every=3)}, made)
    found = json.loads(judgecal("report", slug, "--json").out)["headline"]
    assert found["kind"] == "too few"
    assert found["sentence"] == "Too few questions to tell whom to use."
    assert found["because"][0].startswith("So far good reaches 100.0% [8")
    assert f"{3 * n} items on {n} questions. Label about {more}" in " ".join(
        [*found["because"], *found["more"]]
    )


def test_twenty_questions_are_enough(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> None:
    made = made_set(workspace_dir, 20)
    slug = recorded(judgecal, tmp_path, {"poor": right(made, but_every=2)}, made)
    assert json.loads(judgecal("report", slug, "--json").out)["headline"]["kind"] == "none"


def test_select_chooses_nobody_by_few_questions(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> None:
    """As the report of the same judges; whoever wants to may have one all the same, and is told."""
    made = made_set(workspace_dir, 25, splits="seed = 0\ntrain = 0.3\ndev = 0.3\ntest = 0.4")
    slug = recorded(judgecal, tmp_path, {"good": right(made), "poor": right(made, but_every=3)}, made)
    report = json.loads(judgecal("report", slug, "--json").out)["headline"]
    refused = judgecal("select", slug, "--json")
    found = json.loads(refused.out)
    assert (refused.code, found["chosen"]) == (1, None)
    assert found["headline"]["kind"] == report["kind"] == "too few"
    n = found["gold"]["n_groups"]
    assert f"{3 * n} items on {n} questions. Label" in " ".join([*report["because"], *report["more"]])
    assert judgecal("select", slug).said.startswith(report["sentence"])
    anyway = judgecal("select", slug, "--allow-below-floor")
    assert anyway.code == 0
    assert anyway.said.startswith("good was taken, on too few questions to tell.")


def test_a_thin_stratum_is_named(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> None:
    """Thirty questions of which six answers pass: four more are asked for, and the questions that bring
    them."""
    made = made_items(30)
    labels = [(row["item_id"], "ann", int(n % 15 == 0)) for n, row in enumerate(made)]
    made_gold(workspace_dir / "gold" / "made", made, labels, scale=BINARY, splits=OPEN)
    verdicts = ["yes" if label else "no" for _, _, label in labels]
    slug = recorded(judgecal, tmp_path, {"a": verdicts}, made)
    found = json.loads(judgecal("report", slug, "--json").out)["headline"]
    more = 'Label about 20 more questions, with at least 4 more "pass" labels.'
    assert found["kind"] == "too few" and " ".join([*found["because"], *found["more"]]).find(more) > 0


def test_judges_with_the_same_verdicts_tie(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> None:
    """Once calibrated, also one that says the same in other numbers."""
    made = made_set(workspace_dir, 40, scale=PERCENTAGE, labels=(100, 50, 0))
    grades = [grade + n % 3 * 10 for n, grade in enumerate(by_kind(made, 80.0, 40.0, 0.0))]
    slug = recorded(judgecal, tmp_path, {"a": grades, "b": [one / 2 for one in grades], "c": grades}, made)
    choice = json.loads(judgecal("report", slug, "--json").out)["choice"]
    assert (choice["kind"], choice["judge"], sorted(choice["tied"])) == ("tied", "a", ["b", "c"])


PARTLY = "seed = {seed}\ntrain = 0.3\ndev = 0.4\ntest = 0.3"


def small_table(folder: Path, seed: int) -> Path:
    """A random small set with up to four recorded judges: few questions or passes, prices that are known or
    not, twins, constants and judges without a verdict here and there; the file of their verdicts."""
    rng = random.Random(seed)
    made = made_items(rng.choice([14, 45, 70, 100]), seed=seed)
    passing = rng.choice([0.03, 0.3, 0.5])
    labels = {row["item_id"]: int(rng.random() < passing) for row in made}
    labels[made[0]["item_id"]] = 1
    ratings = [(item, "ann", label) for item, label in labels.items()]
    made_gold(folder / "gold" / "made", made, ratings, scale=BINARY, splits=PARTLY.format(seed=seed))
    verdicts: dict[str, list[int | None]] = {}
    for number in range(rng.randint(1, 4)):
        right, lost = rng.choice([0.5, 0.8, 0.97, 0.99, 1.0]), rng.choice([0.0, 0.0, 0.1])
        own = [label if rng.random() < right else 1 - label for label in labels.values()]
        made_up = [own, [0] * len(own), next(iter(verdicts.values()), own)][rng.choice([0, 0, 0, 0, 1, 2])]
        verdicts[f"judge{number}"] = [None if rng.random() < lost else one for one in made_up]
    prices = {judge: rng.choice([{}, {}, {"cost_usd": 0.0}, {"cost_usd": 0.01}]) for judge in verdicts}
    late = {judge: rng.choice([{}, {"latency_s": round(rng.random(), 2)}]) for judge in verdicts}
    rows = [
        {"item_id": item, "judge": judge, "verdict": verdict, **prices[judge], **late[judge]}
        for judge, own in verdicts.items()
        for item, verdict in zip(labels, own, strict=True)
        if verdict is not None
    ]
    path = folder / "table.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("seed", range(12))
def test_random_small_sets_have_one_voice(judgecal: Run, workspace_dir: Path, seed: int) -> None:
    """agreement, report, the index and select name one judge, one kind and one next step."""
    table = small_table(workspace_dir, seed)
    argv = ("--gold", "made", "--judgements", table, "--split", "all", "--name", "rec")
    said = printed_by(judgecal, "agreement", *argv)
    report = printed_by(judgecal, "report", "rec")
    assert report["headline"] == said["headline"]
    assert judgecal("report", "--all").code == 0
    index = Parsed((workspace_dir / "experiments" / "index.html").read_text(encoding="utf-8"))
    assert said["headline"]["sentence"] in flat("".join(index.text))
    ran = judgecal("select", "rec", "--json")
    found = json.loads(ran.out)
    choice = report["choice"]
    assert ran.code == (0 if choice["judge"] else 1), ran.err
    assert (found["chosen"], found["headline"]["kind"]) == (choice["judge"], said["headline"]["kind"])
    assert found["choice"] == choice
    assert found["headline"]["sentence"] == said["headline"]["sentence"]
    if choice["judge"] is None:
        assert found["headline"]["next"] == said["headline"]["next"]
        return
    assert said["headline"]["sentence"].removeprefix("Use ").startswith(choice["judge"])
    assert said["headline"]["next"] == "judgecal select rec"


def test_every_headline_is_short() -> None:
    """At most 12 words, and 40 below them, in whatever the golden runs print as JSON."""
    headlines = []
    for path in sorted(GOLDEN.rglob("*.txt")):
        parts = path.read_text(encoding="utf-8").split('"headline": ')[1:]
        headlines += [json.JSONDecoder().raw_decode(part)[0] for part in parts]
    assert len(headlines) >= 20
    assert not [said["sentence"] for said in headlines if len(said["sentence"].split()) > 12]
    assert not [said for said in headlines if len(" ".join(said["because"]).split()) > 40]
    assert {said["chip"] for said in headlines} <= {"", *CHIPS}


# --- the first screen


GOLDEN_PAGES = sorted(GOLDEN.glob("*/*.page.txt"))


@pytest.mark.parametrize("page", GOLDEN_PAGES, ids=lambda page: page.stem)
def test_no_page_sends_its_reader_to_itself(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    slug, following = page.name.split()[2].partition(".")[0], text.partition("Do this next")[2]
    assert following.splitlines()[0:1] and f"judgecal report {slug}" not in following.partition("<h2")[0]


def test_three_open_questions_stand_open_and_the_others_unfold(
    judgecal: Run, workspace_dir: Path, tmp_path: Path
) -> None:
    """One column a card, so that no short card leaves room under it; what is known to be worse is no question."""
    made = made_set(workspace_dir, 40)
    slug = recorded(judgecal, tmp_path, {"poor": right(made, but_every=2)}, made)
    found = json.loads(judgecal("report", slug, "--json").out)["headline"]
    unknown = found["unknown"]
    assert len(unknown) > 3 and any("below the free" in why for why in (*found["because"], *found["more"]))
    assert not any(question.startswith("Whether it beats the free") for question in unknown)
    judgecal("report", slug, "--format", "html")
    page = (workspace_dir / "experiments" / slug / "report.html").read_text(encoding="utf-8")
    open_, _, folded = page.partition("What nobody knows yet")[2].partition("<details>")
    assert open_.count("<li>") == 3 and f"<summary>{len(unknown) - 3} more</summary>" in folded
    assert page.count('<div class="column">') == 2
