"""What a shell is told when somebody presses Tab: names of the workspace, read off its files without loading
them.

The scripts for bash, zsh and fish are typer's (`--install-completion`, `--show-completion`). Each calls the
program with the line so far in its environment. Bash cuts words at `@`, `=` and `:`; what it cut stays cut.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import typer

from judgecal.cli.output import print_text
from judgecal.errors import UNSEEN, JudgecalError
from judgecal.workspace import Workspace, find_workspace

_ASKED = "_JUDGECAL_COMPLETE"  # the variable in which a shell says which of them it is
_SWITCHES = ("--install-completion", "--show-completion")


def asked(argv: Sequence[str]) -> bool:
    """Whether a shell asks for the end of a line, or somebody for the script that makes it ask."""
    return _ASKED in os.environ or (len(argv) > 0 and argv[0] in _SWITCHES)


def completing(run: Callable[[], object]) -> int:
    """Answer; gives the exit code that the shell's script expects.

    Args:
        run: the program on its arguments; typer answers in it, and ends it.
    """
    answer, code = io.StringIO(), 0
    with contextlib.redirect_stdout(answer):
        try:
            run()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
    for line in answer.getvalue().splitlines():
        print_text(UNSEEN.sub("", line))
    return code


def _names(found: Callable[[Workspace], Iterable[str]], *, several: bool = False) -> Callable[..., list[str]]:
    """A completer of one name, or of `several` with commas between them."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        *chosen, last = incomplete.split(",") if several else [incomplete]
        before = "".join(f"{name}," for name in chosen)
        try:
            names = found(find_workspace(ctx.find_root().params.get("workspace")))
            return [before + name for name in sorted(names) if name.startswith(last) and name not in chosen]
        except (JudgecalError, OSError):  # a line that is being typed is no place for a message
            return []

    return complete


def gold_sets(workspace: Workspace) -> Iterable[str]:
    """The folders of `gold/` that hold a card or items."""
    found = {
        path.parent.name for name in ("card.toml", "items.jsonl") for path in workspace.gold.glob(f"*/{name}")
    }
    return (name for name in found if not name.startswith("."))


def signatures(workspace: Workspace) -> Iterable[str]:
    """The signature files, as they are named."""
    paths = (path.relative_to(workspace.signatures) for path in workspace.signatures.rglob("*.py"))
    shown = (path for path in paths if not any(part.startswith(("_", ".")) for part in path.parts))
    return (path.with_suffix("").as_posix() for path in shown)


def suites(workspace: Workspace) -> Iterable[str]:
    """The suites."""
    return (path.stem for path in workspace.suites.glob("*.toml") if not path.stem.startswith(("_", ".")))


def experiments(workspace: Workspace) -> Iterable[str]:
    """The experiments, by their slugs."""
    return (path.parent.name for path in workspace.experiments.glob("*/experiment.toml"))


def models(workspace: Workspace) -> Iterable[str]:
    """The models' aliases, those of `judgecal.toml` too."""
    from judgecal.models import load_catalogue

    return load_catalogue(workspace).specs


def locks(workspace: Workspace) -> Iterable[str]:
    """The locks of the current folder; elsewhere the shell completes paths itself."""
    return (path.name for path in Path().glob("*.lock.json"))


def local_judges(workspace: Workspace) -> Iterable[str]:
    """The local judges as they are set by default."""
    files = (Path(__file__).parent.parent / "judges" / "local").glob("[!_]*.py")
    return (f"{path.stem}@local" for path in files)


def judges(workspace: Workspace) -> Iterable[str]:
    """Every signature with every model, and the local judges."""
    aliases = list(models(workspace))
    return (
        *local_judges(workspace),
        *(f"{name}@{model}" for name in signatures(workspace) for model in aliases),
    )


def _judges_of_experiment(ctx: typer.Context, incomplete: str) -> list[str]:
    """The judges of the experiment that stands before them."""
    slug = str(ctx.params.get("experiment") or "")

    def found(workspace: Workspace) -> Iterable[str]:
        try:
            config = tomllib.loads(
                (workspace.experiments / slug / "experiment.toml").read_text(encoding="utf-8")
            )
            return [str(one["judge"]) for one in config["judges"] if "judge" in one]
        except (ValueError, KeyError, TypeError):
            return ()

    return _names(found)(ctx, incomplete)


def _sources(workspace: Workspace) -> Iterable[str]:
    return {*gold_sets(workspace), *experiments(workspace)}


_OF = {
    "gold": _names(gold_sets),
    "gold_set": _names(gold_sets),
    "labels": _names(gold_sets),
    "source": _names(_sources),
    "signature": _names(signatures),
    "signatures": _names(signatures, several=True),
    "suite": _names(suites),
    "experiment": _names(experiments),
    "model": _names(models),
    "models": _names(models, several=True),
    "reflection_model": _names(models),
    "lock": _names(locks),
    "judge": _names(judges),
    "to": _names(lambda workspace: {*models(workspace), *judges(workspace)}),
    "judges": _judges_of_experiment,
}
"""Parameter, by its name in Python -> what completes it."""


def completer(parameter: inspect.Parameter) -> Callable[..., list[str]] | None:
    """What completes a parameter of a command; None where the shell does, or nobody."""
    return _OF.get(parameter.name)
