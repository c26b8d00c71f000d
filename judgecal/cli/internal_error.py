"""An error of ours: one message, a traceback in a file, and exit code 70, which nothing else ends in.

So no crash passes for an answer: a `gate` that ends in 1 has decided.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import tempfile
import traceback
from pathlib import Path

from judgecal.errors import JudgecalError, notice
from judgecal.workspace import find_workspace, shown

INTERNAL = 70
"""`EX_SOFTWARE` of sysexits.h."""


def experiment_folder() -> Path | None:
    """The folder of the experiment that this command works on; None before there is one."""
    folder = sys.modules.get("judgecal.experiment.folder")
    opened: Path | None = folder.OPENED.get() if folder else None
    return opened


def forget_experiment() -> None:
    """A new command has opened none yet, whatever one before it in the same process did."""
    if folder := sys.modules.get("judgecal.experiment.folder"):
        folder.OPENED.set(None)


def what_is_kept() -> str:
    """Where the judgements are that were made before the command broke off, as a part of a sentence; else
    empty."""
    folder = experiment_folder()
    journals = [folder / name for name in ("judgements.jsonl", "partitions")] if folder else []
    return "".join(f"; what was judged so far is kept in {shown(one)}" for one in journals if one.exists())


def internal_error(error: BaseException) -> int:
    """Say that judgecal itself has failed, and leave the traceback in a file; gives the exit code."""
    what = f"{type(error).__name__}: {' '.join(str(error).split())}"
    path = _write(_without_secrets(_traceback(error)))
    notice(
        f"judgecal: an internal error, and no fault of yours: {_without_secrets(what)[:300]}{what_is_kept()}",
        f"the traceback is in {path}: please read it through and report it where you got judgecal; the "
        "exit code is "
        f"{INTERNAL}, which says nothing about any judge"
        if path
        else f"the traceback could not be written anywhere; the exit code is {INTERNAL}",
    )
    return INTERNAL


def _traceback(error: BaseException) -> str:
    from judgecal._version import __version__

    command = sys.argv[1:2]  # the rest may hold texts of the user's
    where = f"Python {platform.python_version()}, {platform.platform()}"
    about = f"judgecal {__version__}, {where}, command {command}"
    return "".join([about, "\n\n", *traceback.format_exception(error, limit=200)])


def _write(text: str) -> Path | None:
    """The first folder that takes it: the experiment's, the user's cache, the temporary one."""
    for folder in _folders():
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            # A new file under a name that nobody can foresee, for its owner alone.
            number, name = tempfile.mkstemp(prefix="traceback-", suffix=".txt", dir=folder)
            with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            return Path(name)
    return None


def _folders() -> list[Path]:
    folders = [experiment_folder()]
    with contextlib.suppress(Exception):  # what is broken may be just that
        from judgecal.engine.cache import cache_folder

        folders.append(cache_folder())
    with contextlib.suppress(OSError):
        folders.append(Path(tempfile.gettempdir()))
    return [folder for folder in folders if folder is not None]


def _without_secrets(text: str) -> str:
    """A text with stars in the place of every key of the environment and of the workspace's aliases."""
    try:
        from judgecal.engine.transport.redaction import redacted, secrets_of
        from judgecal.models import EMBEDDED, ModelSpec, load_catalogue

        specs = [ModelSpec(EMBEDDED, "judgecal/embedded")]
        with contextlib.suppress(JudgecalError, OSError, UnicodeError):
            specs += load_catalogue(find_workspace()).specs.values()
        return redacted(text, list(dict.fromkeys(secret for spec in specs for secret in secrets_of(spec))))
    except Exception:  # noqa: BLE001 - what is broken may be just that: then no text is the safe one
        return "(left out, as it could not be cleared of keys)"
