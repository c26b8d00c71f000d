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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from judgecal.engine import ParsedReply
from judgecal.errors import InputError, described, unknown_name
from judgecal.judges import local
from judgecal.judges.loading import LoadedFunction, load_function
from judgecal.judges.protocol import JudgeKind, JudgeName, lacking_inputs, refuse_lacking
from judgecal.judges.settings import packages_of, read_settings
from judgecal.records import Failure, Item, digest, well_formed
from judgecal.scale import INTERVAL, Label, Scale
from judgecal.signatures import read_source
from judgecal.workspace import Workspace

_SAID = 80  # characters of a value that is no verdict, in the message about it
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
        if locked is not None and locked != (found := _fingerprint([function, text], dict(name.settings))):
            raise InputError(
                f"{name}: its code has changed since it was locked (fingerprint {found}, locked was "
                f"{locked}): bring {path} back as it was, or run judgecal select again"
            )
        loaded = load_function(path, function, text=text, files=bool(folders))
        given, texts = read_settings(name, loaded.settings, folders)
        self.name = str(JudgeName(name.signature, name.model, settings=tuple(sorted(texts.items()))))
        files = [one for one in given.values() if isinstance(one, Path)]
        self.fingerprint = _fingerprint(
            [function, text, *map(_sha, files), *self._further(loaded, texts)], texts
        )
        self.scale: Scale = loaded.scale
        self.inputs = loaded.inputs
        self.unit = loaded.unit
        self._function = partial(loaded.call, **given) if given else loaded.call
        self._getters = [(one, _getter(one)) for one in loaded.parameters]
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
            value = self._function(
                **{name: one for name, get in self._getters if (one := get(item)) is not None}
            )
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
            return ParsedReply(
                None,
                reasoning,
                Failure("refused", reasoning[:_REASON] or "it gave no verdict: it returned None"),
            )
        try:
            return ParsedReply(_label(self.scale, value), reasoning)
        except (ValueError, OverflowError) as error:
            return ParsedReply(
                None, reasoning, Failure("out_of_range", f"it returned {value!r:.{_SAID}}: {error}")
            )


class LocalJudge(FunctionJudge):
    """A rule of judgecal's own, `NAME@local`: the function NAME of the file NAME.py in
    `judgecal/judges/local`.

    Its `inputs` are all that it reads; one with a default may be lacking in some items, and not in all.
    """

    kind: JudgeKind = "local"

    def __init__(self, name: JudgeName, *, workspace: Workspace) -> None:
        path = _local_file(name.signature)
        super().__init__(name, path, name.signature, folders=(Path(), workspace.root))
        self._required = self.inputs
        self.inputs = tuple(one for one, _ in self._getters)

    def check_items(self, items: Sequence[Item]) -> None:
        """Refuse items none of which has what the rule asks for; it costs nothing, so that one that lacks it
        may come.
        """
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
        """The texts that it shares with other rules, and the versions of the packages that it needs."""
        versions = packages_of(self.name, loaded.module, settings)
        if check := vars(loaded.module).get("CHECK"):
            check(settings)
        return [*_shared_texts(loaded), *versions]


class PythonJudge(FunctionJudge):
    """A function of the user's, `FILE.py:FUNCTION@python`; the file is in the current folder or in the
    workspace.

    One that was `locked` is in the workspace alone; beside the starter, which is nobody's, in the current
    folder.
    """

    kind: JudgeKind = "python"

    def __init__(self, name: JudgeName, *, workspace: Workspace, locked: str | None = None) -> None:
        file, colon, function = name.signature.rpartition(":")
        if not (colon and file.endswith(".py") and function):
            raise InputError(f"{name} is no judge: write FILE.py:FUNCTION@python")
        folders = (Path(), workspace.root) if locked is None else (workspace.experiments.parent,)
        path = next((folder / file for folder in folders if (folder / file).is_file()), None)
        if path is None:
            here = "here or " * (locked is None)
            raise InputError(f"{name}: there is no file {file} {here}in {folders[-1]}")
        super().__init__(name, path, function, locked=locked)


def local_judges() -> list[str]:
    """Names of the local judges, sorted: one file each; a leading underscore hides what several share."""
    return sorted(
        found.name for found in pkgutil.iter_modules(local.__path__) if not found.name.startswith("_")
    )


def load_local(name: str) -> LoadedFunction:
    """A local judge as its file has it, whatever it is set to."""
    path = _local_file(name)
    return load_function(path, name, text=read_source(path), files=True)


def set_local(judges: Sequence[str], **settings: str | None) -> list[str]:
    """The names of judges with settings in those local ones that take them and do not say otherwise; None
    sets nothing.
    """
    names = [JudgeName.parse(judge) for judge in judges]
    known = [_settable(name) for name in names]
    for key, value in settings.items():
        takers = [place for place, keys in enumerate(known) if key in keys]
        if value is not None and not takers:
            raise InputError(f"{key} = {value}: none of the judges has the setting {key}: leave it out")
        for place in takers if value is not None else ():
            given = {key: str(value), **dict(names[place].settings)}
            names[place] = dataclasses.replace(names[place], settings=tuple(sorted(given.items())))
    return [str(name) for name in names]


def _settable(name: JudgeName) -> set[str]:
    local_one = name.kind == "local" and name.signature in local_judges()
    return {one.name for one in load_local(name.signature).settings} if local_one else set()


def _local_file(name: str) -> Path:
    if name not in local_judges():
        raise unknown_name("local judge", name, local_judges())
    return Path(local.__path__[0]) / f"{name}.py"


def _getter(name: str) -> Callable[[Item], Any]:
    return _GETTERS.get(name) or (lambda item: item.fields.get(name))


def _shared_texts(loaded: LoadedFunction) -> list[str]:
    """The texts of the modules that a local judge shares with others, by the names that it took."""
    names = {getattr(value, "__module__", None) or "" for value in vars(loaded.module).values()}
    shared = sorted(name for name in names if name.startswith(f"{local.__name__}._"))
    return [inspect.getsource(importlib.import_module(name)) for name in shared]


def _fingerprint(parts: Sequence[str], settings: Mapping[str, str]) -> str:
    return digest([*parts, settings] if settings else list(parts))[:16]


def _sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


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
