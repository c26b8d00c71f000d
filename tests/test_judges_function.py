"""Judges that are a function, and what all kinds of judges share: names, inputs, units, and every command."""

from __future__ import annotations

import inspect
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judgecal.engine.log import Journal
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError
from judgecal.experiment.trials import plan_calls, run_trials
from judgecal.judges import judge_named
from judgecal.judges.protocol import JudgeName, item_inputs, units_of
from judgecal.records import Context, Item, Judgement, Turn
from judgecal.workspace import Workspace, find_workspace
from tests.support.hostile_code import CLASSES, WHATS

QUIET = RunOptions(quiet=True)
ITEM = Item(
    "i",
    "g",
    "q?",
    "Paris",
    reference_answers=("Paris", "paname"),
    contexts=(Context("one"), Context("two")),
    conversation=(Turn("user", "hi"), Turn("assistant", "ho")),
    fields={"tone": "formal"},
    expect={"include": ["Paris"]},
)
CHUNKY = '''import dspy


class Relevance(dspy.Signature):
    """Is the chunk relevant?"""

    question: str = dspy.InputField()
    chunk: str = dspy.InputField()
    tone: str = dspy.InputField()
    verdict: bool = dspy.OutputField()
'''


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    for name in ("signatures", "gold", "experiments"):
        (tmp_path / name).mkdir()
    return find_workspace(tmp_path)


def python_judge(workspace: Workspace, body: str, *, head: str = "") -> Any:
    (workspace.root / "checks.py").write_text(f"{head}\n\ndef score({body}\n", encoding="utf-8")
    return judge_named("checks.py:score@python", workspace=workspace)


# --- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "parts"),
    [
        ("v3@embedded#exp", "prompt", ("v3", "embedded", "exp")),
        ("mosaic/safety@m", "prompt", ("mosaic/safety", "m", None)),
        ("exact_match@local", "local", ("exact_match", "local", None)),
        ("checks.py:score@python", "python", ("checks.py:score", "python", None)),
        ("checks (1).py:score@python", "python", ("checks (1).py:score", "python", None)),
        ("v3(1)@m", "prompt", ("v3(1)", "m", None)),
    ],
)
def test_one_string_names_a_judge_of_any_kind(
    text: str, kind: str, parts: tuple[str, str, str | None]
) -> None:
    name = JudgeName.parse(text)
    assert (name.kind, (name.signature, name.model, name.program)) == (kind, parts)
    assert str(name) == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("exact_macht@local", "unknown local judge 'exact_macht': did you mean exact_match"),
        ("exact_match@local#exp", "is not a judge"),
        ("score@python", "write FILE.py:FUNCTION@python"),
        ("nowhere.py:score@python", "there is no file nowhere.py here or in"),
    ],
)
def test_what_names_no_judge_is_said(workspace: Workspace, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        judge_named(text, workspace=workspace)


# --- what a judge reads -------------------------------------------------------------------------------------


def test_any_input_is_filled_from_the_item() -> None:
    names = ("answer", "response", "reference_answer", "contexts", "conversation", "tone", "absent")
    assert list(item_inputs(names, ITEM).values()) == [
        "Paris", "Paris", "Paris | paname", "one\n\ntwo", "user: hi\n\nassistant: ho", "formal", "",
    ]  # fmt: skip


def test_what_items_lack_is_one_message_before_the_first_call(workspace: Workspace) -> None:
    judge = python_judge(workspace, "tone: str, expect: dict, note: str = '') -> bool:\n    return True")
    bare = [replace(ITEM, item_id=f"i{n}", fields={}, expect={}) for n in range(4)]
    with pytest.raises(InputError) as error:
        run_trials([judge], [ITEM, *bare], journal=Journal(None), options=QUIET)
    assert error.value.problems == tuple(
        f"checks.py:score@python asks for {name}, and 4 of 5 items have none (i0, i1, i2 ...): use a judge "
        "without it"
        for name in ("tone", "expect")
    )


def test_a_judge_of_chunks_is_asked_once_a_context(workspace: Workspace) -> None:
    (workspace.signatures / "mosaic").mkdir()
    (workspace.signatures / "mosaic" / "relevance.py").write_text(CHUNKY, encoding="utf-8")
    prompt = judge_named("mosaic/relevance@embedded", workspace=workspace)
    code = python_judge(workspace, "chunk: str, question: str) -> bool:\n    return chunk == 'two'")
    for judge in (prompt, code):
        assert judge.unit == "chunk"
        assert [unit for unit, *_ in units_of(judge, ITEM)] == ["chunk:0", "chunk:1"]
    shown = [item_inputs(prompt.inputs, view) for *_, view in units_of(prompt, ITEM)]
    assert [inputs["chunk"] for inputs in shown] == ["one", "two"]
    journal = Journal(None)
    rows = run_trials([code], [ITEM], journal=journal, options=RunOptions(repeats=2, quiet=True))
    assert [(row.unit, row.repeat, row.verdict) for row in rows] == [
        ("chunk:0", 0, 0.0),
        ("chunk:0", 1, 0.0),
        ("chunk:1", 0, 1.0),
        ("chunk:1", 1, 1.0),
    ]
    assert {row.item_sha for row in rows} == {ITEM.sha} and len(journal.latest) == 4


# --- verdicts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("Paris", 1.0),
        ("  PARIS. ", 1.0),
        ("\u201cＰａｒｉｓ\u201d!", 1.0),  # full width letters in curly quotes
        ("Paname", 1.0),
        ("Paris, France", 0.0),
        ("", 0.0),
    ],
)
def test_exact_match_folds_both_sides(answer: str, verdict: float) -> None:
    judge: Any = judge_named("exact_match@local")
    assert (judge.kind, str(judge.scale), judge.inputs) == (
        "local",
        "binary",
        ("answer", "reference_answers"),
    )
    assert judge.verdict(replace(ITEM, answer=answer)).verdict == verdict


@pytest.mark.parametrize(
    ("body", "head", "verdict", "says"),
    [
        ("answer: str) -> bool:\n    return answer == 'Paris'", "", 1.0, None),
        ("item) -> bool:\n    return len(item.contexts) == 3", "", 0.0, None),
        ("contexts, absent=7):\n    return len(contexts) * absent", 'SCALE = "percentage"', 14.0, None),
        ("answer: str):\n    return 101", 'SCALE = "percentage"', None, ("out_of_range", "it returned 101")),
        ("answer: str) -> bool:\n    return None", "", None, ("refused", "it gave no verdict: it returned None")),
        ("answer: str) -> bool | None:\n    return None, 'no rule'", "", None, ("refused", "no rule")),
        ("answer: str) -> tuple[bool, str]:\n    return True, 'so'", "", 1.0, None),
        ("answer) -> float:\n    return float('nan')", 'SCALE = "points:0:1"', None, ("out_of_range", "it returned nan")),
        ("answer) -> float:\n    return 0.5", 'SCALE = "fraction"', 50.0, None),
        ("answer) -> Literal['a', 'b']:\n    return 'b'", "from typing import Literal", "b", None),
        ("answer) -> Literal['a', 'b']:\n    return 'c'", "from typing import Literal", None, ("out_of_range", "it")),
        ("contexts) -> bool:\n    return contexts == ('one', 'two')", "", 1.0, None),
        ("tone, absent='x') -> bool:\n    return (tone, absent) == ('formal', 'x')", "", 1.0, None),
        ("answer: str) -> bool:\n    return 1 / 0", "", None, ("code", "ZeroDivisionError: division by zero")),
    ],
)  # fmt: skip
def test_a_function_gives_a_verdict_or_a_row_with_an_error(
    workspace: Workspace, body: str, head: str, verdict: float | str | None, says: tuple[str, str] | None
) -> None:
    judge = python_judge(workspace, body, head=head)
    (row,) = run_trials([judge], [ITEM], journal=Journal(None), options=QUIET)
    assert (row.verdict, row.cost_usd, row.model_id, row.unit) == (verdict, 0.0, None, "item")
    assert row.latency_s is not None and row.judge_fingerprint == judge.fingerprint
    assert says is None or (row.error and (row.error.kind, row.error.message[: len(says[1])]) == says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def score(answer: str) -> float:\n    return 1.0\n", "does not say its scale"),
        ("def other() -> bool:\n    return True\n", "unknown function in .*checks.py 'score'"),
        ("def score(*rest) -> bool:\n    return True\n", "must be a plain function"),
        ("raise RuntimeError('no')\n", "running the file raised RuntimeError: no"),
    ],
)
def test_a_file_that_holds_no_judge_is_refused(workspace: Workspace, text: str, says: str) -> None:
    (workspace.root / "checks.py").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=says):
        judge_named("checks.py:score@python", workspace=workspace)


def test_a_function_is_judged_once_and_costs_nothing(workspace: Workspace, tmp_path: Path) -> None:
    body = "answer: str) -> bool:\n    print('asked')\n    return True"
    judge, path = python_judge(workspace, body), tmp_path / "judgements.jsonl"
    with Journal(path) as journal:
        first = run_trials([judge], [ITEM], journal=journal, options=QUIET)
        estimate = plan_calls([judge], [ITEM, replace(ITEM, item_id="j")], journal, QUIET)
        again = run_trials([judge], [ITEM], journal=journal, options=QUIET)
    assert (estimate.calls, estimate.stored, estimate.usd_at_most) == (0, 1, 0.0)
    assert list(first) == list(again) and len(path.read_text(encoding="utf-8").splitlines()) == 1
    changed = python_judge(workspace, body + "  # changed")
    assert changed.fingerprint != judge.fingerprint


ASYNC = """answer: str, question: str) -> bool | None:
    global here, most
    here += 1
    most = max(most, here)
    await asyncio.sleep(0.01)
    here -= 1
    if question == "raise":
        raise ValueError("no")
    return None if question == "none" else answer == "Paris"

async def other(answer: str) -> bool:
    return True
"""


def test_an_async_function_is_awaited_for_many_items_at_once(workspace: Workspace) -> None:
    (workspace.root / "slow.py").write_text(
        f"import asyncio\n\nhere = most = 0\n\n\nasync def score({ASYNC}", encoding="utf-8"
    )
    judge: Any = judge_named("slow.py:score@python", workspace=workspace)
    asked = ["raise", "none", *(f"q{n}?" for n in range(98))]
    items = [replace(ITEM, item_id=f"i{n}", question=question) for n, question in enumerate(asked)]
    rows = run_trials([judge], items, journal=Journal(None), options=QUIET)
    assert [row.item_id for row in rows] == [item.item_id for item in items]
    assert [row.verdict for row in rows] == [None, None] + [1.0] * 98
    assert [row.error and row.error.kind for row in rows][:3] == ["code", "refused", None]
    assert vars(inspect.getmodule(judge._function))["most"] == 32


def test_an_async_function_whose_rows_cannot_be_written_stops(workspace: Workspace) -> None:
    (workspace.root / "slow.py").write_text(f"import asyncio\n\n\nasync def score({ASYNC}", encoding="utf-8")
    judge: Any = judge_named("slow.py:other@python", workspace=workspace)

    class Full(Journal):
        def append(self, judgement: Judgement) -> None:
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        run_trials([judge], [ITEM, replace(ITEM, item_id="j")], journal=Full(None), options=QUIET)


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_whatever_a_function_raises_or_returns_is_a_row(workspace: Workspace, kind: str) -> None:
    text = (
        f"{CLASSES}\n\n{kind} score(question: str) -> bool:\n    return question == 'well' or act(question)\n"
    )
    (workspace.root / "checks.py").write_text(text)
    judge: Any = judge_named("checks.py:score@python", workspace=workspace)
    items = [replace(ITEM, item_id=what, question=what) for what in (*WHATS, "well")]
    rows = run_trials([judge], items, journal=Journal(None), options=QUIET)
    assert [f"{row.error.kind}: {row.error.message}" if row.error else "" for row in rows] == [
        *WHATS.values(),
        "",
    ]
    assert rows[-1].verdict == 1.0


SWALLOWS = """import asyncio


async def score(answer: str) -> bool:
    try:
        await asyncio.sleep(5)
    except BaseException:
        return True
    return False
"""


def test_the_users_own_ctrl_c_ends_a_judge_that_swallows_its_cancelling(workspace: Workspace) -> None:
    (workspace.root / "checks.py").write_text(SWALLOWS)
    judge: Any = judge_named("checks.py:score@python", workspace=workspace)
    items = [replace(ITEM, item_id=f"i{n}") for n in range(200)]
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_trials([judge], items, journal=Journal(None), options=QUIET)
    assert time.monotonic() - start < 4.0


# --- every command ------------------------------------------------------------------------------------------

OVERLAP = '''"""A check of one's own."""

SCALE = "percentage"


def overlap(answer: str, reference_answer: str) -> float:
    """How many words of the answer and the reference are the same."""
    ours, theirs = set(answer.lower().split()), set(reference_answer.lower().split())
    return 100.0 * len(ours & theirs) / len(ours | theirs)
'''
LOCAL, PYTHON = "exact_match@local", "checks.py:overlap@python"
