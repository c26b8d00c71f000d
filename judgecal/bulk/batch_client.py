"""A provider's batch API, asked patiently: passing errors are waited out, a lost answer looked for."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from judgecal.bulk.batch_log import Batch, BatchLog, mark_of, new_name
from judgecal.bulk.batches import BatchFormat, BatchState, BatchTransport, Sought, Spool
from judgecal.engine.calls import MOST_BYTES, CallFailed, Reply, ReplySchema, too_large
from judgecal.engine.reply_forms import Asking, ReplyForms
from judgecal.errors import AuthError, JudgecalError, notice
from judgecal.models import ModelSpec
from judgecal.records import ErrorKind, Failure

_SHOWN_EVERY_S = 1.0
_LONGEST_ASKED_WAIT_S = 600.0
_UNCERTAIN = (
    "transport",
    "timeout",
    "server",
)  # after such an error a batch may have been taken all the same
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


class BatchClient:
    """The batches of one model at its provider.

    Args:
        log: which batches are ours.
        show: called once a second while something is waited for.
    """

    def __init__(
        self, spec: ModelSpec, log: BatchLog, policy: BatchPolicy, *, show: Callable[[], None]
    ) -> None:
        self.transport = BatchTransport(spec)
        self.format = self.transport.format
        self.policy = policy
        self._spec, self._log, self._show = spec, log, show

    async def hand_in(self, batch: Batch, spool: Spool) -> None:
        """Hand a batch in and set its id; where only the answer was lost, it is found in the list.

        Raises:
            NotHandedIn, AuthError: it was not taken.
            JudgecalError: whether it was taken is not known.
        """
        tried = 0
        while batch.provider_id is None:
            tried += 1
            try:
                batch.provider_id = await self.format.submit(self.transport.http, batch.name, spool.file)
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
        sought = Sought(batch.name, len(batch.ids), batch.at)
        try:
            listed = await self._patiently(
                lambda: self.format.find(self.transport.http, sought), self.policy.attempts
            )
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
        left = (
            min(batch.at - time.time(), 0.0) + self.policy.settle_s
        )  # a clock that was put back is no reason to wait
        if left <= 0:
            return False
        await self.sleep(left)
        return await self.find(batch)

    async def state(self, batch: Batch) -> BatchState:
        """Where a batch stands.

        Raises:
            JudgecalError: the provider does not say, or does not know it.
        """
        there = _id_of(batch)
        return await self._known(batch, lambda: self.format.state(self.transport.http, there))

    async def fetch(self, batch: Batch, results: Results) -> int:
        """Write the lines of a batch into the file; how many there were. Those of other marks are not ours.

        Lines that stay damaged are left out in the end, so that one of them does not hold up all others; one
        that does not say whose it is counts as damaged, but at Gemini.

        Raises:
            JudgecalError: as `state`.
        """
        tries = itertools.count(1)
        lenient = self.policy.attempts
        return await self._known(batch, lambda: self._fetch(batch, results, lenient=next(tries) >= lenient))

    async def _fetch(self, batch: Batch, results: Results, *, lenient: bool) -> int:
        number, damaged, json_like = 0, 0, False
        places: defaultdict[str, list[Place]] = defaultdict(list)
        nameless: dict[int, Place] = {}
        async for line in _filled(self.format.results(self.transport.http, _id_of(batch))):
            number += 1
            json_like |= line.lstrip()[:1] == b"{"
            try:
                row = self.format.row(_object(line))
                if not row.custom_id and not self.format.in_order:
                    raise CallFailed(
                        "server", "a line of the results names no request", retry=True, billed=True
                    )
            except CallFailed:
                if not lenient:
                    raise
                damaged += 1
                continue
            request, _, mark = row.custom_id.rpartition("-")
            if not row.custom_id:
                nameless[number - 1] = (results.spool.add(line), len(line))
            elif mark == batch.mark:
                places[request].append((results.spool.add(line), len(line)))
        if (
            damaged == number and not json_like and damaged
        ):  # a page in the place of the results, and not one of ours
            raise CallFailed("server", "no line of the results is a JSON object", retry=False, billed=True)
        if nameless and number == len(batch.ids):  # of fewer nobody knows which are missing
            for at, place in nameless.items():
                places[batch.ids[at]].append(place)
        elif nameless:
            damaged += len(nameless)
        results.places |= places
        if damaged:
            notice(
                f"judgecal: batch {batch.provider_id}: lines of its results that cannot be read: "
                f"{damaged:,}; their requests go into another batch"
            )
        return number

    def replies(self, request: str, batch: Batch, results: Results) -> list[Reply]:
        """The reply to a request of a batch that has ended; several where its id stands there several times.

        Raises:
            CallFailed: there is none.
            AuthError: as a live call.
        """
        state, places = results.states[batch.name], results.places.get(request)
        if state.refused is not None:
            return [self.transport.reply(state.refused)]
        if places is None:
            kind: ErrorKind = "timeout" if state.expired else "server"
            raise CallFailed(
                kind, "the batch ended without an answer to this request", retry=True, billed=False
            )
        if max(size for _, size in places) > 2 * MOST_BYTES:
            raise too_large()
        lines = dict.fromkeys(results.spool.line(*place) for place in places)
        return [self.transport.reply(self.format.row(_object(line))) for line in lines]

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

    def never_ends(self, batch: Batch) -> JudgecalError:
        """The error of a batch that was waited for in vain."""
        return JudgecalError(
            f"batch {batch.provider_id} of {len(batch.ids):,} requests has not ended at "
            f"{self._spec.provider} after {self.policy.longest_s / 3600:.0f} hours: look at it there "
            f"({self.format.where}); once it is cancelled, the same command takes what it holds and hands in "
            "the rest again"
        )

    async def _known(self, batch: Batch, ask: Callable[[], Awaitable[_T]]) -> _T:
        """What the provider says of a batch that it must know."""
        try:
            return await self._patiently(ask, self.policy.questions)
        except AuthError as error:
            raise JudgecalError(
                f"{error}: this was asked about batch {_id_of(batch)}, noted in {self._log.path}: are the "
                "key and the address those that it was handed in with, and are its results still kept? To "
                "pay its requests again, delete that file"
            ) from error

    async def _patiently(self, ask: Callable[[], Awaitable[_T]], most: int) -> _T:
        """What the provider says, asked so many times at most, where that can help."""
        tried = 0
        while True:
            tried += 1
            try:
                return await ask()
            except CallFailed as failed:
                what = "does not say how a batch stands"
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
        self._before, self._between, self._after = form.frame(self.name)
        self.spool.add(self._before)

    def is_full(self, body: bytes) -> bool:
        """Whether one more request would be too much."""
        margin = 1000  # what stands around a body, and at the end
        too_many = len(self.ids) >= self._form.most_requests
        return too_many or self.spool.size + len(body) + margin > self._form.most_bytes

    def add(self, request: str, body: bytes, usd: float) -> None:
        """One more request, by its id."""
        between = self._between if self.ids else b""
        self.spool.add(between, self._form.request(f"{request}-{mark_of(self.name)}", body))
        self.ids[request] = None
        self.usd_at_most += usd

    def finish(self) -> None:
        """No more requests."""
        self.spool.add(self._after)


@dataclass(slots=True)
class Results:
    """What ended batches came to, in one file.

    Attributes:
        places: id of a request -> where each of its lines is, and how long.
    """

    spool: Spool
    states: dict[str, BatchState] = field(default_factory=dict)  # name of a batch -> how it ended
    places: dict[str, list[Place]] = field(default_factory=dict)


def _id_of(batch: Batch) -> str:
    if batch.provider_id is None:
        raise RuntimeError(f"{batch.name} has no id yet")
    return batch.provider_id


async def _filled(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for line in lines:
        if line.strip():
            yield line


def _object(line: bytes) -> dict[str, object]:
    """Raises CallFailed: the line is no JSON object."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CallFailed("server", "a line of the results is not JSON", retry=True, billed=True) from error
    if not isinstance(row, dict):
        raise CallFailed("server", "a line of the results is not a JSON object", retry=True, billed=True)
    return row


class LateForms:
    """The forms of a model's requests in batches, where an answer comes hours after many were sent.

    A request whose schema may have been refused is asked again in the next form, unless a reply to that
    schema has come meanwhile: then it was the text.
    """

    def __init__(self, forms: ReplyForms) -> None:
        self._forms = forms
        self._again: dict[str, tuple[Asking, Failure]] = {}  # by the id of the request

    def shape(self, request: str, schema: ReplySchema | None) -> ReplySchema | None:
        """What to send of a schema with a request."""
        if schema is None:
            return None
        return self._again[request][0].shape if request in self._again else self._forms.shape_known(schema)

    def heard(self, request: str, schema: ReplySchema | None, outcome: Reply | Failure) -> None:
        """Take in what came of a request."""
        if schema is None:
            return
        asking = (
            self._again.pop(request)[0]
            if request in self._again
            else Asking(self._forms, schema, self.shape(request, schema))
        )
        if isinstance(outcome, Reply):
            asking.again(outcome, None)
        elif asking.again(None, outcome):
            self._again[request] = asking, outcome

    def changed(self, request: str) -> bool:
        """Whether a request may go out again, in another form than it had."""
        return request in self._again

    def refusal(self, request: str, schema: ReplySchema | None) -> Failure | None:
        """Why a request need not be asked again in another form; None where it may be sent."""
        if schema is None or request not in self._again or self._forms.may_refuse(schema):
            return None
        return self._again[request][1]
