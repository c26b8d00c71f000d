"""OpenAI's batches: a file of requests, a batch over it, a file of replies and one of errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import IO, Any

import aiohttp

from judgecal.bulk.batches import BatchHttp, BatchRow, BatchState, Sought, id_in, upload_of
from judgecal.engine.calls import count
from judgecal.engine.transport.provider_errors import at

_PATH = "/chat/completions"
_ENDED = ("completed", "failed", "expired", "cancelled")
_NAME = "judgecal"  # the key of the metadata that holds our name of a batch
_TOO_MUCH_WAITS = "token_limit_exceeded"  # of all of a user's batches together: a later one is taken
_PER_PAGE = 100
_CLOCKS_DIFFER_S = 3600.0  # at most, the provider's and ours


class Batches:
    """Batches of chat completions, at the address of the live ones."""

    most_requests, most_bytes = 50_000, 200_000_000
    in_order = False
    names = True
    where = "the Batches page of the OpenAI platform"

    def __init__(self, address: str) -> None:
        self._base = address.removesuffix(_PATH)

    def frame(self, name: str) -> tuple[bytes, bytes, bytes]:
        """A request is a line."""
        return b"", b"\n", b"\n"

    def request(self, custom_id: str, body: bytes) -> bytes:
        """As a call of `/v1/chat/completions`, whatever the address: the path names the kind."""
        return b'{"custom_id":"%s","method":"POST","url":"/v1%s","body":%s}' % (
            custom_id.encode(),
            _PATH.encode(),
            body,
        )

    async def submit(self, http: BatchHttp, name: str, spool: IO[bytes]) -> str:
        """Upload the file, then make the batch; a file without a batch costs nothing."""
        form = aiohttp.FormData()
        form.add_field("purpose", "batch")
        form.add_field("file", upload_of(spool), filename=f"{name}.jsonl", content_type="application/jsonl")
        uploaded = id_in(await http.json(f"{self._base}/files", data=form), "id")
        batch = {"input_file_id": uploaded, "endpoint": f"/v1{_PATH}", "completion_window": "24h"}
        made = await http.json(f"{self._base}/batches", payload={**batch, "metadata": {_NAME: name}})
        return id_in(made, "id")

    async def find(self, http: BatchHttp, sought: Sought) -> list[str]:
        """By the name in the metadata."""
        after = ""
        while True:
            page = await http.json(f"{self._base}/batches?limit={_PER_PAGE}{after}")
            listed = [batch for batch in page.get("data") or [] if isinstance(batch, dict)]
            if ids := [id_in(batch, "id") for batch in listed if at(batch, "metadata", _NAME) == sought.name]:
                return ids
            oldest = min((count(batch.get("created_at")) or 0 for batch in listed), default=0)
            if not page.get("has_more") or not listed or oldest < sought.at - _CLOCKS_DIFFER_S:
                return []
            before, after = after, f"&after={id_in(listed[-1], 'id')}"
            if after == before:  # a server without pages
                return []

    async def state(self, http: BatchHttp, batch: str) -> BatchState:
        """Its counts; a batch whose file is refused fails as a whole."""
        answer = await http.json(f"{self._base}/batches/{batch}")
        status, counts = answer.get("status"), answer.get("request_counts")
        done = (count(at(counts, "completed")) or 0) + (count(at(counts, "failed")) or 0)
        refused = None
        if status == "failed":
            error = at(answer, "errors", "data", 0) or {"message": "the batch failed"}
            refused = BatchRow("", {"error": error}, 429 if at(error, "code") == _TOO_MUCH_WAITS else 400)
        return BatchState(status in _ENDED, done, status == "expired", refused)

    async def results(self, http: BatchHttp, batch: str) -> AsyncIterator[bytes]:
        """The lines of both files."""
        answer = await http.json(f"{self._base}/batches/{batch}")
        for name in ("output_file_id", "error_file_id"):
            if answer.get(name):
                async for line in http.lines(f"{self._base}/files/{id_in(answer, name)}/content"):
                    yield line

    def row(self, line: Mapping[str, Any]) -> BatchRow:
        """A reply with its status, or an error of the batch."""
        custom_id = str(line.get("custom_id") or "")
        response, error = line.get("response"), line.get("error")
        if isinstance(response, dict):
            return BatchRow(custom_id, response.get("body"), count(response.get("status_code")) or 500)
        code = at(error, "code")
        if code in ("batch_expired", "batch_cancelled"):
            return BatchRow(custom_id, unanswered="expired" if code == "batch_expired" else "cancelled")
        return BatchRow(custom_id, {"error": error or {"message": "neither a reply nor an error"}}, 500)
