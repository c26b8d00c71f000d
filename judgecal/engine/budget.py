"""Money: what a call may cost, what it did cost, and a limit that holds whatever a server says.

Before a call the most that it may cost is set aside: every byte a token, the reply as long as it may be. A
server may report more than that all the same. So a call that others accompany sets aside ten times the
dearest reply so far, and before the first replies a hundred times the estimate; a call alone in flight sets
aside what the dearest reply says. A limit that is large beside the calls in flight is not felt; near it they
go one by one, and the last of them may overrun it by itself, and no other. What this does not hold: replies
that from one to the next, with others in flight, become more than ten times as dear as any before.
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from judgecal.engine.calls import Message, Reply, ReplySchema
from judgecal.errors import InputError
from judgecal.models import ModelSpec

_TOKENS_PER_MESSAGE = 8  # what a provider may put around a message beside its text
_UNBOUNDED_REPLY = 8192  # of a model that states none: such a call is in no budget, and no preview bounds it
_TIMES_THE_DEAREST = 10.0  # what a reply in company may cost, in the dearest one so far
_TIMES_THE_ESTIMATE = 100.0  # the same before the first reply; each that keeps to its estimate divides it
_ROUNDING_USD = 1e-12
_BYTES_PER_TOKEN = 3  # our own count: English has a little over 4, Chinese 3, code in between
_FEWEST_PER_CHARACTER = 12  # characters to a token: prose has 4; a count below that is no count
_USUAL_REPLY = 200  # tokens of a judge's reply: a short reasoning and the verdict
_MOST_TOKENS = 10**9  # of one call; a larger count is none


class Bill(NamedTuple):
    """What one reply cost."""

    usd: float | None  # None where the model has no price
    counted: bool = False  # the server gave no usable count of tokens, so they were counted from the text
    tokens: tuple[int, int] = (0, 0)  # of the prompt and the reply, as `usd` has them


@dataclass(slots=True)
class _ModelBill:
    """What the calls of one model have come to, and those in flight."""

    replies: int = 0  # that were billed
    counted: int = 0  # those of them whose server gave no usable count of tokens
    dearest: float = 0.0  # cost of the dearest reply over its estimate
    report: str = ""  # what the server reported of that one
    in_flight: int = 0  # calls
    in_flight_usd: float = 0.0  # the estimates of them all

    @property
    def alone(self) -> float:
        """What a call sets aside where no other is in flight, in estimates."""
        return max(1.0, self.dearest)

    @property
    def together(self) -> float:
        """The same in company."""
        return max(1.0, _TIMES_THE_DEAREST * self.dearest, _TIMES_THE_ESTIMATE / (1 + self.replies))


class Budget:
    """Money that calls may spend in one command; several runs and threads may share one.

    Attributes:
        limit_usd: the most that may be spent, or None for no limit.
        spent_usd: what finished calls cost; an attempt that may be on the bill unseen counts at its worst.
        unseen_usd: those attempts' part of it.
        refused: calls that were not made.
    """

    def __init__(self, limit_usd: float | None) -> None:
        self.limit_usd = limit_usd
        self.spent_usd = self.unseen_usd = 0.0
        self.refused = 0
        self._bills: defaultdict[str, _ModelBill] = defaultdict(_ModelBill)
        self._lock = threading.Lock()

    def hold(self, model: str, worst_usd: float, *, alone: bool) -> bool:
        """Set aside a worst cost in USD for a model (name); return if it fits. `alone`: none is in flight."""
        with self._lock:
            bill = self._bills[model]
            held = sum(
                other.in_flight_usd * other.together for other in self._bills.values() if other.in_flight
            )
            if not self._within(held + worst_usd * (bill.alone if alone else bill.together)):
                return False
            bill.in_flight += 1
            bill.in_flight_usd += worst_usd
            return True

    def fits(self, model: str, worst_usd: float) -> bool:
        """Whether a call would fit once every other one has landed and cost nothing."""
        return self._within(worst_usd * self._bills[model].alone)

    def settle(self, model: str, worst_usd: float, bill: Bill | None, *, unseen: bool = False) -> None:
        """For a model (name), release a worst cost in USD that was set aside, and book a Bill or None.

        Args:
            bill: of the reply; None where there is none.
            unseen: without a reply, whether the call may be billed all the same; then it counts at its worst.
        """
        with self._lock:
            of_model = self._bills[model]
            if self.limit_usd is not None:  # else nothing was set aside
                of_model.in_flight -= 1
                of_model.in_flight_usd = of_model.in_flight_usd - worst_usd if of_model.in_flight else 0.0
            if bill is None:
                self.spent_usd += worst_usd * unseen
                self.unseen_usd += worst_usd * unseen
                return
            cost = bill.usd or 0.0
            self.spent_usd += cost
            of_model.replies += 1
            of_model.counted += bill.counted
            if worst_usd > 0.0 and cost / worst_usd > of_model.dearest:
                of_model.dearest = cost / worst_usd
                of_model.report = f"{bill.tokens[0]:,} + {bill.tokens[1]:,} tokens, {cost:.4g} USD"

    def refuse(self, model: str, worst_usd: float) -> str:
        """For a model (name) and a worst cost in USD, count a call as refused; return the reason (text)."""
        self.refused += 1
        next_usd = worst_usd * self._bills[model].alone
        return (
            f"the next call could overrun {self.limit_usd:g} USD: {self.spent_usd:.4g} are spent, and it may "
            f"cost {next_usd:.4g}"
        )

    def remarks(self, *, ended: bool = True) -> list[str]:
        """Return the list of sentences that a user must hear of the money, each once."""
        remarks = []
        with self._lock:
            if self.refused and ended:
                remarks.append(
                    f"the budget of {self.limit_usd:g} USD ended the calls: {self.spent_usd:.4g} USD are "
                    f"spent, {self.refused:,} calls were not made"
                )
            for model, bill in self._bills.items():
                if bill.dearest > 1.0 and bill.report:
                    remarks.append(
                        f"model {model}: its server reports up to {bill.dearest:.1f} times the most that a "
                        f"call was estimated to cost ({bill.report}); we estimated further calls by that"
                    )
                if bill.counted:
                    remarks.append(counted_remark(f"model {model}", bill.counted))
                bill.report, bill.counted = "", 0
            self.refused = 0
        return remarks

    def _within(self, more_usd: float) -> bool:
        return self.limit_usd is None or self.spent_usd + more_usd <= self.limit_usd + _ROUNDING_USD


class BudgetGate:
    """A budget as one run's tasks draw on it: a call that does not fit waits for those in flight."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._in_flight = 0
        self._turn = asyncio.Lock()  # who is first in the queue
        self._landed = asyncio.Event()

    async def take(self, model: str, worst_usd: float) -> str | None:
        """For a model (name), set aside a worst cost in USD; return why not (text), or None."""
        if self.budget.limit_usd is None:
            return None
        async with self._turn:
            while not self.budget.hold(model, worst_usd, alone=not self._in_flight):
                if not (self._in_flight and self.budget.fits(model, worst_usd)):
                    return self.budget.refuse(model, worst_usd)
                self._landed.clear()
                await self._landed.wait()
            self._in_flight += 1
        return None

    def settle(self, model: str, worst_usd: float, bill: Bill | None, *, unseen: bool) -> None:
        """For a model (name), settle a call by worst USD, Bill or None, and `unseen`; wake waiting calls."""
        self.budget.settle(model, worst_usd, bill, unseen=unseen)
        if self.budget.limit_usd is not None:
            self._in_flight -= 1
            self._landed.set()


def counted_remark(whose: str, replies: int) -> str:
    """Return a sentence on whose replies (text), and their number, came without a usable count of tokens."""
    return (
        f"{whose}: {replies:,} replies came without a usable count of tokens; we estimate their cost "
        f"from their text at {_BYTES_PER_TOKEN} bytes a token, without thoughts that were not sent"
    )


def worst_cost_usd(spec: ModelSpec, messages: Sequence[Message], schema: ReplySchema | None = None) -> float:
    """Return an upper bound in USD of a call's cost, from the ModelSpec and the messages."""
    size = 0 if schema is None else schema.size
    size += sum(len(m["content"].encode("utf-8", "surrogatepass")) + _TOKENS_PER_MESSAGE for m in messages)
    return spec.cost_usd(size, spec.longest_reply or _UNBOUNDED_REPLY) or 0.0


def with_bill(spec: ModelSpec, messages: Sequence[Message], reply: Reply) -> tuple[Reply, Bill]:
    """From a ModelSpec, messages and a Reply, return the Reply less impossible token counts, and its Bill.

    What a server reports is what its provider bills, so it is believed as long as a tokenizer could have
    given it. Where it is absent, 0 beside a text, or one token to more than twelve characters, the text is
    counted.
    """
    prompt = _usable(reply.prompt_tokens, sum([len(message["content"]) for message in messages]))
    completion = _usable(reply.completion_tokens, len(reply.text))
    if (prompt, completion) != (reply.prompt_tokens, reply.completion_tokens):
        reply = replace(reply, prompt_tokens=prompt, completion_tokens=completion)
    if not spec.paid:
        return reply, Bill(spec.cost_usd(prompt, completion))
    # A count that costs nothing is not missed: an embedding writes no token, and a reranker is paid by the
    # call.
    counted = bool(
        (prompt is None and spec.input_usd_per_1m) or (completion is None and spec.output_usd_per_1m)
    )
    if prompt is None:
        prompt = sum(_counted(message["content"]) + _TOKENS_PER_MESSAGE for message in messages)
    if completion is None:
        completion = _counted(reply.text)
    return reply, Bill(spec.cost_usd(prompt, completion), counted, (prompt, completion))


def _usable(tokens: object, characters: int) -> int | None:
    """A count of tokens, None where it is none or cannot be that of so many characters."""
    if type(tokens) is not int or not characters // _FEWEST_PER_CHARACTER <= tokens <= _MOST_TOKENS:
        return None
    return tokens or (None if characters else 0)


def _counted(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)


def require_prices(specs: Sequence[ModelSpec], limit_usd: float | None) -> None:
    """Refuse a limit in USD for ModelSpecs without a price or without a longest reply."""
    if limit_usd is None:
        return
    if limit_usd <= 0:
        raise InputError(f"--budget-usd must be above 0, found {limit_usd:g}")
    unpriced = sorted({spec.alias for spec in specs if not spec.priced})
    problems = []
    if unpriced:
        problems.append(
            f"--budget-usd: the price of {', '.join(unpriced)} is not known: set input_usd_per_1m and "
            "output_usd_per_1m under [models.NAME] in judgecal.toml"
        )
    endless = sorted({spec.alias for spec in specs if not spec.bounded})
    if endless:
        problems.append(
            f"--budget-usd: a reply of {', '.join(endless)} has no known longest length, so no bound on its "
            "cost: set max_tokens under [models.NAME] in judgecal.toml"
        )
    if problems:
        raise InputError(problems)


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What a run would cost, before any call."""

    calls: int  # to be made
    stored: int  # judgements that the journal has already
    prompt_tokens: int  # an estimate, at four characters a token
    usd_at_most: float | None  # an upper bound; None where some model has no price, or is `unbounded`
    # with replies of a usual length; None without a price
    usd_likely: float | None = 0.0
    unbounded: tuple[str, ...] = ()  # models whose replies cost something and have no longest length

    @property
    def cost_in_words(self) -> str:
        """The likely cost, then the bound, or why there is none."""
        if self.usd_likely is None:
            return "We cannot say what it costs: some model has no price."
        if self.unbounded:
            return (
                f"It likely costs {self.usd_likely:.4f} USD, and there is no bound: a reply of "
                f"{', '.join(self.unbounded)} has no known longest length; set max_tokens under "
                "[models.NAME] in judgecal.toml."
            )
        most = f"It likely costs {self.usd_likely:.4f} USD, at most {self.usd_at_most:.4f} USD."
        return most if self.usd_at_most else "It costs nothing."


def together(estimates: Sequence[CostEstimate]) -> CostEstimate:
    """Return the CostEstimate that sums CostEstimates; what any does not have, the sum lacks too."""

    added: dict[str, Any] = {}
    for name in (field.name for field in dataclasses.fields(CostEstimate)):
        values = [getattr(estimate, name) for estimate in estimates]
        empty: Any = () if name == "unbounded" else 0
        added[name] = None if None in values else sum(values, empty)
    return CostEstimate(**{**added, "unbounded": tuple(dict.fromkeys(added["unbounded"]))})


def likely_usd(model: ModelSpec, calls: int, prompt_tokens: float) -> float | None:
    """Return USD (None: no price) by a ModelSpec, a number of calls and of prompt tokens, usual replies."""
    if not calls:
        return 0.0
    usual = min(_USUAL_REPLY, model.longest_reply or _USUAL_REPLY)
    cost = model.cost_usd(round(prompt_tokens / calls), usual)
    return None if cost is None else calls * cost
