"""`judge.lock.json`: exactly what was chosen, runnable and readable, and refused where a character of it
changed.

It holds all that makes a verdict but endpoint, key and price, which belong to the workspace that runs it. A
signature is code and runs when it is loaded, so the text in a lock, which may come from anybody, is only held
against the workspace's file. With `--trust-lock` it runs from a temporary folder that is gone afterwards.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import platform
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ConfigDict

from judgecal._version import __version__
from judgecal.artefacts import SCHEMA, check_schema, read_json, validated
from judgecal.errors import InputError, notice
from judgecal.goldset import GoldSet
from judgecal.judges import judge_named
from judgecal.judges.function import PythonJudge
from judgecal.judges.prompt import PromptJudge, program_of
from judgecal.judges.protocol import Judge, JudgeName
from judgecal.models import ModelSpec, load_catalogue
from judgecal.probes.result import LockedProbes
from judgecal.records import Estimate, Judgement, as_plain, digest
from judgecal.scale import Label, Scale
from judgecal.signatures import read_source, source_file
from judgecal.stats import Calibration
from judgecal.workspace import Workspace, name_problem, no_such_lock, shown, write_text

_SHA = "sha256"
_NOT_OF_THE_ANSWER = ("id", "api_base", "input_usd_per_1m", "output_usd_per_1m")
_LIBRARIES = ("dspy", "litellm")  # those that make the prompt
# of a file's name: no leading dot or underscore, no end that Windows drops, no drive, no NUL
_PART = r"[^\W_](?:[\w .-]*[\w-])?"
_NAME = re.compile(f"{_PART}(?:/{_PART})*")
_LONGEST = 200  # characters


class _Closed:
    """Read from a file, it takes the keys of its fields and no others."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class LockedSignature(_Closed):
    """A signature as it was."""

    name: str  # of its file, without `.py`
    text: str
    fingerprint: str  # of what it says


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
    ties: float = 0.0  # share of the split's rated items on which raters tie: what is locked is without them
    sampling: str = "unknown"  # how the set was drawn, as its card says
    systems: Mapping[str, int] = field(default_factory=dict)  # system -> items of the split that it answered

    @property
    def people(self) -> Scale:
        return Scale.parse(self.scale, pass_at=self.pass_at)


@dataclass(frozen=True, slots=True)
class Noise(_Closed):
    """The judge against itself at lock time: the same items, called several times afresh."""

    # share of pairs of calls on different sides of the lock's cut, or in different classes; without a value
    # where the scale has no mark
    flip_rate: Estimate
    n_items: int  # items that were called; those with fewer than two verdicts say nothing
    n_calls: int  # calls of each item


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedJudge(_Closed):
    """What makes a judge's replies, none of it from the workspace."""

    judge: str
    # 16 hex digits over the messages, the litellm id and the settings; unlike `Judge.fingerprint` it does not
    # hang on endpoint or price, so a lock runs elsewhere. Of a judge without a prompt, over its code
    fingerprint: str
    signature: LockedSignature | None  # as they were; None for a judge that calls nobody
    program: Mapping[str, Any] | None  # the content of `program.json`, or None
    model: LockedModel | None

    @classmethod
    def from_judge(cls, judge: Judge, workspace: Workspace, *, model_id: str | None = None) -> LockedJudge:
        """Make a LockedJudge from a Judge and its Workspace; refused where that would not bring it back."""
        signature, model, program = judge.signature, judge.model, None
        if (slug := JudgeName.parse(judge.name).program) is not None:
            folder = Path(slug) if Path(slug).is_dir() else workspace.experiments / slug
            program = read_json(folder / "program.json", absent="there is no compiled program here")
            if "lm" in program:  # a model of its own, whose state names endpoints
                program = {**program, "lm": None}
        locked = LockedJudge(
            judge=judge.name,
            fingerprint=reply_fingerprint(judge),
            signature=None
            if signature is None
            else LockedSignature(signature.name, signature.text, signature.fingerprint),
            program=program,
            model=None
            if model is None
            else LockedModel(model.alias, model.id, model_id, answer_settings(model)),
        )
        if locked.signature is None or locked.model is None:
            locked._function(workspace)
            return locked
        with _alone(locked.signature, workspace) as home:
            locked._prompt(locked.signature, locked.model, home)
        return locked

    def runnable(self, workspace: Workspace, *, trust_lock: bool = False) -> Judge:
        """Return the Judge, as locked, in a Workspace, which gives endpoint, key and price.

        Only code of the workspace runs: its signature or function must be what was locked. With `trust_lock`
        the lock's own text of a signature runs where the workspace has another or none. Refused as well: the
        alias is gone or names another model or other settings; or this judgecal makes another prompt of the
        locked signature.
        """
        signature, model = self.signature, self.model
        if signature is None or model is None:
            return self._function(workspace)
        spec = load_catalogue(workspace).resolve(model.alias)
        now = {"id": spec.id, "verdict": "said", **answer_settings(spec)}
        then = {"id": model.id, "verdict": "said", **model.settings}
        changed = [
            f"{name} is {now.get(name)!r} and was {then.get(name)!r}"
            for name in dict.fromkeys([*then, *now])
            if now.get(name) != then.get(name)
        ]
        if changed:
            raise InputError(
                f"model {model.alias} is not the locked model ({'; '.join(changed)}): restore "
                f"[models.{model.alias}] in judgecal.toml, or run judgecal select again"
            )
        check_name(signature.name, f"{self.judge}: signature.name of its lock")
        differs = _difference(source_file(signature.name, workspace), signature.text)
        if differs is None:
            return self._prompt(signature, model, workspace)
        if not trust_lock:
            raise InputError(
                f"{self.judge}: {differs}. We run what the workspace holds, and a signature is code: restore "
                "the file as it was locked; or, where you trust who made this lock, run the lock's own text "
                "with --trust-lock"
            )
        notice(f"judgecal: {self.judge}: {differs}; we run the lock's own text, as --trust-lock says")
        with _alone(signature, workspace) as home:
            return self._prompt(signature, model, home)

    def _prompt(self, signature: LockedSignature, model: LockedModel, home: Workspace) -> PromptJudge:
        calls = JudgeName.parse(self.judge).calls
        judge = PromptJudge(JudgeName(signature.name, model.alias, calls=calls), workspace=home)
        if self.program is not None:
            stored = program_of(self.program, judge.signature, f"{self.judge}: program of its lock")
            judge.program, judge.trained_on = stored.program, stored.trained_on
        judge.name = self.judge
        made = reply_fingerprint(judge)
        if made != self.fingerprint:
            raise InputError(
                f"{self.judge}: this installation makes another prompt of the locked signature ({made}, "
                f"locked was {self.fingerprint}): install the versions that the lock names, or run "
                "judgecal select again"
            )
        return judge

    def _function(self, workspace: Workspace) -> Judge:
        """A judge without a prompt; a function's file is held against the lock before it is run."""
        name = JudgeName.parse(self.judge)
        if name.kind == "prompt":
            raise InputError(
                f"{self.judge}: its lock holds no signature or no model: run judgecal select again"
            )
        if name.kind == "python":
            file = name.signature.rpartition(":")[0].removesuffix(".py")
            if file:  # one in hand has none, which is said below
                check_name(file, f"{self.judge}: the file of this judge")
            return PythonJudge(name, workspace=workspace, locked=self.fingerprint)
        judge = judge_named(name, workspace=workspace)
        if judge.fingerprint != self.fingerprint:
            raise InputError(
                f"{self.judge}: it has changed since it was locked (fingerprint {judge.fingerprint}, locked "
                f"was {self.fingerprint}): install the judgecal that the lock names, or run judgecal select "
                "again"
            )
        return judge

    @property
    def model_id(self) -> str | None:
        """The dated id of its model; None where the provider named none, or nobody is called."""
        return None if self.model is None else self.model.model_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock(LockedJudge):
    """A judge that was chosen, with everything needed to run it again and to notice when it changes."""

    gold: LockedGold
    # item id -> verdict on the judge's own scale (None = unscored) of the first call, over all labelled items
    # of the set that the judge was not trained on
    verdicts: Mapping[str, Label | None]
    # item id -> the verdicts of its calls afresh at lock time, each item called as often; empty where none
    # were made
    calls: Mapping[str, tuple[Label | None, ...]]
    unscored: float  # share of those calls that gave no verdict, of `verdicts` where none were made; 0..1
    agreement: Mapping[str, Estimate]  # METRIC -> Estimate on `gold.split`, an unscored item counted as wrong
    calibrated: Mapping[str, Estimate]  # the same of verdicts through the map; empty without one
    calibration: Calibration | None  # fitted on train and dev; None where labels have no order
    confirmed_on_test: bool  # whether test shows it above the best constant, and bears out what chose it
    noise: Noise
    metric: str  # what it was chosen by, and the loss that was allowed
    margin: float
    versions: Mapping[str, str]  # of judgecal, python and the libraries that make the prompt
    locked_at: str  # UTC, ISO 8601
    probes: Mapping[str, LockedProbes] = field(default_factory=dict)  # by family, where some were made

    @property
    def sha256(self) -> str:
        """The sha256 of the lock's other fields, in canonical JSON."""
        return digest(self._content())

    def as_json(self) -> dict[str, Any]:
        return {**self._content(), _SHA: self.sha256}

    def _content(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **as_plain(self)}

    @property
    def applied(self) -> Mapping[str, Estimate]:
        """Agreement of the verdicts as production applies them: through the map, where there is one."""
        return self.agreement if self.calibration is None else self.calibrated

    @property
    def config(self) -> dict[str, Any]:
        """What a configuration says of it and of its gold set."""
        return {"gold": {"set": self.gold.set, "sha256": self.gold.sha256}, "lock": self.sha256}

    @property
    def run_line(self) -> str:
        """What the run line of a result that rests on it begins with."""
        return f"lock:{self.sha256[:12]}|gold:{self.gold.set}@{self.gold.sha256[:12]}|split:{self.gold.split}"

    def calls_of(self, item_id: str) -> tuple[Label | None, ...]:
        """The judge's verdicts on a locked item: those of its calls afresh, else the single one."""
        return self.calls.get(item_id) or (self.verdicts[item_id],)

    def require_gold(self, gold: GoldSet) -> None:
        """Refuse a GoldSet, by an error, whose content is not that of the own lock; returns nothing."""
        if gold.sha256 != self.gold.sha256:
            raise InputError(
                f"gold set {gold.name} has sha256 {gold.sha256[:12]}, and {self.judge} was locked on "
                f"{self.gold.set} with {self.gold.sha256[:12]}: restore that set, or run judgecal select "
                "on the new one"
            )


def answer_settings(model: ModelSpec) -> dict[str, Any]:
    """The settings of a model that shape its answers: neither where it is reached nor what it costs."""
    return {name: value for name, value in model.settings().items() if name not in _NOT_OF_THE_ANSWER}


def reply_fingerprint(judge: Judge) -> str:
    """Return 16 hex digits, a text, over what makes a Judge's verdicts: model, settings and messages.

    `PromptJudge.fingerprint` also holds endpoint and price, as a journal's key must; a lock moves between
    both.
    """
    if not isinstance(judge, PromptJudge):
        return judge.fingerprint
    return digest([judge.model.id, answer_settings(judge.model), *judge.prompt()])[:16] + judge.mark


def model_ids(rows: Iterable[Judgement]) -> list[str]:
    """The dated ids that the provider returned, the most frequent first."""
    return [name for name, _ in Counter(row.model_id for row in rows if row.model_id).most_common()]


def versions() -> dict[str, str]:
    """Return a dict, name -> version, of judgecal, python and the libraries that make the prompt."""
    libraries = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    return {"judgecal": __version__, "python": platform.python_version(), **libraries}


def write_lock(path: Path, lock: Lock) -> None:
    """Write to a path a Lock, in a single step, so that no reader meets half of it.

    Raises OSError: the folder cannot be written to.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(lock.as_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def lock_problems(path: Path, *, replace: bool) -> list[str]:
    """Return a list of messages on why no lock can be written to a path, given whether it may `replace`."""
    if path.is_dir():
        return [f"--output {path} is a folder: name a file"]
    if path.exists() and not replace:
        return [f"--output {path} is there already: add --replace to overwrite it, or name another file"]
    return []


def load_lock(path: Path) -> Lock:
    """Read a Lock from a path; refused where its content was changed or its schema is another."""
    if not path.exists():
        raise no_such_lock(path)
    table = read_json(path, absent="there is no lock here")
    check_schema(table, str(path))
    content = {key: value for key, value in table.items() if key != _SHA}
    lock = validated(Lock, content, str(path))
    try:
        sha256 = digest(content)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    if sha256 != table.get(_SHA):  # a lock is made by select, never by hand
        raise InputError(
            f"{path}: its content has changed since it was locked (sha256 is {sha256[:12]}, locked was "
            f"{str(table.get(_SHA))[:12]}): somebody changed it by hand; restore the file, or run "
            "judgecal select again"
        )
    return lock


def check_name(name: str, where: str) -> None:
    """Refuse a name that could lead out of its folder; a second text, `where`, begins the error message.

    Empty, longer than 200 characters, absolute, with a drive or a `..`, or ending in `.py`.
    """
    if (
        len(name) > _LONGEST
        or not _NAME.fullmatch(name)
        or name.endswith(".py")
        or any(map(name_problem, name.split("/")))
    ):
        raise InputError(
            f"{where}: {name[:80]!r} is not the name of a workspace file: letters, digits, spaces, _, - "
            "and . are, and / between folders; nothing of this lock was run"
        )


@contextlib.contextmanager
def _alone(signature: LockedSignature, workspace: Workspace) -> Iterator[Workspace]:
    """A temporary workspace of one signature, with the models of the real one; gone when the block ends."""
    with tempfile.TemporaryDirectory(prefix="judgecal-lock-") as folder:
        home = Workspace(Path(folder), Path(folder) / "experiments")
        path = source_file(signature.name, home)
        path.parent.mkdir(parents=True)
        path.write_bytes(signature.text.encode("utf-8"))
        if workspace.config_file.exists():
            shutil.copyfile(workspace.config_file, home.config_file)
        yield home


def _difference(path: Path, text: str) -> str | None:
    """How the workspace's file is not the locked text, whatever a signature's line ends; None where it is."""
    if not path.is_file():
        return f"the workspace has no {shown(path)}, which the lock holds a text of"
    ours, theirs = read_source(path), text.replace("\r\n", "\n").replace("\r", "\n")
    if path.suffix == ".md":  # its line ends are sent as well
        ours, theirs = path.read_bytes().decode("utf-8").removeprefix("\ufeff"), text
    return None if ours == theirs else f"{shown(path)} is not the text that was locked"
