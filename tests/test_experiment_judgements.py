"""Judgements of single contexts, held against labels of contexts and of items; and those of stored replies."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from judgecal.experiment.judgements import StoredVerdicts, stored_notes, whole_items
from judgecal.records import Failure, Judgement
from judgecal.scale import Scale
from tests.support.command import Run, one_object

CODE = """def relevant(chunk: str, question: str) -> bool:
    if chunk == "broken":
        raise ValueError("cannot read it")
    return question in chunk
"""


def test_a_judgement_of_an_item_is_the_mean_of_its_contexts() -> None:
    one = Judgement(
        "i", "sha", "j", "f", 0, 1.0, unit="chunk:0", latency_s=1.0, cost_usd=0.5, prompt_tokens=3
    )
    rows = [
        one,
        replace(one, unit="chunk:1", verdict=0.0),
        replace(one, unit="chunk:2"),
        replace(one, unit="chunk:3"),
    ]
    (whole,) = whole_items(rows)
    assert (whole.unit, whole.verdict, whole.cost_usd, whole.prompt_tokens) == ("item", 0.75, 2.0, 12)
    failed = replace(one, unit="chunk:1", verdict=None, error=Failure("parse", "no"), cost_usd=None)
    (whole,) = whole_items([one, failed])
    assert (whole.verdict, whole.error, whole.cost_usd) == (None, Failure("parse", "no"), None)
    plain = [replace(one, unit="item")]
    assert whole_items(plain) is plain
    again = replace(one, repeat=1, verdict=0.0)
    assert [row.verdict for row in whole_items([one, again])] == [1.0, 0.0]


def test_scales_of_means() -> None:
    found = [
        str(Scale.parse(text).of_means) for text in ("binary", "ordinal:0:3", "points:0:5:0.5", "percentage")
    ]
    assert found == ["points:0:1", "points:0:3", "points:0:5", "percentage"]


def table(folder: Path, n: int = 60) -> Path:
    """Answers with four contexts each, of which as many hold the question's word as the label says."""
    rows = []
    for number in range(n):
        good = number % 5
        contexts = [f"word{number} here" if place < good else "nothing" for place in range(4)]
        rows.append({
            "id": f"a{number}", "q": f"word{number}", "a": "x", "c": contexts, "share": good / 4,
            "each": [int(place < good) for place in range(4)],
        })  # fmt: skip
    chunks = [
        {**row, "id": f"{row['id']}-{place}", "c": [text], "each": row["each"][place]}
        for row in rows for place, text in enumerate(row["c"])
    ]  # fmt: skip
    path = folder / "answers.jsonl"
    for to, written in ((path, rows), (folder / "chunks.jsonl", chunks)):
        to.write_text("".join(json.dumps(row) + "\n" for row in written))
    return path


def test_against_labels_of_contexts_and_of_items(judgecal: Run, workspace_dir: Path) -> None:
    (workspace_dir / "checks.py").write_text(CODE, encoding="utf-8")
    file = table(workspace_dir)
    common = ["--col", "question=q", "--col", "answer=a", "--col", "contexts=c", "--col", "item=id"]
    whole = ("gold", "import", file, *common, "--as", "whole", "--label", "share", "--scale", "fraction")
    each = ("gold", "import", "chunks.jsonl", *common, "--as", "each", "--label", "each", "--scale", "binary")
    assert judgecal(*whole).code == judgecal(*each).code == 0
    judge = "checks.py:relevant@python"
    whole = one_object(judgecal("score", "--judge", judge, "--gold", "whole", "--split", "all", "--json"))
    (one,) = whole["judges"]
    assert (one["n"], one["n_expected"], one["n_unscored"]) == (60, 60, 0)
    assert one["agreement"]["mean_agreement"]["value"] == 1.0 and one["agreement"]["pearson"]["value"] == 1.0
    each = one_object(judgecal("score", "--judge", judge, "--gold", "each", "--split", "all", "--json"))
    (one,) = each["judges"]
    assert (one["n"], each["gold"]["n_groups"]) == (240, 60)
    assert one["agreement"]["accuracy"]["value"] == 1.0
    for experiment in (whole["experiment"], each["experiment"]):
        assert judgecal("report", experiment).code == 0
    kept = [json.loads(line) for line in (workspace_dir / "experiments" / whole["experiment"] / "judgements.jsonl")
            .read_text().splitlines()]  # fmt: skip
    assert {row["unit"] for row in kept if row["judge"] == judge} == {f"chunk:{place}" for place in range(4)}


def test_from_score_to_the_locked_judge_in_production(judgecal: Run, workspace_dir: Path) -> None:
    (workspace_dir / "checks.py").write_text(CODE, encoding="utf-8")
    file = table(workspace_dir, 120)
    common = ("--col", "question=q", "--col", "answer=a", "--col", "contexts=c", "--col", "item=id")
    ran = judgecal("gold", "import", file, *common, "--as", "whole", "--label", "share", "--scale", "fraction",
                   "--pass-at", "0.5")  # fmt: skip
    assert ran.code == 0, ran.err
    found = one_object(judgecal("score", "--judge", "checks.py:relevant@python", "--gold", "whole", "--json"))
    selected = judgecal("select", found["experiment"], "-o", "lock.json", "--json")
    assert selected.code == 0, selected.err
    assert judgecal("gate", "--lock", "lock.json").code == 0
    rows = [{"q": "w", "a": "x", "c": ["w", "w and", "no", "w too"]}, {"q": "w", "a": "x", "c": ["w", "broken"]},
            {"q": "w", "a": "x", "c": []}]  # fmt: skip
    (workspace_dir / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = judgecal("judge", "new.jsonl", "--lock", "lock.json", "-o", "out.jsonl", *common[:6])
    assert ran.code == 4, ran.err
    out = [json.loads(line) for line in (workspace_dir / "out.jsonl").read_text().splitlines()]
    assert [row["verdict"] for row in out] == [0.75, None, None]
    assert [row["passed"] for row in out] == [True, None, None]
    assert "cannot read it" in out[1]["error"] and out[2]["error"] == "input: there is no context"


def test_words_on_several_contexts_have_no_mean(judgecal: Run, workspace_dir: Path) -> None:
    code = 'from typing import Literal\n\n\ndef kind(chunk: str) -> Literal["a", "b", "c"]:\n    return "a"\n'
    (workspace_dir / "kinds.py").write_text(code, encoding="utf-8")
    rows = [{"q": f"q{n}", "a": "x", "c": ["1", "2"], "y": "abc"[n % 3]} for n in range(20)]
    (workspace_dir / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    common = [
        "--col", "question=q", "--col", "answer=a", "--col", "contexts=c", "--label", "y", "--scale",
        "nominal",
    ]  # fmt: skip
    assert judgecal("gold", "import", "t.jsonl", "--as", "words", *common).code == 0
    ran = judgecal("score", "--judge", "kinds.py:kind@python", "--gold", "words")
    assert (
        ran.code == 2
        and "words have no mean over several contexts" in ran.err
        and "one context in each row" in ran.err
    )
    single = [{**row, "c": [text]} for row in rows for text in row["c"]]
    (workspace_dir / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in single))
    assert judgecal("gold", "import", "t.jsonl", "--as", "single", *common).code == 0
    assert judgecal("score", "--judge", "kinds.py:kind@python", "--gold", "single").code == 0


# --- stored replies

NOW = datetime.fromisoformat("2026-03-15T12:00:00+00:00")


def row(ago: timedelta | None, verdict: float | None = 1.0, model_id: str | None = "m") -> Judgement:
    replied_at = None if ago is None else (NOW - ago).isoformat()
    return Judgement(
        "i", "sha", "j@m", "print", 0, verdict, model_id=model_id, replied_at=replied_at, at=NOW.isoformat()
    )


def test_the_oldest_reply_is_said() -> None:
    ago = timedelta(days=40)
    rows = [row(None), row(ago), row(timedelta()), row(ago, verdict=None), row(None, model_id=None)]
    (note,) = stored_notes(rows)
    assert note.startswith("2 of 3 verdicts come from stored replies")
    assert "the oldest reply is of 2026-02-03 12:00 UTC" in note


def test_nothing_stored_is_nothing_said_and_parts_add_up() -> None:
    assert stored_notes([row(None), row(timedelta(days=1), verdict=None)]) == []
    whole, part = StoredVerdicts(), StoredVerdicts()
    whole.add(row(timedelta(hours=5)))
    part.add(row(timedelta(days=9)))
    whole.extend(part)
    assert (whole.n, whole.n_called, whole.oldest) == (2, 2, (NOW - timedelta(days=9)).isoformat())
    assert whole.notes()[0].startswith("all 2 verdicts come from stored replies")
