"""A DSPy chat prompt, read back: its fields, what each is for, the examples and the last question.

Reads what DSPy's ChatAdapter and JSONAdapter write. Field markers count only at the start of a line and only
for fields that the system message lists, so that text under test cannot add a field of its own.
"""

from __future__ import annotations

import ast
import contextlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from judgecal.models.embedded.text import NEGATIONS, word_set

_FIELD = re.compile(r"^\d+\. `(\w+)` \((.*?)\):", re.MULTILINE)
_OPTIONAL = re.compile(r"^Union\[(.*), NoneType\]$")
_BOUND = re.compile(r"(greater|less) than( or equal to)?: (-?\d+(?:\.\d+)?(?:e-?\d+)?)")
_HEADER = re.compile(r"\[\[ ## (\w+) ## \]\]")
_CLOSING = "\n\nRespond with "
_JSON_CLOSING = "\n\nRespond with a JSON object"

# Which part an input plays, by what its name holds, in the order in which they are looked for; the second
# lists count where no name holds one of the first.
_PARTS: Mapping[str, Sequence[Sequence[str]]] = {
    "guidelines": [("guideline", "polic", "rule", "criteri", "requirement", "principle")],
    "context": [("context", "document", "passage", "chunk", "evidence", "retriev", "excerpt")],
    "facts": [("fact",)],
    "reference": [("reference", "expected", "gold", "ground_truth")],
    "history": [("conversation", "history", "dialog")],
    "answer": [
        ("answer", "response", "candidate", "prediction"),
        ("reply", "output", "completion", "generated", "summary", "claim", "statement"),
    ],
    "question": [("question", "query"), ("request", "message", "prompt", "instruction", "task", "input")],
}
_RIGHT = word_set("yes true pass passed correct right 1 acceptable accept accepted good supported match y")
_WRONG = word_set(
    "no false fail failed incorrect wrong 0 unacceptable reject rejected bad unsupported mismatch n"
)
_PARTLY = word_set("""partly partial partially somewhat some mixed borderline neutral unclear unsure maybe
    tie odd middling fair""")
_GOOD = _RIGHT | word_set("""compliant complies relevant safe complete full fully grounded faithful sufficient
    helpful great excellent ok okay approve approved entailed entails follows followed answered best high""")
_BAD = _WRONG | word_set("""violation violates violated breach breaches harmful toxic poor ugly contradicted
    contradicts contradiction contradictory hallucinated missing worst low""")
_OPPOSITE = re.compile(r"^(?:un|in|ir|non|dis|mis)")
_MANY = 100  # grades
_OBJECTIVE = "your objective is:"


@dataclass(frozen=True, slots=True)
class Field:
    """One field as the system message lists it; `constraints` is the text of its bounds."""

    name: str
    kind: str
    constraints: str = ""


@dataclass(frozen=True, slots=True)
class PromptScale:
    """A verdict's scale.

    `words` are a binary's (wrong, right) as printed, an ordinal's grades in order, or the labels of an
    unordered one; `levels` are those labels' places between bad (0) and good (1), as far as the words tell.
    """

    kind: str  # "number", "ordinal", "binary", "nominal"
    low: float = 0.0
    high: float = 1.0
    whole: bool = True
    words: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()

    def read(self, text: str) -> float | None:
        """Read a label's text as a share 0..1 of the scale, clipped to it; None where it cannot be read.

        Of an unordered scale, the label's place in `words`.
        """
        label = text.strip().strip("\"'").lower()
        with contextlib.suppress(ValueError):
            if self.kind in ("binary", "nominal"):
                return float([word.lower() for word in self.words].index(label))
            return min(1.0, max(0.0, (float(label) - self.low) / (self.high - self.low)))
        return None

    def write(self, share: float) -> str | float | int | bool:
        """A share 0..1 as the verdict that the field's type takes; a binary's cut is one half.

        Of an unordered scale, the word whose level is nearest.
        """
        if self.kind == "nominal":
            return self.words[min(range(len(self.words)), key=lambda i: abs(self.levels[i] - share))]
        if self.kind == "binary":
            word = self.words[int(share >= 0.5)]
            return word == "True" if word in ("True", "False") else word
        value = self.low + share * (self.high - self.low)
        if self.kind == "ordinal" and self.words:
            return self.words[min(range(len(self.words)), key=lambda i: abs(float(self.words[i]) - value))]
        return round(value) if self.whole else round(value, 1 if self.high - self.low > 10 else 3)

    def chances(self, share: float) -> dict[str, float]:
        """What a share of the scale means for its words, or for the two grades around it, as written.

        Of a number between many or with decimals nothing: it says the share itself.
        """
        if self.kind == "binary":
            return dict(zip(self.words, (1.0 - share, share), strict=True))
        if self.kind == "nominal" or not self.whole or self.high - self.low >= _MANY:
            return {}
        value = self.low + share * (self.high - self.low)
        below = math.floor(value)
        return {str(below): 1.0 - (value - below)} | (
            {str(below + 1): value - below} if value > below else {}
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """What the system message says: all fields, and which field plays which part (None where none does).

    `objective` are the instructions, in lower case.
    """

    inputs: tuple[Field, ...]
    outputs: tuple[Field, ...]
    reference: str | None
    answer: str | None
    question: str | None
    context: str | None
    facts: str | None
    guidelines: str | None
    history: str | None
    verdict: str | None
    scale: PromptScale | None
    objective: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A whole prompt. `prefix` identifies the demos, so that what is learnt from them can be kept."""

    layout: Layout
    prefix: tuple[str, ...]
    inputs: Mapping[str, str]
    wants_json: bool


def _parts(fields: Iterable[Field]) -> dict[str, str | None]:
    """The input that plays each part, None where none does; no input plays two."""
    parts: dict[str, str | None] = {}
    names = [field.name for field in fields]
    for part, lists in _PARTS.items():
        free = [name for name in names if name not in parts.values()]
        if part == "context":
            free = [name for name in free if "answer" not in name.lower()]
        fit = (name for marks in lists for name in free if any(mark in name.lower() for mark in marks))
        parts[part] = next(fit, None)
    return parts


def _goodness(word: str) -> float | None:
    """Whether a label says something good (1), bad (0) or in between; None where it is no such word.

    >>> [_goodness(word) for word in ("supported", "not_supported", "partly supported", "billing")]
    [1.0, 0.0, 0.5, None]
    """
    parts = re.findall(r"[^\W\d_]+|\d+", word.lower())
    if any(part in _PARTLY for part in parts):
        return 0.5
    bad = any(part in _BAD or _OPPOSITE.sub("", part) in _GOOD - {part} for part in parts)
    if not bad and not any(part in _GOOD for part in parts):
        return None
    negated = len(parts) > 1 and any(part in NEGATIONS or part == "non" for part in parts)
    return 0.0 if bad or negated else 1.0


def _literal_scale(kind: str) -> PromptScale | None:
    """The scale of a printed `Literal[...]`; None where its values cannot be read."""
    try:
        words = [str(value) for value in ast.literal_eval(kind[kind.index("[") :])]
    except (ValueError, SyntaxError):
        words = []
    if not words:
        return None
    if all(re.fullmatch(r"-?\d+", word) for word in words) and len(words) > 1:
        grades = sorted(words, key=int)
        return PromptScale("ordinal", float(grades[0]), float(grades[-1]), words=tuple(grades))
    lower = [word.lower() for word in words]
    right = [word in _RIGHT or other in _WRONG for word, other in zip(lower, reversed(lower), strict=True)]
    if len(words) == 2 and right[0] != right[1]:
        return PromptScale("binary", words=(words[right.index(False)], words[right.index(True)]))
    # Of each label its place between bad and good; words that tell nothing stand between, best first.
    goodness = [_goodness(word) for word in words]
    high, low = (0.5 if 1.0 in goodness else 1.0), (0.5 if 0.0 in goodness else 0.0)
    unknown = [place for place, level in enumerate(goodness) if level is None]
    step = (high - low) / (len(unknown) - 1) if len(unknown) > 1 else 0.0
    between = {place: high - step * rank for rank, place in enumerate(unknown)}
    levels = tuple(between[place] if level is None else level for place, level in enumerate(goodness))
    return PromptScale("nominal", words=tuple(words), levels=levels)


def _scale(field: Field) -> PromptScale | None:
    """The scale of an output field, or None for a type that is no verdict's (a text, a list)."""
    kind = field.kind
    if kind == "bool":
        return PromptScale("binary", words=("False", "True"))
    if kind.startswith("Literal["):
        return _literal_scale(kind)
    if kind not in ("int", "float"):
        return None
    whole, low, high = kind == "int", 0.0, 100.0
    for side, inclusive, number in _BOUND.findall(field.constraints):
        inward = 1.0 if whole and not inclusive else 0.0
        if side == "greater":
            low = float(number) + inward
        else:
            high = float(number) - inward
    return PromptScale("number", low, high, whole=whole) if high > low else None


def _fields(block: str) -> tuple[Field, ...]:
    matches = list(_FIELD.finditer(block))
    ends = [match.start() for match in matches[1:]] + [len(block)]
    fields = []
    for match, end in zip(matches, ends, strict=False):
        _, mark, bounds = block[match.end() : end].rpartition("Constraints:")
        kind = _OPTIONAL.sub(r"\1", match.group(2))
        fields.append(Field(match.group(1), kind, bounds if mark else ""))
    return tuple(fields)


@lru_cache(maxsize=256)
def read_layout(system: str) -> Layout:
    """The fields of a system message and their parts, found by name and type."""
    head = system.partition("All interactions will be structured")[0]
    before, _, after = head.partition("Your output fields are:")
    inputs, outputs = _fields(before), _fields(after)
    verdict = next((f for f in outputs if (scale := _scale(f)) and scale.kind != "nominal"), None)
    verdict = verdict or next((f for f in outputs if f.kind.startswith("Literal[")), None)
    return Layout(
        inputs=inputs,
        outputs=outputs,
        verdict=verdict.name if verdict else None,
        scale=_scale(verdict) if verdict else None,
        objective=system.rpartition(_OBJECTIVE)[2].lower(),
        **_parts(inputs),
    )


def _sections(text: str, names: Iterable[str]) -> dict[str, str]:
    """The values under `[[ ## name ## ]]` lines, the first of each name; unknown markers are plain text."""
    known = {*names, "completed"}
    marks = [
        mark
        for mark in _HEADER.finditer(text)
        if mark.group(1) in known and text[mark.start() - 1 : mark.start()] in ("", "\n")
    ]
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    values: dict[str, str] = {}
    for mark, end in zip(marks, ends, strict=False):
        values.setdefault(mark.group(1), text[mark.end() : end].strip())
    return values


def read_examples(system: str, turns: Sequence[str]) -> Iterator[tuple[Mapping[str, str], float]]:
    """The demos of a prompt, inputs and label as a share; one without a readable label is left out."""
    layout = read_layout(system)
    inputs, outputs = ([field.name for field in fields] for fields in (layout.inputs, layout.outputs))
    for user, reply in zip(turns[::2], turns[1::2], strict=False):
        if reply.lstrip().startswith("{"):  # of JSONAdapter
            values = {}
            with contextlib.suppress(json.JSONDecodeError):
                values = json.loads(reply)
        else:
            values = _sections(reply, outputs)
        if layout.scale and (layout.verdict or "") in values:
            label = layout.scale.read(str(values[layout.verdict or ""]))
            if label is not None:
                yield _sections(user, inputs), label


def read_prompt(messages: Sequence[Mapping[str, str]]) -> Prompt:
    """Read chat messages; the first system message has the fields, the last user message the question."""
    system = next((m["content"] for m in messages if m["role"] == "system"), "")
    turns = [m["content"] for m in messages if m["role"] in ("user", "assistant")]
    layout = read_layout(system)
    last = turns[-1] if turns else ""
    cut = last.rfind(_CLOSING)
    return Prompt(
        layout=layout,
        prefix=(system, *turns[:-1]),
        inputs=_sections(last[:cut] if cut >= 0 else last, [field.name for field in layout.inputs]),
        wants_json=last[cut:].startswith(_JSON_CLOSING) if cut >= 0 else False,
    )


def alternatives(value: str) -> list[str]:
    """The equally right references in a field: a JSON list, or texts joined by " | "; no blanks.

    >>> alternatives("FedExField | Landover, Maryland")
    ['FedExField', 'Landover, Maryland']
    """
    if value.startswith("[") and value.endswith("]"):
        listed = [value]
        with contextlib.suppress(json.JSONDecodeError):
            listed = json.loads(value)
        return [str(item) for item in listed if str(item).strip()]
    return [part.strip() for part in value.split(" | ") if part.strip()]
