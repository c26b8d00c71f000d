"""Where a judge fails: traits of items, the slices in JSON, on the page, in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judgecal.experiment import agreement_table
from judgecal.experiment.agreement_table import AgreementTable, Verdicts, free_items
from judgecal.experiment.verdicts import paired_loss, traits_of
from judgecal.goldset import load_gold
from judgecal.records import Item, Judgement
from judgecal.report.explorer import judged_explorer
from judgecal.stats import compare_paired
from judgecal.workspace import Workspace
from tests.support.command import Run
from tests.support.gold import made_gold, made_items, rated
from tests.support.pages import PERCENTAGE, decided, made_set, page_of, printed_by, recorded

ASKED = ("where", "who", "when")


def test_traits_of_items() -> None:
    answers = ["no", "in 1914", "I am sorry, I do not know", "a b c d e f g h"] * 3
    items = [Item(str(n), str(n), "why", answer) for n, answer in enumerate(answers)]
    items[0] = Item("0", "0", "", "no", system="s", tags=("t", "t", "u"))
    places = {trait: of.tolist() for trait, of in traits_of(items).items()}
    assert places["answer length", "up to 2"][:3] == [0, 1, 4] and places["answer length", "3 to 7"][0] == 2
    assert places["answer length", "8 or more"][0] == 3
    assert places["refusal", "yes"][0] == 2 and places["digits", "yes"][0] == 1
    assert [places[trait] for trait in (("system", "s"), ("tag", "t"), ("tag", "u"))] == [[0]] * 3
    assert traits_of([]) == {}


def made(workspace: Path, **how: Any) -> list[dict[str, Any]]:
    """60 questions of three answers, a third of which are tagged `where`; systems by turns."""
    more = {n: {"tags": [ASKED[n // 3 % 3]], "system": f"s{n % 2}"} for n in range(180)}
    return made_set(workspace, 60, more=more, **how)


def test_a_slice_in_every_form(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> None:
    """Wrong on two of three answers to `where`, on one of thirty others: named, marked, and the terminal short."""
    rows = made(workspace_dir)
    right = {"full": "yes", "half": "no", "none": "no"}
    turned = {"yes": "no", "no": "yes"}
    wrong = {n for n in range(180) if (n // 3 % 3 == 0 and n % 3 < 2) or n % 30 == 4}
    verdicts = [
        turned[right[row["kind"]]] if n in wrong else right[row["kind"]] for n, row in enumerate(rows)
    ]
    slug = recorded(judgecal, tmp_path, {"lax": verdicts}, rows)
    path = tmp_path / "recorded.jsonl"
    printed = printed_by(judgecal, "agreement", "--gold", "made", "--judgements", path, "--name", slug)
    by_value = {(one["trait"], one["value"]): one for one in printed["slices"]}
    where = by_value["tag", "where"]
    keys = ["judge", "trait", "value", "n", "n_groups", "error", "p_value", "stands_out"]
    assert list(where) == keys and (where["judge"], where["n"], where["n_groups"]) == ("lax", 60, 20)
    assert where["error"]["value"] == pytest.approx(len({n for n in wrong if n // 3 % 3 == 0}) / 60)
    standing = {key for key, one in by_value.items() if one["stands_out"]}
    assert ("tag", "where") in standing and ("system", "s0") not in standing
    text = judgecal("report", slug).out
    assert 'wrong on answers tagged "where"; 3% elsewhere' in text and 'tagged "who"' not in text
    assert 'data-show="tag:where\nwrong:lax"' in page_of(judgecal, slug)


@pytest.mark.parametrize("splits", ["seed = 0\ntrain = 0.0\ndev = 0.0\ntest = 1.0"])
def test_no_slice_of_sealed_items(judgecal: Run, workspace_dir: Path, tmp_path: Path, splits: str) -> None:
    rows = made(workspace_dir, splits=splits)
    assert decided(recorded(judgecal, tmp_path, {"one": ["yes"] * 180}, rows))[1].result.slices == ()


def test_graded_labels_have_a_sign(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> None:
    """Where people give 100, 60 and 20, `who` is judged 40 too low."""
    rows = made(workspace_dir, labels=(100, 60, 20), scale=PERCENTAGE)
    given = [(100, 60, 20)[n % 3] - (40 if n // 3 % 3 == 1 else 0) for n in range(180)]
    found = decided(recorded(judgecal, tmp_path, {"strict": [max(20, one) for one in given]}, rows))[1]
    assert found.slices
    who = next(one for one in found.slices.entries if one.value == "who")
    assert who.stands_out and (who.error.value or 0.0) < -2.0 < who.rest


@pytest.mark.parametrize(
    ("lengths", "bins"), [((3, 4, 5), ["up to 4", "5"]), ((0, 0, 0, 1), ["up to 0", "1 or more"])]
)
def test_bins_of_lengths_meet(lengths: tuple[int, ...], bins: list[str]) -> None:
    items = [Item(str(n), str(n), "why", "a " * length) for n, length in enumerate(lengths)]
    assert [value for _, value in traits_of(items)] == bins


def test_free_judges_answer_whole_questions_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement_table, "FREE_ITEMS", 10)

    def kept(sizes: list[int]) -> int:
        items = [Item(f"{g}-{n}", str(g), "q", "a") for g, size in enumerate(sizes) for n in range(size)]
        found = free_items(items, seed=1)
        groups = {item.group for item in found}
        assert list(found) == [item for item in items if item.group in groups]
        return len(found)

    assert [kept([5] * 2), kept([5] * 9), kept([4] * 9), kept([11, 11])] == [10, 10, 8, 11]


def test_of_items_on_which_all_agree_every_kth_is_shown(workspace: Workspace) -> None:
    """All but two of 303: every second one of 301, after those two."""
    rows, people = made_items(101), {"full": 1, "half": 0, "none": 0}
    gold = load_gold(made_gold(workspace.gold / "many", rows, rated(rows, people), scale='kind = "binary"'))
    said = [float(gold.labels[item.item_id]) for item in gold.items]
    said[4], said[250] = 1.0 - said[4], 1.0 - said[250]
    pairs = zip(gold.items, said, strict=True)
    column = Verdicts(
        "j", gold.scale, [Judgement(item.item_id, item.sha, "j", "f", 0, one) for item, one in pairs]
    )
    table = AgreementTable(gold, gold.items)
    found = judged_explorer(table, [column], gold.items, "j", traits={}, n_sealed=0, prompts={}).rows
    assert len(found) == 2 + 151
    assert {one.name for one in found[:2]} == {gold.items[4].item_id, gold.items[250].item_id}
    few = Verdicts("j", gold.scale, column.rows[:9])
    assert table.asked_of(few) is table  # of a small table a free judge is asked about every item


def test_losses_stand_beside_the_paired_interval_of_each_judge(workspace: Workspace) -> None:
    rows, people = made_items(40), {"full": 1, "half": 0, "none": 0}
    gold = load_gold(made_gold(workspace.gold / "lost", rows, rated(rows, people), scale='kind = "binary"'))
    labels = [float(gold.labels[item.item_id]) for item in gold.items]
    said = {"best": labels, "worse": [1.0 - one if n % 4 == 0 else one for n, one in enumerate(labels)]}
    columns = []
    for name, verdicts in said.items():
        pairs = zip(gold.items, verdicts, strict=True)
        rows_of = [Judgement(item.item_id, item.sha, name, name, 0, one) for item, one in pairs]
        columns.append(Verdicts(name, gold.scale, rows_of))
    table = AgreementTable(gold, gold.items)
    best, worse = (paired_loss(table, columns[0], column, "macro_agreement").loss for column in columns)
    apart = compare_paired(labels, *said.values(), scale="binary", groups=[item.group for item in gold.items])
    assert best.value == 0.0
    assert [worse.value, worse.low] == pytest.approx([apart.difference.value, apart.difference.low])
