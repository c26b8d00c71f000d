"""The chances of tokens: whether a model's server is asked for them, and what it gave."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from judgecal.engine.calls import CallFailed, Reply, Token
from judgecal.engine.transport.provider_errors import at
from judgecal.errors import notice
from judgecal.models import ModelSpec

MOST_BYTES = 16_000_000
"""Of an answer with chances: 20 tokens a place take some 1.5 kB."""
_MOST, _FEW = 20, 5  # tokens a place: what OpenAI and Google give at most, and what stricter servers do
_PARAMETER = re.compile(r"log_?prob", re.IGNORECASE)


class TokenChances:
    """What one transport of a model knows: a server that refuses is asked once a run, and told of once."""

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec
        self._n_alternatives = _MOST * spec.weighs
        self._noticed = False

    async def reply_of(self, send: Callable[[int], Awaitable[Reply]]) -> Reply:
        """Return the Reply of a function `send`, which takes a number of chances; fewer where refused.

        Only a reply tells that it was the chances that were refused, and not a text that speaks of them.
        """
        if not self._spec.weighs:
            return await send(0)
        n_alternatives = self._n_alternatives
        while True:
            try:
                reply = await send(n_alternatives)
                break
            except CallFailed as failed:
                named = failed.kind in ("refused", "server") and _PARAMETER.search(str(failed))
                if not (n_alternatives and named):
                    raise
                n_alternatives = _FEW if n_alternatives > _FEW else 0
        self._n_alternatives = min(n_alternatives, self._n_alternatives)
        if reply.text and not reply.tokens and not self._noticed:
            self._noticed = True
            lacks = "its server gives no chances of tokens, so verdicts are the words that it says"
            notice(f"judgecal: model {self._spec.alias}: {lacks}")
        return replace(reply, tokens=reply.tokens or [])


def tokens_in(text: str, rows: Any, tops: Any = None) -> list[Token] | None:
    """Return the list of Tokens that make up a text, from a server's rows of log-probabilities, or None.

    Where they do not make it up, the one token is empty: then no verdict is one of them. `rows` are the
    tokens as the server names them, each with those that might have stood there, or these in `tops`; None
    where it gave none.
    """
    if not isinstance(rows, list) or not rows:
        return None
    whole, pieces = text.encode("utf-8", "surrogatepass"), [_bytes(row) for row in rows]
    start, tokens = b"".join(pieces).rfind(whole), list[Token]()
    place, at_byte = 0, -start
    for n, (piece, row) in enumerate(zip(pieces, rows, strict=True)):
        written = piece[max(0, -at_byte) :]  # a server may have taken a blank away
        if start >= 0 and written and at_byte < len(whole):
            top = at(tops, n, "candidates") or at(row, "top_logprobs") or at(row, "top")
            chances: dict[str, float] = {}
            for candidate in (row, *(top if isinstance(top, list | tuple) else ())):
                form = _bytes(candidate).decode("utf-8", "replace")
                chances[form] = max(_logprob(candidate), chances.get(form, -9999.0))
            tokens.append([place, written.decode("utf-8", "ignore"), chances])
            place += sum(byte & 0xC0 != 0x80 for byte in written)  # a token may end within a character
        at_byte += len(piece)
    return tokens or [[0, "", {}]]


def _bytes(row: Any) -> bytes:
    with contextlib.suppress(TypeError, ValueError):
        return bytes([*at(row, "bytes")])
    return str(at(row, "token")).encode("utf-8", "ignore")


def _logprob(row: Any) -> float:
    """At most 0; -9999 where the server names no number, as OpenAI does of a token beyond the first 20."""
    value = next((at(row, name) for name in ("logprob", "logProbability") if at(row, name) is not None), None)
    return max(-9999.0, min(0.0, value)) if isinstance(value, int | float) and value < 0.001 else -9999.0
