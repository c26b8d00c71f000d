"""The pages of every kind: no test item in any output, nothing loaded, cut off or out of reach, on paper two
pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Browser, Tab, browser, needs_browser
from tests.support.every_command import PLANTED, EveryCommand
from tests.support.pages import items_of

pytestmark = pytest.mark.xdist_group("every_command")

KINDS = (
    "three", "taken", "compared", "chosen", "gated", "moved", "judged", "rated", "better", "found", "told",
    "evaluated", "making", "index",
)  # fmt: skip
"""The experiments of `RUNS`; beside them the list of all."""


@pytest.fixture(scope="module")
def pages(every_command: EveryCommand) -> dict[str, Path]:
    folder = every_command.folder / "experiments"
    assert every_command("report", "--all").code == 0
    found = {slug: folder / slug / "report.html" for slug in every_command.slugs}
    found = {slug: path for slug, path in found.items() if slug in KINDS}  # others asked something anew
    return {**found, "index": folder / "index.html"}


# --- test items are counted and never shown


def shown(text: str, questions: frozenset[str]) -> set[str]:
    return {word for word in PLANTED if word in text} | (set(re.findall(r"\bq\d{3}\b", text)) & questions)


def test_no_test_item_is_printed(every_command: EveryCommand) -> None:
    """But for `gold check`, which names what to mend in a set to those who keep it."""
    for command, ran in every_command.ran.items():
        if command != "gold check":
            assert not shown(ran.out, every_command.sealed_questions), command


@pytest.mark.parametrize("form", [("--full",), ("--format", "md"), ("--json",)])
def test_no_test_item_is_in_a_report(every_command: EveryCommand, form: tuple[str, ...]) -> None:
    """Scripts read ids, and no text."""
    for slug in every_command.slugs:
        said = every_command("report", slug, *form).out
        assert said and not shown(said, frozenset()) - ({"sealed-starter"} if "--json" in form else set()), (
            slug
        )
        if "--json" not in form:
            assert not shown(said, every_command.sealed_questions), slug


def test_no_test_item_is_on_a_page(every_command: EveryCommand, pages: dict[str, Path]) -> None:
    for kind, path in pages.items():
        page = path.read_text(encoding="utf-8")
        items = json.dumps(items_of(page)) if "application/octet-stream" in page else ""
        assert not shown(f"{unescape(page)} {items}", every_command.sealed_questions), kind
    three = pages["three"].read_text(encoding="utf-8")
    assert "test answers sealed" in three and items_of(three)["items"]


# --- in a browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def tab(chromium: Browser) -> Tab:
    return chromium.tab()


def in_browser(test: Any) -> Any:
    return needs_browser[0](pytest.mark.parametrize("kind", KINDS)(test))


WIDER = (
    "[...document.querySelectorAll('body *')].filter(one => !one.closest('.scroll') && "
    "!one.closest('.list') &&"
    " !one.closest('.skip') && !one.closest('.unseen') && !one.closest('details:not([open])') &&"
    " one.getClientRects().length && one.getBoundingClientRect().right > innerWidth + 1)"
    ".map(one => one.outerHTML.slice(0, 200))"
)
SCROLLED = (
    "[...document.querySelectorAll('.scroll, .list')].filter(one => !one.closest('details:not([open])') &&"
    " one.scrollWidth > one.clientWidth + 1).map(one => one.getAttribute('aria-label'))"
)


@in_browser
def test_nothing_is_cut_off(tab: Tab, pages: dict[str, Path], kind: str) -> None:
    tab.size(1100, 800)
    tab.open(pages[kind].as_uri())
    assert tab.run(SCROLLED) == [] and tab.run(WIDER) == []
    assert tab.problems == [] and set(tab.requests) <= {path.as_uri() for path in pages.values()}
    tab.size(390, 844, phone=True)
    assert tab.run("document.documentElement.scrollWidth") <= 390 and tab.run(WIDER) == []
    assert tab.run(SCROLLED.replace(".scroll, ", "")) == []


@in_browser
def test_axe_finds_nothing(tab: Tab, pages: dict[str, Path], kind: str) -> None:
    """Contrast, names, roles and landmarks, by axe-core, with everything unfolded, by day and by night."""
    tab.size(1280, 800)
    tab.open(pages[kind].as_uri())
    tab.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    tab.run((files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8") + ";0")
    for theme in ("light", "dark"):
        tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        found: list[dict[str, Any]] = tab.run("axe.run(document).then(found => found.violations)")
        assert not found, json.dumps(
            [(one["id"], [node["html"][:200] for node in one["nodes"][:4]]) for one in found]
        )
