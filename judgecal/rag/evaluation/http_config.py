"""How a system over HTTP is spoken to, as its table in the configuration has it.

    url = "https://rag.example/query"
    headers = { Authorization = "Bearer ${RAG_KEY}" }   # the name of an environment variable, never its value
    body = { query = "{question}" }
    answer = "choices[0].message.content"                # JMESPath
    contexts = "sources[].{text: passage, document_id: file}"
    token = "choices[0].delta.content"                   # of a reply that streams: a piece of the answer in
    one event

    [setup]
    steps = [
      { name = "create", url = ".../collections", capture = { collection = "id" } },
      { name = "ingest", url = ".../collections/{collection}", each = "document", body = { text = "{text}" },
        capture = { sent = "n_chunks" } },
      { name = "wait", method = "GET", url = ".../collections/{collection}",
        until = "reply.stored >= sum(captured.sent)", time_limit = 600 },
    ]
    teardown = [{ name = "delete", method = "DELETE", url = ".../collections/{collection}" }]

`{question}`, what earlier steps captured, and in a step with `each = "document"` `{document_id}`, `{title}`
and `{text}` are filled in once, as values: what a question says is never read as a template, JSON or a part
of an address.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import jmespath
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from yarl import URL

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PLACE = re.compile(r"\{(\w+)\}")
_SECRET_HEADER = re.compile(r"authorization|cookie|key|token|secret|password", re.IGNORECASE)
DOCUMENT_NAMES = ("document_id", "title", "text")


def _is_path(text: str) -> str:
    try:
        jmespath.compile(text)
    except (jmespath.exceptions.JMESPathError, ValueError) as error:
        said = " ".join(str(error).split())[:120]
        raise ValueError(
            f"{text!r} is no JMESPath ({said}): write it as in choices[0].message.content"
        ) from None
    return text


def _is_address(text: str) -> str:
    """The message does not quote the address, as it may hold a password."""
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("it is not an http or https address")
    if "{" in text.split("://", 1)[1].split("/", 1)[0]:
        raise ValueError("a host cannot be filled in: write it out")
    if url.user or url.password:
        raise ValueError("it holds a user or a password: send them in a header, with ${NAME} for the secret")
    return text


def _headers_hold_no_secret(headers: dict[str, str]) -> dict[str, str]:
    """The message does not quote the value."""
    for name, value in headers.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or re.search(r"[\r\n\0]", value):
            raise ValueError(f"{name!r} is no header: a name of letters and hyphens, and a value of one line")
        if _SECRET_HEADER.search(name) and not _VARIABLE.search(value):
            raise ValueError(
                f"the value of {name} would stand in the file: write ${{NAME}} for a variable's value"
            )
    return headers


Path = Annotated[str, AfterValidator(_is_path)]
"""A JMESPath expression."""
Address = Annotated[str, AfterValidator(_is_address)]
Headers = Annotated[dict[str, str], AfterValidator(_headers_hold_no_secret)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
_TABLE = ConfigDict(extra="forbid", strict=True)


class StepConfig(BaseModel):
    """One step before the first question, or after the last.

    Attributes:
        name: as messages say it.
        headers: None for those of the system.
        body: sent as JSON; None for none.
        each: once a document, one after the other; what is captured is a list then, a value a document.
        capture: names for what the reply holds at a JMESPath, for later steps and the question.
        until: a JMESPath over `{reply, captured}` that must become true; the step is repeated until then.
        every: seconds between two of these tries.
        time_limit: seconds for the whole step.
    """

    model_config = _TABLE
    name: str
    url: Address
    method: Method = "POST"
    headers: Headers | None = None
    body: Any = None
    each: Literal["document"] | None = None
    capture: dict[str, Path] = {}
    until: Path | None = None
    every: Seconds = 1.0
    time_limit: Seconds = 300.0


class SetupConfig(BaseModel):
    """What is done before the first question that is asked, and after the last, however the run ends."""

    model_config = _TABLE
    steps: list[StepConfig] = []
    teardown: list[StepConfig] = []

    @property
    def captured(self) -> list[str]:
        """Names that the steps give values to."""
        return [name for step in self.steps for name in step.capture]


class HttpConfig(BaseModel):
    """The table of a system over HTTP; at the top of this module is one.

    Attributes:
        headers: `${NAME}` is the value of an environment variable.
        body: sent as JSON, `{question}` in its texts; None for none.
        answer: where a reply of JSON holds the answer, a text.
        contexts: where it holds what was answered from: a list of texts or of `{text, document_id?, score?}`;
            None for a system that shows none.
        token: where an event of a stream (server-sent events, or JSON lines) holds a piece of the answer.
        timeout: seconds for one question, from the request to the whole answer.
        concurrency: questions at once.
        retry_dropped: send a request again whose connection was lost after it was sent. Without it that is
            done for GET alone, as another request may have been answered, and paid for, already.
    """

    model_config = _TABLE
    url: Address
    method: Method = "POST"
    headers: Headers = {}
    body: Any = None
    answer: Path | None = None
    contexts: Path | None = None
    token: Path | None = None
    timeout: Seconds = 60.0
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 4
    retry_dropped: bool = False
    setup: SetupConfig = SetupConfig()

    def variables(self) -> tuple[str, ...]:
        """Environment variables that headers name, of the steps too."""
        steps = [*self.setup.steps, *self.setup.teardown]
        tables = [self.headers, *(step.headers or {} for step in steps)]
        found = [name for headers in tables for text in headers.values() for name in _VARIABLE.findall(text)]
        return tuple(dict.fromkeys(found))

    def problems(self) -> Iterator[str]:
        """What keeps it from being asked, one message each; no variable's value stands in one."""
        if self.answer is None and self.token is None:
            yield "neither answer nor token: say where in the reply the answer stands, as a JMESPath"
        if "question" not in names_in([self.url, self.body]):
            yield "{question} stands neither in body nor in url, so that every request would be the same"
        if "question" in names_in(self.url.partition("?")[0]):
            yield "url: {question} stands in the path, where it may lead elsewhere: put it behind a ?, or in body"
        for name in self.variables():
            if not os.environ.get(name, "").strip():
                yield f"the environment variable {name} is not set, which headers ask for: set it"
        known: set[str] = set()
        for step in self.setup.steps:
            later = (set(self.setup.captured) - known) & names_in([step.url, step.body])
            for name in sorted(later):
                yield f"setup step {step.name}: {{{name}}} is captured by no earlier step"
            known |= step.capture.keys()


def resolved(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers with the values of the variables that they name."""
    return {
        name: _VARIABLE.sub(lambda found: os.environ.get(found[1], "").strip(), value)
        for name, value in headers.items()
    }


def secrets_in(config: HttpConfig) -> tuple[str, ...]:
    """Values of the variables that headers name, the longest first."""
    found = {os.environ.get(name, "").strip() for name in config.variables()}
    return tuple(sorted((value for value in found if len(value) >= 8), key=len, reverse=True))


def names_in(template: Any) -> set[str]:
    """Names in braces in the texts of a template."""
    if isinstance(template, str):
        return set(_PLACE.findall(template))
    if isinstance(template, Mapping):
        return {name for part in template.values() for name in names_in(part)}
    return {name for part in template for name in names_in(part)} if isinstance(template, list) else set()


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """A template's JSON with values in their places; a text that is nothing but a place becomes the value
    itself.

    What stands in a value is not looked at again, and braces around other words stay as they are.
    """
    if isinstance(template, Mapping):
        return {key: filled(part, values) for key, part in template.items()}
    if isinstance(template, list):
        return [filled(part, values) for part in template]
    if not isinstance(template, str):
        return template
    whole = _PLACE.fullmatch(template)
    if whole and whole[1] in values:
        return values[whole[1]]
    return _PLACE.sub(lambda found: str(values.get(found[1], found[0])), template)


def address(template: str, values: Mapping[str, Any]) -> URL:
    """An address with values in their places, each quoted, so that none adds a part or a parameter."""
    quoted = {
        name: urllib.parse.quote(str(value), safe="", errors="replace") for name, value in values.items()
    }
    return URL(_PLACE.sub(lambda found: quoted.get(found[1], found[0]), template))
