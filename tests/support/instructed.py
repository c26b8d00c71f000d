"""A stub for the models of DSPy's optimisers: what they are asked for, and what the one who writes replies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from judgecal.workspace import Workspace
from tests.support.server import Script, StubServer, running

KEY = "sk-not-to-be-seen"
PHRASE = "Count the facts of the reference that the answer names."
N_GROUPS = 44
INPUT_USD, OUTPUT_USD = 1.0, 4.0  # a million tokens

_FIELD = re.compile(r"`(?:\[\[ ## )?(\w+)(?: ## \]\])?`")  # as DSPy asks for it in either format


def asked_for(body: dict[str, Any]) -> list[str]:
    """The fields that a reply is to have."""
    asked = body["messages"][-1]["content"].rpartition("Respond with")[2]
    return [name for name in _FIELD.findall(asked) if name != "completed"]


def field(text: str, name: str) -> str:
    """The last value of a field in a prompt."""
    return text.rpartition(f"[[ ## {name} ## ]]\n")[2].partition("\n\n")[0]


def instructed(phrase: str, verdict: str, judge: Callable[[str, str, bool], str]) -> Script:
    """A judge where its verdict is asked for, by its instructions and demos, what it is shown, and whether it is
    sampled steadily; else who writes instructions that hold a phrase, whatever the fields that it is asked for."""

    def model(body: dict[str, Any]) -> str:
        *before, asked = (turn["content"] for turn in body["messages"])
        fields = asked_for(body)
        if verdict in fields:
            return judge("\n".join(before), asked, (body.get("temperature") or 0) == 0)
        values = {name: f"Something of {name}." for name in fields}
        for name in ("proposed_instruction", "new_instruction"):
            if name in values:
                values[name] = f"Rate the answer. {phrase}"
        if "module_advice" in values:
            (module,) = json.loads(field(asked, "module_names"))
            values["module_advice"] = json.dumps({module: phrase})
        blocks = [f"[[ ## {name} ## ]]\n{value}" for name, value in values.items()]
        return "\n\n".join([*blocks, "[[ ## completed ## ]]"])

    return model


@contextmanager
def serving(workspace: Path, monkeypatch: pytest.MonkeyPatch, model: Script) -> Iterator[StubServer]:
    """Models `mine` and `writer` on one server, with a price and a key."""
    monkeypatch.setenv("MY_KEY", KEY)
    with running(model) as stub:
        shared = (
            f'api_base = "{stub.api_base}"\nkey_env = "MY_KEY"\ntemperature = 0.0\nmax_tokens = 400\n'
            f"input_usd_per_1m = {INPUT_USD}\noutput_usd_per_1m = {OUTPUT_USD}\n"
        )
        tables = (f'[models.{name}]\nid = "openai/{name}"\n{shared}' for name in ("mine", "writer"))
        (workspace / "judgecal.toml").write_text("\n".join(tables))
        yield stub


def as_judge(system: str, asked: str, steady: bool) -> str:
    """Counts the facts where it is told to; otherwise it goes by the length of the answer, or by the hour."""
    words = set(re.findall(r"\w+", field(asked, "answer_under_test"))) - {"and", "were", "sold"}
    named = len(words & set(re.findall(r"\w+", field(asked, "reference_answer"))))
    blind = 50 if steady else (sum(map(ord, asked)) * 37) % 101
    percent = 25 * named if PHRASE in system else blind
    return json.dumps({"correctness_reasoning": "So it is.", "correctness_percentage": percent})


model = instructed(PHRASE, "correctness_percentage", as_judge)


def calls_of(workspace: Workspace, slug: str) -> list[dict[str, Any]]:
    lines = (workspace.experiments / slug / "optimizer_calls.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]
