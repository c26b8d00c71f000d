"""DSPy's chat adapter with two differences: text under test cannot forge a field, and nothing is called twice.

Field markers inside values get a zero-width space. Texts without one give messages byte-equal to DSPy's own.
The same adapter serves the engine and the optimisers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dspy

__all__ = ["JudgeAdapter", "neutralised"]

_MARKER = "[[ ##"
_HARMLESS = "[[\u200b ##"


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
        self,
        signature: type[dspy.Signature],
        outputs: dict[str, Any],
        missing_field_message: str | None = None,
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
