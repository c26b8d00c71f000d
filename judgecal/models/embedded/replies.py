"""Messages in, the assistant's text out: which part of the prompt is asked for, and in which format.

A prompt without a verdict is answered with the sentence of its context that shares most with the question,
and one that asks for a question with a gap in a sentence: no model of language, a floor.
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

from judgecal.models.embedded import judge
from judgecal.models.embedded.families import POINTS, find
from judgecal.models.embedded.prompt import Field, Layout, Prompt, read_examples, read_layout, read_prompt
from judgecal.models.embedded.text import analyse, sentences, take_apart

NOT_FOUND = "The answer is not in the document."
_LEAST_COVERAGE = 0.4

Chances = dict[str, float]
"""Of a verdict between two words or grades: the chance of each, as it is written."""


def make_reply(messages: Sequence[Mapping[str, str]]) -> tuple[str, Chances]:
    """The reply to chat messages, and the chances of the verdicts it chose from, if any."""
    prompt = read_prompt(messages)
    layout, scale = prompt.layout, prompt.layout.scale
    if not layout.outputs:
        return "I am judgecal's embedded model: I can only answer a DSPy prompt that lists its fields.", {}
    if layout.verdict is None:
        asks = any(field.name == "question" for field in layout.outputs)
        return _written(prompt, (make_question if asks else _answers)(layout, prompt.inputs)), {}
    if scale is None:
        return "I cannot judge this: I cannot read which verdicts there are.", {}
    finding = find(layout, prompt.inputs)
    if finding.unable:
        return f"I cannot judge this: {finding.why}", {}
    share, place = finding.share, None
    if len(prompt.prefix) > 1 and not finding.decided and (learnt := learnt_from(prompt.prefix)):
        shares = learnt.shares(share, finding.measures())
        if scale.kind == "nominal":
            place = int(learnt.classes[int(shares.argmax())])
        else:
            share = float(shares[-1])
    verdict = scale.write(share) if place is None else scale.words[place]
    values = {field.name: finding.why if field.kind == "str" else _blank(field) for field in layout.outputs}
    return _written(prompt, values | {layout.verdict: verdict}), scale.chances(share)


@lru_cache(maxsize=64)
def learnt_from(prefix: tuple[str, ...]) -> judge.Learnt | None:
    """What the demos of a prompt's prefix teach, once per prefix and process; None without a readable one."""
    layout = read_layout(prefix[0])
    scale, rows = layout.scale, []
    for inputs, label in read_examples(prefix[0], prefix[1:]):
        finding = find(layout, inputs)
        if not finding.decided:  # a rule decides such items with demos too
            rows.append((finding.share, finding.measures(), label))
    if scale is None or not rows or (scale.kind == "nominal" and len(scale.words) < 2):
        return None
    shares, measures, labels = zip(*rows, strict=True)
    return judge.refit(shares, measures, labels, scale.levels)


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
    sentence = best_sentence(inputs.get(layout.question or "", ""), inputs.get(layout.context or "", ""))
    why = "This sentence of the document shares the most words with the question."
    if sentence is None:
        why = "No sentence of the document shares enough words with the question."
    given = (value for name, value in inputs.items() if "instruction" in name.lower())
    instruction = next(given, "Judge the answer against the reference.")
    values: dict[str, Any] = {}
    for field in layout.outputs:
        name = field.name.lower()
        reasoned = len(layout.outputs) > 1 and "reason" in name
        values[field.name] = (
            (why if reasoned else sentence or NOT_FOUND) if field.kind == "str" else _blank(field)
        )
        if "instruction" in name:
            values[field.name] = instruction
    return values


def best_sentence(question: str, context: str) -> str | None:
    """The context's sentence with most of the question's words, rare ones counting more; None below 0.4."""
    asked, candidates = analyse(question).content, sentences(context)
    # not cached: a document's sentences are read once, and would drive the references out of the cache
    parsed = [take_apart(sentence).content for sentence in candidates]
    spread = Counter(token for content in parsed for token in content & asked)
    weights = {token: math.log(1.0 + len(candidates) / (1.0 + spread[token])) for token in asked}
    total = sum(weights.values())
    if not total or not candidates:
        return None
    shares = [sum(weights[token] for token in content & asked) / total for content in parsed]
    best = max(range(len(parsed)), key=lambda place: shares[place] - 0.2 * (parsed[place] <= asked))
    if shares[best] < _LEAST_COVERAGE:
        return None
    # one line that any encoder takes and no adapter mistakes for a field marker
    line = " ".join(candidates[best].replace("\x00", " ").replace("[[", "[").split())
    return line.encode("utf-8", "replace").decode("utf-8")


# --- questions made of a passage

_GAPS = (
    ("number", re.compile(r"(?<![\w.,:])\d+(?:[.,:]\d+)*(?![\w])")),
    ("name", re.compile(r"(?<![\w'’-])[A-Z][^\W\d_]+(?: [A-Z][^\W\d_]+)?")),
    ("word", re.compile(r"[^\W\d_]{6,}")),
)
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
    """Make question, answer and quotes from the inputs, by field name, as far as the layout asks for them.

    A gap is cut into a sentence of the passage, and what stood there is the answer: a number, else a name,
    else the longest word. Such a question is filled by its words alone: it shows how the command works, and
    measures next to nothing. What a passage is too poor for gets an empty question.

    A prompt without a quote wants a question that the passage does not answer; one with two passages and two
    quotes a question about both; one with two passages and one quote names something of the other passage.
    """
    passages = [inputs.get(field.name, "") for field in layout.inputs if "passage" in field.name]
    first, other = (*passages, "", "")[:2]
    n_quotes = sum("quote" in field.name for field in layout.outputs)
    gaps = [_gap(passage) for passage in (first, other)[: min(n_quotes, 2)]]
    filled = [gap for gap in gaps if gap is not None]
    question = ""
    if not gaps:
        question = _particulars(first)
    elif len(filled) < len(gaps):
        filled = []
    elif len(filled) == 2:
        question = f'What belongs in the gaps: "{filled[0].holed}" and "{filled[1].holed}"'
    else:
        asked = f'hich {filled[0].kind} belongs in the gap: "{filled[0].holed}"'
        strangers = [name for name in _subjects(other) if name.casefold() not in first.casefold()]
        question = f"W{asked}" if len(passages) < 2 else ""
        if len(passages) > 1 and strangers:
            question = f"Leaving aside {strangers[0]}, w{asked}"
    values = {"question": question, "answer": "; ".join(gap.missing for gap in filled)}
    quotes = iter([gap.sentence for gap in filled])
    return {
        field.name: next(quotes, "") if "quote" in field.name else values.get(field.name, "")
        for field in layout.outputs
    }


def _subjects(passage: str) -> list[str]:
    """What a question can name: longer names, not at the start of a sentence; else the longest words."""
    names = [name for sentence in sentences(passage) for name in _GAPS[1][1].findall(sentence, 1)]
    words = sorted(_GAPS[2][1].findall(passage), key=len, reverse=True)
    return [name for name in names if len(name) >= _NAMED and not name.isupper()] + [
        f"the {word}" for word in words if word.islower()
    ]


def _particulars(passage: str) -> str:
    subjects, there = _subjects(passage), analyse(passage).content
    fit = [asked for asked in _PARTICULARS if not there & analyse(asked).content]
    place = zlib.crc32(passage.encode("utf-8", "replace"))
    return f"What are the {fit[place % len(fit)]} of {subjects[0]}?" if fit and subjects else ""


def _gap(passage: str) -> _Gap | None:
    """The longest sentence that can be asked about: with a number, a name, or else a long word."""
    fit = [
        sentence
        for sentence in sentences(passage)
        if _LEAST <= len(sentence.split()) <= _MOST and not POINTS.search(sentence) and '"' not in sentence
    ]
    for kind, pattern in _GAPS:
        for sentence in sorted(fit, key=len, reverse=True):
            missing = max(pattern.finditer(sentence, 1), key=lambda match: len(match[0]), default=None)
            if missing is not None:
                holed = f"{sentence[: missing.start()]}___{sentence[missing.end() :]}"
                return _Gap(sentence, holed, missing[0], kind)
    return None
