"""The address of a model's server: what may be shown of it, and what may not."""

from __future__ import annotations

import hashlib
import urllib.parse
from collections.abc import Iterator

_STARS = "***"
_SHOWN_QUERIES = ("api-version", "api_version")  # part of what is asked, and never a secret
_LIKE_A_TOKEN = 20  # characters of a segment of a path


def shown_address(address: str) -> str:
    """An address without what may be a secret: user, fragment, values of its query, segments that look like a
    token.

    What is left tells one server from another: a segment leaves four digits of its sha256. An address that
    cannot be read is shown as stars.
    """
    try:
        parts = urllib.parse.urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        path = "/".join(_digits(one) if _is_token(one) else one for one in parts.path.split("/"))
        pairs = [(name, value if _shown(name) else _STARS) for name, value in _query(parts)]
    except ValueError:
        return _STARS
    query = "&".join(f"{name}={value}" if value else name for name, value in pairs)
    return urllib.parse.urlunsplit((parts.scheme, host, path, query, ""))


def hidden_parts(address: str) -> tuple[str, ...]:
    """What `shown_address` leaves out, as it stands and as it is meant."""
    try:
        parts = urllib.parse.urlsplit(address)
        hidden = [parts.username, parts.password, parts.fragment]
        hidden += [one for one in parts.path.split("/") if _is_token(one)]
        hidden += [value for name, value in _query(parts) if not _shown(name)]
    except ValueError:
        return ()
    return tuple(dict.fromkeys(form for one in hidden if one for form in (one, urllib.parse.unquote(one))))


def _query(parts: urllib.parse.SplitResult) -> Iterator[tuple[str, str]]:
    for pair in filter(None, parts.query.split("&")):
        name, equals, value = pair.partition("=")
        # A query without a name is a value: it may be the token itself.
        yield (name, value) if equals else (_STARS, name)


def _shown(name: str) -> bool:
    return name.lower() in _SHOWN_QUERIES


def _digits(segment: str) -> str:
    return _STARS + hashlib.sha256(segment.encode("utf-8", "surrogatepass")).hexdigest()[:4]


def _is_token(segment: str) -> bool:
    """Whether a segment of a path looks like a token: long, and letters mixed with digits or in both
    cases."""
    letters = any(char.isalpha() for char in segment)
    mixed = any(char.isdigit() for char in segment) or (
        segment != segment.lower() and segment != segment.upper()
    )
    return len(segment) >= _LIKE_A_TOKEN and letters and mixed
