"""The settings of local judges: `include(match=phrase)@local`.

A keyword-only parameter whose default is a number, a text, a truth value or a `Path` is a setting. Its
annotation says what it may be: a `Literal` of words, or `Annotated[float, (low, high)]` for numbers from one
end to the other. A `Path` is a file of the workspace, whose content is in the fingerprint. A judge's name
carries the settings that are not the default ones, sorted, each written in one way.
"""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, refuse, unknown_name
from judgecal.judges.protocol import JudgeName

_TRUTH = {"true": True, "false": False}
Value = float | bool | str | Path


@dataclass(frozen=True, slots=True)
class Setting:
    """What can be set of a judge."""

    name: str
    default: Value
    choices: tuple[str, ...] = ()  # the words that it can be; empty where it is free
    low: float = -math.inf  # the ends of a number, both included
    high: float = math.inf

    def read(self, text: str) -> Value:
        """Read a text as the setting's value, a `Value`; InputError where it is none."""
        words = tuple(_TRUTH) if isinstance(self.default, bool) else self.choices
        if words and text.lower() not in words:
            raise unknown_name(f"value of {self.name}", text, list(words))
        if words:
            return _TRUTH.get(text.lower(), text.lower())
        if not isinstance(self.default, float):
            return Path(text) if isinstance(self.default, Path) else text
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if self.low <= number <= self.high:
            return number
        raise InputError(
            f"{self.name} must be a number from {self.low:g} to {self.high:g}, found {text!r:.40}"
        )

    def __str__(self) -> str:
        """As it is listed: its name, its default, and what else it can be."""
        others = "|".join(choice for choice in self.choices if choice != self.default)
        return f"{self.name}={value_text(self.default) or '-'}{f' ({others})' if others else ''}"


def value_text(value: Value) -> str:
    """Return a setting's value as the text that a judge's name carries."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def settings_of(function: Callable[..., Any]) -> tuple[Setting, ...]:
    """Return a tuple of the Settings of a local judge's function, in its order."""
    hints, settings = typing.get_type_hints(function, include_extras=True), list[Setting]()
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            hint, default = hints[parameter.name], parameter.default
            ends = hint.__metadata__[0] if typing.get_origin(hint) is typing.Annotated else ()
            choices = typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ()
            settings.append(Setting(parameter.name, default, choices, *ends))
    return tuple(settings)


def read_settings(
    name: JudgeName, settings: Sequence[Setting], folders: Sequence[Path]
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
