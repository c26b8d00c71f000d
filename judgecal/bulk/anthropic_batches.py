"""Anthropic's message batches: one request that holds them all, and a stream of results."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator, Mapping
from typing import IO, Any

from judgecal.bulk.batches import BatchHttp, BatchRow, BatchState, Sought, id_in, upload_of
from judgecal.engine.calls import count
from judgecal.engine.transport.provider_errors import at

_PER_PAGE = 1000
_CLOCKS_DIFFER_S = 3600.0  # at most, the provider's and ours
_COUNTS = ("succeeded", "errored", "canceled", "expired")


class Batches:
    """Batches of messages, at the address of the live ones."""

    most_requests, most_bytes = 100_000, 256_000_000
    in_order = False
    names = False
    where = "the Batches page of the Claude Console"

    def __init__(self, address: str) -> None:
        self._url = f"{address}/batches"

    def frame(self, name: str) -> tuple[bytes, bytes, bytes]:
        """One JSON object."""
        return b'{"requests":[', b",", b"]}"

    def request(self, custom_id: str, body: bytes) -> bytes:
        """The body of a live call is its parameters."""
        return b'{"custom_id":"%s","params":%s}' % (custom_id.encode(), body)

    async def submit(self, http: BatchHttp, name: str, spool: IO[bytes]) -> str:
        """Hand it in; there is no place for a name."""
        return id_in(await http.json(self._url, data=upload_of(spool)), "id")

    async def find(self, http: BatchHttp, sought: Sought) -> list[str]:
        """Those of as many requests, made since, oldest first; only their results say whose they are."""
        after, since, ids = "", sought.at - _CLOCKS_DIFFER_S, []
        while True:
            page = await http.json(f"{self._url}?limit={_PER_PAGE}{after}")
            listed = [batch for batch in page.get("data") or [] if isinstance(batch, dict)]
            young = [batch for batch in listed if _made_at(batch) >= since]
            ids += [id_in(batch, "id") for batch in young if _n_requests(batch) == sought.n]
            if not page.get("has_more") or len(young) < len(listed) or not listed:
                return ids[::-1]
            before, after = after, f"&after_id={id_in(listed[-1], 'id')}"
            if after == before:  # a server without pages
                return ids[::-1]

    async def state(self, http: BatchHttp, batch: str) -> BatchState:
        """Its counts, which stay at 0 until it has ended."""
        answer = await http.json(f"{self._url}/{batch}")
        counts = answer.get("request_counts")
        done = sum(count(at(counts, name)) or 0 for name in _COUNTS)
        return BatchState(answer.get("processing_status") == "ended", done)

    async def results(self, http: BatchHttp, batch: str) -> AsyncIterator[bytes]:
        """A line a request; not from the address that the answer names, for the key would go there."""
        async for line in http.lines(f"{self._url}/{batch}/results"):
            yield line

    def row(self, line: Mapping[str, Any]) -> BatchRow:
        """A message, an error as a live call gives it, or neither."""
        custom_id, result = str(line.get("custom_id") or ""), line.get("result")
        kind = at(result, "type")
        if kind == "succeeded":
            return BatchRow(custom_id, at(result, "message"))
        if kind in ("expired", "canceled"):
            return BatchRow(custom_id, unanswered="expired" if kind == "expired" else "cancelled")
        error = at(result, "error")
        return BatchRow(
            custom_id, error if at(error, "error") else {"error": error or {"message": "no result"}}
        )


def _n_requests(batch: Mapping[str, Any]) -> int:
    counts = batch.get("request_counts")
    return sum(count(at(counts, name)) or 0 for name in (*_COUNTS, "processing"))


def _made_at(batch: Mapping[str, Any]) -> float:
    """Seconds since 1970; a batch that does not say when counts as young."""
    try:
        return datetime.datetime.fromisoformat(str(batch.get("created_at"))).timestamp()
    except ValueError:
        return float("inf")
