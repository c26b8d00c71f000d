"""The labelling page in a real browser: by keys alone, on a phone, by night, with texts that attack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Browser, Tab, browser, needs_browser
from tests.support.command import Run
from tests.support.desk import ratings, served, waiting
from tests.support.pages import ATTACK, ESCAPE, OVERRIDE, RIGHT_TO_LEFT

pytestmark = needs_browser

WHERE = "document.getElementById('where').textContent"
PROBLEM = "document.getElementById('problem').textContent"
TEXTS = "document.getElementById('texts').textContent"
RUBRIC = "# Rubric\n\nYes where every fact that is asked for is there.\n"
ANCHORS = 'kind = "binary"\n\n[scale.anchors]\nyes = "all four goods"\nno = "a good is missing or wrong"'


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


def with_rubric(folder: Path) -> Path:
    (folder / "RUBRIC.md").write_text(RUBRIC, encoding="utf-8")
    card = (folder / "card.toml").read_text(encoding="utf-8")
    (folder / "card.toml").write_text(f'rubric = "RUBRIC.md"\n{card}', encoding="utf-8")
    return folder


def opened(chromium: Browser, link: str, *, size: tuple[int, int] = (1280, 800)) -> Tab:
    tab = chromium.tab()
    tab.size(*size, phone=size[0] < 500)
    tab.open(link)
    tab.until("document.documentElement.dataset.ready == 'true'")
    return tab


def say(tab: Tab, keys: str) -> None:
    """A label by its key, then Enter; until the next item is there."""
    before = tab.run(WHERE)
    tab.press(keys)
    tab.key("Enter")
    tab.until(f"{WHERE} != {json.dumps(before)}")


def test_forty_items_by_keys_alone(
    chromium: Browser, judgecal: Run, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = with_rubric(waiting(workspace_dir / "gold" / "small", 40, scale=ANCHORS))
    with served(
        workspace_dir, "label", "small", "--raters", "ann,bob", "--overlap", "1", "--seed", "3"
    ) as desk:
        ann = opened(chromium, desk.links["ann"])
        assert ann.run(WHERE) == "Item 1 of 40" and "all four goods" in ann.run("document.body.innerText")
        assert "every fact that is asked for" in ann.run("document.body.innerText")
        for place in range(10):
            say(ann, "y2"[place % 2])
        assert ann.run(WHERE) == "Item 11 of 40" and len(ratings(folder)) == 10
        ann.press("w")
        ann.press("no date given")
        ann.key("Escape")
        say(ann, "n")
        row = ratings(folder)[-1]
        assert (row["label"], row["note"]) == (0, "no date given")
        ann.key("ArrowLeft")
        ann.until(f"{WHERE} == 'Item labelled before'")
        assert ann.run("document.getElementById('note').value") == "no date given"
        ann.key("ArrowRight")
        ann.until(f"{WHERE} == 'Item 12 of 40'")
        text = ann.run(TEXTS)
        ann.call("Page.reload")
        ann.until(f"document.readyState == 'complete' && {WHERE} == 'Item 12 of 40'")
        assert ann.run(TEXTS) == text
        say(ann, "d")
        assert ratings(folder)[-1]["reason"] == "cannot tell" and "label" not in ratings(folder)[-1]
        for _ in range(28):
            say(ann, "1")
        assert ann.run(WHERE) == "Nothing is left for you" and len(ratings(folder)) == 40
        bob = opened(chromium, desk.links["bob"])
        for place in range(40):
            say(bob, "1" if place % 3 else "n")
        for tab in (ann, bob):
            tab.run("document.querySelector('#texts button').click()")
            tab.until(f"{TEXTS}.includes('Thank you')")
        assert "judgecal gold label small --adjudicate" in bob.run(TEXTS)
        assert ann.problems == bob.problems == []
        assert {url.partition("#")[0].rpartition("/")[0] for url in ann.requests if not url.startswith("data:")} <= {
            desk.address[:-1], f"{desk.address}act"
        }  # fmt: skip
        code, out, err = desk.ended()
    assert code == 0 and out.splitlines()[0] == "40 of 40 items of small are labelled.", (out, err)
    assert out.rstrip().endswith("next: judgecal gold label small --adjudicate")
    _adjudicates(chromium, workspace_dir, folder)
    monkeypatch.chdir(workspace_dir)
    assert judgecal("score", "--gold", "small", "--split", "all").code in (0, 4)
    assert judgecal("gold", "check", "small").code == 0


def _adjudicates(chromium: Browser, workspace: Path, folder: Path) -> None:
    with served(workspace, "label", "small", "--adjudicate") as desk:
        tab = opened(chromium, desk.links["gold"])
        n = int(tab.run(WHERE).split()[-1])
        text = tab.run("document.body.innerText")
        assert (
            n > 5
            and "What raters said" in text
            and "ann" not in tab.run(TEXTS)
            and "bob" not in tab.run(TEXTS)
        )
        tab.press("1")
        tab.key("Enter")
        tab.until(f"{PROBLEM}.includes('Say why')")
        for place in range(n):
            if place:
                tab.press("1w")
            tab.press("it is there")
            before = tab.run(WHERE)
            tab.key("Enter")
            tab.until(f"{WHERE} != {json.dumps(before)}")
        code, out, err = desk.interrupt()
    assert code == 0, err
    gold = [row for row in ratings(folder) if row["rater"] == "gold"]
    assert len(gold) == n and {(row["label"], row["reason"]) for row in gold} == {(1, "it is there")}
    assert f"{n} of {n} items on which raters of small differ are settled." in out
    assert out.rstrip().endswith("next: judgecal score --gold small")


def test_hostile_items_are_text(chromium: Browser, workspace_dir: Path) -> None:
    hostile = f"{ATTACK} <script>document.title='run'</script> {OVERRIDE} {ESCAPE} [[ ## verdict ## ]]"
    texts = {
        "question": f"Why? {hostile}",
        "answer": f"{RIGHT_TO_LEFT} {hostile} " + "palaver " * 25_000,
        "reference_answer": [hostile, "another"],
        "contexts": [hostile, {"text": "long " * 40_000}],
        "conversation": [{"role": hostile, "content": hostile}],
        "fields": {f"note {ATTACK}": hostile},
    }
    folder = waiting(workspace_dir / "gold" / "bad", 3, texts=texts)
    with served(workspace_dir, "label", "bad") as desk:
        tab = opened(chromium, desk.links["rater-1"])
        assert tab.run("document.images.length") == 0 and tab.run("document.scripts.length") == 1
        assert tab.run("document.title") == "Label bad · judgecal"
        shown = tab.run("document.body.innerText")
        assert (
            ATTACK in shown
            and "[[ ## verdict ## ]]" in shown
            and RIGHT_TO_LEFT in shown
            and OVERRIDE not in shown
        )
        tab.press("m")
        assert tab.run("document.querySelectorAll('#texts mark').length") > 0
        tab.press("o")
        tab.until("document.querySelectorAll('#texts details[open]').length > 0")
        tab.size(390, 844, phone=True)
        assert tab.run("document.documentElement.scrollWidth") <= 390
        say(tab, "1")
        assert len(ratings(folder)) == 1 and tab.problems == []
