"""How typer is derived: the commands from the table, a command's options from its function's parameters.

The help is the same on a terminal and off it, and without rich, which takes longer to load than all of this.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo, ParameterInfo

from judgecal.cli.streams import at_work
from judgecal.commands import COMMANDS, GROUPS, TABLE, Command, load

_WIDTH = 72  # of an example's line
_METAVARS = {int: "N", float: "X", str: "TEXT", Path: "FILE"}


class CommandGroup(TyperGroup):
    """The program, or one of its groups: commands by their lines of the table, which the help lists."""

    def __init__(self, *, name: str | None = None, **more: Any) -> None:
        rows = [row for row in COMMANDS.values() if row.group == (name or "")]
        commands: dict[str, Any] = {row.word: _NotLoaded(row) for row in rows}
        if not name:
            commands |= {group: CommandGroup(name=group, help=text) for group, text in GROUPS.items()}
        shape: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": None, **more}
        super().__init__(name=name, **{**shape, "commands": commands})

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write a section for each part of the table, or the one of a group."""
        parts: dict[str, Sequence[Command]] = dict(TABLE)
        if ctx.parent is not None:
            parts = {"Commands": [row for row in COMMANDS.values() if row.group == self.name]}
        names = {row: row.word if ctx.parent else row.name for rows in parts.values() for row in rows}
        width = max(map(len, names.values()))
        for title, rows in parts.items():
            with formatter.section(title):
                formatter.write_dl([(names[row].ljust(width), row.line) for row in rows])


class _NotLoaded(TyperCommand):
    """A command by its line alone; its module is loaded where its options are needed."""

    def __init__(self, row: Command) -> None:
        super().__init__(row.word, help=row.line)
        self.row = row

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **more: Any) -> Any:
        """As the command itself makes it."""
        return loaded(self.row.name).make_context(info_name, args, parent, **more)


@functools.cache
def loaded(name: str) -> Any:
    """The command of a name with its options."""
    made = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    command = COMMANDS[name]
    made.command(command.word, epilog=_example(command))(grouped(load(command.function)))
    return typer.main.get_command(made)


def _example(command: Command) -> str:
    """What the help of a command ends with; a long line goes on below, as a shell reads it."""
    lines = [f"judgecal {command.name}"]
    for words in re.split(r" (?=-)", command.example):
        if len(lines[-1]) + 1 + len(words) > _WIDTH:
            lines.append(f"  {words}")
        elif words:
            lines[-1] += f" {words}"
    return "\b\nExample:\n  " + " \\\n  ".join(lines)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters that are dataclasses stand on the command line as their fields' options.

    Typer reads the signature: in it each such parameter is replaced by keyword-only ones, which are put
    together again when the command runs.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        options = _options_of(groups[name]) if name in groups else [parameter.replace(annotation=hints[name])]
        parameters += [_described(option.replace(kind=inspect.Parameter.KEYWORD_ONLY)) for option in options]

    @functools.wraps(command)
    def call(**values: Any) -> None:
        serves = "no_open" in values  # a page, and waits for people
        for name, group in groups.items():
            fields = [field.name for field in dataclasses.fields(group)]
            values[name] = group(**{field: values.pop(field) for field in fields})
        called = getattr(values.get("ctx"), "command_path", "judgecal")
        with contextlib.nullcontext() if serves else at_work(called):
            try:
                command(**values)
            except EOFError as error:  # the parser would take it for somebody's wish to stop, and end in 1
                raise RuntimeError("something that was being read has ended too early") from error

    vars(call)["__signature__"] = inspect.Signature(parameters)
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


@functools.cache
def _options_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in dataclasses.fields(group)
    ]


def _described(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter with its option's name, a word for its value in the help, and what completes it."""
    kind, *infos = get_args(parameter.annotation) or (parameter.annotation,)
    if not infos or not isinstance(infos[0], ParameterInfo):
        return parameter
    info = copy.copy(infos[0])  # several commands may share it
    if isinstance(info, OptionInfo):
        if info.default is ...:  # where typer keeps the first name that was given
            info.param_decls = (f"--{parameter.name.replace('_', '-')}",)
        info.metavar = info.metavar or _METAVARS.get(_innermost(kind))
    return parameter.replace(annotation=Annotated[kind, info])


def _innermost(kind: Any) -> Any:
    """`str` of `list[str] | None`."""
    inner = [part for part in get_args(kind) if part is not NoneType]
    return _innermost(inner[0]) if inner else kind
