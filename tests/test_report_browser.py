"""The page in a real browser: the explorer by mouse and keyboard, nothing is loaded, nothing goes wrong or
runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Browser, Tab, browser, needs_browser
from tests.support.command import Run
from tests.support.gold import made_items
from tests.support.pages import ATTACK, by_kind, made_set, page_of, recorded

pytestmark = needs_browser

IDS = "[...document.querySelectorAll('#rows a')].map(one => one.textContent)"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def page(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> Path:
    """20 questions of three answers; `high` passes the half answers, `low` fails the full ones and the first
    half."""
    more = {
        place: {
            "tags": [row["kind"], f"tag {ATTACK}"] if row["kind"] == "half" else [row["kind"]],
            "system": "one" if place % 2 else "two",
            "answer": f"{row['answer']} {ATTACK}",
        }
        for place, row in enumerate(made_items(20))
    }
    made = made_set(workspace_dir, more=more)
    low = ["yes" if row["kind"] == "half" and place < 3 else "no" for place, row in enumerate(made)]
    slug = recorded(judgecal, tmp_path, {"high": by_kind(made, "yes", "yes", "no"), "low": low}, made)
    page_of(judgecal, slug)
    return workspace_dir / "experiments" / slug / "report.html"


@pytest.fixture
def opened(chromium: Browser, page: Path) -> Tab:
    tab = chromium.tab()
    tab.size(1280, 800)
    return tab.open(page.as_uri())


def chip(tab: Tab, name: str) -> None:
    tab.run(f"document.querySelector('#chips [data-mark={json.dumps(name)}]').click()")


def choose(tab: Tab, control: str, value: str) -> None:
    tab.run(
        f"(() => {{ const one = document.getElementById('{control}'); one.value = "
        f"{json.dumps(value)};one.dispatchEvent(new Event('input', {{bubbles: true}})); }})()"
    )


def test_filters(opened: Tab, page: Path) -> None:
    everything = opened.run(IDS)
    assert (
        len(everything) == 40
        and opened.run("document.getElementById('shown').textContent") == "40 of 40 shown"
    )
    chip(opened, "wrong:low")
    wrong = opened.run(IDS)
    assert len(wrong) == 21 and sum(item.endswith("-full") for item in wrong) == 20
    chip(opened, "wrong:all")
    (both,) = opened.run(IDS)
    assert both.endswith("-half")
    chip(opened, "wrong:all")
    counts = (
        "Object.fromEntries([...document.querySelectorAll('#chips button:not([hidden])')].map("
        "one => [one.dataset.mark, Number(one.lastChild.textContent)]))"
    )
    assert opened.run(counts) == {"wrong:all": 1, "wrong:high": 1, "wrong:low": 21, "case:false pass": 1}
    chip(opened, "wrong:low")
    assert opened.run(counts)["wrong:low"] == 21 and opened.run(counts)["case:false pass"] == 20
    opened.run("document.getElementById('quiet').click()")  # 20 empty answers, which both fail as people do
    assert len(opened.run(IDS)) == 60 and opened.run(IDS)[:40] == everything
    opened.run("document.getElementById('quiet').click()")
    choose(opened, "tag", f"tag {ATTACK}")
    assert {item.rpartition("-")[2] for item in opened.run(IDS)} == {"half"}
    choose(opened, "system", "one")
    assert 0 < len(opened.run(IDS)) < 20
    assert opened.run("document.getElementById('one').textContent.includes('system one')")
    choose(opened, "system", "")
    choose(opened, "tag", "")
    choose(opened, "find", everything[7].upper())
    assert opened.run(IDS) == [everything[7]]
    choose(opened, "find", "")
    assert opened.problems == [] and set(opened.requests) == {page.as_uri()}


def test_hostile_text_does_not_run(opened: Tab) -> None:
    assert opened.run("document.images.length") == 0 and opened.run("document.scripts.length") == 2
    shown = json.dumps(ATTACK)
    assert opened.run(f"document.getElementById('one').textContent.includes({shown})")
    assert opened.run(f"document.getElementById('tag').textContent.includes({shown})")
