"""The list of all experiments, and the page of each, made again where what it is made of has changed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

from judgecal.engine import Progress
from judgecal.errors import InputError
from judgecal.experiment.folder import code_sha, read_config
from judgecal.report.experiments import PAGE, REPORTS, report_of
from judgecal.report.html import index_page
from judgecal.selection.choice import MARGIN
from judgecal.workspace import Workspace, write_text

_STAMP = re.compile(r'name="judgecal" content="([^"]*)"')
_HEAD = 20_000  # bytes of a page within which its stamp stands


@dataclass(frozen=True, slots=True)
class Listed:
    """A line of the index."""

    slug: str
    command: str
    made: str = ""  # the day of its result in words
    kind: str = ""
    headline: str = ""  # what it came to, or why it cannot be read
    about: str = ""  # what was measured on what
    state: str = "done"  # or `unfinished` (the command did not come to its end), `not readable`
    page: str | None = None  # where its page lies, beside the index; None where it has none


def write_index(workspace: Workspace, *, margin: float = MARGIN) -> Path:
    """Write `experiments/index.html` and the page of each experiment that has changed; gives its path.

    An experiment that cannot be read stands in it with the reason: one broken folder hides no other.
    """
    folders = sorted(path.parent for path in workspace.experiments.glob("*/experiment.toml"))
    if not folders:
        raise InputError(f"{workspace.experiments}: there is no experiment yet")
    path = workspace.experiments / "index.html"
    if not path.exists():
        write_text(path, "")  # so that the pages made now link to it
    progress, listed = Progress("pages", len(folders)), list[Listed]()
    for folder in folders:
        listed.append(_listed(workspace, folder, margin))
        progress.add(scored=True, cost_usd=0.0)
    progress.close()
    listed.sort(key=lambda line: (line.state != "done", line.slug))
    write_text(path, index_page(listed))
    return path


def _listed(workspace: Workspace, folder: Path, margin: float) -> Listed:
    """A line, from the page where that is still right, else from the experiment, whose page is then made."""
    page, slug, command = folder / PAGE, folder.name, ""
    here = f"{slug}/{PAGE}" if page.exists() else None
    finished = (folder / "summary.json").exists()
    try:
        command = str(read_config(folder).get("command"))
        if command not in REPORTS:
            raise InputError("there is no report of this kind")
        stamp, about = _stamp(workspace, folder, margin), _says_of_itself(page)
        if about.get("stamp") != stamp:
            about = report_of(workspace, slug, margin=margin).write(page, stamp=stamp)
    except InputError as error:
        unfinished = command in REPORTS and not finished
        state = "unfinished" if unfinished else "not readable"
        return Listed(slug, command, headline=str(error), state=state, page=here)
    texts = {name: str(about.get(name, "")) for name in ("made", "kind", "headline", "about")}
    return Listed(slug, command, **texts, state="done" if finished else "unfinished", page=f"{slug}/{PAGE}")


def _says_of_itself(page: Path) -> dict[str, Any]:
    """What a page says of itself; empty where there is none."""
    if not page.exists():
        return {}
    with page.open("rb") as opened:
        head = opened.read(_HEAD).decode("utf-8", "replace")
    match = _STAMP.search(head)
    about: dict[str, Any] = json.loads(unescape(match[1])) if match else {}
    return about


def _stamp(workspace: Workspace, folder: Path, margin: float) -> str:
    """16 hex digits over everything that a page is made of."""
    digest = hashlib.sha256(json.dumps([code_sha(), margin]).encode())
    for path in _sources(workspace, folder):
        digest.update(str(path.relative_to(path.parent.parent)).encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _sources(workspace: Workspace, folder: Path) -> Iterator[Path]:
    """The experiment's own files, the gold set, the signatures in whatever folder, the suites."""
    names = ("experiment.toml", "summary.json", "judgements.jsonl", "program.json")
    yield from (path for name in names if (path := folder / name).is_file())
    gold = read_config(folder).get("gold")
    if isinstance(gold, dict) and "set" in gold:
        yield from sorted(path for path in (workspace.gold / str(gold["set"])).glob("*") if path.is_file())
    yield from sorted(workspace.signatures.rglob("*.py"))
    yield from sorted(workspace.suites.glob("*.toml"))
