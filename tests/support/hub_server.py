"""The Hub's own endpoints on 127.0.0.1, as far as `datasets` asks them: one data set and its files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.http import Answer, Request, as_answer, serve


@dataclass
class PlayedHub:
    """A running Hub with one data set: `files` by path, at one `commit`; the first `refusals` requests are
    refused."""

    root: str
    name: str
    files: Mapping[str, bytes]
    commit: str = "c" * 40
    refusals: int = 0
    asked: list[str] = field(default_factory=list)


@contextlib.contextmanager
def played_hub(name: str, folder: Path, *, refusals: int = 0) -> Iterator[PlayedHub]:
    """Serve a folder, as `hub_folder` writes one, under a name, until the block ends."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    hub = PlayedHub("", name, files, refusals=refusals)
    with serve(lambda request: _answer(hub, request)) as hub.root:
        yield hub


def _entry(hub: PlayedHub, path: str) -> dict[str, Any]:
    return {"type": "file", "oid": _sha(hub.files[path]), "size": len(hub.files[path]), "path": path}


def _sha(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def _answer(hub: PlayedHub, request: Request) -> Answer:
    url = urllib.parse.urlsplit(request.path)
    path = urllib.parse.unquote(url.path)
    hub.asked.append(f"{request.method} {path}")
    api = f"/api/datasets/{hub.name}"
    if len(hub.asked) <= hub.refusals:
        gated = {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}
        return Answer(403, b"gated", gated, "")
    if resolve := re.fullmatch(f"/datasets/{re.escape(hub.name)}/resolve/[^/]+/(.+)", path):
        return _file(hub, resolve[1], request.headers.get("range") or "")
    if path.startswith(f"{api}/paths-info/"):
        body = request.body
        wanted = urllib.parse.parse_qs(body.decode()).get("paths", []) if b"=" in body else []
        wanted = wanted or json.loads(body or b"{}").get("paths", [])
        return as_answer([_entry(hub, name) for name in wanted if name in hub.files])
    if path.startswith(f"{api}/tree/"):
        folder = path.removeprefix(f"{api}/tree/").partition("/")[2]
        return as_answer(_tree(hub, folder, recursive="recursive=true" in url.query.lower()))
    if path in (api, f"{api}/revision/main", f"{api}/revision/{hub.commit}"):
        about = {"id": hub.name, "sha": hub.commit, "private": False, "gated": False, "disabled": False}
        return as_answer({**about, "tags": [], "siblings": [{"rfilename": name} for name in hub.files]})
    return Answer(404, content_type="")


def _tree(hub: PlayedHub, folder: str, *, recursive: bool) -> list[dict[str, Any]]:
    inside = [path for path in hub.files if not folder or path.startswith(f"{folder}/")]
    if recursive:
        return [_entry(hub, path) for path in inside]
    cut = len(folder) + 1 if folder else 0
    folders = sorted({path[cut:].split("/")[0] for path in inside if "/" in path[cut:]})
    paths = [f"{folder}/{name}".strip("/") for name in folders]
    directories = [{"type": "directory", "oid": "d" * 40, "size": 0, "path": path} for path in paths]
    return [_entry(hub, path) for path in inside if "/" not in path[cut:]] + directories


def _file(hub: PlayedHub, path: str, wanted: str) -> Answer:
    data = hub.files.get(path)
    if data is None:
        return Answer(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": hub.commit}, "")
    headers = {"ETag": f'"{_sha(data)}"', "X-Repo-Commit": hub.commit, "Accept-Ranges": "bytes"}
    if part := re.fullmatch(r"bytes=(\d+)-(\d*)", wanted):
        start, end = int(part[1]), int(part[2] or len(data) - 1)
        headers["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
        return Answer(206, data[start : end + 1], headers, "")
    return Answer(200, data, headers, "")
