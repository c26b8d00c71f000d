"""Gemini's and Anthropic's answers for the scripted server of `server`, and scripts from a request to a text.

`running(gemini(script))` is a Gemini server: `root` is its `api_base`, a text is sent as a reply of its
format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.support.http import Answer, as_answer
from tests.support.server import Script

GEMINI_VERSION = "gemini-stub-001"
CLAUDE_VERSION = "claude-stub-20260101"
PROMPT_TOKENS, REPLY_TOKENS, THOUGHT_TOKENS = 1000, 30, 20
Say = Callable[[dict[str, Any]], "Answer | str"]


def gemini(script: Say) -> Script:
    """A script whose texts are sent as Gemini's replies."""
    return _spoken(script, gemini_reply)


def anthropic(script: Say) -> Script:
    """A script whose texts are sent as Anthropic's replies."""
    return _spoken(script, anthropic_reply)


def _spoken(script: Say, reply: Callable[[str], Mapping[str, Any]]) -> Script:
    def answer(body: dict[str, Any]) -> Answer:
        said = script(body)
        return as_answer(reply(said)) if isinstance(said, str) else said

    return answer


def gemini_reply(text: str, *, finish: str = "STOP", **more: Any) -> dict[str, Any]:
    """A reply of generateContent: a thought before the text, and 20 of the 50 tokens were thoughts."""
    parts = [{"text": "hm", "thought": True}, {"text": text}]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}
    counts = {
        "promptTokenCount": PROMPT_TOKENS,
        "candidatesTokenCount": REPLY_TOKENS,
        "thoughtsTokenCount": THOUGHT_TOKENS,
        "totalTokenCount": PROMPT_TOKENS + REPLY_TOKENS + THOUGHT_TOKENS,
    }
    return {"candidates": [candidate], "usageMetadata": counts, "modelVersion": GEMINI_VERSION, **more}


def gemini_failing(
    status: int, message: str, *, word: str = "INVALID_ARGUMENT", details: Any = (), **headers: str
) -> Answer:
    """An error as Google's servers send it."""
    error = {"code": status, "message": message, "status": word, "details": list(details)}
    return as_answer({"error": error}, status, **headers)


def anthropic_reply(text: str, *, stop: str = "end_turn", **more: Any) -> dict[str, Any]:
    """A message; 400 of its 1000 prompt tokens came from a cache."""
    usage = {"input_tokens": 600, "cache_read_input_tokens": 400, "cache_creation_input_tokens": 0}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": CLAUDE_VERSION,
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}],
        "stop_reason": stop,
        "usage": {**usage, "output_tokens": REPLY_TOKENS + THOUGHT_TOKENS},
        **more,
    }


def anthropic_failing(status: int, kind: str, message: str, **headers: str) -> Answer:
    """An error as Anthropic's servers send it."""
    return as_answer({"type": "error", "error": {"type": kind, "message": message}}, status, **headers)
