"""What can judge here: the signatures, text prompts and suites of a workspace, and the local judges."""

from __future__ import annotations

from dataclasses import dataclass, field

from judgecal.errors import InputError
from judgecal.judges.function import LocalJudge, load_local, local_judges
from judgecal.judges.protocol import JudgeName
from judgecal.judges.signature_files import ListedSignature, signatures_of
from judgecal.judges.suite import list_suites, load_suite
from judgecal.records import Result
from judgecal.workspace import Workspace


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
    problem: str | None = None  # why it cannot judge here as it is set by default


@dataclass(frozen=True, slots=True)
class JudgesHere(Result):
    """What can judge in a workspace."""

    workspace: str
    signatures: tuple[ListedSignature, ...]  # those with a verdict, and those that cannot be read
    prompts: tuple[ListedSignature, ...]  # as text
    suites: tuple[SuiteHere, ...]
    local: tuple[LocalHere, ...]
    no_verdict: tuple[str, ...] = field(metadata={"json": False})
    """Signatures that give no verdict, such as an answerer's."""


def judges_here(workspace: Workspace) -> JudgesHere:
    """List what can judge here; what cannot be read is listed with the reason, and no signature is run."""
    suites, local, listed = [], [], signatures_of(workspace).signatures
    silent = [one.name for one in listed if one.scale is None and one.problem is None]
    able = [one for one in listed if one.name not in silent]
    signatures, prompts = (
        tuple(one for one in able if one.name.endswith(".md") == as_text) for as_text in (False, True)
    )
    for name in list_suites(workspace):
        try:
            judges = load_suite(name, workspace=workspace).judges
            suites.append(SuiteHere(name, tuple(judge.name for judge in judges)))
        except InputError as error:
            suites.append(SuiteHere(name, problem=error.problems[0]))
    for name in local_judges():
        judge, rule, problem = JudgeName(name, "local"), load_local(name), None
        try:
            LocalJudge(judge, workspace=workspace)
        except InputError as error:
            problem = error.problems[0]
        about, settings = rule.about.removeprefix(f"`{judge}`: "), tuple(map(str, rule.settings))
        scale = str(rule.scale)
        local.append(
            LocalHere(str(judge), about, scale, rule.unit, rule.needs, settings, rule.source, problem)
        )
    return JudgesHere(str(workspace.root), signatures, prompts, tuple(suites), tuple(local), tuple(silent))
