"""`kill -9` of `evaluate` in each state: amid the answers, amid the verdicts, and while the states are
written.

The same command goes on, and nothing is paid or asked twice but what was in flight.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from judgecal.rag.evaluation.result import NAMES
from tests.benchmarks.stub import Answer, Served, completion, http, running
from tests.support.rag_service import DOCUMENTS, RagService, inline, rag_service
from tests.torture.conftest import LEVEL
from tests.torture.world import SET, World

QUESTIONS, AT_ONCE = 40, 8
KILLS = 4 if LEVEL == "full" else 1
SYSTEMS, JUDGES = 2, 4


@dataclass
class Model:
    """A served model that answers and judges, each signature in its own fields, after a while."""

    rng: random.Random

    def __call__(self, _head: bytes, body: bytes) -> Answer:
        said = body.decode("utf-8", "replace")
        if "passages that may hold the answer" in said:
            fields = {"answer": "It melts at 1538 degrees."}
        else:
            verdict = {"score": "7"} if "Rate from 0 to 10" in said else {"verdict": "yes"}
            fields = {"reasoning": "ok", **verdict}
        text = "".join(f"[[ ## {name} ## ]]\n{value}\n\n" for name, value in fields.items())
        return Answer(http(completion(f"{text}[[ ## completed ## ]]")).data, self.rng.uniform(0.002, 0.02))


def prepared(world: World, service: RagService, stub: Served) -> None:
    """A set, documents, and a configuration with a system over HTTP and one whose model is paid."""
    world.make(QUESTIONS)
    world.alias(stub.api_base, max_concurrency=AT_ONCE)
    documents = [{"document_id": one.document_id, "text": one.text} for one in DOCUMENTS]
    (world.root / "documents.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))
    table = {"name": "served", "kind": "http", **service.table(concurrency=AT_ONCE)}
    local = {"name": "local", "kind": "local", "answerer": {"model": "mine"}}
    systems = ", ".join(map(inline, (table, local)))
    (world.root / "sweep.toml").write_text(
        f'systems = [{systems}]\n[questions]\ngold = "{SET}"\nsplit = "all"\n[documents]\npath = '
        '"documents.jsonl"\n[judges]\nmodel = "mine"\nrepeats = 1\n'
    )


Moment = Callable[[World, str, RagService, Served, random.Random], bool]
MOMENTS: dict[str, Moment] = {
    "the service answers": lambda _w, _n, service, _s, rng: (sum(service.asked.values()) > rng.randrange(1, QUESTIONS)),
    "the model answers": lambda _w, _n, _r, stub, rng: stub.calls > rng.randrange(1, QUESTIONS),
    "judges": lambda _w, _n, _r, stub, rng: (stub.calls > rng.randrange(QUESTIONS, QUESTIONS * (1 + SYSTEMS * JUDGES))),
    "states": lambda world, name, _r, _s, _: (world.experiments / name / f"{NAMES[2]}.parquet").exists(),
}  # fmt: skip


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_same_command_goes_on(world: World, moment: str) -> None:
    rng = random.Random(moment)
    with running(Model(rng)) as stub, rag_service(query_s=0.01) as service:
        prepared(world, service, stub)
        whole = QUESTIONS * (1 + SYSTEMS * JUDGES)
        for number in range(KILLS):
            name = f"cut{number}"
            argv = ["evaluate", "sweep.toml", "--no-cache", "--name", name]
            stub.reset()
            service.asked.clear()
            run, until = world.start(argv), time.monotonic() + 60.0
            while not MOMENTS[moment](world, name, service, stub, rng) and time.monotonic() < until:
                time.sleep(0.001)
            run.kill(signal.SIGKILL)
            run.wait()
            time.sleep(0.05)
            again = world.run(argv)
            assert (again.code, "Traceback" in again.err) == (0, False), again
            assert whole <= stub.calls <= whole + AT_ONCE, f"{stub.calls - whole} calls were paid twice"
            assert sum(service.asked.values()) <= QUESTIONS + AT_ONCE
            assert len(service.asked) == QUESTIONS
            assert not run.left_over(), "processes outlive the one that was killed"
            check_whole(world.experiments / name)


def check_whole(folder: Path) -> None:
    """Every answer has one verdict of each judge, and every state its files."""
    rows = [json.loads(line) for line in (folder / "judgements.jsonl").read_text().splitlines()]
    verdicts = Counter((row["item_id"], row["judge"]) for row in rows if row["verdict"] is not None)
    assert len(verdicts) == QUESTIONS * SYSTEMS * JUDGES
    assert set(verdicts.values()) == {1}
    assert sorted(path.stem for path in folder.glob("*.parquet")) == list(NAMES)
    assert json.loads((folder / "summary.json").read_text())["n_unscored"] == 0
