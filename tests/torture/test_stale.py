"""Two hundred random edits: an edited thing never meets an old verdict, one that is as before is never paid
again.

The server's verdict is a hash of what it was asked: the marks of item, prompt and demo in the messages, the
model and its settings. So the verdict that an item must have can be told from the state of the workspace
alone.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.stub import COMPLETION_TOKENS, PROMPT_TOKENS, REPLY, Answer, completion, http, running
from tests.torture.conftest import LEVEL
from tests.torture.world import SET, World

ITEMS = 10
SEEDS, EDITS = (2, 50) if LEVEL == "full" else (1, 12)
_MARK = re.compile(r"\b(question|answer|reference|prompt|demo|label)-mark-(\d+)\b")

JUDGE = "correctness_v3@mine#compiled"
Asked = tuple[Any, ...]


def verdict(asked: Asked) -> float:
    """A number in 0..100 with three decimals that stands for what was asked."""
    return int(hashlib.sha256(repr(asked).encode()).hexdigest(), 16) % 100_001 / 1000


@dataclass
class Server:
    """What was asked so far, and how often."""

    seen: Counter[Asked] = field(default_factory=Counter)

    def __call__(self, _: bytes, body: bytes) -> Answer:
        request = json.loads(body)
        text = [message["content"] for message in request["messages"]]
        last = dict(_MARK.findall(text[-1]))
        first = dict(_MARK.findall(text[0]))
        demos = tuple(mark for part in text[1:-1] for name, mark in _MARK.findall(part) if name == "demo")
        item = tuple(int(last[name]) for name in ("question", "answer", "reference"))
        longest = request.get("max_tokens") or request.get("max_completion_tokens")
        settings = (request["model"], request.get("temperature"), longest)
        asked = (*item, int(first.get("prompt", 0)), tuple(map(int, demos)), *settings)
        self.seen[asked] += 1
        return http(completion(REPLY.replace("85", str(verdict(asked)))))


@dataclass
class State:
    """The workspace as it should be; every edit takes a mark that was never used."""

    world: World
    rng: random.Random
    items: list[list[int]]
    prompt: int = 0
    demo: int = 0
    model: str = "mine"
    temperature: float = 0.0
    max_tokens: int = 500
    price: float = 1.0
    repeats: int = 1
    marks: int = 100

    def new(self) -> int:
        self.marks += 1
        return self.marks

    def edit(self) -> str:
        """One random edit; gives its name."""
        name = self.rng.choice(
            (
                "item", "item", "prompt", "model", "temperature", "max_tokens", "price", "demo", "repeats",
                "back",
            )
        )  # fmt: skip
        getattr(self, f"edit_{name}")()
        return name

    def edit_item(self) -> None:
        self.rng.choice(self.items)[self.rng.randrange(3)] = self.new()

    def edit_prompt(self) -> None:
        self.prompt = self.new()

    def edit_demo(self) -> None:
        self.demo = self.new()

    def edit_model(self) -> None:
        self.model = f"mine-{self.new()}"

    def edit_temperature(self) -> None:
        self.temperature = self.new() / 1000

    def edit_max_tokens(self) -> None:
        self.max_tokens = 500 + self.new()

    def edit_price(self) -> None:
        self.price = float(self.new())

    def edit_repeats(self) -> None:
        self.repeats = 3 - self.repeats

    def edit_back(self) -> None:
        """To what it was in the beginning: nothing of it may be paid again."""
        self.prompt = self.demo = 0
        self.model, self.temperature, self.max_tokens = "mine", 0.0, 500

    def asked(self, item: list[int]) -> Asked:
        demos = (self.demo,) if self.demo else ()
        return (*item, self.prompt, demos, self.model, self.temperature, self.max_tokens)

    def write(self, api_base: str) -> None:
        """Put the state on disk."""
        self.world.write_items(
            [
                {
                    "item_id": f"i{number}",
                    "question": f"What about question-mark-{question}?",
                    "answer": f"It is answer-mark-{answer}.",
                    "reference_answer": f"It is reference-mark-{reference}.",
                }
                for number, (question, answer, reference) in enumerate(self.items)
            ]
        )
        self.world.alias(
            api_base,
            id=f"openai/{self.model}",
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            input_usd_per_1m=self.price,
        )
        path = self.world.root / "signatures" / "correctness_v3.py"
        text = (self.world.root / "signatures" / "correctness_v1.py").read_text(encoding="utf-8")
        path.write_text(text.replace('"""', f'"""prompt-mark-{self.prompt} ', 1), encoding="utf-8")
        self.write_program()

    def write_program(self) -> None:
        """A compiled program whose one demo has a mark, as `optimize` would leave it."""
        from judgecal.judges.prompt import save_program
        from judgecal.signatures import load_signature
        from judgecal.workspace import find_workspace

        folder = self.world.experiments / "compiled"
        folder.mkdir(parents=True, exist_ok=True)
        signature = load_signature("correctness_v3", workspace=find_workspace(self.world.root))
        import dspy

        program = dspy.Predict(signature.cls)
        if self.demo:
            texts = dict.fromkeys(signature.cls.input_fields, f"demo-mark-{self.demo}")
            values = {name: text if name == "question" else "x" for name, text in texts.items()}
            program.demos = [{**values, "correctness_reasoning": "x", "correctness_percentage": 40}]
        save_program(folder / "program.json", program, signature=signature, trained_on=())


def check(state: State, rows: list[dict[str, Any]]) -> None:
    """Every row has the verdict of what the workspace says now."""
    assert len(rows) == ITEMS * state.repeats
    for row in rows:
        assert row["error"] is None, row
        assert row["verdict"] == verdict(state.asked(state.items[int(row["item_id"][1:])])), row


def begin(world: World, seed: int) -> State:
    world.make(ITEMS)
    return State(world, random.Random(seed), [[n + 1, n + 21, n + 41] for n in range(ITEMS)])


@pytest.mark.parametrize("seed", range(SEEDS))
def test_commands_with_stored_replies(world: World, seed: int) -> None:
    state, server = begin(world, seed), Server()
    owed: Counter[Asked] = Counter()
    argv = ["score", "--gold", SET, "--split", "all", "--judge", JUDGE, "--json", "--repeats"]
    with running(server) as stub:
        for _ in range(EDITS):
            state.edit()
            state.write(stub.api_base)
            ended = world.run([*argv, str(state.repeats)])
            assert ended.code == 0, ended.err
            found = json.loads(ended.out)
            check(state, latest(world.experiments / found["experiment"] / "judgements.jsonl"))
            usd = state.price * PROMPT_TOKENS / 1e6 + COMPLETION_TOKENS / 1e6
            assert found["judges"][0]["usd_per_1k"] == pytest.approx(1000 * usd)
            for asked in map(state.asked, state.items):
                owed[asked] = max(owed[asked], state.repeats)
            assert server.seen == owed, "paid again, or not called at all"


def latest(path: Path) -> list[dict[str, Any]]:
    """The last row of each key; the folder is the configuration's own."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    kept = {(row["item_id"], row["item_sha"], row["judge_fingerprint"], row["repeat"]): row for row in rows}
    return [row for row in kept.values() if row["judge"] == JUDGE]
