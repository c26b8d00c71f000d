"""What goes into the engine and what comes out of a model: the words that all of its modules share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from judgecal.models import ModelSpec
from judgecal.records import ErrorKind, Failure, Key, digest, well_formed
from judgecal.scale import Label

_GRAMMARS = ("hosted_vllm", "lm_studio", "ollama", "ollama_chat")
_FEW = 11  # whole numbers that are written out for a server that takes no bounds: 0..10, and no 0..100
_MANY = 1001  # whole numbers that are written out for a grammar
_AROUND = 64  # tokens of an object beside its texts
_LONGEST, _SHORTEST = 1500, 100  # characters of a text: grammars refuse 2,000 repetitions


@dataclass(frozen=True)
class ReplySchema:
    """The fields of a reply.

    Attributes:
        properties: name -> JSON Schema of its value (type, enum, minimum, maximum), in the order of the
            reply.
    """

    properties: Mapping[str, Mapping[str, Any]]

    @cached_property
    def key(self) -> str:
        """16 hex digits over the fields."""
        return digest(self.as_json())[:16]

    @cached_property
    def size(self) -> int:
        """Bytes of the schema: providers count it with the prompt."""
        return len(str(self.as_json()))

    def as_json(self) -> dict[str, Any]:
        """The whole schema."""
        return _object({name: dict(schema) for name, schema in self.properties.items()})

    def spoken(self, spec: ModelSpec) -> dict[str, Any]:
        """Return this schema as a JSON dict that the server of a ModelSpec understands.

        Some understand bounds of numbers, some neither bounds nor lengths, and a grammar enumerations and
        lengths, each of them. There a text has room enough for a model that rambles to come to its verdict
        before its reply is cut: a token is a character at least.
        """
        openais_own = spec.provider == "openai" and spec.address.startswith("https://api.openai.com")
        ranges = spec.provider in ("gemini", "vertex_ai") or openais_own
        grammar = spec.provider in _GRAMMARS or (spec.provider == "openai" and not openais_own)
        texts = sum(schema["type"] == "string" for schema in self.properties.values())
        room = ((spec.max_tokens or _LONGEST + _AROUND) - _AROUND) // max(1, texts)
        fields = {name: dict(schema) for name, schema in self.properties.items()}
        for field in fields.values():
            if field["type"] == "string":
                if grammar and "enum" not in field:
                    field["maxLength"] = max(_SHORTEST, min(_LONGEST, room))
            elif "minimum" in field and not ranges:
                low, high = field["minimum"], field["maximum"]
                listed = field["type"] == "integer" and high - low < (_MANY if grammar else _FEW)
                if listed or not grammar:
                    del field["minimum"], field["maximum"]
                if listed:
                    field["enum"] = list(range(low, high + 1))
        return _object(fields)


def _object(properties: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


Token = list[Any]
"""Of a reply: where it stands, its text, and text -> log-probability of it and what might stand there."""

Message = Mapping[str, str]
"""One chat message: `role` and `content`."""


@dataclass(slots=True)  # one a call: freezing takes ten times as long
class ParsedReply:
    """What a reply says: a verdict, or why there is none."""

    verdict: Label | None
    reasoning: str = ""
    failure: Failure | None = None
    chances: dict[str, float] | None = None  # of the allowed verdicts
    why_said: str | None = None  # why there are none, where they were asked for
    token: Token | None = None  # that they are of, or that it was looked for in vain


@dataclass(slots=True)
class Call:
    """One judgement to be had.

    Attributes:
        messages: makes the chat messages; called when the call is due, so that a long run holds few of them.
    """

    key: Key  # of the judgement
    judge: str  # the judge's string
    messages: Callable[[], Sequence[Message]]
    read: Callable[[str], ParsedReply]  # reads the verdict from the text of a reply
    schema: ReplySchema | None = None  # what the reply must be, where the model's server can be held to it
    weigh: Callable[[str, Sequence[Token], ParsedReply], ParsedReply] | None = None  # by the reply's tokens


@dataclass(frozen=True, slots=True)
class OwnVerdict:
    """One judgement that needs no call: its key, its judge, and what gives the verdict, maybe awaited."""

    key: Key
    judge: str
    give: Callable[[], ParsedReply | Awaitable[ParsedReply]]


@dataclass(slots=True)
class Reply:
    """What a model answered.

    Attributes:
        latency_s: where the transport knows better than the caller's clock, which also counts a queue.
        tokens: those of the text; empty where the server was asked and gave none, None where nobody asked.
    """

    text: str
    model_id: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    stopped: str = "stop"  # the provider's reason for the end of the text
    latency_s: float | None = None
    tokens: list[Token] | None = None


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


MOST_BYTES = 1_000_000
"""The largest answer that is read, in bytes once decompressed."""

_LONGEST_NAME = 200  # of a model, or of the reason why a text ends
_LONGEST_IN_ROW = 20_000


def clean_reply(reply: Reply) -> Reply:
    """Make a Reply fit for a row and return it: no lone surrogate, and short names.

    Raises:
        CallFailed: the text is larger than 1 MB.
    """
    if len(reply.text) > MOST_BYTES // 4 and len(reply.text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise too_large()
    names = reply.model_id + reply.stopped
    if reply.text.isascii() and names.isascii() and len(names) <= _LONGEST_NAME:
        return reply  # as nearly all are
    return replace(
        reply,
        text=well_formed(reply.text),
        model_id=well_formed(reply.model_id[:_LONGEST_NAME]),
        stopped=well_formed(reply.stopped[:_LONGEST_NAME]),
    )


def too_large() -> CallFailed:
    """Make the CallFailed that stands for any reply too large to be read to its end."""
    message = f"the reply is larger than {MOST_BYTES // 1_000_000} MB: set max_tokens on the model's alias"
    return CallFailed("length", message, retry=False, billed=True)


def unreadable(error: Exception) -> CallFailed:
    """The failure of an answer that no code was ready for; another one would be no better."""
    return CallFailed("parse", _why_unreadable(error), retry=False, billed=True)


def _why_unreadable(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "the reply is nested too deep to be read"
    message = " ".join(well_formed(str(error)[:_LONGEST_NAME]).split())
    return f"the reply cannot be read ({type(error).__name__}: {message})"


def read_guarded(read: Callable[[str], ParsedReply], text: str) -> ParsedReply:
    """Return the ParsedReply that a function `read` makes of a text; what it raises is a failure `parse`.

    Raises:
        MemoryError: there is no memory left, which says nothing of the reply.
    """
    try:
        return read(text)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a reply is a stranger's text
        return ParsedReply(None, failure=Failure("parse", _why_unreadable(error)))


def shortened(text: str) -> str:
    """Return a text as a row holds it: of more than 20,000 characters the beginning and the end."""
    if len(text) <= _LONGEST_IN_ROW:
        return text
    half = _LONGEST_IN_ROW // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[-half:]}"


def count(value: Any) -> int | None:
    """Read a number of tokens; None where the value is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def joined_text(parts: Any) -> str:
    """Return as text a list of parts (dicts), joined, less those that are a model's thoughts."""
    objects = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    shown = (part for part in objects if part.get("type", "text") == "text" and not part.get("thought"))
    return "".join(text for part in shown if isinstance(text := part.get("text"), str))
