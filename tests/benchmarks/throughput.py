"""How fast, how large, how lasting: judgecal beside raw aiohttp and dspy on one stub server.

    python -m tests.benchmarks.throughput [--only speed]

Absolute numbers are those of the machine; the ratios are what counts. Every contender has a process of its
own, is warmed up before its clock starts and is run in turn with the others; the fastest of `-n`
counts, for all alike.
"""

from __future__ import annotations

import sys
import tempfile
import time

from tests.benchmarks.driver import Bench
from tests.benchmarks.processes import Found, asked, contender, stub

CONTENDERS = ("ours", "aiohttp", "dspy.Evaluate")
_MB_AT_MOST, _RESUME_S = 350.0, 3.0


def line(bench: Bench, who: str, found: Found, count: int, note: str = "") -> None:
    """One contender's numbers."""
    if "error" in found:
        bench.line(f"  {who:<16} skipped: {found['error']}")
        return
    rate, cpu = count / found["wall_s"], 1000.0 * found["cpu_s"] / count
    peak = f"{found['peak_mb']:6.0f} MB" if "peak_mb" in found else " " * 9
    bench.line(f"  {who:<16} {found['wall_s']:8.2f} s {rate:8.0f}/s {cpu:7.2f} ms CPU {peak}  {note}")


def main() -> int:
    bench = Bench(__doc__, n=2, of="rounds, the fastest counts", quick={"n": 1, "only": "speed"}, only="")
    for part in (speed, memory):
        if bench.options.only in ("", part.__name__):
            part(bench)
    return bench.end("judgecal", "aiohttp", "dspy", "litellm")


def _compare(bench: Bench, latency_ms: float, count: int, concurrency: int) -> dict[str, float]:
    """Judgements a second of every contender."""
    at_once = f"{count} judgements, {concurrency} at once"
    floor = latency_ms / 1000.0 * -(-count // concurrency)
    bench.head(f"{latency_ms:g} ms, {at_once}" + (f" (floor {floor:.1f} s)" if floor else ""))
    best: dict[str, Found] = {}
    for _ in range(bench.n):
        for name in CONTENDERS[: 2 if bench.quick else None]:
            with stub(latency_ms) as api_base:
                sizes = ("--n", str(count), "--concurrency", str(concurrency))
                found = contender(name, "--api-base", api_base, *sizes)
            kept = best.setdefault(name, found)
            if "error" not in found and ("error" in kept or found["wall_s"] < kept["wall_s"]):
                best[name] = found
    raw = best["aiohttp"].get("wall_s", 0.0)
    for name, found in best.items():
        line(bench, name, found, count, f"{raw / found.get('wall_s', 1.0):.2f} x aiohttp")
    return {name: count / found["wall_s"] for name, found in best.items() if "error" not in found}


def speed(bench: Bench) -> None:
    """The three settings of the table."""
    count = 64 if bench.quick else 2000
    rate = _compare(bench, 500.0, count, 256)
    over = count / rate["ours"] / (0.5 * -(-count // 256)) if "ours" in rate else float("inf")
    bench.target("ours, in floors", over, most=1.1)
    if bench.quick:
        return
    rate = _compare(bench, 50.0, 4000, 256)
    ours = rate.get("ours", 0.0)
    raw = ours / rate.get("aiohttp", 1e-9)
    bench.target("ours over raw aiohttp", raw, least=0.65)
    rate = _compare(bench, 0.0, 2000, 64)
    ours = rate.get("ours", 0.0)
    evaluate, raw = ours / rate.get("dspy.Evaluate", 1e-9), ours / rate.get("aiohttp", 1e-9)
    bench.target("ours over dspy.Evaluate", evaluate, least=5.0)
    bench.target("ours over raw aiohttp", raw, least=0.45)


def memory(bench: Bench) -> None:
    """100,000 judgements in one run, and the same run resumed with a few items more."""
    count = 100_000
    bench.head(f"{count} judgements at 0 ms, 64 at once, then resumed with 8 more")
    with tempfile.TemporaryDirectory() as folder, stub(0.0) as api_base:
        options = ("--api-base", api_base, "--folder", folder)
        found = contender("ours", *options, "--n", str(count), timeout=1200.0)
        line(bench, "ours", found, count)
        peak = found.get("peak_mb", float("inf"))
        bench.target("peak MB", peak, most=_MB_AT_MOST)
        asked(api_base, "reset")
        begun = time.time()
        again = contender("resume", *options, "--n", str(count))
        first = asked(api_base)
    if "error" in again or first["first_at"] is None:
        line(bench, "resumed", {"error": again.get("error", "no call was made")}, count)
    whole = (first["first_at"] or float("inf")) - begun
    from_start = (first["first_at"] or float("inf")) - again.get("began_at", begun)
    bench.target("resume, s to the first new call", from_start, most=_RESUME_S)
    bench.line(f"     {whole:.2f} s with the start of Python and the gold set; {first['calls']} calls")


if __name__ == "__main__":
    sys.exit(main())
