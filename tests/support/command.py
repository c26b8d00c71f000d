"""What tests of commands share: running one, and holding its object against the contract's keys."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.experiment.judgements import read_verdicts
from judgecal.report.wording import CHIPS

ROOT = Path(__file__).resolve().parent.parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"


@dataclass(frozen=True)
class Ran:
    """What a command line came to."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """What was printed, as one line and without its chip: where it was wrapped does not matter."""
        first, apart, rest = " ".join(self.out.split()).partition(" · ")
        return rest if apart and first[2:] in CHIPS else first + apart + rest


Run = Callable[..., Ran]

# The keys of the contract's objects.
ESTIMATE = {"value", "low", "high", "level", "n", "n_expected", "n_groups", "n_unscored", "method", "reason"}
TABLE = {"experiment", "gold", "judges", "floor", "raters", "test_looks", "run_line"}
GOLD = {"set", "sha256", "split", "n_items", "n_groups"}
JUDGE = {
    "judge", "n", "n_expected", "n_unscored", "agreement", "as_wrong", "latency_s", "usd_per_1k", "tokens",
}  # fmt: skip
NUMBER = int | float
BASE = {"mean_agreement", "macro_agreement", "skill", "mae", "bias"}
CLASS = {"accuracy", "kappa", "tpr", "tnr"}


def write_signature(workspace: Path, name: str, inputs: str, verdict: str) -> None:
    """A signature of plain DSPy; `verdict` is the type of its verdict, of an `int` from 0 to 100."""
    bounds = "ge=0, le=100, " if verdict == "int" else ""
    fields = "".join(f"    {field}: str = dspy.InputField()\n" for field in inputs.split(","))
    path = workspace / "signatures" / f"{name}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f"from typing import Literal\n\nimport dspy\n\n\nclass Policy(dspy.Signature):\n"
        f'    """Judge {inputs.rpartition(",")[2]} by what the other inputs say, as the policy says."""\n\n'
        f"{fields}    reasoning: str = dspy.OutputField()\n"
        f'    verdict: {verdict} = dspy.OutputField({bounds}desc="the verdict")\n',
        encoding="utf-8",
    )


def fresh_workspace(folder: Path) -> Path:
    """A workspace with the repository's signatures, suites and gold sets."""
    folder.mkdir()
    for name in ("signatures", "suites", "gold"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def one_object(ran: Ran, code: int = 0) -> dict[str, Any]:
    """stdout as exactly one JSON object."""
    assert ran.code == code, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    assert isinstance(found, dict)
    return found


def check_estimate(found: dict[str, Any]) -> None:
    """Every field is there with its type, and what is missing has a reason."""
    assert set(found) == ESTIMATE
    for name in ("value", "low", "high"):
        assert found[name] is None or isinstance(found[name], NUMBER)
    assert isinstance(found["level"], float) and isinstance(found["method"], str)
    assert all(
        type(found[name]) is int and found[name] >= 0
        for name in ESTIMATE
        if name.startswith("n_") or name == "n"
    )
    assert found["reason"] is None or isinstance(found["reason"], str)
    if found["value"] is None or found["low"] is None:
        assert found["reason"]
    elif found["high"] is not None:
        assert found["low"] <= found["value"] <= found["high"]


def check_estimates(found: dict[str, Any], names: set[str]) -> None:
    assert names <= set(found)
    for estimate in found.values():
        check_estimate(estimate)


def check_judge(one: dict[str, Any], names: set[str]) -> None:
    assert set(one) >= JUDGE
    assert isinstance(one["judge"], str)
    assert all(type(one[name]) is int for name in ("n", "n_expected", "n_unscored"))
    assert one["n"] + one["n_unscored"] == one["n_expected"]
    check_estimates(one["agreement"], names)
    check_estimates(one["as_wrong"], names)
    assert set(one["latency_s"]) == {"p50", "p95"}
    assert set(one["tokens"]) == {"prompt", "completion"}
    assert one["usd_per_1k"] is None or isinstance(one["usd_per_1k"], NUMBER)


def check_table(found: dict[str, Any], names: set[str]) -> None:
    """The object of `score` and `agreement`."""
    assert set(found) >= TABLE
    assert set(found["gold"]) >= GOLD
    assert re.fullmatch(r"[0-9a-f]{64}", found["gold"]["sha256"])
    for one in [*found["judges"], *found["floor"], *found["raters"]]:
        check_judge(one, names)
    for rater in found["raters"]:
        assert [one["judge"] for one in rater["judges"]] == [one["judge"] for one in found["judges"]]
        for one in rater["judges"]:
            check_judge(one, names)
    assert type(found["test_looks"]) is int
    assert found["run_line"].startswith(f"gold:{found['gold']['set']}@{found['gold']['sha256'][:12]}|split:")


def journal(workspace: Path, slug: str) -> list[dict[str, Any]]:
    """The judgements of an experiment, from its journal and its Parquet."""
    folder = workspace / "experiments" / slug
    path = folder / "judgements.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [*map(json.loads, lines), *(row.as_json() for row in read_verdicts(folder / "verdicts.parquet"))]


def tree(folder: Path) -> dict[str, bytes]:
    """Every file under a folder with its bytes, to hold against a later look."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }
