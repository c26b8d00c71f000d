"""Model aliases: the litellm id behind a short name, with its price, limits, provider and key.

`[models.NAME]` in `judgecal.toml` adds an alias or overrides one, key by key. Any litellm id works as it is.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveFloat, PositiveInt, field_validator

from judgecal.artefacts import check_keys, read_toml, validated
from judgecal.errors import InputError, unknown_name
from judgecal.models.providers import PROVIDERS, Provider, price_row, shown_address
from judgecal.workspace import CONFIG_TABLES, Workspace

EMBEDDED = "embedded"
_EMBEDDED_ID = "judgecal/embedded"
_PER_MILLION = 1_000_000.0
Task = Literal["chat", "embeddings", "rerank"]
"""What a model is asked for: a reply to messages, vectors of texts, or the relevance of texts to a query."""


# Where the endpoint of a provider may be set in the environment, as litellm and DSPy read it.
_BASE_VARIABLES = ("_API_BASE", "_BASE_URL")
_NO_PASSWORD = "must hold no user and password: name the variable of a key with key_env"
_THINKS_FIRST = re.compile(r"openai/(o\d+|gpt-([5-9]|\d{2,})(\.\d+)?(?!.*-chat))(?![a-z0-9])")
_VERSION = re.compile(r"/v\d+[a-z0-9]*$")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One alias, resolved.

    Attributes:
        input_usd_per_1m, output_usd_per_1m: price of a million tokens; None where it is not known.
        temperature, max_tokens: sent with each call; None leaves the provider's default.
        reply_limit: tokens that the model itself can reply with at most, where the price file says so.
        transport: the way its calls take: `auto` (by the provider), `http` (our own), `dspy` (DSPy's client)
            or `litellm` (through that client).
        structured: whether a judge's reply is asked for as JSON and its schema sent along: `auto` (unless the
            server refuses the schema), `json_schema` (whatever it says) or `off` (fields behind markers).
        verdict: of a judge: the word that was `said`, or the mean that is `expected` by the chances of its
            token, where the server gives them; the embedded model knows its own.
    """

    alias: str
    id: str  # the litellm id, `provider/model`
    api_base: str | None = None  # another endpoint than the provider's own
    key_env: str | None = None  # the environment variable that holds the key; None where no key is needed
    input_usd_per_1m: float | None = None
    output_usd_per_1m: float | None = None
    context_window: int | None = None  # tokens, or None where it is not known
    max_concurrency: int | None = None  # calls in flight at most; None lets the engine decide
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float = 60.0  # seconds allowed to one call
    reply_limit: int | None = None
    transport: str = "auto"
    sampling: bool = True  # whether the model takes a temperature; the price file says where it takes none
    structured: str = "auto"
    verdict: str = "said"
    task: Task = "chat"
    usd_per_call: float = 0.0

    @property
    def provider(self) -> str:
        """The part of the id before the first slash."""
        return self.id.split("/", 1)[0]

    @property
    def known_provider(self) -> Provider:
        """What is known of the provider; nothing of most."""
        return PROVIDERS.get(self.provider, Provider())

    @property
    def address(self) -> str:
        """The model's endpoint, else its provider's; empty where neither is known."""
        return self.api_base or self.known_provider.base or ""

    @property
    def way(self) -> str:
        """`embedded`, `http`, `dspy` (whose client chooses) or `litellm` (through that client)."""
        if self.embedded:
            return EMBEDDED
        if self.task != "chat":  # vectors and relevance are asked for in OpenAI's and Cohere's way alone
            return "http"
        if self.transport != "auto":
            return self.transport
        return "http" if self.known_provider.wire else "dspy"

    @property
    def embedded(self) -> bool:
        """Whether this is the offline model inside judgecal."""
        return self.id == _EMBEDDED_ID

    @property
    def replies_in_json(self) -> bool:
        """Whether a judge's reply is asked for as JSON; the embedded model writes fields behind markers."""
        return self.structured != "off" and not self.embedded

    @property
    def weighs(self) -> bool:
        """Whether its calls ask for the chances of tokens."""
        return self.verdict == "expected" and self.task == "chat"

    @property
    def reasons(self) -> bool:
        """Whether this is one of OpenAI's models that think first, and take no temperature."""
        return bool(_THINKS_FIRST.match(self.id))

    @property
    def sent_temperature(self) -> float | None:
        """The temperature to send: none to a model that refuses every one."""
        return self.temperature if self.sampling and not self.reasons else None

    @property
    def priced(self) -> bool:
        """Whether a call's cost can be told."""
        return self.input_usd_per_1m is not None and self.output_usd_per_1m is not None

    @property
    def paid(self) -> bool:
        """Whether a call is known to cost something."""
        return self.priced and bool(self.input_usd_per_1m or self.output_usd_per_1m or self.usd_per_call)

    @property
    def longest_reply(self) -> int | None:
        """Tokens; None where neither the alias nor the price file says how long a reply may be."""
        return self.max_tokens or self.reply_limit

    @property
    def bounded(self) -> bool:
        """Whether a call's cost has an upper bound."""
        return not (self.paid and self.output_usd_per_1m) or self.longest_reply is not None

    def cost_usd(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """Return the cost in USD of a call by prompt and completion tokens; None where a price is unknown."""
        if self.input_usd_per_1m is None or self.output_usd_per_1m is None:
            return None
        if prompt_tokens is None or completion_tokens is None:
            return self.usd_per_call if self.input_usd_per_1m == self.output_usd_per_1m == 0.0 else None
        spent = prompt_tokens * self.input_usd_per_1m + completion_tokens * self.output_usd_per_1m
        return spent / _PER_MILLION + self.usd_per_call

    @property
    def key_present(self) -> bool | None:
        """Whether the key's variable is set; None where no key is needed."""
        return None if self.key_env is None else bool((os.environ.get(self.key_env) or "").strip())

    def key(self) -> str | None:
        """The key, from the environment."""
        if self.key_env is None:
            return None
        value = (os.environ.get(self.key_env) or "").strip()
        if not value:
            raise InputError(f"model {self.alias} ({self.id}) needs a key: set the variable {self.key_env}")
        if not (value.isascii() and value.isprintable()):
            # Clients name the header that they cannot send, key and all.
            raise InputError(
                f"model {self.alias}: the variable {self.key_env} holds characters that no key has"
            )
        return value

    def settings(self) -> dict[str, Any]:
        """Everything that can change a reply or its price, for fingerprints and configs; never a key.

        `structured` is what was set, whatever the server makes of it: the judge stays the same.
        """
        names = ["id", "api_base", "input_usd_per_1m", "output_usd_per_1m", "temperature", "max_tokens"]
        names += () if self.embedded else ("structured",)
        names += ("verdict",) if self.weighs else ()
        values = {name: getattr(self, name) for name in names}
        return values if self.api_base is None else {**values, "api_base": shown_address(self.api_base)}


def for_task(spec: ModelSpec, task: Task) -> ModelSpec:
    """Return a ModelSpec as that of a Task, to embed or rerank: only input and the call are paid."""
    if spec.embedded:
        raise InputError(f"model {spec.alias} cannot be asked for {task}")
    row = price_row(spec.id)
    read = spec.input_usd_per_1m
    if read is None and row:
        read = round(float(row["input_cost_per_token"]) * _PER_MILLION, 6)
    return replace(
        spec,
        task=task,
        input_usd_per_1m=read,
        output_usd_per_1m=None if read is None else 0.0,
        usd_per_call=float(row.get("input_cost_per_query", 0.0)),
        temperature=None,
        max_tokens=None,
    )


ALIASES: tuple[ModelSpec, ...] = (
    ModelSpec(EMBEDDED, _EMBEDDED_ID, input_usd_per_1m=0.0, output_usd_per_1m=0.0, verdict="expected"),
    ModelSpec("gemini-flash", "gemini/gemini-3.8-flash", temperature=0.0, max_tokens=2048),
    ModelSpec("gemini-pro", "gemini/gemini-2.5-pro", temperature=0.0, max_tokens=4096),
    ModelSpec("gpt-4o", "openai/gpt-4o", temperature=0.0, max_tokens=1024),
    ModelSpec("gpt-4o-mini", "openai/gpt-4o-mini", temperature=0.0, max_tokens=1024),
    ModelSpec("claude-haiku", "anthropic/claude-haiku-5-5", temperature=0.0, max_tokens=1024),
    ModelSpec("claude-sonnet", "anthropic/claude-sonnet-5-5", temperature=0.0, max_tokens=1024),
    *(
        ModelSpec(name, f"ollama_chat/{name}", None, None, 0.0, 0.0, 8192, temperature=0.0, max_tokens=1024)
        for name in ("mistral", "llama3", "llama3.1", "gemma2")
    ),
)
"""The aliases that come with judgecal; an id names a version and never ends in `-latest`."""


class _AliasTable(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    id: str
    api_base: str | None = None
    key_env: str | None = None
    input_usd_per_1m: NonNegativeFloat | None = None
    output_usd_per_1m: NonNegativeFloat | None = None
    context_window: PositiveInt | None = None
    max_concurrency: PositiveInt | None = None
    temperature: float | None = None
    max_tokens: PositiveInt | None = None
    timeout: PositiveFloat | None = None
    transport: Literal["auto", "http", "dspy", "litellm"] | None = None
    structured: Literal["auto", "json_schema", "off"] | None = None
    verdict: Literal["said", "expected"] | None = None

    @field_validator("id")
    @classmethod
    def _names_provider_and_model(cls, value: str) -> str:
        if not all(value.partition("/")):
            raise ValueError(f"id must be provider/model such as openai/gpt-4o, found {value!r}")
        return value

    @field_validator("api_base")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        try:
            parts = urllib.parse.urlsplit(value)
            named, secret = parts.hostname, parts.username or parts.password
        except ValueError:
            parts, named, secret = None, None, None
        if secret or "@" in value:  # which is not quoted
            raise ValueError(f"api_base {_NO_PASSWORD}")
        if not (parts and named and parts.scheme in ("http", "https")):
            raise ValueError(f"api_base must be an http or https address, found {shown_address(value)!r}")
        return value


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The aliases of a workspace: those of `judgecal.toml`, then those that come with judgecal."""

    specs: Mapping[str, ModelSpec]
    n_own: int = 0  # of `judgecal.toml`

    def resolve(self, name: str) -> ModelSpec:
        """Return the ModelSpec of a name: an alias or a litellm id (`provider/model`)."""
        name = EMBEDDED if name == _EMBEDDED_ID else name
        if name in self.specs:
            return self.specs[name]
        if all(name.partition("/")):
            return _completed(ModelSpec(name, name))
        raise unknown_name("model", name, list(self.specs))


def load_catalogue(workspace: Workspace) -> Catalogue:
    """Read the model aliases of a Workspace as a Catalogue."""
    built_in, own = {spec.alias: spec for spec in ALIASES}, dict[str, ModelSpec]()
    if workspace.config_file.exists():
        for alias, table in _alias_tables(workspace.config_file, built_in).items():
            spec = built_in.get(alias, ModelSpec(alias, ""))
            if table.get("id", spec.id) != spec.id:
                # Another model: price, window and key are its own, the sampling settings stay.
                spec = ModelSpec(alias, "", temperature=spec.temperature, max_tokens=spec.max_tokens)
            own[alias] = replace(spec, **table)
    specs = own | {alias: spec for alias, spec in built_in.items() if alias not in own}
    return Catalogue({alias: _completed(spec) for alias, spec in specs.items()}, len(own))


def _alias_tables(path: Path, builtin: Mapping[str, ModelSpec]) -> dict[str, dict[str, Any]]:
    """The keys that each alias sets; one that comes with judgecal may leave out its id."""
    config = read_toml(path)
    problems = check_keys(config, CONFIG_TABLES, str(path))
    tables = config.get("models", {})
    if not isinstance(tables, dict):
        raise InputError([*problems, f"{path}: models must be tables: [models.NAME]"])
    read = {}
    for alias, table in tables.items():
        known = {"id": builtin[alias].id} if alias in builtin else {}
        where = f"{path}: [models.{alias}]"
        if not isinstance(table, dict):
            problems.append(f"{where}: must be a table")
            continue
        try:
            read[alias] = validated(_AliasTable, {**known, **table}, where).model_dump(exclude_unset=True)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return read


def _completed(spec: ModelSpec) -> ModelSpec:
    """Fill what the alias leaves open: the price and the window from the price file, the key's variable."""
    row = price_row(spec.id)
    updates: dict[str, Any] = {}
    for side in ("input", "output") if "output_cost_per_token" in row else ():
        if getattr(spec, f"{side}_usd_per_1m") is None:
            updates[f"{side}_usd_per_1m"] = round(float(row[f"{side}_cost_per_token"]) * _PER_MILLION, 6)
    if spec.context_window is None and row.get("max_input_tokens"):
        updates["context_window"] = int(row["max_input_tokens"])
    if row.get("max_output_tokens"):
        updates["reply_limit"] = int(row["max_output_tokens"])
    if row.get("supports_sampling_params") is False:
        updates["sampling"] = False
    variable = spec.known_provider.key_env
    if spec.key_env is None and variable is not None:
        # Another endpoint is sent no key of the machine, unless only a gateway to the provider can be meant,
        # and then the key where there is one.
        present = spec.known_provider.key_follows and (os.environ.get(variable) or "").strip()
        updates["key_env"] = variable if spec.api_base is None or present else None
    if spec.api_base is None:
        updates["api_base"] = _base_in_environment(spec.provider)
    return replace(spec, **updates)


def _base_in_environment(provider: str) -> str | None:
    """A gateway named by the environment: the provider's public endpoint must not get what is for it."""
    prefix = "OLLAMA" if provider == "ollama_chat" else provider.upper()
    for variable in (prefix + end for end in _BASE_VARIABLES):
        base = (os.environ.get(variable) or "").strip()
        if "@" in base:
            raise InputError(f"the variable {variable} {_NO_PASSWORD}")
        if base:
            return base
    return None


def with_version(base: str, version: str) -> str:
    """Return a base address that ends in a version: its own, or the given version."""
    base = base.rstrip("/")
    return base if _VERSION.search(base) else f"{base}/{version}"
