"""HTTP/1.1 as far as a call needs it: texts posted to one address, over connections that are kept.

A client for everything takes more CPU for a call than all the rest of a judgement. This one knows POST, TLS,
proxies, lengths, chunks and gzip. It follows no redirect, keeps no cookie, reads no answer beyond a stated
size, and sends nothing twice.
"""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
import zlib
from collections.abc import Generator, Mapping
from typing import Any, NamedTuple

from yarl import URL

from judgecal.engine.calls import CallFailed

_KEPT_S = 15.0  # an idle connection; what stands between may have forgotten one that is older
_ADDRESS_KEPT_S = 300.0  # of a host, once it has been looked up
_KNOWN_ADDRESS_S = 3.0  # to reach it, before the host is looked up anew
_NEXT_ADDRESS_S = 0.25  # before the next address of a host is tried beside the first
_LONGEST_HEAD = 1 << 16
_LONGEST_CHUNK_LINE = 1 << 10
_STATUS_LINE = re.compile(r"HTTP/1\.[01] (\d{3})(?: |$)")
_LENGTH = re.compile(r"[0-9]{1,15}")
_CHUNK_SIZE = re.compile(rb"[0-9a-fA-F]{1,12}\s*(?:;|$)")
_NO_BODY = (204, 304)

Reading = Generator[None, None, "Answer"]
"""The reading of an answer; it yields where it wants more bytes."""


class NotConnected(OSError):
    """No connection came about, so nothing was sent."""


class BrokenAnswer(OSError):
    """The connection was lost in the middle of an answer, or what came is no HTTP."""


class Answer(NamedTuple):
    """What a server answered: `headers` by their lower-case names, and the body, decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """The connections to one address. Used in one running event loop.

    Args:
        headers: sent with every text.
        proxy: what stands between, or None.
        most_bytes: of a body, once decompressed; of a larger one a little more than that is read.
    """

    def __init__(self, url: URL, headers: Mapping[str, str], *, proxy: URL | None, most_bytes: int) -> None:
        self._url, self._proxy, self._most_bytes = url, proxy, most_bytes
        self._idle: list[_Connection] = []  # the last one used stands last
        self._tls: ssl.SSLContext | None = None
        self._under_way: dict[_Connection, float] = {}  # with the deadlines, the first one first
        self._clock: asyncio.TimerHandle | None = None  # one for all: a timer each costs more than an answer
        self._looking_up = asyncio.Lock()
        self._address: tuple[str, float] | None = None  # of the host, and until when
        lines = {"host": url.host_port_subcomponent or "", **_credentials(url, "authorization"), **headers}
        target = url.raw_path_qs
        if proxy and url.scheme == "http":
            target = str(url.with_user(None).with_fragment(None))
            lines.update(_credentials(proxy, "proxy-authorization"))
        self._head = "".join(
            (f"POST {target} HTTP/1.1\r\n", *(f"{name}: {value}\r\n" for name, value in lines.items()))
        ).encode()

    def close(self) -> None:
        """Close all; what is under way fails."""
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
        for connection in (*self._idle, *self._under_way):
            connection.abort()
        self._idle.clear()

    async def post(self, body: bytes, *, timeout: float) -> Answer:
        """Send a text; what came back.

        Raises:
            TimeoutError: not all of it within `timeout` seconds.
            NotConnected: there is no server, or its certificate is not trusted.
            OSError: the connection was lost.
            CallFailed: the body is compressed in a way that was not asked for, or not as it says.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        connection = self._kept(loop.time() - _KEPT_S)
        if connection is None:
            async with asyncio.timeout_at(deadline):
                connection = await self._connected()
        request = b"%bcontent-length: %d\r\n\r\n%b" % (self._head, len(body), body)
        self._under_way[connection] = deadline
        if self._clock is None or deadline < self._clock.when():  # one that was long in connecting
            self._wake_at(deadline)
        try:
            answer = await connection.ask(request)
        except BaseException:
            connection.abort()
            raise
        finally:
            del self._under_way[connection]
        if connection.reusable:
            connection.idle_since = loop.time()
            self._idle.append(connection)
        else:
            connection.abort()
        return answer

    def _wake_at(self, deadline: float) -> None:
        if self._clock is not None:
            self._clock.cancel()
        self._clock = asyncio.get_running_loop().call_at(deadline, self._give_up)

    def _give_up(self) -> None:
        loop = asyncio.get_running_loop()
        self._clock = None
        for connection in [late for late, until in self._under_way.items() if until <= loop.time()]:
            connection.end(TimeoutError())
        if left := [until for until in self._under_way.values() if until > loop.time()]:
            self._wake_at(min(left))

    def _kept(self, since: float) -> _Connection | None:
        """A connection that was used a moment ago; the others have waited longer still."""
        while self._idle:
            connection = self._idle.pop()
            if connection.open and connection.idle_since >= since:
                return connection
            connection.abort()
        return None

    async def _connected(self) -> _Connection:
        via = self._proxy or self._url
        host, port = str(via.raw_host), via.port or 0
        try:
            connection = await self._reached(host, port)
            try:
                if via.scheme == "https":
                    await self._secure(connection, host)
                if self._proxy and self._url.scheme == "https":
                    await self._tunnel(connection, self._proxy)
                    await self._secure(connection, str(self._url.raw_host))
            except BaseException:
                self._address = None
                connection.abort()
                raise
        except ssl.SSLCertVerificationError:
            raise
        except (OSError, UnicodeError) as error:
            raise NotConnected(f"cannot connect to {host}:{port}: {error}") from error
        return connection

    async def _reached(self, host: str, port: int) -> _Connection:
        """A connection to a host, at the address that answered last; it is looked up by one call for all."""
        loop = asyncio.get_running_loop()
        while True:
            async with self._looking_up:
                if self._address is None or self._address[1] < loop.time():
                    connection = await self._opened(host, port)
                    peer = connection.transport.get_extra_info("peername")  # None: it is lost again
                    self._address = (peer[0], loop.time() + _ADDRESS_KEPT_S) if peer else None
                    return connection
            known = self._address
            try:
                async with asyncio.timeout(_KNOWN_ADDRESS_S):
                    return await self._opened(known[0], port)
            except BaseException as error:
                if self._address is known:
                    self._address = None
                if not isinstance(error, OSError):  # the call has no time left
                    raise

    async def _opened(self, host: str, port: int) -> _Connection:
        # No race for a lone address: one that is cancelled may leave its socket open.
        lone = ":" in host or host.replace(".", "").isdigit()
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: _Connection(self._most_bytes),
            host,
            port,
            happy_eyeballs_delay=None if lone else _NEXT_ADDRESS_S,
        )
        return connection

    async def _tunnel(self, connection: _Connection, proxy: URL) -> None:
        there = f"{self._url.host_subcomponent}:{self._url.port}"
        credentials = _credentials(proxy, "proxy-authorization")
        lines = "".join(f"{name}: {value}\r\n" for name, value in credentials.items())
        request = f"CONNECT {there} HTTP/1.1\r\nhost: {there}\r\n{lines}\r\n"
        answer = await connection.ask(request.encode(), head_only=True)
        if answer.status != 200:
            raise OSError(f"the proxy answers with HTTP {answer.status}")

    async def _secure(self, connection: _Connection, host: str) -> None:
        """Speak TLS with the other end. What came before it would be taken for the server's answer."""
        if connection.unread:
            raise BrokenAnswer("there is an answer before TLS has begun")
        transport = await asyncio.get_running_loop().start_tls(
            connection.transport, connection, self._context(), server_hostname=host.rstrip(".")
        )
        if transport is None:  # the connection was closing
            raise BrokenAnswer("the connection was closed before TLS had begun")
        connection.connection_made(transport)

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls


class _Connection(asyncio.Protocol):
    """One connection: a question at a time, and its answer.

    Attributes:
        open: whether it can be used.
        reusable: whether it can be used again after the last answer.
        idle_since: time on the loop's clock.
    """

    transport: asyncio.Transport

    def __init__(self, most_bytes: int) -> None:
        self.open, self.reusable, self.idle_since = True, False, 0.0
        self._most_bytes = most_bytes
        self._buffer = bytearray()
        self._ended = False  # nothing more comes
        self._reading: Reading | None = None
        self._answer: asyncio.Future[Answer] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def abort(self) -> None:
        """Let go of the connection at once; whatever is under way is given up."""
        self.open = False
        self.transport.abort()

    @property
    def unread(self) -> bool:
        """Whether something came that nobody has read."""
        return bool(self._buffer)

    def ask(self, request: bytes, *, head_only: bool = False) -> asyncio.Future[Answer]:
        """Send a request; the answer to come, or its head alone."""
        answer = self._answer = asyncio.get_running_loop().create_future()
        self._reading = self._read(head_only=head_only)
        self.reusable = False
        next(self._reading)
        self.transport.write(request)
        return answer

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._reading is None:  # nobody has asked
            self.abort()
        else:
            self._read_on(self._reading)

    def eof_received(self) -> None:
        self._ended, self.open = True, False
        if self._reading is not None:
            self._read_on(self._reading)

    def connection_lost(self, error: Exception | None) -> None:
        self._ended, self.open = True, False
        if isinstance(error, OSError):
            self.end(error)
        elif self._reading is not None:
            self._read_on(self._reading)

    def _read_on(self, reading: Reading) -> None:
        try:
            next(reading)
        except StopIteration as end:
            self.reusable = self.reusable and self.open and not self.transport.get_write_buffer_size()
            self.end(end.value)
        except Exception as error:  # noqa: BLE001 - raised again where the answer is awaited
            self.end(error)

    def end(self, outcome: Answer | Exception) -> None:
        """Hand over the answer, or why there is none."""
        self._reading = None
        if self._answer is None or self._answer.done():
            return
        if isinstance(outcome, Exception):
            self._answer.set_exception(outcome)
        else:
            self._answer.set_result(outcome)

    def _read(self, *, head_only: bool) -> Reading:
        """Read an answer: its head, behind those that only say that one will come, and its body."""
        yield
        status = 100
        while status < 200:
            head = yield from self._until(b"\r\n\r\n", _LONGEST_HEAD)
            first, *lines = head.decode("latin-1").split("\r\n")
            if not (known := _STATUS_LINE.match(first)):
                raise BrokenAnswer("the server's answer is not HTTP/1.1")
            status = int(known[1])
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            if name.endswith((" ", "\t")):  # one in between may take it for the header without the blank
                raise BrokenAnswer("the server's answer is not HTTP/1.1")
            name, value = name.lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        if status in _NO_BODY or head_only:
            return Answer(status, headers, b"")
        keep = headers.get("connection", "close" if first.startswith("HTTP/1.0") else "").lower()
        body = _Body(headers.get("content-encoding", ""), self._most_bytes)
        if headers.get("transfer-encoding", "").lower().endswith("chunked"):
            whole = yield from self._chunks(body)
        elif "content-length" in headers:
            length = headers["content-length"]
            if not _LENGTH.fullmatch(length):
                raise BrokenAnswer("the server's answer has no usable length")
            whole = yield from self._bytes(int(length), body)
        else:
            whole = False
            while not body.full and (part := (yield from self._some(_LONGEST_HEAD))):
                body.add(part)
        # with two statements of where it ends, another one in between may hold to the other
        plain = not ("transfer-encoding" in headers and "content-length" in headers)
        self.reusable = whole and plain and "close" not in keep and not self._buffer
        return Answer(status, headers, body.whole())

    def _chunks(self, body: _Body) -> Generator[None, None, bool]:
        """Read a body that comes in chunks; whether it was read to its end."""
        while True:
            line = yield from self._until(b"\r\n", _LONGEST_CHUNK_LINE)
            if not _CHUNK_SIZE.match(line):
                raise BrokenAnswer("the server's answer comes in chunks of no usable size")
            size = int(line.partition(b";")[0], 16)
            if not size:
                break
            if not (yield from self._bytes(size, body)):
                return False
            if (yield from self._until(b"\r\n", 2)):
                raise BrokenAnswer("the server's answer comes in chunks that are longer than they say")
        while (yield from self._until(b"\r\n", _LONGEST_HEAD)):
            pass
        return True

    def _bytes(self, left: int, body: _Body) -> Generator[None, None, bool]:
        """Read so many bytes of a body; whether they were read to their end."""
        while left and not body.full:
            part = yield from self._some(left)
            if not part:
                raise BrokenAnswer("the connection was lost in the middle of the answer")
            left -= len(part)
            body.add(part)
        return not left

    def _until(self, end: bytes, most: int) -> Generator[None, None, bytes]:
        """What comes before an end, which is taken too."""
        while (found := self._buffer.find(end)) < 0:
            if len(self._buffer) > most:
                raise BrokenAnswer("the head of the server's answer is too long")
            if self._ended:
                raise BrokenAnswer("the server closed the connection before its answer was whole")
            yield
        taken = bytes(self._buffer[:found])
        del self._buffer[: found + len(end)]
        return taken

    def _some(self, most: int) -> Generator[None, None, bytes]:
        """At least one byte; none where nothing more comes."""
        while not self._buffer and not self._ended:
            yield
        taken = bytes(self._buffer[:most])
        del self._buffer[:most]
        return taken


class _Body:
    """A body as it comes, decompressed, up to a little more than the most that is read.

    Attributes:
        full: whether no more is wanted.
    """

    def __init__(self, encoding: str, most: int) -> None:
        self._encoding = encoding.strip().lower()
        if self._encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            message = f"the server's answer is compressed by {encoding[:20]!r}, which was not asked for"
            raise CallFailed("server", message, retry=True, billed=True)
        self._most = most
        self._inflater: Any = None
        self._parts: list[bytes] = []
        self._came = self._size = 0
        self.full = False

    def add(self, part: bytes) -> None:
        """Take in what came."""
        self._came += len(part)
        if self._encoding not in ("", "identity"):
            if self._inflater is None:
                # Some servers send the bare stream for "deflate": it lacks the header, whose low bits are 8.
                bare = self._encoding == "deflate" and part[0] & 0xF != 8
                self._inflater = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS | 32)
            try:
                part = self._inflater.decompress(part, self._most + 1 - self._size)
            except zlib.error as error:
                message = f"the server's answer is not compressed by {self._encoding}, as it says"
                raise CallFailed("server", message, retry=True, billed=True) from error
        self._parts.append(part)
        self._size += len(part)
        self.full = max(self._came, self._size) > self._most

    def whole(self) -> bytes:
        """All of it."""
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


def _credentials(url: URL, header: str) -> dict[str, str]:
    """The header that the user and password in an address are sent in."""
    if url.user is None and url.password is None:
        return {}
    pair = f"{url.user or ''}:{url.password or ''}".encode()
    return {header: f"Basic {base64.b64encode(pair).decode()}"}
