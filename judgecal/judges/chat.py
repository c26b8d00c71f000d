"""What a judge is sent: DSPy's adapter, with text under test that cannot forge anything.

It differs from DSPy's in two things: markers of fields inside values get a zero-width space and tokens of chat
templates a blank (texts without either give messages byte-equal to DSPy's own), and nothing is called twice. It serves
the optimisers too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import dspy

_MARKER = "[[ ##"
_HARMLESS = "[[\u200b ##"
# What models' own chat templates set between turns: `<|im_start|>` and all of its form, and the names that stand alone.
_TEMPLATE_TOKEN = re.compile(
    r"<(?=[|｜][^<>|｜\n]{1,64}[|｜]>"
    r"|/?(?:s|bos|eos|pad|unk|mask|sop|eop|start_of_turn|end_of_turn|start_of_image|end_of_image|think|tool_call"
    r"|tool_response|reserved_\d{1,6}|extra_id_\d{1,6}|unused\d{1,6})>"
    r"|</?(?i:SYS)>>)"
    r"|\[(?=/?(?:(?i:INST)|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|IMG|IMG_BREAK|IMG_END|PREFIX"
    r"|MIDDLE|SUFFIX|CLS|SEP|MASK|gMASK|UNUSED_TOKEN_\d{1,6})\])"
)


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
    """The same values with every marker of a field and every template token made harmless, in lists and mappings too.

    A marker gets a zero-width space, `<|im_start|>` becomes `< |im_start|>`: still to be read, and no token any more.
    """
    return {name: _harmless(value) for name, value in values.items()}


def _harmless(value: Any) -> Any:
    if isinstance(value, str):
        if "<" not in value and "[" not in value:
            return value
        return _TEMPLATE_TOKEN.sub(r"\g<0> ", value.replace(_MARKER, _HARMLESS))
    if isinstance(value, Mapping):
        return {_harmless(name): _harmless(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_harmless(inner) for inner in value]
    return value
