"""Pages of optimize, retrieval, gate, answer and judge: order, numbers of the command, text that is never run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from judgecal.cli.report_kinds import load_report
from judgecal.cli.report_summary import read_summary
from judgecal.experiment.stored import find_experiment
from judgecal.records import Estimate
from judgecal.report.gate import gate_document
from judgecal.report.page_answer import answer_report
from judgecal.report.page_intervals import Axis, IntervalRow, in_points, interval_picture
from judgecal.report.page_optimize import optimize_report
from judgecal.report.page_result import Case, Diff
from judgecal.selection.gate import GateResult
from judgecal.selection.gate_rule import GateDecision
from judgecal.workspace import find_workspace
from tests.support.command import Run
from tests.support.locks import Served, flips
from tests.support.locks import served as served
from tests.support.pages import ATTACK, ESCAPE, LONG, OVERRIDE, Parsed, page_of

HOSTILE = f"{ATTACK} {OVERRIDE} {ESCAPE} ``` | a | <!-- &lt;b&gt;"


def printed_by(judgecal: Run, *argv: str | Path, code: int = 0) -> dict[str, Any]:
    ran = judgecal(*argv, "--json")
    assert ran.code == code, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def told(value: Mapping[str, Any], digits: int = 3, times: float = 1.0) -> str:
    """An estimate of the command's JSON as a page writes it."""
    value, low, high = (f"{times * value[key]:.{digits}f}" for key in ("value", "low", "high"))
    return f"{value} [{low}, {high}]".replace("-0.000", "0.000")


def check_page(judgecal: Run, printed: Mapping[str, Any], sections: Sequence[str], *numbers: str) -> str:
    """Sections in order after the decision, each with the decision that it serves; numbers; nothing to run or load."""
    page = page_of(judgecal, printed["experiment"])
    parsed = Parsed(page)
    assert [one["id"] for one in parsed.all("section")] == list(sections)
    assert page.index('id="decision"') < page.index("Not known") < page.index(f'section id="{sections[0]}"')
    captions = re.findall(r'<p class="caption">(.*?)</p>', page)
    assert len(captions) == len(sections)
    assert all(one.startswith("Serves ") for one in captions)
    shown = unescape(page)
    for number in numbers:
        assert number in shown, number
    visible = page.replace(parsed.scripts[0], "")
    assert (
        not parsed.all("img")
        and len(parsed.scripts) == 2
        and ESCAPE not in visible
        and OVERRIDE not in visible
    )
    assert not [url for _, attrs in parsed.elements for url in (attrs.get("src"),) if url]
    carried = json.loads(judgecal("report", printed["experiment"], "--json").out)
    if "headline" in carried:
        assert carried["headline"]["sentence"] and carried["headline"]["unknown"]
    else:
        assert carried["decision"] and carried["not_known"]
    later = {key: carried["result"][key] for key in ("decomposition",) if key in printed}  # by a later run
    assert carried["result"] == {key: one for key, one in {**printed, **later}.items() if key != "headline"}
    short = judgecal("report", printed["experiment"], "--format", "md").out
    assert "Not known:" in short and printed["run_line"] in short
    assert ATTACK not in re.sub(
        r"^(`{3,})diff\n.*?^\1$", "", short, flags=re.M | re.S
    )  # in a fence it is inert
    return page


# --- optimize


def test_optimize(judgecal: Run) -> None:
    printed = printed_by(judgecal, "optimize", "--limit", "20")
    metric, test = printed["metric"], printed["test"]
    sections = ["gain", "prompt", "candidates", "losses", "errors", "pairs", "diagnostics", "notes"]
    shown = [told(printed[split][when][metric]) for split in ("dev", "test") for when in ("before", "after")]
    shown += [told(one[metric]) for one in printed["dev"]["candidates"]]
    # Points with a sign: +1.6 [-1.0, +4.2].
    shown += [f"{100 * test[key]['low']:+.1f}, " for key in ("difference", "difference_recalibrated")]
    page = check_page(judgecal, printed, sections, *shown)
    assert page.count("<h4>Demo ") == printed["n_demos"] > 0
    text = judgecal("report", printed["experiment"]).out
    assert printed["run_line"] in text and printed["decision"].upper() in text


def test_the_prompt_is_shown_as_a_diff_and_never_run(judgecal: Run, workspace_dir: Path) -> None:
    printed = printed_by(judgecal, "optimize", "--limit", "30", "--no-final")
    path = workspace_dir / "experiments" / printed["experiment"] / "program.json"
    program = json.loads(path.read_text())
    lines = program["signature"]["instructions"].splitlines()
    program["signature"]["instructions"] = "\n".join([*lines[1:], HOSTILE])
    program["demos"] = [{"question": HOSTILE, "answer_under_test": LONG, "augmented": True}]
    path.write_text(json.dumps(program))
    page = check_page(judgecal, printed, ["gain", "prompt", "candidates", "notes"])
    assert [tag for tag, _ in Parsed(page).elements if tag in ("del", "ins")] == ["del", "ins"]
    assert f"- {lines[0]}</del>" in unescape(page)
    assert "the judge&#x27;s own reply" in page and "98,000 more characters" in page
    assert "test was not looked at" in page
    short = judgecal("report", printed["experiment"], "--format", "md").out
    # The text holds a fence of three, so that of the diff has four.
    assert "\n````diff\n- " in short and short.count("````") == 2

    signature = workspace_dir / "signatures" / "correctness_v3.py"
    signature.write_text(signature.read_text().replace(lines[0], "Something else."))
    assert "The signature is gone or has changed since" in page_of(judgecal, printed["experiment"])


def estimate(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(
        value, low, high, n=40, n_expected=41, n_groups=20, n_unscored=1, reason=None if low else "few"
    )


@pytest.mark.parametrize(
    ("decision", "chosen", "difference", "first"),
    [
        (
            "better",
            "new",
            (0.05, 0.01, 0.09),
            "Take the optimised judge: +5.0 [+1.0, +9.0] points of macro_agreement",
        ),
        (
            "worse",
            "new",
            (-0.05, -0.09, -0.01),
            "Keep the judge as it is: the optimised one is worse; -5.0 [-9.0,",
        ),
        (
            "rescaled only",
            "new",
            (0.05, 0.01, 0.09),
            "Keep the judge as it is: the gain is one of scale alone; +5.0",
        ),
        (
            "cannot tell",
            "new",
            (0.01, -0.02, 0.04),
            "Keep the judge as it is: nothing better is shown; +1.0 [-2.0,",
        ),
        (
            "cannot tell",
            "new",
            (0.01, None, None),
            "Keep the judge as it is: nothing better is shown; why; +1.0",
        ),
        ("cannot tell", "before", (0.0, 0.0, 0.0), "Keep the judge as it is: why; 1 of 41 unscored on test"),
        ("cannot tell", "new", None, "Do not take it yet: why; 1 of 41 unscored on dev; 20 questions."),
    ],
)
def test_the_first_sentence_of_an_optimisation(
    decision: str, chosen: str, difference: tuple[float, float | None, float | None] | None, first: str
) -> None:
    found = {"macro_agreement": estimate(0.7, 0.6, 0.8)}
    change = None if difference is None else estimate(*difference)
    result = {
        "experiment": "opt", "judge": "s@m#opt", "optimizer": "labeled", "metric": "macro_agreement",
        "gold": {"set": "g", "sha256": "0" * 64, "scale": "percentage", "labels_by": "people",
                 "n_items": {"dev": 41}, "n_groups": {"dev": 20, "test": 20}},
        "dev": {"before": found, "after": found, "candidates": []},
        "test": {"before": found, "after": found, "difference": change, "difference_recalibrated": change}
        if change else dict.fromkeys(("before", "after", "difference", "difference_recalibrated")),
        "decision": decision, "why": "why", "chosen": chosen, "choice": "", "test_looks": 2, "test_look": None,
        "usd": 0.0, "notes": [], "run_line": "r", "program": "p", "n_demos": 1, "instructions_changed": False,
    }  # fmt: skip
    prompts = {"before": "a", "after": "a", "demos": []}
    # The text of a terminal has its own tests: here it would want every field.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("judgecal.report.page_optimize.optimize_text", lambda _: "")
        report = optimize_report(result, prompts, None)
    assert report.decision.sentence.startswith(first)
    assert ("this one has served 2 decisions" in " ".join(report.decision.unknown)) == (change is not None)


# --- retrieval


def test_retrieval(judgecal: Run) -> None:
    printed = printed_by(judgecal, "retrieval", "--window", "11")
    sections = ["ranks", "hand-on", "windows", "worst", "measures", "notes"]
    first, last = (told(one["recall"]) for one in (printed["hand_on"][0], printed["hand_on"][-1]))
    page = check_page(judgecal, printed, sections, first, last, told(printed["mrr"]))
    percent = f"{100 * printed['success']['5']['value']:.1f}%"
    assert printed["headline"]["sentence"].endswith(
        f"an answerer that reads 5 can do no better than {percent}."
    )
    assert f"<strong>{printed['headline']['sentence']}</strong>" in unescape(page)
    assert page.count("<svg ") == 6  # three pictures, each wide and narrow
    assert "#0072B2" not in page and "var(--warm)" in page  # in the colours of the page, light and dark


def test_texts_of_a_retriever_are_never_run(judgecal: Run, tmp_path: Path) -> None:
    documents = [{"document_id": f"d{n}", "title": HOSTILE, "text": f"{HOSTILE} word{n}"} for n in range(12)]
    questions = [
        {"question_id": f"q{n} {HOSTILE}", "question": f"{HOSTILE} word{n + 1}", "document_id": f"d{n}"}
        for n in range(12)
    ]
    for name, rows in (("documents", documents), ("questions", questions)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = printed_by(
        judgecal, "retrieval", "--documents", tmp_path / "documents.jsonl", "--questions",
        tmp_path / "questions.jsonl", "--window", "4", "--name", "hostile",
    )  # fmt: skip
    check_page(judgecal, printed, ["ranks", "hand-on", "windows", "worst", "measures", "notes"])


# --- gate and judge


def test_gate(judgecal: Run, served: Served) -> None:
    served.script.change = flips(0.15)
    printed = printed_by(judgecal, "gate", "--lock", served.path, "--name", "g", code=1)
    n = len(printed["flipped"])
    shown = [
        told(printed["flip_rate"], 1, 100.0),
        told(printed["noise"], 1, 100.0),
        told(printed["difference"]),
    ]
    shown += [told(printed[when][printed["metric"]]) for when in ("locked", "now")]
    page = check_page(judgecal, printed, ["flips", "loss", "items", "notes"], *shown)
    assert "Stop using this judge." in page and "FAIL: " in page
    assert page.count('<article class="case">') == n > 10 and f"{n} items judged otherwise" in page
    assert f"<summary>{n - 10} more</summary>" in page

    card = served.workspace.root / "gold" / "starter" / "items.jsonl"
    card.write_text(card.read_text() + "\n")
    assert "shown by their ids alone" in page_of(judgecal, "g")  # other bytes: another set


@pytest.mark.parametrize(
    ("decision", "act"),
    [("pass", "Go on with this judge."), ("inconclusive", "Cannot tell whether the judge has drifted.")],
)
def test_the_first_words_of_a_gate(judgecal: Run, served: Served, decision: GateDecision, act: str) -> None:
    judgecal("gate", "--lock", served.path, "--name", "g")
    result = find_experiment(find_workspace(None), "g").read_summary(GateResult)
    headline = gate_document(replace(result, decision=decision, model_changed=True), {}).headline
    assert headline.sentence == act and headline.because[0].startswith(f"{decision.upper()}: ")
    assert headline.because[1].startswith("MODEL CHANGED: the provider now answers as ")


def test_judge(judgecal: Run, served: Served, tmp_path: Path) -> None:
    served.script.change = lambda item, n, verdict: None if item.item_id.endswith("7") else verdict
    rows = [
        {"q": item.question, "a": item.answer, "r": item.reference_answer, "s": HOSTILE if place % 2 else "b"}
        for place, item in enumerate(served.script.gold.items[:40])
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = ["--question", "q", "--answer", "a", "--reference", "r", "--system", "s"]
    printed = printed_by(
        judgecal, "judge", path, "--lock", served.path, "-o", tmp_path / "out.jsonl", *columns, code=4
    )
    assert printed["n_unscored"] == 4  # items 7, 17, 27, 37
    shown = [told(one["intervals"]["share_passing"], 1, 100.0) for one in printed["systems"]]
    page = check_page(
        judgecal,
        printed,
        ["systems", "rate", "unscored", "notes"],
        *shown,
        printed["note"],
        "4 of 40 unscored",
    )
    assert "Do not read the pass rate as the share that people would pass" in page


# --- answer


def test_answer_tells_where_the_points_go_whichever_run_came_first(judgecal: Run) -> None:
    argv = ["answer", "--models", "embedded", "--limit", "12"]
    printed = printed_by(judgecal, *argv, "--context", "controlled")
    assert printed["decomposition"] is None
    naive = printed_by(judgecal, *argv, "--context", "topk")
    average = told(printed["systems"][0]["intervals"]["average_as_wrong"], 1)
    costs = told(naive["decomposition"]["systems"][0]["retrieval"], 1)
    check_page(judgecal, printed, ["systems", "points", "refusals", "notes"], average, costs)


def test_systems_of_recorded_answers(judgecal: Run, served: Served, tmp_path: Path) -> None:
    first = {item.group: item for item in served.script.gold.items}
    rows = [
        {"question": item.question, "answer": answer, "system": system}
        for item in first.values()
        for system, answer in (("right", item.reference_answer), (HOSTILE, "Nothing."))
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = printed_by(judgecal, "answer", "--answers", path, "--limit", "20", "--name", "rec")
    page = check_page(judgecal, printed, ["systems", "pairs", "refusals", "questions", "notes"])
    assert "<strong>Use right</strong>: it averages " in page and "shown to be above the other one" in page

    result = read_summary(find_experiment(find_workspace(None), "rec"))
    equal = [{**one, "decision": "cannot tell"} for one in result["comparisons"]]
    told_equal = answer_report({**result, "comparisons": equal}).decision
    assert (
        told_equal.act == "Cannot tell whom to use" and "is not shown to be above any other" in told_equal.why
    )
    heart = {
        "questions": [{"question": "q", "text": ATTACK, "systems": ["m"]}],
        "n_answerable": 9,
        "right_at": 75.0,
    }
    closed = answer_report({**result, "contaminated": heart})
    assert closed.decision.sentence.startswith(
        "Leave out 1 of 9 questions: they were answered right (75% or more)"
    )
    assert 'section id="contaminated"' in closed.html and not Parsed(closed.html).all("img")


# --- what is not there, and parts


def test_what_cannot_be_read_is_one_message(judgecal: Run, workspace_dir: Path) -> None:
    printed = printed_by(judgecal, "retrieval", "--name", "ret")
    path = workspace_dir / "experiments" / printed["experiment"] / "summary.json"
    for text, said in (
        ("{", "no JSON"),
        ("[]", "holds no object"),
        ('{"schema": 99}', "99"),
        (None, "is not there: the command did not come to its end"),
    ):
        path.unlink() if text is None else path.write_text(text)
        ran = judgecal("report", "ret")
        assert ran.code == 2 and said in ran.err, ran.err
    assert judgecal("report", "--all").code == 0
    assert "summary.json is not there" in (workspace_dir / "experiments" / "index.html").read_text()


def test_a_notebook_shows_every_kind(judgecal: Run) -> None:
    slug = printed_by(judgecal, "retrieval", "--name", "ret")["experiment"]
    assert "srcdoc=" in load_report(slug)._repr_html_()


def test_intervals_without_ends_are_points_and_texts_are_escaped() -> None:
    rows = [
        IntervalRow(ATTACK, Estimate(0.5, reason="few"), "0.500", strong=True),
        IntervalRow("none", Estimate(None), "-", hollow=True),
    ]
    picture = interval_picture(rows, Axis("share", full=0.0, dashed=-0.1), title=ATTACK)
    assert not Parsed(picture.html()).all("img") and "0.500" in picture.html()
    points = in_points(Estimate(0.25, 0.125, 0.5, n=7))
    assert (points.value, points.low, points.high, points.n) == (25.0, 12.5, 50.0, 7)


def test_a_diff_by_line() -> None:
    found = Diff("one\ntwo\nthree", "one\n2 <b>\nthree", short=True)
    assert found.markdown() == "```diff\n  one\n- two\n+ 2 <b>\n  three\n```"
    assert "<del>- two</del>\n<ins>+ 2 &lt;b&gt;</ins>" in found.html()
    assert Case("c", [("t", "x")]).markdown() == Diff("a", "b").markdown() == ""
