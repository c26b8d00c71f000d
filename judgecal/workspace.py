"""The workspace: `signatures/`, `prompts/`, `suites/`, `gold/`, `experiments/` and `judgecal.toml`, in one
folder.

It is the user's property, in the way of a dbt project. The wheel carries a starter copy, which is read-only:
results then go to `./experiments`. Nothing is ever written into the installed package.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from judgecal.errors import InputError, JudgecalError, listed, unknown_name

_LONGEST_IN_DRAFT = 200  # characters of a file's name, as file systems take 255 bytes
CONFIG_TABLES = ("schema", "models", "columns")
"""The keys of `judgecal.toml`."""
_COPIED = ("signatures", "prompts", "suites", "gold", "judgecal.toml")
_NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
_EXPERIMENTS_README = """# Experiments

A line for each experiment worth remembering, newest first: the question, the answer, the date. Keep the ones
that did not work: they save somebody the second try.
"""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where things are."""

    root: Path  # the folder that holds `signatures/` and `gold/`
    experiments: Path  # where results go: `root/experiments`, or `./experiments` for the read-only starter
    is_starter: bool = False  # whether the root is the installed starter copy

    @property
    def signatures(self) -> Path:
        return self.root / "signatures"

    @property
    def prompts(self) -> Path:
        return self.root / "prompts"

    @property
    def suites(self) -> Path:
        return self.root / "suites"

    @property
    def gold(self) -> Path:
        return self.root / "gold"

    @property
    def gold_sets(self) -> list[str]:
        """The names of the gold sets, sorted: the folders of `gold/` that hold a card or items."""
        if not self.gold.is_dir():
            return []
        folders = (folder for folder in self.gold.iterdir() if not folder.name.startswith("."))
        return sorted(folder.name for folder in folders if is_gold_set(folder))

    def find_gold(self, name: str) -> Path:
        """Return the path of a gold set's folder, from its name or path; InputError: there is none."""
        names, folder = self.gold_sets, Path(name)
        if name in names:
            return self.gold / name
        if not folder.is_dir():
            raise unknown_name("gold set", name, names)
        return folder

    def find_experiment(self, name: str) -> Path:
        """Return the path of an experiment's folder, from its name (slug) or path; InputError if none."""
        made = {path.parent.name: path.parent for path in self.experiments.glob("*/experiment.toml")}
        folder = made.get(name, Path(name))
        if not (folder / "experiment.toml").exists():
            raise unknown_name("experiment", name, sorted(made))
        return folder

    @property
    def config_file(self) -> Path:
        return self.root / "judgecal.toml"

    def require_writable(self, what: str) -> None:
        """Refuse to write into the installed starter; `what` is a text that names it."""
        if self.is_starter:
            raise InputError(
                f"{what} needs a workspace of your own, and the installed starter is read-only: "
                "run `judgecal init DIR`, then `cd DIR`"
            )


def find_workspace(explicit: Path | None = None) -> Workspace:
    """Return the one Workspace: the explicit folder, else the current one, else the read-only starter."""
    if explicit is not None:
        if not _is_workspace(explicit):
            raise InputError(
                f"{explicit} is not a workspace (it lacks signatures/ or gold/): run `judgecal init "
                f"{explicit}`"
            )
        return Workspace(explicit, explicit / "experiments")
    here = Path.cwd()
    if _is_workspace(here):
        return Workspace(here, here / "experiments")
    return Workspace(starter_root(), here / "experiments", is_starter=True)


def _is_workspace(folder: Path) -> bool:
    return (folder / "signatures").is_dir() and (folder / "gold").is_dir()


def starter_root() -> Path:
    """Return the path of the starter's folder: in the installed package, or, where editable, above it."""
    package = Path(__file__).resolve().parent
    for root in (package / "starter", package.parent):
        if _is_workspace(root):
            return root
    raise JudgecalError(
        f"the starter workspace is missing from the installation at {package}: reinstall judgecal"
    )


def init_workspace(target: Path) -> Workspace:
    """Write a copy of the starter into a new or empty target folder, and return its Workspace."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} is not empty: choose a new folder")
    source = starter_root()
    target.mkdir(parents=True, exist_ok=True)
    for name in _COPIED:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, ignore=_NOT_COPIED)
        else:
            shutil.copyfile(source / name, target / name)
    (target / "experiments").mkdir()
    (target / "experiments" / "README.md").write_text(_EXPERIMENTS_README, encoding="utf-8")
    return Workspace(target, target / "experiments")


def is_gold_set(folder: Path) -> bool:
    """Whether a folder holds a card or items."""
    return (folder / "card.toml").is_file() or (folder / "items.jsonl").is_file()


def no_such_file(path: Path) -> InputError:
    """The error for a table that is not there."""
    return InputError(f"{shown(path)}: there is no such file")


def no_such_lock(path: Path) -> InputError:
    """Return the InputError for a lock that is not at a path, with those beside its place."""
    locks = sorted(
        str(path.with_name(file.name)) for file in path.parent.glob("*.lock.json") if file.is_file()
    )
    there = f"did you mean {listed(locks)}?" if locks else "judgecal select writes one"
    return InputError(f"{path}: there is no lock here; {there}")


def shown(path: Path) -> str:
    """Return the text that messages print of a path: relative where it lies below the current folder."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


_NO_FILE = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f\ud800-\udfff]')
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_LONGEST_NAME = 150  # characters: a file system takes 255 bytes


def name_problem(name: str) -> str | None:
    """Return why a file or folder of this name cannot be on every system, Windows too; None where it can."""
    if not name or name.startswith(".") or name.endswith((".", " ")):
        return "it is empty, begins with a dot, or ends in a dot or a space"
    if match := _NO_FILE.search(name):
        return f"no file on Windows may have {match[0]!r} in its name"
    if _DEVICES.fullmatch(name):
        return "on Windows this is the name of a device"
    return f"it has more than {_LONGEST_NAME} characters" if len(name) > _LONGEST_NAME else None


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a draft that takes the file's place, whole, when the block ends without an exception.

    Its name cannot be foreseen and it is made anew, so that no link put there before leads the writing
    elsewhere.
    """
    draft = path.with_name(f".{path.name[:_LONGEST_IN_DRAFT]}.{secrets.token_hex(8)}.draft")
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        yield draft
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)  # gone already where it took its place


def write_text(path: Path, text: str) -> None:
    """Write a file in one step, from its path and its text: UTF-8, line ends as they are.

    An unpaired surrogate, which has no UTF-8, is written as its escape: JSON gives it back as it was.
    """
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
