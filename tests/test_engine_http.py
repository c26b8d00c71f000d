"""Calls by aiohttp to servers on 127.0.0.1: odd answers, kept connections, TLS, proxies, IPv6, time."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from judgecal.engine.calls import CallFailed, Reply
from judgecal.engine.transport.http import HttpTransport
from judgecal.models import ModelSpec
from tests.support.server import completion

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
BODY = json.dumps(completion("85")).encode()
SIZE = b"content-length: %d\r\n" % len(BODY)
WHOLE = OK + SIZE + b"\r\n" + BODY
ONE_CHUNK = b"%x;ext=1\r\n" % len(BODY) + BODY + b"\r\n0\r\ntrailer: x\r\n\r\n"
ZIPPED = gzip.compress(BODY)


class Server:
    """Says the next of its answers to each request, piece by piece; an empty one hangs up.

    Attributes:
        heads: of its requests; `connections`: how many there were.
    """

    def __init__(self, *answers: Sequence[bytes]) -> None:
        self.answers, self.heads, self.connections = list(answers), list[bytes](), 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while self.answers:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                await reader.readexactly(
                    int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                )
                pieces = self.answers.pop(0)
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.0005)
                if not pieces or b"connection: close" in pieces[0]:
                    break
        writer.close()


@contextlib.asynccontextmanager
async def serving(talk: Callable[..., Any], host: str = "127.0.0.1", **options: Any) -> AsyncIterator[int]:
    async with await asyncio.start_server(talk, host, 0, **options) as server:
        yield server.sockets[0].getsockname()[1]


async def called(
    address: str, times: int = 1, *, timeout: float = 5.0, pause: float = 0.0, model: str = "openai/m"
) -> list[Reply | CallFailed]:
    """The outcomes of so many calls by one transport, one after the other."""
    transport = HttpTransport(ModelSpec("m", model, api_base=address, timeout=timeout))
    outcomes: list[Reply | CallFailed] = []
    for _ in range(times):
        try:
            outcomes.append(await transport.send([{"role": "user", "content": "u"}]))
        except CallFailed as failure:
            outcomes.append(failure)
        await asyncio.sleep(pause)
    await transport.close()
    return outcomes


def answered(server: Server, times: int = 1, **how: Any) -> list[Reply | CallFailed]:
    """The outcomes of calls to a server on 127.0.0.1."""

    async def main() -> list[Reply | CallFailed]:
        async with serving(server.talk) as port:
            return await called(f"http://127.0.0.1:{port}/v1", times, **how)

    return asyncio.run(main())


def texts(outcomes: Sequence[Reply | CallFailed]) -> list[str]:
    """The replies' texts; a failure is raised."""
    for outcome in outcomes:
        if isinstance(outcome, CallFailed):
            raise outcome
    return [outcome.text for outcome in outcomes if isinstance(outcome, Reply)]


@pytest.mark.parametrize(
    "pieces",
    [
        [WHOLE[at : at + 1] for at in range(len(WHOLE))],
        [b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + WHOLE],
        [CHUNKED + ONE_CHUNK],
        [OK + b"connection: close\r\n\r\n", BODY[:9], BODY[9:]],
        [OK + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(ZIPPED) + ZIPPED],
        [(OK + SIZE + b"\r\n").replace(b"\r\n", b"\n") + BODY],
    ],
    ids=["byte by byte", "early heads", "chunks", "until it closes", "gzip", "bare LF"],
)
def test_an_answer_is_read_as_it_comes(pieces: list[bytes]) -> None:
    assert texts(answered(Server(pieces))) == ["85"]


@pytest.mark.parametrize(
    ("pieces", "kind", "message"),
    [
        ([], "transport", "Server disconnected"),
        ([OK + b"connection: close\r\ncontent-length: 9\r\n\r\n85"], "transport", "lost in the middle"),
        ([CHUNKED + b"1\r\n85\r\n0\r\n\r\n"], "transport", "not HTTP/1.1"),
        ([b"connection: close\r\n\r\n"], "transport", "not HTTP/1.1"),
        ([OK + b"transfer-encoding : chunked\r\n" + SIZE + b"\r\n" + BODY], "transport", "not HTTP/1.1"),
        ([OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\n85"], "transport", "not HTTP/1.1"),
        ([OK + b"x: " + b"y" * 70_000 + b"\r\n\r\n"], "transport", "not HTTP/1.1"),
        ([OK + b"content-encoding: gzip\r\n" + SIZE + b"\r\n" + BODY], "server", "cannot be decompressed: gzip"),
        ([b"HTTP/1.1 429\r\nRetry-After:3\r\ncontent-length:0\r\n\r\n"], "rate_limit", "HTTP 429"),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_a_failure_that_is_tried_again(
    pieces: list[bytes], kind: str, message: str
) -> None:
    (failure,) = answered(Server(pieces))
    assert isinstance(failure, CallFailed)
    assert (failure.kind, failure.retry, failure.billed) == (kind, True, kind != "rate_limit"), failure
    assert message in str(failure)
    assert failure.retry_after == (3.0 if kind == "rate_limit" else None)


@pytest.mark.parametrize(
    ("answers", "connections"),
    [
        ([[WHOLE]] * 3, 1),
        ([[OK + b"connection: close\r\n" + SIZE + b"\r\n" + BODY]] * 3, 3),
        ([[WHOLE.replace(b"1.1", b"1.0", 1)]] * 3, 3),
        ([[WHOLE + WHOLE.replace(b"85", b"99")]] * 3, 3),  # unasked: it must not answer the next call
    ],
    ids=["kept", "close", "HTTP/1.0", "unasked answer"],
)
def test_a_connection_is_kept_while_both_ends_want_it(answers: list[list[bytes]], connections: int) -> None:
    server = Server(*answers)
    assert texts(answered(server, 3, pause=0.02)) == ["85"] * 3
    assert server.connections == connections


def test_the_timeout_covers_slow_heads() -> None:
    slow = [OK + b"x: ", *[b"y"] * 5000]
    late, reply = answered(Server(slow, [WHOLE]), 2, timeout=0.3)
    assert isinstance(late, CallFailed)
    assert (late.kind, str(late), late.billed) == ("timeout", "no reply within 0.3 s", True)
    assert texts([reply]) == ["85"]


def test_nothing_was_sent_where_nobody_listens() -> None:
    async def main() -> None:
        async with serving(Server().talk) as port:
            pass
        (failure,) = await called(f"http://127.0.0.1:{port}/v1")
        assert isinstance(failure, CallFailed)
        assert (failure.kind, failure.retry, failure.billed) == ("transport", True, False)
        assert f"cannot connect to 127.0.0.1:{port}: " in str(failure)

    asyncio.run(main())


def test_ipv6_addresses_are_reached() -> None:
    async def main() -> None:
        async with serving(Server([WHOLE]).talk, "::1") as port:
            assert texts(await called(f"http://[::1]:{port}/v1")) == ["85"]

    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    asyncio.run(main())


def test_what_netrc_holds_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password pass-word\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server = Server([WHOLE])
    assert texts(answered(server)) == ["85"]
    assert b"authorization" not in server.heads[0].lower()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1, signed by itself, with its key."""
    key = tmp_path_factory.mktemp("tls") / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", f"{key}.crt"]
    try:
        subprocess.run([*command, *names], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"openssl makes no certificate here: {error}")
    return key


def speaking_tls(key: Path) -> ssl.SSLContext:
    """A server's side of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{key}.crt", key)
    return context


@pytest.mark.parametrize("proxied", [False, True])
def test_tls_trusts_what_ssl_cert_file_names_also_through_a_proxy(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, proxied: bool
) -> None:
    server, tunnels = Server([WHOLE], [WHOLE], [WHOLE]), list[bytes]()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
        writer.close()

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tunnels.append(await reader.readuntil(b"\r\n\r\n"))
        port = int(tunnels[-1].split()[1].rpartition(b":")[2])
        there = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(carry(reader, there[1]), carry(there[0], writer))

    async def main() -> None:
        tls = speaking_tls(certificate)
        async with serving(server.talk, ssl=tls) as port, serving(tunnel) as between:
            address = f"https://127.0.0.1:{port}/v1"
            if proxied:
                monkeypatch.setenv("HTTPS_PROXY", f"http://me:pass-word@127.0.0.1:{between}")
            (refused,) = await called(address)
            assert isinstance(refused, CallFailed) and "certificate verify failed" in str(refused)
            assert (refused.kind, refused.retry, refused.billed) == ("transport", False, False)
            monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
            assert texts(await called(address, 2)) == ["85", "85"]
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
            assert texts(await called(address)) == ["85"]

    asyncio.run(main())
    assert len(tunnels) == 2 * proxied and len(server.heads) == 3
    for head in tunnels:  # the proxy is told where to, and no key of the model's
        assert head.startswith(b"CONNECT 127.0.0.1:")
        assert b"proxy-authorization: basic bwu6cgfzcy13b3jk" in head.lower()
    assert not any(b"proxy-authorization" in head.lower() for head in server.heads)


def test_a_proxy_that_refuses_is_named_and_its_text_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 No\r\n" + SIZE + b"\r\n" + BODY)
        writer.close()

    async def main() -> None:
        async with serving(refuse) as port:
            monkeypatch.setenv("HTTPS_PROXY", f"http://me:pass-word@127.0.0.1:{port}")
            (failure,) = await called("https://model.invalid/v1")
        assert isinstance(failure, CallFailed) and not failure.billed and failure.retry
        assert str(failure) == "cannot connect: the proxy answers with HTTP 407"

    asyncio.run(main())
