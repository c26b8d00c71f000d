"""Messages in, the assistant's text out: which part of the prompt is asked for, and in which format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from judgecal.models.embedded import answer, judge
from judgecal.models.embedded.prompt import Field, Prompt, read_prompt

_NO_FIELDS = "I am judgecal's embedded model: I can only answer a DSPy prompt that lists its fields."
_NO_REFERENCE = "I cannot judge this: there is no reference answer to compare the answer with."
_NO_SCALE = "I cannot judge this: I know percentages, grades and yes/no, not a choice among unordered labels."
_NO_ANSWER = "I cannot judge this: I find no answer under test among the input fields."


def make_reply(messages: Sequence[Mapping[str, str]]) -> str:
    """See `judgecal.models.embedded.reply`."""
    prompt = read_prompt(messages)
    layout = prompt.layout
    if not layout.outputs:
        return _NO_FIELDS
    if layout.verdict is None:
        return _answered(prompt)
    if layout.scale is None:
        return _NO_SCALE
    if layout.answer is None:
        return _NO_ANSWER
    comparison = judge.compare_inputs(layout, dict(prompt.inputs))
    if comparison is None:
        return _NO_REFERENCE
    linear = judge.learnt(prompt.prefix) if len(prompt.prefix) > 1 else judge.zero_shot()
    share = judge.verdict(comparison, linear)
    why = judge.reasoning(comparison)
    values = {f.name: why if f.kind == "str" else _blank(f) for f in layout.outputs}
    values[layout.verdict] = layout.scale.write(share)
    return _written(prompt, values)


def _blank(field: Field) -> Any:
    """The emptiest value of a type that is neither text nor verdict."""
    if field.kind.startswith(("list", "tuple", "set")):
        return []
    return {} if field.kind.startswith("dict") else None


def _answered(prompt: Prompt) -> str:
    layout = prompt.layout
    question = prompt.inputs.get(layout.question or "", "")
    text, why = answer.answer(question, prompt.inputs.get(layout.context or "", ""))
    values: dict[str, Any] = {}
    for field in layout.outputs:
        reasoned = len(layout.outputs) > 1 and "reason" in field.name.lower()
        values[field.name] = (why if reasoned else text) if field.kind == "str" else _blank(field)
        if "instruction" in field.name.lower():
            values[field.name] = _same_instruction(prompt)
    return _written(prompt, values)


def _same_instruction(prompt: Prompt) -> str:
    """An optimiser that asks for a new instruction gets the old one back: this model reads no instructions."""
    given = (value for name, value in prompt.inputs.items() if "instruction" in name.lower())
    return next(given, "Judge the answer against the reference.")


def _written(prompt: Prompt, values: Mapping[str, Any]) -> str:
    """The values in the order of the output fields, as ChatAdapter or JSONAdapter reads them."""
    if prompt.wants_json:
        return json.dumps(dict(values), indent=2)
    blocks = [f"[[ ## {name} ## ]]\n{_shown(value)}" for name, value in values.items()]
    return "\n\n".join([*blocks, "[[ ## completed ## ]]"])


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, bool) else json.dumps(value)
