"""What can judge here: the signatures and suites of a workspace, and the local judges."""

from __future__ import annotations

from dataclasses import dataclass, field

from judgecal.errors import InputError
from judgecal.judges.function import LocalJudge, load_local, local_judges
from judgecal.judges.protocol import JudgeName
from judgecal.judges.suite import list_suites, load_suite
from judgecal.records import Result
from judgecal.signatures import list_signatures, outline_signature
from judgecal.workspace import Workspace


@dataclass(frozen=True, slots=True)
class SignatureHere:
    """A signature with a verdict, or one that cannot be read: then `problem` says why and the rest is
    empty."""

    name: str
    scale: str = ""
    unit: str = ""
    inputs: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class SuiteHere:
    """A suite and the names of its judges; where it cannot be read, `problem` says why."""

    name: str
    judges: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class LocalHere:
    """A local judge.

    Attributes:
        judge: its string.
        about: what its verdict is.
        needs: what it asks for of an item.
        settings: `name=default (other|values)`.
        source: where the rule comes from.
        problem: why it cannot judge here as it is set by default.
    """

    judge: str
    about: str
    scale: str
    unit: str
    needs: str
    settings: tuple[str, ...]
    source: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class JudgesHere(Result):
    """What can judge in a workspace."""

    workspace: str
    signatures: tuple[SignatureHere, ...]
    suites: tuple[SuiteHere, ...]
    local: tuple[LocalHere, ...]
    no_verdict: tuple[str, ...] = field(metadata={"json": False})
    """Signatures that give no verdict, such as an answerer's."""


def judges_here(workspace: Workspace) -> JudgesHere:
    """List what can judge here; what cannot be read is listed with the reason, and no signature is run."""
    signatures = {name: _signature(name, workspace) for name in list_signatures(workspace)}
    return JudgesHere(
        workspace=str(workspace.root),
        signatures=tuple(one for one in signatures.values() if one is not None),
        suites=tuple(_suite(name, workspace) for name in list_suites(workspace)),
        local=tuple(_local(name, workspace) for name in local_judges()),
        no_verdict=tuple(name for name, one in signatures.items() if one is None),
    )


def _signature(name: str, workspace: Workspace) -> SignatureHere | None:
    try:
        loaded = outline_signature(name, workspace=workspace)
    except InputError as error:
        return SignatureHere(name, problem=error.problems[0])
    if loaded.scale is None:
        return None
    return SignatureHere(name, str(loaded.scale), loaded.unit, loaded.inputs)


def _suite(name: str, workspace: Workspace) -> SuiteHere:
    try:
        return SuiteHere(name, tuple(one.name for one in load_suite(name, workspace=workspace).judges))
    except InputError as error:
        return SuiteHere(name, problem=error.problems[0])


def _local(name: str, workspace: Workspace) -> LocalHere:
    judge = JudgeName(name, "local")
    loaded, problem = load_local(name), None
    try:
        LocalJudge(judge, workspace=workspace)
    except InputError as error:
        problem = error.problems[0]
    return LocalHere(
        judge=str(judge),
        about=loaded.about.removeprefix(f"`{judge}`: "),
        scale=str(loaded.scale),
        unit=loaded.unit,
        needs=loaded.needs,
        settings=tuple(map(str, loaded.settings)),
        source=loaded.source,
        problem=problem,
    )
