"""Whose code a lock runs: the workspace's own where it is what was locked, else nobody's without
`--trust-lock`.

A signature is code and runs when it is loaded, so the text in a lock, which may come from anybody, is only
held against the workspace's file. With `--trust-lock` it runs from a temporary folder that is gone
afterwards.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from judgecal.errors import InputError, notice
from judgecal.signatures import read_source
from judgecal.workspace import Workspace, name_problem, shown

_PART = (
    r"[^\W_](?:[\w .-]*[\w-])?"  # no leading dot or underscore, no end that Windows drops, no drive, no NUL
)
_NAME = re.compile(f"{_PART}(?:/{_PART})*")
_LONGEST = 200  # characters


def check_name(name: str, where: str) -> None:
    """Refuse a name out of a lock that could lead out of the folder that it is looked up in.

    Raises InputError: it is empty, longer than 200 characters, absolute, has a drive or a `..`, or ends in
    `.py`.
    """
    if (
        len(name) > _LONGEST
        or not _NAME.fullmatch(name)
        or name.endswith(".py")
        or any(map(name_problem, name.split("/")))
    ):
        raise InputError(
            f"{where}: {name[:80]!r} is no name of a file of the workspace: letters, digits, spaces, _, - and . are, "
            "and / between folders; nothing of this lock was run"
        )


@contextlib.contextmanager
def home_of_signature(
    name: str, text: str, *, judge: str, workspace: Workspace, trust_lock: bool
) -> Iterator[Workspace]:
    """The workspace that a locked signature is loaded from: the real one, or a temporary one with the lock's
    text.

    Raises InputError: the workspace has not this text under this name, and the lock's own is not trusted.
    """
    check_name(name, f"{judge}: signature.name of its lock")
    differs = _difference(workspace.signatures / f"{name}.py", text)
    if differs is None:
        yield workspace
        return
    if not trust_lock:
        raise InputError(
            f"{judge}: {differs}. A signature is code that runs when it is loaded, so the lock's own text is not run: "
            "bring the file back as it was locked; or, where you trust who made this lock, run the lock's own text "
            "with --trust-lock"
        )
    notice(f"judgecal: {judge}: {differs}; the lock's own text is run, as --trust-lock says")
    with alone(name, text, workspace) as home:
        yield home


@contextlib.contextmanager
def alone(name: str, text: str, workspace: Workspace) -> Iterator[Workspace]:
    """A temporary workspace of one signature, with the models of the real one; taken away when the block
    ends."""
    check_name(name, "signature")
    with tempfile.TemporaryDirectory(prefix="judgecal-lock-") as folder:
        home = Workspace(Path(folder), Path(folder) / "experiments")
        path = home.signatures / f"{name}.py"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
        if workspace.config_file.exists():
            shutil.copyfile(workspace.config_file, home.config_file)
        yield home


def _difference(path: Path, text: str) -> str | None:
    """How the workspace's file is not the locked text, whatever the line ends; None where it is."""
    if not path.is_file():
        return f"the workspace has no {shown(path)}, which the lock holds a text of"
    ours, theirs = read_source(path), text.replace("\r\n", "\n").replace("\r", "\n")
    if ours == theirs:
        return None
    pairs = zip_longest(ours.split("\n"), theirs.split("\n"))
    line = next(number for number, (mine, other) in enumerate(pairs, start=1) if mine != other)
    return f"{shown(path)} is not the text that was locked (it differs from line {line} on)"
