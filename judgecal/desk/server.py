"""The labelling page over HTTP: one page, a handful of acts, and nobody without a link of theirs.

The page itself holds nothing of the set. Whatever does is asked for by POST with the rater's name and token
in headers, which no other site's page can send; the Host must be ours, so that a name that was bent to this
address opens nothing. No path, file or item id of a request leads anywhere: acts and items are looked up in
tables of ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import json
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from aiohttp import web

from judgecal.desk.desk import Desk, Refusal
from judgecal.errors import InputError, notice, visible
from judgecal.goldset import Card
from judgecal.goldset.card import plain_label
from judgecal.report.html import rendered
from judgecal.scale import Label, Scale

_MOST_BYTES = 64 * 1024  # of a request; a label with its note is far below
_LONGEST_BODY_S = 10.0  # who sends an act more slowly would hold up the end
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_LAST_S = 5.0  # for what is on its way to the disk when the end comes
_IDLE_S = 7_200.0  # without an act the page ends
_ACTS = ("next", "label", "step")
_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""What every reply carries: none of it is kept, framed, or taken for something else."""


@dataclass
class DeskServer:
    """The page of one desk, on `host`; port 0 takes a free one."""

    desk: Desk
    host: str = "127.0.0.1"
    port: int = 0
    following: Callable[[], str] = lambda: ""  # returns the command to type when all raters are through
    tokens: Mapping[str, str] = field(init=False)  # by rater; made anew for every start

    def __post_init__(self) -> None:
        self.tokens = {rater: secrets.token_urlsafe(24) for rater in self.desk.task.raters}
        self._hosts: frozenset[str] = frozenset()
        self._last_act = time.monotonic()
        self._ends = asyncio.Event()
        self._finished: set[str] = set()

    # --- what is asked for

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Refuse whoever has no business here; no reply of ours is kept or framed by anybody."""
        try:
            if not self._is_ours(request.headers.get("Host", "")):
                raise Refusal(403, "The page is served at another address.")
            if request.headers.get("Origin") not in (None, f"http://{request.headers['Host']}"):
                raise Refusal(403, "Another site's page has no business here.")
            reply = await handler(request)
        except Refusal as refusal:
            reply = _json({"problem": str(refusal)}, refusal.status)
        except web.HTTPRequestEntityTooLarge:
            reply = _json({"problem": f"A request has at most {_MOST_BYTES:,} bytes."}, 413)
        except web.HTTPException as error:
            reply = _json({"problem": "There is nothing here."}, error.status)
        for name, value in _HEADERS.items():
            reply.headers.setdefault(name, value)
        return reply

    def _is_ours(self, host: str) -> bool:
        """Whether a Host names us: by a name that we know, or, served to others, by any IP address."""
        if ":" not in host.rpartition("]")[2]:
            host = f"{host}:80"  # a browser leaves the usual port out
        if host.lower() in self._hosts:
            return True
        name, _, port = host.rpartition(":")
        if self.host in _LOOPBACK or port != str(self.port):
            return False
        with contextlib.suppress(ValueError):
            return bool(ipaddress.ip_address(name.strip("[]")))
        return False

    async def _page(self, request: web.Request) -> web.Response:
        nonce = secrets.token_urlsafe(16)
        nonced = f"'nonce-{nonce}'"
        policy = f"{_POLICY}; script-src {nonced}; style-src {nonced}; connect-src 'self'; img-src data:"
        text = rendered("label.html", nonce=nonce)
        return web.Response(text=text, content_type="text/html", headers={"Content-Security-Policy": policy})

    async def _act(self, request: web.Request) -> web.Response:
        rater, verb = unquote(request.headers.get("Judgecal-Rater", "")), request.match_info["verb"]
        token, expected = request.headers.get("Judgecal-Token", ""), self.tokens.get(rater, "")
        if not expected or not hmac.compare_digest(expected.encode(), token.encode("utf-8", "replace")):
            raise Refusal(
                403, "This link is wrong or from an earlier start: open the link that was printed for you."
            )
        sent = await _sent(request)
        if verb == "counts":
            return _json(self.desk.counts(rater, sent))
        self._last_act = time.monotonic()
        if verb == "open":  # what a page is drawn by, once
            task, scale = self.desk.task, self.desk.task.gold.scale
            sides = any(task.left(item, rater) for item in task.items)
            setup = {
                "rater": visible(rater),
                "set": visible(task.gold.name),
                "choices": choices_of(task.gold.card, sides=sides),
                "typed": None if sides else typed_of(scale),
                "pass_at": scale.pass_at if scale.graded else None,
                "rubric": self.desk.rubric,
                "adjudicates": task.adjudicates,
            }
            return _json({**setup, **await self.desk.act(rater, "next", sent)})
        if verb == "finish":
            self._finished.add(rater)
            others = sorted(set(self.desk.task.raters) - self._finished)
            if not others:  # all are through, so the command ends
                asyncio.get_running_loop().call_later(0.5, self.end)  # the reply goes out first
            return _json({"next": visible(self.following()), "others": others})
        if verb not in _ACTS:
            raise Refusal(404, "There is nothing here.")
        self._finished.discard(rater)
        return _json(await self.desk.act(rater, verb, sent))

    # --- serving

    async def serve(self, opened: Callable[[Mapping[str, str]], None]) -> None:
        """Serve the page until all raters are through or it is ended; a function `opened` gets the links.

        Args:
            opened: called with the link of each rater once they work.
        """
        app = web.Application(middlewares=[self._guard], client_max_size=_MOST_BYTES)
        app.router.add_get("/", self._page)
        app.router.add_post("/act/{verb}", self._act)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_LAST_S)
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, self.host, self.port).start()
            except OSError as error:
                where = f"{self.host}:{self.port}"
                raise InputError(f"--host, --port: {where} cannot be listened at: {error.strerror}") from None
            self.port = runner.addresses[0][1]
            others = () if self.host in _LOOPBACK else (self.host, socket.gethostname(), socket.getfqdn())
            self._hosts = frozenset(f"{name.lower()}:{self.port}" for name in (*_LOOPBACK, *others))
            opened(self.links())
            while not self._ends.is_set():
                left = _IDLE_S - (time.monotonic() - self._last_act)
                if left <= 0.0:
                    notice("judgecal: nobody did anything for two hours, so the page has ended")
                    break
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ends.wait(), min(left, 60.0))
        finally:
            await runner.cleanup()

    def end(self) -> None:
        """End the serving; what is on its way to the disk gets there."""
        self._ends.set()

    def links(self) -> dict[str, str]:
        """Return rater -> link; what stands behind # never leaves the browser by itself."""
        host = self.host if self.host not in ("0.0.0.0", "::") else socket.gethostname()
        host = f"[{host}]" if ":" in host else host
        place = f"http://{host}:{self.port}/"
        return {rater: f"{place}#{quote(rater, safe='')}.{token}" for rater, token in self.tokens.items()}


async def _sent(request: web.Request) -> dict[str, Any]:
    """The JSON object of a request."""
    if request.content_type != "application/json":
        raise Refusal(415, "An act is a JSON object.")
    try:
        sent = json.loads(await asyncio.wait_for(request.read(), _LONGEST_BODY_S))
    except TimeoutError:
        raise Refusal(408, "Your answer did not arrive in time: try again.") from None
    except (ValueError, RecursionError):
        raise Refusal(400, "That is not JSON.") from None
    if not isinstance(sent, dict):
        raise Refusal(400, "An act is a JSON object.")
    return sent


def _json(value: Mapping[str, Any], status: int = 200) -> web.Response:
    # half a character goes as its escape
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return web.Response(text=text, status=status, content_type="application/json")


# --- what a rater may answer: a button and a key for each label, or a number

_MOST_BUTTONS = 11
_FIFTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


def choices_of(card: Card, *, sides: bool = False) -> list[dict[str, str]]:
    """Return a list of buttons (dicts) for the labels of a Card, lowest first; yes stands before no.

    A button has the label as it is sent (`said`), its name, its meaning by the card, and its keys.
    """
    scale, grades, names = card.scale, _grades(card.scale), dict[Label, str]()
    meanings = {scale.read(label): meaning for label, meaning in card.anchors.items()}
    if scale.kind == "binary":
        keys: dict[Label, str] = {1.0: "y 1", 0.0: "n 2"}
        names = {1.0: "Yes", 0.0: "No"}
    elif grades is not None:
        keys = {grade: f"{grade:g}" if grade in range(10) else "" for grade in grades}
        if 10.0 in keys and 0.0 not in keys:
            keys[10.0] = "0"
    else:
        labels: Sequence[Label] = scale.categories
        if sides:
            names = {"left": "Left is better", "tie": "Tie", "right": "Right is better"}
            labels = [name for name in names if name != "tie" or "tie" in labels or not labels]
        if scale.kind != "nominal":
            step = scale.step or scale.span / 4.0
            fifths = [scale.low + round(part * scale.span / step) * step for part in _FIFTHS]
            anchored = sorted(float(label) for label in meanings)
            labels = anchored if len(anchored) > 2 else fifths
        keys = {label: str(place) if place < 10 else "" for place, label in enumerate(labels, start=1)}
    return [
        {
            "said": (word := str(plain_label(label))),
            "name": visible(names.get(label, word)),
            "meaning": visible(meanings.get(label, "")),
            "key": key,
        }
        for label, key in keys.items()
    ]


def typed_of(scale: Scale) -> dict[str, Any] | None:
    """Return a dict of the ends and step of a typed number on a Scale; None where it has buttons."""
    if scale.kind == "nominal":
        return None if scale.categories else {"words": True}
    if not scale.graded or _grades(scale) is not None:
        return None
    return {"low": scale.low, "high": scale.high, "step": scale.step}


def _grades(scale: Scale) -> list[float] | None:
    """Every label of a short scale; None where there are too many for buttons."""
    if scale.kind in ("percentage", "nominal") or scale.step is None:
        return None
    n = round(scale.span / scale.step) + 1
    return [round(scale.low + place * scale.step, 9) for place in range(n)] if n <= _MOST_BUTTONS else None
