"""What the labelling page holds: labels through `kill -9`, 20 raters at once, a large set. By hand, some four
minutes. `python -m tests.benchmarks.desk`

- The page is served, one item is labelled over HTTP, and the server is killed (-9) once the reply is there;
200 times.
  200 labels are then in `ratings.jsonl`, each once.
- 20 raters at once label 100 items each, each as fast as replies come: 2,000 labels, none lost, 95% of them
answered
  within 100 ms.
- A set of 20,000 items: from the files to the first item within 1 s.

Exits 1 where one of them breaks; on a busy machine the times are longer than they are.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import aiohttp

from judgecal.desk.server import DeskServer
from judgecal.goldset import load_gold
from tests.support.desk import Served, act, desk_of, ratings, served, waiting
from tests.support.gold import made_gold

KILLS, RATERS, EACH, LARGE = 200, 20, 100, 20_000


async def ask(
    session: aiohttp.ClientSession, desk: Served, rater: str, verb: str, **sent: object
) -> dict[str, Any]:
    """One act of a rater's page."""
    url, headers = f"{desk.address}act/{verb}", desk.headers(rater)
    async with session.post(url, json=sent, headers=headers) as reply:
        told = await reply.json()
        assert reply.status == 200, told
        return told


def _serves(gold: Path, links: Connection) -> None:
    with desk_of(gold, ("ann",)) as desk:
        asyncio.run(DeskServer(desk).serve(links.send))


def kills(folder: Path) -> bool:
    """Serve, label one, kill; as often as said. Forked, as a start of Python takes longer than all the
    rest."""
    gold, fork = waiting(folder / "gold" / "killed", KILLS + 10), multiprocessing.get_context("fork")

    async def one(desk: Served) -> None:
        async with aiohttp.ClientSession(trust_env=False) as session:
            told = await ask(session, desk, "ann", "next")
            await ask(session, desk, "ann", "label", item=told["item"]["key"], label="yes")

    started = time.perf_counter()
    for done in range(1, KILLS + 1):
        here, there = fork.Pipe()
        child = fork.Process(target=_serves, args=(gold, there))
        child.start()
        asyncio.run(one(Served(None, here.recv())))  # type: ignore[arg-type]
        child.kill()
        child.join()
        rows = ratings(gold)
        if len(rows) != done or len({row["item_id"] for row in rows}) != done:
            print(f"after kill {done}: {len(rows)} labels")
            return False
    n = len(load_gold(gold).labels)
    print(f"{KILLS} starts and kills in {time.perf_counter() - started:.0f} s: {n} labels, each once")
    return n == KILLS


def at_once(folder: Path) -> bool:
    """Everybody labels everything, as fast as it goes."""
    gold = waiting(folder / "gold" / "crowd", EACH)
    raters, times = [f"r{place:02d}" for place in range(RATERS)], list[float]()

    async def labels(session: aiohttp.ClientSession, desk: Served, rater: str) -> None:
        told = await ask(session, desk, rater, "next")
        while told["item"]:
            started = time.perf_counter()
            told = await ask(session, desk, rater, "label", item=told["item"]["key"], label="yes")
            times.append(time.perf_counter() - started)
            if len(times) % 200 == 0:
                await ask(session, desk, rater, "counts")

    async def everybody(desk: Served) -> None:
        async with aiohttp.ClientSession(trust_env=False) as session:
            await asyncio.gather(*(labels(session, desk, rater) for rater in raters))

    with served(folder, "label", "crowd", "--raters", ",".join(raters), "--overlap", "1") as desk:
        started = time.perf_counter()
        asyncio.run(everybody(desk))
        took = time.perf_counter() - started
        desk.interrupt()
    rows, times = ratings(gold), sorted(times)
    n, p95 = len({(row["item_id"], row["rater"]) for row in rows}), times[int(0.95 * len(times))]
    print(
        f"{RATERS} raters at once: {len(rows)} labels, {n} of them different, in {took:.1f} s; p95 "
        f"{1000 * p95:.0f} ms"
    )
    return len(rows) == n == RATERS * EACH and p95 < 0.1


def large(folder: Path) -> bool:
    """From the files to the first item."""
    text = {
        "question": "What did Arnel sell at the fair? " * 3,
        "answer": "Copper, tin, oak and slate were sold. " * 5,
    }
    rows = [{"item_id": f"i{place:05d}", "group": f"g{place // 4}", **text} for place in range(LARGE)]
    gold = made_gold(folder / "gold" / "large", rows, (), scale='kind = "binary"')
    times = []
    for _ in range(3):
        started = time.process_time()  # there is nothing to wait for but the machine's other work
        with desk_of(gold, ("ann", "bob"), overlap=0.3) as desk:
            assert act(desk, "ann", "next")["left"] == LARGE
            times.append(time.process_time() - started)
    print(f"{LARGE:,} items: {min(times):.2f} s of CPU to the first item")
    return min(times) < 1.0


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "signatures").mkdir()  # so that it is a workspace
        held = {one.__name__: one(Path(name)) for one in (large, at_once, kills)}
    print(json.dumps(held))
    return 0 if all(held.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
