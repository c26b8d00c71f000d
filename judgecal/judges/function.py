"""Judges that are a function: a local judge is a rule of judgecal's own, a python judge the user's.

Either is a file with one function that takes what it reads of an item by the names of its parameters and
returns a verdict, or a verdict and the reason for it. No verdict is None: then the item is unscored, and the
reason says why. Its scale is the file's `SCALE`, else what the return type says: `bool` is binary. Parameters
are filled as the inputs of a signature are, and some as more than a text: `reference_answers`, `contexts`
(lists of texts), `conversation` (turns), `expect` (rules by name) and `item` (all of it). One with a default
may be lacking; a keyword-only one with a default is a setting (`settings.py`). A function may be `async`:
then the engine awaits many at once.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import importlib
import inspect
import operator
import pkgutil
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any

from judgecal.engine import ParsedReply
from judgecal.errors import InputError, described, unknown_name
from judgecal.judges import local
from judgecal.judges.protocol import JudgeKind, JudgeName, lacking_inputs, refuse_lacking
from judgecal.judges.settings import Setting, packages_of, read_settings, settings_of
from judgecal.records import ITEM_UNIT, Failure, Item, digest, well_formed
from judgecal.scale import INTERVAL, Label, Scale
from judgecal.signatures import CHUNK, read_source, run_source, scale_of_type
from judgecal.workspace import Workspace

_VALUE_SHOWN = 80  # characters of a value that is no verdict, in the message about it
_REASON = 500  # ... and of a reason for none
_GETTERS: Mapping[str, Callable[[Item], Any]] = {
    "item": lambda item: item,
    "question": operator.attrgetter("question"),
    "answer": operator.attrgetter("answer"),
    "answer_under_test": operator.attrgetter("answer"),
    "response": operator.attrgetter("answer"),
    "reference_answer": operator.attrgetter("reference_answer"),
    "reference_answers": lambda item: item.reference_answers or None,
    "context": lambda item: "\n\n".join(context.text for context in item.contexts) if item.contexts else None,
    "contexts": lambda item: tuple(context.text for context in item.contexts) or None,
    "conversation": lambda item: item.conversation or None,
    "expect": lambda item: item.expect or None,
}
"""What a function is given of an item under a parameter's name; None where the item has nothing for it."""


@dataclass(frozen=True, slots=True)
class LoadedFunction:
    """A function with what its file says of it."""

    module: ModuleType
    call: Callable[..., Any]
    settings: tuple[Setting, ...]
    scale: Scale
    parameters: tuple[str, ...]  # those that are filled from an item, in its order
    inputs: tuple[str, ...]  # those of them that an item must have something for
    about: str  # the first paragraph of the file's docstring; empty where it has none
    source: str  # where the rule comes from, by the file's `SOURCE`; empty where it does not say
    needs: str  # what it asks for in words, by the file's `NEEDS`, else the inputs

    @property
    def unit(self) -> str:
        """What it judges: `item`, or `chunk`."""
        return CHUNK if CHUNK in self.parameters else ITEM_UNIT


def load_function(path: Path, name: str, *, text: str, files: bool = False) -> LoadedFunction:
    """Run a file's text and take its function; `files`: whether files can be set."""
    module, where = run_source(path, text), f"{path}: {name}"
    content = vars(module)
    call = content.get(name)
    if not inspect.isfunction(call):
        functions = [key for key, value in content.items() if inspect.isfunction(value)]
        raise unknown_name(f"function in {path}", name, functions)
    declared = inspect.signature(call).parameters.values()
    plain = all(one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) for one in declared)
    if not plain or inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
        raise InputError(f"{path}: {name} must be a plain function whose parameters each have a name")
    settings = settings_of(call, where, files=files)
    if content.get("SCALE") is not None:
        scale = Scale.parse(str(content["SCALE"]))
    elif by_type := scale_of_type(_verdict_type(typing.get_type_hints(call).get("return")), where):
        scale = by_type[0]
    else:
        what = 'let it return bool, or write SCALE = "percentage" in the file'
        raise InputError(f"{where} does not say its scale: {what}")
    set_by_name = {setting.name for setting in settings}
    parameters = [parameter for parameter in declared if parameter.name not in set_by_name]
    inputs = tuple(parameter.name for parameter in parameters if parameter.default is parameter.empty)
    return LoadedFunction(
        module=module,
        call=call,
        settings=settings,
        scale=scale,
        parameters=tuple(parameter.name for parameter in parameters),
        inputs=inputs,
        about=" ".join(inspect.cleandoc(module.__doc__ or "").partition("\n\n")[0].split()),
        source=str(content.get("SOURCE", "")),
        needs=str(content.get("NEEDS", ", ".join(inputs))),
    )


def _verdict_type(annotation: Any) -> Any:
    """The verdict's type in what a function returns: without its reason, and without None."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is tuple and arguments:
        return _verdict_type(arguments[0])
    if origin in (typing.Union, UnionType):
        rest = [argument for argument in arguments if argument is not NoneType]
        return _verdict_type(rest[0]) if len(rest) == 1 else annotation
    return annotation


class FunctionJudge:
    """A judge that calls nobody: it costs nothing, and an exception in it is a verdict that could not be had.

    Attributes:
        name: its string, with the settings that are not the default ones.
        inputs: the parameters that an item must have something for.
        fingerprint: 16 hex digits over the file's text, the function's name and the settings, of a local
            judge also over what its file takes from elsewhere: another text is another judge.

    Args:
        path, function: the file, and the function in it.
        locked: the fingerprint that it must have; with another one the file is not run.
        folders: where files that it is set to are looked for; none where it takes no file.
    """

    kind: JudgeKind
    model: None = None
    signature: None = None
    trained_on: frozenset[str] = frozenset()

    def __init__(
        self,
        name: JudgeName,
        path: Path,
        function: str,
        *,
        locked: str | None = None,
        folders: Sequence[Path] = (),
    ) -> None:
        text = read_source(path)
        if locked is not None and locked != (now := _fingerprint([function, text], dict(name.settings))):
            raise InputError(
                f"{name}: its code has changed since it was locked (fingerprint {now}, locked was "
                f"{locked}): bring {path} back as it was, or run judgecal select again"
            )
        loaded = load_function(path, function, text=text, files=bool(folders))
        values, texts = read_settings(name, loaded.settings, folders)
        self.name = str(JudgeName(name.signature, name.model, settings=tuple(sorted(texts.items()))))
        files = [
            hashlib.sha256(one.read_bytes()).hexdigest() for one in values.values() if isinstance(one, Path)
        ]
        self.fingerprint = _fingerprint([function, text, *files, *self._further(loaded, texts)], texts)
        self.scale: Scale = loaded.scale
        self.inputs = loaded.inputs
        self.unit = loaded.unit
        self._function = partial(loaded.call, **values) if values else loaded.call
        self._getters = [(name, _getter(name)) for name in loaded.parameters]
        self._is_async = inspect.iscoroutinefunction(loaded.call)

    def _further(self, loaded: LoadedFunction, settings: Mapping[str, str]) -> list[str]:
        """What the fingerprint is over beside the file and its settings."""
        return []

    def check_items(self, items: Sequence[Item]) -> None:
        """Refuse items that lack what the function asks for, as `refuse_lacking` does."""
        refuse_lacking(self.name, self.inputs, items)

    def verdict(self, item: Item) -> ParsedReply | Awaitable[ParsedReply]:
        """What the function says of an item; of an `async` one, what gives it once awaited."""
        try:
            given = {name: text for name, get in self._getters if (text := get(item)) is not None}
            value = self._function(**given)
            return self._awaited(value) if self._is_async else self._reading(value)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the user's code: whatever it raises is the row's error
            return _raised(error)

    async def _awaited(self, value: Awaitable[Any]) -> ParsedReply:
        task = asyncio.current_task()
        try:
            reading = self._reading(await value)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            reading = _raised(error)
        if task is not None and task.cancelling():  # the run ends, whatever the function makes of it
            raise asyncio.CancelledError
        return reading

    def _reading(self, value: Any) -> ParsedReply:
        """What a function returned, as a verdict on its scale."""
        reasoning = ""
        if type(value) is tuple and len(value) == 2:
            value, reasoning = value
            reasoning = "" if reasoning is None else well_formed(str(reasoning))
        if value is None:
            why = reasoning[:_REASON] or "it gave no verdict: it returned None"
            return ParsedReply(None, reasoning, Failure("refused", why))
        try:
            return ParsedReply(_label(self.scale, value), reasoning)
        except (ValueError, OverflowError) as error:
            why = f"it returned {value!r:.{_VALUE_SHOWN}}: {error}"
            return ParsedReply(None, reasoning, Failure("out_of_range", why))


class LocalJudge(FunctionJudge):
    """A rule of judgecal's own, `NAME@local`: the function NAME of the file `judgecal/judges/local/NAME.py`.

    Its `inputs` are all that it reads; one with a default may be lacking in some items, and not in all.
    """

    kind: JudgeKind = "local"

    def __init__(self, name: JudgeName, *, workspace: Workspace) -> None:
        super().__init__(name, _local_file(name.signature), name.signature, folders=(Path(), workspace.root))
        self._required = self.inputs
        self.inputs = tuple(parameter for parameter, _ in self._getters)

    def check_items(self, items: Sequence[Item]) -> None:
        """Refuse items none of which has what the rule asks for; it costs nothing, so some may lack it."""
        nowhere = [name for name in self.inputs if all(lacking_inputs([name], item) for item in items)]
        refuse_lacking(self.name, nowhere, items)

    def verdict(self, item: Item) -> ParsedReply | Awaitable[ParsedReply]:
        """What the rule says of an item; none where the item lacks what the rule cannot do without."""
        if lacking := lacking_inputs(self._required, item):
            return ParsedReply(
                None, failure=Failure("refused", f"the item has no {' and no '.join(lacking)}")
            )
        return super().verdict(item)

    def _further(self, loaded: LoadedFunction, settings: Mapping[str, str]) -> list[str]:
        """The texts of the modules that it shares with other rules, and its packages with their versions."""
        content = vars(loaded.module)
        versions = packages_of(self.name, loaded.module, settings)
        if check := content.get("CHECK"):
            check(settings)
        modules = {getattr(value, "__module__", None) or "" for value in content.values()}
        shared = sorted(module for module in modules if module.startswith(f"{local.__name__}._"))
        return [*(inspect.getsource(importlib.import_module(module)) for module in shared), *versions]


class PythonJudge(FunctionJudge):
    """A function of the user's, `FILE.py:FUNCTION@python`, in the current folder or the workspace.

    One that was `locked` is in the workspace alone; beside the starter, which is nobody's, in the current
    folder.
    """

    kind: JudgeKind = "python"

    def __init__(self, name: JudgeName, *, workspace: Workspace, locked: str | None = None) -> None:
        file, colon, function = name.signature.rpartition(":")
        if not (colon and file.endswith(".py") and function):
            raise InputError(f"{name} is not a judge: write FILE.py:FUNCTION@python")
        folders = (Path(), workspace.root) if locked is None else (workspace.experiments.parent,)
        path = next((folder / file for folder in folders if (folder / file).is_file()), None)
        if path is None:
            here = "here or " * (locked is None)
            raise InputError(f"{name}: there is no file {file} {here}in {folders[-1]}")
        super().__init__(name, path, function, locked=locked)


def local_judges() -> list[str]:
    """Names of the local judges, sorted: one file each; a leading underscore hides what several share."""
    return sorted(one.name for one in pkgutil.iter_modules(local.__path__) if not one.name.startswith("_"))


def load_local(name: str) -> LoadedFunction:
    """A local judge as its file has it, whatever it is set to."""
    path = _local_file(name)
    return load_function(path, name, text=read_source(path), files=True)


def set_local(judges: Sequence[str], **settings: str | None) -> list[str]:
    """The names of judges, with settings in those local ones that take them and do not say otherwise.

    A setting of None sets nothing.
    """
    names = [JudgeName.parse(judge) for judge in judges]
    known = [
        {setting.name for setting in load_local(name.signature).settings}
        if name.kind == "local" and name.signature in local_judges()
        else set()
        for name in names
    ]
    for key, value in settings.items():
        takers = [place for place, keys in enumerate(known) if key in keys]
        if value is not None and not takers:
            raise InputError(f"{key} = {value}: none of the judges has the setting {key}: leave it out")
        for place in takers if value is not None else ():
            given = {key: str(value), **dict(names[place].settings)}
            names[place] = dataclasses.replace(names[place], settings=tuple(sorted(given.items())))
    return [str(name) for name in names]


def _local_file(name: str) -> Path:
    if name not in local_judges():
        raise unknown_name("local judge", name, local_judges())
    return Path(local.__path__[0]) / f"{name}.py"


def _getter(name: str) -> Callable[[Item], Any]:
    return _GETTERS.get(name) or (lambda item: item.fields.get(name))


def _fingerprint(parts: Sequence[str], settings: Mapping[str, str]) -> str:
    return digest([*parts, settings] if settings else list(parts))[:16]


def _label(scale: Scale, value: Any) -> Label:
    """A value as a label; numbers and truth values that need no reading are taken as they are."""
    kind = type(value)
    if kind is bool and scale.kind == "binary":
        return float(value)
    free = scale.kind in INTERVAL and not (scale.step or scale.from_fraction)
    if free and (kind is float or kind is int) and scale.low <= value <= scale.high:
        return float(value)
    return scale.read(value)


def _raised(error: BaseException) -> ParsedReply:
    return ParsedReply(None, failure=Failure("code", well_formed(described(error))))
