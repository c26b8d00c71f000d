"""The Hub's own endpoints on 127.0.0.1, as far as `datasets` asks them: one data set and its files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


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
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    server.daemon_threads = True
    hub.root = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _entry(hub: PlayedHub, path: str) -> dict[str, Any]:
    return {"type": "file", "oid": _sha(hub.files[path]), "size": len(hub.files[path]), "path": path}


def _sha(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def _handler(hub: PlayedHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
            hub.asked.append(f"{self.command} {path}")
            api = f"/api/datasets/{hub.name}"
            resolve = re.fullmatch(f"/datasets/{re.escape(hub.name)}/resolve/[^/]+/(.+)", path)
            if len(hub.asked) <= hub.refusals:
                self._send(
                    403, b"gated", {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}
                )
            elif resolve:
                self._file(resolve[1])
            elif path.startswith(f"{api}/paths-info/"):
                wanted = urllib.parse.parse_qs(body.decode()).get("paths", []) if b"=" in body else []
                wanted = wanted or json.loads(body or b"{}").get("paths", [])
                self._json([_entry(hub, one) for one in wanted if one in hub.files])
            elif path.startswith(f"{api}/tree/"):
                self._json(self._tree(path.removeprefix(f"{api}/tree/").partition("/")[2]))
            elif path in (api, f"{api}/revision/main", f"{api}/revision/{hub.commit}"):
                told = {
                    "id": hub.name,
                    "sha": hub.commit,
                    "private": False,
                    "gated": False,
                    "disabled": False,
                    "tags": [],
                }
                self._json({**told, "siblings": [{"rfilename": one} for one in hub.files]})
            else:
                self._send(404, b"", {})

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_POST(self) -> None:
            self.do_GET()

        def _tree(self, folder: str) -> list[dict[str, Any]]:
            inside = [path for path in hub.files if not folder or path.startswith(f"{folder}/")]
            if "recursive=True" in self.path or "recursive=true" in self.path:
                return [_entry(hub, path) for path in inside]
            cut = len(folder) + 1 if folder else 0
            folders = {path[cut:].split("/")[0] for path in inside if "/" in path[cut:]}
            found = [_entry(hub, path) for path in inside if "/" not in path[cut:]]
            found += [{"type": "directory", "oid": "d" * 40, "size": 0, "path": f"{folder}/{one}".strip("/")}
                      for one in sorted(folders)]  # fmt: skip
            return found

        def _file(self, path: str) -> None:
            data = hub.files.get(path)
            if data is None:
                self._send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": hub.commit})
                return
            headers = {"ETag": f'"{_sha(data)}"', "X-Repo-Commit": hub.commit, "Accept-Ranges": "bytes"}
            part = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range") or "")
            if part:
                start, end = int(part[1]), int(part[2] or len(data) - 1)
                headers["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
                self._send(206, data[start : end + 1], headers)
            else:
                self._send(200, data, headers)

        def _json(self, value: Any) -> None:
            self._send(200, json.dumps(value).encode(), {"content-type": "application/json"})

        def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is printed."""

    return Handler
