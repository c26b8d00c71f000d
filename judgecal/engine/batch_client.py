"""A provider's batch API, asked patiently: errors that pass are waited out, and a lost answer is looked for."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from judgecal.engine.batch_log import Batch, BatchLog
from judgecal.engine.calls import CallFailed, Reply
from judgecal.engine.replies import MOST_BYTES, too_large
from judgecal.engine.transport.batches import BatchState, BatchTransport, Sought, Spool
from judgecal.errors import AuthError, JudgecalError
from judgecal.models import ModelSpec
from judgecal.records import ErrorKind

_SHOWN_EVERY_S = 1.0
_LONGEST_ASKED_WAIT_S = 600.0
_UNCERTAIN = ("transport", "timeout", "server")  # after such an error a batch may have been taken all the same
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """How patient a run is.

    Attributes:
        tries: batches that one request goes into at most.
        attempts: tries of one message to the provider, such as handing a batch in or asking how it stands.
        first_wait_s, longest_wait_s: between two questions how a batch stands, and before such a try.
        settle_s: how long after it was sent a batch that is in no list may still come up.
    """

    tries: int = 3
    attempts: int = 8
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    settle_s: float = 30.0

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

    def __init__(self, spec: ModelSpec, log: BatchLog, policy: BatchPolicy, *, show: Callable[[], None]) -> None:
        self.transport = BatchTransport(spec)
        self.format = self.transport.format
        self.policy = policy
        self._spec, self._log, self._show = spec, log, show

    async def hand_in(self, batch: Batch, spool: Spool) -> None:
        """Hand a batch in and set its id. It may have been taken though the answer was lost: then it is in the list.

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
                await self._wait_after(failed, tried, "takes no batch")

    async def find(self, batch: Batch) -> bool:
        """Look for a batch in the provider's list, and set its id."""
        sought = Sought(batch.name, len(batch.ids), batch.at)
        listed = await self._patiently(lambda: self.format.find(self.transport.http, sought))
        known = batch.foreign | self._log.provider_ids
        batch.provider_id = next((one for one in listed if one not in known), None)
        batch.found = batch.provider_id is not None
        return batch.found

    async def look_for(self, batch: Batch) -> bool:
        """`find`, until the batch is old enough to be in the list if it was ever made."""
        if await self.find(batch):
            return True
        left = batch.at + self.policy.settle_s - time.time()
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
        try:
            return await self._patiently(lambda: self.format.state(self.transport.http, there))
        except AuthError as error:
            raise JudgecalError(
                f"{error}: this was asked about batch {there}, noted in {self._log.path}: are the key and the address "
                "those that it was handed in with? To pay its requests again, delete that file"
            ) from error

    async def fetch(self, batch: Batch, results: Results) -> int:
        """Write the lines of a batch into the file; how many there were. Those of other marks are not ours."""
        return await self._patiently(lambda: self._fetch(batch, results))

    async def _fetch(self, batch: Batch, results: Results) -> int:
        number = 0
        async for line in _filled(self.format.results(self.transport.http, _id_of(batch))):
            row = self.format.row(_object(line))
            one, _, mark = row.custom_id.rpartition("-")
            if not row.custom_id and number < len(batch.ids):
                one, mark = batch.ids[number], batch.mark  # Gemini gives results in the order of the requests
            number += 1
            if mark == batch.mark:
                results.places[one] = (results.spool.add(line), len(line))
        return number

    def reply(self, one: str, batch: Batch, results: Results) -> Reply:
        """The reply to a request of a batch that has ended.

        Raises:
            CallFailed: there is none.
            AuthError: as a live call.
        """
        state, place = results.states[batch.name], results.places.get(one)
        if state.refused is not None:
            return self.transport.reply(state.refused)
        if place is None:
            kind: ErrorKind = "timeout" if state.expired else "server"
            raise CallFailed(kind, "the batch ended without an answer to this request", retry=True, billed=False)
        if place[1] > 2 * MOST_BYTES:
            raise too_large()
        return self.transport.reply(self.format.row(_object(results.spool.line(*place))))

    def gave_up(self, what: str, failed: CallFailed) -> JudgecalError:
        """The error that ends the run."""
        return JudgecalError(
            f"model {self._spec.alias}: {self._spec.provider} {what}: {failed}; what was judged so far is kept, the "
            "same command resumes"
        )

    async def sleep(self, seconds: float) -> None:
        """Wait, and show that somebody is there."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(_SHOWN_EVERY_S, left))
            self._show()

    async def _patiently(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        """What the provider says, asked again where that can help."""
        tried = 0
        while True:
            tried += 1
            try:
                return await ask()
            except CallFailed as failed:
                await self._wait_after(failed, tried, "does not say how a batch stands")

    async def _wait_after(self, failed: CallFailed, tried: int, what: str) -> None:
        if not failed.retry or tried >= self.policy.attempts:
            raise self.gave_up(what, failed) from failed
        await self.sleep(max(self.policy.wait(tried), min(failed.retry_after or 0.0, _LONGEST_ASKED_WAIT_S)))


@dataclass(slots=True)
class Results:
    """What ended batches came to, in one file.

    Attributes:
        states: name of a batch -> how it ended.
        places: id of a request -> where its line is, and how long.
    """

    spool: Spool
    states: dict[str, BatchState] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)


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
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CallFailed("server", "a line of the results is not JSON", retry=True, billed=True) from error
    if not isinstance(found, dict):
        raise CallFailed("server", "a line of the results is not a JSON object", retry=True, billed=True)
    return found
