"""What of a server's answer is let in, whichever transport brings it: at most 1 MB, and nothing that cannot
be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from judgecal.engine.calls import CallFailed, ParsedReply, Reply
from judgecal.records import Failure, well_formed

MOST_BYTES = 1_000_000
"""The largest answer that is read, in bytes once decompressed."""

_LONGEST_NAME = 200  # of a model, or of the reason why a text ends
_LONGEST_IN_ROW = 20_000


def admitted(reply: Reply) -> Reply:
    """A reply fit for a row: no lone surrogate, and short names.

    Raises:
        CallFailed: the text is larger than 1 MB.
    """
    if len(reply.text) > MOST_BYTES // 4 and len(reply.text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise too_large()
    names = reply.model_id + reply.stopped
    if reply.text.isascii() and names.isascii() and len(names) <= _LONGEST_NAME:
        return reply  # as nearly all are
    return replace(
        reply,
        text=well_formed(reply.text),
        model_id=well_formed(reply.model_id[:_LONGEST_NAME]),
        stopped=well_formed(reply.stopped[:_LONGEST_NAME]),
    )


def too_large() -> CallFailed:
    """The failure of a reply that is not read to its end."""
    message = f"the reply is larger than {MOST_BYTES // 1_000_000} MB: set max_tokens on the model's alias"
    return CallFailed("length", message, retry=False, billed=True)


def unreadable(error: Exception) -> CallFailed:
    """The failure of an answer that no code of ours or of a library's was ready for; another one would be no
    better."""
    return CallFailed("parse", _why_unreadable(error), retry=False, billed=True)


def _why_unreadable(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "the reply is nested too deep to be read"
    said = " ".join(well_formed(str(error)[:_LONGEST_NAME]).split())
    return f"the reply cannot be read ({type(error).__name__}: {said})"


def read_guarded(read: Callable[[str], ParsedReply], text: str) -> ParsedReply:
    """What `read` makes of a reply; whatever it raises is a failure `parse`, for no reply may end a run.

    Raises:
        MemoryError: there is no memory left, which says nothing of the reply.
    """
    try:
        return read(text)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a reply is a stranger's text
        return ParsedReply(None, failure=Failure("parse", _why_unreadable(error)))


def shortened(text: str) -> str:
    """A text of a reply as a row holds it: of more than 20,000 characters the beginning and the end."""
    if len(text) <= _LONGEST_IN_ROW:
        return text
    half = _LONGEST_IN_ROW // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[-half:]}"


def count(value: Any) -> int | None:
    """A number of tokens, None where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def joined_text(parts: Any) -> str:
    """The text of a list of parts, less those that are a model's thoughts."""
    if not isinstance(parts, list):
        return ""
    texts = (
        part.get("text")
        for part in parts
        if isinstance(part, dict) and part.get("type", "text") == "text" and not part.get("thought")
    )
    return "".join(text for text in texts if isinstance(text, str))
