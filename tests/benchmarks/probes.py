"""Probes on simulated judges: do the intervals cover, how often is a fair judge said to break, and is one that
obeys found.

    python -m tests.benchmarks.probes [-n RUNS]
    python -m tests.benchmarks.probes --mend -n 10 [--optimizer labeled ...]

A fair judge gives the true height plus noise, and at random any height at all on some calls. One that obeys
gives full marks to 30% of the answers that ask for them.

`--mend`: `judgecal optimize --probes` itself on such a judge, served (`tests/support/obeying.py`), a run a seed on
a made-up set of 88 questions: the shares broken before and after with a 95% interval over the runs, in how many
runs test shows fewer, and the same of a judge that no prompt mends, of which test must show none.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from judgecal.experiment.verdicts import Cut
from judgecal.probes.family import Family, FamilyProbes, Kind, Probe
from judgecal.probes.result import Footing, ProbeVerdicts, family_result
from judgecal.records import Item
from judgecal.scale import Scale
from judgecal.stats.intervals import mean_estimate
from tests.benchmarks.driver import Bench, slack
from tests.support.command import fresh_workspace
from tests.support.gold import made_gold, made_items, rated
from tests.support.instructed import serving
from tests.support.obeying import ASKING, obeying

_N, _FAMILIES, MOST = 50, 21, 0.05
_SCALES = {"percentage": Scale.parse("percentage", pass_at=70.0), "binary": Scale.parse("binary")}
_HEIGHTS: dict[Kind, tuple[float, float]] = {
    "full": (0.5, 0.95), "none": (0.5, 0.05), "falls": (0.95, 0.3), "still": (0.5, 0.5), "no_rise": (0.15, 0.15)
}  # fmt: skip
"""True heights of the answers and of the probes made of them."""


def made(kind: Kind, *, per_group: int) -> FamilyProbes:
    """Fifty probes of a kind, so many to a question."""
    probes, family = [], Family(kind, kind, "", lambda item, _sources, _rng: item.answer)
    for at in range(_N):
        of = Item(f"i{at}", f"g{at // per_group}", "q", "a")
        probes.append(Probe(Item(f"i{at}~{kind}", of.group, "q", "b"), of, family))
    return tuple(probes)


def verdicts(
    rng: np.random.Generator, truth: np.ndarray[Any, Any], *, noise: float, random: float, binary: bool
) -> np.ndarray[Any, Any]:
    """Of a fair judge, on its scale."""
    given = np.clip(truth + rng.normal(0.0, noise, truth.shape), 0.0, 1.0)
    given = np.where(rng.random(truth.shape) < random, rng.random(truth.shape), given)
    return np.where(given >= 0.5, 1.0, 0.0) if binary else np.round(100.0 * given)


def simulated(
    kind: Kind, rng: np.random.Generator, runs: int, *, scale: str, per_group: int, noise: float, random: float,
    obeys: float = 0.0
) -> dict[str, float]:  # fmt: skip
    """Coverage of the share broken, and how often the family is said to break the judge."""
    family, footing = made(kind, per_group=per_group), Footing(Cut(_SCALES[scale], _SCALES[scale]))
    before, after = _HEIGHTS[kind]
    spread = rng.normal(0.0, 0.05, (runs, _N // per_group)).repeat(per_group, axis=1)
    how: dict[str, Any] = {"noise": noise, "random": random, "binary": scale == "binary"}
    first, again = (verdicts(rng, before + spread, **how) for _ in range(2))
    probe = verdicts(rng, after + spread, **how)
    obeyed = rng.random((runs, _N // per_group)).repeat(per_group, axis=1) < obeys
    probe = np.where(obeyed, 1.0 if scale == "binary" else 100.0, probe)
    results = []
    for run in range(runs):
        given = {one.of.item_id: first[run, at] for at, one in enumerate(family)}
        given |= {one.item.item_id: probe[run, at] for at, one in enumerate(family)}
        second = {one.of.item_id: again[run, at] for at, one in enumerate(family)}
        results.append(family_result(family, ProbeVerdicts(footing, given, second), of=_FAMILIES))
    known = [one for one in results if one.broken.low is not None and one.broken.high is not None]
    weights = np.array([one.n for one in results], dtype=np.float64)
    true = float(np.sum([(one.broken.value or 0.0) * one.n for one in results]) / weights.sum())
    return {
        "true": true,
        "noise": float(np.mean([one.noise.value for one in known])),
        "covered": float(
            np.mean([(one.broken.low or 0.0) <= true <= (one.broken.high or 0.0) for one in known])
        ),
        "shown": float(np.mean([one.shown for one in results])),
        "n": float(weights.mean()),
    }


def optimized(optimizer: str, seed: int, *, deaf: bool) -> dict[str, Any]:
    """What `optimize --probes` prints of the served judge."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        workspace = fresh_workspace(Path(folder) / "w")
        patch.setenv("JUDGECAL_CACHE_DIR", f"{folder}/cache")
        rows = made_items(88, seed=seed)
        made_gold(workspace / "gold/facts", rows, rated(rows, {"full": 100, "half": 50, "none": 0}))
        with serving(workspace, patch, obeying(seed, deaf=deaf)):
            asked = (
                f"optimize --gold facts --model mine --optimizer {optimizer} --probes --json --seed {seed}"
            )
            command = [sys.executable, "-m", "judgecal", *asked.split()]
            ran = subprocess.run(command, cwd=workspace, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def mending(optimizer: str, runs: int, *, deaf: bool) -> None:
    """Print what so many runs come to."""
    results = [optimized(optimizer, seed, deaf=deaf) for seed in range(runs)]
    counts = {
        "taken for its probes": sum("fewest broken probes" in one["choice"] for one in results),
        "test opened": sum(one["probes"]["test"] is not None for one in results),
        "test shows fewer": sum(one["headline"]["kind"] == "mended" for one in results),
        "said to be worse": sum(one["decision"] == "worse" for one in results),
    }
    print(f"{optimizer}, {'no prompt mends it' if deaf else 'a prompt mends it'}, {runs} runs: {counts}")
    for split in ("dev", "test"):
        probes = [one["probes"][split] for one in results if one["probes"][split]]
        pairs = [[one["families"].get(name, (None, None)) for name in ASKING] for one in probes]
        columns: dict[str, list[float]] = {}
        for at, when in enumerate(("before", "after")):
            columns[f"of all probes {when}"] = [one[when]["value"] for one in probes]
            columns[f"of {', '.join(ASKING)} {when}"] = [
                float(np.mean([pair[at] for pair in of if pair[at] is not None])) for of in pairs
            ]
        metric = results[0]["metric"]
        columns["agreement, after less before"] = [
            one[split]["after"][metric]["value"] - one[split]["before"][metric]["value"]
            for one in results
            if one["probes"][split]
        ]
        for name, values in columns.items():
            share = mean_estimate(np.array(values), [str(at) for at in range(len(values))], low=-1.0)
            ends = f"[{100 * share.low:.1f}, {100 * share.high:.1f}]" if share.low is not None else ""
            print(f"    {split}, {name}: {100 * (share.value or 0.0):.1f}% {ends} ({len(values)} runs)")


def main() -> int:
    """Print a line a case."""
    bench = Bench(__doc__, n=400, of="runs", mend=False, optimizer=list[str]())
    if bench.options.mend:
        for optimizer in bench.options.optimizer or ["fewshot", "gepa", "simba"]:
            mending(optimizer, bench.n, deaf=False)
            mending(optimizer, bench.n, deaf=True)
        return bench.end()
    rng = np.random.default_rng(35)
    bench.head("judge, kind, answers a question: true share broken, noise, covered (95%), said to break, n")
    judges = (("percentage", 0.05, 0.02), ("percentage", 0.15, 0.05), ("binary", 0.05, 0.10))
    for (scale, noise, random), kind, per_group in bench.some(
        itertools.product(judges, get_args(Kind), (1, 2))
    ):
        case = {"scale": scale, "per_group": per_group, "noise": noise, "random": random}
        found = simulated(kind, rng, bench.n, **case)
        text = f"fair {scale} {noise:.2f} {random:.2f}, {kind}, {per_group}: {_line(found)}"
        bench.line(text, kept=found["shown"] <= MOST + slack(MOST, bench.n))
    for scale, per_group in bench.some(itertools.product(_SCALES, (1, 2))):
        case = {"scale": scale, "per_group": per_group, "noise": 0.05, "random": 0.02, "obeys": 0.3}
        found = simulated("no_rise", rng, bench.n, **case)
        bench.line(f"obeys 30%, {scale}, no_rise, {per_group}: {_line(found)}")
    return bench.end()


def _line(found: dict[str, float]) -> str:
    shares = ", ".join(f"{100 * found[name]:.1f}%" for name in ("true", "noise", "covered", "shown"))
    return f"{shares}, {found['n']:.0f}"


if __name__ == "__main__":
    sys.exit(main())
