"""`evaluate` from a file to its result: each question and each judgement once, whatever interrupts it."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pytest

from judgecal.errors import InputError
from judgecal.experiment import RunOptions
from judgecal.experiment.folder import Experiment
from judgecal.goldset import load_gold
from judgecal.judges import PromptJudge
from judgecal.rag.evaluation import states
from judgecal.rag.evaluation.config import read_evaluate_config
from judgecal.rag.evaluation.document import evaluate_document
from judgecal.rag.evaluation.result import EvaluateResult
from judgecal.rag.evaluation.run import EvaluateRun
from judgecal.rag.evaluation.states import NAMES, StateFiles
from judgecal.stats import Calibration
from judgecal.workspace import Workspace
from tests.support.command import Run, check_estimate, one_object
from tests.support.locks import lock_file
from tests.support.rag_service import inline, rag_service

N = 24
JUDGES = """
from pathlib import Path


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
design = "grid"
[questions]
file = "questions.csv"
documents = "document"
[judges]
suite = "mine"
[[systems]]
name = "two"
kind = "python"
[sweep.two]
function = ["systems.py:good", "systems.py:weak"]
"""
GOOD, WEAK = "two(function=systems.py:good)", "two(function=systems.py:weak)"


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


def run_of(workspace: Workspace, **given: Any) -> EvaluateRun:
    options = RunOptions(quiet=True, limit=given.pop("limit", None))
    return EvaluateRun(workspace, read_evaluate_config(workspace.root / "sweep.toml"), options, **given)


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
    assert (failed.system, failed.n) == (WEAK, 1) and "out of order" in str(failed.message)
    assert (without.column, without.n) == ("correctness", 1) and "it said nothing that" in str(
        without.message
    )
    assert weak.outcomes.wrong_refusal.count == 11
    assert result.not_told_apart_from_best == (GOOD,) and result.best.best == GOOD
    (comparison,) = result.comparisons
    assert (comparison.a, comparison.decision) == (GOOD, "A")
    assert [one.level for one in result.curves[0].levels] == ["systems.py:good", "systems.py:weak"]
    assert [one.document for one in result.documents] == ["d0", "d0", "d1", "d1", "d2", "d2"]
    assert {one.column: one.lock for one in result.judges} == {
        "correctness": None,
        "answered": None,
        "faithfulness": None,
    }
    assert [(one.system, one.shows_contexts) for one in result.settings] == [(GOOD, True), (WEAK, False)]
    assert (result.questions.n, result.questions.n_sealed, result.questions.made_by) == (N, 0, None)
    first = result.worst[0]
    assert (first.question, first.mean_score) == ("What is 1?", 0.5)
    assert [one.retrieved for one in first.answers][1] is None


def test_the_states_as_files(workspace: Workspace) -> None:
    result = run_of(workspace).run()
    frames = [polars.read_parquet(path) for path in dataclasses.astuple(result.states)]
    assert [frame.height for frame in frames] == [N, 2 * N, 2 * N, 2 + 6]
    for frame, path, columns in zip(frames, dataclasses.astuple(result.states), TOLD, strict=True):
        assert frame.columns[: len(columns)] == list(columns)
        same = polars.read_csv(Path(path).with_suffix(".csv"), schema_overrides=frame.schema)
        assert same.equals(frame)
    measured = frames[2].filter(polars.col("system") == WEAK).rows(named=True)
    said = [(row["correctness"], row["answered"], row["error"], row["correctness_error"]) for row in measured]
    assert said[0] == (1.0, True, None, None)
    assert said[1] == (-1.0, False, None, None)
    assert said[3][:2] == (None, None) and "out of order" in str(said[3][2])
    assert said[4][:2] == (None, True) and "nothing that could be judged" in said[4][3]
    assert all(row["faithfulness_share"] is None and row["n_contexts"] is None for row in measured)
    total = frames[3].filter(polars.col("document").is_null()).rows(named=True)
    assert [row["total"] for row in total] == pytest.approx([1.0, 11 / 24])
    assert total[0]["query_words"] == 3.0 and total[0]["faithfulness"] == 1.0


TOLD = (
    states.QUESTION_COLUMNS,
    states.ANSWER_COLUMNS,
    {**states.ANSWER_COLUMNS, **states.VERDICT_COLUMNS},
    states.SUMMARY_COLUMNS,
)


def test_the_second_state_is_a_file_of_answers(workspace: Workspace) -> None:
    """So answers that are there are judged anew, by other judges, without asking anybody."""
    first = run_of(workspace).run()
    head, _, _ = CONFIG.partition("[[systems]]")
    tables = "".join(
        f'[[systems]]\nname = "{name}"\nkind = "answers"\nanswers = "{first.states.answers}"\nsystem = '
        f'"{system}"\n'
        for name, system in (("good", GOOD), ("weak", WEAK))
    )
    (workspace.root / "sweep.toml").write_text(head + tables, encoding="utf-8")
    again = run_of(workspace).run()
    told = [(one.total, one.measures, one.outcomes, one.latency_s) for one in first.systems]
    assert [(one.total, one.measures, one.outcomes, one.latency_s) for one in again.systems] == told
    assert [one.shows_contexts for one in again.settings] == [True, False]
    assert set(counted(workspace, "asked.log").values()) == {1}


def test_the_sheet_that_a_page_asks_for_has_the_references_as_people_read_them(
    judgecal: Run, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (workspace.root / "questions.csv").open("a", encoding="utf-8") as file:
        file.write("What is 1?,It is one.,d1\n")
    monkeypatch.chdir(workspace.root)
    result = run_of(workspace).run()
    command = evaluate_document(result).headline.next.split()
    assert command[1:3] == ["gold", "sheet"]
    ran = judgecal("--workspace", ".", *command[1:])
    assert ran.code == 0, ran.err
    rows = polars.read_csv("labels.csv").rows(named=True)
    assert {row["reference_answer"] for row in rows if row["question"] == "What is 1?"} == {
        "It is 1. | It is one."
    }


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


STOPS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    NAMES[0]: lambda patch: patch.setattr(StateFiles, "write_questions", interrupt),
    NAMES[1]: lambda patch: patch.setattr(StateFiles, "write_answers", interrupt),
    NAMES[2]: lambda patch: patch.setattr(StateFiles, "write_measured", interrupt),
    NAMES[3]: lambda patch: patch.setattr(StateFiles, "write_summary", interrupt),
    "summary": lambda patch: patch.setattr(Experiment, "write_summary", interrupt),
}


@pytest.mark.parametrize("stop", STOPS)
def test_an_interrupted_run_goes_on(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, stop: str) -> None:
    with monkeypatch.context() as patch:
        STOPS[stop](patch)
        with pytest.raises(KeyboardInterrupt):
            run_of(workspace).run()
    folder = run_of(workspace).experiment.folder
    reached = list(NAMES).index(stop) if stop in NAMES else len(NAMES)
    assert sorted(path.stem for path in folder.glob("*.parquet")) == list(NAMES[:reached])
    result = run_of(workspace).run()
    # a failure of the function's own is no failure of the wire, and not tried again
    assert counted(workspace, "asked.log") == {
        f"{who} What is {n}?": 1 for who in ("good", "weak") for n in range(N)
    }
    assert set(counted(workspace, "judged.log").values()) == {1}
    assert result.n_unscored == 2


def test_answers_that_came_before_an_interrupt_are_kept(workspace: Workspace) -> None:
    (workspace.root / "stop").write_text("17", encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        run_of(workspace).run()
    (workspace.root / "stop").unlink()
    run_of(workspace).run()
    times = counted(workspace, "asked.log")
    assert sum(times.values()) == 2 * N + 1  # the one that was interrupted
    assert max(times.values()) == 2


def test_a_larger_limit_extends_the_run(workspace: Workspace) -> None:
    small = run_of(workspace, limit=10).run()
    whole = run_of(workspace).run()
    again = run_of(workspace, repeats=3).run()
    assert (small.experiment, small.questions.n, whole.questions.n) == (whole.experiment, 10, N)
    assert again.experiment == whole.experiment
    assert set(counted(workspace, "asked.log").values()) == {1}
    assert set(counted(workspace, "judged.log").values()) == {1}


def test_what_all_of_a_sweep_lack_is_said_once(workspace: Workspace) -> None:
    sweep = '[[systems]]\nname = "ours"\nkind = "local"\nstrategy = "rerank"\n'
    sweep += "[sweep.ours]\ntop_n = [1, 2, 20]\n"
    (workspace.root / "sweep.toml").write_text(CONFIG + sweep, encoding="utf-8")
    with pytest.raises(InputError) as error:
        run_of(workspace).check()
    lacking = [one for one in error.value.problems if "no document" in one]
    assert len(lacking) == 1 and lacking[0].startswith("ours: ")
    (own,) = [one for one in error.value.problems if "top_n must not be above" in one]
    assert own.startswith("ours(top_n=20): ")


def test_later_states_of_other_answers_go(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(run_of(workspace, limit=10).run().states.questions).parent
    monkeypatch.setattr(StateFiles, "write_answers", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_of(workspace).run()
    assert [path.stem for path in folder.glob("*.parquet")] == [NAMES[0]]


def test_costs_are_no_part_of_what_was_asked(workspace: Workspace) -> None:
    first = run_of(workspace).run()
    dear = run_of(workspace, wrong_costs=3.0, refusal_costs=1.0).run()
    assert first.experiment == dear.experiment
    assert (first.systems[1].utility.value or 0.0) > (dear.systems[1].utility.value or 0.0)
    with pytest.raises(InputError, match="--wrong-costs -1: give 0 or more"):
        run_of(workspace, wrong_costs=-1.0).check()


def test_problems_of_every_part_are_one_message(workspace: Workspace) -> None:
    text = CONFIG.replace('"mine"', '"mine"\nlocks = { correctnes = "a.json" }')
    text = text.replace("systems.py:weak", "systems.py:week")

    def said(text: str) -> list[str]:
        (workspace.root / "sweep.toml").write_text(text, encoding="utf-8")
        with pytest.raises(InputError) as error:
            run_of(workspace, wrong_costs=-1.0).check()
        return error.value.problems

    cost, function, column = said(text)
    assert "--wrong-costs -1" in cost and "'week': did you mean weak?" in function
    assert "'correctnes': did you mean correctness?" in column
    cost, documents, column = said(text + '[documents]\npath = "none.jsonl"\n')
    assert "none.jsonl: there is no such file or folder" in documents and "'correctnes'" in column


def test_a_suite_without_correctness_is_refused(workspace: Workspace) -> None:
    (workspace.root / "suites" / "mine.toml").write_text(
        SUITE.replace("judges.correctness", "judges.rightness")
    )
    with pytest.raises(
        InputError, match=r"suite mine has no judge that is called correctness.*rightness, answered"
    ):
        run_of(workspace).check()


def test_a_column_that_no_answer_has_anything_for_is_left_out(workspace: Workspace) -> None:
    use_weak_alone(workspace)
    result = run_of(workspace).run()
    assert list(result.systems[0].measures) == ["correctness", "answered"]
    assert any(note.startswith("faithfulness is left out: there is no context") for note in result.notes)


def test_a_run_without_a_single_answer_ends(workspace: Workspace) -> None:
    (workspace.root / "systems.py").write_text("def weak(question):\n    raise RuntimeError('no')\n")
    use_weak_alone(workspace)
    result = run_of(workspace).run()
    assert (result.n_unscored, result.systems[0].total.value, result.best.best) == (N, 0.0, None)
    assert evaluate_document(result).headline.sentence


def test_a_set_that_is_not_there_is_one_problem(workspace: Workspace) -> None:
    text = CONFIG.replace('file = "questions.csv"', 'gold = "none"').replace('documents = "document"\n', "")
    (workspace.root / "sweep.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        run_of(workspace).check()
    assert len(error.value.problems) == 1 and "'none'" in error.value.problems[0]


def test_questions_that_a_judge_was_trained_on_are_said(workspace: Workspace) -> None:
    run = run_of(workspace)
    run.panel.members[0].judge.trained_on = frozenset(one.group for one in run.questions[:3])
    (note,) = run.run().notes
    assert note.startswith("checks.py:right@python was trained on 3 of these 24 questions")


def test_questions_without_a_reference_are_refused(workspace: Workspace) -> None:
    with (workspace.root / "questions.csv").open("a", encoding="utf-8") as file:
        file.write("What is 99?,,d1\n")
    with pytest.raises(InputError, match=r"by reference_answer, and 1 of 25 questions have none"):
        run_of(workspace).check()


def test_a_right_refusal_is_no_bad_answer(workspace: Workspace) -> None:
    path = workspace.root / "questions.csv"
    text = path.read_text(encoding="utf-8")
    for n in (1, 2):
        text = text.replace(f",It is {n}.,", ",The answer is not in the document.,")
    path.write_text(text, encoding="utf-8")
    use_weak_alone(workspace)
    result = run_of(workspace).run()
    worst = {one.question: one.mean_score for one in result.worst}
    assert "What is 1?" not in worst and worst["What is 2?"] == worst["What is 5?"] == 0.0
    assert result.systems[0].outcomes.right_refusal.count == 1


def test_what_was_noticed_in_questions_and_documents_is_said(workspace: Workspace) -> None:
    with (workspace.root / "questions.csv").open("a", encoding="utf-8") as file:
        file.write("What is 1?,It is one.,d1\n" * 2)
    pages = workspace.root / "pages"
    pages.mkdir()
    (pages / "d0.txt").write_text("What is 0? It is 0.", encoding="utf-8")
    (pages / "d1.xyz").write_text("It is 1.", encoding="utf-8")
    use_weak_alone(workspace, '[documents]\npath = "pages"\n')
    result = run_of(workspace).run()
    assert any(
        note.startswith("1 question stands in several rows with different refer") for note in result.notes
    )
    assert any("d1.xyz" in note for note in result.notes)
    assert (result.questions.n, result.questions.n_with_document, result.questions.n_lexically_easy) == (
        N,
        8,
        8,
    )


def use_weak_alone(workspace: Workspace, more: str = "") -> None:
    text = CONFIG.replace(
        '[sweep.two]\nfunction = ["systems.py:good", "systems.py:weak"]', 'function = "systems.py:weak"'
    )
    text = text.replace('design = "grid"', "")
    (workspace.root / "sweep.toml").write_text(text + more, encoding="utf-8")


def test_the_command(judgecal: Run, workspace: Workspace) -> None:
    config = workspace.root / "sweep.toml"
    plan = one_object(judgecal("--workspace", workspace.root, "evaluate", config, "--dry-run", "--json"))
    assert (plan["calls"], plan["usd_at_most"]) == (2 * N, 0.0)
    assert not workspace.experiments.exists()
    ran = judgecal("--workspace", workspace.root, "evaluate", config, "--repeats", "0")
    assert ran.code == 2 and "--repeats must be from 1 to" in ran.err
    ran = judgecal("--workspace", workspace.root, "evaluate", config, "--json", "--name", "mine")
    found = one_object(ran, code=4)
    assert "2 of 48 answers are unscored" in ran.err
    assert set(found) >= {
        "headline", "run_line", "experiment", "states", "systems", "documents", "comparisons",
        "not_told_apart_from_best",
    }  # fmt: skip
    assert set(found["states"]) == {"questions", "answers", "measured", "summary"}
    for one in [*found["systems"], *found["documents"]]:
        assert set(one) >= {
            "system", "n", "n_unscored", "answered", "answer_correctness", "total", "measures", "outcomes", "latency_s",
            "ttft_s", "queries_per_minute", "usd_per_1k",
        }  # fmt: skip
        for name in ("answered", "answer_correctness", "total"):
            check_estimate(one[name])
        assert set(one["outcomes"]) >= {"right_answer", "wrong_answer", "right_refusal", "wrong_refusal"}
        assert set(one["latency_s"]) >= {"mean", "p50", "p95"}
    assert set(found["comparisons"][0]) >= {"a", "b", "metric", "difference", "p_value", "decision"}
    stored = json.loads((workspace.experiments / "mine" / "summary.json").read_text(encoding="utf-8"))
    assert stored["systems"] == found["systems"]
    assert Experiment(workspace.experiments / "mine", {}).read_summary(EvaluateResult).n_unscored == 2


def test_no_text_of_a_test_question_is_shown(judgecal: Run, workspace_dir: Path) -> None:
    (workspace_dir / "echo.py").write_text("def echo(question) -> str:\n    return f'You ask: {question}'\n")
    text = '[questions]\ngold = "starter"\nsplit = "all"\n[judges]\nrepeats = 1\n[[systems]]\nname = "echo"\n'
    (workspace_dir / "all.toml").write_text(text + 'kind = "python"\nfunction = "echo.py:echo"\n')
    ran = judgecal("evaluate", "all.toml", "--full", "--name", "all")
    gold = load_gold(workspace_dir / "gold" / "starter")
    sealed = {item.question for item in gold.items if item.group in gold.test_groups}
    folder = workspace_dir / "experiments" / "all"
    shown = ran.out + "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.csv"))
    assert not [question for question in sealed if question in shown]
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert summary["questions"]["n_sealed"] == len(gold.test_groups)
    assert not gold.test_groups & {one["question"] for one in summary["worst"]}


ECHO = "def echo(question) -> str:\n    return f'Nine. You ask: {question}'\n"
ONE = (
    '[questions]\ngold = "starter"\n[judges]\nrepeats = 1\n{judges}[[systems]]\nname = "echo"\nkind = '
    '"python"\n'
)


def test_a_lock_takes_a_column_and_corrects_it(judgecal: Run, workspace_dir: Path) -> None:
    gold = load_gold(workspace_dir / "gold" / "starter")
    where = Workspace(workspace_dir, workspace_dir / "experiments")
    lock_file(workspace_dir / "a.lock.json", PromptJudge("correctness_v3@embedded", workspace=where), gold)
    (workspace_dir / "echo.py").write_text(ECHO)
    text = ONE.format(judges='locks = { correctness = "a.lock.json" }\n') + 'function = "echo.py:echo"\n'
    (workspace_dir / "one.toml").write_text(text)
    found = one_object(judgecal("evaluate", "one.toml", "--json"))
    by_column = {one["column"]: one for one in found["judges"]}
    assert by_column["correctness"]["lock"].endswith("a.lock.json")
    check_estimate(by_column["correctness"]["agreement"])
    assert by_column["answered"]["lock"] is None and by_column["answered"]["agreement"] is None
    (system,) = found["systems"]
    assert system["outcomes"]["right_at"] == 0.75  # the set's pass mark
    (corrected,) = found["corrected"]
    assert (corrected["column"], corrected["method"]) == ("correctness", "Rogan-Gladen")
    check_estimate(corrected["raw"])
    check_estimate(corrected["corrected"])
    assert corrected["raw"]["n_expected"] == found["questions"]["n"] == system["n_expected"]


def test_correctness_is_the_verdict_on_the_peoples_scale(judgecal: Run, workspace_dir: Path) -> None:
    """The map of a lock is applied to what goes into every number, and the raw verdict stands in state 3."""
    gold = load_gold(workspace_dir / "gold" / "starter")
    where = Workspace(workspace_dir, workspace_dir / "experiments")
    by_hand = Calibration(cuts=(30.0,), values=(10.0, 80.0), n=100, n_groups=50)
    judge = PromptJudge("correctness_v3@embedded", workspace=where)
    lock_file(workspace_dir / "a.lock.json", judge, gold, calibration=by_hand)
    (workspace_dir / "echo.py").write_text(ECHO)
    text = ONE.format(judges='locks = { correctness = "a.lock.json" }\n') + 'function = "echo.py:echo"\n'
    (workspace_dir / "one.toml").write_text(text)
    found = one_object(judgecal("evaluate", "one.toml", "--json"))
    assert [one["calibrated"] for one in found["judges"] if one["lock"]] == [True]
    rows = polars.read_parquet(found["states"]["measured"])
    raw, share = rows["correctness_raw"].to_list(), rows["correctness_share"].to_list()
    assert share == [0.1 if value < 0.3 else 0.8 for value in raw] and len(set(raw)) > 2
    assert rows["answered_raw"].to_list() == rows["answered_share"].to_list()
    mean = sum(one for one, said in zip(share, rows["answered"], strict=True) if said) / sum(rows["answered"])
    assert found["systems"][0]["answer_correctness"]["value"] == pytest.approx(mean)


def test_a_service_that_hangs_keeps_no_other_back(workspace: Workspace) -> None:
    with rag_service(stores=False) as service:
        table = service.table()
        table["setup"]["steps"][-1] |= {"time_limit": 0.2}
        values = "".join(f"{key} = {inline(one)}\n" for key, one in table.items())
        text = (
            CONFIG
            + f'[[systems]]\nname = "hangs"\nkind = "http"\n{values}[documents]\npath = "documents.jsonl"\n'
        )
        (workspace.root / "sweep.toml").write_text(text, encoding="utf-8")
        (workspace.root / "documents.jsonl").write_text('{"document_id": "d1", "text": "It is 1."}\n')
        result = run_of(workspace).run()
    answers = polars.read_parquet(result.states.answers).filter(polars.col("system") == "hangs")
    assert answers.height == N
    assert set(answers["error"]) == {"timeout: setup step wait: not done within its time limit of 0.2 s"}
    hangs = result.systems[2]
    assert (hangs.system, hangs.n, hangs.n_unscored, hangs.total.value) == ("hangs", 0, N, 0.0)
    assert result.systems[0].total.value == 1.0
    assert [len(one.levels) for one in result.curves] == [2]
