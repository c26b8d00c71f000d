"""The settings of judges that are functions: `include(match=phrase)@local`.

A keyword-only parameter whose default is a number, a text or a truth value is a setting. Its annotation says
what it may be: `float`, `int`, `bool`, `str`, a `Literal` of words, or `Annotated[float, (low, high)]` for
numbers from one end to the other. Of a local judge it may also be a `Path`: a file of the workspace, whose
content is in the fingerprint. A judge's name carries the settings that are not the default ones, sorted, each
written in one way.
"""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, not_installed, refuse, unknown_name
from judgecal.judges.protocol import JudgeName

_TRUTH = {"true": True, "false": False}
Value = float | int | bool | str | Path


@dataclass(frozen=True, slots=True)
class Setting:
    """What can be set of a judge."""

    name: str
    default: Value
    kind: type
    choices: tuple[str, ...] = ()  # the words that it can be; empty where it is free
    low: float | None = None  # the ends of a number, both included; None where it is free
    high: float | None = None

    def read(self, text: str) -> Value:
        """Read a text as the setting's value, a `Value`; InputError where it is none."""
        words = self.choices or (tuple(_TRUTH) if self.kind is bool else ())
        if words and (text.lower() if self.kind is bool else text) not in words:
            raise unknown_name(f"value of {self.name}", text, list(words))
        if self.kind is bool:
            return _TRUTH[text.lower()]
        if self.kind in (str, Path):
            value: str | Path = self.kind(text)
            return value
        try:
            number = int(text) if self.kind is int else float(text)
        except ValueError:
            number = math.nan
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        if low <= number <= high and math.isfinite(number):
            return number
        ends = "" if self.low is None or self.high is None else f" from {low:g} to {high:g}"
        whole = "whole " * (self.kind is int)
        raise InputError(f"{self.name} must be a {whole}number{ends}, found {text!r:.40}")

    def __str__(self) -> str:
        """As it is listed: its name, its default, and what else it can be."""
        others = "|".join(choice for choice in self.choices if choice != self.default)
        return f"{self.name}={value_text(self.default) or '-'}{f' ({others})' if others else ''}"


def value_text(value: Value) -> str:
    """Return a setting's value as the text that a judge's name carries."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def settings_of(function: Callable[..., Any], where: str, *, files: bool = False) -> tuple[Setting, ...]:
    """Return a tuple of the Settings of a function, in its order; `where` names it in errors."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        problem = f"its annotations cannot be read ({error}): import what they name"
        raise InputError(f"{where}: {problem}") from None
    kinds = (float, int, bool, str, *((Path,) if files else ()))
    settings = []
    for parameter in inspect.signature(function).parameters.values():
        default, hint = parameter.default, hints.get(parameter.name)
        if parameter.kind is not parameter.KEYWORD_ONLY or not isinstance(default, kinds):
            continue
        low = high = None
        if typing.get_origin(hint) is typing.Annotated:
            hint, (low, high), *_ = typing.get_args(hint)
        kind = Path if isinstance(default, Path) else type(default)
        kind = hint if hint in (float, int, bool, str) else kind
        literal = typing.get_origin(hint) is typing.Literal
        choices = tuple(map(str, typing.get_args(hint))) if literal else ()
        settings.append(Setting(parameter.name, default, kind, choices, low, high))
    return tuple(settings)


def read_settings(
    name: JudgeName, settings: Sequence[Setting], folders: Sequence[Path] = ()
) -> tuple[dict[str, Value], dict[str, str]]:
    """From a JudgeName and Settings, return two dicts: values that differ from defaults, texts it carries.

    Files are among the values in any case, as they are found in one of the folders.
    """
    by_name = {setting.name: setting for setting in settings}
    values: dict[str, Value] = {}
    problems: list[str] = []
    for key, text in name.settings:
        try:
            if key not in by_name:
                raise unknown_name("setting", key, list(by_name))
            values[key] = by_name[key].read(text)
        except InputError as error:
            problems += [f"{name}: {problem}" for problem in error.problems]
    values = {key: value for key, value in values.items() if value != by_name[key].default}
    texts = {key: value_text(value) for key, value in values.items()}
    for setting in settings:
        path = values.get(setting.name, setting.default)
        if not isinstance(path, Path) or path == Path():  # none is set, and none is needed
            continue
        inside = not path.is_absolute() and ".." not in path.parts
        at = next((folder / path for folder in folders if inside and (folder / path).is_file()), None)
        if at is None:
            where = f"here or in {folders[-1]}" if inside else "of the workspace: name it from there"
            what = f"it reads its {setting.name} there: write the file, or set {setting.name}=FILE"
            problems.append(f"{name}: there is no file {path} {where}; {what}")
        values[setting.name] = at or path
    refuse(problems)
    return values, texts


def packages_of(judge: str, packages: Mapping[str, str], texts: Mapping[str, str]) -> list[str]:
    """List packages with versions that a judge (name) needs: package -> setting, and setting -> text.

    Args:
        packages: package -> the setting that needs it, which is the name of judgecal's extra too.
    """
    versions = []
    for package, extra in packages.items():
        if extra in texts:
            try:
                versions.append(f"{package} {metadata.version(package)}")
            except metadata.PackageNotFoundError:
                instead = f"leave {extra} out of the name"
                raise not_installed(f"{judge} needs", package, extra, instead=instead) from None
    return versions
