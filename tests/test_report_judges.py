"""The page: order, numbers, words of the decision, and text that is shown and never run."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from judgecal.experiment.verdicts import Confusion, Cut
from judgecal.report import html as html_module
from judgecal.report.experiments import IndexLine
from judgecal.report.explorer import MOST_PACKED, Explorer, ExplorerRow
from judgecal.report.html import escaped, index_page
from judgecal.scale import Scale
from tests.support.command import Run
from tests.support.pages import (
    ATTACK,
    ESCAPE,
    LONG,
    OPEN,
    OVERRIDE,
    RIGHT_TO_LEFT,
    Parsed,
    by_kind,
    decided,
    items_of,
    made_set,
    page_of,
    recorded,
)


@pytest.fixture
def rows(workspace_dir: Path) -> list[dict[str, Any]]:
    """20 questions with three answers each, of which the full one passes; texts that attack a page."""
    attacks = [ATTACK, RIGHT_TO_LEFT, OVERRIDE, ESCAPE, LONG, "&lt;b&gt; & \u2028 <!--"]
    marks = [f"tag {ATTACK}"], f"sys {ATTACK}"
    more = [{"answer": text, "tags": marks[0], "system": marks[1]} for text in attacks]
    return made_set(workspace_dir, more=dict(zip(range(1, 60, 3), more, strict=False)))


@pytest.fixture
def slug(judgecal: Run, rows: list[dict[str, Any]], tmp_path: Path) -> str:
    """`sharp` is always right; `lax` passes every half answer and leaves the last item unscored."""
    lax = by_kind(rows, "yes", "yes", "no")
    return recorded(
        judgecal, tmp_path, {"sharp": by_kind(rows, "yes", "no", "no"), "lax": [*lax[:-1], None]}, rows
    )


# --- numbers and order


GRADES = 'kind = "ordinal"\nmin = 0\nmax = 4'
NOMINAL = 'kind = "nominal"'


def test_questions_of_test_are_not_counted_where_they_may_not_choose(
    judgecal: Run, workspace_dir: Path, tmp_path: Path
) -> None:
    halves = OPEN.replace("dev = 1.0\ntest = 0.0", "dev = 0.5\ntest = 0.5")
    made = made_set(workspace_dir, 20, labels=(4, 2, 0), scale=GRADES, splits=halves)
    verdicts = {"right": by_kind(made, 4, 2, 0), "same": [0] * len(made)}
    pick = decided(recorded(judgecal, tmp_path, verdicts, made))[1].pick
    assert pick is not None
    said = re.search(r"(\d+) items on (\d+) questions. Label about ", str(pick.too_few))
    assert said is not None and int(said[1]) == 3 * int(said[2])


@pytest.mark.parametrize(("n_questions", "kind"), [(19, "too few"), (20, "use")])
def test_twenty_questions_are_enough_to_recommend(
    judgecal: Run, workspace_dir: Path, tmp_path: Path, n_questions: int, kind: str
) -> None:
    made = made_set(workspace_dir, n_questions)
    verdicts = {"right": by_kind(made, "yes", "no", "no"), "lax": ["yes"] * len(made)}
    pick = decided(recorded(judgecal, tmp_path, verdicts, made))[1].pick
    assert pick is not None and pick.kind == kind and (pick.judge == "right") is (kind == "use")


# --- errors and examples


def test_errors_at_the_cut() -> None:
    """A percentage judge of binary labels is cut at 50; graded labels at their mark; without one by
    direction."""
    binary, percentage = Scale.parse("binary"), Scale.parse("percentage")
    cut = Cut(binary, percentage)
    errors = [cut.error(*both) for both in ((0.0, 50.0), (0.0, 49.9), (1.0, 49.9), (1.0, 50.0))]
    assert errors == ["false pass", None, "false fail", None]
    assert cut.distance(1.0, 20.0) == pytest.approx(-0.8)
    marked = Cut(Scale.parse("percentage", pass_at=75), percentage)
    assert marked.error(70.0, 75.0) == "false pass" and marked.error(75.0, 100.0) is None
    plain = Cut(percentage, percentage)
    assert (plain.mark, plain.error(10.0, 30.0), plain.error(30.0, 10.0)) == (None, "too high", "too low")
    # within 10 points they agree
    assert plain.error(10.0, 20.0) is None and plain.error(10.0, 20.5) == "too high"
    words = Cut(Scale.parse("nominal"), Scale.parse("nominal"))
    grades, others = Scale.parse("ordinal:0:4"), Scale.parse("ordinal:1:5")
    for one, classed in (
        (cut, True),
        (marked, True),
        (plain, False),
        (words, True),
        (Cut(grades, others), False),
    ):
        assert one.classed is classed
    assert Cut(grades, grades).classed and Cut(Scale.parse("ordinal:0:4", pass_at=2), others).classed
    assert (words.error("a", "b"), words.error("a", "a")) == ("another word", None)
    assert words.distance("a", "b") == 1.0


def test_test_items_are_counted_and_not_shown(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> None:
    made = made_set(workspace_dir, splits="seed = 0")
    slug = recorded(judgecal, tmp_path, {"wrong": by_kind(made, "no", "yes", "yes")}, made)
    kept, found = decided(slug)
    splits = {item.item_id: kept.gold.split_of(item.group) for item in kept.items}
    shown = {item.item_id for item in found.open_items}
    assert "test" in splits.values() and shown and "test" not in {splits[name] for name in shown}
    page, n_test = page_of(judgecal, slug), found.result.gold.n_test_items
    sealed = splits.keys() - shown
    assert n_test == len(sealed) and f"{n_test} test answers sealed" in page
    assert {one["id"] for one in items_of(page)["items"]} == shown
    assert not [name for name in sealed if name in page]
    assert found.shapes[0].confusion == Confusion(("fail", "pass"), ((0, 40), (20, 0)))


@pytest.mark.parametrize(
    ("scale", "labels", "wrong", "classes", "rows"),
    [
        (NOMINAL, ("a", "b", "c"), "b", ("a", "b", "c"), ((0, 19, 0, 1), (0, 20, 0, 0), (0, 20, 0, 0))),
        (GRADES, (4, 2, 0), 2, ("0", "2", "4"), ((0, 20, 0, 0), (0, 20, 0, 0), (0, 19, 0, 1))),
        # 2 once calibrated
        (f"{GRADES}\npass_at = 3", (4, 2, 0), 3, ("fail", "pass"), ((40, 0, 0), (19, 0, 1))),
    ],
    ids=["nominal", "ordinal", "ordinal with a mark"],
)
def test_confusion_of_each_scale(
    judgecal: Run,
    workspace_dir: Path,
    tmp_path: Path,
    scale: str,
    labels: tuple[Any, ...],
    wrong: Any,
    classes: tuple[str, ...],
    rows: tuple[tuple[int, ...], ...],
) -> None:
    """A judge that always says the same, but for the first item (a full answer), where it has no verdict."""
    made = made_set(workspace_dir, labels=labels, scale=scale)
    slug = recorded(judgecal, tmp_path, {"same": [None, *[wrong] * (len(made) - 1)]}, made)
    assert decided(slug)[1].shapes[0].confusion == Confusion(classes, rows)
    page = "".join(Parsed(page_of(judgecal, slug)).text)
    assert "people ↓ judge →" in page and all(one in page for one in classes) and "no verdict" in page


# --- text that is shown and never run


def test_hostile_text_is_carried_as_text(judgecal: Run, slug: str) -> None:
    page = page_of(judgecal, slug)
    parsed, items = Parsed(page), items_of(page)["items"]
    answers = "".join(one["answer"] for one in items)
    assert ATTACK in answers and "␛[31mred␛[0m" in answers and RIGHT_TO_LEFT in answers
    assert "[U+202E]evil" in answers and "&lt;b&gt; & " in answers
    assert any(f"tag {ATTACK}" in one.get("tags", ()) for one in items)
    assert parsed.all("img") == [] and parsed.all("iframe") == []
    assert not [name for _, attributes in parsed.elements for name in attributes if name.startswith("on")]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", page + json.dumps(items))
    script = (Path(html_module.__file__).parent / "templates" / "page.js").read_text(encoding="utf-8")
    assert not re.search("innerHTML|outerHTML|insertAdjacentHTML|document.write|eval", script)


def test_a_page_carries_what_fits_and_says_so() -> None:
    """Texts that do not compress: the worst items stay, and the page tells how many of how many."""
    draw = random.Random(0)
    rows = [
        ExplorerRow(f"i{n}", answer=draw.randbytes(1_000).hex(), marks=[f"case:{n % 7}"])
        for n in range(3_000)
    ]
    made = Explorer("", rows)
    packed = f'<script type="application/octet-stream" id="items">{made.packed.text}</script>'
    carried = items_of(packed)["items"]
    assert len(made.packed.text) <= MOST_PACKED and 1_000 < len(carried) == made.packed.n_rows < 3_000
    assert [one["id"] for one in carried] == [f"i{n}" for n in range(len(carried))]
    assert [carried[n]["marks"] for n in (0, 6, 7)] == [["case:0"], ["case:6"], ["case:0"]]
    worst = f"These are the worst {len(carried):,} of 3,000"
    assert made.capped == f"{worst}: a page carries at most 2 MB of items."


def test_nothing_is_loaded(judgecal: Run, slug: str) -> None:
    page = page_of(judgecal, slug)
    parsed = Parsed(page)
    assert len(parsed.all("script")) == 2 and parsed.all("link") == []
    assert not [one for _, one in parsed.elements if "src" in one or "srcset" in one]
    assert all((one.get("href") or "#").startswith("#") for one in parsed.all("a"))
    known = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?://[^\s\"'<]+", page)) <= known
    assert "url(" not in page.replace("url(#", "") and "@import" not in page
    metas = {meta.get("http-equiv"): meta["content"] for meta in parsed.all("meta") if "content" in meta}
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-"
    assert str(metas["Content-Security-Policy"]).startswith(policy)


@pytest.mark.parametrize(
    ("text", "html", "markdown"),
    [
        (ATTACK, "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;", "\\</script\\>\\<img src=x onerror=alert(1)\\>"),
        ("\x1b[0m\x7f\x85", "␛[0m␡[U+0085]", "␛\\[0m␡\\[U+0085\\]"),
        ("\ud800", "[U+D800]", "\\[U+D800\\]"),
        ("@team | x", "@team | x", "\\@team \\| x"),
    ],
)  # fmt: skip
def test_escapes(text: str, html: str, markdown: str) -> None:
    assert f"<td>{html}</td>" in index_page([IndexLine("s", "score", headline=text)])
    assert escaped(text) == markdown


# --- beside the page


def test_the_index_says_which_set_has_changed(judgecal: Run, slug: str, workspace_dir: Path) -> None:
    ratings = workspace_dir / "gold" / "made" / "ratings.jsonl"
    ratings.write_text(ratings.read_text().replace('"label": 0', '"label": 1', 1))
    assert judgecal("report", "--all").code == 0
    text = (workspace_dir / "experiments" / "index.html").read_text(encoding="utf-8")
    assert f'id="{slug}"' in text and "has changed since this experiment" in text
