"""How typer is derived: the commands from the table, a command's options from its function's parameters.

The help is the same on a terminal and off it, and without rich, which takes longer to load than all of this.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import difflib
import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo, ParameterInfo

from judgecal.commands import COMMANDS, GROUPS, TABLE, Command, load
from judgecal.errors import InputError, refuse
from judgecal.workspace import find_workspace, no_such_file, no_such_lock

_WIDTH = 72  # of an example's line
_NEAR = 0.6  # how like two names are where one may be meant by the other
_METAVARS = {int: "N", float: "X", str: "TEXT", Path: "FILE"}


@contextlib.contextmanager
def _options_explained(command: Any, path: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if type(error).__name__ != "NoSuchOption":  # of the parser that typer carries within it
            raise
        name: str = getattr(error, "option_name", "")
        meant = _meant(name, [param for param in command.params if param.param_type_name == "option"])
        raise InputError(f"{path} has no option {name}: {meant or f'{path} --help lists them'}") from None


class CommandGroup(TyperGroup):
    """The program, or one of its groups: commands by their lines of the table, which the help lists."""

    def __init__(self, *, name: str | None = None, **more: Any) -> None:
        rows = [row for row in COMMANDS.values() if row.group == (name or "")]
        commands: dict[str, Any] = {row.word: _NotLoaded(row) for row in rows}
        if not name:
            commands |= {group: CommandGroup(name=group, help=text) for group, text in GROUPS.items()}
        shape: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": None, **more}
        super().__init__(name=name, **{**shape, "commands": commands})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse words (args) behind the program or group in a click context (ctx); return those left over."""
        with _options_explained(self, ctx.command_path):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """In a click context (ctx), return (name, command, further words) that the words (args) mean."""
        if args[0] not in self.commands and not args[0].startswith("-"):
            raise _unknown_command("" if ctx.parent is None else str(self.name), args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """For a click context, write with a formatter a section per part of the table, or for the group."""
        parts: dict[str, Sequence[Command]] = dict(TABLE)
        if ctx.parent is not None:
            parts = {"Commands": [row for row in COMMANDS.values() if row.group == self.name]}
        names = {row: row.word if ctx.parent else row.name for rows in parts.values() for row in rows}
        width = max(map(len, names.values()))
        for title, rows in parts.items():
            with formatter.section(title):
                formatter.write_dl([(names[row].ljust(width), row.line) for row in rows])


class CommandLine(TyperCommand):
    """A command that answers an option which it does not have with what to type."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words (args) behind the command in a click context (ctx); return those left over."""
        with _options_explained(self, ctx.command_path):
            return super().parse_args(ctx, args)


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
    """Return the click command of a name, loaded, with its options."""
    made = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    command = COMMANDS[name]
    made.command(command.word, cls=CommandLine, epilog=_example(command))(grouped(load(command.function)))
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


_ADDRESS = re.compile(r"^\w[\w+.-]+:|[*?\[]")  # hf:org/name, s3://bucket, part-*.csv


def refuse_absent(values: Mapping[str, Any]) -> None:
    """From a command's parameters (name -> value), refuse an absent experiment, gold set, lock or table.

    `values` are the parameters of a command by their names.
    """
    if values.get("ctx") is None:
        return
    workspace = find_workspace(values["ctx"].obj)
    locks, tables = (_listed(values.get(name)) for name in ("lock", "files" if "files" in values else "file"))
    absent = [no_such_lock(path) for path in map(Path, locks) if not path.exists()]
    source = values.get("source")
    if source is not None and Path(source).suffix and source not in workspace.gold_sets:
        tables = [*tables, source] if not (workspace.experiments / source).exists() else tables
    paths = [Path(table) for table in tables if not _ADDRESS.search(str(table))]
    if not any(path.exists() for path in paths):  # else the command names all that is wrong with any of them
        absent += map(no_such_file, paths)
    refuse([problem for error in absent for problem in error.problems])
    experiment, gold = values.get("experiment"), values.get("gold") or values.get("gold_set")
    if experiment is not None and not Path(experiment).is_file():
        workspace.find_experiment(experiment)
    if gold is not None:
        workspace.find_gold(gold)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command (function) and return it: each dataclass parameter becomes options of its fields.

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
        refuse_absent(values)
        for name, group in groups.items():
            fields = [field.name for field in dataclasses.fields(group)]
            values[name] = group(**{field: values.pop(field) for field in fields})
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


def _meant(name: str, options: Sequence[Any]) -> str:
    """What to type for an option that is not there: a column, one spelt alike, one with such a value."""
    from judgecal.tables.columns import PART_OF_INPUT, PARTS

    word = name.lstrip("-").replace("-", "_")
    longest = {max(param.opts, key=len): param for param in options}
    name = word.removesuffix("_column")
    part = {field: part for part, field in PARTS.items()}.get(word, PART_OF_INPUT.get(name, name))
    if part in PARTS and "--col" in longest:
        return f"write --col {part}=COLUMN"
    spelt = {option.lstrip("-"): option for option in longest}
    if near := difflib.get_close_matches(name.lstrip("-"), spelt, n=1, cutoff=_NEAR):
        return f"write {spelt[near[0]]}"
    stating = (option for option, param in longest.items() if word in (param.metavar or "").split("|"))
    return next((f"write {option} {word}" for option in stating), "")


def _unknown_command(group: str, word: str) -> InputError:
    """The error for a command that does not exist, with the one to type: the same word in another group, or
    the command that is spelt most like it.
    """
    typed = f"{group} {word}".strip()
    meant = [name for name, command in COMMANDS.items() if command.word == word]
    meant += difflib.get_close_matches(typed, COMMANDS, n=1, cutoff=0.7)
    hint = f"type judgecal {meant[0]}" if meant else "judgecal --help lists all"
    return InputError(f"there is no command judgecal {typed}: {hint}")
