"""Messages in, the assistant's text out: which part of the prompt is asked for, and in which format.

A prompt without a verdict is answered with the sentence of its context that shares most with the question,
and one that asks for a question with a gap in a sentence: no model of language, a floor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from judgecal.models.embedded import judge
from judgecal.models.embedded.families import find
from judgecal.models.embedded.prompt import Field, Layout, Prompt, read_examples, read_layout, read_prompt
from judgecal.models.embedded.text import Text, analyse, sentences

NOT_FOUND = "The answer is not in the document."
_COMPLETED = {"completed": ""}
_LEAST, _MOST = 6, 40  # words of a sentence that is asked about
_GAP = re.compile(r"(?<![\w.,:])\d+(?:[.,:]\d+)*(?!\w)|(?<=[^.!?] )[A-Z][^\W\d_]{4,}|[^\W\d_]{6,}")
_POINTS = re.compile(r'(?i)"|\b(?:he|she|it|they|his|hers?|its|them|their|th(?:is|at|ese|ose)|such)\b')


def make_reply(messages: Sequence[Mapping[str, str]]) -> tuple[str, dict[str, float]]:
    """Return the reply to chat messages, a text, and verdict -> chance; none where it chose from none."""
    prompt = read_prompt(messages)
    layout, scale = prompt.layout, prompt.layout.scale
    if not layout.outputs:
        return "I am judgecal's embedded model: I can only answer a DSPy prompt that lists its fields.", {}
    if layout.verdict is None:
        asks = any(field.name == "question" for field in layout.outputs)
        return _written(prompt, (_question if asks else _answers)(layout, prompt.inputs)), {}
    if scale is None:
        return "I cannot judge this: I cannot read which verdicts there are.", {}
    finding = find(layout, prompt.inputs)
    if finding.unable:
        return f"I cannot judge this: {finding.why}", {}
    share = finding.share
    if len(prompt.prefix) > 1 and not finding.decided and (learnt := _learnt_from(prompt.prefix)):
        share = learnt.share([judge.logit(share), *finding.measures])
    values = {field.name: finding.why if field.kind == "str" else _blank(field) for field in layout.outputs}
    return _written(prompt, values | {layout.verdict: scale.write(share)}), scale.chances(share)


@lru_cache(maxsize=64)
def _learnt_from(prefix: tuple[str, ...]) -> judge.Linear | None:
    """What the demos of a prompt's prefix teach, once per prefix and process; None without a readable one."""
    layout, rows = read_layout(prefix[0]), []
    for inputs, label in read_examples(prefix[0], prefix[1:]):
        finding = find(layout, inputs)
        if not finding.decided and not finding.unable:  # a rule decides such items with demos too
            rows.append((finding.share, finding.measures, label))
    return judge.refit(*zip(*rows, strict=True)) if rows else None


def _blank(field: Field) -> Any:
    """The emptiest value of a type that is neither text nor verdict."""
    if field.kind.startswith(("list", "tuple", "set")):
        return []
    return {} if field.kind.startswith("dict") else None


def _written(prompt: Prompt, values: Mapping[str, Any]) -> str:
    """The values in the order of the output fields, as ChatAdapter or JSONAdapter reads them."""
    if prompt.wants_json:
        return json.dumps(dict(values), indent=2)
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
    return "\n\n".join([f"[[ ## {name} ## ]]\n{text}" for name, text in (texts | _COMPLETED).items()])


def _answers(layout: Layout, inputs: Mapping[str, str]) -> dict[str, Any]:
    """The outputs of a prompt without a verdict: a sentence of the context.

    An optimiser that asks for a new instruction gets the old one back: this model writes none.
    """
    question, context = (inputs.get(layout.parts.get(part, ""), "") for part in ("question", "context"))
    sentence = best_sentence(question, context)
    found = "This sentence of the document shares" if sentence else "No sentence shares enough of"
    why = f"{found} the words of the question."
    given = (value for name, value in inputs.items() if "instruction" in name.lower())
    instruction = next(given, "Judge the answer against the reference.")
    values: dict[str, Any] = {}
    for field in layout.outputs:
        name, text = field.name.lower(), sentence or NOT_FOUND
        if "instruction" in name or ("reason" in name and len(layout.outputs) > 1):
            text = instruction if "instruction" in name else why
        values[field.name] = text if field.kind == "str" else _blank(field)
    return values


def best_sentence(question: str, context: str) -> str | None:
    """Return the sentence of a context with most of a question's words; None below a share of 0.4."""
    asked, best, most = analyse(question).content, None, 0.4
    for sentence in sentences(context):
        content = Text(sentence).content  # not cached: a document's sentences are read once
        # one that says nothing beside the question is hardly its answer
        share = len(content & asked) / (len(asked) or 1) - 0.2 * (content <= asked)
        if share > most or (share == most and best is None):
            best, most = sentence, share
    # one line that any encoder takes and no adapter mistakes for a field marker
    line = " ".join((best or "").replace("\x00", " ").replace("[[", "[").split())
    return line.encode("utf-8", "replace").decode("utf-8") or None


def _question(layout: Layout, inputs: Mapping[str, str]) -> dict[str, str]:
    """The outputs of a prompt that asks for a question about a passage, empty where the passage is too poor.

    A gap is cut into a sentence of the passage, and what stood there is the answer: it shows how the command
    works, and measures next to nothing. Without a quote the passage is not to answer the question.
    """
    passage = next((inputs.get(field.name, "") for field in layout.inputs if "passage" in field.name), "")
    fit = [s for s in sentences(passage) if _LEAST <= len(s.split()) <= _MOST and not _POINTS.search(s)]
    quote = max(fit, key=len, default="")
    gap = _GAP.search(quote, 1)
    values = {"quote": quote if gap else "", "answer": gap[0] if gap else "", "question": ""}
    if gap:
        values["question"] = f'What belongs in the gap: "{quote[: gap.start()]}___{quote[gap.end() :]}"'
        if not any("quote" in field.name for field in layout.outputs):
            values["question"] = f"What are the telephone number, landlord and tax office of {gap[0]}?"
    return {field.name: values.get(field.name, "") for field in layout.outputs}
