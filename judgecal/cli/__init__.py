"""The command line: parse, call, print. stdout is the result, stderr is progress and messages.

Exit codes: 0 done; 1 nobody within the caps, or a gate that failed; 2 wrong use or bad input, in one message;
3 a gate that cannot tell; 4 items ended unscored; 70 an internal error; 130 interrupted.

A reader that goes away (`judgecal score | head -1`) changes none of them: the command comes to its end, and a
gate says what it decided. A result that stdout cannot take for another reason, a full disk for one, ends in
2, but for a gate and a migration that have decided.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from judgecal.cli.output import Decided, forget_experiment, internal_error, print_text, what_is_kept
from judgecal.cli.parser import CommandGroup
from judgecal.cli.streams import claim_descriptors, safe_streams
from judgecal.errors import InputError, JudgecalError, notice

__all__ = ["app", "main", "run"]

_INTERRUPTED = 130
# rows by the hundred thousand are no cycles: by default they are walked again and again
_GARBAGE = (100_000, 20, 20)

app = typer.Typer(
    help="Calibrate an LLM judge against people before you trust its numbers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    cls=CommandGroup,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from judgecal._version import __version__

        print_text(__version__)
        raise typer.Exit


@app.callback()
def _root(
    ctx: typer.Context,
    workspace: Annotated[
        Path | None,
        typer.Option(
            "--workspace",
            metavar="DIR",
            help="Folder with signatures/ and gold/; by default the current one, else the starter, "
            "read-only.",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    ctx.obj = workspace


def main() -> None:
    """Run the console script and end the process with its exit code."""
    gc.set_threshold(*_GARBAGE)
    claim_descriptors()
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run one command line (argv, its words) and return the exit code; what goes wrong is one message."""
    forget_experiment()
    with safe_streams() as (stdout, _):
        code, decided = _run(argv)
        stdout.flush()
        if stdout.lost is not None and not stdout.reader_gone:
            notice(
                f"judgecal: we could not write the result to stdout: {stdout.lost.strerror}{what_is_kept()}"
            )
            code = code if decided else code or 2
    return code


def _run(argv: Sequence[str]) -> tuple[int, bool]:
    """The exit code, and whether it is a decision."""
    try:
        app(args=_workspace_first(argv), prog_name="judgecal")
    except SystemExit as stop:
        return _parser_ended(stop)
    except KeyboardInterrupt:
        return _interrupted(), False
    except BaseException as error:  # noqa: BLE001 - whatever it is, it must not speak for a gate
        return _broke_off(error), False
    return 0, False


def _parser_ended(stop: SystemExit) -> tuple[int, bool]:
    """How the parser ended the process, which it does in every case.

    Its own code counts where it is that of a command or of wrong use. A broken pipe, which it would turn into
    a 1, is an error like any other, and a `sys.exit` of a signature or a judge an internal one.
    """
    cause = stop.__context__
    if isinstance(cause, typer.Exit):
        return _interrupted() if cause.exit_code == _INTERRUPTED else cause.exit_code, isinstance(
            cause, Decided
        )
    if hasattr(cause, "format_message"):  # the parser's words on wrong use are printed already
        return 2, False
    return _broke_off(cause if isinstance(cause, OSError) else stop), False


def _broke_off(error: BaseException) -> int:
    """One message about what ended the command, and the exit code."""
    if isinstance(error, JudgecalError):
        first, *more = error.problems if isinstance(error, InputError) else [str(error)]
        notice(f"judgecal: {first}", *more)
        return 2
    if isinstance(error, OSError):
        notice(f"judgecal: {error}{what_is_kept()}")
        return 2
    return internal_error(error)


def _interrupted() -> int:
    again = ", the same command resumes (gate with --name)" if what_is_kept() else ""
    notice(f"judgecal: interrupted{what_is_kept()}{again}")
    return _INTERRUPTED


def _workspace_first(argv: Sequence[str]) -> list[str]:
    """Put `--workspace DIR` in front, so that it may stand behind the command as well."""
    words = [*argv]
    for at, word in enumerate(words[: words.index("--")] if "--" in words else words):
        if word == "--workspace" or word.startswith("--workspace="):
            n = 2 if word == "--workspace" else 1
            if at + n > len(words):
                return [word]  # alone, so that the parser says what is missing
            return [*words[at : at + n], *words[:at], *words[at + n :]]
    return words
