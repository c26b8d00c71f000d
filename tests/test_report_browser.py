"""The page in a real browser: its controls work by mouse and keyboard, nothing is loaded, nothing goes wrong."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Run
from tests.support.gold import made_gold, made_items, rated
from tests.support.pages import ATTACK, OPEN, page_of, recorded

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
ENTER, TAB, END = "\ue007", "\ue004", "\ue010"


def _found(names: Sequence[str]) -> str | None:
    return next((path for name in names if (path := shutil.which(name))), None)


BROWSER, DRIVER = _found(BROWSERS), _found(("chromedriver",))
pytestmark = [
    pytest.mark.skipif(
        BROWSER is None or DRIVER is None,
        reason="no Chromium with chromedriver on this machine (Debian: apt-get install chromium chromium-driver)",
    ),
    pytest.mark.xdist_group("browser"),
]


@dataclass
class Browser:
    """A session of chromedriver, by its wire protocol."""

    url: str

    def call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, {"Content-Type": "application/json"}, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            pytest.fail(f"{path}: {json.load(error)['value']['message'][:500]}")

    def run(self, script: str, *args: Any) -> Any:
        return self.call("POST", "/execute/sync", {"script": script, "args": args})

    def one(self, selector: str) -> str:
        found: str = self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]
        return found

    def click(self, selector: str) -> None:
        self.call("POST", f"/element/{self.one(selector)}/click")

    def keys(self, selector: str, text: str) -> None:
        self.call("POST", f"/element/{self.one(selector)}/value", {"text": text})

    def log(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("POST", "/se/log", {"type": kind})
        return found

    def shown(self) -> list[str]:
        """The items of the examples that can be seen, in their order."""
        script = (
            "return [...document.querySelectorAll('.case')].filter(one => !one.hidden)"
            ".map(one => one.querySelector('.meta').textContent.split(' · ')[0].replace('item ', ''))"
        )
        found: list[str] = self.run(script)
        return found


def _capabilities(profile: str) -> dict[str, Any]:
    options = {
        "binary": BROWSER,
        "args": [*FLAGS, f"--user-data-dir={profile}", "--window-size=1200,1600"],
        "perfLoggingPrefs": {"enableNetwork": True},
    }
    wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
    return {"capabilities": {"alwaysMatch": {"browserName": "chrome", **wanted}}}


@contextlib.contextmanager
def _driver() -> Iterator[str]:
    """chromedriver on a port of its own choice; gives its address."""
    assert DRIVER is not None
    process = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        line = next((line for line in process.stdout if "was started successfully on port" in line), "")
        yield f"http://127.0.0.1:{line.rstrip().rstrip('.').rpartition(' ')[2]}"
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.fixture(scope="module")
def session() -> Iterator[Browser]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, _driver() as address:
        root = Browser(address)
        made = root.call("POST", "/session", _capabilities(profile))
        browser = Browser(f"{address}/session/{made['sessionId']}")
        yield browser
        with contextlib.suppress(urllib.error.URLError):
            browser.call("DELETE", "")


@pytest.fixture
def page(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> Path:
    """20 questions of three answers; `high` passes the half answers, `low` fails the full ones."""
    made = made_items(20)
    for place, row in enumerate(made):
        row["tags"] = [row["kind"], f"tag {ATTACK}"] if row["kind"] == "half" else [row["kind"]]
        row["system"] = "one" if place % 2 else "two"
        row["answer"] += f" {ATTACK}"
    labels = rated(made, {"full": 100, "half": 50, "none": 0})
    made_gold(
        workspace_dir / "gold" / "made",
        made,
        labels,
        scale='kind = "percentage"\nmin = 0\nmax = 100\npass_at = 75',
        splits=OPEN,
    )
    high = [{"full": 100, "half": 76 + place % 20, "none": 0}[row["kind"]] for place, row in enumerate(made)]
    low = [{"full": place % 20, "half": 50, "none": 0}[row["kind"]] for place, row in enumerate(made)]
    slug = recorded(judgecal, tmp_path, {"high": high, "low": low}, made)
    page_of(judgecal, slug)
    return workspace_dir / "experiments" / slug / "report.html"


@pytest.fixture
def opened(session: Browser, page: Path) -> Browser:
    session.call("POST", "/window/rect", {"width": 1200, "height": 1600})
    session.log("performance")
    session.log("browser")
    session.call("POST", "/url", {"url": page.as_uri()})
    return session


def requests(browser: Browser) -> list[str]:
    messages = [json.loads(one["message"])["message"] for one in browser.log("performance")]
    return [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]


def test_filters_and_sorts(opened: Browser, page: Path) -> None:
    first = opened.shown()
    assert len(first) == 6 and opened.run("return document.getElementById('more').hidden") is False
    opened.click("#more")
    everything = opened.shown()
    assert len(everything) == 20 and everything[:6] == first  # ten false passes of high, ten false fails of low

    opened.click('select[name="judge"] option[value="low"]')
    opened.click("#more")
    assert len(opened.shown()) == 10 and all(item.endswith("-full") for item in opened.shown())
    opened.click('select[name="kind"] option[value="false pass"]')
    assert opened.shown() == []
    assert opened.run("return document.getElementById('shown').textContent") == "0 of 0 shown; 20 examples in all"

    opened.click('form.sieve button[type="reset"]')
    time.sleep(0.2)
    assert opened.shown() == first
    opened.click('select[name="tag"] option[value="half"]')
    assert all(item.endswith("-half") for item in opened.shown())
    opened.click('select[name="system"] option[value="one"]')
    opened.click("#more") if opened.run("return !document.getElementById('more').hidden") else None
    metas = opened.run("return [...document.querySelectorAll('.case:not([hidden]) .meta')].map(one => one.textContent)")
    assert metas and all("system one" in meta for meta in metas)

    opened.click('form.sieve button[type="reset"]')
    time.sleep(0.2)
    opened.click('select[name="sort"] option[value="item"]')
    opened.click("#more")
    assert opened.shown() == sorted(everything)
    assert [one for one in opened.log("browser") if one["level"] in ("SEVERE", "WARNING")] == []
    assert [url for url in requests(opened) if url != page.as_uri()] == []


def test_the_keyboard_reaches_everything(opened: Browser) -> None:
    """Tab from the top comes to the skip link, the sections, and the controls; a key press filters."""
    opened.run("document.body.focus()")
    seen = []
    for _ in range(16):
        opened.call("POST", "/actions", _press(TAB))
        seen.append(
            opened.run(
                "const one = document.activeElement; return one.name || one.className || one.hash || one.tagName"
            )
        )
    assert seen[:6] == ["skip", "#losses", "#agreement", "#errors", "#pairs", "#diagnostics"]
    assert [name for name in seen if name in ("judge", "kind", "tag", "system", "sort", "text")] == [
        "judge",
        "kind",
        "tag",
        "system",
        "sort",
        "text",
    ]
    opened.keys('select[name="judge"]', "low")
    assert opened.run("return document.querySelector('select[name=judge]').value") == "low"
    assert opened.shown() and all(item.endswith("-full") for item in opened.shown())
    opened.keys("#more", ENTER)
    assert opened.run("return document.activeElement.className") == "case"


def _press(key: str) -> dict[str, Any]:
    steps = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
    return {"actions": [{"type": "key", "id": "keyboard", "actions": steps}]}


def test_hostile_text_does_not_run(opened: Browser) -> None:
    assert opened.run("return document.images.length") == 0
    assert opened.run("return document.scripts.length") == 2
    assert ATTACK in opened.run("return document.getElementById('cases').textContent")
    assert opened.run("return document.querySelector('select[name=tag]').textContent.includes(arguments[0])", ATTACK)


def test_nothing_runs_off_a_phone(opened: Browser) -> None:
    """At 390 px only what scrolls by itself is wider than the page; the narrow plot takes the place of the wide one."""
    opened.call(
        "POST",
        "/goog/cdp/execute",
        {
            "cmd": "Emulation.setDeviceMetricsOverride",
            "params": {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True},
        },
    )
    try:
        assert opened.run("return document.documentElement.scrollWidth") <= 390
        assert opened.run("return getComputedStyle(document.querySelector('.wide')).display") == "none"
        assert opened.run("return document.querySelector('.narrow').getBoundingClientRect().width") <= 390
    finally:
        opened.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.clearDeviceMetricsOverride", "params": {}})


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_can_be_read_in_either_theme(opened: Browser, theme: str) -> None:
    """Contrast of words against the page, by WCAG's formula: 4.5 and more for every colour that words are in."""
    params = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    opened.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": params})
    script = (
        "const style = getComputedStyle(document.documentElement);"
        "return arguments[0].map(name => style.getPropertyValue(name).trim())"
    )
    ground, tint, *inks = opened.run(script, ["--ground", "--tint", "--ink", "--soft", "--accent"])
    for ink in inks:
        for under in (ground, tint):
            assert contrast(ink, under) >= 4.5, (ink, under)


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`."""
    channels = [int(colour[at : at + 2], 16) / 255.0 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_it_can_be_read_without_its_script(session: Browser, page: Path) -> None:
    session.call(
        "POST", "/goog/cdp/execute", {"cmd": "Emulation.setScriptExecutionDisabled", "params": {"value": True}}
    )
    try:
        session.call("POST", "/url", {"url": page.as_uri()})
    finally:
        session.call(
            "POST", "/goog/cdp/execute", {"cmd": "Emulation.setScriptExecutionDisabled", "params": {"value": False}}
        )
    assert len(session.shown()) == 20
    assert session.run("return document.querySelector('form.sieve').hidden") is True
