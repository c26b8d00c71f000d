"""The command line: parse, call, print. stdout is the result, stderr is progress and messages.

Exit codes: 0 done; 1 nobody within the caps, or a gate that failed; 2 wrong use or bad input, in one message;
3 a gate that cannot tell; 4 items ended unscored; 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from judgecal.cli import gold as gold_group
from judgecal.cli.agreement import agreement
from judgecal.cli.answer import answer
from judgecal.cli.compare import compare
from judgecal.cli.gate import gate
from judgecal.cli.judge import judge
from judgecal.cli.migrate import migrate
from judgecal.cli.optimize import optimize
from judgecal.cli.options import State, grouped
from judgecal.cli.report import report
from judgecal.cli.retrieval import retrieval
from judgecal.cli.score import score
from judgecal.cli.select import select
from judgecal.cli.workspace import init, models
from judgecal.errors import JudgecalError, notice

__all__ = ["app", "main", "run"]

_INTERRUPTED = 130

app = typer.Typer(
    help="Calibrate an LLM judge against people before you trust its numbers.",
    no_args_is_help=True,
    # Panels and colours for people; plain text where it is piped, also to an encoding without line drawing.
    rich_markup_mode="rich" if sys.stdout is not None and sys.stdout.isatty() else None,
    pretty_exceptions_enable=False,
)

_PANELS: dict[str, dict[Callable[..., None], str]] = {
    "Start": {init: "judgecal init my-workspace", models: "judgecal models"},
    "Calibrate a judge": {
        score: "judgecal score --models embedded --gold starter",
        agreement: "judgecal agreement --judgements verdicts.csv --gold my-set",
        compare: "judgecal compare EXPERIMENT A B",
        optimize: "judgecal optimize --model gemini-flash",
        select: "judgecal select EXPERIMENT -o judge.lock.json",
    },
    "Use it and watch it": {
        gate: "judgecal gate --lock judge.lock.json",
        migrate: "judgecal migrate --lock judge.lock.json --to gemini-flash",
        judge: "judgecal judge answers.csv --lock judge.lock.json -o judged.csv --question q --answer a",
    },
    "The other parts of a RAG system": {
        retrieval: "judgecal retrieval --gold starter",
        answer: "judgecal answer --models embedded --gold starter",
    },
    "Read": {report: "judgecal report EXPERIMENT --format html"},
}
"""Where each command stands in the help, with an example that its own help ends with."""

app.add_typer(gold_group.app, name="gold", rich_help_panel="Start")
for _panel, _commands in _PANELS.items():
    for _command, _example in _commands.items():
        app.command(rich_help_panel=_panel, epilog=f"Example: {_example}")(grouped(_command))


def _version(wanted: bool) -> None:
    if wanted:
        from judgecal import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    ctx: typer.Context,
    workspace: Annotated[
        Path | None,
        typer.Option(
            "--workspace",
            metavar="DIR",
            help="Folder with signatures/ and gold/; by default the current one, else the starter, read-only.",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    ctx.obj = State(workspace)


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run one command line and give its exit code; what goes wrong is one message on stderr."""
    try:
        app(args=_workspace_first(argv), prog_name="judgecal")
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 2
        return _interrupted() if code == _INTERRUPTED else code  # the parser's own way to end on Ctrl-C
    except KeyboardInterrupt:
        return _interrupted()
    except JudgecalError as error:
        return _failed(str(error))
    except OSError as error:
        return _failed(f"{error}; what was judged so far is kept")
    return 0


def _failed(message: str) -> int:
    notice(f"judgecal: {message}")
    return 2


def _interrupted() -> int:
    _failed("interrupted; what was judged is kept, the same command resumes (gate with --name)")
    return _INTERRUPTED


def _workspace_first(argv: Sequence[str]) -> list[str]:
    """Put `--workspace DIR` in front, so that it may stand behind the command as well."""
    front: list[str] = []
    rest: list[str] = []
    words = iter(argv)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word == "--workspace":
            value = next(words, None)
            if value is None:
                return [word]  # alone, so that the parser says what is missing and takes no command for it
            front += [word, value]
        elif word.startswith("--workspace="):
            front.append(word)
        else:
            rest.append(word)
    return [*front, *rest]
