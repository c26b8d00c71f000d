"""A function that judges, as its file has it: what it asks of an item, its scale and its settings."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any

from judgecal.errors import InputError, unknown_name
from judgecal.judges.settings import Setting, settings_of
from judgecal.records import ITEM_UNIT
from judgecal.scale import Scale
from judgecal.signatures import CHUNK, run_source, scale_of_type


@dataclass(frozen=True, slots=True)
class LoadedFunction:
    """A function with what its file says of it.

    Attributes:
        call: the function itself.
        parameters: those that are filled from an item, in its order.
        inputs: those of them that an item must have something for.
        about: the first paragraph of the file's docstring; empty where it has none.
        source: where the rule comes from, by the file's `SOURCE`; empty where it does not say.
        needs: what it asks for in words, by the file's `NEEDS`, else the inputs.
    """

    module: ModuleType
    call: Callable[..., Any]
    settings: tuple[Setting, ...]
    scale: Scale
    parameters: tuple[str, ...]
    inputs: tuple[str, ...]
    about: str
    source: str
    needs: str

    @property
    def unit(self) -> str:
        """What it judges: `item`, or `chunk`."""
        return CHUNK if CHUNK in self.parameters else ITEM_UNIT


def load_function(path: Path, name: str, *, text: str, files: bool = False) -> LoadedFunction:
    """Run a file's text and take its function; `files`: whether files can be set."""
    module, where = run_source(path, text), f"{path}: {name}"
    call = _function_of(vars(module), name, path)
    settings = settings_of(call, where, files=files)
    own = {one.name for one in settings}
    parameters = [one for one in inspect.signature(call).parameters.values() if one.name not in own]
    inputs = tuple(one.name for one in parameters if one.default is one.empty)
    return LoadedFunction(
        module=module,
        call=call,
        settings=settings,
        scale=_scale_of(vars(module).get("SCALE"), call, where),
        parameters=tuple(one.name for one in parameters),
        inputs=inputs,
        about=" ".join(inspect.cleandoc(module.__doc__ or "").partition("\n\n")[0].split()),
        source=str(vars(module).get("SOURCE", "")),
        needs=str(vars(module).get("NEEDS", ", ".join(inputs))),
    )


def _function_of(module: Mapping[str, Any], name: str, path: Path) -> Callable[..., Any]:
    function = module.get(name)
    if not inspect.isfunction(function):
        own = [key for key, value in module.items() if inspect.isfunction(value)]
        raise unknown_name(f"function in {path}", name, own)
    odd = [
        one.name
        for one in inspect.signature(function).parameters.values()
        if one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    if odd or inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InputError(f"{path}: {name} must be a plain function whose parameters each have a name")
    return function


def _scale_of(stated: object, function: Callable[..., Any], where: str) -> Scale:
    if stated is not None:
        return Scale.parse(str(stated))
    told = scale_of_type(_verdict_type(typing.get_type_hints(function).get("return")), where)
    if told is None:
        raise InputError(
            f'{where} does not say its scale: let it return bool, or write SCALE = "percentage" in the file'
        )
    return told[0]


def _verdict_type(annotation: Any) -> Any:
    """The verdict's type in what a function returns: without its reason, and without None."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is tuple and arguments:
        return _verdict_type(arguments[0])
    if origin in (typing.Union, UnionType):
        rest = [one for one in arguments if one is not NoneType]
        return _verdict_type(rest[0]) if len(rest) == 1 else annotation
    return annotation
