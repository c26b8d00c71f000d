"""Judgements by batch APIs: many handed in at once, answered within a day, at about half the price.

What is sent is what live calls send, and replies are read as theirs are; so the rows are the same but for the
cost and the latency, which a batch does not have. A batch is noted before it is sent and again when the
provider has given it an id, so that whoever is killed finds it again: by that id, or in the provider's list
of batches. A request that the provider failed, or did not come to in time, is no row yet: it goes into
another batch, three times in all.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from judgecal.bulk.batch_client import BatchClient, BatchPolicy, NotHandedIn, Part, Results
from judgecal.bulk.batch_log import Batch, BatchLog, batches_beside, ids_in, request_id
from judgecal.bulk.provider_batches import BatchState
from judgecal.engine.budget import Bill, Budget, billed, worst_cost_usd
from judgecal.engine.cache import ReplyCache, RequestKeys, cache_folder
from judgecal.engine.call_runner import CallResult, stored_result
from judgecal.engine.calls import Call, CallFailed, Message
from judgecal.engine.journal import Journal
from judgecal.engine.reply_forms import ReplyForms
from judgecal.engine.run import Progress, ReplyParser, clock, judgement_of, run_calls, run_to_end
from judgecal.errors import AuthError, JudgecalError, notice
from judgecal.models import ModelSpec
from judgecal.records import Failure, Judgement, Key

_MOST_AT_ONCE = 50  # batches that wait at a provider; Gemini takes 100, of all of a user's programs


def run_batches(
    due: Sequence[tuple[ModelSpec, Callable[[], Iterable[Call]]]],
    *,
    journal: Journal,
    budget: Budget,
    cache: ReplyCache | None = None,
    policy: BatchPolicy | None = None,
    progress: Progress | None = None,
) -> None:
    """Have every judgement by batches, journalled as it is read; all models' batches wait together.

    Args:
        due: models, each with what gives its calls that are due, from the first one. It is called again
            after rows were appended, which then are not due.

    Raises:
        AuthError: a provider refused the key; what was recorded stays.
        JudgecalError: a server has no batch API, cannot be reached, or refuses a batch.
        KeyboardInterrupt: as from anywhere; the batches go on at the provider, which is said.
    """

    async def work_all() -> None:
        await asyncio.gather(*(run.work() for run in runs))

    def counted(row: Judgement) -> None:
        journal.append(row)
        if progress:
            progress.add(scored=row.verdict is not None, cost_usd=row.cost_usd)

    assumed = sorted(spec.alias for spec, _ in due if spec.batch_price_assumed)
    if assumed and progress:
        notice(
            f"judgecal: no batch price is known of {', '.join(assumed)}: half of the live price is taken for "
            "it"
        )
    with BatchLog(batches_beside(journal)) as log:
        runs = [
            _BatchRun(
                spec,
                calls,
                log,
                record=counted,
                budget=budget,
                cache=cache,
                policy=policy or BatchPolicy(),
                progress=progress,
            )
            for spec, calls in due
        ]
        try:
            for run in runs:
                run.learn_forms()
            run_to_end(work_all)
        except (KeyboardInterrupt, JudgecalError):
            notice(*(line for run in runs for line in run.still_waiting()))
            raise


class _BatchRun:
    def __init__(
        self,
        spec: ModelSpec,
        calls: Callable[[], Iterable[Call]],
        log: BatchLog,
        *,
        record: Callable[[Judgement], None],
        budget: Budget,
        cache: ReplyCache | None,
        policy: BatchPolicy,
        progress: Progress | None,
    ) -> None:
        self._spec, self._calls, self._log = spec, calls, log
        self._budget, self._cache, self._policy = budget, cache, policy
        self._recorded, self._progress = record, progress
        self._client = BatchClient(spec, log, policy, show=progress.show if progress else lambda: None)
        self._format = self._client.format
        self._cheap = spec.in_batches()
        self._key_of = RequestKeys(spec)
        self._forms = ReplyForms(spec, cache_folder())
        self._open = log.open_of(spec)
        self._waiting = ids_in(self._open)
        # name of a batch -> what this run asks for of it
        self._asked: defaultdict[str, set[str]] = defaultdict(set)
        self._tries: defaultdict[str, int] = defaultdict(int)
        self._given_up: set[Key] = set()  # an error may be due again at once, for the next run
        self._short = 0  # times that the budget held fewer requests than were due
        for batch in self._open:
            budget.adopt(batch.name, batch.usd_at_most)

    def learn_forms(self) -> None:
        """Have one judgement live where it is not known whether the server takes a schema.

        A batch would say so in hours. The same call finds out whether the key and the model are right.
        """
        if not self._forms.unknown:
            return
        for call in self._calls():
            if call.schema is None:
                continue
            key, request, _ = request_id(self._key_of, call)
            if request not in self._waiting and not stored_result(
                self._cache, key, ReplyParser(call).gives_verdict
            ):
                run_calls([call], self._spec, record=self._record, budget=self._budget, cache=self._cache)
                break
        self._forms = ReplyForms(self._spec, cache_folder())

    def _record(self, row: Judgement) -> None:
        if row.error is not None:
            self._given_up.add(row.key)
        self._recorded(row)

    def _still_due(self) -> Iterator[Call]:
        return (call for call in self._calls() if call.key not in self._given_up)

    async def work(self) -> None:
        """Hand in, wait and read until nothing is due."""
        try:
            for batch in list(self._open):
                await self._locate(batch)
            while await self._hand_in():
                await self._wait_and_read()
        finally:
            await self._client.close()

    def still_waiting(self) -> Iterator[str]:
        """What a user must hear of batches that go on without this process."""
        for batch in self._open:
            if self._asked[batch.name]:
                yield (
                    f"judgecal: batch {batch.provider_id or batch.name} of {len(batch.ids):,} requests goes "
                    f"on at {self._spec.provider} and is paid for there; the same command takes its replies; "
                    f"to stop it, cancel it: {self._format.where}"
                )

    async def _locate(self, batch: Batch) -> None:
        """Find a batch that was noted, and whose id was not; one that is in no list was never made."""
        async with self._log.locating:
            if batch.provider_id is None and self._log.is_open(batch):
                self._tell([batch], "looking for a batch that may have been handed in")
                if await self._client.look_for(batch):
                    self._log.note(batch, "submitted")
                else:
                    self._close(batch, made=False)
        if not self._log.is_open(batch):
            self._forget(batch, batch.ids)

    def _close(self, batch: Batch, *, made: bool = True) -> None:
        if self._log.is_open(batch):
            self._log.note(batch, "read" if made else "void")
            self._budget.release(batch.usd_at_most)
        self._forget(batch, batch.ids)

    def _forget(self, batch: Batch, ids: Iterable[str]) -> None:
        """Requests that wait in a batch no longer, as far as this run goes."""
        for request in ids:
            if self._waiting.get(request) is batch:
                del self._waiting[request]
        self._asked.pop(batch.name, None)
        if not self._log.is_open(batch) and batch in self._open:
            self._open.remove(batch)

    def _waited_for(self) -> list[Batch]:
        return [batch for batch in self._open if self._asked[batch.name]]

    async def _hand_in(self) -> bool:
        """Hand in what is due and waits in no batch; whether anything waits now."""
        self._asked.clear()
        self._short += 1
        short = False
        part: Part | None = None
        for call in self._still_due():
            key, id_, messages = request_id(self._key_of, call)
            if batch_of_it := self._waiting.get(id_):
                self._asked[batch_of_it.name].add(id_)
                continue
            if stored := stored_result(self._cache, key, ReplyParser(call).gives_verdict):
                self._record(judgement_of(call, stored))
                continue
            if part and id_ in part.ids:
                continue
            request = self._request(call, messages)
            if request is None:
                continue
            if part and part.is_full(request):
                await self._submit(part)
                part = None
                if len(self._waited_for()) >= _MOST_AT_ONCE:
                    return True
            part = part or Part(self._format)
            worst = worst_cost_usd(self._cheap, messages, call.schema)
            reserved = self._budget.reserve(self._spec.alias, worst)
            if reserved is not None:
                part.add(id_, request, reserved)
            elif self._short < self._policy.tries and (part.ids or self._waited_for()):
                short = True  # what the batches before it really cost may leave room for it
            else:
                failure = Failure("budget", self._budget.refuse(self._spec.alias, worst))
                self._record(judgement_of(call, CallResult(failure=failure)))
        if part and part.ids:
            await self._submit(part)
        self._short -= not short
        return bool(self._waited_for())

    def _request(self, call: Call, messages: Sequence[Message]) -> bytes | None:
        """The body of a call; None where it cannot be sent, which is its row then."""
        try:
            shape = call.schema and self._forms.shape_known(call.schema)
            body = self._client.encoded(messages, shape)
            if len(body) > self._format.most_bytes // 2:
                raise CallFailed("context_length", "the request is larger than a batch may be", retry=False)
            return body
        except CallFailed as failed:
            self._record(judgement_of(call, CallResult(failure=Failure(failed.kind, str(failed)))))
            return None

    async def _submit(self, part: Part) -> None:
        """Note the batch, hand it in, and note its id."""
        part.finish()
        self._budget.cover()  # before the batch is noted: whoever finds it there takes its money out again
        batch = self._log.intend(part.name, self._spec, part.ids, usd_at_most=part.usd_at_most)
        self._open.append(batch)
        self._waiting |= ids_in([batch])
        self._asked[batch.name] = set(part.ids)
        self._tell([batch], "handing in")
        try:
            await self._client.hand_in(batch, part.spool)
        except (NotHandedIn, AuthError):
            self._close(batch, made=False)
            raise
        finally:
            part.spool.file.close()
        self._log.note(batch, "submitted")

    async def _wait_and_read(self) -> None:
        """Until every batch with a call of this run has ended and is read."""
        polls = 0
        until = time.monotonic() + self._policy.longest_s
        while waiting := self._waited_for():
            if time.monotonic() > until:
                batch, hours = waiting[0], self._policy.longest_s / 3600
                there = f"{self._spec.provider} after {hours:.0f} hours"
                raise JudgecalError(
                    f"batch {batch.provider_id} of {len(batch.ids):,} requests has not ended at {there}: "
                    f"look at it there ({self._format.where}); once it is cancelled, the same command takes "
                    "what it holds and hands in the rest again"
                )
            states = {batch.name: await self._client.state(batch) for batch in waiting}
            done = sum(state.done for state in states.values())
            self._tell(waiting, f"{done:,} of {sum(len(batch.ids) for batch in waiting):,} done")
            if ended := [batch for batch in waiting if states[batch.name].ended]:
                await self._read(ended, states)
            else:
                await self._client.sleep(self._policy.wait(polls))
                polls += 1

    async def _read(self, ended: Sequence[Batch], states: dict[str, BatchState]) -> None:
        """Make rows of what ended batches hold; what may go into another batch is no row yet."""
        results = Results(states)
        try:
            busy = any(batch not in ended for batch in self._waited_for())
            ours = [batch for batch in ended if await self._fetch(batch, results, busy=busy)]
            for batch in ours:
                batch.left -= self._asked[batch.name]
                self._log.note(batch, "reading")
            names = {batch.name for batch in ours}
            tried = {name for name in names if not (busy and states[name].refused)}
            met: set[str] = set()
            stop: AuthError | None = None
            for call in self._still_due():
                key, request, messages = request_id(self._key_of, call)
                holder = self._waiting.get(request)
                if holder is None or holder.name not in names:
                    continue
                self._tries[request] += request not in met and holder.name in tried
                try:
                    row = self._row(call, key, messages, holder, results, again=request in met)
                except AuthError as error:
                    stop = error
                    continue
                met.add(request)
                if row is not None:
                    self._record(row)
        finally:
            results.spool.file.close()
        if self._cache:
            self._cache.flush(now=True)
        for batch in ours:
            if batch.left:  # for a run that asks for more
                self._log.note(batch, "taken")
                self._forget(batch, self._asked[batch.name])
            else:
                self._close(batch)
        if stop is not None:
            raise stop

    async def _fetch(self, batch: Batch, results: Results, *, busy: bool) -> bool:
        """Take what a batch holds; False where it is somebody else's. `busy`: others wait.

        The run ends where the provider took none of a batch, unless a later one may do better: OpenAI limits
        what may wait at once; that it refused a batch while others waited is no try of its requests.
        """
        refused = results.states[batch.name].refused
        if refused is not None:
            try:
                self._client.reply(refused)
            except CallFailed as failed:
                if not failed.retry:
                    self._close(batch)
                    raise self._client.gave_up(f"refused batch {batch.provider_id}", failed) from failed
            except AuthError:
                self._close(batch)
                raise
            await self._client.sleep(0.0 if busy else self._policy.longest_wait_s)
            return True
        lines = await self._client.fetch(batch, results)
        unsure = batch.found and not self._format.names
        if unsure and lines and results.places.keys().isdisjoint(batch.ids):
            batch.foreign.add(batch.provider_id or "")
            batch.provider_id = None
            await self._locate(batch)
            return False
        return True

    def _row(
        self,
        call: Call,
        key: str,
        messages: Sequence[Message],
        batch: Batch,
        results: Results,
        *,
        again: bool,
    ) -> Judgement | None:
        """The row of a call whose batch has ended; None where it is sent again. `again`: it is booked.

        Raises AuthError: as a live call.
        """
        request = key[: len(batch.ids[0])]
        tries = self._tries[request]
        worst = worst_cost_usd(self._cheap, messages, call.schema)
        try:
            reply = self._client.reply_to(request, batch, results)
            reply, bill = billed(self._cheap, messages, reply)
        except CallFailed as failed:
            if failed.billed and not again:
                self._budget.book(self._spec.alias, worst, Bill(worst))
            if failed.retry and tries < self._policy.tries:
                return None
            failure = Failure(failed.kind, str(failed))
            return judgement_of(call, CallResult(failure=failure, attempts=tries))
        if again:
            return judgement_of(call, CallResult(cached=True, reply=reply))
        self._budget.book(self._spec.alias, worst, bill)
        row = judgement_of(call, CallResult(reply=reply, attempts=tries, cost_usd=bill.usd))
        if self._cache and row.verdict is not None:
            self._cache.put(key, reply)
        return row

    def _tell(self, batches: Sequence[Batch], what: str) -> None:
        if self._progress:
            since = clock(max(0.0, time.time() - min(batch.at for batch in batches)))
            many = "1 batch" if len(batches) == 1 else f"{len(batches)} batches"
            self._progress.waiting = f"{many} at {self._spec.provider} for {since}, {what}"
            self._progress.show()
