"""Texts from servers and clients, made fit for a row: one line, not endless, without a secret that was echoed."""

from __future__ import annotations

import base64
import os
import urllib.parse
from collections.abc import Sequence

from judgecal.models import ModelSpec

_LONGEST = 500
_SHORTEST_SECRET = 8  # characters; a shorter one stands in plain words, which would be torn apart
_STARS = "***"


def secrets_of(spec: ModelSpec) -> tuple[str, ...]:
    """What no text may hold: the model's key, as it is, as a URL holds it, and in base64, alone and in its header.

    Empty where there is no key. The padding of base64 is left out: a text may hold it without.
    """
    key = (os.environ.get(spec.key_env) or "").strip() if spec.key_env else ""
    if not key:
        return ()
    in_urls = (urllib.parse.quote(key, safe=""), urllib.parse.quote(key))
    in_base64 = (base64.b64encode(text.encode()).decode().rstrip("=") for text in (key, f"Bearer {key}"))
    return tuple(dict.fromkeys((key, *in_urls, *in_base64)))


def redacted(text: str, secrets: Sequence[str]) -> str:
    """A text with stars in the place of each secret of at least eight characters."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET and secret in text:
            text = text.replace(secret, _STARS)
    return text


def one_line(text: str, secrets: Sequence[str]) -> str:
    """A text as one line of at most 500 characters; secrets go first, so that none is left half."""
    return " ".join(redacted(text, secrets).split())[:_LONGEST]
