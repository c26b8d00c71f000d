"""`judge.lock.json`: exactly what was chosen, runnable and readable, and refused where a character of it changed.

The lock stands alone: the signature's text, the compiled program and the settings that shape an answer are in it.
Endpoint, key and price are not: they belong to the workspace that runs it.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ConfigDict

from judgecal import __version__
from judgecal.errors import InputError
from judgecal.experiment import Judgements
from judgecal.goldset import GoldSet
from judgecal.judges import Judge, JudgeName, PromptJudge, judge_named, load_program
from judgecal.judges.prompt import PROBE
from judgecal.models import ModelSpec, load_catalogue
from judgecal.records import Estimate, as_plain, digest
from judgecal.scale import Label
from judgecal.stats import Calibration
from judgecal.workspace import SCHEMA, Workspace, check_schema, validated, write_text

_SHA = "sha256"
_NOT_OF_THE_ANSWER = ("id", "api_base", "input_usd_per_1m", "output_usd_per_1m")
_LIBRARIES = ("dspy", "litellm")  # those that make the prompt


class _Closed:
    """Read from a file, it takes the keys of its fields and no others."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class LockedSignature(_Closed):
    """A signature as it was: the file's name without `.py`, its text, and the fingerprint of what it says."""

    name: str
    text: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class LockedModel(_Closed):
    """A model as it was."""

    alias: str  # its name in the judge's string
    id: str
    model_id: str | None  # the dated id that the provider returned; None where it named none
    settings: Mapping[str, Any]  # every setting that shapes an answer, such as temperature and max_tokens


@dataclass(frozen=True, slots=True)
class LockedGold(_Closed):
    """The gold set that the judge was confirmed on."""

    set: str
    sha256: str
    split: str  # where `Lock.agreement` is from
    scale: str  # the people's scale, as its string
    pass_at: float | None


@dataclass(frozen=True, slots=True)
class Noise(_Closed):
    """The judge against itself at lock time: the same items, called several times afresh."""

    # share of pairs of calls on different sides of the mark, or in different classes; without a value where the scale
    # has no mark
    flip_rate: Estimate
    exact_agreement: Estimate  # share of pairs of calls with equal verdicts
    n_items: int  # items that were called; those with fewer than two verdicts say nothing
    n_calls: int  # calls of each item


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedJudge(_Closed):
    """What makes a judge's replies, none of it from the workspace."""

    judge: str
    # 16 hex digits over the messages, the litellm id and the settings; unlike `Judge.fingerprint` it does not hang on
    # endpoint or price, so a lock runs elsewhere. Of a judge without a prompt, over its code
    fingerprint: str
    signature: LockedSignature | None  # as they were; None for a judge that calls nobody
    program: Mapping[str, Any] | None  # the content of `program.json`, or None
    model: LockedModel | None

    @classmethod
    def of(cls, judge: Judge, workspace: Workspace, *, model_id: str | None = None) -> LockedJudge:
        """A judge as it is now, refused where a lock would not bring it back.

        Raises InputError: its signature needs more than its own file, say.
        """
        signature, model = judge.signature, judge.model
        locked = LockedJudge(
            judge=judge.name,
            fingerprint=reply_fingerprint(judge),
            signature=None
            if signature is None
            else LockedSignature(signature.name, signature.text, signature.fingerprint),
            program=_program(judge, workspace),
            model=None if model is None else LockedModel(model.alias, model.id, model_id, answer_settings(model)),
        )
        locked.runnable(workspace)
        return locked

    def runnable(self, workspace: Workspace) -> Judge:
        """The judge, from the lock alone; endpoint, key and price are those of the workspace's alias.

        One without a prompt is the workspace's own, as a lock brings no code.

        Raises:
            InputError: the alias is gone or names another model or other settings, this judgecal makes another
                prompt of the locked signature than the one that was locked, or a function's file has changed.
        """
        if self.signature is None or self.model is None:
            return self._function(workspace)
        _check_model(load_catalogue(workspace).resolve(self.model.alias), self.model)
        judge = self._prompt(self.signature, self.model, workspace)
        found = reply_fingerprint(judge)
        if found != self.fingerprint:
            raise InputError(
                f"{self.judge}: this installation makes another prompt of the locked signature ({found}) than the one "
                f"that was locked ({self.fingerprint}): install the versions that the lock names, or run judgecal "
                "select again"
            )
        return judge

    def _function(self, workspace: Workspace) -> Judge:
        judge = judge_named(self.judge, workspace=workspace)
        if judge.fingerprint != self.fingerprint:
            raise InputError(
                f"{self.judge}: its code has changed since it was locked (fingerprint {judge.fingerprint}, locked was "
                f"{self.fingerprint}): bring the file back as it was, or run judgecal select again"
            )
        return judge

    def _prompt(self, signature: LockedSignature, model: LockedModel, workspace: Workspace) -> PromptJudge:
        with tempfile.TemporaryDirectory(prefix="judgecal-lock-") as folder:
            alone = _lay_out(Path(folder), signature, workspace)
            judge = PromptJudge(JudgeName(signature.name, model.alias), workspace=alone)
            if self.program is not None:
                path = alone.experiments / "program.json"
                path.write_text(json.dumps(self.program), encoding="utf-8")
                stored = load_program(path, judge.signature)
                judge.program, judge.trained_on = stored.program, stored.trained_on
        judge.name = self.judge
        return judge

    @property
    def model_id(self) -> str | None:
        """The dated id of its model; None where the provider named none, or nobody is called."""
        return None if self.model is None else self.model.model_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock(LockedJudge):
    """A judge that was chosen, with everything needed to run it again and to notice when it changes."""

    gold: LockedGold
    # item id -> verdict on the judge's own scale (None = unscored) of the first call, over all labelled items of the
    # set that the judge was not trained on
    verdicts: Mapping[str, Label | None]
    # item id -> the verdicts of its calls afresh at lock time, each item called as often; empty where none were made
    calls: Mapping[str, tuple[Label | None, ...]]
    unscored: float  # share of those calls that gave no verdict, of `verdicts` where none were made; 0..1
    agreement: Mapping[str, Estimate]  # METRIC -> Estimate on `gold.split`, an unscored item counted as wrong
    calibrated: Mapping[str, Estimate]  # the same of verdicts through the map; empty without one
    calibration: Calibration | None  # fitted on train and dev; None where labels have no order
    noise: Noise
    metric: str  # what it was chosen by, and the loss that was allowed
    margin: float
    versions: Mapping[str, str]  # of judgecal, python and the libraries that make the prompt
    locked_at: str  # UTC, ISO 8601

    @property
    def sha256(self) -> str:
        """Of everything else, in canonical JSON."""
        return digest(self._content())

    def as_json(self) -> dict[str, Any]:
        """The object of the file."""
        return {**self._content(), _SHA: self.sha256}

    def _content(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **as_plain(self)}

    def calls_of(self, item_id: str) -> tuple[Label | None, ...]:
        """What the judge said of a locked item: its calls afresh, else the one verdict."""
        return self.calls.get(item_id) or (self.verdicts[item_id],)

    def require_gold(self, gold: GoldSet) -> None:
        """Refuse a gold set that is not the one of the lock. Raises InputError: its content differs."""
        if gold.sha256 != self.gold.sha256:
            raise InputError(
                f"gold set {gold.name} has sha256 {gold.sha256[:12]}, and {self.judge} was locked on {self.gold.set} "
                f"with {self.gold.sha256[:12]}: bring that set back, or run judgecal select on the new one"
            )


def answer_settings(model: ModelSpec) -> dict[str, Any]:
    """The settings of a model that shape its answers: neither where it is reached nor what it costs."""
    return {name: value for name, value in model.settings().items() if name not in _NOT_OF_THE_ANSWER}


def reply_fingerprint(judge: Judge) -> str:
    """16 hex digits over what makes the verdicts: of a prompt the model, its settings and the messages.

    `PromptJudge.fingerprint` also holds endpoint and price, as a journal's key must; a lock moves between both.
    """
    if not isinstance(judge, PromptJudge):
        return judge.fingerprint
    return digest([judge.model.id, answer_settings(judge.model), judge.messages(PROBE)])[:16]


def model_ids(rows: Judgements) -> list[str]:
    """The dated ids that the provider returned, the most frequent first."""
    return [name for name, _ in Counter(row.model_id for row in rows if row.model_id).most_common()]


def versions() -> dict[str, str]:
    """Of judgecal, python and the libraries that make the prompt."""
    libraries = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    return {"judgecal": __version__, "python": platform.python_version(), **libraries}


def write_lock(path: Path, lock: Lock) -> None:
    """Write a lock in one step, so that a reader never meets half of it; equal locks give equal bytes.

    Raises OSError: the folder cannot be written to.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(lock.as_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def lock_problems(path: Path, *, replace: bool) -> list[str]:
    """Why no lock can be written there: it is a folder, or a file is there that may not be replaced."""
    if path.is_dir():
        return [f"--output {path} is a folder: name a file"]
    if path.exists() and not replace:
        return [f"--output {path} is there already: give --replace to write over it, or name another file"]
    return []


def load_lock(path: Path) -> Lock:
    """Read a lock.

    Raises:
        InputError: there is none, it is no JSON, of a later schema, lacks keys or has unknown ones, or its content
            is not what was locked.
    """
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no lock here; judgecal select writes one") from None
    except ValueError as error:
        raise InputError(f"{path}: no JSON: {error}") from None
    if not isinstance(table, dict):
        raise InputError(f"{path}: a lock is a JSON object")
    check_schema(table, str(path))
    content = {key: value for key, value in table.items() if key != _SHA}
    lock = validated(Lock, content, str(path))
    try:
        found = digest(content)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    if found != table.get(_SHA):  # a lock is made by select, never by hand
        raise InputError(
            f"{path}: its content has changed since it was locked (sha256 is {found[:12]}, locked was "
            f"{str(table.get(_SHA))[:12]}): a character was changed by hand; bring the file back as it was, or run "
            "judgecal select again"
        )
    return lock


def _program(judge: Judge, workspace: Workspace) -> dict[str, Any] | None:
    """The content of the judge's `program.json` without a model of its own, whose state names endpoints."""
    name = JudgeName.parse(judge.name).program
    if name is None:
        return None
    folder = Path(name) if Path(name).is_dir() else workspace.experiments / name
    content: dict[str, Any] = json.loads((folder / "program.json").read_text(encoding="utf-8"))
    return {**content, "lm": None} if "lm" in content else content


def _lay_out(folder: Path, signature: LockedSignature, workspace: Workspace) -> Workspace:
    """A workspace of one signature, with the models of the real one; read from before it is taken away."""
    alone = Workspace(folder, folder / "experiments")
    alone.signatures.mkdir()
    alone.experiments.mkdir()
    path = alone.signatures / f"{signature.name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(signature.text, encoding="utf-8")
    if workspace.config_file.exists():
        shutil.copyfile(workspace.config_file, alone.config_file)
    return alone


def _check_model(found: ModelSpec, locked: LockedModel) -> None:
    """Refuse an alias that is not the model of the lock."""
    now = {"id": found.id, **answer_settings(found)}
    then = {"id": locked.id, **locked.settings}
    changed = [
        f"{name} is {now.get(name)!r} and was {then.get(name)!r}"
        for name in dict.fromkeys([*then, *now])
        if now.get(name) != then.get(name)
    ]
    if changed:
        raise InputError(
            f"model {locked.alias} is not the one that was locked ({'; '.join(changed)}): bring "
            f"[models.{locked.alias}] in judgecal.toml back as it was, or run judgecal select again"
        )
