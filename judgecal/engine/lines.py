"""A judgement as a line of the journal, and back; `dataclasses` would take ten times as long."""

from __future__ import annotations

import json
import sys
from types import NoneType
from typing import Any

from judgecal.records import Failure, Judgement

__all__ = ["line_of", "plain_row", "row_of"]

_encode = json.JSONEncoder(ensure_ascii=False).encode
_LABELS = (int, float, str, NoneType)  # and not bool


def plain_row(row: Judgement) -> dict[str, Any]:
    """What `Judgement.as_json` gives: every field, in the order of the class."""
    error = row.error
    return {
        "item_id": row.item_id,
        "item_sha": row.item_sha,
        "judge": row.judge,
        "judge_fingerprint": row.judge_fingerprint,
        "repeat": row.repeat,
        "verdict": row.verdict,
        "reasoning": row.reasoning,
        "raw_reply": row.raw_reply,
        "error": None if error is None else {"kind": error.kind, "message": error.message},
        "attempts": row.attempts,
        "latency_s": row.latency_s,
        "prompt_tokens": row.prompt_tokens,
        "completion_tokens": row.completion_tokens,
        "cost_usd": row.cost_usd,
        "model_id": row.model_id,
        "cached": row.cached,
        "at": row.at,
        "unit": row.unit,
    }


def line_of(row: Judgement) -> bytes:
    """One line, its newline included."""
    try:
        return (_encode(plain_row(row)) + "\n").encode()
    except UnicodeEncodeError:
        # An unpaired surrogate has no UTF-8; as an escape it comes back as it was.
        return (json.dumps(plain_row(row)) + "\n").encode("ascii")


def row_of(line: bytes) -> Judgement:
    """Read a line; texts that many rows share are held once.

    Raises:
        ValueError, TypeError, KeyError: the line is no judgement.
    """
    values = json.loads(line.decode())  # from bytes it would first guess the encoding
    if not isinstance(values, dict):
        raise TypeError("a judgement is a JSON object")
    error = values.get("error")
    if error is not None:
        values["error"] = Failure(error["kind"], error["message"])
    _share(values)
    row = Judgement(**values)
    if type(row.repeat) is not int or type(row.verdict) not in _LABELS:
        raise TypeError("repeat must be a whole number, verdict a number, a word or null")
    return row


def _share(values: dict[str, Any]) -> None:
    for name in ("item_id", "item_sha", "judge", "judge_fingerprint"):
        if type(values[name]) is not str:
            raise TypeError("item_id, item_sha, judge and judge_fingerprint must be texts")
        values[name] = sys.intern(values[name])
    for name in ("model_id", "at", "unit"):
        if type(values.get(name)) is str:
            values[name] = sys.intern(values[name])
