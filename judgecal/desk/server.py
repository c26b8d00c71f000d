"""The labelling page over HTTP: one page, a handful of acts, and nobody without a link of theirs.

The page itself holds nothing of the set. Whatever does is asked for by POST with the rater's name and token
in headers, which no other site's page can send; the Host must be ours, so that a name that was bent to this
address opens nothing. No path, file or item id of a request leads anywhere: acts and items are looked up in
tables of ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hmac
import importlib
import ipaddress
import json
import secrets
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from aiohttp import web

from judgecal.desk.choices import choices_of, typed_of
from judgecal.desk.desk import Desk, Refusal
from judgecal.errors import InputError, notice, visible
from judgecal.goldset import GoldSet
from judgecal.records import as_plain
from judgecal.report.html import rendered
from judgecal.report.numbers import count_of, estimate, percent

if TYPE_CHECKING:  # the statistics are loaded once the page is there
    from judgecal.desk.progress import LabelProgress

_MOST_BYTES = 64 * 1024  # of a request; a label with its note is far below
_LONGEST_BODY_S = 10.0  # who sends an act more slowly would hold up the end
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_LAST_S = 5.0  # for what is on its way to the disk when the end comes
_NEW_NUMBERS_S = 3.0  # from one count of the progress to the next
_ACTS = ("next", "label", "undo", "step")
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
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Address:
    """Where the page is served and for how long: port 0 takes a free one, `idle_s` ends it without an act."""

    host: str = "127.0.0.1"
    port: int = 0
    idle_s: float = 7_200.0


@dataclass
class DeskServer:
    """The page of one desk.

    Attributes:
        target, judge_leaves: as `label_progress` takes them.
        following: tells the command that is typed next, when all raters are through.
        tokens: by rater; made anew for every start.
    """

    desk: Desk
    address: Address = field(default_factory=Address)
    target: float = 0.05
    judge_leaves: float = 1.0
    following: Callable[[DeskServer], str] = lambda _: ""
    tokens: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = {rater: secrets.token_urlsafe(24) for rater in self.desk.task.raters}
        self._hosts: frozenset[str] = frozenset()
        self._last_act = time.monotonic()
        self._ends = asyncio.Event()
        self._finished: set[str] = set()
        self._progress: LabelProgress | None = None
        self._counting = asyncio.Lock()
        self._fresh_until = 0.0  # when the progress is to be counted anew

    # --- what is asked for

    def application(self) -> web.Application:
        """The page and its acts."""
        app = web.Application(middlewares=[self._guard], client_max_size=_MOST_BYTES)
        app.router.add_get("/", self._page)
        app.router.add_post("/act/{verb}", self._act)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse whoever has no business here; no reply of ours is kept or framed by anybody."""
        try:
            self._check_place(request)
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

    def _check_place(self, request: web.Request) -> None:
        if not self._is_ours(request.headers.get("Host", "")):
            raise Refusal(403, "This address is not the one that the page is served at.")
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"http://{request.headers['Host']}":
            raise Refusal(403, "Another site's page has no business here.")

    def _is_ours(self, host: str) -> bool:
        """Whether a Host names us: by a name that we know, or, served to others, by any address in
        numbers."""
        if ":" not in host.rpartition("]")[2]:
            host = f"{host}:80"  # a browser leaves the usual port out
        if host.lower() in self._hosts:
            return True
        name, _, port = host.rpartition(":")
        if self.address.host in _LOOPBACK or port != str(self.address.port):
            return False
        with contextlib.suppress(ValueError):
            return bool(ipaddress.ip_address(name.strip("[]")))
        return False

    def _rater(self, request: web.Request) -> str:
        rater = unquote(request.headers.get("Judgecal-Rater", ""))
        token = request.headers.get("Judgecal-Token", "")
        known = self.tokens.get(rater, "")
        if not known or not hmac.compare_digest(known.encode(), token.encode("utf-8", "replace")):
            raise Refusal(
                403, "This link is not right, or of an earlier start: open the link that was printed for you."
            )
        return rater

    async def _page(self, request: web.Request) -> web.Response:
        nonce = secrets.token_urlsafe(16)
        own = f"'nonce-{nonce}'"
        policy = f"{_POLICY}; script-src {own}; style-src {own}; connect-src 'self'; img-src data:"
        text = rendered("label.html", nonce=nonce)
        return web.Response(text=text, content_type="text/html", headers={"Content-Security-Policy": policy})

    async def _act(self, request: web.Request) -> web.Response:
        rater, verb = self._rater(request), request.match_info["verb"]
        sent = await _sent(request)
        if verb == "progress":
            return _json(await self._numbers(rater))
        self._last_act = time.monotonic()
        if verb == "open":
            return _json({**self._setup(rater), **await self.desk.act(rater, "next", sent)})
        if verb == "finish":
            return _json(self._finish(rater))
        if verb not in _ACTS:
            raise Refusal(404, "There is nothing here.")
        self._finished.discard(rater)
        return _json(await self.desk.act(rater, verb, sent))

    def _setup(self, rater: str) -> dict[str, Any]:
        """What a page is drawn by, once."""
        desk, task = self.desk, self.desk.task
        card, scale = task.gold.card, task.gold.scale
        return {
            "rater": visible(rater),
            "set": visible(task.gold.name),
            "choices": [dataclasses.asdict(one) for one in choices_of(card)],
            "typed": typed_of(scale),
            "pass_at": scale.pass_at if scale.graded else None,
            "rubric": desk.rubric.text,
            "adjudicates": task.adjudicates,
        }

    def _finish(self, rater: str) -> dict[str, Any]:
        """A rater is through; once all are, the command ends."""
        self._finished.add(rater)
        if self._finished >= set(self.desk.task.raters):
            asyncio.get_running_loop().call_later(0.5, self.end)  # the reply goes out first
        return {
            "next": visible(self.following(self)),
            "others": sorted(set(self.desk.task.raters) - self._finished),
        }

    async def _numbers(self, rater: str) -> dict[str, Any]:
        """The progress in words, counted anew at most every few seconds and off the loop."""
        async with self._counting:
            await asyncio.to_thread(importlib.import_module, "judgecal.desk.progress")  # seconds, once
            started = time.monotonic()
            if self._progress is None or started > self._fresh_until:
                seen = self.desk.seen()
                self._progress = await asyncio.to_thread(self.progress, seen)
                took = time.monotonic() - started
                self._fresh_until = time.monotonic() + max(_NEW_NUMBERS_S, 10.0 * took)
        return progress_words(self._progress, rater)

    def progress(self, seen: GoldSet | None = None) -> LabelProgress:
        """How labelling goes."""
        from judgecal.desk.progress import label_progress

        task = self.desk.task
        return label_progress(
            seen or self.desk.seen(),
            task.items,
            task.raters,
            timing=self.desk.timing(),
            target=self.target,
            judge_leaves=self.judge_leaves,
        )

    # --- serving

    async def serve(self, opened: Callable[[Mapping[str, str]], None]) -> None:
        """Serve until all raters are through, nobody acts for long, or somebody ends it (Ctrl-C); no label is
        lost.

        Args:
            opened: called with the link of each rater once they work.
        """
        runner = web.AppRunner(
            self.application(), access_log=None, handle_signals=False, shutdown_timeout=_LAST_S
        )
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, self.address.host, self.address.port).start()
            except OSError as error:
                where = f"{self.address.host}:{self.address.port}"
                raise InputError(f"--host, --port: {where} cannot be listened at: {error.strerror}") from None
            self.address = dataclasses.replace(self.address, port=runner.addresses[0][1])
            self._hosts = frozenset(f"{name.lower()}:{self.address.port}" for name in self._names())
            with _ended_by_signals(self._ends):
                opened(self.links())
                await self._until_the_end()
        finally:
            await runner.cleanup()

    def end(self) -> None:
        """End the serving; what is on its way to the disk gets there."""
        self._ends.set()

    def _names(self) -> tuple[str, ...]:
        if self.address.host in _LOOPBACK:
            return _LOOPBACK
        return (*_LOOPBACK, self.address.host, socket.gethostname(), socket.getfqdn())

    def links(self) -> dict[str, str]:
        """The link of each rater; what stands behind # never leaves the browser by itself."""
        host = self.address.host if self.address.host not in ("0.0.0.0", "::") else socket.gethostname()
        host = f"[{host}]" if ":" in host else host
        place = f"http://{host}:{self.address.port}/"
        return {rater: f"{place}#{quote(rater, safe='')}.{token}" for rater, token in self.tokens.items()}

    async def _until_the_end(self) -> None:
        while not self._ends.is_set():
            left = self.address.idle_s - (time.monotonic() - self._last_act)
            if left <= 0.0:
                notice(
                    f"judgecal: nobody did anything for {self.address.idle_s / 60.0:g} minutes, so the page "
                    "has ended"
                )
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ends.wait(), min(left, 60.0))


@contextlib.contextmanager
def _ended_by_signals(ends: asyncio.Event) -> Iterator[None]:
    """Ctrl-C and a plain kill end the serving in good order."""
    loop = asyncio.get_running_loop()
    caught = []
    for one in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(
            NotImplementedError, RuntimeError, ValueError
        ):  # Windows, and another thread
            loop.add_signal_handler(one, ends.set)
            caught.append(one)
    try:
        yield
    finally:
        for one in caught:
            loop.remove_signal_handler(one)


async def _sent(request: web.Request) -> dict[str, Any]:
    """The JSON object of a request."""
    if request.content_type != "application/json":
        raise Refusal(415, "An act is a JSON object.")
    try:
        sent = json.loads(await asyncio.wait_for(request.read(), _LONGEST_BODY_S))
    except TimeoutError:
        raise Refusal(408, "The act did not come through in time: try again.") from None
    except (ValueError, RecursionError):
        raise Refusal(400, "That is no JSON.") from None
    if not isinstance(sent, dict):
        raise Refusal(400, "An act is a JSON object.")
    return sent


def _json(value: Mapping[str, Any], status: int = 200) -> web.Response:
    # half a character goes as its escape
    text = json.dumps(as_plain(value), ensure_ascii=True, allow_nan=False)
    return web.Response(text=text, status=status, content_type="application/json")


def progress_words(found: LabelProgress, rater: str) -> dict[str, Any]:
    """The progress as a rater's page says it: names, and what stands beside them."""
    own, total = found.raters[rater], sum(found.classes.values())
    lines: list[tuple[str, str]] = [("Labelled", f"{found.n_labelled:,} of {found.n_items:,} items")]
    if own.seconds is not None:
        lines.append(("Your time an item", f"{own.seconds:.0f} s (median)"))
    if own.cannot_tell:
        lines.append(("You could not tell", f"{own.cannot_tell:,}"))
    if own.second_looks:
        lines.append(("Your second looks", f"{own.same} of {own.second_looks} said the same"))
    if total:
        shares = ", ".join(f"{visible(name)} {percent(n / total)}" for name, n in found.classes.items())
        lines.append(("Share of each label", shares))
    if len(found.raters) > 1:
        lines.append(("Agreement of raters", _agreement(found)))
    if found.rate is not None and found.rate.value is not None:
        lines.append(("Rate", f"{percent(found.rate.value)} ({found.rate_of})"))
        lines.append(("Half of its interval", _half(found)))
    return {"lines": lines, "enough": found.enough, "advice": _advice(found)}


def _agreement(found: LabelProgress) -> str:
    from judgecal.desk.progress import OVERLAP_LEAST

    if found.agreement is None:
        return f"too early: {found.n_overlap} of {OVERLAP_LEAST} items that two have labelled"
    why = f"; {found.agreement.reason}" if found.agreement.reason else ""
    return f"alpha {estimate(found.agreement, 2)} on {found.n_overlap} items{why}"


def _half(found: LabelProgress) -> str:
    if found.half_width is None or found.half_width_more is None:
        return "too early"
    now, more = (f"{100.0 * one:.1f}" for one in (found.half_width, found.half_width_more))
    after = f", ±{more} after {count_of(found.n_more, 'label')} more" if found.n_more else ""
    return f"±{now} points now{after}"


def _advice(found: LabelProgress) -> str:
    if not found.enough or found.n_labelled == found.n_items:
        return ""
    return f"The rate is known to ±{100.0 * found.target:g} points, as was asked for: you may stop here."


def links_in_words(links: Mapping[str, str]) -> Sequence[str]:
    """A line a rater."""
    width = max(map(len, links))
    return [f"  {rater:{width}}  {link}" for rater, link in links.items()]
