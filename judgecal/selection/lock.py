"""`judge.lock.json`: exactly what was chosen, runnable and readable, and refused where a character of it changed.

The lock stands alone: the signature's text, the compiled program and the settings that shape an answer are in it.
Endpoint, key and price are not: they belong to the workspace that runs it.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import json
import platform
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal import __version__
from judgecal.errors import InputError
from judgecal.experiment import Judgements
from judgecal.goldset import GoldSet
from judgecal.judges import Judge, JudgeName, load_program
from judgecal.models import ModelSpec, load_catalogue
from judgecal.records import Estimate, Item, as_plain, digest
from judgecal.scale import Label
from judgecal.workspace import SCHEMA, Workspace, check_keys, check_schema

__all__ = [
    "FittedThreshold",
    "Lock",
    "LockedGold",
    "LockedModel",
    "LockedSignature",
    "Noise",
    "answer_settings",
    "judge_of_lock",
    "load_lock",
    "make_lock",
    "model_ids",
    "reply_fingerprint",
    "require_runnable",
    "write_lock",
]

_ELSEWHERE = ("id", "api_base", "input_usd_per_1m", "output_usd_per_1m")


@dataclass(frozen=True, slots=True)
class LockedSignature:
    """A signature as it was: the file's name without `.py`, its text, and the fingerprint of what it says."""

    name: str
    text: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class LockedModel:
    """A model as it was.

    Attributes:
        alias: its name in the judge's string.
        id: the litellm id.
        model_id: the dated id that the provider returned; None where it named none.
        settings: every setting that shapes an answer, such as temperature and max_tokens.
    """

    alias: str
    id: str
    model_id: str | None
    settings: Mapping[str, Any]


def answer_settings(model: ModelSpec) -> dict[str, Any]:
    """The settings of a model that shape its answers: neither where it is reached nor what it costs."""
    return {name: value for name, value in model.settings().items() if name not in _ELSEWHERE}


def reply_fingerprint(judge: Judge) -> str:
    """16 hex digits over the model, its settings and the messages of an empty item.

    `Judge.fingerprint` also holds endpoint and price, as a journal's key must; a lock moves between both.
    """
    probe = Item("", "", "", "", reference_answers=("",))
    return digest([judge.model.id, answer_settings(judge.model), judge.messages(probe)])[:16]


def judge_of_lock(
    name: str,
    *,
    signature: LockedSignature,
    program: Mapping[str, Any] | None,
    model: LockedModel,
    fingerprint: str,
    workspace: Workspace,
) -> Judge:
    """The judge; its reply fingerprint is the locked one.

    Raises:
        InputError: the workspace's alias is gone or is another model, or the prompt is not what was locked.
    """
    _check_model(load_catalogue(workspace).resolve(model.alias), model)
    with tempfile.TemporaryDirectory(prefix="judgecal-lock-") as folder:
        alone = _lay_out(Path(folder), signature, workspace)
        judge = Judge(JudgeName(signature.name, model.alias), workspace=alone)
        if program is not None:
            path = alone.experiments / "program.json"
            path.write_text(json.dumps(program), encoding="utf-8")
            stored = load_program(path, judge.signature)
            judge.program, judge.trained_on = stored.program, stored.trained_on
    judge.name = name
    _check_prompt(judge, fingerprint)
    return judge


def _lay_out(folder: Path, signature: LockedSignature, workspace: Workspace) -> Workspace:
    """A workspace of one signature, with the models of the real one; read from before it is taken away."""
    alone = Workspace(folder, folder / "experiments")
    alone.signatures.mkdir()
    alone.experiments.mkdir()
    (alone.signatures / f"{signature.name}.py").write_text(signature.text, encoding="utf-8")
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


def _check_prompt(judge: Judge, fingerprint: str) -> None:
    found = reply_fingerprint(judge)
    if found != fingerprint:
        raise InputError(
            f"{judge.name}: this installation makes another prompt of the locked signature ({found}) than the one "
            f"that was locked ({fingerprint}): install the versions that the lock names, or run judgecal select again"
        )


_SHA = "sha256"


@dataclass(frozen=True, slots=True)
class LockedGold:
    """The gold set that the judge was confirmed on.

    Attributes:
        set: its name.
        sha256: of its content.
        split: where `Lock.agreement` is from.
        scale: the people's scale, as its string.
        pass_at: the people's pass mark, or None.
    """

    set: str
    sha256: str
    split: str
    scale: str
    pass_at: float | None


@dataclass(frozen=True, slots=True)
class Noise:
    """The judge against itself at lock time: the same items, called several times afresh.

    Attributes:
        flip_rate: share of pairs of calls on different sides of the mark, or in different classes; without a value
            where the scale has no mark.
        exact_agreement: share of pairs of calls with equal verdicts.
        n_items: items that were called; those with fewer than two verdicts say nothing.
        n_calls: calls of each item.
    """

    flip_rate: Estimate
    exact_agreement: Estimate
    n_items: int
    n_calls: int


@dataclass(frozen=True, slots=True)
class FittedThreshold:
    """The judge's own best pass mark, fitted on train + dev: shown beside the people's, never in its place.

    Attributes:
        cut: verdicts from here on pass; on the common scale of people and judge.
        balanced_accuracy: with that cut, on the items that it was fitted on: it flatters.
        n_items, n_groups: those items.
    """

    cut: float
    balanced_accuracy: float
    n_items: int
    n_groups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """A judge that was chosen, with everything needed to run it again and to notice when it changes.

    Attributes:
        judge: its string.
        fingerprint: 16 hex digits over the messages, the litellm id and the settings; unlike `Judge.fingerprint` it
            does not hang on endpoint or price, so a lock runs elsewhere.
        signature, program, model: what makes the replies; `program` is the content of `program.json`, or None.
        gold: the gold set.
        verdicts: item id -> verdict on the judge's own scale (None = unscored) of the first call, over all labelled
            items of the set that the judge was not trained on.
        agreement: METRIC -> Estimate on `gold.split`, an unscored item counted as wrong.
        own_cut: None where the scale has no pass mark or the verdicts are no grades.
        noise: at lock time.
        metric, margin: what it was chosen by, and the loss that was allowed.
        versions: of judgecal, python and the libraries that make the prompt.
        locked_at: UTC, ISO 8601.
        schema: of the file.
    """

    judge: str
    fingerprint: str
    signature: LockedSignature
    program: Mapping[str, Any] | None
    model: LockedModel
    gold: LockedGold
    verdicts: Mapping[str, Label | None]
    agreement: Mapping[str, Estimate]
    own_cut: FittedThreshold | None
    noise: Noise
    metric: str
    margin: float
    versions: Mapping[str, str]
    locked_at: str
    schema: int = SCHEMA

    @property
    def sha256(self) -> str:
        """Of everything else, in canonical JSON."""
        return digest(self._content())

    def as_json(self) -> dict[str, Any]:
        """The object of the file."""
        return {**self._content(), _SHA: self.sha256}

    def _content(self) -> dict[str, Any]:
        names = ["schema", *(field.name for field in dataclasses.fields(self) if field.name != "schema")]
        return {name: _plain(getattr(self, name)) for name in names}

    def runnable(self, workspace: Workspace) -> Judge:
        """The judge, from the lock alone; endpoint, key and price are those of the workspace's alias.

        Raises:
            InputError: the alias is gone or names another model or other settings, or this judgecal makes another
                prompt of the locked signature than the one that was locked.
        """
        return judge_of_lock(
            self.judge,
            signature=self.signature,
            program=self.program,
            model=self.model,
            fingerprint=self.fingerprint,
            workspace=workspace,
        )

    def require_gold(self, gold: GoldSet) -> None:
        """Refuse a gold set that is not the one of the lock.

        Raises:
            InputError: its content differs.
        """
        if gold.sha256 != self.gold.sha256:
            raise InputError(
                f"gold set {gold.name} has sha256 {gold.sha256[:12]}, and {self.judge} was locked on {self.gold.set} "
                f"with {self.gold.sha256[:12]}: bring that set back, or run judgecal select on the new one"
            )


def write_lock(path: Path, lock: Lock) -> None:
    """Write a lock in one step, so that a reader never meets half of it; equal locks give equal bytes.

    Raises:
        OSError: the folder cannot be written to.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    text = json.dumps(lock.as_json(), indent=2, ensure_ascii=False, allow_nan=False)
    draft.write_text(text + "\n", encoding="utf-8", newline="\n")
    draft.replace(path)


def load_lock(path: Path) -> Lock:
    """Read a lock.

    Raises:
        InputError: there is none, it is no JSON, of a later schema, lacks keys or has unknown ones, or its content
            is not what was locked.
    """
    table = _read_json(path)
    check_schema(table, str(path))
    known = {field.name for field in dataclasses.fields(Lock)} | {_SHA}
    problems = _key_problems(table, known, str(path))
    for key, kind in _PARTS.items():
        if key in table:
            problems += _part_problems(table[key], kind, f"{path}: {key}", optional=key == "own_cut")
    if problems:
        raise InputError(problems)
    _check_sha(table, path)
    try:
        return _lock_of(table)
    except (TypeError, AttributeError, KeyError) as error:
        raise InputError(f"{path}: a value is not of the kind that a lock holds ({error})") from error


_PARTS: Mapping[str, type] = {
    "signature": LockedSignature,
    "model": LockedModel,
    "gold": LockedGold,
    "noise": Noise,
    "own_cut": FittedThreshold,
}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no lock here; judgecal select writes one") from None
    except ValueError as error:
        raise InputError(f"{path}: no JSON: {error}") from None
    if not isinstance(table, dict):
        raise InputError(f"{path}: a lock is a JSON object")
    return table


def _key_problems(table: Mapping[str, Any], known: set[str], where: str) -> list[str]:
    missing = sorted(known - table.keys())
    lacking = [f"{where}: lacks {', '.join(missing)}: judgecal select writes it anew"] if missing else []
    return [*check_keys(table, known, where), *lacking]


def _part_problems(value: Any, kind: type, where: str, *, optional: bool) -> list[str]:
    if value is None and optional:
        return []
    if not isinstance(value, dict):
        return [f"{where}: must be an object"]
    return _key_problems(value, {field.name for field in dataclasses.fields(kind)}, where)


def _check_sha(table: Mapping[str, Any], path: Path) -> None:
    """What was locked is what is read: a lock is made by select, never by hand."""
    try:
        found = digest({key: value for key, value in table.items() if key != _SHA})
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    if found != table[_SHA]:
        raise InputError(
            f"{path}: its content has changed since it was locked (sha256 is {found[:12]}, locked was "
            f"{str(table[_SHA])[:12]}): a character was changed by hand; bring the file back as it was, or run "
            "judgecal select again"
        )


def _lock_of(table: Mapping[str, Any]) -> Lock:
    noise, cut = table["noise"], table["own_cut"]
    rates = {name: Estimate(**noise[name]) for name in ("flip_rate", "exact_agreement")}
    parts = {
        "signature": LockedSignature(**table["signature"]),
        "model": LockedModel(**table["model"]),
        "gold": LockedGold(**table["gold"]),
        "noise": Noise(**{**noise, **rates}),
        "own_cut": None if cut is None else FittedThreshold(**cut),
        "agreement": {name: Estimate(**found) for name, found in table["agreement"].items()},
    }
    return Lock(**{**{key: value for key, value in table.items() if key != _SHA}, **parts})


def _plain(value: Any) -> Any:
    """A field as JSON values; the parts are dataclasses, whose estimates are rows themselves."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type | Estimate):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return as_plain(value)


_LIBRARIES = ("dspy", "litellm")


def _program(judge: Judge, workspace: Workspace) -> dict[str, Any] | None:
    """The content of the judge's `program.json` without a model of its own, whose state names endpoints."""
    name = JudgeName.parse(judge.name).program
    if name is None:
        return None
    folder = Path(name) if Path(name).is_dir() else workspace.experiments / name
    content: dict[str, Any] = json.loads((folder / "program.json").read_text(encoding="utf-8"))
    return {**content, "lm": None} if "lm" in content else content


def model_ids(rows: Judgements) -> list[str]:
    """The dated ids that the provider returned, the most frequent first."""
    return [name for name, _ in Counter(row.model_id for row in rows if row.model_id).most_common()]


def make_lock(
    judge: Judge,
    *,
    gold: GoldSet,
    rows: Judgements,
    agreement: Mapping[str, Estimate],
    own_cut: FittedThreshold | None,
    noise: Noise,
    noise_rows: Judgements,
    metric: str,
    margin: float,
    workspace: Workspace,
) -> Lock:
    """Everything of a confirmed judge.

    Args:
        judge: it.
        gold, rows, agreement: its judgements of the set, and what test says of them.
        own_cut: fitted on the items of train and dev that it was chosen on.
        noise, noise_rows: of the calls at lock time; the newest that is known of the model, so its id is theirs.
        metric, margin: what it was chosen by.
        workspace: where its program is.
    """
    ids = [*model_ids(noise_rows), *model_ids(rows)]
    return Lock(
        judge=judge.name,
        **_what_runs(judge, workspace, model_id=ids[0] if ids else None),
        gold=LockedGold(gold.name, gold.sha256, "test", str(gold.scale), gold.scale.pass_at),
        verdicts={row.item_id: row.verdict for row in rows if row.repeat == 0},
        agreement=agreement,
        own_cut=own_cut,
        noise=noise,
        metric=metric,
        margin=margin,
        versions=_versions(),
        locked_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def require_runnable(judge: Judge, workspace: Workspace) -> None:
    """Refuse a judge that its own lock would not bring back, before anything is called.

    Raises:
        InputError: its signature needs more than its own file, say.
    """
    judge_of_lock(judge.name, workspace=workspace, **_what_runs(judge, workspace, model_id=None))


def _what_runs(judge: Judge, workspace: Workspace, *, model_id: str | None) -> dict[str, Any]:
    """The fields of a lock that make the judge."""
    signature, model = judge.signature, judge.model
    return {
        "fingerprint": reply_fingerprint(judge),
        "signature": LockedSignature(signature.name, signature.text, signature.fingerprint),
        "program": _program(judge, workspace),
        "model": LockedModel(model.alias, model.id, model_id, answer_settings(model)),
    }


def _versions() -> dict[str, str]:
    libraries = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    return {"judgecal": __version__, "python": platform.python_version(), **libraries}
