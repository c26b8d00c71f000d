"""The settings of judges that are functions: `include(match=phrase)@local`.

A keyword-only parameter whose default is a number, a text or a truth value is a setting. Its annotation says
what it may be: `float`, `int`, `bool`, `str`, a `Literal` of words, or `Annotated[float, (low, high)]` for
numbers from one end to the other. Of a local judge it may also be a `Path`: a file of the workspace, whose
content is in the fingerprint. A judge's name carries the settings that are not the default ones, sorted, each
written in one way.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from judgecal.errors import InputError, not_installed, unknown_name
from judgecal.judges.protocol import JudgeName

_PACKAGES = "PACKAGES"
_TRUTH = {"true": True, "false": False}
Value = float | int | bool | str | Path


@dataclass(frozen=True, slots=True)
class Setting:
    """What can be set of a judge.

    Attributes:
        kind: the type of its values.
        choices: the words that it can be; empty where it is free.
        low, high: the ends of a number, both included; None where it is free.
    """

    name: str
    default: Value
    kind: type
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None

    def read(self, text: str) -> Value:
        """The value that a text means."""
        if self.choices and text not in self.choices:
            raise unknown_name(f"value of {self.name}", text, self.choices)
        if self.kind is bool and text.lower() not in _TRUTH:
            raise unknown_name(f"value of {self.name}", text, list(_TRUTH))
        if self.kind is bool:
            return _TRUTH[text.lower()]
        return self.kind(text) if self.kind in (str, Path) else self._number(text)

    def _number(self, text: str) -> float | int:
        try:
            number = int(text) if self.kind is int else float(text)
        except ValueError:
            number = float("nan")
        low = -float("inf") if self.low is None else self.low
        high = float("inf") if self.high is None else self.high
        if low <= number <= high and abs(number) != float("inf"):
            return number
        ends = (
            f" from {self.low:g} to {self.high:g}" if self.low is not None and self.high is not None else ""
        )
        raise InputError(
            f"{self.name} must be a {'whole ' * (self.kind is int)}number{ends}, found {text!r:.40}"
        )

    def __str__(self) -> str:
        """As it is listed: its name, its default, and what else it can be."""
        others = "|".join(one for one in self.choices if one != self.default)
        return f"{self.name}={written(self.default) or '-'}{f' ({others})' if others else ''}"


def written(value: Value) -> str:
    """A value as a name carries it."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def settings_of(function: Callable[..., Any], where: str, *, files: bool = False) -> tuple[Setting, ...]:
    """The settings of a function, in its order; `files`: also those that are files."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise InputError(
            f"{where}: its annotations cannot be read ({error}): import what they name"
        ) from None
    kinds = (float, int, bool, str, *((Path,) if files else ()))
    return tuple(
        _setting(one.name, one.default, hints.get(one.name))
        for one in inspect.signature(function).parameters.values()
        if one.kind is one.KEYWORD_ONLY and isinstance(one.default, kinds)
    )


def _setting(name: str, default: Value, hint: Any) -> Setting:
    low = high = None
    kind: type = Path if isinstance(default, Path) else type(default)
    if typing.get_origin(hint) is typing.Annotated:
        hint, (low, high), *_ = typing.get_args(hint)
    if hint in (float, int, bool, str):
        kind = hint
    choices = tuple(map(str, typing.get_args(hint))) if typing.get_origin(hint) is typing.Literal else ()
    return Setting(name, default, kind, choices, low, high)


def read_settings(
    name: JudgeName, settings: Sequence[Setting], folders: Sequence[Path] = ()
) -> tuple[dict[str, Value], dict[str, str]]:
    """What a judge's name sets that is not the default: the values, and the texts that its name carries.

    Files are among the values in any case, as they are found in one of the folders.
    """
    known = {one.name: one for one in settings}
    values: dict[str, Value] = {}
    problems: list[str] = []
    for key, text in name.settings:
        try:
            if key not in known:
                raise unknown_name("setting", key, list(known))
            values[key] = known[key].read(text)
        except InputError as error:
            problems += [f"{name}: {problem}" for problem in error.problems]
    values = {key: value for key, value in values.items() if value != known[key].default}
    texts = {key: written(value) for key, value in values.items()}
    for one in settings:
        value = values.get(one.name, one.default)
        if isinstance(value, Path):
            values[one.name] = _file(name, one.name, value, folders, problems)
    if problems:
        raise InputError(problems)
    return values, texts


def _file(name: JudgeName, setting: str, path: Path, folders: Sequence[Path], problems: list[str]) -> Path:
    """A file of the workspace; one that is not there is added to the problems."""
    inside = not path.is_absolute() and ".." not in path.parts
    found = next((folder / path for folder in folders if inside and (folder / path).is_file()), None)
    if found is None:
        where = f"here or in {folders[-1]}" if inside else "of the workspace: name it from there"
        problems.append(
            f"{name}: there is no file {path} {where}; it reads its {setting} there: write the file, or set "
            f"{setting}=FILE"
        )
    return found or path


def packages_of(judge: str, module: ModuleType, texts: Mapping[str, str]) -> list[str]:
    """The packages that a judge needs as it is set, each with its version.

    A file names them in `PACKAGES`: package -> the setting that needs it, which is the name of judgecal's
    extra too.
    """
    packages: Mapping[str, str] = vars(module).get(_PACKAGES, {})
    return [_version(package, extra, judge) for package, extra in packages.items() if extra in texts]


def _version(package: str, extra: str, judge: str) -> str:
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        raise not_installed(
            f"{judge} needs", package, extra, instead=f"leave {extra} out of the name"
        ) from None
