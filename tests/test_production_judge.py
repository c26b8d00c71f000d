"""`judge`: rows in are rows out in any format, what is counted of them, and how a run ends and goes on."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judgecal.engine.log import Journal
from judgecal.goldset import load_gold
from judgecal.judges.prompt import PromptJudge
from judgecal.records import Estimate, Judgement
from judgecal.selection.lock import LockedModel, load_lock, write_lock
from judgecal.workspace import find_workspace
from tests.support.command import Run, one_object
from tests.support.locks import lock_file
from tests.support.server import MODEL_ID, USD_A_CALL, StubServer, priced
from tests.support.tables import read, write

COLUMNS = ("--col", "question=q", "--col", "answer=a", "--col", "reference=r")
ROWS = [
    {"n": "7", "q": "Capital of France?", "a": "Paris", "r": "Paris", "s": "A"},
    {"n": "-8", "q": "Capital of\nSpain?", "a": 'the "big" one, Madrid', "r": "Madrid", "s": "B"},
    {"n": "1e3", "q": "Capital of Italy?", "a": "", "r": "Rome", "s": "A"},
    {"n": "", "q": "Capital of Japan? ünï", "a": "'Osaka'", "r": "Tokyo", "s": "B"},
]


@pytest.fixture
def lock(workspace_dir: Path) -> Path:
    """The embedded judge, locked on the starter."""
    judge = PromptJudge("correctness_v3@embedded", workspace=find_workspace(workspace_dir))
    return lock_file(workspace_dir / "judge.lock.json", judge, load_gold(workspace_dir / "gold" / "starter"))


def asked(table: Path, lock: Path, *more: Any) -> tuple[Any, ...]:
    """The command on a table whose columns are q, a and r."""
    return ("judge", table, "--lock", lock, "-o", "out.csv", *COLUMNS, *more)


def journal_lines(folder: Path) -> list[dict[str, Any]]:
    (path,) = folder.glob("experiments/judge-*/judgements.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "json", "parquet"])
def test_rows_in_are_rows_out(judgecal: Run, workspace_dir: Path, lock: Path, ending: str) -> None:
    """In each format, and from each into the next one."""
    endings = ("csv", "tsv", "jsonl", "json", "parquet", "csv")
    table = write(workspace_dir / f"in.{ending}", ROWS)
    for out in (ending, endings[endings.index(ending) + 1]):
        ran = judgecal("judge", table, "--lock", lock, "-o", f"out.{out}", *COLUMNS)
        assert (ran.code, ran.err) == (0, "")
        rows = read(workspace_dir / f"out.{out}")
        assert [{name: row[name] for name in ROWS[0]} for row in rows] == ROWS
        verdicts = [float(row["verdict"]) for row in rows]
        assert verdicts[0] == 100.0 and verdicts[3] < 75.0
        assert [str(row["passed"]).lower() == "true" for row in rows] == [one >= 75.0 for one in verdicts]
        assert all(row["reasoning"] and not row["error"] for row in rows)
        added = ["verdict", "passed", "reasoning", "error", "calibrated", "model_id", "cost_usd", "latency_s"]
        assert list(rows[0])[5:] == added
    assert sorted(path.name for path in workspace_dir.glob(".*")) == []  # no draft is left


def test_parquet_keeps_types(judgecal: Run, workspace_dir: Path, lock: Path) -> None:
    day = datetime.date(2026, 1, 2)
    own = pa.table(
        {
            "q": pa.array([row["q"] for row in ROWS]),
            "a": pa.array([row["a"] for row in ROWS]).dictionary_encode(),
            "r": pa.array([["Paris", "Lutetia"], ["Madrid"], ["Rome"], ["Tokyo"]]),
            "i": pa.array([1, None, 3, 4], pa.int16()),
            "f": pa.array([0.1, None, 0.3, None]),
            "at": pa.array([1, 2, None, 4], pa.timestamp("ns", tz="UTC")),
            "day": pa.array([day, None, day, day]),
            "s": pa.array([{"x": 1, "y": ["a"]}, None, {"x": 2, "y": []}, {"x": 3, "y": None}]),
            "b": pa.array([b"\x00\xff", b"", None, b"x"]),
        }
    )
    pq.write_table(own, workspace_dir / "in.parquet")
    options = ("judge", "in.parquet", "--lock", lock, *COLUMNS)
    assert judgecal(*options, "-o", "out.parquet").code == 0
    found = pq.read_table(workspace_dir / "out.parquet")
    readable = own.drop(["b"])
    assert found.select(readable.column_names).cast(readable.schema).to_pylist() == readable.to_pylist()
    assert found.schema.field("i").type == pa.int16() and found.schema.field("at").type == own["at"].type
    assert found.schema.field("verdict").type == pa.float64()
    assert found.schema.field("passed").type == pa.bool_()
    ran = judgecal(*options, "-o", "out.jsonl")
    assert "left out b: bytes, not text" in ran.out
    first = read(workspace_dir / "out.jsonl")[0]
    assert (first["i"], first["f"], first["day"], first["s"]) == (1, 0.1, "2026-01-02", {"x": 1, "y": ["a"]})
    assert "b" not in first


def test_a_row_that_lacks_something_is_a_row(judgecal: Run, workspace_dir: Path, lock: Path) -> None:
    rows = [dict(ROWS[0]), {**ROWS[0], "q": "  "}, {**ROWS[0], "r": ""}, dict.fromkeys(ROWS[0], "")]
    table = write(workspace_dir / "in.csv", rows)
    ran = judgecal(*asked(table, lock, "--json"))
    assert ran.code == 4
    assert "3 rows have no verdict; out.csv, column error says why" in ran.err
    errors = [row["error"] for row in read(workspace_dir / "out.csv")]
    assert errors == [
        "",
        "input: the question is empty",
        "input: there is no reference answer",
        "input: the question is empty; there is no reference answer",
    ]
    result = json.loads(ran.out)
    (rate,) = result["rates"].values()
    assert (result["n"], result["n_unscored"], rate["unscored"], rate["n"]) == (4, 3, {"input": 3}, 1)
    assert len(journal_lines(workspace_dir)) == 1  # they were never called for


AS_WRITTEN = {
    "=1+1": "'=1+1",
    "  =1+1": "'  =1+1",
    "@SUM(A1)": "'@SUM(A1)",
    "-cmd": "'-cmd",
    "-2+3+cmd|' /C calc'!A0": "'-2+3+cmd|' /C calc'!A0",
    "- 2 + 3": "'- 2 + 3",
    "- cmd|' /C calc'!A0": "'- cmd|' /C calc'!A0",
    "- HYPERLINK (A1)": "'- HYPERLINK (A1)",
    "- =1+1": "'- =1+1",
    "--1+A1": "'--1+A1",
    "\t=1": "'\t=1",
    "- one\n- two": "- one\n- two",
    "- 2 eggs, or 3": "- 2 eggs, or 3",
    "-": "-",
    "---": "---",
    "-inf": "-inf",
    "+49 30": "'+49 30",
    "-5": "-5",
    "+1e3": "+1e3",
    "2026-01-01": "2026-01-01",
    "$5": "$5",
    "'quoted'": "'quoted'",
    "true": "true",
}


def test_formulas_are_defused_and_nothing_else(judgecal: Run, workspace_dir: Path, lock: Path) -> None:
    table = write(workspace_dir / "in.jsonl", [{**ROWS[0], "n": cell} for cell in AS_WRITTEN])
    ran = judgecal(*asked(table, lock))
    assert ran.code == 0
    assert [row["n"] for row in read(workspace_dir / "out.csv")] == [*AS_WRITTEN.values()]
    n = sum(cell != written for cell, written in AS_WRITTEN.items())
    assert f"in {n} rows cells that a spreadsheet would run got an apostrophe in front" in ran.err
    assert judgecal("judge", table, "--lock", lock, "-o", "out.jsonl", *COLUMNS).code == 0
    assert [row["n"] for row in read(workspace_dir / "out.jsonl")] == [*AS_WRITTEN]


def test_the_same_command_resumes_and_equal_rows_are_judged_once(
    judgecal: Run, workspace_dir: Path, lock: Path
) -> None:
    table = write(workspace_dir / "in.csv", [*ROWS, *ROWS])
    command = asked(table, lock)
    ran = judgecal(*command, "--limit", "2")
    assert "the output holds only the first 2 of 8 rows (--limit)" in ran.out.lower()
    assert len(read(workspace_dir / "out.csv")) == 2
    plan = json.loads(judgecal(*command, "--dry-run", "--json").out)
    assert (plan["calls"], plan["stored"]) == (2, 4)  # two rows of four are known, in both halves
    assert judgecal(*command).code == 0
    found = read(workspace_dir / "out.csv")
    assert [row["verdict"] for row in found[:4]] == [row["verdict"] for row in found[4:]]
    assert len({line["item_id"] for line in journal_lines(workspace_dir)}) == 4
    before = len(journal_lines(workspace_dir))
    # A row put in front, and one mended: only what is new is judged.
    write(table, [{**ROWS[0], "a": "Lyon"}, *ROWS[:3], {**ROWS[3], "a": "Kyoto"}])
    assert judgecal(*command).code == 0
    assert len(journal_lines(workspace_dir)) == before + 2


def test_ctrl_c_leaves_no_output_and_the_journal(
    judgecal: Run, workspace_dir: Path, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{**ROWS[0], "a": f"Paris {number}"} for number in range(30)]
    table = write(workspace_dir / "in.csv", rows)
    command = asked(table, lock)
    real, taken = Journal.append, []

    def append(self: Journal, row: Judgement) -> None:
        if len(taken) == 10:
            raise KeyboardInterrupt
        taken.append(row)
        real(self, row)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", append)
        ran = judgecal(*command)
    assert (ran.code, ran.out) == (130, "")
    assert not (workspace_dir / "out.csv").exists()
    assert len(journal_lines(workspace_dir)) == 10
    assert judgecal(*command).code == 0
    assert [row["a"] for row in read(workspace_dir / "out.csv")] == [row["a"] for row in rows]
    assert len(journal_lines(workspace_dir)) == 30


# --- a served judge, whose verdict is the number in the answer ---


def say_the_number(body: dict[str, Any]) -> str:
    text = body["messages"][-1]["content"]
    found = re.search(r"worth (\w+)", text)
    assert found is not None
    return f"[[ ## correctness_reasoning ## ]]\nSo.\n\n[[ ## correctness_percentage ## ]]\n{found[1]}\n"


@pytest.fixture
def served(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    monkeypatch.setenv("MY_KEY", "sk-not-to-be-seen")
    with priced(workspace_dir, say_the_number) as stub:
        yield stub


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def served_lock(workspace_dir: Path, served: StubServer) -> Path:
    """That model, locked with made-up verdicts on the starter."""
    served.script = lambda body: say_the_number(
        {"messages": [{"content": "worth 50"}]} if "worth " not in body["messages"][-1]["content"] else body
    )
    judge = PromptJudge("correctness_v3@mine", workspace=find_workspace(workspace_dir))
    path = lock_file(workspace_dir / "judge.lock.json", judge, load_gold(workspace_dir / "gold" / "starter"))
    served.bodies.clear()
    return path


def worth(*values: object, system: str = "A") -> list[dict[str, str]]:
    return [
        {"q": f"{system}{place}?", "a": f"worth {value}", "r": "x", "s": system}
        for place, value in enumerate(values)
    ]


def test_the_rates_by_hand(judgecal: Run, workspace_dir: Path, served: StubServer, served_lock: Path) -> None:
    table = write(
        workspace_dir / "in.csv", [*worth(10, 80, 20, "none", 90), *worth(75, 74, system="B"), *worth("much")]
    )
    result = one_object(judgecal(*asked(table, served_lock, "--json")), 4)
    (rate,) = result["rates"].values()
    assert [rate[name] for name in ("n", "n_expected", "unscored")] == [6, 8, {"parse": 2}]
    assert rate["average"]["value"] == pytest.approx((10 + 80 + 20 + 90 + 75 + 74) / 6)
    raw = rate["raw"]  # the mark is 75, and 75 passes
    assert (raw["value"], raw["n"], raw["n_expected"], raw["n_unscored"]) == (0.5, 6, 8, 2)
    assert raw["low"] is None and "fewer than 10" in raw["reason"]
    assert rate["calibrated"]["value"] == pytest.approx(4 / 6)  # through the map, which passes from 60 on
    assert result["columns"]["calibrated"] == "calibrated" and result["suite"] is None
    assert result["headline"]["kind"] == "calibrated rate"
    rows = [row for row in read(workspace_dir / "out.csv") if row["verdict"]]
    assert {(row["verdict"], row["calibrated"], row["passed"]) for row in rows} >= {
        ("74", "100", "true"), ("75", "100", "true"), ("20", "0", "false"), ("80", "100", "true")
    }  # fmt: skip
    assert result["model_ids"] == [MODEL_ID]


def test_a_judge_no_better_than_a_coin_is_warned_of(
    judgecal: Run, workspace_dir: Path, served: StubServer, served_lock: Path
) -> None:
    lock = load_lock(served_lock)
    rates = {"tpr@75": Estimate(0.255, n=50), "tnr@75": Estimate(0.612, n=50)}
    write_lock(served_lock, dataclasses.replace(lock, calibrated={**lock.calibrated, **rates}))
    table = write(workspace_dir / "in.csv", worth(10, 80))
    found = one_object(judgecal(*asked(table, served_lock, "--col", "system=s", "--json")))
    (judge,) = found["judges"]
    assert found["headline"]["sentence"] == f"Do not use {judge['name']}."
    said = found["headline"]["because"][0]
    assert said[1:] == f"{judge['warning'][1:]}."
    assert "sensitivity 0.255 and specificity 0.612 add up to 0.867, not above 1" in said
    following = found["headline"]["next"]
    assert following.startswith("judgecal rate out.csv --lock ")
    rated = one_object(judgecal(*shlex.split(following)[1:], "--json"))  # with the columns that the table has
    assert rated["n"] == found["n"] and rated["headline"]["kind"] == "no rate"


def rate_of(out: str) -> dict[str, Any]:
    (rate,) = json.loads(out)["rates"].values()
    raw: dict[str, Any] = rate["raw"]
    return raw


def test_a_file_that_another_command_wrote_stays(judgecal: Run, workspace_dir: Path, lock: Path) -> None:
    table, out = write(workspace_dir / "in.csv", ROWS), workspace_dir / "out.csv"
    asked = ("judge", table, "--lock", lock, *COLUMNS, "-o", "out.csv")
    out.write_text("mine")
    ran = judgecal(*asked)
    assert (ran.code, ran.out, out.read_text()) == (2, "", "mine") and "out.csv: is there already" in ran.err
    assert judgecal(*asked, "--replace").code == 0 == judgecal(*asked).code  # its own output is written anew
    other = write(workspace_dir / "other.csv", ROWS)
    assert judgecal("judge", other, "--lock", lock, *COLUMNS, "-o", "out.csv").code == 2
    out.write_text(out.read_text() + "\n")  # somebody's work
    os.utime(out, ns=(2 * 10**18, 2 * 10**18))
    assert judgecal(*asked).code == 2


def test_an_output_that_a_kill_left_without_a_summary_is_its_commands_own(
    judgecal: Run, workspace_dir: Path, lock: Path
) -> None:
    table = write(workspace_dir / "in.csv", ROWS)
    asked = ("judge", table, "--lock", lock, *COLUMNS, "-o", "out.csv", "--name", "cut")
    assert judgecal(*asked).code == 0
    (workspace_dir / "experiments" / "cut" / "summary.json").unlink()
    assert judgecal(*asked).code == 0


def test_intervals_are_by_group(
    judgecal: Run, workspace_dir: Path, served: StubServer, served_lock: Path
) -> None:
    """Twenty groups of five equal rows hold no more than twenty rows: their interval is that of the
    twenty."""
    values = [100 if number % 2 else 0 for number in range(20)]
    rows = [{**row, "g": str(number)} for number, row in enumerate(worth(*values))]
    options = ("--lock", served_lock, *COLUMNS, "--col", "group=g", "--json", "-o", "out.csv", "--replace")
    once, five = (
        rate_of(judgecal("judge", write(workspace_dir / f"{times}.csv", rows * times), *options).out)
        for times in (1, 5)
    )
    assert (once["n_groups"], five["n_groups"], five["n"]) == (20, 20, 100)
    assert (five["low"], five["high"]) == pytest.approx((once["low"], once["high"]))
    assert once["low"] < 0.5 < once["high"]


def test_a_budget_ends_a_run_that_goes_on_later(
    judgecal: Run, workspace_dir: Path, served: StubServer, served_lock: Path
) -> None:
    table = write(workspace_dir / "in.jsonl", worth(*range(12)))
    command = ("judge", table, "--lock", served_lock, "-o", "out.jsonl", *COLUMNS, "--no-cache")
    assert judgecal(*command, "--budget-usd", str(7 * USD_A_CALL)).code == 4
    found = read(workspace_dir / "out.jsonl")
    lost = [row for row in found if row["verdict"] is None]
    assert 0 < len(lost) < 12 and len(found) == 12
    assert all(row["error"].startswith("budget: ") for row in lost)
    assert served.calls == 12 - len(lost)
    assert judgecal(*command).code == 0
    assert [row["verdict"] for row in read(workspace_dir / "out.jsonl")] == list(range(12))
    assert served.calls == 12


def test_another_model_behind_the_name_is_said(judgecal: Run, workspace_dir: Path, lock: Path) -> None:
    model = load_lock(lock).model
    judge = PromptJudge("correctness_v3@embedded", workspace=find_workspace(workspace_dir))
    old = LockedModel(model.alias, model.id, "embedded-0", model.settings)
    lock_file(lock, judge, load_gold(workspace_dir / "gold" / "starter"), model=old)
    table = write(workspace_dir / "in.csv", ROWS)
    out = judgecal(*asked(table, lock)).out
    assert (
        f"answered as {model.model_id}, and the judge was locked on embedded-0: run judgecal gate"
        in " ".join(out.split())
    )


def test_a_scale_without_a_pass_mark_has_no_rate(judgecal: Run, workspace_dir: Path, lock: Path) -> None:
    locked = load_lock(lock)
    write_lock(
        lock,
        dataclasses.replace(locked, gold=dataclasses.replace(locked.gold, pass_at=None), calibration=None),
    )
    table = write(workspace_dir / "in.csv", ROWS)
    command = asked(table, lock)
    found = one_object(judgecal(*command, "--json"))
    reason = "the percentage labels have no pass mark (pass_at in card.toml)"
    raw = found["rates"]["correctness_v3@embedded"]["raw"]
    assert (raw["value"], raw["low"], raw["n"], raw["reason"]) == (None, None, 0, reason)
    assert (found["headline"]["kind"], found["headline"]["because"][0]) == ("no rate", f"T{reason[1:]}.")
    rows = read(workspace_dir / "out.csv")
    assert [row["passed"] for row in rows] == [""] * 4
    refused = judgecal("rate", "out.csv", "--lock", lock)
    assert refused.code == 2 and f"{reason}, and rate is the share that passes: set one" in refused.err
    (rate,) = found["rates"].values()
    assert rate["average"]["value"] == pytest.approx(sum(float(row["verdict"]) for row in rows) / 4)
    ran = judgecal(*command)
    assert ran.code == 0 and ran.out.startswith("No rate to read.")


# --- what is refused, before a call and before anything is written ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-o", "in.csv", *COLUMNS), "is the input itself"),
        (("-o", "out.ods", *COLUMNS), "unknown ending '.ods'"),
        (("-o", "no/out.csv", *COLUMNS), "there is no such folder"),
        (("-o", "out.csv", *COLUMNS[:4]), "asks for reference_answer: name the column with --col reference="),
        (("-o", "out.csv", "--col", "question=q", "--col", "answer=*", "--col", "reference=r"), "unknown column '*'"),
        (("-o", "out.csv", *COLUMNS, "--limit", "0"), "--limit must be at least 1"),
        (("-o", "out.csv", *COLUMNS, "--col", "system=sys"), "unknown column 'sys'"),
    ],
)  # fmt: skip
def test_what_is_asked_wrongly_is_refused(
    judgecal: Run, workspace_dir: Path, lock: Path, options: tuple[str, ...], message: str
) -> None:
    table = write(workspace_dir / "in.csv", ROWS)
    before = table.read_bytes()
    ran = judgecal("judge", "in.csv", "--lock", lock, *options)
    assert (ran.code, message in ran.err) == (2, True), ran.err
    assert table.read_bytes() == before
    assert not (workspace_dir / "experiments").exists()


# --- sources ---
