"""The embedded model as a DSPy engine, for `dspy.LM("judgecal/embedded", engine=..., cache=False)`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from dspy.clients.engines.base import validate_request
from dspy.lm15 import Message, Request, Response, TextPart, Usage, response_to_events

from judgecal.models.embedded import VERSION, reply

if TYPE_CHECKING:
    from dspy._vendor.lm15.types import StreamEvent  # dspy.lm15 does not export it

_CHARACTERS_PER_TOKEN = 4  # nobody pays for these, they only keep the books in the usual unit


def _respond(request: Request) -> Response:
    validate_request(request)
    system = request.system or ""
    if not isinstance(system, str):
        system = "".join(part.text for part in system if isinstance(part, TextPart))
    turns = [{"role": message.role, "content": message.text or ""} for message in request.messages]
    messages = [{"role": "system", "content": system}, *turns]
    text = reply(messages)
    read = -(-sum(len(message["content"]) for message in messages) // _CHARACTERS_PER_TOKEN)
    written = -(-len(text) // _CHARACTERS_PER_TOKEN)
    return Response(
        id=None,
        model=f"judgecal/embedded-{VERSION}",
        message=Message.assistant(text),
        finish_reason="stop",
        usage=Usage(input_tokens=read, output_tokens=written, total_tokens=read + written),
    )


class EmbeddedEngine:
    """A synchronous DSPy engine. It holds no state and may be shared between threads and LMs."""

    def complete(self, request: Request) -> Response:
        """Answer one request by the embedded model."""
        return _respond(request)

    def stream(self, request: Request) -> Iterator[StreamEvent]:
        """The answer to one request as stream events, all at once."""
        return iter(response_to_events(_respond(request)))

    def close(self) -> None:
        """Nothing is open."""

    def dump_state(self) -> dict[str, Any]:
        """The version, for the record: loading takes the version that is installed."""
        return {"version": VERSION}

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> EmbeddedEngine:
        """A new engine; the saved version is not a condition."""
        return cls()


class AsyncEmbeddedEngine(EmbeddedEngine):
    """The same for asynchronous calls; a reply takes less than a millisecond, so the event loop makes it."""

    async def complete(self, request: Request) -> Response:
        """Answer one request by the embedded model."""
        return _respond(request)

    async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:  # type: ignore[override]
        """The answer to one request as stream events, all at once."""
        for event in response_to_events(_respond(request)):
            yield event

    async def aclose(self) -> None:
        """Nothing is open."""
