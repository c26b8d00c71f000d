"""The reading of a judge's reply: its fields, and the one verdict that they hold.

A reply is cut at DSPy's field markers, or is one JSON object, and the verdict is read from its own text,
since DSPy's parser takes `true` for 1 of 100 and gives up on `85%`. Nothing is called for again: `85%`,
`85.0` and `85 out of 100` are read; `150`, an empty reply and prose become a failure by name.

A judge may quote the answer under test, and the answer may hold a verdict of its own. So no place in a reply
is trusted: where it holds two verdicts that differ, wherever they stand, it has none. Thoughts are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any

from judgecal.engine.calls import ParsedReply
from judgecal.prompts import LAST_NUMBER, LAST_WORD
from judgecal.records import Failure
from judgecal.scale import Label, Scale
from judgecal.signatures import LoadedSignature

# Every pattern here runs over what a server sends, so each is linear: `^` with nothing before it but the
# line's blanks.
_HEADER = re.compile(r"^[^\S\n]*\[\[ ## (\w+) ## \]\][ \t]*", re.MULTILINE)
_THOUGHTS = r"(think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis)"
_OPENING = re.compile(rf"\s*<{_THOUGHTS}>", re.IGNORECASE)
_TAG = re.compile(rf"<(/?){_THOUGHTS}>", re.IGNORECASE)
_FENCE = re.compile(r"```(?:json)?", re.IGNORECASE)
_NUMBER = re.compile(
    r"(?P<value>[+-]?\d+(?:\.\d+)?) ?(?:%|percent|/ ?(?P<of>\d+)|out of (?P<outof>\d+))?\.?", re.IGNORECASE
)
# With what may be thousands or a decimal comma: `1,000` is no number here, and not 0.
_ANY_NUMBER = re.compile(rf"(?<![\w.]){_NUMBER.pattern}(?:[.,]\d+)*(?!\w)", re.IGNORECASE)
_WRAPPING = " \t\r\n\"'`*_"
_SHOWN = 80  # characters of a reply in a message

Fields = list[tuple[str, Any]]
"""Names and values in the order of the reply; a name may stand there twice."""


def read_reply(signature: LoadedSignature, text: str) -> ParsedReply:
    """Parse a reply's text by a LoadedSignature into a ParsedReply, or a failure `parse`, `out_of_range`."""
    if not text.strip():
        return ParsedReply(None, failure=Failure("parse", "the reply is empty"))
    names = [name for name in (signature.verdict, signature.reasoning) if name]
    fields = reply_fields(_without_thoughts(after_thoughts(text)) if "<" in text else text, names)
    verdicts = [value for name, value in fields if name == signature.verdict]
    reasoning = str(next((value for name, value in fields if name == signature.reasoning), "")).strip()
    if not verdicts and signature.prompt is not None:  # its text may ask for another form than DSPy's
        return read_text_reply(signature, text)
    if not verdicts:
        message = f"no {signature.verdict} in the reply: {text.strip()[:_SHOWN]!r}"
        return ParsedReply(None, reasoning, Failure("parse", message))
    verdict, failure = _one_verdict(signature, verdicts)
    return ParsedReply(verdict, reasoning, failure)


def read_text_reply(signature: LoadedSignature, text: str) -> ParsedReply:
    """Parse the text of a reply, by the LoadedSignature of a text prompt, into a ParsedReply.

    Where a path or a pattern finds several that differ there is none. The reasoning is the reply, or of a
    reply that was held to a schema its field.
    """
    prompt, aloud, reasoning = signature.prompt, _without_thoughts(after_thoughts(text)), text.strip()
    assert prompt is not None
    values: list[Any]
    if prompt.path:
        values = _at_path(aloud, prompt.path)
        reasons = _at_path(aloud, (str(signature.reasoning),)) if prompt.structured else []
        reasoning = str(reasons[0]) if reasons else reasoning
    elif prompt.verdict == LAST_NUMBER:
        values = [match[0] for match in _ANY_NUMBER.finditer(aloud)][-1:]
    elif prompt.verdict == LAST_WORD:
        values = re.findall(r"\w[\w'-]*", aloud)[-1:]
    else:
        values = re.findall(prompt.verdict[1:-1], aloud)
    if not values:
        why = f"no {prompt.verdict} in the reply: {text.strip()[:_SHOWN]!r}"
        return ParsedReply(None, reasoning, Failure("parse", why if reasoning else "the reply is empty"))
    verdict, failure = _one_verdict(signature, values)
    return ParsedReply(verdict, reasoning, failure)


def _at_path(text: str, path: Sequence[str | int]) -> list[Any]:
    """What every JSON object of a text holds there; nothing where something in braces is no JSON.

    An object in a text that cannot be read may be one that was quoted, and the verdict elsewhere.
    """
    decoder, values, at = json.JSONDecoder(object_pairs_hook=_unambiguous, strict=False), [], text.find("{")
    while at >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        for step in path:
            inside = isinstance(value, dict) if isinstance(step, str) else isinstance(value, list)
            is_there = inside and (step in value if isinstance(step, str) else step < len(value))
            value = value[step] if is_there else None
        values += [] if value is None else [value]
        at = text.find("{", at)
    return values


def _unambiguous(pairs: Fields) -> dict[str, Any]:
    """An object; ValueError where a name has two values."""
    if any(dict(pairs)[name] != value for name, value in pairs):
        raise ValueError("a name has two values")
    return dict(pairs)


def reply_fields(text: str, names: Collection[str]) -> Fields:
    """Return Fields, pairs (name, value), of a reply's text and these names: below markers, or in JSON.

    An object inside prose is left alone: it may be quoted from the text under test.

    Args:
        names: the output fields, looked for where the object is no strict JSON.
    """
    parts = _HEADER.split(text)
    sections: Fields = [(name, value.strip()) for name, value in zip(parts[1::2], parts[2::2], strict=True)]
    return sections + _json_fields(text, names)


def _one_verdict(signature: LoadedSignature, values: Sequence[Any]) -> tuple[Label | None, Failure | None]:
    verdict, failure = read_verdict(signature, values[0])
    for value in values[1:]:
        if read_verdict(signature, value) != (verdict, failure):
            two = " and ".join(repr(_first_line(str(stated))[:_SHOWN]) for stated in (values[0], value))
            return None, Failure("parse", f"two different verdicts in one reply: {two}")
    return verdict, failure


def after_thoughts(text: str) -> str:
    """Return a text, a reply, without the thoughts that it begins with; empty where they never end."""
    start = 0
    while opening := _OPENING.match(text, start):
        closing = re.compile(rf"</{opening[1]}>", re.IGNORECASE).search(text, opening.end())
        if closing is None:
            return ""
        start = closing.end()
    return text[start:]


def _without_thoughts(text: str) -> str:
    """The text without what stands between a tag of thoughts and its end; a tag without one is a word."""
    parts, start, opened = [], 0, None
    for tag in _TAG.finditer(text):
        if not tag[1]:
            opened = opened or tag
        elif opened is not None and tag[2].lower() == opened[2].lower():
            parts.append(text[start : opened.start()])
            start, opened = tag.end(), None
    return "".join((*parts, text[start:])) if start else text


def _json_fields(text: str, names: Collection[str]) -> Fields:
    """The names and values of a reply that is one JSON object, fenced or not, each as often as it stands."""
    inner = text.strip()
    if inner[0:1] not in ("{", "`"):
        return []
    if fence := _FENCE.match(inner):
        inner = inner[fence.end() :].strip()
    inner = inner.removesuffix("```").rstrip()
    if not (inner.startswith("{") and inner.endswith("}")):
        return []
    outermost: Fields = []

    def noted(pairs: Fields) -> dict[str, Any]:
        outermost[:] = pairs  # the outermost object is the last that is read
        return dict(pairs)

    try:
        json.loads(inner, object_pairs_hook=noted, strict=False)
    except (ValueError, RecursionError):
        return _loose_fields(inner, names)
    return outermost


def _loose_fields(text: str, names: Collection[str]) -> Fields:
    """The fields of an object that is no strict JSON (a quote that is not escaped, Python's quotes, a comma
    too many).

    A value ends where the next name begins, so a field that a text within a value forges stands here as well.
    Nothing is guessed: a library that mends JSON takes one of two that differ, and minutes for some texts.
    """
    pattern = "|".join(map(re.escape, names))
    keys = list(
        re.finditer(rf"""(?:(?<!\w)({pattern})["'`\\]{{0,4}}|["'](\w{{1,80}})["'])\s{{0,20}}:""", text)
    )
    ends = [key.start() for key in keys[1:]] + [len(text) - 1]
    return [
        (key[1] or key[2], text[key.end() : end].strip(_WRAPPING + ","))
        for key, end in zip(keys, ends, strict=False)
    ]


def read_verdict(signature: LoadedSignature, value: Any) -> tuple[Label | None, Failure | None]:
    """Read a value (text or JSON) by a LoadedSignature: a pair, Label or None, and Failure or None."""
    scale = signature.judge_scale()
    if scale.kind == "nominal":
        return _read_word(scale, str(value))
    if scale.kind == "binary":
        return _read_binary(scale, value)
    return _read_number(scale, value)


def _read_word(scale: Scale, text: str) -> tuple[Label | None, Failure | None]:
    word = _first_line(text)
    for category in scale.categories:
        if category.lower() in (word.lower(), word.lower().rstrip(".")):
            return category, None
    return None, Failure("parse", f"{word[:_SHOWN]!r} is none of {', '.join(scale.categories)}")


def _read_binary(scale: Scale, value: Any) -> tuple[Label | None, Failure | None]:
    try:
        return scale.read(value if isinstance(value, bool) else _first_line(str(value)).rstrip(".")), None
    except ValueError as error:
        return None, Failure("parse", str(error))


def _read_number(scale: Scale, value: Any) -> tuple[Label | None, Failure | None]:
    line = _first_line(str(value))
    match = _NUMBER.fullmatch(line)
    if match is None:
        return None, Failure("parse", f"{line[:_SHOWN]!r} is not a number")
    out_of = match["of"] or match["outof"]
    if out_of and float(out_of) != scale.high:
        return None, Failure("parse", f"{line[:_SHOWN]!r} is not out of {scale.high:g}")
    number = float(match["value"])
    if not scale.low <= number <= scale.high:
        return None, Failure(
            "out_of_range", f"{match['value'][:_SHOWN]} lies outside {scale.low:g}..{scale.high:g}"
        )
    if not scale.on_step(number):
        what = (
            "is not a whole number"
            if scale.kind == "ordinal"
            else f"lies between the steps of {scale.step:g}"
        )
        return None, Failure("parse", f"{number:g} {what}")
    return number, None


def _first_line(text: str) -> str:
    stripped = text.strip(_WRAPPING)
    return stripped.splitlines()[0].strip(_WRAPPING) if stripped else ""
