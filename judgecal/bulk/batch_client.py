"""A provider's batch API, asked patiently: passing errors are waited out, a lost answer looked for."""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from judgecal.bulk.batch_log import Batch, BatchLog, mark_of, new_name
from judgecal.bulk.provider_batches import FORMATS, BatchFormat, BatchHttp, BatchRow, BatchState
from judgecal.engine.calls import MOST_BYTES, CallFailed, Reply, admitted, too_large, unreadable
from judgecal.engine.transport.http import HttpTransport
from judgecal.engine.transport.provider_errors import error_of
from judgecal.engine.transport.redaction import redacted, redacted_reply, secrets_of, sent_secrets
from judgecal.errors import AuthError, JudgecalError, notice
from judgecal.models import ModelSpec

_SHOWN_EVERY_S = 1.0
_LONGEST_ASKED_WAIT_S = 600.0
_UNCERTAIN = ("transport", "timeout", "server")  # then a batch may have been taken all the same
_AROUND_A_REQUEST = 1000  # bytes around a body, and at the end
_T = TypeVar("_T")
Place = tuple[int, int]
"""Where a line stands in a file, and how long it is."""


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """How patient a run is.

    Attributes:
        questions: tries of asking how a batch stands, and of fetching what it holds: an hour, for it waits
            for many.
        first_wait_s, longest_wait_s: between two questions how a batch stands, and before such a try.
    """

    tries: int = 3  # batches that one request goes into at most
    attempts: int = 8  # tries of handing a batch in
    questions: int = 70
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    settle_s: float = 30.0  # how long after it was sent a batch that is in no list may still come up
    longest_s: float = 72 * 3600.0  # how long one run waits for a batch; providers end each within two days

    def wait(self, tried: int) -> float:
        """Seconds after so many tries or questions."""
        return min(self.longest_wait_s, self.first_wait_s * 1.5 ** min(tried, 30))


class NotHandedIn(JudgecalError):
    """The provider took no batch, for sure."""


class Spool:
    """Requests or results in a file that no name leads to, for they may be more than memory should hold."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by who made the spool
        self.size = 0

    def add(self, *parts: bytes) -> Place:
        """Append; where it stands."""
        place = self.size
        for part in parts:
            self.size += self.file.write(part)
        return place, self.size - place

    def line(self, place: Place) -> bytes:
        """What stands at a place."""
        self.file.seek(place[0])
        return self.file.read(place[1])


class Part:
    """A batch that is being filled, in the format of a provider.

    Attributes:
        name: ours.
        spool: what is handed in.
        ids: of the requests, a set in order.
        usd_at_most: what was reserved for them.
    """

    def __init__(self, form: BatchFormat) -> None:
        self.name, self.spool = new_name(), Spool()
        self.ids: dict[str, None] = {}
        self.usd_at_most = 0.0
        self._form = form
        self.spool.add(form.frame[0].replace(b"%s", self.name.encode()))

    def is_full(self, body: bytes) -> bool:
        """Whether one more request would be too much."""
        size = self.spool.size + len(body) + _AROUND_A_REQUEST
        return len(self.ids) >= self._form.most_requests or size > self._form.most_bytes

    def add(self, request: str, body: bytes, usd: float) -> None:
        """One more request, by its id."""
        between = self._form.frame[1] if self.ids else b""
        self.spool.add(between, self._form.request(f"{request}-{mark_of(self.name)}", body))
        self.ids[request] = None
        self.usd_at_most += usd

    def finish(self) -> None:
        """No more requests."""
        self.spool.add(self._form.frame[2])


@dataclass(slots=True)
class Results:
    """What ended batches came to, in one file.

    Attributes:
        states: name of a batch -> how it ended.
        places: id of a request -> where its line is.
    """

    states: dict[str, BatchState]
    spool: Spool = field(default_factory=Spool)
    places: dict[str, Place] = field(default_factory=dict)


class BatchClient:
    """The batches of one model at its provider.

    Args:
        log: which batches are ours.
        show: called once a second while something is waited for.

    Attributes:
        encoded: the body of one request, from its messages and schema.
    """

    def __init__(
        self, spec: ModelSpec, log: BatchLog, policy: BatchPolicy, *, show: Callable[[], None]
    ) -> None:
        self._live = HttpTransport(spec)
        self.encoded = self._live.encoded
        self.format = FORMATS[spec.known_provider.wire or ""](self._live.address)
        self.policy = policy
        self._spec, self._log, self._show = spec, log, show
        self._secrets, self._sent = secrets_of(spec), sent_secrets(spec)
        self._opened: BatchHttp | None = None

    @property
    def _http(self) -> BatchHttp:
        """The session, opened in the loop that first asks for it."""
        if self._opened is None:
            self._opened = BatchHttp(self._spec, self._live.headers)
        return self._opened

    async def close(self) -> None:
        """Close the connections."""
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def hand_in(self, batch: Batch, spool: Spool) -> None:
        """Hand a batch in and set its id; where only the answer was lost, it is found in the list.

        Raises:
            NotHandedIn, AuthError: it was not taken.
            JudgecalError: whether it was taken is not known.
        """
        for tried in itertools.count(1):
            try:
                batch.provider_id = await self.format.submit(self._http, batch.name, spool.file)
                return
            except CallFailed as failed:
                if failed.kind in _UNCERTAIN and failed.billed is not False:
                    await self.sleep(self.policy.settle_s)
                    if await self.find(batch):
                        return
                if not failed.retry:
                    raise NotHandedIn(str(self.gave_up("takes no batch", failed))) from failed
                await self._wait_after(failed, tried, self.policy.attempts, "takes no batch")

    async def find(self, batch: Batch) -> bool:
        """Look for a batch in the provider's list, and set its id."""
        try:
            listed = await self._patiently(lambda: self.format.find(self._http, batch), self.policy.attempts)
        except AuthError as error:
            raise JudgecalError(
                f"{error}: this was asked to find {batch.name} of {len(batch.ids):,} requests, which may "
                "have been handed in: let the key list batches; to pay these requests again if it was, "
                f"delete {self._log.path}"
            ) from error
        known = batch.foreign | self._log.provider_ids
        batch.provider_id = next((there for there in listed if there not in known), None)
        batch.found = batch.provider_id is not None
        return batch.found

    async def look_for(self, batch: Batch) -> bool:
        """`find`, until the batch is old enough to be in the list if it was ever made."""
        if await self.find(batch):
            return True
        # a clock that was put back is no reason to wait
        left = min(batch.at - time.time(), 0.0) + self.policy.settle_s
        if left <= 0:
            return False
        await self.sleep(left)
        return await self.find(batch)

    async def state(self, batch: Batch) -> BatchState:
        """Where a batch stands.

        Raises:
            JudgecalError: the provider does not say, or does not know it.
        """
        return await self._known(batch, lambda there: self.format.state(self._http, there))

    async def fetch(self, batch: Batch, results: Results) -> int:
        """Write the lines of a batch into the file; how many there were. Other marks are not ours;
        of two lines for one request the first counts, and a damaged one is left out.

        Raises:
            JudgecalError: as `state`, or no line is a JSON object.
        """

        async def once(there: str) -> int:
            number, damaged = 0, 0
            places: dict[str, Place] = {}
            async for line in self.format.results(self._http, there):
                if not line.strip():
                    continue
                number += 1
                try:
                    request, _, mark = self._row(line).custom_id.rpartition("-")
                except (ValueError, RecursionError):
                    damaged += 1
                    continue
                if mark == batch.mark and request not in places:
                    places[request] = results.spool.add(line)
            if damaged == number > 0:  # a page in the place of the results
                raise CallFailed("server", "no line of the results is a JSON object", retry=False)
            results.places |= places
            if damaged:
                notice(
                    f"judgecal: batch {there}: lines of its results that cannot be read: {damaged:,}; their "
                    "requests go into another batch"
                )
            return number

        return await self._known(batch, once)

    def reply_to(self, request: str, batch: Batch, results: Results) -> Reply:
        """The reply to a request of a batch that has ended.

        Raises:
            CallFailed: there is none.
            AuthError: as a live call.
        """
        state, place = results.states[batch.name], results.places.get(request)
        if state.refused is not None:
            return self.reply(state.refused)
        if place is None:
            message = "the batch ended without an answer to this request"
            raise CallFailed("timeout" if state.expired else "server", message, retry=True, billed=False)
        if place[1] > 2 * MOST_BYTES:
            raise too_large()
        return self.reply(self._row(results.spool.line(place)))

    def reply(self, row: BatchRow) -> Reply:
        """The reply to one request, as a live call's.

        Raises:
            CallFailed: there is none.
            AuthError: the provider refused the key, the account or the model.
        """
        if row.unanswered == "expired":
            message = "the batch's time was over before this request's turn"
            raise CallFailed("timeout", message, retry=True, billed=False)
        if row.unanswered:
            raise CallFailed("server", "the batch was cancelled before this request's turn", retry=True)
        if not 200 <= row.status < 300:
            body = json.dumps(row.data).encode()
            raise error_of(self._spec, status=row.status, headers={}, body=body, secrets=self._secrets)
        try:
            if not isinstance(row.data, dict):
                raise CallFailed("server", "the batch holds no reply to this request", retry=True)
            return redacted_reply(admitted(self._live.reply_in(row.data)), self._secrets, sent=self._sent)
        except (CallFailed, AuthError, MemoryError):
            raise
        except Exception as error:
            message = redacted(str(unreadable(error)), self._secrets)
            raise CallFailed("parse", message, retry=False, billed=True) from error

    def gave_up(self, what: str, failed: CallFailed) -> JudgecalError:
        """The error that ends the run."""
        return JudgecalError(
            f"model {self._spec.alias}: {self._spec.provider} {what}: {failed}; what was judged so far is "
            "kept, the same command resumes"
        )

    async def sleep(self, seconds: float) -> None:
        """Wait, and show that somebody is there."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(_SHOWN_EVERY_S, left))
            self._show()

    def _row(self, line: bytes) -> BatchRow:
        """Raises ValueError: the line is no JSON object."""
        row: Any = json.loads(line)
        if not isinstance(row, dict):
            raise ValueError("not a JSON object")
        return self.format.row(row)

    async def _known(self, batch: Batch, ask: Callable[[str], Awaitable[_T]]) -> _T:
        """What the provider says of a batch that it must know."""
        there = batch.provider_id
        if there is None:
            raise RuntimeError(f"{batch.name} has no id yet")
        try:
            return await self._patiently(lambda: ask(there), self.policy.questions)
        except AuthError as error:
            raise JudgecalError(
                f"{error}: this was asked about batch {there}, noted in {self._log.path}: are the key and "
                "the address those that it was handed in with, and are its results still kept? To pay its "
                "requests again, delete that file"
            ) from error

    async def _patiently(self, ask: Callable[[], Awaitable[_T]], most: int) -> _T:
        """What the provider says, asked so many times at most, where that can help."""
        what = "does not say how a batch stands"
        tried = 0
        while True:
            tried += 1
            try:
                return await ask()
            except CallFailed as failed:
                if failed.retry and tried == self.policy.attempts < most:
                    notice(
                        f"judgecal: model {self._spec.alias}: {self._spec.provider} {what} ({failed}); "
                        "waiting on"
                    )
                await self._wait_after(failed, tried, most, what)

    async def _wait_after(self, failed: CallFailed, tried: int, most: int, what: str) -> None:
        if not failed.retry or tried >= most:
            raise self.gave_up(what, failed) from failed
        await self.sleep(max(self.policy.wait(tried), min(failed.retry_after or 0.0, _LONGEST_ASKED_WAIT_S)))
