"""A judgement as a line of the journal, and back."""

from __future__ import annotations

import json
import sys
from types import NoneType
from typing import Any

from judgecal.records import Failure, Judgement

__all__ = ["line_of", "row_of"]

_encode = json.JSONEncoder(ensure_ascii=False).encode
_LABELS = (int, float, str, NoneType)  # and not bool


def line_of(row: Judgement) -> bytes:
    """One line, its newline included."""
    try:
        return (_encode(row.as_json()) + "\n").encode()
    except UnicodeEncodeError:
        # An unpaired surrogate has no UTF-8; as an escape it comes back as it was.
        return (json.dumps(row.as_json()) + "\n").encode("ascii")


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
