"""`judgecal agreement`: judgements recorded anywhere, held against people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import BASE, CLASS, Ran, Run, check_table, journal, one_object, tree
from tests.support.gold import import_nq301, made_gold, made_items, rated

N_GROUPS = 8


@pytest.fixture
def people(workspace_dir: Path) -> list[dict[str, Any]]:
    """A binary set: 8 questions, of three answers each the full one passes."""
    rows = made_items(N_GROUPS)
    labels = rated(rows, {"full": 1, "half": 0, "none": 0})
    made_gold(workspace_dir / "gold" / "pass", rows, labels, scale='kind = "binary"')
    return rows


def table(path: Path, header: str, rows: Iterable[Sequence[object]]) -> Path:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return path


def recorded(judgecal: Run, path: Path, *more: str) -> Ran:
    return judgecal("agreement", "--gold", "pass", "--judgements", path, *more)


def by_kind(
    rows: Iterable[dict[str, Any]], full: object, half: object, none: object
) -> list[tuple[str, Any]]:
    said = {"full": full, "half": half, "none": none}
    return [(row["item_id"], said[row["kind"]]) for row in rows]


def alone(judgecal: Run, folder: Path, verdicts: Iterable[Sequence[object]], name: str = "r.csv") -> Ran:
    return recorded(judgecal, table(folder / name, "item_id,verdict", verdicts), "--json")


def test_percentages_on_binary_labels(judgecal: Run, people: list[dict[str, Any]], tmp_path: Path) -> None:
    # Cut at 50, which passes: full 80 and half 50 pass, so accuracy is 2/3, tpr 1, tnr 1/2. Labels stand at
    # 100 and
    # 0: the errors are 20, 50 and 10, so mae is 80/3 and macro_agreement the mean of 0.80 and (0.50 + 0.90) /
    # 2.
    found = one_object(alone(judgecal, tmp_path, by_kind(people, "80%", 50, 10.0), "grader.csv"))
    (judge,) = found["judges"]
    assert judge["judge"] == "grader"  # no judge column: the file is one judge, named after it
    values = {name: estimate["value"] for name, estimate in judge["agreement"].items()}
    expected = {"accuracy": 2 / 3, "tpr": 1.0, "tnr": 0.5, "mae": 80 / 3, "macro_agreement": 0.75}
    assert {name: values[name] for name in expected} == pytest.approx(expected)
    note = "percentage verdicts on binary labels (grader): raw verdicts are compared on 0 to 100, cut at 50"
    assert found["notes"] == [note]
    # The same as fractions of 1, which is said; as percentages each of them would be a fail.
    ran = alone(judgecal, tmp_path, by_kind(people, 0.8, "0.5", 0.1), "f.csv")
    assert "f.csv: we read f as fractions of 1, which its verdicts fit" in ran.err
    assert one_object(ran)["judges"][0]["agreement"] == judge["agreement"]


def test_verdicts_of_1_to_10_are_read_on_the_scale_that_fits(
    judgecal: Run, people: list[dict[str, Any]], tmp_path: Path
) -> None:
    # As percentages all of them would be fails; on 1..10 those above the middle pass. 85 among them makes
    # percentages.
    rows = by_kind(people, 10, 6, 1)
    ran = alone(judgecal, tmp_path, rows, "g.csv")
    assert "g.csv: we read g on ordinal:1:10, which its verdicts fit (--verdict-scale overrides)" in ran.err
    assert one_object(ran)["judges"][0]["agreement"]["tpr"]["value"] == 1.0
    rows[0] = (rows[0][0], 85)
    assert alone(judgecal, tmp_path, rows, "g.csv").err == ""


def test_an_empty_verdict_is_unscored(
    judgecal: Run, people: list[dict[str, Any]], tmp_path: Path, workspace_dir: Path
) -> None:
    answers = ["yes", "", "perhaps"]  # full, half, none: 8 of each
    rows = [(row["item_id"], "j", answers[place % 3]) for place, row in enumerate(people)][:-1]
    ran = recorded(judgecal, table(tmp_path / "r.csv", "item_id,judge,verdict", rows), "--json")
    found = one_object(ran)  # nothing was called: exit 0
    (judge,) = found["judges"]
    assert (judge["n"], judge["n_expected"], judge["n_unscored"]) == (8, 24, 16)
    assert judge["unscored"] == {"parse": 15, "missing": 1}
    assert judge["as_wrong"]["accuracy"]["value"] == pytest.approx(8 / 24)
    kept = journal(workspace_dir, found["experiment"])
    failed = {row["raw_reply"]: row["error"]["message"] for row in kept if row["verdict"] is None}
    assert failed[""] == "no verdict was recorded"
    assert "'perhaps' is none of yes/no" in failed["perhaps"]


def test_rows_of_no_item_are_counted(judgecal: Run, people: list[dict[str, Any]], tmp_path: Path) -> None:
    rows = [(row["item_id"], "j", "yes") for row in people]
    rows += [("nowhere-1", "j", "no"), ("nowhere-2", "k", "no")]
    path = table(tmp_path / "r.csv", "item_id,judge,verdict", rows)
    found = one_object(recorded(judgecal, path, "--json"))
    assert [one["judge"] for one in found["judges"]] == ["j"]
    assert found["notes"] == ["2 rows of r.csv name no item of the set"]
    assert found["notes"][0] in " ".join(recorded(judgecal, path).out.split())


def test_what_score_wrote_is_read_with_its_first_repeats(judgecal: Run, workspace_dir: Path) -> None:
    scored = one_object(
        judgecal("score", "--judge", "wer@local", "--repeats", "2", "-o", "rows.jsonl", "--json")
    )
    read = one_object(judgecal("agreement", "--judgements", "rows.jsonl", "--split", "open", "--json"))
    (before,), (after,) = scored["judges"], read["judges"]
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert all(row["error"] is None and row["verdict"] is not None for row in rows)
    assert before["agreement"]["mae"]["value"] == pytest.approx(after["agreement"]["mae"]["value"])
    assert (
        read["notes"][0]
        == f"{after['n']} rows of rows.jsonl are further repeats, of which score measures the noise"
    )


def test_recorded_cost_and_latency_are_kept(
    judgecal: Run, people: list[dict[str, Any]], tmp_path: Path
) -> None:
    rows = [(*said, 0.002, i % 4) for i, said in enumerate(by_kind(people, "yes", "no", "no"))]
    path = table(tmp_path / "r.csv", "item_id,verdict,cost_usd,latency_s", rows)
    (one,) = one_object(recorded(judgecal, path, "--json"))["judges"]
    assert one["usd_per_1k"] == pytest.approx(2.0) and one["latency_s"]["p50"] == pytest.approx(1.5)
    wrong = table(tmp_path / "w.csv", "item_id,verdict,cost_usd,latency_s", [(*rows[0][:2], "dear", -1)])
    ran = recorded(judgecal, wrong)
    assert ran.code == 2
    assert "w.csv:2: cost_usd must be a number from 0, or empty, found 'dear'" in ran.err
    assert "latency_s must be a number from 0" in ran.err


NAMED, ALONE = "item_id,judge,verdict", "item_id,verdict"
FULL = ("i000-full", "j", "yes")
NO_ITEM_COLUMN = "unknown column 'item_id': did you mean item?"


@pytest.mark.parametrize(
    ("header", "rows", "more", "messages"),
    [
        (
            *(NAMED, [FULL, ("i000-half", "j", "yes"), FULL], ()),
            ["r.csv:4: j judged item i000-full again: delete one of its rows"],
        ),
        ("item,judge,verdict", [FULL], (), [NO_ITEM_COLUMN]),
        (
            *("item,judge,verdicts", [FULL], ()),
            [NO_ITEM_COLUMN, "unknown column 'verdict': did you mean verdicts?"],
        ),
        (
            *("item_id,judges,verdict", [FULL], ("--col", "judge=jugdes")),
            ["unknown column 'jugdes': did you mean judges"],
        ),
        (NAMED, [FULL, ("i000-full", "", "no")], (), ["r.csv:3: the judge has no name: fill it in"]),
        (ALONE, [("nowhere", "yes")], (), ["no value of column item_id is an item of gold set pass"]),
        (ALONE, [], (), ["holds no rows"]),
        (ALONE, [FULL[::2]], ("--split", "tset"), ["unknown split 'tset': did you mean test"]),
    ],
)
def test_files_that_cannot_be_read(
    judgecal: Run,
    people: list[dict[str, Any]],
    tmp_path: Path,
    workspace_dir: Path,
    header: str,
    rows: list[Sequence[object]],
    more: tuple[str, ...],
    messages: list[str],
) -> None:
    before = tree(workspace_dir)
    ran = recorded(judgecal, table(tmp_path / "r.csv", header, rows), *more)
    assert (ran.code, ran.out) == (2, "")
    assert [message for message in messages if message not in ran.err] == []
    assert ran.err.count("\n") == len(messages)
    assert tree(workspace_dir) == before


@pytest.mark.parametrize("split", ["all", "test", "open"])
def test_test_items_are_a_look(
    judgecal: Run, people: list[dict[str, Any]], tmp_path: Path, workspace_dir: Path, split: str
) -> None:
    path = table(tmp_path / "r.csv", "item_id,verdict", by_kind(people, "yes", "yes", "yes"))
    recorded(judgecal, path, "--split", split)
    assert (workspace_dir / "experiments" / "test_looks.jsonl").exists() == (split != "open")


# --- known values


@pytest.mark.shared_data
def test_nq301_gives_the_known_values(judgecal: Run, shared_data: Path) -> None:
    folder = shared_data / "nq301"
    import_nq301(judgecal, folder)
    pairs = one_object(judgecal("gold", "check", "nq301", "--json"))["raters"]["pairs"]
    (pair,) = [pair for pair in pairs if {pair["a"], pair["b"]} == {"annotator1", "annotator2"}]
    assert (round(pair["agreement"]["kappa"]["value"], 4), pair["n"]) == (0.7347, 1483)
    columns = ("--col", "judge=judge", "--verdict", "verdict", "--col", "item=item_id")
    ran = judgecal(
        "agreement", "--gold", "nq301", "--judgements", folder / "judgements.csv", *columns, "--json"
    )
    found = one_object(ran)
    check_table(found, BASE | CLASS)

    def rounded(entry: dict[str, Any], *names: str) -> tuple[float, ...]:
        return tuple(round(entry["agreement"][name]["value"], 4) for name in names)

    values = {
        one["judge"]: (*rounded(one, "kappa", "accuracy"), one["n"], one["n_unscored"])
        for one in found["judges"]
    }
    assert values == {
        "gpt-4": (0.6953, 0.8481, 1488, 2),
        "text-davinci-003": (0.6745, 0.8376, 1490, 0),
        "bem": (0.6157, 0.8060, 1490, 0),
    }
    judges, beside = ["gpt-4", "text-davinci-003", "bem"], {}
    for rater in found["raters"]:
        beside[rater["judge"]] = [rounded(one, "kappa")[0] for one in (rater, *rater["judges"])]
        assert [one["judge"] for one in rater["judges"]] == judges
        assert {one["n_expected"] for one in (rater, *rater["judges"])} == {1483}
    assert beside == {
        "annotator1": [0.7347, 0.5899, 0.5949, 0.5371],
        "annotator2": [0.7347, 0.6789, 0.6690, 0.6119],
    }
    assert (
        "they were asked mostly about answers on which the others differ (195 of 216;"
        in found["tie_breakers"]["annotator3"]
    )
    for one in found["judges"]:
        assert one["alt_test"][0]["n_items"].keys() == one["stand_in"]["raters"].keys() == beside.keys()
        assert one["stand_in"]["at_worst"] < -0.03
