"""The two ends of a judge's chat: DSPy's adapter for what is sent, and the reading of what comes back.

The adapter differs from DSPy's in two things: text under test cannot forge a field (markers inside values get a
zero-width space; texts without one give messages byte-equal to DSPy's own), and nothing is called twice. It serves
the optimisers too. A reply is cut at DSPy's field markers and the verdict read from its own text, since DSPy's parser
takes `true` for 1 of 100 and gives up on `85%`. Nothing is called for again: `85%`, `85.0`, `85 out of 100` and a JSON
object are read; `150`, an empty reply and prose become a failure by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import dspy

from judgecal.engine import Reading
from judgecal.records import Failure
from judgecal.scale import Label, Scale
from judgecal.signatures import LoadedSignature

_MARKER = "[[ ##"
_HARMLESS = "[[\u200b ##"
_HEADER = re.compile(r"^\s*\[\[ ## (\w+) ## \]\][ \t]*", re.MULTILINE)
_NUMBER = re.compile(
    r"(?P<value>[+-]?\d+(?:\.\d+)?) ?(?:%|percent|/ ?(?P<of>\d+)|out of (?P<outof>\d+))?\.?", re.IGNORECASE
)
_JSON_REPLY = re.compile(r"(?:```(?:json)?)?\s*(\{.*\})\s*(?:```)?", re.IGNORECASE | re.DOTALL)
_WRAPPING = " \t\r\n\"'`*_"


class JudgeAdapter(dspy.ChatAdapter):  # type: ignore[misc]
    """The chat adapter of every judgecal program; it never falls back to a second, paid call."""

    def __init__(self) -> None:
        super().__init__(use_json_adapter_fallback=False)

    def format_user_message_content(
        self,
        signature: type[dspy.Signature],
        inputs: dict[str, Any],
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> str:
        """DSPy's user message, from neutralised inputs."""
        content: str = super().format_user_message_content(
            signature, neutralised(inputs), prefix=prefix, suffix=suffix, main_request=main_request
        )
        return content

    def format_assistant_message_content(
        self, signature: type[dspy.Signature], outputs: dict[str, Any], missing_field_message: str | None = None
    ) -> str:
        """DSPy's demo reply, from neutralised outputs."""
        content: str = super().format_assistant_message_content(
            signature, neutralised(outputs), missing_field_message=missing_field_message
        )
        return content


def neutralised(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same values with every field marker inside a text made harmless, in lists and mappings too."""
    return {name: _harmless(value) for name, value in values.items()}


def _harmless(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(_MARKER, _HARMLESS)
    if isinstance(value, Mapping):
        return neutralised(value)
    if isinstance(value, list | tuple):
        return [_harmless(inner) for inner in value]
    return value


def read_reply(signature: LoadedSignature, text: str) -> Reading:
    """The reasoning of a judge's reply, and the verdict on its scale or a failure `parse` or `out_of_range`."""
    if not text.strip():
        return Reading(None, failure=Failure("parse", "the reply is empty"))
    fields = _sections(text) or _json_object(text)
    reasoning = str(fields.get(signature.reasoning or "", "")).strip()
    if signature.verdict not in fields:
        message = f"no {signature.verdict} in the reply: {text.strip()[:80]!r}"
        return Reading(None, reasoning, Failure("parse", message))
    verdict, failure = read_verdict(signature, fields[signature.verdict])
    return Reading(verdict, reasoning, failure)


def _sections(text: str) -> dict[str, Any]:
    """Field name -> text below its marker; the first of two with one name counts, as in DSPy."""
    parts = _HEADER.split(text)
    found: dict[str, Any] = {}
    for name, value in zip(parts[1::2], parts[2::2], strict=True):
        found.setdefault(name, value.strip())
    return found


def _json_object(text: str) -> dict[str, Any]:
    """A reply that is a JSON object and nothing else: one inside prose may be quoted from the text under test."""
    found = _JSON_REPLY.fullmatch(text.strip())
    if found is None:
        return {}
    import json_repair

    value = json_repair.loads(found[1])
    return value if isinstance(value, dict) else {}


def read_verdict(signature: LoadedSignature, value: Any) -> tuple[Label | None, Failure | None]:
    """Read one verdict, from the text of its section or a JSON value."""
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
    return None, Failure("parse", f"{word[:80]!r} is none of {', '.join(scale.categories)}")


def _read_binary(scale: Scale, value: Any) -> tuple[Label | None, Failure | None]:
    try:
        return scale.read(value if isinstance(value, bool) else _first_line(str(value)).rstrip(".")), None
    except ValueError as error:
        return None, Failure("parse", str(error))


def _read_number(scale: Scale, value: Any) -> tuple[Label | None, Failure | None]:
    line = _first_line(str(value))
    match = _NUMBER.fullmatch(line)
    if match is None:
        return None, Failure("parse", f"{line[:80]!r} is no number")
    out_of = match["of"] or match["outof"]
    if out_of and float(out_of) != scale.high:
        return None, Failure("parse", f"{line[:80]!r} is not out of {scale.high:g}")
    number = float(match["value"])
    if not scale.low <= number <= scale.high:
        return None, Failure("out_of_range", f"{match['value']} lies outside {scale.low:g}..{scale.high:g}")
    if scale.kind == "ordinal" and number != round(number):
        return None, Failure("parse", f"{number:g} is no whole number")
    return number, None


def _first_line(text: str) -> str:
    stripped = text.strip(_WRAPPING)
    return stripped.splitlines()[0].strip(_WRAPPING) if stripped else ""
