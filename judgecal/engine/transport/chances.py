"""The chances of tokens: whether a model's server is asked for them, and what it gave."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from judgecal.engine.cache import cache_folder
from judgecal.engine.calls import CallFailed, Reply, Token
from judgecal.engine.reply_forms import gives_chances
from judgecal.engine.transport.provider_errors import at
from judgecal.errors import notice
from judgecal.models import ModelSpec

MOST_TOKENS = 20
"""How many tokens a place is asked for: as many as OpenAI and Google give."""
MOST_BYTES = 16_000_000
"""Of an answer with chances: 20 tokens a place take some 1.5 kB."""
_PARAMETER = re.compile(r"log_?prob", re.IGNORECASE)


class TokenChances:
    """What one transport of a model knows: a server that refuses is asked once a week, and told of once."""

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec
        self._said = False

    @cached_property
    def asked(self) -> bool:
        """Whether calls ask for them."""
        return self._spec.weighs and gives_chances(self._spec, cache_folder())

    async def told(self, send: Callable[[], Awaitable[Reply]]) -> Reply:
        """A reply with its tokens, or none where they count; asked for again where they are refused."""
        if not self._spec.weighs:
            return await send()
        try:
            reply = await send()
        except CallFailed as failed:
            if failed.kind not in ("refused", "server") or not _PARAMETER.search(str(failed)):
                raise
            self.asked = gives_chances(self._spec, cache_folder(), refused=True)
            reply = await send()
        if not reply.tokens and not self._said:
            self._said = True
            who = f"judgecal: model {self._spec.alias}: its server"
            notice(f"{who} gives no chances of tokens, so verdicts are the words that it says")
        return replace(reply, tokens=reply.tokens or [])


def tokens_in(text: str, rows: Any, tops: Iterable[Any]) -> list[Token]:
    """The tokens that make up a text, which may stand behind thoughts and before an end mark.

    Where they do not make it up, the one token is empty: then no verdict is one of them. `rows` are the
    tokens as the server names them, `tops` of each those that might have stood there.
    """
    rows = rows if isinstance(rows, list) else []
    whole, pieces = text.encode("utf-8", "surrogatepass"), [_bytes(row) for row in rows]
    start, tokens = b"".join(pieces).rfind(whole), list[Token]()
    place, at_byte = 0, -start
    for piece, row, top in zip(pieces, rows, tops, strict=False):
        said = piece[max(0, -at_byte) :].decode("utf-8", "ignore")  # a server may have taken a blank away
        if start >= 0 and said and at_byte < len(whole):
            named = [one for one in (row, *(top or ())) if isinstance(one, Mapping)]
            tokens.append([place, said, {str(one.get("token")): _logprob(one) for one in named}])
            place += len(said)
        at_byte += len(piece)
    return tokens or [[0, "", {}]] * bool(rows)


def _bytes(row: Any) -> bytes:
    found, token = at(row, "bytes"), str(at(row, "token"))
    return bytes(found) if isinstance(found, list | tuple) else token.encode("utf-8", "ignore")


def _logprob(row: Mapping[str, Any]) -> float:
    """At most 0; -9999 where the server names no number, as OpenAI does of a token beyond the first 20."""
    value = row.get("logprob", row.get("logProbability"))
    return max(-9999.0, min(0.0, value)) if isinstance(value, int | float) and value < 0.001 else -9999.0
