"""A file of the web, fetched once: whole, as it was announced, and as it was the last time.

https alone (http only from 127.0.0.1, for a server of one's own), a few redirects within one scheme, a
largest size, a timeout for each read and one for the whole. The file appears under its name when it is
complete: a transfer that breaks off leaves nothing, and is begun anew. Beside it stands what was fetched
(`NAME.json`), so that a later fetch can tell whether the file is still the same.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import http.client
import json
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from judgecal.errors import InputError, notice
from judgecal.workspace import replacing, shown

_REDIRECTS = 5
_MOVED = frozenset({301, 302, 303, 307, 308})
_CHUNK = 1 << 18
_ABANDONED_S = 3600.0
_NOTICED_S = 30.0  # between two lines that say how much has come
_LOCAL = ("127.0.0.1", "localhost", "::1")
_MARKUP = (b"<!doctype html", b"<html", b"<head")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much and how long: bytes of a file, seconds of one read, seconds of the whole."""

    max_bytes: int = 2 << 30
    read_s: float = 30.0
    total_s: float = 1800.0


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file that is here: where, its source, its sha256 (64 hex digits), its bytes, the UTC day."""

    path: Path = field(metadata={"json": False})
    url: str
    sha256: str
    n_bytes: int
    day: str


@dataclass(frozen=True, slots=True)
class Known:
    """What a file must be: its sha256, who says so, and what to do where it is not."""

    sha256: str
    says: str
    advice: str


def fetch_file(
    url: str, path: Path, *, known: Known | None = None, again: bool = False, limits: Limits | None = None
) -> Fetched:
    """The file of an address under a path: the one that is there already, else fetched.

    Args:
        url: https, or http from 127.0.0.1.
        path: where it is kept; folders are made.
        known: what it must be; None where nobody said.
        again: fetch it although it is there, and hold it against that one.
        limits: sizes and times; by default 2 GiB, 30 s a read, half an hour.
    """
    stored = _stored(path, url)
    if stored is not None and not again:
        _hold(stored.sha256, known, url, f"the file stored at {shown(path)}")
        return stored
    limits = limits or Limits()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.draft"):  # by processes that were killed
            with contextlib.suppress(FileNotFoundError):  # another one has deleted it
                if time.time() - left.stat().st_mtime > _ABANDONED_S:
                    left.unlink()
        notice(f"judgecal: fetching {url}")
        with replacing(path) as draft:
            digest, n_bytes = _transfer(url, draft, limits)
            _hold(digest, known, url, "the file at its source")
            if stored is not None and stored.sha256 != digest:
                raise InputError(
                    f"{url}: the file has changed since {stored.day}: its sha256 was {stored.sha256}, and "
                    f"is {digest} now; nothing is taken from it: to go over to the new file, delete "
                    f"{shown(path)} and fetch again"
                )
    except OSError as error:
        raise InputError(f"{shown(path)}: cannot be written ({error.strerror or error})") from None
    fetched = Fetched(path, url, digest, n_bytes, datetime.now(UTC).date().isoformat())
    facts = {key: value for key, value in asdict(fetched).items() if key != "path"}
    with replacing(_beside(path)) as draft:
        draft.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    return fetched


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _stored(path: Path, url: str) -> Fetched | None:
    """The file that is there, where it is what was fetched from this address: its bytes are counted anew."""
    try:
        facts = json.loads(_beside(path).read_text(encoding="utf-8"))
        stored = Fetched(path, facts["url"], facts["sha256"], facts["n_bytes"], facts["day"])
        with path.open("rb") as file:
            whole = hashlib.file_digest(file, "sha256").hexdigest() == stored.sha256
    except (OSError, ValueError, KeyError, TypeError):  # not there, or half of it: fetched anew
        return None
    return stored if whole and stored.url == url else None


def _hold(digest: str, known: Known | None, url: str, what: str) -> None:
    if known is not None and digest != known.sha256:
        raise InputError(
            f"{url}: its sha256 must be {known.sha256}, {known.says}, found {digest} in {what}: nothing is "
            f"taken from it: {known.advice}"
        )


def _transfer(url: str, draft: Path, limits: Limits) -> tuple[str, int]:
    end = time.monotonic() + limits.total_s
    try:
        with _opened(url, limits) as answer, draft.open("wb") as file:
            return _copy(answer, file, url, limits, end)
    except (http.client.HTTPException, OSError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            what = f"the server sent nothing for {limits.read_s:g} s: try again later"
        elif isinstance(reason, ssl.SSLError):
            why = getattr(reason, "verify_message", "") or reason.reason
            what = f"the server's certificate cannot be trusted ({why})"
        elif isinstance(error, http.client.HTTPException | ConnectionError):
            broke = f"the connection broke off ({type(error).__name__})"
            what = f"{broke}: nothing is kept, run the command again"
        elif isinstance(error, urllib.error.URLError | socket.gaierror):
            why = getattr(reason, "strerror", None) or reason
            where = "run the command where there is a network, or import a copy with gold import"
            what = f"cannot be reached ({why}): {where}"
        else:  # the disk's, and not the network's
            raise
        raise InputError(f"{url}: {what}") from None


def _copy(answer: Any, file: IO[bytes], url: str, limits: Limits, end: float) -> tuple[str, int]:
    if (encoding := answer.headers.get("content-encoding", "identity")) != "identity":
        raise InputError(
            f"{url}: the server sent {encoding}, which we did not ask for: its sha256 would not match"
        )
    length, most = answer.headers.get("content-length", ""), limits.max_bytes
    announced = int(length) if length.isdecimal() else None
    if announced is not None and announced > most:
        raise InputError(f"{url}: has {announced:,} bytes, and we fetch at most {most:,}")
    digest, n_bytes, noticed = hashlib.sha256(), 0, time.monotonic()
    while chunk := answer.read1(_CHUNK):
        if not n_bytes and chunk.lstrip()[:15].lower().startswith(_MARKUP):
            raise InputError(
                f"{url}: sent an HTML page, and no data: open the address in a browser and see what it says"
            )
        n_bytes += len(chunk)
        if n_bytes > most:
            raise InputError(f"{url}: has more than {most:,} bytes, the most that we fetch")
        if time.monotonic() > end:
            raise InputError(
                f"{url}: took longer than {limits.total_s:g} s ({n_bytes:,} bytes came): try again later"
            )
        digest.update(chunk)
        file.write(chunk)
        if time.monotonic() - noticed >= _NOTICED_S:
            noticed = time.monotonic()
            notice(f"judgecal: {n_bytes >> 20:,} MB of {f'{announced >> 20:,} MB' if announced else url}")
    if announced is not None and n_bytes != announced:
        raise InputError(
            f"{url}: broke off: {announced:,} bytes were announced, {n_bytes:,} came; nothing is kept, run "
            "the command again"
        )
    if not n_bytes:
        raise InputError(f"{url}: sent an empty file")
    return digest.hexdigest(), n_bytes


@contextlib.contextmanager
def _opened(url: str, limits: Limits) -> Iterator[Any]:
    """The answer of an address, redirects followed; InputError for an address or an answer that is none."""
    seen = [url]
    opener = urllib.request.OpenerDirector()  # its own set: none for files, ftp, errors, redirects, passwords
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
    ):
        opener.add_handler(handler)
    headers = {"User-Agent": "judgecal", "Accept": "*/*", "Accept-Encoding": "identity"}
    while True:
        _check_address(seen)
        answer: Any = opener.open(urllib.request.Request(seen[-1], headers=headers), timeout=limits.read_s)
        with contextlib.closing(answer):
            if answer.status == 200:
                yield answer
                return
            if answer.status not in _MOVED:
                raise InputError(f"{seen[-1]}: {_refusal(answer.status)}")
            location = answer.headers.get("location")
            if not location:
                raise InputError(f"{seen[-1]}: redirects ({answer.status}) without an address")
            seen.append(urllib.parse.urljoin(seen[-1], location))


def _check_address(seen: list[str]) -> None:
    url, first = seen[-1], seen[0]
    through = f" (redirected from {first})" if len(seen) > 1 else ""
    try:
        parts = urllib.parse.urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise InputError(f"{url}: is not an address ({error}){through}") from None
    if len(seen) > 1 and parts.scheme != urllib.parse.urlsplit(first).scheme:
        raise InputError(f"{first}: redirects to {url}, another scheme: we do not follow it")
    if not host or not (url.isascii() and url.isprintable()) or " " in url:
        raise InputError(f"{url}: is not an address{through}: write https://HOST/PATH")
    if parts.username or parts.password:
        raise InputError(
            f"{parts._replace(netloc=host).geturl()}: holds a user or a password{through}: remove it"
        )
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOCAL):
        raise InputError(f"{url}: must begin with https://{through}")
    if url in seen[:-1]:
        raise InputError(f"{first}: redirects in a circle, back to {url}")
    if len(seen) > _REDIRECTS + 1:
        raise InputError(f"{first}: redirects more than {_REDIRECTS} times, at last to {url}")


def _refusal(status: int) -> str:
    if status in (401, 403):
        return (
            f"the server refuses ({status}): it may be gated or private: accept its terms on its page first"
        )
    if status in (404, 410):
        return f"there is no such file ({status}): it may have moved: see the set's page"
    if status == 429 or status >= 500:
        return f"the server cannot answer now ({status}): try again later"
    return f"answered {status} {http.client.responses.get(status, '')}".rstrip()
