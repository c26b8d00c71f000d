"""What can judge here, and one judge with everything that is wrong with it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from judgecal.errors import InputError, unknown_name
from judgecal.judges.function import load_local
from judgecal.judges.local import local_rules
from judgecal.judges.prompt import PromptJudge, turns_text
from judgecal.judges.protocol import JudgeName
from judgecal.judges.suite import list_suites, load_suite
from judgecal.models import EMBEDDED
from judgecal.records import Result
from judgecal.signatures import (
    CHUNK,
    ITEM_INPUTS,
    LoadedSignature,
    field_lines,
    list_signatures,
    load_signature,
    outline_signature,
    source_file,
    unit_of,
)
from judgecal.workspace import Workspace, shown

_ANSWERS = ("answer_under_test", "answer", "response")
# what is judged by, and not judged
_BESIDE = {"question", "reference_answer", "reference_answers", "conversation"}
_NO_TEXT = ("item", "expect")  # what only a function can take
_NEAR = 0.8  # how like two names are where one may be a slip of the pen for the other


@dataclass(frozen=True, slots=True)
class ListedSignature:
    """A signature of a workspace, or why it cannot be read; `verdict` is its type as the file has it, of a
    text prompt the scale, and None where it answers and judges nothing.
    """

    name: str
    verdict: str | None = None
    inputs: tuple[str, ...] = ()
    unit: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class SuiteHere:
    """A suite and the names of its judges; where it cannot be read, `problem` says why."""

    name: str
    judges: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class LocalHere:
    """A local judge."""

    judge: str
    about: str  # what its verdict is
    scale: str
    unit: str
    needs: str  # what it asks for of an item
    settings: tuple[str, ...]  # `name=default (other|values)`
    source: str  # where the rule comes from


@dataclass(frozen=True, slots=True)
class Listing(Result):
    """What can judge in a workspace."""

    workspace: str
    signatures: tuple[ListedSignature, ...]  # those with a verdict, and those that cannot be read
    prompts: tuple[ListedSignature, ...]  # as text
    suites: tuple[SuiteHere, ...]
    local: tuple[LocalHere, ...]


@dataclass(frozen=True, slots=True)
class FileProblem:
    """What is wrong with a judge's file, and where: `file:line`."""

    where: str
    message: str


@dataclass(frozen=True, slots=True)
class ShownJudge(Result):
    """One signature, text prompt, suite or local judge.

    `prompt`: what a model is sent, with the names of the inputs in their places. `judges`: those of a suite.
    `about`: of a local judge what its verdict is, what it needs, its settings and its source.
    """

    judge: str
    kind: str
    scale: str | None = None
    unit: str | None = None
    inputs: tuple[str, ...] = ()
    prompt: str | None = None
    judges: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    problems: tuple[FileProblem, ...] = ()


def judges_here(workspace: Workspace) -> Listing:
    """Return the Listing of a Workspace's judges; unreadable ones with the reason, no signature is run."""
    suites, listed = [], [_listed(name, workspace) for name in list_signatures(workspace)]
    signatures, prompts = (
        tuple(row for row in listed if (row.verdict or row.problem) and row.name.endswith(".md") == as_text)
        for as_text in (False, True)
    )
    for name in list_suites(workspace):
        try:
            judges = load_suite(name, workspace=workspace).judges
            suites.append(SuiteHere(name, tuple(judge.name for judge in judges)))
        except InputError as error:
            suites.append(SuiteHere(name, problem=error.problems[0]))
    local = []
    for name in local_rules():
        rule = load_local(name)
        settings = tuple(map(str, rule.settings))
        local.append(
            LocalHere(
                f"{name}@local", rule.about, str(rule.scale), rule.unit, rule.needs, settings, rule.source
            )
        )
    return Listing(str(workspace.root), signatures, prompts, tuple(suites), tuple(local))


def _listed(name: str, workspace: Workspace) -> ListedSignature:
    try:
        verdict, inputs = outline_signature(name, workspace=workspace)
    except InputError as error:
        return ListedSignature(name, problem=error.problems[0])
    return ListedSignature(name, verdict, inputs, unit_of(inputs))


# --- one of them


def show_judge(name: str, workspace: Workspace) -> ShownJudge:
    """Return the ShownJudge of a name in a Workspace: signature, text prompt, suite or local judge.

    A signature is run. Its prompt is the one that the named model is sent, else the embedded model.
    """
    signatures, suites = list_signatures(workspace), list_suites(workspace)
    base, _, model = name.partition("@")
    if base in signatures:
        return _shown_prompt(base, name if model else None, workspace)
    if name in suites:
        path = workspace.suites / f"{name}.toml"
        try:
            judges = tuple(judge.name for judge in load_suite(name, workspace=workspace).judges)
        except InputError as error:
            problems = tuple(_placed(path, problem) for problem in error.problems)
            return ShownJudge(name, "suite", problems=problems)
        return ShownJudge(name, "suite", judges=judges)
    parsed = JudgeName(name, "local") if name in local_rules() else JudgeName.read(name)
    if parsed is None or parsed.kind == "prompt":
        rules = (f"{rule}@local" for rule in local_rules())
        raise unknown_name("judge", name, [*signatures, *suites, *rules])
    from judgecal.judges import judge_named

    judge, about = judge_named(parsed, workspace=workspace), tuple[str, ...]()
    if parsed.kind == "local":
        rule = load_local(parsed.signature)
        about = (rule.about, f"It needs {rule.needs}.")
        about += tuple(f"Setting: {setting}" for setting in rule.settings)
        about += (f"Source: {rule.source}",) if rule.source else ()
    scale = None if judge.scale is None else str(judge.scale)
    return ShownJudge(judge.name, judge.kind, scale, judge.unit, tuple(judge.inputs), about=about)


def _shown_prompt(signature: str, judge: str | None, workspace: Workspace) -> ShownJudge:
    path = source_file(signature, workspace)
    try:
        loaded = load_signature(signature, workspace=workspace)
    except InputError as error:
        problems = tuple(_placed(path, text) for text in error.problems)
        return ShownJudge(signature, "prompt", problems=problems)
    lines, problems_found = field_lines(loaded.text), [*_inputs(loaded)]
    if loaded.prompt is None:
        problems_found += _shape(loaded)
    problems = tuple(
        FileProblem(f"{shown(path)}:{at if isinstance(at, int) else lines.get(at, 1)}", message)
        for at, message in problems_found
    )
    scale = prompt = None
    if loaded.scale is not None:
        scale, made = str(loaded.scale), PromptJudge(judge or f"{signature}@{EMBEDDED}", workspace=workspace)
        prompt = made.as_sent()
        if judge is None and loaded.prompt is not None:  # which the embedded model alone is sent otherwise
            prompt = turns_text(loaded.prompt.filled({name: f"{{{name}}}" for name in loaded.inputs}))
    name, inputs = judge or signature, loaded.inputs
    return ShownJudge(name, "prompt", scale, unit_of(loaded.inputs), inputs, prompt, problems=problems)


Found = Iterator[tuple[str | int, str]]
"""Problems, each with its line or the field or class that stands there."""


def _placed(path: Path, text: str) -> FileProblem:
    match = re.match(rf"{re.escape(str(path))}(?::(\d+))?: ", text)
    line = match[1] if match and match[1] else "1"
    return FileProblem(f"{shown(path)}:{line}", text[match.end() :] if match else text)


def _shape(loaded: LoadedSignature) -> Found:
    cls, outputs = loaded.cls, list(loaded.cls.output_fields)
    if not (cls.__doc__ or "").strip() or cls.instructions.startswith("Given the fields `"):
        yield cls.__name__, "no instructions: say in the class's docstring what is to be judged, and how"
    if loaded.verdict is None:
        what = "give one output a number, bool or Literal type"
        yield outputs[-1], f"no verdict: it can answer, and not judge; for a judge, {what}"
        return
    if loaded.reasoning is None:
        yield loaded.verdict, "no reasoning: a verdict is better for a `str` output that stands before it"
    elif outputs.index(loaded.reasoning) > outputs.index(loaded.verdict):
        what = "stands after the verdict: a model reasons in order, so put it before"
        yield loaded.reasoning, f"{loaded.reasoning} {what}"


def _inputs(loaded: LoadedSignature) -> Found:
    for name in loaded.inputs:
        kind = loaded.cls.input_fields[name].annotation
        if kind is not str:
            type_name = kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")
            yield name, f"{name} is filled with a text, and its type is {type_name}: use str"
        near = difflib.get_close_matches(name, sorted(ITEM_INPUTS), n=1, cutoff=_NEAR)
        if name not in ITEM_INPUTS and near:
            yield name, f"{name} is looked up in the items' fields: did you mean {near[0]}?"
        if name in _NO_TEXT:
            yield name, f"we cannot fill {name} in a prompt: choose another name"
    if loaded.scale is not None and set(loaded.inputs) <= _BESIDE:
        one_of = f"name one of {', '.join((*_ANSWERS, CHUNK))}, or a field"
        yield loaded.cls.__name__, f"nothing under test among the inputs: {one_of}"
