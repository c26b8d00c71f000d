"""A server's error as the engine's: which kind it is, whether a retry can help, and how long to wait for it.

What the fields of an error say (its code, type, status, reason) is trusted before its prose, which may echo
the text that was sent: only prose that opens with a refusal of the key or the account can stop a run.
"""

from __future__ import annotations

import contextlib
import datetime
import email.utils
import json
import math
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgecal.engine.calls import CallFailed
from judgecal.engine.transport.redaction import one_line, secrets_of
from judgecal.errors import AuthError
from judgecal.models import ModelSpec
from judgecal.records import ErrorKind

# The last is Google's word for a country or an account that it does not serve.
_KEY_WORDS = frozenset((
    "invalid_api_key", "api_key_invalid", "authentication_error", "insufficient_quota",
    "exceeded_current_quota_error", "billing_error", "billing_not_active", "billing_hard_limit_reached",
    "account_deactivated", "organization_restricted", "failed_precondition",
))  # fmt: skip
_KEY_PROSE = re.compile(
    r"(your )?(credit balance is too low|insufficient (balance|credits)|(incorrect|invalid) api key"
    r"|api key (not valid|not found|expired|is (invalid|expired)))",
    re.IGNORECASE,
)
_MODEL_WORDS = frozenset(("model_not_found", "invalid_model", "model_not_available"))
_LONG_WORDS = frozenset(
    ("context_length_exceeded", "exceed_context_size_error", "request_too_large", "string_above_max_length")
)
_UNFIT_WORDS = frozenset(("json_validate_failed",))  # the reply did not keep to the schema, and is not sent
_LONG_PROSE = re.compile(
    r"maximum (context|prompt) length|context (length|window|size|limit)[^.]{0,40}exceed"
    r"|exceeds? (the )?(context|available context|model'?s? context)|exceeds the maximum number of tokens"
    r"|(prompt|input) is too long|too large for model|longer than the model's context|request too large",
    re.IGNORECASE,
)
# Advice of DSPy's client on its own arguments, and its innards.
_NOT_FOR_OUR_USER = ("\n  To fix:", "\nTraceback (most recent call last)")
# What litellm says where nothing was sent and no other call can do better.
_HOPELESS = ("Missing credentials", "LLM Provider NOT provided")
_OVERLOADED = (503, 529)
REDIRECTS = (301, 302, 303, 307, 308)
_NO_CALL_CAN = (*REDIRECTS, 405, 407, 410)
_ADDRESS = "(is api_base right?)"


@dataclass(frozen=True, slots=True)
class _StatedError:
    """An error as its server put it: prose, words of its fields, the wait it asks for, a moderator's flag."""

    text: str
    words: frozenset[str] = frozenset()
    wait: float | None = None
    flagged: bool = False


def at(value: Any, *path: str | int) -> Any:
    """Return what a value of unsure shape holds at a path, the keys and positions behind it; else None."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and len(value) > step else None
    return value


def key_refused(spec: ModelSpec, text: str) -> AuthError:
    """The error of a key or an account that the provider does not serve."""
    return AuthError(f"model {spec.alias} ({spec.id}): the provider refused the key or the account: {text}")


def no_such_model(spec: ModelSpec, text: str) -> AuthError:
    """The error of a model that the provider does not have."""
    return AuthError(f"model {spec.alias}: the provider has no model {spec.id}: {text}")


def cannot_be_called(spec: ModelSpec, text: str) -> AuthError:
    """The error of a model that no call can reach as it is set up."""
    return AuthError(f"model {spec.alias} ({spec.id}) cannot be called: {text}")


def redirected(spec: ModelSpec, location: str | None, secrets: Sequence[str]) -> AuthError:
    """From a ModelSpec, a location or None that its server redirects to, and secrets, return an AuthError.

    `location` is where, None where the client does not say.
    """
    host = "another address"
    with contextlib.suppress(ValueError):
        if location is not None:
            host = urllib.parse.urlsplit(location).netloc.rpartition("@")[2] or "another path of its own"
    return cannot_be_called(
        spec, one_line(f"its server redirects to {host}, which is not followed {_ADDRESS}", secrets)
    )


def error_of(
    spec: ModelSpec, *, status: int, headers: Mapping[str, str], body: bytes, secrets: Sequence[str]
) -> CallFailed | AuthError:
    """From a ModelSpec, status, headers, body in bytes, and secrets, return the CallFailed or AuthError."""
    if status in REDIRECTS and (location := headers.get("location")):
        return redirected(spec, location, secrets)
    stated = None
    with contextlib.suppress(ValueError, RecursionError):
        data = json.loads(body)
        if isinstance(data, list) and data:
            data = data[0]
        stated = _stated(data) if isinstance(data, dict) else None
    return _judged(spec, status, stated or _StatedError(excerpt(body, ())), headers, secrets)


def error_inside(
    spec: ModelSpec, *, data: Mapping[str, Any], secrets: Sequence[str]
) -> CallFailed | AuthError | None:
    """From a ModelSpec, an answer's JSON data and secrets, return its CallFailed or AuthError, or None."""
    inner = data.get("error") or at(data, "choices", 0, "error")
    if not inner:
        return None
    stated = _stated(data if data.get("error") else {"error": inner})
    code = at(inner, "code")
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return _judged(spec, status, stated, {}, secrets)


def error_of_dspy(spec: ModelSpec, error: Exception) -> CallFailed | AuthError:
    """From a ModelSpec and an exception of DSPy's client, return a CallFailed or AuthError, by its class."""
    from dspy.utils import exceptions as errors

    text = str(error)
    for tail in _NOT_FOR_OUR_USER:
        text = text.partition(tail)[0]
    text = one_line(text, secrets_of(spec))
    if isinstance(error, (errors.LMAuthError, errors.LMBillingError)):
        return key_refused(spec, text)
    if isinstance(error, errors.LMConfigurationError) or any(phrase in text for phrase in _HOPELESS):
        return cannot_be_called(spec, text)
    if isinstance(error, errors.LMUnsupportedModelError):
        return no_such_model(spec, text)
    kinds: tuple[tuple[Any, ErrorKind, bool], ...] = (
        (errors.ContextWindowExceededError, "context_length", False),
        (errors.LMRateLimitError, "rate_limit", True),
        (errors.LMTimeoutError, "timeout", True),
        (errors.LMServerError, "server", True),
        ((errors.LMTransportError, errors.LMLockTimeoutError), "transport", True),
        ((errors.LMInvalidRequestError, errors.LMUnsupportedFeatureError), "refused", False),
        ((errors.LMProviderError, errors.LMUnexpectedError), "server", True),
    )
    for classes, kind, retry in kinds:
        if isinstance(error, classes):
            wait = getattr(error, "retry_after", None) if kind in ("rate_limit", "server") else None
            return CallFailed(kind, text, retry=retry, retry_after=wait)
    return CallFailed("refused", text, retry=False)


def excerpt(body: bytes, secrets: Sequence[str]) -> str:
    """Return as text a body (bytes) that is not JSON, without its tags and without the secrets given."""
    text = body.decode("utf-8", "replace")
    if text.lstrip().startswith("<"):
        text = re.sub(r"<[^<>]*>", " ", text)
    return one_line(text, secrets)


def _judged(
    spec: ModelSpec, status: int, stated: _StatedError, headers: Mapping[str, str], secrets: Sequence[str]
) -> CallFailed | AuthError:
    text = one_line(f"HTTP {status}: {stated.text or 'no reason given'}", secrets)
    if not stated.flagged:  # else this text was held back by a moderator, and no other
        refused = stated.words & _KEY_WORDS or _KEY_PROSE.match(stated.text)
        if status in (401, 402, 403) or (refused and status < 500):
            return key_refused(spec, text)
        if stated.words & _MODEL_WORDS or (status == 404 and "model" in stated.text.lower()):
            return no_such_model(spec, text)
        if status == 404 or status in _NO_CALL_CAN:
            return cannot_be_called(spec, f"{text} {_ADDRESS}")
    wait = asked_wait(headers)
    wait = stated.wait if wait is None else wait
    if status == 413 or stated.words & _LONG_WORDS or _LONG_PROSE.search(stated.text):
        return CallFailed("context_length", text, retry=False)
    if stated.words & _UNFIT_WORDS:
        return CallFailed("parse", text, retry=False, billed=True)
    if status == 408:
        return CallFailed("timeout", text, retry=True, retry_after=wait)
    if status == 429:
        return CallFailed("rate_limit", text, retry=True, retry_after=wait)
    if status >= 500:
        crowded = status in _OVERLOADED or wait is not None
        return CallFailed("server", text, retry=True, retry_after=wait, overloaded=crowded)
    return CallFailed("refused", text, retry=False)


def _stated(data: Mapping[str, Any]) -> _StatedError:
    """The shapes in use: an `error` object or text, or its fields at the top, or a `detail`."""
    error = data.get("error")
    inner = error if isinstance(error, dict) else data
    prose = [error, inner.get("message"), inner.get("detail"), at(inner, "metadata", "raw")]
    text = ": ".join(part for part in prose if isinstance(part, str) and part)
    details = inner.get("details")
    details = details if isinstance(details, list) else []
    named = [inner.get("code"), inner.get("type"), inner.get("status"), *(at(d, "reason") for d in details)]
    waits = [_seconds(str(wait).removesuffix("s")) for d in details if (wait := at(d, "retryDelay"))]
    return _StatedError(
        text or json.dumps(data),
        frozenset(word.lower() for word in named if isinstance(word, str)),
        next(iter(waits), None),
        flagged=bool(at(inner, "metadata", "reasons") or at(inner, "metadata", "flagged_input")),
    )


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Return the wait in seconds that headers (dict) state as a number or a date; None where they do not."""
    date = headers.get("retry-after")
    wait = _seconds(date)
    if wait is not None or not date:
        return wait
    try:
        then = email.utils.parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=datetime.UTC)
    return max(0.0, (then - datetime.datetime.now(datetime.UTC)).total_seconds())


def _seconds(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0.0 else None
