"""The page over HTTP: who may ask, what is refused, what every reply carries, and how it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from judgecal.desk.server import DeskServer
from judgecal.goldset import load_gold
from tests.support.command import Run, tree
from tests.support.desk import desk_of, waiting

Ask = Callable[..., Awaitable[tuple[int, Any, Any]]]


def asked(
    folder: Path, body: Callable[[DeskServer, Ask], Awaitable[None]], *, host: str = "127.0.0.1", **how: Any
) -> None:
    async def run() -> None:
        with desk_of(folder, how.pop("raters", ("ann", "bob")), **how) as desk:
            server, ready = DeskServer(desk, host), asyncio.Event()
            serving = asyncio.create_task(server.serve(lambda _: ready.set()))
            await asyncio.wait_for(ready.wait(), 20)
            async with aiohttp.ClientSession(trust_env=False) as session:

                async def ask(
                    verb: str,
                    sent: Any = None,
                    *,
                    rater: str = "ann",
                    token: str | None = None,
                    **headers: str,
                ) -> tuple[int, Any, Any]:
                    token = server.tokens[rater] if token is None else token
                    given = {"Judgecal-Rater": rater, "Judgecal-Token": token}
                    data = sent if isinstance(sent, bytes) else json.dumps(sent or {}).encode()
                    own = {"Content-Type": "application/json", **given, **headers}
                    url = f"http://127.0.0.1:{server.port}/act/{verb}"
                    async with session.post(url, data=data, headers=own) as reply:
                        return reply.status, await reply.json(content_type=None), reply.headers

                await body(server, ask)
            server.end()
            await serving

    asyncio.run(run())


def test_who_has_no_business_here_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    folder = waiting(tmp_path / "set", 4)
    before = {name: data for name, data in tree(folder).items() if not name.startswith(".")}

    async def body(server: DeskServer, ask: Ask) -> None:
        _, told, _ = await ask("next")
        good, port = {"item": told["item"]["key"], "label": "yes"}, server.port
        refused: list[dict[str, Any]] = [
            *({"Host": host} for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1:{port + 1}")),
            *({"Host": f"10.0.0.7:{port}"}, {"Origin": "http://evil.example"}, {"Origin": "null"}),
            *({"token": token} for token in ("", "x" * 32, server.tokens["bob"])),
            *({"Judgecal-Rater": rater} for rater in ("carol", "../ann")),
        ]
        for status, more in (*((403, more) for more in refused), (415, {"Content-Type": "text/plain"})):
            found, said, headers = await ask("label", good, **more)
            assert (found, list(said)) == (status, ["problem"]) and said["problem"].endswith("."), more
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            assert headers["Cache-Control"] == "no-store"
        bodies: list[tuple[int, Any]] = [
            *((422, {**good, "label": label}) for label in ("maybe", 1)),
            *((404, {**good, "item": item}) for item in ("../../../etc/passwd", {"a": 1})),
            *((400, body) for body in (b"{", b"[" * 60_000, b"[1]")),
            (413, b" " * 70_000),
        ]
        for status, sent in bodies:
            found, said, _ = await ask("label", sent)
            assert (found, list(said)) == (status, ["problem"]), sent
        for verb in ("", "serve", "..%2f..%2fetc%2fpasswd", "label/../../x"):
            found, _, _ = await ask(verb, good)
            assert found in (404, 405), verb

    asked(folder, body)
    assert {name: data for name, data in tree(folder).items() if not name.startswith(".")} == before


def test_the_page_holds_nothing_of_the_set_and_lists_nothing(tmp_path: Path) -> None:
    folder = waiting(tmp_path / "secretset", 4)

    async def body(server: DeskServer, ask: Ask) -> None:
        base = f"http://127.0.0.1:{server.port}"
        async with aiohttp.ClientSession(trust_env=False) as session:
            async with session.get(f"{base}/") as reply:
                text, headers = await reply.text(), reply.headers
                assert reply.status == 200
            assert not [
                word
                for word in ("secretset", "sell at the fair", "innerHTML", "insertAdjacent")
                if word in text
            ]
            assert "ann" not in text.split("<script")[0].split() and "http://" not in text.replace(
                "data:", ""
            )
            policy = headers["Content-Security-Policy"]
            nonce = policy.partition("'nonce-")[2].partition("'")[0]
            assert len(nonce) > 20 and f'<script nonce="{nonce}">' in text and "unsafe" not in policy
            async with session.get(f"{base}/") as again:
                assert nonce not in again.headers["Content-Security-Policy"]
            for path in ("items.jsonl", "act", "act/next", "static/", "..%2f..%2fetc/passwd", "favicon.ico"):
                async with session.get(f"{base}/{path}") as reply:
                    assert reply.status in (404, 405) and list(await reply.json()) == ["problem"]
            async with session.get(f"{base}/", headers={"Host": "evil.example"}) as reply:
                assert reply.status == 403

    asked(folder, body)


def test_served_to_others_addresses_in_numbers_are_ours_and_names_are_not(tmp_path: Path) -> None:
    """A name that somebody bent to this address is a name; an address in numbers cannot be bent."""

    async def body(server: DeskServer, ask: Ask) -> None:
        port = server.port
        assert (await ask("next", Host=f"10.0.0.7:{port}"))[0] == 200
        assert (await ask("next", Host=f"evil.example:{port}"))[0] == 403
        assert (await ask("next", Host=f"10.0.0.7:{port}", token="no"))[0] == 403

    asked(waiting(tmp_path / "set", 4), body, host="0.0.0.0")


def test_it_ends_once_all_are_through(tmp_path: Path) -> None:
    async def body(server: DeskServer, ask: Ask) -> None:
        assert (await ask("finish"))[1]["others"] == ["bob"]
        assert (await ask("finish", rater="bob"))[1]["others"] == []
        await asyncio.sleep(0.8)
        with pytest.raises(aiohttp.ClientError):
            await ask("next")

    asked(waiting(tmp_path / "set", 4), body)


# --- the commands


def test_wrong_options_are_one_message(judgecal: Run, workspace_dir: Path) -> None:
    ran = judgecal("gold", "label", "starter", "--raters", "gold,a\x1bb")
    assert ran.code == 2 and ran.err.count("judgecal: ") == 1
    assert "'gold', 'a" in ran.err and "adjudicated label" in ran.err
    ran = judgecal("gold", "label", "starter", "--adjudicate", "--raters", "ann", "--split", "dev")
    assert ran.code == 2 and "--raters, --split with --adjudicate" in ran.err
    assert judgecal("gold", "label", "starter", "--lock", "x").code == 2
    assert not (workspace_dir / "gold" / "starter" / "labels.jsonl").exists()


def test_rows_of_a_file_make_a_set_that_the_same_command_goes_on_with(
    judgecal: Run, workspace_dir: Path
) -> None:
    table = workspace_dir / "answers.csv"
    rows = "".join(f"q{n},a{n},{n}\n" for n in range(12))
    table.write_text(f"question,answer,id\n{rows}", encoding="utf-8")
    words = ("gold", "label", table, "--scale", "binary", "--col", "item=id", "--raters", "ann")
    ran = judgecal(*words, "--dry-run")
    assert ran.code == 0 and "0 of 12 items" in ran.out, ran.err
    assert not (workspace_dir / "gold" / "answers").exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("judgecal.desk.server.DeskServer.serve", lambda self, opened: asyncio.sleep(0))
        assert judgecal(*words).code == 0
        assert len(load_gold(workspace_dir / "gold" / "answers").items) == 12
        assert judgecal(*words).code == 0  # and once more, with the set there
        other = workspace_dir / "others.csv"
        other.write_text(table.read_text(encoding="utf-8"), encoding="utf-8")
        ran = judgecal("gold", "label", other, "--scale", "binary", "--as", "answers")
    assert ran.code == 2 and "name another one by --as" in ran.err
