"""Files at addresses (`s3://...`, `memory://...`) and paths, by fsspec and the credentials that it finds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from judgecal.errors import InputError, described


@contextlib.contextmanager
def reaching(address: str) -> Iterator[tuple[Any, str]]:
    """Give the file system of an address and the path there; InputError: something there cannot be done."""
    from fsspec.core import url_to_fs

    try:
        system, path = url_to_fs(address)
        system.invalidate_cache()
        yield system, path
    except Exception as error:  # each file system has exceptions of its own
        raise InputError(f"{address}: cannot be reached ({described(error)})") from error


def addresses_of(text: str) -> list[str]:
    """The files of this name, which may hold `*`: paths on this machine are absolute and without a scheme."""
    if urlsplit(text).password:
        raise InputError("an address with a password would stand in the experiment: leave the password out")
    with reaching(text) as (system, path):
        paths = [path] if system.exists(path) or "*" not in path else sorted(system.glob(path))
        local = "file" in (system.protocol if isinstance(system.protocol, tuple) else [system.protocol])
        return [str(each) if local else str(system.unstrip_protocol(each)) for each in paths]


def file_key(address: str) -> str | None:
    """What changes when the file at an address changes; None where there is none."""
    with reaching(address) as (system, path):
        return str(system.ukey(path)) if system.exists(path) else None
