"""Messages in, the assistant's text out: which part of the prompt is asked for, and in which format.

A prompt without a verdict is answered with the sentence of its context that shares most with the question,
and one that asks for a question with a gap in a sentence: no model of language, a floor.

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
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from judgecal.models.embedded import judge
from judgecal.models.embedded.evidence import NAMES
from judgecal.models.embedded.families import POINTS, WANTS_NAME, WANTS_NUMBER, Finding, find
from judgecal.models.embedded.judge import Vector, decisiveness, newton, sigmoid
from judgecal.models.embedded.prompt import (
    Field,
    Layout,
    Prompt,
    PromptScale,
    read_examples,
    read_layout,
    read_prompt,
)
from judgecal.models.embedded.text import analyse, content_words, sentences, take_apart

NOT_FOUND = "The answer is not in the document."
_LEAST_COVERAGE = 0.4


def make_reply(messages: Sequence[Mapping[str, str]]) -> str:
    """See `judgecal.models.embedded.reply`."""
    prompt = read_prompt(messages)
    layout, inputs, scale = prompt.layout, prompt.inputs, prompt.layout.scale
    if not layout.outputs:
        return "I am judgecal's embedded model: I can only answer a DSPy prompt that lists its fields."
    if layout.verdict is None:
        asks = any(field.name == "question" for field in layout.outputs)
        return _written(prompt, make_question(layout, inputs) if asks else _answers(layout, inputs))
    if scale is None:
        return "I cannot judge this: I cannot read which verdicts there are."
    if layout.compares:
        comparison = judge.compare_inputs(layout, dict(inputs))
        if comparison is None:
            return "I cannot judge this: there is no reference answer to compare the answer with."
        linear = judge.learnt(prompt.prefix) if len(prompt.prefix) > 1 else judge.zero_shot()
        verdict: Any = scale.write(judge.verdict(comparison, linear))
        why = judge.reasoning(comparison)
    else:
        verdict, why = judged(layout, prompt.prefix, inputs)
    values = {field.name: why if field.kind == "str" else _blank(field) for field in layout.outputs}
    return _written(prompt, values | {layout.verdict: verdict})


def _blank(field: Field) -> Any:
    """The emptiest value of a type that is neither text nor verdict."""
    if field.kind.startswith(("list", "tuple", "set")):
        return []
    return {} if field.kind.startswith("dict") else None


def _written(prompt: Prompt, values: Mapping[str, Any]) -> str:
    """The values in the order of the output fields, as ChatAdapter or JSONAdapter reads them."""
    if prompt.wants_json:
        return json.dumps(dict(values), indent=2)
    shown = {
        name: str(value) if isinstance(value, str | bool) else json.dumps(value)
        for name, value in values.items()
    }
    blocks = [f"[[ ## {name} ## ]]\n{text}" for name, text in shown.items()]
    return "\n\n".join([*blocks, "[[ ## completed ## ]]"])


def _answers(layout: Layout, inputs: Mapping[str, str]) -> dict[str, Any]:
    """The outputs of a prompt without a verdict.

    An optimiser that asks for a new instruction gets the old one back: this model writes none.
    """
    text, why = answer(inputs.get(layout.question or "", ""), inputs.get(layout.context or "", ""))
    given = (value for name, value in inputs.items() if "instruction" in name.lower())
    instruction = next(given, "Judge the answer against the reference.")
    values: dict[str, Any] = {}
    for field in layout.outputs:
        name = field.name.lower()
        reasoned = len(layout.outputs) > 1 and "reason" in name
        values[field.name] = (why if reasoned else text) if field.kind == "str" else _blank(field)
        if "instruction" in name:
            values[field.name] = instruction
    return values


def best_sentence(question: str, context: str) -> str | None:
    """The sentence with most of the question's words, rare ones counting more; None below a share of 0.4."""
    asked = analyse(question).content
    candidates = sentences(context)
    # not cached: a document's sentences are read once, and would drive the references out of the cache
    parsed = [take_apart(sentence) for sentence in candidates]
    spread = Counter(token for text in parsed for token in text.content & asked)
    weights = {token: math.log(1.0 + len(candidates) / (1.0 + spread[token])) for token in asked}
    total = sum(weights.values())
    if not total or not candidates:
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
    if best_coverage < _LEAST_COVERAGE:
        return None
    # one line that any encoder takes and no adapter mistakes for a field marker
    line = " ".join(candidates[best].replace("\x00", " ").replace("[[", "[").split())
    return line.encode("utf-8", "replace").decode("utf-8")


def answer(question: str, context: str) -> tuple[str, str]:
    """(answer, why): a sentence of the context, or `NOT_FOUND` where nothing overlaps enough."""
    sentence = best_sentence(question, context)
    if sentence is None:
        return NOT_FOUND, "No sentence of the document shares enough words with the question."
    return sentence, "This sentence of the document shares the most words with the question."


# --- what the demos of a family teach -----------------------------------------------------------------------

# How hard a fit is held to its prior: by the intercept, the slope of the family's share, and each measure.
_ORDERED = (1.0, 4.0, 2.0)
_NOMINAL = (0.3, 2.0, 1.0)
_CAUTION = 0.2


def judged(layout: Layout, prefix: tuple[str, ...], inputs: Mapping[str, str]) -> tuple[Any, str]:
    """The verdict on one item, and why; `prefix` are the system message and the demos.

    The layout has a scale.
    """
    assert layout.scale is not None
    finding = find(layout, inputs)
    rows = learnt_from(prefix) if len(prefix) > 1 else None
    if rows is None:
        return layout.scale.write(finding.share), finding.why
    logits = rows @ _measures(finding, layout.scale)
    if layout.scale.kind == "nominal":
        return layout.scale.words[int(np.argmax(logits))], finding.why
    return layout.scale.write(float(sigmoid(logits)[0])), finding.why


def _measures(finding: Finding, scale: PromptScale) -> Vector:
    """What a fit sees of an item: 1, its share (nearness to each label, if unordered), centred measures."""
    measures = [value - 0.5 for value in finding.values]
    if scale.kind == "nominal":
        near = [1.0 - 2.0 * abs(finding.share - level) for level in scale.levels]
        return np.array([1.0, *near, *measures])
    return np.array([1.0, math.log(finding.share / (1.0 - finding.share)), *measures])


@lru_cache(maxsize=64)
def learnt_from(prefix: tuple[str, ...]) -> Vector | None:
    """The fit to the demos of a prompt's prefix, once per prefix and process; None without a readable one.

    A row of coefficients for the verdict, or for each label of a scale without an order.
    """
    layout = read_layout(prefix[0])
    scale, examples = layout.scale, read_examples(prefix[0], prefix[1:])
    if scale is None or not examples:
        return None
    design = np.array([_measures(find(layout, example.inputs), scale) for example in examples])
    labels = np.array([example.label for example in examples])
    nominal = scale.kind == "nominal"
    n_shares = len(scale.words) if nominal else 1
    intercept, share, measure = _NOMINAL if nominal else _ORDERED
    penalty = np.array([intercept, *[share] * n_shares, *[measure] * len(NAMES)])
    priors = np.eye(n_shares, len(penalty), k=1)
    if not nominal:
        point = newton(design, labels, prior=priors[0], penalty=penalty)
        return (point * decisiveness(design @ point, labels, caution=_CAUTION))[None, :]
    # how likely each label is: at first by how near the share lies to its level
    fits = [
        newton(design, (labels == place).astype(np.float64), prior=2.0 * prior, penalty=penalty)
        for place, prior in enumerate(priors)
    ]
    return np.array(fits)


# --- questions made of a passage ----------------------------------------------------------------------------

_NUMBER = re.compile(r"(?<![\w.,:])\d+(?:[.,:]\d+)*(?![\w])")
_NAME = re.compile(r"(?<![\w'’-])[A-Z][^\W\d_]+(?: [A-Z][^\W\d_]+)?")
_WORD = re.compile(r"[^\W\d_]{6,}")
_LEAST, _MOST = 6, 40  # words of a sentence
_NAMED = 5  # letters of a name
_PARTICULARS = (
    "telephone number, postal address, insurance company and tax office",
    "bank account, registration plate, website and accountant",
    "blood group, passport number, favourite colour and shoe size",
    "electricity bill, landlord, broadband provider and solicitor",
)


class _Gap(NamedTuple):
    sentence: str
    holed: str
    missing: str
    kind: str


def make_question(layout: Layout, inputs: Mapping[str, str]) -> dict[str, str]:
    """The outputs of a prompt, by their names: question, answer and quotes as far as it asks for them.

    A gap is cut into a sentence of the passage, and what stood there is the answer: a number, else a name,
    else the longest word. Nothing is understood and nothing is said in other words, so such a question is
    filled by its words alone: it shows how the command works, and measures next to nothing. What a passage is
    too poor for gets an empty question.

    A prompt without a quote wants a question that the passage does not answer: it asks for particulars (an
    address, an insurance company ...) of somebody or something named there. One with two passages and two
    quotes wants a question about both; one with two passages and one quote a question that names something of
    the other passage.
    """
    passages = [inputs.get(field.name, "") for field in layout.inputs if "passage" in field.name]
    first, other = (*passages, "", "")[:2]
    n_quotes = sum("quote" in field.name for field in layout.outputs)
    gaps = [_gap(passage) for passage in (first, other)[: min(n_quotes, 2)]]
    filled = [gap for gap in gaps if gap is not None]
    question = ""
    if not gaps:
        question = _particulars(first)
    elif len(filled) == len(gaps) == 2:
        question = f'What belongs in the gaps: "{filled[0].holed}" and "{filled[1].holed}"'
    elif len(filled) == len(gaps):
        asked = f'hich {filled[0].kind} belongs in the gap: "{filled[0].holed}"'
        question = f"W{asked}"
        if len(passages) > 1:
            stranger = next(iter(_subjects(other, without=first)), None)
            question = "" if stranger is None else f"Leaving aside {stranger}, w{asked}"
    if len(filled) < len(gaps):
        filled = []
    values = {"question": question, "answer": "; ".join(gap.missing for gap in filled)}
    quotes = iter([gap.sentence for gap in filled])
    return {
        field.name: values[field.name]
        if field.name in values
        else next(quotes, "")
        if "quote" in field.name
        else ""
        for field in layout.outputs
    }


def _subjects(passage: str, *, without: str = "") -> list[str]:
    """What a question can name: longer names, not at the start of a sentence; else the longest words."""
    names = [name for sentence in sentences(passage) for name in _NAME.findall(sentence, 1)]
    names = [name for name in names if len(name) >= _NAMED and not name.isupper()]
    words = sorted(_WORD.findall(passage), key=len, reverse=True)
    there = without.casefold()
    subjects = [*names, *(f"the {word}" for word in words if word.islower())]
    return [subject for subject in subjects if subject.removeprefix("the ").casefold() not in there]


def _particulars(passage: str) -> str:
    subjects = _subjects(passage)
    place = zlib.crc32(passage.encode("utf-8", "replace"))
    in_passage = content_words(passage).keys()
    fit = [asked for asked in _PARTICULARS if not in_passage & content_words(asked).keys()]
    return f"What are the {fit[place % len(fit)]} of {subjects[0]}?" if fit and subjects else ""


def _gap(passage: str) -> _Gap | None:
    """The longest sentence that can be asked about: with a number, a name, or else a long word."""
    fit = [
        sentence
        for sentence in sentences(passage)
        if _LEAST <= len(sentence.split()) <= _MOST and not POINTS.search(sentence) and '"' not in sentence
    ]
    for kind, pattern in (("number", _NUMBER), ("name", _NAME), ("word", _WORD)):
        for sentence in sorted(fit, key=len, reverse=True):
            missing = max(pattern.finditer(sentence, 1), key=lambda match: len(match[0]), default=None)
            if missing is not None:
                holed = f"{sentence[: missing.start()]}___{sentence[missing.end() :]}"
                return _Gap(sentence, holed, missing[0], kind)
    return None
