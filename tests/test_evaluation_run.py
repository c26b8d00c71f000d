"""`evaluate` from a file to its result: each question and each judgement once, whatever interrupts it."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import polars
import pytest

from judgecal.engine.run import RunOptions
from judgecal.errors import InputError
from judgecal.experiment.folder import Experiment
from judgecal.goldset import load_gold
from judgecal.judges.prompt import PromptJudge
from judgecal.rag.evaluation.config import read_evaluate_config
from judgecal.rag.evaluation.result import NAMES, StateFiles
from judgecal.rag.evaluation.run import EvaluateRun
from judgecal.rag.questions import refuses
from judgecal.stats import Calibration
from judgecal.workspace import Workspace
from tests.support.command import Run, one_object
from tests.support.locks import lock_file

N = 24
JUDGES = """
from pathlib import Path
from typing import Literal


def _count(what, question, answer):
    with Path("HERE/judged.log").open("a") as log:
        log.write(f"{what} {question} {answer}\\n")


def right(question: str, answer: str, reference_answer: str) -> bool:
    _count("right", question, answer)
    if "silence" in answer:
        raise ValueError("it said nothing that could be judged")
    return reference_answer in answer


def answered(question: str, answer: str) -> bool:
    _count("answered", question, answer)
    return "know" not in answer


def supported(answer: str, contexts: list[str]) -> bool:
    return answer in contexts


def better(answer_a: str, answer_b: str) -> Literal["A", "B", "tie"]:
    if ("It is" in answer_a) == ("It is" in answer_b):
        return "A"  # whichever it is shown first
    return "A" if "It is" in answer_a else "B"


def better_of_two(answer_a: str, answer_b: str) -> Literal["A", "B"]:
    return better(answer_a, answer_b)
"""
SUITE = """
[judges.correctness]
judge = "checks.py:right@python"
[judges.answered]
judge = "checks.py:answered@python"
[judges.faithfulness]
judge = "checks.py:supported@python"
"""
SYSTEMS = """
from pathlib import Path


def _asked(who, question):
    path = Path("HERE/asked.log")
    with path.open("a") as log:
        log.write(f"{who} {question}\\n")
    stop = Path("HERE/stop")
    if stop.exists() and len(path.read_text().splitlines()) > int(stop.read_text()):
        raise KeyboardInterrupt
    return int(question.split()[-1].strip("?"))


def good(question):
    n = _asked("good", question)
    return {"answer": f"It is {n}.", "contexts": [{"text": f"It is {n}.", "document_id": f"d{n % 3}"}]}


def weak(question) -> str:
    n = _asked("weak", question)
    if n == 3:
        raise RuntimeError("out of order")
    if n == 4:
        return "silence"
    return "I do not know." if n % 2 else f"Well: It is {n}."
"""
CONFIG = """
[questions]
file = "questions.csv"
col = ["document=document"]
[judges]
suite = "mine"
[[systems]]
name = "two"
kind = "python"
[sweep.two]
function = ["systems.py:good", "systems.py:weak"]
"""
GOOD, WEAK = "two", "two(function=systems.py:weak)"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path / "mine"
    for name in ("signatures", "gold", "suites"):
        (root / name).mkdir(parents=True)
    files = {"checks.py": JUDGES, "systems.py": SYSTEMS, "suites/mine.toml": SUITE, "sweep.toml": CONFIG}
    rows = "".join(f"What is {n}?,It is {n}.,d{n % 3}\n" for n in range(N))
    files["questions.csv"] = f"question,reference_answer,document\n{rows}"
    for name, text in files.items():
        (root / name).write_text(text.replace("HERE", root.as_posix()), encoding="utf-8")
    return Workspace(root, root / "experiments")


def configured(workspace: Workspace, text: str) -> None:
    (workspace.root / "sweep.toml").write_text(text, encoding="utf-8")


def run_of(workspace: Workspace, **given: Any) -> EvaluateRun:
    options = RunOptions(quiet=True, limit=given.pop("limit", None))
    return EvaluateRun(workspace, read_evaluate_config(workspace.root / "sweep.toml"), options, **given)


def use_weak_alone(workspace: Workspace, more: str = "") -> None:
    swept = '[sweep.two]\nfunction = ["systems.py:good", "systems.py:weak"]'
    text = CONFIG.replace(swept, 'function = "systems.py:weak"')
    configured(workspace, text + more)


def counted(workspace: Workspace, name: str) -> Counter[str]:
    path = workspace.root / name
    return Counter(path.read_text(encoding="utf-8").splitlines()) if path.exists() else Counter()


def test_what_it_comes_to(workspace: Workspace) -> None:
    result = run_of(workspace).run()
    good, weak = result.systems
    assert (good.system, weak.system) == (GOOD, WEAK)
    assert (good.total.value, good.n_unscored, good.answered.value) == (1.0, 0, 1.0)
    # one failed, one cannot be judged, half of the others are refused; an unscored one counts as 0
    assert (weak.n, weak.n_expected, weak.n_unscored) == (22, 24, 2)
    assert weak.total.value == pytest.approx(11 / 24) and weak.total_complete_case.value == pytest.approx(0.5)
    assert result.n_unscored == 2
    assert result.frame()["system"].to_list() == [GOOD, WEAK]  # and not the judges
    (failed,), (without,) = result.failures, result.failed_verdicts
    assert (failed.name, failed.n) == (WEAK, 1) and "out of order" in str(failed.message)
    assert (without.name, without.n) == ("correctness", 1)
    assert "it said nothing that" in str(without.message)
    assert weak.outcomes.wrong_refusal.count == 11
    assert result.not_told_apart_from_best == (GOOD,) and result.best.best == GOOD
    (comparison,) = result.comparisons
    assert (comparison.a, comparison.decision) == (GOOD, "A")
    assert [one.level for one in result.curves[0].levels] == ["systems.py:good", "systems.py:weak"]
    assert [one.document for one in result.documents] == ["d0", "d0", "d1", "d1", "d2", "d2"]
    locks = {one.column: one.lock for one in result.judges}
    assert locks == {"correctness": None, "answered": None, "faithfulness": None}
    assert [(one.system, one.shows_contexts) for one in result.settings] == [(GOOD, True), (WEAK, False)]
    assert (result.questions.n, result.questions.n_sealed, result.questions.made_by) == (N, 0, None)


def add_questions(workspace: Workspace, *rows: str) -> None:
    with (workspace.root / "questions.csv").open("a", encoding="utf-8") as file:
        file.writelines(f"{row}\n" for row in rows)


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


STOPS = {
    **dict(zip(NAMES, ("write_questions", "write_answers", "write_measured", "write_summary"), strict=True)),
    "summary": "",
}


@pytest.mark.parametrize("stop", STOPS)
def test_an_interrupted_run_goes_on(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, stop: str) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(StateFiles if stop in NAMES else Experiment, STOPS[stop] or "write_summary", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run_of(workspace).run()
    folder = run_of(workspace).experiment.folder
    reached = list(NAMES).index(stop) if stop in NAMES else len(NAMES)
    assert sorted(path.stem for path in folder.glob("*.parquet")) == list(NAMES[:reached])
    result = run_of(workspace).run()
    # a failure of the function's own is no failure of the wire, and not tried again
    asked = {f"{who} What is {n}?": 1 for who in ("good", "weak") for n in range(N)}
    assert counted(workspace, "asked.log") == asked
    assert set(counted(workspace, "judged.log").values()) == {1}
    assert result.n_unscored == 2


def test_a_larger_limit_extends_the_run(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """And later states of other answers go."""
    small = run_of(workspace, limit=10).run()
    whole = run_of(workspace).run()
    again = run_of(workspace, repeats=3).run()
    assert (small.experiment, small.questions.n, whole.questions.n) == (whole.experiment, 10, N)
    assert again.experiment == whole.experiment
    assert set(counted(workspace, "asked.log").values()) == {1}
    assert set(counted(workspace, "judged.log").values()) == {1}
    monkeypatch.setattr(StateFiles, "write_answers", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_of(workspace, limit=12).run()
    folder = Path(small.states.questions).parent
    assert [path.stem for path in folder.glob("*.parquet")] == [NAMES[0]]


def problems_of(workspace: Workspace, text: str, **given: Any) -> list[str]:
    configured(workspace, text)
    with pytest.raises(InputError) as error:
        run_of(workspace, **given).check()
    return list(error.value.problems)


def test_problems_of_every_part_are_one_message(workspace: Workspace) -> None:
    text = CONFIG.replace('"mine"', '"mine"\nlocks = { correctnes = "a.json" }')
    text = text.replace("systems.py:weak", "systems.py:week")
    function, column = problems_of(workspace, text)
    assert "'week': did you mean weak?" in function
    assert "'correctnes': did you mean correctness?" in column
    text += '[documents]\npath = "none.jsonl"\n'
    documents, column = problems_of(workspace, text)
    assert "none.jsonl: there is no such file" in documents and "'correctnes'" in column
    unknown = CONFIG.replace('file = "questions.csv"', 'gold = "none"').replace(
        'col = ["document=document"]\n', ""
    )
    (problem,) = problems_of(workspace, unknown)
    assert "'none'" in problem


def test_a_suite_without_correctness_is_refused(workspace: Workspace) -> None:
    suite = SUITE.replace("judges.correctness", "judges.rightness")
    (workspace.root / "suites" / "mine.toml").write_text(suite)
    (problem,) = problems_of(workspace, CONFIG)
    assert re.search("suite mine has no judge called correctness.*rightness, answered", problem)


def test_questions_that_a_judge_was_trained_on_are_said(workspace: Workspace) -> None:
    run = run_of(workspace)
    run.panel.members[0].judge.trained_on = frozenset(one.group for one in run.questions[:3])
    (note,) = run.run().notes
    assert note.startswith("checks.py:right@python was trained on 3 of the 24 questions")


def test_questions_without_a_reference_are_refused(workspace: Workspace) -> None:
    add_questions(workspace, "What is 99?,,d1")
    (problem,) = problems_of(workspace, CONFIG)
    assert "by reference_answer, and 1 of 25 questions have none" in problem


@pytest.mark.parametrize("column", ["answerable", "has_one"])
def test_a_column_marks_what_has_no_answer(workspace: Workspace, column: str) -> None:
    """It needs no reference; who refuses in whatever words is right, who answers is wrong and not unscored."""
    refusal = "Nobody would know that."
    assert not refuses(refusal)
    systems = workspace.root / "systems.py"
    systems.write_text(systems.read_text(encoding="utf-8").replace("I do not know.", refusal))
    rows = [f"What is {n}?,{'' if n in (1, 2) else f'It is {n}.'},{'no' * (n in (1, 2))}" for n in range(N)]
    text = "\n".join([f"question,reference_answer,{column}", *rows])
    (workspace.root / "questions.csv").write_text(text, encoding="utf-8")
    table = (
        'col = ["document=document"]\n',
        "" if column == "answerable" else f'col = ["answerable={column}"]\n',
    )
    use_weak_alone(workspace)
    configured(workspace, (workspace.root / "sweep.toml").read_text(encoding="utf-8").replace(*table))
    result = run_of(workspace).run()
    (weak,) = result.systems
    assert (result.questions.n_answerable, weak.outcomes.right_refusal.count) == (N - 2, 1)
    assert (weak.outcomes.wrong_answer.count, weak.n_unscored) == (1, 2)
    assert not any("wording" in note for note in result.notes)
    (workspace.root / "questions.csv").write_text(text.replace(",no", ",nay"), encoding="utf-8")
    with pytest.raises(InputError, match="answerable must be yes or no"):
        run_of(workspace).check()


def test_no_text_of_a_test_question_is_shown(judgecal: Run, workspace_dir: Path) -> None:
    (workspace_dir / "echo.py").write_text(ECHO)
    (workspace_dir / "all.toml").write_text(ONE.format(questions='split = "all"', judges=""))
    ran = judgecal("evaluate", "all.toml", "--full", "--name", "all")
    gold = load_gold(workspace_dir / "gold" / "starter")
    sealed = {item.question for item in gold.items if item.group in gold.test_groups}
    folder = workspace_dir / "experiments" / "all"
    shown = ran.out + "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.csv"))
    assert not [question for question in sealed if question in shown]
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert summary["questions"]["n_sealed"] == len(gold.test_groups)


ECHO = "def echo(question) -> str:\n    return f'Nine. You ask: {question}'\n"
ONE = """
[questions]
gold = "starter"
{questions}
[judges]
repeats = 1
{judges}
[[systems]]
name = "echo"
kind = "python"
function = "echo.py:echo"
"""


def locked(judgecal: Run, root: Path, **lock: Any) -> dict[str, Any]:
    """What a system comes to whose correctness a lock judges."""
    judge = PromptJudge("correctness_v3@embedded", workspace=Workspace(root, root / "experiments"))
    lock_file(root / "a.lock.json", judge, load_gold(root / "gold" / "starter"), **lock)
    (root / "echo.py").write_text(ECHO)
    (root / "one.toml").write_text(ONE.format(questions="", judges='locks = { correctness = "a.lock.json" }'))
    return one_object(judgecal("evaluate", "one.toml", "--json"))


def test_correctness_is_the_verdict_on_the_peoples_scale(judgecal: Run, workspace_dir: Path) -> None:
    """The map of a lock is applied to what goes into every number, and the raw verdict stands in state 3."""
    by_hand = Calibration(cuts=(30.0,), values=(10.0, 80.0), n=100, n_groups=50)
    found = locked(judgecal, workspace_dir, calibration=by_hand)
    rows = polars.read_parquet(found["states"]["measured"])
    raw, share = rows["correctness_raw"].to_list(), rows["correctness_share"].to_list()
    assert share == [0.1 if value < 0.3 else 0.8 for value in raw] and len(set(raw)) > 2
    assert rows["answered_raw"].to_list() == rows["answered_share"].to_list()
    mean = sum(one for one, said in zip(share, rows["answered"], strict=True) if said) / sum(rows["answered"])
    assert found["systems"][0]["answer_correctness"]["value"] == pytest.approx(mean)
