"""Judges that are a function: a local judge is a rule of judgecal's own, a python judge the user's.

Either is a file with one function that takes what it reads of an item by the names of its parameters and returns a
verdict. Its scale is the file's `SCALE`, else what the return type says: `bool` is binary. Parameters are filled as
the inputs of a signature are, and some as more than a text: `reference_answers`, `contexts` (lists of texts),
`conversation` (turns), `expect` (rules by name) and `item` (all of it). One with a default may be lacking.
"""

from __future__ import annotations

import inspect
import pkgutil
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from judgecal.engine import Reading
from judgecal.errors import InputError, unknown_name
from judgecal.judges import local
from judgecal.judges.protocol import JudgeKind, JudgeName, item_inputs, lacking_inputs, refuse_lacking
from judgecal.records import ITEM_UNIT, Failure, Item, digest
from judgecal.scale import Scale
from judgecal.signatures import CHUNK, read_source, run_source, scale_of_type
from judgecal.workspace import Workspace

_SCALE = "SCALE"


class FunctionJudge:
    """A judge that calls nobody: it costs nothing, and an exception in it is a verdict that could not be had.

    Attributes:
        inputs: the parameters that an item must have something for.
        fingerprint: 16 hex digits over the file's text and the function's name: another text is another judge.

    Args:
        locked: the fingerprint that it must have; with another one the file is not run.

    Raises:
        InputError: the file or the function is missing, raises on loading, has no scale, or is not the locked one.
    """

    kind: JudgeKind
    model: None = None
    signature: None = None
    trained_on: frozenset[str] = frozenset()

    def __init__(self, name: str, path: Path, function: str, *, locked: str | None = None) -> None:
        source = read_source(path)
        self.name = name
        self.fingerprint = digest([function, source])[:16]
        if locked not in (None, self.fingerprint):
            raise InputError(
                f"{name}: its code has changed since it was locked (fingerprint {self.fingerprint}, locked was "
                f"{locked}): bring {path} back as it was, or run judgecal select again"
            )
        module = vars(run_source(path, source))
        self._function = _function_of(module, function, path)
        self.scale: Scale = _scale_of(module.get(_SCALE), self._function, f"{path}: {function}")
        parameters = inspect.signature(self._function).parameters.values()
        self._names = tuple(one.name for one in parameters)
        self.inputs = tuple(one.name for one in parameters if one.default is one.empty)
        self.unit = CHUNK if CHUNK in self._names else ITEM_UNIT

    def check_items(self, items: Sequence[Item]) -> None:
        """Refuse items that lack what the function asks for, as `refuse_lacking` does."""
        refuse_lacking(self.name, self.inputs, items)

    def verdict(self, item: Item) -> Reading:
        """What the function says of an item."""
        lacking = set(lacking_inputs(self._names, item))
        given = _values([name for name in self._names if name not in lacking], item)
        try:
            value = self._function(**given)
        except Exception as error:  # noqa: BLE001 - the user's code: whatever it raises is the row's error
            return Reading(None, failure=Failure("code", f"{type(error).__name__}: {error}"))
        try:
            return Reading(self.scale.read(value))
        except (ValueError, OverflowError) as error:
            return Reading(None, failure=Failure("out_of_range", f"it returned {value!r:.80}: {error}"))


class LocalJudge(FunctionJudge):
    """A rule of judgecal's own, `NAME@local`: the function NAME of the file NAME.py in `judgecal/judges/local`."""

    kind: JudgeKind = "local"

    def __init__(self, name: JudgeName) -> None:
        if name.signature not in local_judges():
            raise unknown_name("local judge", name.signature, local_judges())
        path = Path(local.__path__[0]) / f"{name.signature}.py"
        super().__init__(str(name), path, name.signature)


class PythonJudge(FunctionJudge):
    """A function of the user's, `FILE.py:FUNCTION@python`; the file is in the current folder or in the workspace.

    One that was `locked` is in the workspace alone; beside the starter, which is nobody's, in the current folder.
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
        super().__init__(str(name), path, function, locked=locked)


def local_judges() -> list[str]:
    """Names of the local judges, sorted: one file each."""
    return sorted(found.name for found in pkgutil.iter_modules(local.__path__))


def _function_of(module: dict[str, Any], name: str, path: Path) -> Callable[..., Any]:
    function = module.get(name)
    if not inspect.isfunction(function):
        own = [key for key, value in module.items() if inspect.isfunction(value)]
        raise unknown_name(f"function in {path}", name, own)
    odd = [
        one.name
        for one in inspect.signature(function).parameters.values()
        if one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    if odd or inspect.iscoroutinefunction(function):
        raise InputError(f"{path}: {name} must be a plain function whose parameters each have a name")
    return function


def _scale_of(stated: object, function: Callable[..., Any], where: str) -> Scale:
    if stated is not None:
        return Scale.parse(str(stated))
    told = scale_of_type(typing.get_type_hints(function).get("return"), where)
    if told is None:
        raise InputError(
            f'{where} does not say its scale: let it return bool, or write SCALE = "percentage" in the file'
        )
    return told[0]


def _values(names: Sequence[str], item: Item) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "item": item,
        "expect": item.expect,
        "reference_answers": item.reference_answers,
        "contexts": tuple(context.text for context in item.contexts),
        "conversation": item.conversation,
    }
    texts = item_inputs(names, item)
    return {name: whole.get(name, texts[name]) for name in names}
