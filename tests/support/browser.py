"""Chromium without a window, driven by its DevTools protocol over a websocket: tabs, keys, scripts,
pictures."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None
)
needs_browser = [
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine"),
    pytest.mark.xdist_group("browser"),
]
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
    "--remote-debugging-port=0", "--remote-allow-origins=*", "--force-color-profile=srgb",
)  # fmt: skip
_PATIENCE = 60.0  # seconds that the browser may take for anything on a busy machine


@dataclass
class Tab:
    """One tab; what went wrong in it and what it asked for is kept."""

    loop: asyncio.AbstractEventLoop
    socket: aiohttp.ClientWebSocketResponse
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    _last: int = 0

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A command of the protocol, and its result."""
        return self.loop.run_until_complete(asyncio.wait_for(self._call(method, params), _PATIENCE))

    async def _call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last += 1
        await self.socket.send_json({"id": self._last, "method": method, "params": params})
        while True:
            message = json.loads((await self.socket.receive()).data)
            if message.get("id") == self._last:
                assert "error" not in message, message["error"]
                found: dict[str, Any] = message["result"]
                return found
            self._heard(message)

    def _heard(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if message["method"] == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif message["method"] == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(params["exceptionDetails"])[:1_000])
        elif message["method"] == "Log.entryAdded" and params["entry"]["level"] in ("warning", "error"):
            self.problems.append(str(params["entry"]["text"]))

    def run(self, script: str) -> Any:
        """The value of an expression; a promise is waited for."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, json.dumps(found["exceptionDetails"])[:1_000]
        return found["result"].get("value")

    def until(self, script: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + _PATIENCE
        while not self.run(script):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.02)

    def open(self, url: str) -> Tab:
        """Go to a page and wait until it is drawn, and its items, if it has any, are unpacked."""
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)
        self.until("document.readyState == 'complete' && location.href != 'about:blank'")
        self.until(
            "!document.querySelector('script#items') || document.documentElement.dataset.ready == 'true'"
        )
        return self

    def press(self, keys: str) -> None:
        """Letters, one after the other."""
        for key in keys:
            for kind in ("keyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" else "")

    def key(self, name: str) -> None:
        """A key with a name: Enter, Escape, Tab, ArrowLeft ..."""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39}
        codes |= {"ArrowDown": 40}
        text = {"text": "\r"} if name == "Enter" else {}
        for kind, more in (("keyDown", text), ("keyUp", {})):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=codes[name],
                **more,
            )  # fmt: skip

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        """The window in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def picture(self, path: Path, *, whole: bool = False, clip: dict[str, float] | None = None) -> Path:
        """What is seen, the whole page, or a part of it, as PNG."""
        part = {"clip": clip} if clip else {}
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **part)
        path.write_bytes(base64.b64decode(found["data"]))
        return path


@dataclass
class Browser:
    """A running browser; `tab` opens a new one."""

    loop: asyncio.AbstractEventLoop
    session: aiohttp.ClientSession
    address: str

    def tab(self) -> Tab:
        """A new tab, empty."""
        return self.loop.run_until_complete(self._tab())

    async def _tab(self) -> Tab:
        async with self.session.put(f"http://{self.address}/json/new?about:blank") as reply:
            told = await reply.json(content_type=None)
        return Tab(self.loop, await self.session.ws_connect(told["webSocketDebuggerUrl"], max_msg_size=0))


@contextlib.contextmanager
def browser(flags: Sequence[str] = ()) -> Iterator[Browser]:
    """Chromium with a profile of its own, ended with the block."""
    assert PROGRAM is not None
    loop = asyncio.new_event_loop()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [PROGRAM, *_FLAGS, *flags, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        session = None
        try:
            address = _address(process, Path(profile) / "DevToolsActivePort")
            session = loop.run_until_complete(_session())
            yield Browser(loop, session, address)
        finally:
            if session is not None:
                loop.run_until_complete(session.close())
            process.terminate()
            process.wait(timeout=30)
            loop.close()


async def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(trust_env=False)


def _address(process: subprocess.Popen[bytes], port: Path) -> str:
    """Where it listens, once it has written that down."""
    end = time.monotonic() + _PATIENCE
    while not (port.exists() and len(port.read_text().split()) >= 2):
        assert process.poll() is None and time.monotonic() < end, "Chromium did not start"
        time.sleep(0.05)
    return f"127.0.0.1:{port.read_text().split()[0]}"
