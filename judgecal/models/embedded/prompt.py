"""A DSPy chat prompt, read back: its fields, what each is for, the examples and the last question.

Reads what DSPy's ChatAdapter and JSONAdapter write. Field markers count only at the start of a line and only
for fields that the system message lists, so that text under test cannot add a field of its own.
"""

from __future__ import annotations

import ast
import bisect
import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from judgecal.scale import FALSE_WORDS

_FIELD = re.compile(r"^\d+\. `(\w+)` \((.*?)\):", re.MULTILINE)
_OPTIONAL = re.compile(r"^Union\[(.*), NoneType\]$")
_BOUND = re.compile(r"(greater|less) than( or equal to)?: (-?\d+(?:\.\d+)?(?:e-?\d+)?)")
_HEADER = re.compile(r"\[\[ ## (\w+) ## \]\]")
_OR = re.compile(r" \| ")
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
_BAD = re.compile(
    r"\b(?:no|not|non|never|none|bad|poor|worst|low|missing|toxic|mismatch|(?:harm|reject|violat|breach|contradict"
    r"|hallucinat|(?:un|ir|dis|mis)[a-z]{4}|incor|incom|insuf)\w*)\b"
)
_PARTLY = re.compile(r"\b(?:part|some|mixed|border|neutral|un(?:clear|sure)|maybe|tie\b|middling|fair)")


@dataclass(frozen=True, slots=True)
class Field:
    """One field as the system message lists it; `constraints` is the text of its bounds."""

    name: str
    kind: str
    constraints: str = ""


@dataclass(frozen=True, slots=True)
class PromptScale:
    """A verdict's scale: words or grades with their places between bad (0) and good (1), or a range.

    `graded` where the words come in an order, so that a share between two of them means a chance of each.
    """

    words: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()
    graded: bool = False
    low: float = 0.0
    high: float = 1.0
    whole: bool = True

    def read(self, text: str) -> float | None:
        """Return the share 0..1 on the scale of a text, a label; None where it cannot be read."""
        label = text.strip().strip("\"'").lower()
        with contextlib.suppress(ValueError):
            if self.words:
                return self.levels[[word.lower() for word in self.words].index(label)]
            return min(1.0, max(0.0, (float(label) - self.low) / (self.high - self.low)))
        return None

    def write(self, share: float) -> str | float | int | bool:
        """Return the verdict nearest to a share 0..1, of the field's type; a binary's cut is one half."""
        if self.words:
            word = self.words[min(range(len(self.words)), key=lambda at: abs(self.levels[at] - share))]
            return word == "True" if word in ("True", "False") else word
        value = self.low + share * (self.high - self.low)
        return round(value) if self.whole else round(value, 3)

    def chances(self, share: float) -> dict[str, float]:
        """Return word -> chance of the two words around a share; empty for a number between many."""
        if not self.graded:
            return {}
        above = min(max(1, bisect.bisect_right(self.levels, share)), len(self.words) - 1)
        low, high = self.levels[above - 1], self.levels[above]
        part = (share - low) / (high - low)
        return {self.words[above - 1]: 1.0 - part, self.words[above]: part}


@dataclass(frozen=True, eq=False)
class Layout:
    """What the system message says: all fields, and which input plays which part.

    `objective` are the instructions, in lower case.
    """

    inputs: tuple[Field, ...]
    outputs: tuple[Field, ...]
    parts: Mapping[str, str]
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


def read_parts(names: Sequence[str]) -> dict[str, str]:
    """Return part -> the input that plays it, from the names of a prompt's inputs; none plays two."""
    parts: dict[str, str] = {}
    for part, lists in _PARTS.items():
        free = [name for name in names if name not in parts.values()]
        if part == "context":
            free = [name for name in free if "answer" not in name.lower()]
        fit = [name for marks in lists for name in free if any(mark in name.lower() for mark in marks)]
        if fit:
            parts[part] = fit[0]
    return parts


def _literal_scale(kind: str) -> PromptScale | None:
    """The scale of a printed `Literal[...]`; None where its values cannot be read."""
    words: list[str] = []
    with contextlib.suppress(ValueError, SyntaxError):
        words = [str(value) for value in ast.literal_eval(kind[kind.index("[") :])]
    if len(words) > 1 and all(re.fullmatch(r"-?\d+", word) for word in words):
        return _grades([int(word) for word in words])
    plain = [word.lower().replace("_", " ") for word in words]
    levels = [0.5 if _PARTLY.search(w) else float(w not in FALSE_WORDS and not _BAD.search(w)) for w in plain]
    if len(set(levels)) < 2:  # words that tell nothing: best first
        levels = [1.0 - place / (len(words) - 1 or 1) for place in range(len(words))]
    elif sorted(levels) == [0.0, 1.0]:
        return PromptScale(tuple(words if levels[1] else words[::-1]), (0.0, 1.0), graded=True)
    return PromptScale(tuple(words), tuple(levels)) if words else None


def _grades(values: Iterable[int]) -> PromptScale:
    low, *_, high = grades = sorted(values)
    levels = tuple((grade - low) / (high - low) for grade in grades)
    return PromptScale(tuple(map(str, grades)), levels, graded=True)


def _scale(field: Field) -> PromptScale | None:
    """The scale of an output field, or None for a type that is no verdict's (a text, a list)."""
    kind = field.kind
    if kind == "bool":
        return PromptScale(("False", "True"), (0.0, 1.0), graded=True)
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
    if whole and 0.0 < high - low < 100.0:
        return _grades(range(int(low), int(high) + 1))
    return PromptScale(low=low, high=high, whole=whole) if high > low else None


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
    """Return the Layout of a system message: its fields and their parts, found by name and type."""
    head = system.partition("All interactions will be structured")[0]
    before, _, after = head.partition("Your output fields are:")
    inputs, outputs = _fields(before), _fields(after)
    scales = [(field, scale) for field in outputs if (scale := _scale(field))]
    numeric = [pair for pair in scales if pair[1].graded or not pair[1].words]
    verdict, scale = (*numeric, *scales, (None, None))[0]
    objective = system.rpartition("your objective is:")[2].lower()
    parts = read_parts([field.name for field in inputs])
    return Layout(inputs, outputs, parts, verdict.name if verdict else None, scale, objective)


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
    """Yield (inputs, label as a share) of each demo in a system message and the turns of its prompt."""
    layout = read_layout(system)
    inputs, outputs = ([field.name for field in fields] for fields in (layout.inputs, layout.outputs))
    for user, reply in zip(turns[::2], turns[1::2], strict=False):
        if reply.lstrip().startswith("{"):  # of JSONAdapter
            values = {}
            with contextlib.suppress(json.JSONDecodeError):
                values = json.loads(reply)
        else:
            values = _sections(reply, outputs)
        label = layout.scale.read(str(values.get(layout.verdict or ""))) if layout.scale else None
        if label is not None:
            yield _sections(user, inputs), label


def read_prompt(messages: Sequence[Mapping[str, str]]) -> Prompt:
    """Read chat messages as a Prompt: the first system message has the fields, the last turn the inputs."""
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


def texts_of(value: str, separator: re.Pattern[str]) -> list[str]:
    """Return the list of texts in a value: of a JSON list, or between the matches of a separator."""
    parts: Sequence[Any] = separator.split(value)
    if value.lstrip().startswith("["):
        with contextlib.suppress(ValueError):
            parts = json.loads(value)
    return [text for part in parts if (text := str(part).strip())]


def alternatives(value: str) -> list[str]:
    """Return the list of equally right references in a value: a JSON list, or texts joined by " | "."""
    return texts_of(value, _OR)
