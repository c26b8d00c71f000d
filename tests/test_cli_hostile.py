"""Hostile names and texts, encodings that lack characters: every command runs, and nothing acts on the
terminal."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from judgecal.cli import run
from judgecal.goldset import load_gold
from judgecal.judges.prompt import PromptJudge
from judgecal.workspace import Workspace, init_workspace
from tests.support.command import ROOT, Ran
from tests.support.gold import made_gold, made_items
from tests.support.locks import lock_file

# A title, a wiped screen, a bell, colours by C1, a turned direction, line ends of all kinds, a tab.
EVIL = "x\x1b]0;owned\x07\x1b[2J\x1b[8m\u202e\x9b31m\u2066\u2028\x0b\nFORGED\r\tend"
ACTS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]")
GROUPS = 30


def evil_set(workspace: Path) -> None:
    """A gold set with the worst of names wherever a name may stand."""
    rows = [
        {
            **row,
            "item_id": row["item_id"] + EVIL,
            "group": row["group"] + EVIL,
            "question": row["question"] + EVIL,
            "answer": row["answer"] + EVIL,
            "reference_documents": [row["group"] + EVIL],
            "system": f"s{EVIL}",
            "tags": [f"t{EVIL}"],
        }
        for row in made_items(GROUPS)
    ]
    labels = {"full": 100, "half": 50, "none": 0}
    ratings = [
        (row["item_id"], f"{who}{EVIL}", labels[row["kind"]]) for row in rows for who in ("ann", "bob")
    ]
    ratings[0] = (ratings[0][0], ratings[0][1], 50)
    escaped = [_escaped(row) for row in rows]
    made_gold(workspace / "gold" / "evil", rows=[], ratings=[])
    (workspace / "gold" / "evil" / "items.jsonl").write_text("".join(escaped), encoding="utf-8")
    documents = {
        row["group"]: {"document_id": row["group"], "text": row["reference_answer"] + EVIL} for row in rows
    }
    texts = "".join(map(_escaped, documents.values()))
    (workspace / "gold" / "evil" / "documents.jsonl").write_text(texts, encoding="utf-8")
    given = "".join(_escaped({"item_id": i, "rater": who, "label": label}) for i, who, label in ratings)
    (workspace / "gold" / "evil" / "ratings.jsonl").write_text(given, encoding="utf-8")


def _escaped(row: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in row.items() if key != "kind"}) + "\n"


def evil_tables(folder: Path) -> None:
    """Recorded verdicts, and production rows, under headers of the same kind."""
    rows = made_items(GROUPS)
    verdicts = {"full": 90, "half": 60, "none": 10}
    with (folder / f"verdicts{EVIL}.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["item_id", "judge", "verdict"])
        for name in (f"good{EVIL}", f"same{EVIL}"):
            table.writerows([row["item_id"] + EVIL, name, verdicts[row["kind"]]] for row in rows)
    with (folder / f"rows{EVIL}.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow([f"q{EVIL}", f"a{EVIL}", "r", f"more{EVIL}"])
        table.writerows([row["question"], row["answer"], row["reference_answer"], EVIL] for row in rows[:12])


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A workspace with the hostile set, tables beside it, and a lock."""
    root = tmp_path / "workspace"
    init_workspace(root)
    evil_set(root)
    evil_tables(root)
    workspace = Workspace(root, root / "experiments")
    judge = PromptJudge("correctness_v3@embedded", workspace=workspace)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGECAL_CACHE_DIR", str(root.parent / "cache"))
        lock_file(root / "judge.lock.json", judge, load_gold("starter", workspace=workspace))
    return root


JUDGES = (f"good{EVIL}", f"same{EVIL}")
ROWS, VERDICTS = f"rows{EVIL}.csv", f"verdicts{EVIL}.csv"
COLUMNS = ["--col", f"question=q{EVIL}", "--col", f"answer=a{EVIL}", "--col", "reference=r"]
LOCK = ["--lock", "judge.lock.json"]
# In the order in which they can run; the code is what they end in.
COMMANDS: list[tuple[int, list[str]]] = [
    (0, ["models"]),
    (0, ["judges"]),
    (0, ["gold", "check"]),
    (0, ["gold", "check", "evil", "--full"]),
    (0, ["gold", "sheet", "evil", "-o", f"sheet{EVIL}.csv", "--raters", "2"]),
    (2, ["gold", "import", ROWS, "--as", "made"]),
    (2, ["gold", "import", ROWS, "--as", f"made{EVIL}", *COLUMNS]),
    (2, ["gold", "import", ROWS, "--as", "made", "--col", "question=no", "--col", f"answer=no{EVIL}"]),
    (0, ["gold", "import", ROWS, "--as", "made", *COLUMNS, "--label", f"more{EVIL}", "--scale", "nominal"]),
    (0, ["agreement", "--judgements", VERDICTS, "--gold", "evil", "--name", "recorded"]),
    (0, ["agreement", "--judgements", VERDICTS, "--gold", "evil", "--name", "recorded", "--full",
         "-o", f"rows{EVIL}.jsonl", "--replace"]),
    (2, ["agreement", "--judgements", f"no{EVIL}.csv", "--gold", "evil"]),
    (2, ["agreement", "--judgements", ROWS, "--gold", "evil"]),
    (0, ["compare", "recorded", *JUDGES]),
    (2, ["compare", "recorded", *JUDGES[:1], f"no{EVIL}"]),
    (0, ["select", "recorded", "--allow-below-floor", "--name", "chosen"]),
    (0, ["score", "--gold", "evil", "--name", "run", "--full"]),
    (0, ["score", "--gold", "evil", "--dry-run"]),
    (2, ["score", "--gold", f"no{EVIL}"]),
    (2, ["score", "--models", f"no{EVIL}", "--judge", f"no{EVIL}", "--name", f"no{EVIL}"]),
    (2, ["score", "--workspace", f"no{EVIL}"]),
    (2, ["score", f"--no{EVIL}"]),
    (2, [f"no{EVIL}"]),
    (0, ["optimize", "--gold", "evil", "--optimizer", "labeled", "--name", "better"]),
    (0, ["optimize", "--gold", "evil", "--dry-run"]),
    (0, ["retrieval", "--gold", "evil", "--name", "found"]),
    (0, ["answer", "--gold", "evil", "--limit", "12", "--name", "answered"]),
    (0, ["judge", ROWS, *LOCK, "-o", f"judged{EVIL}.csv", *COLUMNS]),
    (2, ["judge", ROWS, *LOCK, "-o", "judged.csv", "--col", f"question=no{EVIL}", "--col", "answer=r"]),
    (2, ["judge", ROWS, "--lock", f"no{EVIL}.json", "-o", "judged.csv"]),
    (0, ["gate", *LOCK]),
    (0, ["gate", *LOCK, "--dry-run"]),
    (0, ["migrate", *LOCK, "--to", "correctness_v2@embedded", "--on", ROWS, *COLUMNS]),
    *((0, ["report", name, *more]) for name in ("recorded", "chosen", "run", "better", "found", "answered")
      for more in ([], ["--full"], ["--format", "md"])),
    (0, ["score", "--name", "plain"]),
    (0, ["gold", "check", "starter"]),
    (0, ["retrieval", "--name", "ranked"]),
    (0, ["answer", "--limit", "12", "--contexts", "controlled,none"]),
    (0, ["report", "plain", "--full"]),
    (0, ["report", "run", "--format", "html"]),
    (0, ["report", "--all"]),
    (2, ["report", f"no{EVIL}"]),
]  # fmt: skip


def ran(root: Path, argv: Sequence[str], *, encoding: str = "utf-8", errors: str = "strict") -> Ran:
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=errors) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setenv("COLUMNS", "20000")  # nothing is wrapped, so that a line that a name starts is forged
        patch.setattr("judgecal.report.terminal._WIDEST_PROSE", 20_000)
        patch.setenv("JUDGECAL_CACHE_DIR", str(root.parent / "cache"))
        code = run(argv)
        for stream in (out, err):
            stream.flush()
    return Ran(code, *(stream.buffer.getvalue().decode(encoding) for stream in (out, err)))


def acting(text: str) -> list[str]:
    """What in a printed text acts on a terminal, or is a line that a name has forged."""
    return [*ACTS.findall(text), *re.findall(r"(?m)^FORGED.*", text)]


def wrong_of(
    root: Path, commands: Sequence[tuple[int, list[str]]], *, as_json: bool, **how: str
) -> list[str]:
    """The command lines that ended otherwise than they should, or printed what acts."""
    wrong = []
    for code, argv in commands:
        words = [*argv, "--json"] if as_json and not {"--format", "--full"} & {*argv} else argv
        ended = ran(root, words, **how)
        found = acting(ended.out) + acting(ended.err)
        if ended.code != code or found or "Traceback" in ended.err:
            wrong.append(repr((words[:4], ended.code, found[:5], ended.err[-400:])))
        if words is not argv and ended.out:
            json.loads(ended.out)
    return wrong


def test_no_command_prints_what_acts(evil: Path) -> None:
    assert not wrong_of(evil, COMMANDS, as_json=False)
    # Once more what only reads, over a stream that lacks most characters.
    reading = [
        (code, argv) for code, argv in COMMANDS if code == 2 or argv[0] in ("models", "compare", "report")
    ]
    assert not wrong_of(evil, reading, as_json=False, encoding="cp1252")


def test_no_object_holds_what_acts(evil: Path) -> None:
    assert not wrong_of(evil, COMMANDS, as_json=True, encoding="ascii")


def test_what_libraries_print_acts_on_nothing(evil: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def printing(*_: Any, **__: Any) -> None:
        sys.stderr.write(f"careful {EVIL}\n")
        sys.stdout.write(f"printed {EVIL}\n")
        raise ValueError(EVIL)

    monkeypatch.setattr("judgecal.goldset.load_gold", printing)
    ended = ran(evil, ["score"])
    assert ended.code == 70
    assert "careful" in ended.err and "printed" in ended.out
    assert not ACTS.findall(ended.out + ended.err)


PACKAGE = ROOT / "judgecal"
DOORS = {PACKAGE / "cli" / "output.py", PACKAGE / "cli" / "streams.py", PACKAGE / "errors.py"}


def test_nobody_prints_by_another_door() -> None:
    """stdout is written by `print_text` alone, stderr by `notice` and the progress line."""
    door = re.compile(
        r"(?<!\w)(print|echo|secho)\(|sys\.(__)?std(out|err)(__)?\.(write|buffer)|os\.write\([12],"
    )
    allowed = {*DOORS, PACKAGE / "__main__.py"}
    wrong = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path not in allowed
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if door.search(line)
    ]
    assert not wrong


@pytest.mark.parametrize(
    "env",
    [{"PYTHONIOENCODING": "cp1252"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}],
    ids=["cp1252", "C"],
)
@pytest.mark.parametrize(
    "argv", [["--help"], ["score", "--limit", "3"], ["report", "run"]], ids=lambda argv: argv[0]
)
def test_a_process_of_another_encoding(tmp_path: Path, argv: list[str], env: dict[str, str]) -> None:
    """A folder's name is bytes there, and no file is read or written in the encoding of the terminal."""
    root = init_workspace(tmp_path / "größe").root
    if argv[0] == "report":
        assert ran(root, ["score", "--limit", "3", "--name", "run"]).code == 0
    command = [sys.executable, "-X", "warn_default_encoding", "-m", "judgecal", *argv]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    ended = subprocess.run(command, cwd=root, env=environment, capture_output=True, timeout=120, check=False)
    assert (ended.returncode, b"Traceback" in ended.stderr) == (0, False), ended.stderr
    assert b"judgecal/judgecal" not in ended.stderr, (
        "a file of ours is opened in the encoding of the terminal"
    )
    encoding = "cp1252" if "PYTHONIOENCODING" in env else "ascii"
    assert ended.stdout.decode(encoding)
