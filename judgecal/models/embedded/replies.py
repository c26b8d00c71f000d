"""Messages in, the assistant's text out: which part of the prompt is asked for, and in which format.

A prompt without a verdict is answered with the sentence of its context that shares most with the question,
and one that asks for a question with a gap in a sentence (`questions`): no model of language, a floor.

What the judge of a family learns from the demos of its prompt is a map from its measures to the people's
verdicts. Without demos the share that the family gives is the verdict: as a number, cut at one half where the
answer is yes or no, or as the label whose place between bad and good is nearest. With demos a logistic model
is fitted to them, held near that share by a penalty, over the share and the measures of `evidence`; where the
labels have no order there is one model a label, and the likeliest label is the verdict. A few demos move it
little, and none of it can learn more than how words, numbers and names lie.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from judgecal.models.embedded import judge
from judgecal.models.embedded.evidence import NAMES
from judgecal.models.embedded.families import WANTS_NAME, WANTS_NUMBER, Finding, find
from judgecal.models.embedded.judge import Vector, decisiveness, newton, sigmoid
from judgecal.models.embedded.prompt import (
    Field,
    Layout,
    Prompt,
    Scale,
    read_examples,
    read_layout,
    read_prompt,
)
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
    """The sentence with most of the question's words, rare ones counting more; None below a share of 0.4."""
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


# How hard a fit is held to its prior: by the intercept, the slope of the family's share, and each measure.
_ORDERED = (1.0, 4.0, 2.0)
_NOMINAL = (0.3, 2.0, 1.0)
_CAUTION = 0.2


@dataclass(frozen=True, slots=True)
class Learnt:
    """A row of coefficients for the verdict, or for each label of a scale without an order."""

    rows: Vector


def judged(layout: Layout, prefix: tuple[str, ...], inputs: Mapping[str, str]) -> tuple[Any, str]:
    """The verdict on one item, and why; `prefix` are the system message and the demos.

    The layout has a scale.
    """
    assert layout.scale is not None
    finding = find(layout, inputs)
    learnt = learnt_from(prefix) if len(prefix) > 1 else None
    if learnt is None:
        return layout.scale.write(finding.share), finding.why
    logits = learnt.rows @ _measures(finding, layout.scale)
    if layout.scale.kind == "nominal":
        return layout.scale.words[int(np.argmax(logits))], finding.why
    return layout.scale.write(float(sigmoid(logits)[0])), finding.why


def _measures(finding: Finding, scale: Scale) -> Vector:
    """What a fit sees of an item: 1, its share (nearness to each label, if unordered), centred measures."""
    measures = [value - 0.5 for value in finding.values]
    if scale.kind == "nominal":
        near = [1.0 - 2.0 * abs(finding.share - level) for level in scale.levels]
        return np.array([1.0, *near, *measures])
    return np.array([1.0, math.log(finding.share / (1.0 - finding.share)), *measures])


@lru_cache(maxsize=64)
def learnt_from(prefix: tuple[str, ...]) -> Learnt | None:
    """The fit to the demos of a prompt's prefix, once per prefix and process; None without a readable one."""
    layout = read_layout(prefix[0])
    scale, examples = layout.scale, read_examples(prefix[0], prefix[1:])
    if scale is None or not examples:
        return None
    design = np.array([_measures(find(layout, example.inputs), scale) for example in examples])
    labels = np.array([example.label for example in examples])
    if scale.kind == "nominal":
        return Learnt(
            np.array([_label_fit(design, labels, place, scale) for place in range(len(scale.words))])
        )
    prior = np.array([0.0, 1.0, *[0.0] * len(NAMES)])
    point = newton(design, labels, prior=prior, penalty=_penalty(_ORDERED, 1))
    return Learnt((point * decisiveness(design @ point, labels, caution=_CAUTION))[None, :])


def _label_fit(design: Vector, labels: Vector, place: int, scale: Scale) -> Vector:
    """How likely one label is: at first by how near the share lies to its level."""
    n = len(scale.words)
    prior = np.zeros(design.shape[1])
    prior[1 + place] = 2.0
    return newton(design, (labels == place).astype(np.float64), prior=prior, penalty=_penalty(_NOMINAL, n))


def _penalty(held: Sequence[float], n_shares: int) -> Vector:
    return np.array([held[0], *[held[1]] * n_shares, *[held[2]] * len(NAMES)])
