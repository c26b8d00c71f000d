"""The names that scripts import, all in `judgecal` itself."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest

import judgecal as package
from judgecal import GoldSet, InputError, Judge, Judgement, Judgements, load_gold, load_signature, score
from judgecal.models import embedded as transport
from judgecal.selection.decision import Caps
from judgecal.workspace import find_workspace

NAME = "correctness_v3@embedded"


@pytest.fixture(autouse=True)
def _inside(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace_dir)


def test_a_set_and_a_signature_by_name_and_by_path(workspace_dir: Path) -> None:
    gold, same = load_gold("starter"), load_gold(workspace_dir / "gold" / "starter")
    assert (gold.name, gold.sha256, gold.items) == (same.name, same.sha256, same.items)
    signature = load_signature("correctness_v3")
    by_path = load_signature(workspace_dir / "signatures" / "correctness_v3.py")
    assert signature.fingerprint == by_path.fingerprint
    assert (str(signature.scale), signature.verdict) == ("percentage", "correctness_percentage")
    assert load_signature("answer_v1").scale is None


def test_score_gives_a_row_for_each_item_and_repeat() -> None:
    gold = load_gold("starter")
    rows = score(NAME, gold, split="dev", repeats=2)
    assert isinstance(rows, Judgements)
    wanted = [item.item_id for item in gold.select("dev") if item.item_id in gold.labels]
    assert [(row.item_id, row.repeat) for row in rows] == [(item_id, r) for item_id in wanted for r in (0, 1)]
    assert all(isinstance(row, Judgement) for row in rows[:3])
    assert isinstance(rows.unscored, Judgements) and len(rows[:3]) == 3
    assert len(rows.unscored) == 0
    frame = rows.frame()
    assert (frame.height, frame["item_id"].to_list()) == (len(rows), [row.item_id for row in rows])
    assert frame.columns[:4] == ["item_id", "item_sha", "judge", "judge_fingerprint"]


def test_score_keeps_nothing_unless_told_to(
    workspace_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = load_gold("starter")
    first = score(NAME, gold, limit=4)
    assert not (workspace_dir / "experiments").exists()
    path = tmp_path / "kept" / "judgements.jsonl"
    kept = score(NAME, gold, limit=4, journal=path)
    assert [row.verdict for row in kept] == [row.verdict for row in first]
    lines = path.read_text().splitlines()
    assert [json.loads(line)["item_id"] for line in lines] == [row.item_id for row in kept]

    def reply(messages: object) -> str:
        raise AssertionError("called again for what the journal holds")

    with monkeypatch.context() as closed:
        closed.setattr(transport, "weighed_reply", reply)
        assert list(score(Judge(NAME), gold, limit=4, journal=str(path))) == list(kept)
    assert len(score(NAME, gold, limit=6, journal=path)) == 6
    assert path.read_text().splitlines()[:4] == lines
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_agreement_on_test_items_is_a_look(workspace_dir: Path) -> None:
    gold, log = load_gold("starter"), workspace_dir / "experiments" / "test_looks.jsonl"
    for split, kinds in (("dev", []), ("test", ["report"]), ("test", ["report"])):
        package.agreement(gold, score("token_f1@local", gold, split=split))
        lines = log.read_text().splitlines() if log.exists() else []
        assert [json.loads(line)["kind"] for line in lines] == kinds


def far_off(answer: str, reference_answer: str) -> float:
    return 100.0 * (answer == reference_answer)


def nowhere(answer: str) -> Nowhere:  # type: ignore[name-defined]  # noqa: F821
    return 1


def by_type(answer: Elsewhere) -> bool:  # type: ignore[name-defined]  # noqa: F821
    return bool(answer)


class Always:
    def __call__(self, answer: str) -> bool:
        return True


def test_functions_judge_beside_judges_by_name_and_no_scale_is_repeated() -> None:
    gold = load_gold("starter")
    rows = score([far_off, lambda answer: (50, "half"), "token_f1@local"], gold, split="dev")
    a, b, c = rows.scales
    assert (a, b, c) == ("far_off@python", "lambda@python", "token_f1@local")
    assert {str(scale) for scale in rows.scales.values()} == {"percentage"}
    assert {row.verdict for row in rows.of(b)} == {50.0} and rows.of(b)[0].reasoning == "half"
    found = package.agreement(gold, rows.of(c))
    by_hand = package.agreement(
        [gold.labels[row.item_id] for row in rows.of(c)],
        [row.verdict for row in rows.of(c)],
        scale=gold.scale,
    )
    assert (
        found["mae"].value == pytest.approx(by_hand["mae"].value)
        and found["mae"].n_groups < by_hand["mae"].n_groups
    )
    binary = score(lambda answer: True, gold, split="dev", limit=3)
    assert str(Judge(lambda answer: "yes", scale="binary").scale) == "binary" and binary[0].verdict is None
    assert str(Judge(by_type).scale) == "binary" and Judge(Always()).inputs == ("answer",)
    with pytest.raises(InputError, match=r"lambda@python does not say its scale: .* Judge\(function, scale="):
        _ = Judge(lambda answer: 1).scale
    with pytest.raises(InputError, match="several judges are called lambda@python"):
        score([lambda answer: 1, lambda question: 2], gold)
    with pytest.raises(
        InputError, match="verdicts of far_off@python, lambda@python, token_f1@local: take one"
    ):
        package.agreement(gold, rows)


def test_a_lock_takes_a_function_of_a_file_and_refuses_any_other(workspace_dir: Path) -> None:
    from judgecal.experiment.score import ScoreRun

    source = "def exact(answer, reference_answer) -> bool:\n    return answer in reference_answer\n"
    (workspace_dir / "mine.py").write_text(source)
    content: dict[str, Any] = {}
    exec(compile(source, str(workspace_dir / "mine.py"), "exec"), content)
    caps, gold = Caps(allow_below_floor=True), load_gold("starter")
    in_file, given = Judge(content["exact"]), Judge(far_off, scale="percentage")
    assert (in_file.name, in_file.fingerprint) == (
        "mine.py:exact@python",
        Judge("mine.py:exact@python").fingerprint,
    )
    for judge, name in ((in_file, "kept"), (given, "lost")):
        ScoreRun(workspace=find_workspace(), gold=gold, judges=(judge,), out=name).run()
    assert package.select("kept", caps=caps, output="kept.lock.json").chosen == in_file.name
    with pytest.raises(
        InputError, match="far_off@python names no file, so that neither a lock nor a command"
    ):
        package.select("lost", caps=caps, output="lost.lock.json")


def test_agreement_leads_with_what_decides() -> None:
    """Calibrated where there are questions enough, an item without a verdict as wrong; as `score` prints it."""
    gold, rows = load_gold("starter"), score("token_f1@local", load_gold("starter"), split="dev")
    found = package.agreement(gold, rows)
    assert (next(iter(found)), found.metric, found.calibrated) == ("macro_agreement", "macro_agreement", True)
    from judgecal.experiment.score import ScoreRun

    judges = (Judge("token_f1@local"),)
    result, _ = ScoreRun(workspace=find_workspace(), gold=gold, judges=judges, split="dev").run()
    assert found.decides == result.judges[0].decided_by("macro_agreement")
    lost = package.agreement([1, 0, 1, 0], [1, 0, 1, None], scale="binary")
    assert (lost["accuracy"].value, lost.decides.value, lost.calibrated) == (1.0, 0.75, False)


def _results() -> dict[str, Any]:
    gold = load_gold("starter")
    rows = score("token_f1@local", gold, split="dev")
    raters = {rater: dict(labels) for rater, labels in gold.ratings_by_rater.items()}
    return {
        "score": (rows, "66 of 66 verdicts could be had"),
        "agreement": (package.agreement(gold, rows), "agreement with the labels"),
        "reliability": (package.reliability(raters, scale=gold.scale), "krippendorff_alpha is 0."),
        "alt_test": (
            package.alt_test(raters, gold.labels, scale=gold.scale, epsilon=0.2),
            "the alternative annotator test at 0.2",
        ),
    }


@pytest.mark.parametrize("name", ["score", "agreement", "reliability", "alt_test"])
def test_every_result_shows_itself(name: str) -> None:
    result, says = _results()[name]
    assert json.loads(json.dumps(result.as_json())) == result.as_json()
    assert says in repr(result) and str(result) == repr(result) and len(repr(result).splitlines()) < 10
    assert says in result._repr_html_() and "<table" in result._repr_html_()
    assert result.frame().height > 0


ROWS = {
    "question": ["Who?", "When?", "Who?", "Why?"],
    "answer": ["Ann", "1066", "", "So"],
    "group": ["g1", "g2", "g1", "g2"],
    "passages": [["a", "b"], ["c"], [], ["d"]],
    "ann": ["👍", None, "👎", "👍"],
    "ben": [4.0, 1.0, None, 3.0],
    "at": [None, datetime.date(2020, 1, 1), None, None],
}


@pytest.mark.parametrize("frame", [pandas.DataFrame(ROWS), polars.DataFrame(ROWS)], ids=["pandas", "polars"])
def test_a_frame_is_read_as_an_import_reads_it(frame: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns of the usual names, further ones by `Columns`, the scale told by the labels."""
    columns = package.Columns(contexts=("passages",))
    gold = GoldSet.from_frame(frame, labels=["ann"], columns=columns)
    assert (str(gold.scale), gold.labels) == (
        "binary",
        {"frame-00001": 1.0, "frame-00003": 0.0, "frame-00004": 1.0},
    )
    assert [item.group for item in gold.items] == ROWS["group"]
    assert [len(item.contexts) for item in gold.items] == [2, 1, 0, 1]
    assert repr(gold) == "GoldSet frame: 4 items on 2 questions, binary labels by 1 rater"
    said = capsys.readouterr().err
    assert "the labels show the scale binary" in said and "not taken over: ben, at" in said
    same = GoldSet.from_frame(
        frame, labels="ann", columns=columns, scale=gold.scale, mapping={"👍": "yes", "👎": "no"}
    )
    assert (same, same.sha256) == (gold, gold.sha256) and not gold.path.exists()
    graded = GoldSet.from_frame(frame, labels=["ben"], scale="ordinal:0:4", pass_at=3.0, labels_by="project")
    assert (graded.scale.pass_at, graded.card.labels_by, list(graded.labels.values())) == (
        3.0,
        "project",
        [4, 1, 3],
    )


def test_a_frame_is_saved_where_commands_find_it(
    workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace_dir)
    how: dict[str, Any] = {"labels": ["ann"], "name": "mine", "save": True}
    gold = GoldSet.from_frame(polars.DataFrame(ROWS), **how)
    assert load_gold("mine") == gold and gold.path.samefile(workspace_dir / "gold" / "mine")
    with pytest.raises(InputError, match="or add --replace"):
        GoldSet.from_frame(polars.DataFrame(ROWS), **how)
    again = GoldSet.from_frame(polars.DataFrame(ROWS)[:2], replace=True, **how)
    assert load_gold("mine") == again and len(again.items) == 2


def test_a_frame_that_makes_no_set_is_refused_with_every_problem() -> None:
    frame = polars.DataFrame({"q": ["A", "", "C"], "answer": ["a", "b", "c"], "x": ["2", "yes", "7"]})
    with pytest.raises(InputError) as refused:
        GoldSet.from_frame(frame, columns=package.Columns("q"), labels=["x"], scale="binary")
    assert [problem.split(": ", 1)[0] for problem in refused.value.problems] == [
        "the frame:row 1",
        "the frame:row 2",
        "the frame:row 3",
    ]
    frame_of_words = polars.DataFrame({"question": ["A", "B"], "answer": ["a", "b"], "x": ["yes", "gut"]})
    with pytest.raises(InputError, match="give --map FROM=TO"):
        GoldSet.from_frame(frame_of_words, labels="x", scale="binary")
    asked = package.Columns("q")
    for call, message in (
        (lambda: GoldSet.from_frame(frame, columns=asked, labels=["x"]), "show no scale .*: give --scale"),
        (
            lambda: GoldSet.from_frame(frame, columns=package.Columns("quest"), labels=["x"]),
            "the frame: unknown column 'quest'",
        ),
        (lambda: GoldSet.from_frame(frame.drop("q")), "--col question=COLUMN is missing"),
        (
            lambda: GoldSet.from_frame(frame, columns=package.Columns(verdicts=("x",))),
            r"give them to judgecal\.agreement",
        ),
        (lambda: GoldSet.from_frame(frame.lazy()), "found a polars LazyFrame"),
        (lambda: GoldSet.from_frame(frame.clear(), columns=asked), "the frame has no rows"),
        (lambda: GoldSet.from_frame(pandas.DataFrame([[1, 2]], columns=["a", "a"])), "several columns a"),
    ):
        with pytest.raises(InputError, match=message):
            call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load_gold("startr"), "unknown gold set 'startr': did you mean starter"),
        (lambda: Judge("correctness_v3"), "is not a judge: write signature@model"),
        (lambda: score("correctness_v3@gpt-4o", load_gold("starter")), "set the variable OPENAI_API_KEY"),
        (lambda: score([], load_gold("starter")), "no judge is given"),
        (lambda: package.optimize("token_f1@local"), "has no prompt: take"),
        (
            lambda: score(nowhere, load_gold("starter")),
            "'Nowhere' is not defined where it says what it returns",
        ),
        (lambda: score(NAME, load_gold("starter"), repeats=0), "--repeats must be from 1 to 1,000"),
        (lambda: score(NAME, load_gold("starter"), limit=0), "--limit must be at least 1"),
        (lambda: package.agreement([1], [1]), "need their scale="),
        (lambda: package.agreement(load_gold("starter"), [1]), "verdicts are judgements"),
        (lambda: package.agreement(load_gold("starter"), []), "no judgement is of a labelled item"),
        (lambda: package.agreement(load_gold("starter"), [], scale="binary"), "leave them out"),
        (lambda: package.compare("nosuch"), "unknown experiment 'nosuch'"),
    ],
)
def test_errors_are_one_class_and_say_what_to_do(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_commands_are_functions_too(workspace_dir: Path) -> None:
    """From scores to a lock, to judged rows, to their rate; each result is the command's."""
    from judgecal.experiment.score import ScoreRun

    workspace = find_workspace(workspace_dir)
    judges = (Judge(NAME), Judge("token_f1@local"))
    ScoreRun(workspace=workspace, gold=load_gold("starter"), judges=judges[:1], out="one").run()
    ScoreRun(workspace=workspace, gold=load_gold("starter"), judges=judges, out="two").run()
    chosen = package.select("one", caps=Caps(allow_below_floor=True), output="judge.lock.json")
    assert chosen.chosen == NAME and (workspace_dir / "judge.lock.json").is_file()
    rows = [{"q": f"Where is it, {n}?", "a": "In the ferry.", "r": "In the ferry."} for n in range(12)]
    (workspace_dir / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    columns = package.Columns("q", "a", reference="r")
    judged = package.judge("in.jsonl", lock="judge.lock.json", output="out.parquet", columns=columns)
    assert (judged.n, judged.n_unscored) == (12, 0) and (workspace_dir / "out.parquet").is_file()
    (workspace_dir / "mine.csv").write_text("mine")
    with pytest.raises(InputError, match="is there already: add --replace"):
        package.judge("in.jsonl", lock="judge.lock.json", output="mine.csv", columns=columns)
    rated = package.rate("out.parquet", lock="judge.lock.json", columns=package.Columns("q", "a"))
    moved = package.migrate("judge.lock.json", "correctness_v2@embedded", limit=30)
    report = package.load_report("one")
    assert report.frame()["judge"].to_list() == [NAME]
    compared = package.compare("two", NAME, "token_f1@local", metric="mae")
    assert (compared.metric, list(compared.pairs)) == ("mae", [(NAME, "token_f1@local")])
    results = (compared, chosen, judged, rated, package.gate("judge.lock.json"), moved, report)
    for result in results:
        assert "\nnext: judgecal " in repr(result) and repr(result).count("\n") < 12, repr(result)
        assert json.dumps(result.as_json()) and result.frame().height
        assert result._repr_html_()
    with pytest.raises(InputError, match="is there already"):
        package.select("one", caps=Caps(allow_below_floor=True), output="judge.lock.json")


def test_optimize_is_a_function_whatever_was_imported_before() -> None:
    from judgecal.optimize.run import OptimizeRun, optimize

    assert callable(package.optimize) and vars(type(package.optimize))["__call__"].__func__ is optimize
    assert package.optimize.run.OptimizeRun is OptimizeRun  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="unknown gold set 'no-such-set'"):
        package.optimize("correctness_v3@embedded", "no-such-set")
