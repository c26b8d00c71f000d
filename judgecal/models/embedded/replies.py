"""Messages in, the assistant's text out: which part of the prompt is asked for, and in which format.

A prompt without a verdict is answered with the sentence of its context that shares most with the question,
and one that asks for a question with a gap in a sentence (`questions`): no model of language, a floor.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from judgecal.models.embedded import judge
from judgecal.models.embedded.families import WANTS_NAME, WANTS_NUMBER
from judgecal.models.embedded.learning import judged
from judgecal.models.embedded.prompt import Field, Prompt, Scale, read_prompt
from judgecal.models.embedded.questions import make_question, makes_questions
from judgecal.models.embedded.text import analyse, sentences, take_apart

NOT_FOUND = "The answer is not in the document."
_LEAST_COVERAGE = 0.4
_NO_FIELDS = "I am judgecal's embedded model: I can only answer a DSPy prompt that lists its fields."
_NO_REFERENCE = "I cannot judge this: there is no reference answer to compare the answer with."
_NO_SCALE = "I cannot judge this: I cannot read which verdicts there are."


def make_reply(messages: Sequence[Mapping[str, str]]) -> str:
    """See `judgecal.models.embedded.reply`."""
    prompt = read_prompt(messages)
    layout = prompt.layout
    if not layout.outputs:
        return _NO_FIELDS
    if layout.verdict is None:
        return (
            _written(prompt, make_question(layout, prompt.inputs))
            if makes_questions(layout)
            else _answered(prompt)
        )
    if layout.scale is None:
        return _NO_SCALE
    told = (
        _by_reference(prompt, layout.scale)
        if layout.compares
        else judged(layout, prompt.prefix, prompt.inputs)
    )
    if told is None:
        return _NO_REFERENCE
    verdict, why = told
    values = {f.name: why if f.kind == "str" else _blank(f) for f in layout.outputs}
    values[layout.verdict] = verdict
    return _written(prompt, values)


def _by_reference(prompt: Prompt, scale: Scale) -> tuple[Any, str] | None:
    """The verdict on an answer beside its reference answer, and why; None where the reference is blank."""
    comparison = judge.compare_inputs(prompt.layout, dict(prompt.inputs))
    if comparison is None:
        return None
    linear = judge.learnt(prompt.prefix) if len(prompt.prefix) > 1 else judge.zero_shot()
    return scale.write(judge.verdict(comparison, linear)), judge.reasoning(comparison)


def _blank(field: Field) -> Any:
    """The emptiest value of a type that is neither text nor verdict."""
    if field.kind.startswith(("list", "tuple", "set")):
        return []
    return {} if field.kind.startswith("dict") else None


def _answered(prompt: Prompt) -> str:
    layout = prompt.layout
    question = prompt.inputs.get(layout.question or "", "")
    text, why = answer(question, prompt.inputs.get(layout.context or "", ""))
    values: dict[str, Any] = {}
    for field in layout.outputs:
        reasoned = len(layout.outputs) > 1 and "reason" in field.name.lower()
        values[field.name] = (why if reasoned else text) if field.kind == "str" else _blank(field)
        if "instruction" in field.name.lower():
            values[field.name] = _same_instruction(prompt)
    return _written(prompt, values)


def _same_instruction(prompt: Prompt) -> str:
    """An optimiser that asks for a new instruction gets the old one back: this model writes none."""
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


def _printable(text: str) -> str:
    """One line that any encoder takes and no adapter mistakes for a field marker."""
    line = " ".join(text.replace("\x00", " ").replace("[[", "[").split())
    return line.encode("utf-8", "replace").decode("utf-8")


def best_sentence(question: str, context: str) -> str | None:
    """The sentence with the greatest share of the question's words, rare ones counting more; None below
    0.4."""
    asked = analyse(question).content
    found = sentences(context)
    # not cached: a document's sentences are read once, and would drive the references out of the cache
    parsed = [take_apart(sentence) for sentence in found]
    spread = Counter(token for text in parsed for token in text.content & asked)
    weights = {token: math.log(1.0 + len(found) / (1.0 + spread[token])) for token in asked}
    total = sum(weights.values())
    if not total or not found:
        return None
    number, name = WANTS_NUMBER.search(question), WANTS_NAME.search(question)
    best, best_score, best_coverage = 0, -1.0, 0.0
    for place, text in enumerate(parsed):
        coverage = sum(weights[token] for token in text.content & asked) / total
        news = text.content - asked
        bonus = 0.15 * bool(number and text.numbers & news) + 0.1 * bool(name and text.names & news)
        score = coverage + (bonus if coverage else 0.0) - (0.2 if not news else 0.0)
        if score > best_score:
            best, best_score, best_coverage = place, score, coverage
    return _printable(found[best]) if best_coverage >= _LEAST_COVERAGE else None


def answer(question: str, context: str) -> tuple[str, str]:
    """(answer, why): a sentence of the context, or `NOT_FOUND` where nothing overlaps enough."""
    sentence = best_sentence(question, context)
    if sentence is None:
        return NOT_FOUND, "No sentence of the document shares enough words with the question."
    return sentence, "This sentence of the document shares the most words with the question."
