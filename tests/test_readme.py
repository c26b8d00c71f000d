"""The README and the handbook: what they show runs, what they quote is printed, what is generated is up to
date.

`python -m tests.support.handbook` writes the outputs that are quoted, and the generated pages, anew.
"""

from __future__ import annotations

import doctest
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import judgecal
from judgecal.stats.metrics import METRICS
from tests import ten_minutes
from tests.support.command import ROOT, SHARED_DATA
from tests.support.handbook import DOCS, needs_data, pages, refreshed, runs, stable
from tests.support.reference import GENERATED

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
EVERY = [page for page in [*pages(), *GENERATED] if page.suffix == ".md"]


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [page for page in pages() if runs(_read(page))], ids=_name)
def test_commands_run_and_print_what_is_quoted(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = _read(page)
    if needs_data(text) and not SHARED_DATA.is_dir():
        pytest.skip("the public human-labelled data is not beside this checkout (../shared/data)")
    monkeypatch.setenv("COLUMNS", "80")
    assert stable(refreshed(text)) == stable(text), f"run `python -m tests.support.handbook {_name(page)}`"


@pytest.mark.parametrize("page", list(GENERATED), ids=_name)
def test_the_reference_is_the_codes_own(page: Path) -> None:
    assert _read(page) == GENERATED[page](), "run `python -m tests.support.handbook`"


@pytest.mark.parametrize("page", EVERY, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    """Files that are there, and headings in them; addresses elsewhere cannot be tried here."""
    broken = []
    for match in _LINK.finditer(_FENCED.sub("", _read(page))):
        link = match[1] or match[2]
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert broken == []


def _anchors(page: Path) -> set[str]:
    return {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(_read(page))
    }


def test_the_readme_is_short_and_names_no_package_on_the_index() -> None:
    assert len(_read(ROOT / "README.md").splitlines()) <= 110
    assert [
        _name(page) for page in EVERY if re.search(r"pip install (-\S+ )*['\"]?judgecal", _read(page))
    ] == []


def test_the_navigation_has_every_page() -> None:
    listed = set(re.findall(r"[\w/-]+\.md", _read(ROOT / "mkdocs.yml")))
    assert listed == {page.relative_to(DOCS).as_posix() for page in EVERY if page.is_relative_to(DOCS)}


@pytest.mark.parametrize(
    "name", [name for name in judgecal.__all__ if ">>>" in (getattr(judgecal, name).__doc__ or "")]
)
def test_examples_of_docstrings_run(name: str, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace_dir)
    value: Any = getattr(judgecal, name)
    test = doctest.DocTestParser().get_doctest(value.__doc__, {"judgecal": judgecal}, name, None, None)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


def test_every_extra_is_named() -> None:
    extras = tomllib.loads(_read(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]
    assert [name for name in extras if f"| `{name}` |" not in _read(DOCS / "install.md")] == []


def test_every_metric_has_its_formula() -> None:
    text = _read(DOCS / "statistics.md")
    assert [name for name in METRICS if f"`{name}`" not in text] == []


def test_the_welcome_plays_what_a_newcomer_reads() -> None:
    """`make welcome` takes the commands of these pages, all of them."""
    for name in ten_minutes.PAGES:
        page = _read(ROOT / name)
        played = ten_minutes.commands(page)
        assert played[0] in (
            "judgecal agreement examples/judged.csv --labels-by project",
            "judgecal init demo",
        )
        assert played.index("cd demo") == played.index("judgecal init demo") + 1
        assert len(played) == len(re.findall(r"(?m)^\$ ", page))
