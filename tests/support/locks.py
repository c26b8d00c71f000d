"""Locks made by hand, for tests of the commands that read one."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from judgecal.experiment.in_python import score
from judgecal.goldset import GoldSet, load_gold
from judgecal.judges.prompt import PromptJudge
from judgecal.records import Estimate, Item, digest
from judgecal.selection.lock import (
    Lock,
    LockedGold,
    LockedModel,
    LockedSignature,
    Noise,
    answer_settings,
    reply_fingerprint,
    write_lock,
)
from judgecal.stats import Calibration, agreement
from judgecal.workspace import Workspace
from tests.support.http import as_answer
from tests.support.server import MODEL_ID, StubServer, completion, priced

HALF = Estimate(0.5, 0.4, 0.6, n=10, n_expected=10, n_groups=10, method="by hand")
KEY = "sk-not-to-be-seen"
STILL = Estimate(0.0, 0.0, 0.1, n=90, n_expected=90, n_groups=30, method="by hand")
NO_NOISE = Noise(Estimate(0.0, n=30), n_items=30, n_calls=3)


def a_lock(judge: PromptJudge, gold: GoldSet, **other: Any) -> Lock:
    """A lock of a judge on a gold set, with the verdicts that it gives now; `other` replaces fields."""
    rows = {row.item_id: row for row in score(judge, gold, split="all")}
    test = [item for item in gold.select("test") if item.item_id in gold.labels]
    fit: Calibration | None = other.get(
        "calibration", Calibration((60.0,), (0.0, 100.0), 100, 50, "train and dev of starter")
    )
    verdicts, labels = (
        [rows[item.item_id].verdict for item in test],
        [gold.labels[item.item_id] for item in test],
    )
    shared: dict[str, Any] = {
        "scale": gold.scale,
        "groups": [item.group for item in test],
        "unscored": "wrong",
    }
    found = agreement(labels, verdicts, judge_scale=judge.scale, **shared)
    calibrated = (
        {} if fit is None else agreement(labels, [fit.apply(verdict) for verdict in verdicts], **shared)
    )
    fields: dict[str, Any] = {
        "model_id": next(iter(rows.values())).model_id,
        "gold": LockedGold(gold.name, gold.sha256, "test", str(gold.scale), gold.scale.pass_at),
        "verdicts": {item_id: row.verdict for item_id, row in rows.items()},
        "calls": {item_id: (row.verdict,) * 3 for item_id, row in rows.items()},
        "unscored": sum(row.verdict is None for row in rows.values()) / len(rows),
        "agreement": found,
        "calibrated": calibrated,
        "calibration": fit,
        "noise": NO_NOISE,
        "versions": {},
    }
    return lock_of(judge, **(fields | other))


def lock_file(path: Path, judge: PromptJudge, gold: GoldSet, **other: Any) -> Path:
    """`a_lock` in a file."""
    write_lock(path, a_lock(judge, gold, **other))
    return path


def lock_of(judge: PromptJudge, *, model_id: str | None = "m-2026", **changes: Any) -> Lock:
    """A lock of a judge with made-up numbers; `changes` replace fields."""
    values: dict[str, Any] = {
        "judge": judge.name,
        "fingerprint": reply_fingerprint(judge),
        "signature": LockedSignature(judge.signature.name, judge.signature.text, judge.signature.fingerprint),
        "program": None,
        "model": LockedModel(judge.model.alias, judge.model.id, model_id, answer_settings(judge.model)),
        "gold": LockedGold("starter", "0" * 64, "test", "percentage", 75.0),
        "verdicts": {"a": 85.0, "b": None, "ü": "yes"},
        "calls": {"a": (85.0, 80.0, None), "b": (None, None, None), "ü": ("yes", "yes", "no")},
        "unscored": 4 / 9,
        "agreement": {"macro_agreement": HALF},
        "calibrated": {},
        "calibration": Calibration((62.5,), (25.0, 90.0), 20, 10, "train and dev of starter"),
        "confirmed_on_test": True,
        "noise": Noise(HALF, 30, 3),
        "metric": "macro_agreement",
        "margin": 0.03,
        "versions": {"judgecal": "0"},
        "locked_at": "2026-01-01T00:00:00+00:00",
    }
    return Lock(**{**values, **changes})


@dataclasses.dataclass
class Scripted:
    """A stub's judge: the verdict of each item, and what it does with it at each further call of that
    item."""

    gold: GoldSet
    judge: PromptJudge
    change: Callable[[Item, int, float], float | None] = lambda item, n, verdict: verdict
    model_id: str = MODEL_ID
    calls: Counter[str] = dataclasses.field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.by_prompt = {str(self.judge.messages(item)[-1]["content"]): item for item in self.gold.items}
        rng = random.Random(3)
        self.verdicts = {
            item.item_id: float(
                round(min(100.0, max(0.0, float(self.gold.labels[item.item_id]) + rng.gauss(0, 25))))
            )
            for item in self.gold.items
        }

    def __call__(self, body: dict[str, Any]) -> Any:
        item = self.by_prompt[body["messages"][-1]["content"]]
        self.calls[item.item_id] += 1
        verdict = self.change(item, self.calls[item.item_id], self.verdicts[item.item_id])
        number = "no number" if verdict is None else f"{verdict:g}"
        text = f"[[ ## correctness_reasoning ## ]]\nSo.\n\n[[ ## correctness_percentage ## ]]\n{number}\n\n"
        return as_answer(completion(f"{text}[[ ## completed ## ]]", model=self.model_id))


@dataclasses.dataclass
class Served:
    """A served judge with its lock."""

    stub: StubServer
    script: Scripted
    lock: Lock
    path: Path
    workspace: Workspace


def drawn(item: Item, n: int) -> float:
    """A number in 0..1 for the nth call of an item."""
    return int(digest([item.item_id, n])[:8], 16) / 16**8


def flips(rate: float) -> Callable[[Item, int, float], float]:
    return lambda item, n, verdict: 100.0 - verdict if drawn(item, n) < rate else verdict


@pytest.fixture
def served(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A model `mine` that gives the locked verdicts, with a price and a key, and a lock of it."""
    monkeypatch.setenv("MY_KEY", KEY)
    with priced(workspace_dir, lambda _: "") as stub:
        workspace = Workspace(workspace_dir, workspace_dir / "experiments")
        gold = load_gold("starter", workspace=workspace)
        judge = PromptJudge("correctness_v3@mine", workspace=workspace)
        stub.script = script = Scripted(gold, judge)
        model = dataclasses.replace(lock_of(judge).model, model_id=MODEL_ID)
        lock = lock_of(
            judge,
            model=model,
            gold=LockedGold("starter", gold.sha256, "test", "percentage", gold.scale.pass_at),
            verdicts=script.verdicts,
            calls={item_id: (verdict,) * 3 for item_id, verdict in script.verdicts.items()},
            unscored=0.0,
            calibration=None,
            noise=Noise(STILL, 30, 3),
        )
        path = workspace_dir / "judge.lock.json"
        write_lock(path, lock)
        yield Served(stub, script, lock, path, workspace)
