"""Texts from servers and clients, made fit for a row: one line, not endless, without an echoed secret.

A secret is taken out in the forms in which a server has it at hand: as it is, as a URL or a page holds it,
and in base64 wherever it stands in the encoded bytes; each form whole, or at least half of it in one piece.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import html
import os
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import replace

from judgecal.engine.calls import Reply
from judgecal.models import PROVIDERS, ModelSpec
from judgecal.models.providers import hidden_parts

_LONGEST = 500
_SHORTEST_SECRET = 8  # characters; a shorter one stands in plain words, which would be torn apart
_SHORTEST_UNNAMED = 16  # of a variable that nobody named as a key's
_STARS = "***"
_NAMED_LIKE_A_SECRET = re.compile(r"(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD)$|_PWD$", re.IGNORECASE)


def secrets_of(spec: ModelSpec) -> tuple[str, ...]:
    """Return the secrets of a ModelSpec, a tuple: its key, its address's, other keys of the environment.

    Those are what the variables of all known providers hold, and longer values of variables that are named
    like a secret (clients read some of them by themselves, such as AWS_SECRET_ACCESS_KEY), and the password
    of a proxy.
    """
    named = {spec.key_env, *(provider.key_env for provider in PROVIDERS.values())}
    values = [*hidden_parts(spec.address)]
    values += [os.environ.get(name, "") for name in sorted(filter(None, named))]
    for name, value in os.environ.items():
        if _NAMED_LIKE_A_SECRET.search(name) and len(value) >= _SHORTEST_UNNAMED and len(value.split()) == 1:
            values.append(value)
    for proxy in urllib.request.getproxies_environment().values():
        with contextlib.suppress(ValueError):  # no address: whoever wants to use it says so
            password = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}").password or ""
            values += [password, urllib.parse.unquote(password)]
    secrets = (value.strip() for value in values)
    return tuple(dict.fromkeys(secret for secret in secrets if len(secret) >= _SHORTEST_SECRET))


def redacted(text: str, secrets: Sequence[str]) -> str:
    """Return a text with stars in place of each of the secrets, or a half, of at least eight characters."""
    for secret in secrets:
        for form, pieces in _forms(secret):
            for piece in pieces:
                if piece in text:
                    text = _without(text, form)
                    break
    return text


def sent_secrets(spec: ModelSpec) -> tuple[str, ...]:
    """Return the secrets that the server of a ModelSpec receives, and so can send back, a tuple."""
    if spec.way != "http":
        return secrets_of(spec)  # other clients read the environment by themselves
    sent = [(os.environ.get(spec.key_env) or "").strip() if spec.key_env else "", *hidden_parts(spec.address)]
    return tuple(secret for secret in sent if len(secret) >= _SHORTEST_SECRET)


def redacted_reply(reply: Reply, secrets: Sequence[str], *, sent: Sequence[str]) -> Reply:
    """Return a Reply without secrets in its text, model and end; `sent` are secrets to hide in any form.

    Those that were `sent` are looked for in every form, and once a reply holds one, or another as it is, so
    are all.
    """
    whole = f"{reply.text}\0{reply.model_id}\0{reply.stopped}"
    if redacted(whole, sent) == whole and not any(secret in whole for secret in secrets):
        return reply
    parts = (reply.text, reply.model_id, reply.stopped)
    text, model_id, stopped = (redacted(part, secrets) for part in parts)
    return replace(reply, text=text, model_id=model_id, stopped=stopped)


def one_line(text: str, secrets: Sequence[str]) -> str:
    """A text as one line of at most 500 characters; secrets go first, so that none is left half."""
    return " ".join(redacted(text, secrets).split())[:_LONGEST]


@functools.lru_cache(maxsize=256)
def _forms(secret: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each form of a secret, and pieces of it of which every half of the form holds one."""
    forms = dict.fromkeys(form for form in _spelled(secret) if len(form) >= _SHORTEST_SECRET)
    return tuple((form, _pieces(form)) for form in forms)


def _spelled(secret: str) -> Iterator[str]:
    yield secret
    for quoted in (urllib.parse.quote(secret, safe=""), urllib.parse.quote(secret)):
        yield quoted
        yield re.sub("%..", lambda code: code[0].lower(), quoted)
    yield html.escape(secret)
    data = secret.encode("utf-8", "surrogatepass")
    for before in range(3):
        # Bytes before and after it change the letters that hold bits of both; what is between is always the
        # same.
        encoded = base64.b64encode(bytes(before) + data).decode()
        whole = encoded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        yield whole
        yield whole.translate(str.maketrans("+/", "-_"))


def _half(form: str) -> int:
    return max(_SHORTEST_SECRET, len(form) // 2)


def _pieces(form: str) -> tuple[str, ...]:
    """Every run of half of the form, wherever it begins, holds one of these whole."""
    size = (_half(form) + 1) // 2
    return tuple(dict.fromkeys(form[at : at + size] for at in range(0, len(form) - size + 1, size)))


def _without(text: str, form: str) -> str:
    """A text with stars in the place of every run of at least half of a form."""
    half, parts, end = _half(form), [], 0
    starts = {form[at : at + half] for at in range(len(form) - half + 1)}
    at = 0
    while at <= len(text) - half:
        if text[at : at + half] not in starts:
            at += 1
            continue
        stop = at + half
        while stop < len(text) and text[at : stop + 1] in form:
            stop += 1
        parts += [text[end:at], _STARS]
        at = end = stop
    return "".join([*parts, text[end:]])
