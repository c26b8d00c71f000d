"""What bounds a run in time: how many calls may be in flight.

The allowance grows while all goes well and is lowered where a provider says so; every outcome costs the same
few additions, whatever the number of calls.
"""

from __future__ import annotations

from dataclasses import dataclass

from judgecal.models import ModelSpec

_START = 8
_CEILING = 1024
_PER_SUCCESS = 3.0  # each call of a round trip adds three: the round trip quadruples
_SLOW_SHARE = 0.02  # after a first refusal: a fiftieth a round trip, or one where that is more
_QUEUEING = 3.0  # a reply that takes so many times longer than the first ones stands in a queue
_QUEUEING_S = 0.05  # under this much, more calls at once do no harm


@dataclass(frozen=True, slots=True)
class CallEnd:
    """What an attempt says of the allowance.

    Attributes:
        latency_s: of its reply; None where there is none.
        overloaded: the provider was asked too much.
        pause_s: seconds in which no call may start, as the provider asked for.
    """

    latency_s: float | None = None
    overloaded: bool = False
    pause_s: float = 0.0


class Limiter:
    """The allowance of one run.

    It starts at a stated number and never goes beyond it. Where none is stated it starts at 8 and quadruples
    every round trip, up to 1024. A reply that took much longer than the first ones did adds nothing: past
    that point more calls at once only wait on the server, and at last time out. The first refusal halves it;
    from then on it is lowered by half the share of refused calls and grows by a fiftieth a round trip, so
    that it settles where refusals are rare, and a server that refuses at random does not bring the run to a
    halt. It is lowered at most once a round trip: what was sent before it was lowered says nothing of the new
    allowance.

    Args:
        stated: the user's own bound; None lets it grow.
        total: calls to be made, where that is known.

    Attributes:
        allowance: calls that may be in flight; the whole part counts.
        in_flight: calls that are.
        paused_until: time on the run's clock before which no call may start.
    """

    def __init__(self, stated: int | None = None, *, total: int | None = None) -> None:
        bound = _CEILING if stated is None else stated
        self.ceiling = max(1, bound if total is None else min(bound, total))
        self.allowance = float(min(_START if stated is None else stated, self.ceiling))
        self.in_flight = 0
        self.paused_until = 0.0
        self._growing_fast = True
        self._refused = 0.0  # share of refusals over about the last round trip
        self._lowered = 0
        self._first_calls = max(1, int(self.allowance))
        self._timed = 0
        self._first_latency_s = 0.0  # mean of the first calls

    @property
    def at_once(self) -> int:
        """Calls that may be in flight now."""
        return int(self.allowance)

    def begin(self) -> int:
        """Count a call as in flight; what is given back goes into `refused`."""
        self.in_flight += 1
        return self._lowered

    def end(self) -> None:
        """Count a call as landed; after what is said of its outcome."""
        self.in_flight -= 1

    def on_call_end(self, end: CallEnd, *, began: int, now: float) -> None:
        """Take in how an attempt ended; `began` is what `begin` gave, `now` the time on the run's clock."""
        if end.latency_s is not None:
            self.succeeded(end.latency_s)
        if end.overloaded:
            self.refused(began)
        if end.pause_s:
            self.pause(now + end.pause_s)

    def succeeded(self, latency_s: float) -> None:
        """A reply came."""
        self._refused -= self._refused / max(_START, self.allowance)
        if self._timed < self._first_calls:
            self._timed += 1
            self._first_latency_s += (latency_s - self._first_latency_s) / self._timed
        queueing = latency_s > max(_QUEUEING * self._first_latency_s, _QUEUEING_S)
        if self.allowance < self.ceiling and not queueing:
            more = _PER_SUCCESS if self._growing_fast else max(_SLOW_SHARE, 1.0 / self.allowance)
            self.allowance = min(self.allowance + more, self.ceiling)

    def refused(self, began: int) -> None:
        """The provider was asked too much; `began` is what `begin` gave."""
        self._refused += (1.0 - self._refused) / max(_START, self.allowance)
        if began != self._lowered:
            return
        self._lowered += 1
        factor = 0.5 if self._growing_fast else 1.0 - self._refused / 2.0
        self._growing_fast = False
        self.allowance = max(1.0, self.allowance * factor)

    def pause(self, until: float) -> None:
        """Let no call start before a time on the run's clock."""
        self.paused_until = max(self.paused_until, until)


def expected_seconds(spec: ModelSpec, calls: int, *, latency_s: float | None) -> float | None:
    """About how long calls take where the provider keeps up: round trips, at the stated number or at a
    growing one.

    Without the latency of one call there is no telling.
    """
    if latency_s is None:
        return None
    if spec.embedded:
        return calls * latency_s  # one core's work; with workers it takes less
    at_once = spec.max_concurrency or _START
    trips = 0
    while calls > 0:
        trips += 1
        calls -= at_once
        at_once = spec.max_concurrency or min(_CEILING, round(at_once * (1.0 + _PER_SUCCESS)))
    return trips * latency_s
