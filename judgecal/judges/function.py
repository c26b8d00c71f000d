"""Judges that are a function: a local judge is a rule of judgecal's own, a python judge the user's.

Either is a function that takes what it reads of an item by the names of its parameters and returns a verdict,
or a verdict and the reason for it. No verdict is None: then the item is unscored, and the reason says why.
Its scale is the file's `SCALE`, else what the return type says: `bool` is binary. Parameters are filled as
the inputs of a signature are, and some as more than a text: `reference_answers`, `contexts` (lists of texts),
`conversation` (turns), `expect` (rules by name) and `item` (all of it). One with a default may be lacking; of
a local judge a keyword-only one is a setting (`settings.py`). A function may be `async`: then the engine
awaits many at once.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import hashlib
import inspect
import secrets
import sys
import types
import typing
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeGuard

from judgecal.artefacts import read_json
from judgecal.engine.calls import ParsedReply
from judgecal.errors import InputError, Stopped, error_text, unknown_name
from judgecal.judges import local
from judgecal.judges.local import local_rules
from judgecal.judges.protocol import JudgeKind, JudgeName, item_value, lacking_inputs, refuse_lacking
from judgecal.judges.settings import Setting, read_settings, settings_of
from judgecal.records import Failure, Item, digest, well_formed
from judgecal.scale import INTERVAL, Label, Scale
from judgecal.signatures import read_source, run_source, scale_of_type, unit_of
from judgecal.workspace import Workspace

_VALUE_SHOWN = 80  # characters of a value that is no verdict, in the message about it
_SHARED = f"{local.__name__}._"  # modules that local judges share
_REASON = 500  # ... and of a reason for none


@dataclass(frozen=True, slots=True)
class LoadedFunction:
    """The function of a local judge with what is said of it."""

    call: Callable[..., Any]
    settings: tuple[Setting, ...]
    scale: Scale
    parameters: tuple[str, ...]  # those that are filled from an item, in its order
    inputs: tuple[str, ...]  # those of them that an item must have something for
    about: str  # what its verdict is
    source: str  # where the rule comes from
    needs: str  # what it asks for, in words

    @property
    def unit(self) -> str:
        """The unit that the function judges: `item` or `chunk`."""
        return unit_of(self.parameters)


def load_function(
    path: Path, name: str, *, text: str, prompts: Mapping[str, Any] | None = None
) -> tuple[Callable[..., Any], Scale, Any]:
    """Return a function of a file's path by its name, the file's `text` being run; its Scale; its program."""
    content = vars(run_source(path, text))
    call, own_scale, program = content.get(name), None, None
    if is_program(call):
        from judgecal.judges.module import as_function
        from judgecal.judges.prompt import with_prompt

        program = call if prompts is None else with_prompt(call, prompts, f"{path}: {name}")
        call, own_scale = as_function(program)
    elif prompts is not None:
        raise InputError(f"{path}: {name} is no program of DSPy's: leave #EXPERIMENT out")
    if not inspect.isfunction(call):
        functions = [key for key, value in content.items() if inspect.isfunction(value)]
        raise unknown_name(f"function in {path}", name, functions)
    scale = _told_scale(call, content, f"{path}: {name}") or own_scale
    if scale is None:
        what = 'let it return bool, or write SCALE = "percentage" in the file'
        raise InputError(f"{path}: {name} does not say its scale: {what}")
    return call, scale, program


def is_program(value: object) -> TypeGuard[Any]:
    """Return whether a value is a `dspy.Module` (a TypeGuard), without loading DSPy."""
    dspy = sys.modules.get("dspy")
    return dspy is not None and isinstance(value, dspy.Module)


def _parameters(
    call: Callable[..., Any], where: str, without: Collection[str] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parameters that are filled from an item, but for some, and those that an item must have."""
    declared = inspect.signature(call).parameters.values()
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    plain = all(parameter.kind in by_name for parameter in declared)
    if not plain or inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
        raise InputError(f"{where} must be a plain function whose parameters each have a name")
    filled = [parameter for parameter in declared if parameter.name not in without]
    inputs = tuple(parameter.name for parameter in filled if parameter.default is parameter.empty)
    return tuple(parameter.name for parameter in filled), inputs


def _told_scale(call: Callable[..., Any], content: Mapping[str, Any], where: str) -> Scale | None:
    if content.get("SCALE") is not None:
        return Scale.parse(str(content["SCALE"]))
    # only what it returns: a parameter's type may be known to type checkers alone
    returns = types.SimpleNamespace(
        __annotations__={"return": getattr(call, "__annotations__", {}).get("return")}
    )
    try:
        hint = typing.get_type_hints(returns, getattr(call, "__globals__", {}))["return"]
    except NameError as error:
        raise InputError(
            f"{where}: {error} where it says what it returns: import it, or leave it out"
        ) from None
    by_type = scale_of_type(_verdict_type(hint), where)
    return by_type[0] if by_type else None


def _verdict_type(annotation: Any) -> Any:
    """The verdict's type in what a function returns: without its reason, and without None."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is tuple and arguments:
        return _verdict_type(arguments[0])
    if origin in (typing.Union, UnionType):
        types = [argument for argument in arguments if argument is not NoneType]
        return _verdict_type(types[0]) if len(types) == 1 else annotation
    return annotation


class FunctionJudge:
    """A judge that calls nobody: it costs nothing, and an exception in it is a verdict that could not be had.

    Attributes:
        name: its string, with the settings that are not the default ones.
        inputs: the parameters that an item must have something for.
        fingerprint: 16 hex digits over the file's text, the function's name and the settings, of a local
            judge also over what its module shares: another text is another judge.
        rules: of a judge of rules, keys of `expect`, of which an item must have one.
    """

    kind: JudgeKind
    model: None = None
    signature: None = None
    trained_on: frozenset[str] = frozenset()
    scale: Scale
    _of_call: Scale | None = None  # of a single call, where a verdict is the mean of several
    program: Any = None
    rules: tuple[str, ...] = ()

    def __init__(
        self,
        name: str,
        call: Callable[..., Any],
        parameters: tuple[str, ...],
        inputs: tuple[str, ...],
        fingerprint: str,
    ) -> None:
        self.name, self.fingerprint, self.inputs = name, fingerprint, inputs
        self.unit = unit_of(parameters)
        self._function, self._parameters = call, parameters
        self._is_async = inspect.iscoroutinefunction(call)

    def check_items(self, items: Sequence[Item]) -> None:
        """Refuse items that lack what the function asks for, as `refuse_lacking` does."""
        refuse_lacking(self.name, self.inputs, items)

    def given(self, item: Item) -> dict[str, Any]:
        """What the function is given of an item, by parameter."""
        return {name: value for name in self._parameters if (value := item_value(name, item)) is not None}

    def verdict(self, item: Item) -> ParsedReply | Awaitable[ParsedReply]:
        """Return the ParsedReply of the function on an Item; of an `async` function an awaitable."""
        try:
            value = self._function(**self.given(item))
            return self._awaited(value) if self._is_async else self.reading(value)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the user's code: whatever it raises is the row's error
            return _raised(error)

    async def _awaited(self, value: Awaitable[Any]) -> ParsedReply:
        task = asyncio.current_task()
        try:
            reading = self.reading(await value)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            reading = _raised(error)
        if task is not None and task.cancelling():  # the run ends, whatever the function makes of it
            raise asyncio.CancelledError
        return reading

    def reading(self, value: Any) -> ParsedReply:
        """Return the ParsedReply, verdict and reasoning, for a value that the function returned."""
        reasoning = ""
        if type(value) is tuple and len(value) == 2:
            value, reasoning = value
            reasoning = "" if reasoning is None else well_formed(str(reasoning))
        if value is None:
            why = reasoning[:_REASON] or "it gave no verdict: it returned None"
            return ParsedReply(None, reasoning, Failure("refused", why))
        try:
            return ParsedReply(_label(self._of_call or self.scale, value), reasoning)
        except (ValueError, OverflowError) as error:
            why = f"it returned {value!r:.{_VALUE_SHOWN}}: {error}"
            return ParsedReply(None, reasoning, Failure("out_of_range", why))


class LocalJudge(FunctionJudge):
    """A rule of judgecal's own, `NAME@local`: a function of `judgecal/judges/local`.

    Its `inputs` are all that it reads; one with a default may be lacking in some items, and not in all.
    """

    kind: JudgeKind = "local"

    def __init__(self, name: JudgeName, *, workspace: Workspace) -> None:
        loaded, folders = load_local(name.signature), (Path(), workspace.root)
        call = loaded.call
        name = dataclasses.replace(name, signature=call.__name__)
        values, texts = read_settings(name, loaded.settings, folders)
        module = sys.modules[call.__module__]
        shared = {str(getattr(value, "__module__", "")) for value in vars(module).values()}
        modules = [
            module,
            *(sys.modules[at] for at in sorted(shared) if at.startswith(f"{local.__name__}._")),
        ]
        parts = [call.__name__, *map(inspect.getsource, modules)]
        parts += local_rules()[call.__name__].check(texts)
        parts += [
            hashlib.sha256(value.read_bytes()).hexdigest()
            for value in values.values()
            if isinstance(value, Path)
        ]
        fingerprint = _fingerprint(parts, texts)
        name = dataclasses.replace(name, settings=tuple(sorted(texts.items())))
        call = partial(call, **values) if values else call
        super().__init__(str(name), call, loaded.parameters, loaded.parameters, fingerprint)
        self.scale, self._required = loaded.scale, loaded.inputs
        rules = loaded.needs.partition("expect.")[2].partition(",")[0]
        self.rules = tuple(rules.split("/")) if rules else ()

    def check_items(self, items: Sequence[Item]) -> None:
        """Refuse items none of which has what the rule asks for; it costs nothing, so some may lack it."""
        nowhere = [name for name in self.inputs if all(lacking_inputs([name], item) for item in items)]
        refuse_lacking(self.name, nowhere, items)

    def verdict(self, item: Item) -> ParsedReply | Awaitable[ParsedReply]:
        """Return the ParsedReply of the rule on an Item; a failure where the item lacks a need."""
        if lacking := lacking_inputs(self._required, item):
            return ParsedReply(
                None, failure=Failure("refused", f"the item has no {' and no '.join(lacking)}")
            )
        return super().verdict(item)


class PythonJudge(FunctionJudge):
    """A function of the user's, `FILE.py:FUNCTION@python`, in the current folder or the workspace.

    A program of DSPy's with the prompts that an experiment saved is `FILE.py:PROGRAM@python#EXPERIMENT`.
    One that was `locked` is in the workspace alone; beside the starter, which is nobody's, in the current
    folder.
    """

    kind: JudgeKind = "python"

    def __init__(self, name: JudgeName, *, workspace: Workspace, locked: str | None = None) -> None:
        file, colon, function = name.signature.rpartition(":")
        if not (colon and file.endswith(".py") and function):
            raise InputError(
                f"{name} names no file, so that neither a lock nor a command can run it: put the function "
                "into a file of the workspace and write FILE.py:FUNCTION@python"
            )
        folders = (Path(), workspace.root) if locked is None else (workspace.experiments.parent,)
        path = next((folder / file for folder in folders if (folder / file).is_file()), None)
        if path is None:
            here = "here or " * (locked is None)
            raise InputError(f"{name}: there is no file {file} {here}in {folders[-1]}")
        prompts = None
        if name.program is not None:
            where = workspace.experiments / name.program / "program.json"
            prompts = read_json(
                where, absent="there is no compiled program here; judgecal.optimize writes one"
            )
            self.trained_on = frozenset(map(str, (prompts.get("judgecal") or {}).get("trained_on", ())))
        text = read_source(path)
        parts = [function, text] if prompts is None else [function, text, digest(prompts)]
        now = _fingerprint(parts, {}) + name.mark
        if locked not in (None, now):
            raise InputError(
                f"{name}: its code has changed since it was locked (fingerprint {now}, locked was "
                f"{locked}): bring {path} back as it was, or run judgecal select again"
            )
        call, self._of_call, self.program = load_function(path, function, text=text, prompts=prompts)
        super().__init__(str(name), call, *_parameters(call, f"{path}: {function}"), now)
        self.scale = name.scale_of(self._of_call)


class GivenFunction(FunctionJudge):
    """A function that a script has in hand.

    Of a file in the current folder or the workspace, with a scale of its own, it is that file's judge,
    `FILE.py:FUNCTION@python`, and a lock takes it. Any other is `FUNCTION@python`: it is scored, its verdicts
    are never taken from a journal, as nobody can say that it is still the same, and a lock refuses it.
    Without a scale it has that of the gold set which it is scored on.
    """

    kind: JudgeKind = "python"

    def __init__(self, call: Callable[..., Any], *, scale: Scale | None, workspace: Workspace) -> None:
        name = getattr(call, "__name__", type(call).__name__).strip("<>")
        where = f"the judge {name}"
        file = _file_of(call, name, workspace)
        path, text = file or ("", "")
        own_scale = _told_scale(call, getattr(call, "__globals__", {}) if file else {}, where)
        locked_as = file is not None and own_scale is not None and scale in (None, own_scale)
        fingerprint = _fingerprint([name, text], {}) if locked_as else secrets.token_hex(8)
        judge = f"{path}:{name}@python" if locked_as else f"{name}@python"
        super().__init__(judge, call, *_parameters(call, where), fingerprint)
        if chosen_scale := scale or own_scale:
            self.scale = chosen_scale

    def __getattr__(self, name: str) -> Any:
        if name == "scale":
            what = 'let it return bool, or write Judge(function, scale="percentage")'
            raise InputError(f"{self.name} does not say its scale: {what}")
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def on(self, people: Scale) -> GivenFunction:
        """Return this judge (GivenFunction) on the people's Scale, where it has no scale of its own."""
        if "scale" in vars(self):
            return self
        judge = copy.copy(self)
        judge.scale = dataclasses.replace(
            people, pass_at=None, step=None if people.kind == "points" else people.step
        )
        return judge


def _file_of(call: Callable[..., Any], name: str, workspace: Workspace) -> tuple[str, str] | None:
    """The file whose function of this name it is, as a judge's string has it, and its text; None for none."""
    code, content = getattr(call, "__code__", None), getattr(call, "__globals__", {})
    if code is None or content.get(name) is not call:
        return None
    path = Path(code.co_filename).resolve()
    for folder in (Path().resolve(), workspace.experiments.parent.resolve()):
        if path.suffix == ".py" and path.is_file() and path.is_relative_to(folder):
            return path.relative_to(folder).as_posix(), read_source(path)
    return None


def load_local(name: str) -> LoadedFunction:
    """Return the LoadedFunction of a local judge's name; `hallucination` is `hallucination_overlap`."""
    rules = local_rules()
    name = f"{name}_overlap" if f"{name}_overlap" in rules else name
    if name not in rules:
        raise unknown_name("local judge", name, [*rules])
    rule = rules[name]
    settings = settings_of(rule.call)
    scale = Scale.parse(rule.scale) if rule.scale else _told_scale(rule.call, {}, name)
    assert scale is not None  # a return type says it
    parameters, inputs = _parameters(rule.call, name, {setting.name for setting in settings})
    about = " ".join(inspect.cleandoc(rule.call.__doc__ or "").partition("\n\n")[0].split())
    needs = rule.needs or ", ".join(inputs)
    return LoadedFunction(rule.call, settings, scale, parameters, inputs, about, rule.source, needs)


def _fingerprint(parts: Sequence[str], settings: Mapping[str, str]) -> str:
    return digest([*parts, settings] if settings else [*parts])[:16]


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
    if isinstance(error, Stopped):  # no doing of the code's: the same command asks again
        return ParsedReply(None, failure=Failure("transport", "the run was stopped"))
    return ParsedReply(None, failure=Failure("code", well_formed(error_text(error))))
