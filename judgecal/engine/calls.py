"""What goes into the engine and what comes out of a model: the words that all of its modules share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from judgecal.engine.reply_schema import ReplySchema
from judgecal.records import ErrorKind, Failure, Key
from judgecal.scale import Label

Message = Mapping[str, str]
"""One chat message: `role` and `content`."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """What a reply says: a verdict, or why there is none."""

    verdict: Label | None
    reasoning: str = ""
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One judgement to be had.

    Attributes:
        key: of the judgement.
        judge: the judge's string.
        messages: makes the chat messages; called when the call is due, so that a long run holds few of them.
        read: reads the verdict from the text of a reply.
        schema: what the reply must be, where the model's server can be held to it.
    """

    key: Key
    judge: str
    messages: Callable[[], Sequence[Message]]
    read: Callable[[str], ParsedReply]
    schema: ReplySchema | None = None


@dataclass(frozen=True, slots=True)
class OwnVerdict:
    """One judgement that needs no call: its key, the judge's string, and what gives the verdict, maybe once
    awaited."""

    key: Key
    judge: str
    give: Callable[[], ParsedReply | Awaitable[ParsedReply]]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered.

    Attributes:
        stopped: the provider's reason for the end of the text.
        latency_s: where the transport knows better than the caller's clock, which also counts a queue.
    """

    text: str
    model_id: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    stopped: str = "stop"
    latency_s: float | None = None


class CallFailed(Exception):
    """One call gave no reply.

    Args:
        kind: which error the row will carry.
        message: one line for the row; never a key.
        retry: whether another attempt can help.
        retry_after: seconds that the provider asked us to wait; the whole run waits with the call.
        overloaded: whether fewer calls at once could have helped (429, 503, 529); by default a rate limit, a
            timeout, and whatever came with `retry_after`.
        billed: whether the attempt may be on the provider's bill; by default a timeout and a lost connection,
            for the reply may have been written and not have come.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        retry: bool,
        retry_after: float | None = None,
        overloaded: bool | None = None,
        billed: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry = retry
        self.retry_after = retry_after
        crowded = kind in ("rate_limit", "timeout") or retry_after is not None
        self.overloaded = crowded if overloaded is None else overloaded
        self.billed = kind in ("timeout", "transport") if billed is None else billed


def system_text(messages: Sequence[Message]) -> str:
    """What the system messages say, for formats that take it apart from the turns."""
    return "\n\n".join(message["content"] for message in messages if message["role"] == "system")
