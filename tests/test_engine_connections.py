"""HTTP/1.1 as servers speak it: whole, in pieces, wrongly; kept connections, TLS, and proxies in between."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import ssl
import subprocess
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from judgecal.engine.calls import CallFailed
from judgecal.engine.transport import connections as connections_module
from judgecal.engine.transport.connections import Answer, BrokenAnswer, Connections, NotConnected

OK = b"HTTP/1.1 200 OK\r\n"
WHOLE = OK + b"content-length: 2\r\n\r\n85"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
MOST = 1000


class Server:
    """Says the next of its answers to each request, piece by piece; an empty one hangs up.

    Attributes:
        requests: what it was sent; `connections`: how many there were.
    """

    def __init__(self, *answers: Sequence[bytes]) -> None:
        self.answers, self.requests, self.connections = list(answers), list[bytes](), 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while self.answers:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
                self.requests.append(head + await reader.readexactly(length))
                pieces = self.answers.pop(0)
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.001)
                if not pieces or b"connection: close" in pieces[0]:
                    break
        writer.close()


@contextlib.asynccontextmanager
async def serving(talk: Callable[..., Any], **options: Any) -> AsyncIterator[int]:
    server = await asyncio.start_server(talk, "127.0.0.1", 0, **options)
    async with server:
        yield server.sockets[0].getsockname()[1]


def posted(
    server: Server, times: int = 1, *, timeout: float = 5.0, pause: float = 0.0
) -> list[Answer | Exception]:
    """The answers to so many texts, one after the other."""

    async def main() -> list[Answer | Exception]:
        answers: list[Answer | Exception] = []
        async with serving(server.talk) as port:
            url = URL(f"http://127.0.0.1:{port}/v1?a=b%20c")
            connections = Connections(url, {"x-key": "k"}, proxy=None, most_bytes=MOST)
            for _ in range(times):
                try:
                    answers.append(await connections.post(b'{"a":1}', timeout=timeout))
                except (OSError, CallFailed) as error:
                    answers.append(error)
                await asyncio.sleep(pause)
            connections.close()
            await asyncio.sleep(0)
        return answers

    return asyncio.run(main())


def one_byte_at_a_time(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


@pytest.mark.parametrize(
    ("pieces", "status", "body"),
    [
        ([WHOLE], 200, b"85"),
        (one_byte_at_a_time(WHOLE), 200, b"85"),
        ([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + WHOLE], 200, b"85"),
        ([b"HTTP/1.1 429\r\nRetry-After:3\r\ncontent-length:0\r\n\r\n"], 429, b""),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], 204, b""),
        ([CHUNKED + b"1\r\n8\r\n1;ext=1\r\n5\r\n0\r\ntrailer: x\r\n\r\n"], 200, b"85"),
        (one_byte_at_a_time(CHUNKED + b"02\r\n85\r\n0\r\n\r\n"), 200, b"85"),
        ([OK + b"connection: close\r\n\r\n", b"8", b"5"], 200, b"85"),
        ([OK + b"content-encoding: gzip\r\nconnection: close\r\n\r\n" + gzip.compress(b"85")], 200, b"85"),
        ([OK + b"no colon here\r\ncontent-length: 2\r\n\r\n85"], 200, b"85"),
    ],
)
def test_an_answer_is_read_as_it_comes(pieces: list[bytes], status: int, body: bytes) -> None:
    server = Server(pieces)
    (answer,) = posted(server)
    assert isinstance(answer, Answer)
    assert (answer.status, answer.body) == (status, body)
    (request,) = server.requests
    head, _, sent = request.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1?a=b%20c HTTP/1.1\r\nhost: 127.0.0.1:")
    assert sent == b'{"a":1}' and b"x-key: k" in head.split(b"\r\n")


@pytest.mark.parametrize(
    ("pieces", "says"),
    [
        ([], "closed the connection before its answer was whole"),
        ([OK + b"connection: close\r\ncontent-length: 9\r\n\r\n85"], "lost in the middle of the answer"),
        ([b"connection: close\r\n\r\n"], "is not HTTP/1.1"),
        ([b"HTTP/2 200\r\nconnection: close\r\n\r\n"], "is not HTTP/1.1"),
        ([OK + b"transfer-encoding : chunked\r\ncontent-length: 2\r\n\r\n85"], "is not HTTP/1.1"),
        ([OK + b"content-length: -1\r\n\r\n"], "no usable length"),
        ([OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\n85"], "no usable length"),
        ([OK + b"content-length: " + b"9" * 5000 + b"\r\n\r\n"], "no usable length"),
        ([CHUNKED + b"+1\r\n8\r\n"], "no usable size"),
        ([CHUNKED + b"1\r\n85\r\n0\r\n\r\n"], "longer than they say"),
        ([OK + b"x: " + b"y" * 70_000], "too long"),
    ],
)
def test_an_answer_that_is_none_is_named(pieces: list[bytes], says: str) -> None:
    (error,) = posted(Server(pieces))
    assert isinstance(error, BrokenAnswer) and says in str(error)


def test_no_more_of_an_answer_is_read_than_was_stated() -> None:
    bomb = gzip.compress(bytes(100_000))
    zipped = OK + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(bomb) + bomb
    endless = [CHUNKED, *[b"400\r\n" + bytes(1024) + b"\r\n"] * 50]
    for pieces, connections in (([zipped], 1), (endless, 2)):
        server = Server(pieces, [WHOLE])
        first, second = posted(server, 2)
        assert isinstance(first, Answer) and MOST < len(first.body) < 3 * MOST
        assert isinstance(second, Answer) and second.body == b"85"
        assert server.connections == connections


@pytest.mark.parametrize(
    ("answers", "connections"),
    [
        ([[WHOLE]] * 3, 1),
        ([[OK + b"Connection: Keep-Alive\r\ncontent-length: 0\r\n\r\n"]] * 3, 1),
        ([[OK + b"connection: close\r\ncontent-length: 2\r\n\r\n85"]] * 3, 3),
        ([[WHOLE.replace(b"1.1", b"1.0")]] * 3, 3),
        ([[CHUNKED[:-2] + b"content-length: 2\r\n\r\n2\r\n85\r\n0\r\n\r\n"]] * 3, 3),  # two ends in one head
        ([[WHOLE + b"HTTP/1.1 200 OK\r\n"]] * 3, 3),  # what nobody asked for is not the next one's answer
    ],
)
def test_a_connection_is_kept_while_both_ends_want_it(answers: list[list[bytes]], connections: int) -> None:
    server = Server(*answers)
    assert all(isinstance(answer, Answer) for answer in posted(server, 3))
    assert server.connections == connections


def test_a_connection_that_was_closed_meanwhile_is_not_used_again() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        await reader.readuntil(b"}")
        writer.write(WHOLE)
        writer.close()

    server = Server()
    server.talk = talk  # type: ignore[method-assign]
    assert [isinstance(answer, Answer) for answer in posted(server, 2, pause=0.05)] == [True, True]
    assert server.connections == 2


def test_an_answer_has_its_time() -> None:
    server = Server([OK, *[b"x: y\r\n"] * 500], [WHOLE])
    late, answer = posted(server, 2, timeout=0.2)
    assert isinstance(late, TimeoutError)
    assert isinstance(answer, Answer) and server.connections == 2


def test_nothing_was_sent_where_nobody_listens() -> None:
    async def main() -> None:
        async with serving(Server().talk) as port:
            pass
        connections = Connections(URL(f"http://127.0.0.1:{port}/"), {}, proxy=None, most_bytes=MOST)
        with pytest.raises(NotConnected, match=rf"cannot connect to 127\.0\.0\.1:{port}"):
            await connections.post(b"", timeout=5.0)

    asyncio.run(main())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 and localhost, signed by itself, with its key."""
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    names = "subjectAltName=IP:127.0.0.1,DNS:localhost"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x"]
    try:
        subprocess.run(
            [*command, "-addext", names, "-keyout", str(file), "-out", str(file) + ".crt"],
            check=True, capture_output=True,
        )  # fmt: skip
    except OSError:
        pytest.skip("no openssl here")
    file.write_bytes(file.read_bytes() + Path(f"{file}.crt").read_bytes())
    return file


@pytest.mark.parametrize("proxied", [False, True])
def test_tls_reaches_to_the_server_also_through_a_proxy(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, proxied: bool
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server, asked = Server(*[[WHOLE]] * 4), list[bytes]()

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        there = await asyncio.open_connection("127.0.0.1", int(asked[0].split()[1].rpartition(b":")[2]))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(carry(reader, there[1]), carry(there[0], writer))

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
        writer.close()

    async def main() -> None:
        async with serving(server.talk, ssl=context) as port, serving(tunnel) as between:
            url = URL(f"https://127.0.0.1:{port}/v1")
            proxy = URL(f"http://me:pass-word@127.0.0.1:{between}") if proxied else None
            with pytest.raises(ssl.SSLCertVerificationError):
                await Connections(url, {}, proxy=proxy, most_bytes=MOST).post(b"", timeout=5.0)
            monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
            connections = Connections(url, {}, proxy=proxy, most_bytes=MOST)
            for _ in range(2):
                assert (await connections.post(b"{}", timeout=5.0)).body == b"85"
            assert len(server.requests) == 2
            connections.close()
            await asyncio.sleep(0.05)

    asyncio.run(main())
    assert len(asked) == 2 * proxied
    assert all(b"proxy-authorization: Basic bWU6cGFzcy13b3Jk" in head for head in asked)


def test_a_proxy_that_refuses_is_named() -> None:
    async def main() -> None:
        answer = b"HTTP/1.1 407 No\r\ncontent-length: 9\r\n\r\n"  # no need to wait for its text
        async with serving(Server([answer]).talk) as port:
            proxy = URL(f"http://127.0.0.1:{port}")
            connections = Connections(URL("https://model.invalid/"), {}, proxy=proxy, most_bytes=MOST)
            with pytest.raises(NotConnected, match="the proxy answers with HTTP 407"):
                await connections.post(b"", timeout=5.0)

    asyncio.run(main())


@pytest.mark.parametrize("apart", [False, True])
def test_what_a_proxy_says_before_tls_is_not_the_servers_answer(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    forged = OK + b"content-length: 2\r\n\r\n99"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"\r\n" + forged * (not apart))
        if apart:
            await asyncio.sleep(0)
            writer.write(forged)
        with contextlib.suppress(OSError):
            await writer.start_tls(context)
            await Server([WHOLE]).talk(reader, writer)
        writer.close()

    async def main() -> None:
        async with serving(tunnel) as port:
            proxy = URL(f"http://127.0.0.1:{port}")
            connections = Connections(URL("https://localhost/"), {}, proxy=proxy, most_bytes=MOST)
            with pytest.raises(NotConnected):
                await connections.post(b"", timeout=5.0)

    asyncio.run(main())


def test_a_proxy_that_hangs_up_after_its_answer_is_not_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(*_: object, **__: object) -> None:  # what asyncio gives where the connection is closing
        return None

    async def main() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "start_tls", none)
        async with serving(Server([OK + b"\r\n"]).talk) as port:
            proxy = URL(f"http://127.0.0.1:{port}")
            connections = Connections(URL("https://model.invalid/"), {}, proxy=proxy, most_bytes=MOST)
            with pytest.raises(NotConnected):
                await connections.post(b"", timeout=5.0)

    asyncio.run(main())


def test_a_call_that_was_long_in_connecting_ends_in_its_time_too() -> None:
    async def main() -> None:
        slow = Server([WHOLE], [OK], [OK], [])
        async with serving(slow.talk) as port:
            connections = Connections(URL(f"http://127.0.0.1:{port}/"), {}, proxy=None, most_bytes=MOST)
            await connections.post(b"{}", timeout=1.0)
            connected = connections._connected

            async def late() -> Any:
                await asyncio.sleep(0.3)
                return await connected()

            connections._connected = late  # type: ignore[method-assign]

            async def ended(after: float) -> float:
                await asyncio.sleep(after)
                began = asyncio.get_running_loop().time()
                with pytest.raises(TimeoutError):
                    await connections.post(b"{}", timeout=0.4)
                return asyncio.get_running_loop().time() - began

            quick = asyncio.ensure_future(ended(0.2))  # takes the kept connection, and sets the clock
            kept = connections._idle.pop()
            connecting = asyncio.ensure_future(ended(0.0))
            await asyncio.sleep(0.1)
            connections._idle.append(kept)
            assert await connecting < 0.5 and await quick < 0.5
            connections.close()
            await asyncio.sleep(0.01)

    asyncio.run(main())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_one_server_that_hangs_does_not_hold_up_the_other_calls(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """The first connection is taken and nothing said on it: no TLS, no tunnel."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    came = 0

    async def main() -> None:
        async def between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal came
            came += 1
            if came == 1:
                await reader.read()
            elif scheme == "http":
                await Server([b"HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n"]).talk(reader, writer)
            else:
                await writer.start_tls(context)
                await Server([WHOLE]).talk(reader, writer)
            writer.close()

        async with serving(between) as port:
            url = URL(f"https://127.0.0.1:{port}/")
            proxy = URL(f"http://127.0.0.1:{port}") if scheme == "http" else None
            connections = Connections(url, {}, proxy=proxy, most_bytes=MOST)
            first = asyncio.ensure_future(connections.post(b"", timeout=1.0))
            await asyncio.sleep(0.05)
            second = asyncio.ensure_future(connections.post(b"", timeout=0.5))
            await asyncio.wait([second])
            outcome = second.exception() or second.result()
            assert isinstance(outcome, NotConnected if proxy else Answer), outcome
            with pytest.raises(TimeoutError):
                await first
            connections.close()
            await asyncio.sleep(0.01)

    asyncio.run(main())


@pytest.mark.parametrize("timeout", [0.2, 2.0])
def test_an_address_that_has_gone_silent_is_looked_up_anew(
    monkeypatch: pytest.MonkeyPatch, timeout: float
) -> None:
    """In the same call where that has the time, else in the next."""

    async def main() -> None:
        server = Server([WHOLE.replace(b"1.1", b"1.0")], [WHOLE])
        monkeypatch.setattr(connections_module, "_KNOWN_ADDRESS_S", 0.5)
        loop = asyncio.get_running_loop()
        connect, addresses = loop.sock_connect, list[Any]()

        async def slow(sock: Any, address: Any) -> None:
            addresses.append(address)
            if len(addresses) == 2:
                await asyncio.sleep(9.0)
            await connect(sock, address)

        async with serving(server.talk) as port:
            monkeypatch.setattr(loop, "sock_connect", slow)
            connections = Connections(URL(f"http://127.0.0.1:{port}/"), {}, proxy=None, most_bytes=MOST)
            await connections.post(b"", timeout=5.0)
            assert connections._address
            if timeout < 1.0:
                with pytest.raises(TimeoutError):
                    await connections.post(b"", timeout=timeout)
                assert connections._address is None
            assert (await connections.post(b"", timeout=2.0)).body == b"85"
            assert connections._address and len(addresses) == 3
            connections.close()
            await asyncio.sleep(0.01)

    asyncio.run(main())


def test_calls_under_way_end_when_the_connections_are_closed() -> None:
    async def main() -> None:
        async with serving(Server([OK], []).talk) as port:
            connections = Connections(URL(f"http://127.0.0.1:{port}/"), {}, proxy=None, most_bytes=MOST)
            call = asyncio.ensure_future(connections.post(b"{}", timeout=5.0))
            await asyncio.sleep(0.05)
            connections.close()
            await asyncio.wait([call], timeout=1.0)
            assert call.done() and isinstance(call.exception(), BrokenAnswer)

    asyncio.run(main())


@pytest.mark.parametrize("proxied", [False, True])
def test_credentials_of_an_address_are_a_header_and_stand_nowhere_else(proxied: bool) -> None:
    async def main() -> None:
        server = Server([WHOLE])
        async with serving(server.talk) as port:
            url = URL(f"http://me:pass-word@127.0.0.1:{port}/v1#part")
            proxy = URL(f"http://:token@127.0.0.1:{port}") if proxied else None
            connections = Connections(url, {}, proxy=proxy, most_bytes=MOST)
            await connections.post(b"", timeout=5.0)
            connections.close()
            await asyncio.sleep(0.01)
        lines = server.requests[0].decode().split("\r\n")
        target = f"http://127.0.0.1:{port}/v1" if proxied else "/v1"
        assert lines[0] == f"POST {target} HTTP/1.1"
        assert "authorization: Basic bWU6cGFzcy13b3Jk" in lines
        assert ("proxy-authorization: Basic OnRva2Vu" in lines) == proxied

    asyncio.run(main())


def test_calls_that_are_given_up_leave_no_connection_and_no_answer_behind() -> None:
    """Each is cancelled a few turns of the loop after it began, so at every place where it waits."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                body = await reader.readexactly(int(head.partition(b"content-length: ")[2]))
                writer.write(OK + b"content-length: %d\r\n\r\n" % len(body) + body)
        writer.close()

    async def main() -> int:
        async with serving(echo) as port:
            connections = Connections(URL(f"http://127.0.0.1:{port}/"), {}, proxy=None, most_bytes=MOST)

            async def ask(number: int) -> bool:
                text = b"item %d" % number
                call = asyncio.ensure_future(connections.post(text, timeout=5.0))
                for _ in range(number % 20):
                    await asyncio.sleep(0)
                call.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    assert (await call).body == text
                return call.cancelled()

            await connections.post(b"", timeout=5.0)
            given_up = [await ask(number) for number in range(100)]
            given_up += await asyncio.gather(*(ask(number) for number in range(100)))
            assert any(given_up) and not connections._under_way
            connections.close()
            await asyncio.sleep(0.05)
        return port

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        port = asyncio.run(main())
        gc.collect()
    assert not [one for one in caught if f"raddr=('127.0.0.1', {port})" in str(one.message)]
