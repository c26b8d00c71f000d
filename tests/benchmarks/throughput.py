"""How fast, how large, how lasting: judgecal beside raw aiohttp, litellm and dspy on one stub server.

    python -m tests.benchmarks.throughput [--quick] [--only speed]

Absolute numbers are those of the machine; the ratios are what counts. Every contender has a process of its
own, is warmed up before its clock starts and is run in turn with the others; the fastest of `--rounds`
counts, for all alike.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version

from tests.benchmarks.processes import Found, asked, contender, stub

CONTENDERS = ("ours", "aiohttp", "litellm", "dspy.Evaluate", "dspy.acall")
_MB_AT_MOST, _RESUME_S, _EMBEDDED_A_SECOND = 350.0, 3.0, 1500.0


@dataclass
class Report:
    """The lines of the table, printed as they come; `missed` counts targets that were not reached."""

    missed: int = 0
    results: dict[str, Found] = field(default_factory=dict)

    def head(self, text: str) -> None:
        print(f"\n{text}", flush=True)

    def line(self, who: str, found: Found, count: int, note: str = "") -> None:
        """One contender's numbers."""
        if "error" in found:
            print(f"  {who:<16} skipped: {found['error']}", flush=True)
            return
        rate, cpu = count / found["wall_s"], 1000.0 * found["cpu_s"] / count
        peak = f"{found['peak_mb']:6.0f} MB" if "peak_mb" in found else " " * 9
        print(
            f"  {who:<16} {found['wall_s']:8.2f} s {rate:8.0f}/s {cpu:7.2f} ms CPU {peak}  {note}", flush=True
        )

    def target(self, what: str, value: float, wanted: str, met: bool) -> None:
        """One target of the table, met or MISSED."""
        self.missed += not met
        print(f"  -> {what}: {value:.2f}; target {wanted}: {'met' if met else 'MISSED'}", flush=True)


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    rounds: int
    scale: int

    def of(self, count: int) -> int:
        return max(count // self.scale, 64)


def main() -> int:
    """Run what was asked for; exit 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything: to see that it runs")
    parser.add_argument("--only", choices=PARTS, help="one part of the table")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    size, report = Size(1 if args.quick else args.rounds, 10 if args.quick else 1), Report()
    for name, part in PARTS.items():
        if args.only in (None, name):
            part(report, size)
    packages = ", ".join(f"{p} {version(p)}" for p in ("judgecal", "aiohttp", "dspy", "litellm"))
    quick = ", --quick: not the sizes of the targets" if args.quick else ""
    print(
        f"\nrun: {packages}; Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"{platform.system()}; server and client on one machine, best of "
        f"{size.rounds}{quick}\n{report.missed} targets missed"
    )
    return 1 if report.missed else 0


def _compare(
    report: Report, latency_ms: float, count: int, concurrency: int, rounds: int
) -> dict[str, float]:
    """Judgements a second of every contender."""
    at_once = f"{count} judgements, {concurrency} at once"
    floor = latency_ms / 1000.0 * -(-count // concurrency)
    report.head(f"{latency_ms:g} ms, {at_once}" + (f" (floor {floor:.1f} s)" if floor else ""))
    best: dict[str, Found] = {}
    for _ in range(rounds):
        for name in CONTENDERS:
            with stub(latency_ms) as api_base:
                sizes = ("--n", str(count), "--concurrency", str(concurrency))
                found = contender(name, "--api-base", api_base, *sizes)
            kept = best.setdefault(name, found)
            if "error" not in found and ("error" in kept or found["wall_s"] < kept["wall_s"]):
                best[name] = found
    raw = best["aiohttp"].get("wall_s", 0.0)
    for name, found in best.items():
        report.line(name, found, count, f"{raw / found.get('wall_s', 1.0):.2f} x aiohttp")
    return {name: count / found["wall_s"] for name, found in best.items() if "error" not in found}


def speed(report: Report, size: Size) -> None:
    """The three settings of the table."""
    count = size.of(2000)
    rate = _compare(report, 500.0, count, 256, size.rounds)
    over = count / rate["ours"] / (0.5 * -(-count // 256)) if "ours" in rate else float("inf")
    report.target("ours, in floors", over, "at most 1.1", over <= 1.1)
    rate = _compare(report, 50.0, size.of(4000), 256, size.rounds)
    ours = rate.get("ours", 0.0)
    raw = ours / rate.get("aiohttp", 1e-9)
    report.target("ours over raw aiohttp", raw, "at least 0.65", raw >= 0.65)
    times = ours / max(rate.get("litellm", 0.0), rate.get("dspy.Evaluate", 0.0), rate.get("dspy.acall", 0.0))
    report.target("ours over the better of litellm and dspy", times, "at least 7", times >= 7.0)
    rate = _compare(report, 0.0, size.of(2000), 64, size.rounds)
    ours = rate.get("ours", 0.0)
    evaluate, raw = ours / rate.get("dspy.Evaluate", 1e-9), ours / rate.get("aiohttp", 1e-9)
    report.target("ours over dspy.Evaluate", evaluate, "at least 5", evaluate >= 5.0)
    report.target("ours over raw aiohttp", raw, "at least 0.45", raw >= 0.45)


def cpu(report: Report, size: Size) -> None:
    """CPU a judgement as a run grows: what is quadratic shows here."""
    report.head("CPU a judgement at 0 ms, 64 at once: ours")
    each = {}
    for count, rounds in ((500, 3), (size.of(50_000), 1)):
        spent = []
        for _ in range(rounds):
            with stub(0.0) as api_base:
                found = contender("ours", "--api-base", api_base, "--n", str(count), timeout=900.0)
            report.line(f"ours, N={count}", found, count)
            spent.append(found.get("cpu_s", float("inf")) / count)
        each[count] = statistics.median(spent)
    small, large = each.values()
    growth = large / small
    report.target("CPU a judgement, large over small N", growth, "at most 1.15", growth <= 1.15)


def memory(report: Report, size: Size) -> None:
    """100,000 judgements in one run, and the same run resumed with a few items more."""
    count = size.of(100_000)
    report.head(f"{count} judgements at 0 ms, 64 at once, then resumed with 8 more")
    with tempfile.TemporaryDirectory() as folder, stub(0.0) as api_base:
        options = ("--api-base", api_base, "--folder", folder)
        found = contender("ours", *options, "--n", str(count), timeout=1200.0)
        report.line("ours", found, count)
        peak = found.get("peak_mb", float("inf"))
        report.target("peak MB", peak, f"under {_MB_AT_MOST:g}", peak < _MB_AT_MOST)
        asked(api_base, "reset")
        begun = time.time()
        again = contender("resume", *options, "--n", str(count))
        first = asked(api_base)
    if "error" in again or first["first_at"] is None:
        report.line("resumed", {"error": again.get("error", "no call was made")}, count)
    whole = (first["first_at"] or float("inf")) - begun
    from_start = (first["first_at"] or float("inf")) - again.get("began_at", begun)
    report.target(
        "resume, s to the first new call", from_start, f"under {_RESUME_S:g}", from_start < _RESUME_S
    )
    print(
        f"     {whole:.2f} s with the start of Python and the loading of the gold set; {first['calls']} calls"
    )


def embedded(report: Report, size: Size) -> None:
    """The offline model, start-up excluded: what 20,000 more items take."""
    base, more = size.of(2000), size.of(20_000)
    report.head(f"embedded, {more} items")
    options = ("--model", "embedded", "--n", str(base + more), "--less", str(base))
    found = contender("ours", *options, timeout=600.0)
    report.line("embedded", found, more)
    rate = more / found["wall_s"] if "error" not in found else 0.0
    met = rate >= _EMBEDDED_A_SECOND
    report.target("embedded, judgements a second", rate, f"at least {_EMBEDDED_A_SECOND:g}", met)


PARTS: dict[str, Callable[[Report, Size], None]] = {
    "speed": speed,
    "cpu": cpu,
    "memory": memory,
    "embedded": embedded,
}


if __name__ == "__main__":
    sys.exit(main())
