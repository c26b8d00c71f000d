"""Model aliases: the litellm id behind a short name, its price, its limits, and the key that it needs.

Prices come from the price file inside the installed litellm, read as a file: importing litellm takes seconds.
`[models.NAME]` in `judgecal.toml` adds an alias or overrides one, key by key. Any litellm id works as it is.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, unknown_name
from judgecal.models.providers import address_problem, base_in_environment, key_variable, thinks_first
from judgecal.workspace import Workspace, check_keys, read_toml

__all__ = ["ALIASES", "EMBEDDED", "TRANSPORTS", "Catalogue", "ModelSpec", "load_catalogue"]

EMBEDDED = "embedded"
_EMBEDDED_ID = "judgecal/embedded"
_OLLAMA_CONTEXT = 8192
_PER_MILLION = 1_000_000.0

TRANSPORTS = ("auto", "http", "dspy", "litellm")
"""What `transport` may say: our own HTTP, DSPy's client, or litellm through it; `auto` goes by the provider."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One alias, resolved.

    Attributes:
        alias: the name in a judge's string.
        id: the litellm id, `provider/model`.
        api_base: another endpoint than the provider's own.
        key_env: the environment variable that holds the key; None where no key is needed.
        input_usd_per_1m, output_usd_per_1m: price of a million tokens; None where it is not known.
        context_window: tokens, or None where it is not known.
        max_concurrency: calls in flight at most; None lets the engine decide.
        temperature, max_tokens: sent with each call; None leaves the provider's default.
        timeout: seconds allowed to one call.
        reply_limit: tokens that the model itself can reply with at most, where the price file says so.
        transport: the way its calls take, one of `TRANSPORTS`.
        sampling: whether the model takes a temperature; the price file says where it takes none.
    """

    alias: str
    id: str
    api_base: str | None = None
    key_env: str | None = None
    input_usd_per_1m: float | None = None
    output_usd_per_1m: float | None = None
    context_window: int | None = None
    max_concurrency: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float = 60.0
    reply_limit: int | None = None
    transport: str = "auto"
    sampling: bool = True

    @property
    def provider(self) -> str:
        """The part of the id before the first slash."""
        return self.id.split("/", 1)[0]

    @property
    def embedded(self) -> bool:
        """Whether this is the offline model inside judgecal."""
        return self.id == _EMBEDDED_ID

    @property
    def reasons(self) -> bool:
        """Whether this is one of OpenAI's own models that think before they reply."""
        return thinks_first(self.id)

    @property
    def sent_temperature(self) -> float | None:
        """The temperature to send: none to a model that refuses every one."""
        return self.temperature if self.sampling and not self.reasons else None

    @property
    def priced(self) -> bool:
        """Whether a call's cost can be told."""
        return self.input_usd_per_1m is not None and self.output_usd_per_1m is not None

    def cost_usd(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """Cost of one call in US dollars, None where the price or the tokens are not known."""
        if self.input_usd_per_1m is None or self.output_usd_per_1m is None:
            return None
        if prompt_tokens is None or completion_tokens is None:
            return 0.0 if self.input_usd_per_1m == self.output_usd_per_1m == 0.0 else None
        spent = prompt_tokens * self.input_usd_per_1m + completion_tokens * self.output_usd_per_1m
        return spent / _PER_MILLION

    @property
    def key_present(self) -> bool | None:
        """Whether the key's variable is set; None where no key is needed."""
        return None if self.key_env is None else bool((os.environ.get(self.key_env) or "").strip())

    def key(self) -> str | None:
        """The key, from the environment.

        Raises:
            InputError: the variable is not set or holds no key; the message names it.
        """
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
        """Everything that can change a reply or its price, for fingerprints and configs; never a key."""
        kept = ("id", "api_base", "input_usd_per_1m", "output_usd_per_1m", "temperature", "max_tokens")
        return {name: getattr(self, name) for name in kept}


ALIASES: tuple[ModelSpec, ...] = (
    ModelSpec(EMBEDDED, _EMBEDDED_ID, input_usd_per_1m=0.0, output_usd_per_1m=0.0),
    ModelSpec("gemini-flash", "gemini/gemini-3.8-flash", temperature=0.0, max_tokens=4096),
    ModelSpec("gemini-pro", "gemini/gemini-2.5-pro", temperature=0.0, max_tokens=8192),
    ModelSpec("gpt-4o", "openai/gpt-4o", temperature=0.0, max_tokens=1024),
    ModelSpec("gpt-4o-mini", "openai/gpt-4o-mini", temperature=0.0, max_tokens=1024),
    ModelSpec("claude-haiku", "anthropic/claude-haiku-5-5", temperature=0.0, max_tokens=4096),
    ModelSpec("claude-sonnet", "anthropic/claude-sonnet-5-5", temperature=0.0, max_tokens=4096),
    *(
        ModelSpec(
            name,
            f"ollama_chat/{name}",
            input_usd_per_1m=0.0,
            output_usd_per_1m=0.0,
            context_window=_OLLAMA_CONTEXT,
            temperature=0.0,
            max_tokens=1024,
        )
        for name in ("mistral", "llama3", "llama3.1", "gemma2")
    ),
)
"""The aliases that come with judgecal; an id names a version and never ends in `-latest`."""

_TOML_KEYS: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "api_base": (str,),
    "key_env": (str,),
    "input_usd_per_1m": (int, float),
    "output_usd_per_1m": (int, float),
    "context_window": (int,),
    "max_concurrency": (int,),
    "temperature": (int, float),
    "max_tokens": (int,),
    "timeout": (int, float),
    "transport": (str,),
}
_POSITIVE = ("context_window", "max_concurrency", "max_tokens", "timeout")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The aliases of a workspace: those that come with judgecal, with `judgecal.toml` laid over them."""

    specs: Mapping[str, ModelSpec]

    def resolve(self, name: str) -> ModelSpec:
        """The model of an alias or of a litellm id (`provider/model`).

        Raises:
            InputError: it is neither; the message names the nearest aliases.
        """
        name = EMBEDDED if name == _EMBEDDED_ID else name
        if name in self.specs:
            return self.specs[name]
        provider, slash, model = name.partition("/")
        if slash and provider and model:
            return _completed(ModelSpec(name, name))
        raise unknown_name("model", name, list(self.specs))


def load_catalogue(workspace: Workspace) -> Catalogue:
    """Read the aliases of a workspace.

    Raises:
        InputError: `judgecal.toml` cannot be read, or holds an unknown key or a wrong value: all are listed.
    """
    specs = {spec.alias: spec for spec in ALIASES}
    if workspace.config_file.exists():
        for alias, table in _model_tables(workspace.config_file).items():
            specs[alias] = _overridden(specs.get(alias, ModelSpec(alias, "")), table)
    return Catalogue({alias: _completed(spec) for alias, spec in specs.items()})


def _overridden(spec: ModelSpec, table: Mapping[str, Any]) -> ModelSpec:
    if table.get("id", spec.id) != spec.id:
        # Another model: price, window and key are its own, the sampling settings stay.
        spec = ModelSpec(spec.alias, "", temperature=spec.temperature, max_tokens=spec.max_tokens)
    return replace(spec, **table)


def _model_tables(path: Path) -> dict[str, dict[str, Any]]:
    config = read_toml(path)
    problems = check_keys(config, ("schema", "models"), str(path))
    tables = config.get("models", {})
    if not isinstance(tables, dict):
        raise InputError([*problems, f"{path}: models must be tables: [models.NAME]"])
    builtin = {spec.alias for spec in ALIASES}
    for alias, table in tables.items():
        problems += _table_problems(table, f"{path}: [models.{alias}]", needs_id=alias not in builtin)
    if problems:
        raise InputError(problems)
    return tables


def _table_problems(table: Any, where: str, *, needs_id: bool) -> list[str]:
    if not isinstance(table, dict):
        return [f"{where}: must be a table"]
    problems = check_keys(table, _TOML_KEYS, where)
    if needs_id and "id" not in table:
        problems.append(f"{where}: id is missing: a litellm id such as openai/gpt-4o")
    for key, value in table.items():
        types = _TOML_KEYS.get(key)
        if types and (not isinstance(value, types) or isinstance(value, bool)):
            problems.append(f"{where}: {key} must be {types[-1].__name__}, found {value!r}")
        elif isinstance(value, float) and not math.isfinite(value):
            problems.append(f"{where}: {key} must be finite, found {value!r}")
        elif (key in _POSITIVE and value <= 0) or (key.endswith("_1m") and value < 0):
            problems.append(f"{where}: {key} must be positive, found {value!r}")
        elif key == "id" and not all(value.partition("/")):
            problems.append(f"{where}: id must be provider/model, found {value!r}")
        elif key == "transport" and value not in TRANSPORTS:
            problems.append(f"{where}: {unknown_name('transport', value, TRANSPORTS)}")
        elif key == "api_base" and (problem := address_problem(value)):
            problems.append(f"{where}: api_base {problem}")
    return problems


def _completed(spec: ModelSpec) -> ModelSpec:
    """Fill what the alias leaves open: the price and the window from the price file, the key's variable."""
    found = _price_row(spec.id)
    updates: dict[str, Any] = {}
    for side in ("input", "output") if "output_cost_per_token" in found else ():
        if getattr(spec, f"{side}_usd_per_1m") is None:
            updates[f"{side}_usd_per_1m"] = _per_million(found[f"{side}_cost_per_token"])
    if spec.context_window is None and found.get("max_input_tokens"):
        updates["context_window"] = int(found["max_input_tokens"])
    if found.get("max_output_tokens"):
        updates["reply_limit"] = int(found["max_output_tokens"])
    if found.get("supports_sampling_params") is False:
        updates["sampling"] = False
    if spec.key_env is None:
        updates["key_env"] = key_variable(spec.provider, spec.api_base)
    if spec.api_base is None:
        updates["api_base"] = base_in_environment(spec.provider)
    return replace(spec, **updates)


def _per_million(cost_per_token: float) -> float:
    return round(float(cost_per_token) * _PER_MILLION, 6)


def _price_row(model_id: str) -> Mapping[str, Any]:
    """The price file's row of a litellm id; it lists some providers' models without the provider."""
    rows = _price_file()
    provider, _, model = model_id.partition("/")
    row = rows.get(model_id) or rows.get(model, {})
    same = row.get("litellm_provider", provider) == provider
    return row if same and "input_cost_per_token" in row else {}


@cache
def _price_file() -> Mapping[str, Any]:
    found = importlib.util.find_spec("litellm")
    if found is None or found.origin is None:
        raise InputError("litellm is not installed: reinstall judgecal")
    path = Path(found.origin).parent / "model_prices_and_context_window_backup.json"
    rows: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return rows
