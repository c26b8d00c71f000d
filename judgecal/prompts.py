"""A judge's prompt as text, `prompts/NAME.md`: a head of a few lines of TOML, then the text as it is sent.

    +++
    scale = "ordinal:1:5"
    verdict = '$.score'     # or '/pattern with (one group)/', 'last number', 'last word'
    +++
    # system
    You grade answers ...
    # user
    Question: {{ question }} ...

Nothing of the text is changed but its placeholders, which take the item's own texts. `{{ name }}` is one
whatever the name; `{name}` where it is an item's own input (`{answer}`) or stands in double braces elsewhere
in the text. All other braces stay, and so does every blank and line end. Without the two lines `# system` and
`# user` all of it is one message of the user's.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from judgecal.artefacts import validated
from judgecal.errors import InputError, refuse
from judgecal.scale import Scale

LAST_NUMBER, LAST_WORD = "last number", "last word"
_HEAD = re.compile(r"\+\+\+[ \t]*\r?\n(.*?)^\+\+\+[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^# (system|user)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_PLACE = re.compile(r"\{\{[ \t]*([^\W\d_]\w*)[ \t]*\}\}|\{([^\W\d_]\w*)\}")
_ESCAPED = re.compile(r'^[ \t]*verdict[ \t]*=[ \t]*"(/[^"\n]*(?<!\\)\\(?![\\"])[^"\n]*)"', re.MULTILINE)
_PATH = re.compile(r"\$(?:\.[^\W\d][\w-]*|\[\d+\])+")
_NOT_FILLED = ("item", "expect", "verdict", "reasoning")  # what no text can be, and a reply's own fields


class _Head(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    scale: str
    verdict: str
    structured: bool = False
    words: list[str] | None = None


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """A prompt that is sent as it stands.

    Attributes:
        text: the whole file, its head too.
        verdict: where a reply has it, as the head says.
        structured: whether a server that can is held to a JSON schema.
        inputs: what stands in placeholders, in the order of the text.
        turns: role -> the text's pieces; at odd places stand names of inputs.
    """

    text: str
    scale: Scale
    verdict: str
    structured: bool
    inputs: tuple[str, ...]
    turns: Mapping[str, tuple[str, ...]]

    def filled(self, inputs: Mapping[str, str]) -> list[dict[str, str]]:
        """Return the messages, a dict each, with the inputs (name -> text) in their places."""
        return [
            {"role": role, "content": "".join(inputs[p] if at % 2 else p for at, p in enumerate(pieces))}
            for role, pieces in self.turns.items()
        ]

    @property
    def path(self) -> tuple[str | int, ...]:
        """The names and places of a JSON path, `$.marks[0].score`; empty where the verdict has none."""
        parts = re.findall(r"\.([\w-]+)|\[(\d+)\]", self.verdict) if self.verdict.startswith("$") else ()
        return tuple(name or int(place) for name, place in parts)

    @property
    def instructions(self) -> str:
        """The text as the instructions of a signature: in each placeholder's place the input's name."""
        turns = self.filled({name: f"`{name}`" for name in self.inputs})
        return "\n\n".join(turn["content"].strip() for turn in turns)


def read_prompt(path: Path, own_inputs: Collection[str]) -> TextPrompt:
    """Read the file at a path as a TextPrompt; `own_inputs`: names that every item has a place for."""
    try:
        text = path.read_bytes().decode("utf-8").removeprefix("\ufeff")
    except OSError as error:
        raise InputError(f"{path}: this prompt cannot be read ({error.strerror}): name a file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 (byte {error.start}): save the file as UTF-8") from None
    match = _HEAD.match(text)
    if match is None:
        example = '+++, scale = "binary", verdict = "last word", +++'
        raise InputError(f"{path}:1: a text prompt begins with its head, a line each: {example}")
    if pattern := _ESCAPED.search(match[1]):
        line = text.count("\n", 0, match.start(1) + pattern.start(1)) + 1
        raise InputError(f"{path}:{line}: a pattern stands in single quotes: verdict = '{pattern[1]}'")
    try:
        head = validated(_Head, tomllib.loads(match[1].replace("\r\n", "\n")), "its head")
        scale = _scale(head)
    except (tomllib.TOMLDecodeError, InputError) as error:
        faults = error.problems if isinstance(error, InputError) else [f"its head is no TOML: {error}"]
        raise InputError([f"{path}: {problem}" for problem in faults]) from None
    problems = _verdict_problems(head)
    turns, more = _turns(text[match.end() :])
    doubled = {name for text in turns.values() for name, _ in _PLACE.findall(text) if name}
    cut = {
        role: _pieces(text, doubled | (set(own_inputs) - set(_NOT_FILLED))) for role, text in turns.items()
    }
    inputs = tuple(dict.fromkeys(piece for pieces in cut.values() for piece in pieces[1::2]))
    if not inputs:
        what = "it would ask the same of every answer: write {{ answer }} where the answer is to stand"
        more.append(f"it has no placeholder, so {what}")
    more += [
        f"{{{{ {name} }}}}: we cannot fill {name}: take it out, or call the field otherwise"
        for name in inputs
        if name in _NOT_FILLED
    ]
    refuse([f"{path}: {problem}" for problem in (*problems, *more)])
    return TextPrompt(text, scale, head.verdict, head.structured, inputs, cut)


def _scale(head: _Head) -> Scale:
    scale = Scale.parse(head.scale)
    if (scale.kind == "nominal") != (head.words is not None) or len(set(head.words or "ab")) < 2:
        raise InputError(f'scale {scale}: words = ["good", "bad"] belong to the scale nominal, two or more')
    if scale.from_fraction:
        raise InputError("scale fraction is for imports: write points:0:1")
    return Scale("nominal", 0.0, 0.0, categories=tuple(head.words)) if head.words else scale


def _verdict_problems(head: _Head) -> list[str]:
    rule, shown = head.verdict, f"verdict {head.verdict!r}"
    if head.structured and not re.fullmatch(r"\$\.[^\W\d][\w-]*", rule):
        return ['structured = true asks for a JSON object: name the verdict in it, verdict = "$.score"']
    if len(rule) > 2 and rule[0] == rule[-1] == "/":
        try:
            groups = re.compile(rule[1:-1]).groups
        except re.error as error:
            return [f"{shown}: no pattern: {error}"]
        return [f"{shown}: has {groups} groups: put the verdict alone in one"] * (groups != 1)
    if _PATH.fullmatch(rule) or rule in (LAST_NUMBER, LAST_WORD):
        return []
    return [f"{shown}: write '$.score', '/Score: (\\d+)/', '{LAST_NUMBER}' or '{LAST_WORD}'"]


def _turns(body: str) -> tuple[dict[str, str], list[str]]:
    """Role -> its text, and what is wrong with the sections."""
    before, *sections = _SECTION.split(body)
    if not sections:
        return {"user": body}, []
    turns = dict(zip(sections[::2], sections[1::2], strict=True))
    problems = []
    if sections[::2] not in (["system", "user"], ["user"]):
        problems.append("a line # system stands once at most, and a line # user once behind it")
    if before.strip():
        problems.append("text stands above its first section: put it below # system or # user")
    return turns, problems


def _pieces(text: str, names: Collection[str]) -> tuple[str, ...]:
    """The text cut at its placeholders: text, name, text, ..."""
    pieces, at = [], 0
    for match in _PLACE.finditer(text):
        if (name := match[1] or match[2]) in names:
            pieces += [text[at : match.start()], name]
            at = match.end()
    return (*pieces, text[at:])
