"""`gold fetch`: the catalogue, the licence that is asked for once, what is refused, what is told of a changed
file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgecal.errors import InputError
from judgecal.exchange import public_sets
from judgecal.exchange.fetch import another_revision, catalogued, fetch_set, plan_fetch
from judgecal.exchange.public_sets import read_catalogue
from judgecal.workspace import Workspace
from tests.support.command import ROOT, Run, one_object, tree
from tests.support.hub import hub_folder
from tests.support.hub_server import played_hub
from tests.support.public_forms import SRA
from tests.support.raw_host import RawHost, raw_host, sent

ROWS = b"q,a,ok\n" + b"".join(b"why %d?,because,%s\n" % (n, b"yes" if n % 2 else b"no") for n in range(8))
ENTRY = """
[sets.{name}]
about = "questions with answers"
calibrates = ["correctness"]
labels_by = "{by}"
scale = "binary"
raters = "one person"
languages = ["en"]
licence = "{licence}"
licence_read = {read}
terms = [{terms}]
home = "https://example.org/{name}"
source = ["{root}/{name}.csv"]
sha256 = [{sha256}]
mapping = "seen"
columns = {{ question = "q", answer = "a", label = ["ok"] }}
"""


def entry(name: str, root: str, **more: str) -> str:
    told = {"by": "people", "licence": "MIT", "read": "true", "terms": "", "sha256": ""} | more
    return ENTRY.format(name=name, root=root, **told)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[RawHost]:
    """A host and a catalogue of sets on it."""
    with raw_host() as running:
        sets = [
            entry("plain", running.root),
            entry("limited", running.root, licence="CC BY-NC-ND 4.0", terms='"NC", "ND"'),
            entry("unread", running.root, read="false"),
            entry("gated", running.root, terms='"gated"'),
            entry("by-model", running.root, by="model"),
            entry("built", running.root, by="construction"),
            entry("pinned", running.root, sha256=f'"{"0" * 64}"'),
        ]
        path = tmp_path / "catalogue.toml"
        path.write_text("schema = 1\n" + "".join(sets), encoding="utf-8")
        monkeypatch.setattr(public_sets, "CATALOGUE", path)
        for name in ("plain", "limited", "unread", "gated", "by-model", "built", "pinned"):
            running.put(f"/{name}.csv", ROWS)
        yield running


class Typed:
    """A keyboard at which somebody types one line."""

    def __init__(self, line: str) -> None:
        self.line, self.asked = line, 0

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        self.asked += 1
        return self.line


def test_a_set_is_fetched_imported_and_its_card_says_where_from(judgecal: Run, host: RawHost) -> None:
    ran = judgecal("gold", "fetch", "plain", "--as", "mine")
    assert ran.code == 0 and "plain: MIT; its terms are on https://example.org/plain" in ran.err
    assert f"judgecal: fetching {host.root}/plain.csv" in ran.err
    assert ran.out.startswith("mine has 8 items on 8 questions, 8 ratings by ok.")
    assert ran.out.rstrip().endswith("next: judgecal gold check mine")
    card = Path("gold/mine/card.toml").read_text(encoding="utf-8")
    assert re.search(
        r'source = "http://[\d.:]+/plain.csv \(sha256 [0-9a-f]{64}, [\d,]+ bytes, fetched [\d-]+\); ', card
    )
    assert (
        'licence = "MIT; read https://example.org/plain before use"' in card
        and 'sampling = "curated"' in card
    )
    assert 'made_by = "judgecal gold fetch plain --as mine"' in card
    assert judgecal("gold", "check", "mine").code == 0
    again = judgecal("gold", "fetch", "plain", "--json")
    found = one_object(again)
    assert "fetching" not in again.err
    assert found["files"][0]["n_bytes"] == len(ROWS) and found["imported"]["n_items"] == 8
    assert host.asked == ["/plain.csv"], "the second time the stored file was taken"


@pytest.mark.parametrize(("name", "asks"), [("limited", "not for commercial use; nothing that is made of it may be"),
                                            ("unread", "its licence was not verified"),
                                            ("gated", "terms of its own")])  # fmt: skip
def test_what_must_be_accepted_is_asked_once(
    judgecal: Run, host: RawHost, monkeypatch: pytest.MonkeyPatch, name: str, asks: str
) -> None:
    ran = judgecal("gold", "fetch", name)
    assert ran.code == 2 and asks in ran.err and "give --accept-licence" in ran.err and not host.asked
    for line in ("\n", "n\n", "", "yes please\n"):
        monkeypatch.setattr(sys, "stdin", typed := Typed(line))
        ran = judgecal("gold", "fetch", name)
        assert (ran.code, typed.asked) == (2, 1) and "not accepted, so nothing was fetched" in ran.err
    assert not host.asked and not Path("gold", name).exists()
    monkeypatch.setattr(sys, "stdin", typed := Typed("y\n"))
    assert judgecal("gold", "fetch", name).code == 0 and typed.asked == 1
    monkeypatch.setattr(sys, "stdin", typed := Typed("n\n"))
    assert judgecal("gold", "fetch", name, "--accept-licence", "--replace").code == 0 and typed.asked == 0
    card = Path("gold", name, "card.toml").read_text(encoding="utf-8")
    assert "--accept-licence" in card and ("not verified" in card) == (name == "unread")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["by-model"], "a model gave its labels (one person): a judge calibrated on it"),
        (["built"], "its labels were made, not given by people"),
        (["plian"], "unknown public set 'plian': did you mean plain"),
        (["plain", "--as", "starter"], "add --replace"),
        (["plain", "--as", "../x"], "use letters, digits"),
        (["pinned"], f"its sha256 must be {'0' * 64}, says the catalogue, found "),
        (["plain", "--label", "x"], "--label x: the public set plain has one label alone"),
    ],
)
def test_what_is_refused_changes_nothing(judgecal: Run, host: RawHost, words: list[str], says: str) -> None:
    before = tree(Path("gold"))
    ran = judgecal("gold", "fetch", *words, "--accept-licence")
    assert ran.code == 2 and says in ran.err and tree(Path("gold")) == before
    assert not host.asked or words == ["pinned"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (sent(ROWS, cut=40), "broke off"),
        (b"<!doctype html><title>Sign in</title>", "sent an HTML page"),
        (b"x,y\n1,2\n", "column 'q'"),
    ],
    ids=["a broken transfer", "a page in the place of data", "a table of other columns"],
)
def test_what_is_not_the_file_leaves_no_set(judgecal: Run, host: RawHost, body: bytes, says: str) -> None:
    host.put("/plain.csv", body, ROWS)
    ran = judgecal("gold", "fetch", "plain")
    assert ran.code == 2 and says in ran.err and not Path("gold/plain").exists()
    assert says != "broke off" or judgecal("gold", "fetch", "plain").code == 0


def test_a_changed_source_is_told_from_the_card_where_nothing_is_stored(
    judgecal: Run, host: RawHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert judgecal("gold", "fetch", "plain").code == 0
    before = tree(Path("gold/plain"))
    host.put("/plain.csv", ROWS + b"who?,he,no\n")
    again = judgecal("gold", "fetch", "plain", "--replace")
    assert again.code == 0 and tree(Path("gold/plain"))["items.jsonl"] == before["items.jsonl"], (
        "the stored file"
    )
    ran = judgecal("gold", "fetch", "plain", "--replace", "--no-cache")
    assert ran.code == 2 and "says the card of plain, found" in ran.err and "--as another name" in ran.err
    monkeypatch.setenv("JUDGECAL_CACHE_DIR", str(tmp_path / "another"))
    ran = judgecal("gold", "fetch", "plain", "--replace")
    assert ran.code == 2 and "its sha256 must be" in ran.err
    assert tree(Path("gold/plain"))["items.jsonl"] == before["items.jsonl"]
    assert judgecal("gold", "fetch", "plain", "--as", "new").code == 0


def test_what_people_wrote_into_the_card_stays(judgecal: Run, host: RawHost) -> None:
    assert judgecal("gold", "fetch", "plain").code == 0
    path = Path("gold/plain/card.toml")
    text = path.read_text(encoding="utf-8").replace("column ok of plain.csv", "Ada, a teacher")
    path.write_text(text.replace('"curated"', '"random"'), encoding="utf-8")
    assert judgecal("gold", "fetch", "plain", "--replace").code == 0
    after = path.read_text(encoding="utf-8")
    assert "Ada, a teacher" in after and '"random"' in after


def test_a_notebook_shows_all_three(
    judgecal: Run, host: RawHost, workspace_dir: Path, tmp_path: Path
) -> None:
    workspace = Workspace(workspace_dir, workspace_dir / "experiments")
    plan = plan_fetch("plain", workspace, tmp_path / "store")
    assert "would be fetched" in plan._repr_html_() and "8 items" in fetch_set(plan, workspace)._repr_html_()
    found = catalogued()
    assert "can be fetched" in found._repr_html_() and found.frame()["name"][0] == "plain"


def test_a_card_that_cannot_be_read_stops_no_replacement(judgecal: Run, host: RawHost) -> None:
    assert judgecal("gold", "fetch", "plain").code == 0
    Path("gold/plain/card.toml").write_text("schema = ?", encoding="utf-8")
    assert judgecal("gold", "fetch", "plain", "--replace").code == 0


def test_a_dry_run_fetches_nothing(judgecal: Run, host: RawHost) -> None:
    before = tree(Path("gold"))
    ran = judgecal("gold", "fetch", "limited", "--dry-run")
    assert ran.code == 0 and "To be accepted: it is not for commercial use" in ran.said
    assert (
        "--question q --answer a --label ok" in ran.said and not host.asked and tree(Path("gold")) == before
    )
    assert ran.out.rstrip().endswith("next: judgecal gold fetch limited --accept-licence")
    found = one_object(judgecal("gold", "fetch", "limited", "--dry-run", "--json"))
    assert found["set"] == "limited" and found["entry"]["terms"] == ["NC", "ND"]


def test_the_catalogue_that_comes_with_judgecal(judgecal: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    short = judgecal("gold", "fetch")
    monkeypatch.setenv("COLUMNS", "2000")
    full = judgecal("gold", "fetch", "--full")
    assert short.code == full.code == 0
    assert len(short.out.splitlines()) <= 30 and max(map(len, short.out.splitlines())) <= 80
    assert "Refused as gold, labelled by a model or by construction: 7" in short.said
    ready = {name: one for name, one in read_catalogue().items() if not one.refusal}
    assert all(name in short.said for name in ready), "every set that can be fetched is on the first screen"
    assert all(name in full.said for name in read_catalogue())
    assert "a model gave its labels" in full.said
    found = one_object(judgecal("gold", "fetch", "--json"))
    sets = {one["name"]: one for one in found["sets"]}
    assert sets["ragbench"]["labels_by"] == "model" and sets["mtrag"]["n"] == 477


def test_through_the_hubs_own_endpoints(workspace_dir: Path, tmp_path: Path) -> None:
    """The Hub's client asks a server here, in a process of its own: it reads the server's address when it is
    loaded.

    The first time the set is gated, the second time its terms are accepted.
    """
    row = {"question": "why?", "reference_answer": "R", "student_answer": "a"}
    rows = [{"id": f"{n}", **row, "label": n} for n in range(3)]
    folder = hub_folder(
        tmp_path / "set", {"default": {"train": rows, "test_ua": rows[:1]}}, SRA, licence="cc-by-4.0"
    )
    code = (
        "from judgecal.cli import run; words = ['gold', 'fetch', 'scientsbank']; print(run(words)); "
        "print(run(words))"
    )
    with played_hub("nkazi/SciEntsBank", folder, refusals=1) as hub:
        home = {
            "HF_HOME": str(tmp_path / "hf"),
            "JUDGECAL_CACHE_DIR": str(tmp_path / "cache"),
            "HF_ENDPOINT": hub.root,
        }
        env = {**os.environ, **home, "PYTHONPATH": str(ROOT)}
        words = [sys.executable, "-c", code]
        ran = subprocess.run(words, cwd=workspace_dir, env=env, capture_output=True, text=True, check=True)
        assert len(hub.asked) > 5
    refused, *lines, code_of_second = ran.stdout.splitlines()
    assert (refused, code_of_second) == ("2", "0"), ran.stderr
    assert "private or gated" in ran.stderr and "accept its terms" in ran.stderr
    assert lines[0] == "scientsbank has 3 items on 1 question, 3 ratings by label."
    card = (workspace_dir / "gold/scientsbank/card.toml").read_text(encoding="utf-8")
    assert f"revision {hub.commit}, fingerprint" in card and "; https://huggingface.co/datasets/nkazi" in card


def test_another_revision_of_the_hub_is_said() -> None:
    old, new = (f"hf:a/b (Hugging Face Hub, revision {letter * 40}, x)" for letter in "ab")
    (said,) = another_revision(old, new)
    assert said == f"The Hub's revision was {'a' * 40} when the set was last fetched, and is {'b' * 40} now."
    assert (
        another_revision(old, old) == another_revision("", new) == another_revision(old, "hf:./folder") == []
    )


def test_a_catalogue_with_a_slip_of_the_pen(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(
        entry("one", "https://x").replace("about", "abuot").replace('"seen"', '"sene"'), encoding="utf-8"
    )
    with pytest.raises(InputError) as stop:
        read_catalogue(path)
    assert "abuot" in str(stop.value) and "seen, converted, described" in str(stop.value)


def test_no_network_is_one_message(
    judgecal: Run, host: RawHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "closed.toml"
    path.write_text(entry("far", "https://127.0.0.1:9"), encoding="utf-8")
    monkeypatch.setattr(public_sets, "CATALOGUE", path)
    ran = judgecal("gold", "fetch", "far")
    assert ran.code == 2 and "cannot be reached" in ran.err and "gold import" in ran.err
    assert ran.out == ""
