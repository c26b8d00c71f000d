"""Gemini's batches, in the form that holds the requests themselves: one call makes one, one call reads it.

The form over an uploaded file takes 2 GB in the place of 20 MB; it needs three calls more and leaves files
behind.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import IO, Any

from judgecal.bulk.batches import BatchHttp, BatchRow, BatchState, Sought, id_in, upload_of
from judgecal.engine.transport.provider_errors import at

_PER_PAGE = 100
_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")
# Google's codes of errors, as the HTTP statuses that live calls fail with.
_STATUS_OF_CODE = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 13: 500, 14: 503, 16: 401}
_CANCELLED = 1


class Batches:
    """Batches of generateContent, at the address of the live calls."""

    most_requests, most_bytes = 50_000, 20_000_000
    in_order = True
    names = True
    where = "Google AI Studio, or batches.list and batches.cancel of the Gemini API"

    def __init__(self, address: str) -> None:
        self._model = address.removesuffix(":generateContent")
        self._root = self._model.rpartition("/models/")[0]

    def frame(self, name: str) -> tuple[bytes, bytes, bytes]:
        """One JSON object."""
        before = b'{"batch":{"display_name":"%s","input_config":{"requests":{"requests":[' % name.encode()
        return before, b",", b"]}}}}"

    def request(self, custom_id: str, body: bytes) -> bytes:
        """The body of a live call, with our id as its metadata."""
        return b'{"request":%s,"metadata":{"key":"%s"}}' % (body, custom_id.encode())

    async def submit(self, http: BatchHttp, name: str, spool: IO[bytes]) -> str:
        """Hand it in."""
        made = await http.json(f"{self._model}:batchGenerateContent", data=upload_of(spool))
        return id_in(made, "name")

    async def find(self, http: BatchHttp, sought: Sought) -> list[str]:
        """By the name that is shown."""
        token = ""
        while True:
            page = await http.json(f"{self._root}/batches?pageSize={_PER_PAGE}{token}")
            listed = [operation for operation in page.get("operations") or [] if isinstance(operation, dict)]
            if ids := [
                id_in(operation, "name")
                for operation in listed
                if at(operation, "metadata", "displayName") == sought.name
            ]:
                return ids
            following = page.get("nextPageToken")
            if not isinstance(following, str) or not following or token == f"&pageToken={following}":
                return []
            token = f"&pageToken={following}"

    async def state(self, http: BatchHttp, batch: str) -> BatchState:
        """Its counts; one that failed or expired has no results."""
        answer = await http.json(f"{self._root}/{batch}")
        word = str(at(answer, "metadata", "state") or answer.get("state") or "").partition("_STATE_")[2]
        ended = bool(answer.get("done")) or word in _ENDED
        stats = at(answer, "metadata", "batchStats")
        done = sum(_whole(at(stats, name)) for name in ("successfulRequestCount", "failedRequestCount"))
        refused = None
        if ended and answer.get("error") and at(answer, "error", "code") != _CANCELLED and word != "EXPIRED":
            refused = self.row(answer)
        return BatchState(ended, done, word == "EXPIRED", refused)

    async def results(self, http: BatchHttp, batch: str) -> AsyncIterator[bytes]:
        """All of them stand in one answer, in one of two places."""
        answer = await http.json(f"{self._root}/{batch}")
        places = (at(answer, "response"), at(answer, "metadata", "output"))
        for inner in (at(place, "inlinedResponses") for place in places):
            rows = at(inner, "inlinedResponses") if isinstance(inner, dict) else inner
            if isinstance(rows, list):
                for row in rows:
                    yield json.dumps(row).encode()
                return

    def row(self, line: Mapping[str, Any]) -> BatchRow:
        """A reply, or an error with one of Google's codes."""
        custom_id = str(at(line, "metadata", "key") or "")
        if not (error := line.get("error")):
            return BatchRow(custom_id, line.get("response"))
        code = at(error, "code")
        if code == _CANCELLED:
            return BatchRow(custom_id, unanswered="cancelled")
        status = code if isinstance(code, int) and 400 <= code < 600 else _STATUS_OF_CODE.get(code, 500)
        return BatchRow(custom_id, {"error": error}, status)


def _whole(value: Any) -> int:
    """A count, which Google sends as a text."""
    return int(value) if str(value).isdecimal() else 0
