"""What is measured, one contender a process: `python -m tests.benchmarks.contenders NAME --api-base URL ...`.

Each judges N made-up items with the messages of `correctness_v3` and prints one JSON object: wall time, CPU
time and peak memory of this process. Imports, set-up and a few calls to warm up come before the clock starts,
for all alike.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

WARM_UP = 8
MODEL = "stub-model"
_TEXT = """river council bridge vote storm harbour engine museum letter winter glacier orchard signal copper village
teacher festival north canal theatre captain market library island railway"""
_WORDS = _TEXT.split()

Run = Callable[[int], Any]


def texts(count: int, seed: int = 0) -> Iterator[tuple[str, str, str]]:
    """Made-up question, reference and answer, as long as those of open-domain question answering."""
    rng = random.Random(seed)
    for number in range(count):
        question = " ".join(rng.choices(_WORDS, k=10))
        reference = " ".join(rng.choices(_WORDS, k=3))
        told = reference if rng.random() < 0.6 else " ".join(rng.choices(_WORDS, k=3))
        answer = f"The answer is {told}, as {' '.join(rng.choices(_WORDS, k=20))}."
        yield f"What was the {question} of {1000 + number}?", reference, answer


def write_workspace(folder: Path, count: int, toml: str) -> None:
    """A workspace with the repository's signatures, one gold set `made_up` and these aliases."""
    from judgecal.workspace import init_workspace

    init_workspace(folder)
    gold = folder / "gold" / "made_up"
    gold.mkdir()
    card = (folder / "gold" / "starter" / "card.toml").read_text(encoding="utf-8")
    (gold / "card.toml").write_text(card.replace('name = "starter"', 'name = "made_up"'), encoding="utf-8")
    rng = random.Random(1)
    with (gold / "items.jsonl").open("w") as items, (gold / "ratings.jsonl").open("w") as ratings:
        for number, (question, reference, answer) in enumerate(texts(count)):
            item = {"item_id": f"i{number:06d}", "group": f"q{number:06d}"}
            content = {"question": question, "answer": answer, "reference_answer": reference}
            items.write(json.dumps({**item, **content}) + "\n")
            label = {"rater": "curator_a", "label": rng.choice((0, 50, 100))}
            ratings.write(json.dumps({"item_id": item["item_id"], **label}) + "\n")
    (folder / "judgecal.toml").write_text(toml, encoding="utf-8")


def alias(api_base: str, concurrency: int, extra: str = "") -> str:
    """An alias `stub` for the stub server."""
    return (
        f'[models.stub]\nid = "openai/{MODEL}"\napi_base = "{api_base}"\nmax_concurrency = {concurrency}\n'
        f"input_usd_per_1m = 0.1\noutput_usd_per_1m = 0.4\n{extra}"
    )


def messages(count: int) -> list[list[dict[str, Any]]]:
    """What every contender sends: DSPy's chat format of the judge's signature."""
    import dspy

    signature = _signature()
    adapter = dspy.ChatAdapter()
    return [
        adapter.format(
            signature, [], {"question": question, "reference_answer": reference, "answer_under_test": answer}
        )
        for question, reference, answer in texts(count)
    ]


def _signature() -> Any:
    from judgecal.signatures import load_signature

    return load_signature("correctness_v3").cls


async def _pool(send: Callable[[Any], Awaitable[Any]], payloads: Sequence[Any], concurrency: int) -> int:
    """Send every payload, so many at a time; how many were answered."""
    done, waiting = 0, iter(payloads)

    async def worker() -> None:
        nonlocal done
        for payload in waiting:
            await send(payload)
            done += 1

    await asyncio.gather(*(worker() for _ in range(concurrency)))
    return done


def ours(args: argparse.Namespace) -> Run:
    """The real path: gold set, judge, journal on disk, stored replies, progress."""
    from judgecal.engine.run import RunOptions
    from judgecal.experiment.score import asked_items
    from judgecal.experiment.trials import open_journal, run_trials
    from judgecal.goldset import load_gold
    from judgecal.judges.prompt import PromptJudge
    from judgecal.workspace import find_workspace

    folder = Path(args.folder or tempfile.mkdtemp())
    if not (folder / "gold").exists():
        write_workspace(folder, args.n + WARM_UP, alias(args.api_base, args.concurrency))
    os.environ["JUDGECAL_CACHE_DIR"] = str(folder / "cache")
    workspace = find_workspace(folder)
    judge = PromptJudge("correctness_v3@stub", workspace=workspace)
    items = asked_items(load_gold("made_up", workspace=workspace), "all")

    def run(count: int) -> int:
        part = items[-count:] if count == WARM_UP else items[:count]
        options = RunOptions()
        path = folder / f"run-{count}" / "judgements.jsonl"
        with open_journal(path, options) as journal:
            rows = run_trials([judge], part, journal=journal, options=options)
        return sum(row.verdict is not None for row in rows)

    return run


def resume(args: argparse.Namespace) -> Run:
    """A run of `ours` that is done, taken up again with the items of the warm-up as new ones; no stored
    replies."""
    from judgecal.engine.run import RunOptions
    from judgecal.experiment.score import asked_items
    from judgecal.experiment.trials import open_journal, run_trials
    from judgecal.goldset import load_gold
    from judgecal.judges.prompt import PromptJudge
    from judgecal.workspace import find_workspace

    folder = Path(args.folder)
    workspace = find_workspace(folder)
    judge = PromptJudge("correctness_v3@stub", workspace=workspace)
    items = asked_items(load_gold("made_up", workspace=workspace), "all")

    def run(count: int) -> int:
        options = RunOptions(use_cache=False)
        with open_journal(folder / f"run-{count}" / "judgements.jsonl", options) as journal:
            return len(run_trials([judge], items, journal=journal, options=options)) - WARM_UP

    return run


def raw_aiohttp(args: argparse.Namespace) -> Run:
    """A session, a semaphore's worth of workers and `response.json()`: what a client can reach at all."""
    import aiohttp

    bodies = [{"model": MODEL, "messages": sent} for sent in messages(args.n)]

    async def main(count: int) -> int:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def send(body: Any) -> str:
                async with session.post(f"{args.api_base}/chat/completions", json=body) as response:
                    reply = await response.json()
                    return str(reply["choices"][0]["message"]["content"])

            return await _pool(send, bodies[:count], args.concurrency)

    return lambda count: asyncio.run(main(count))


def dspy_evaluate(args: argparse.Namespace) -> Run:
    """`dspy.Evaluate` over `dspy.Predict`, as many threads as calls at once."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import dspy

    dspy.configure(lm=dspy.LM(f"openai/{MODEL}", api_base=args.api_base, api_key="none", cache=False))
    names = ("question", "reference_answer", "answer_under_test")
    rows = (dict(zip(names, row, strict=True)) for row in texts(args.n))
    program, examples = dspy.Predict(_signature()), [dspy.Example(**row).with_inputs(*names) for row in rows]

    def metric(_example: Any, found: Any, _trace: Any = None) -> float:
        return found.correctness_percentage / 100

    def run(count: int) -> int:
        evaluate = dspy.Evaluate(
            devset=examples[:count], metric=metric, num_threads=args.concurrency, display_progress=False
        )
        return len(evaluate(program).results)

    return run


CONTENDERS = {"ours": ours, "resume": resume, "aiohttp": raw_aiohttp, "dspy.Evaluate": dspy_evaluate}


def parser() -> argparse.ArgumentParser:
    """The options of one measurement."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("name", choices=CONTENDERS)
    options.add_argument("--api-base", default="http://127.0.0.1:9/v1")
    options.add_argument("--n", type=int, default=500)
    options.add_argument("--concurrency", type=int, default=64)
    options.add_argument("--folder", help="ours: the workspace, made where it is not there")
    return options


def cpu_s() -> float:
    """CPU time of this process and of the workers that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def main() -> int:
    """Measure one contender."""
    args = parser().parse_args()
    run = CONTENDERS[args.name](args)
    if args.name != "resume":
        run(WARM_UP)
    began_at = time.time()
    cpu, start = cpu_s(), time.perf_counter()
    done = run(args.n)
    spent = {"wall_s": time.perf_counter() - start, "cpu_s": cpu_s() - cpu}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)
    print(json.dumps({"done": done, **spent, "peak_mb": peak, "began_at": began_at}), flush=True)
    return 0 if done == args.n else 1


if __name__ == "__main__":
    sys.exit(main())
