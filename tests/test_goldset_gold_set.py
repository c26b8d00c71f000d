"""Loading a gold set: every bad input is named with its file and line; gold labels, splits and the audit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgecal.errors import InputError
from judgecal.goldset import Card, GoldSet, RaterCard, Splits, check_gold, load_gold, require_splits
from judgecal.records import Item, Rating
from judgecal.scale import Label, Scale
from judgecal.workspace import Workspace

CARD = """schema = 1
name = "small"
version = "1"
licence = "MIT"
source = "made up"
made_by = "a test"
sampling = "curated"

[scale]
kind = "percentage"

[scale.anchors]
"100" = "all of it"

[raters.ann]
who = "Ann"
"""
ITEMS: list[dict[str, Any]] = [
    {"item_id": "a", "group": "g1", "question": "Q1?", "answer": "A1", "reference_answer": ["x", "y"]},
    {"item_id": "b", "question": "Q2?", "answer": "", "reference_answer": "z", "tags": ["t"]},
]
RATINGS: list[dict[str, Any]] = [
    {"item_id": "a", "rater": "ann", "label": 100},
    {"item_id": "b", "rater": "ann", "label": 0, "note": "empty"},
]


def lines(rows: list[Any]) -> str:
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)


def make(
    root: Path,
    *,
    card: str | None = CARD,
    items: list[Any] | None = ITEMS,
    ratings: list[Any] | None = RATINGS,
    documents: list[Any] | None = None,
) -> Path:
    folder = root / "gold" / "small"
    folder.mkdir(parents=True)
    (root / "signatures").mkdir()
    if card is not None:
        (folder / "card.toml").write_text(card, encoding="utf-8")
    for name, rows in (("items", items), ("ratings", ratings), ("documents", documents)):
        if rows is not None:
            (folder / f"{name}.jsonl").write_text(lines(rows), encoding="utf-8")
    return folder


def problems_of(folder: Path) -> tuple[str, ...]:
    with pytest.raises(InputError) as error:
        load_gold(folder)
    return error.value.problems


def one_problem(folder: Path) -> str:
    problems = problems_of(folder)
    assert len(problems) == 1, problems
    return problems[0]


def test_a_good_set_has_everything(tmp_path: Path) -> None:
    folder = make(tmp_path, documents=[{"document_id": "d", "title": "T", "text": "words"}])
    gold = load_gold("small", workspace=Workspace(tmp_path, tmp_path / "experiments"))
    assert gold.name == "small" and gold.path == folder
    assert [item.item_id for item in gold.items] == ["a", "b"]
    assert gold.items[0].reference_answers == ("x", "y")
    assert gold.items[1].group == "Q2?" and gold.items[1].answer == ""
    assert gold.labels == {"a": 100.0, "b": 0.0}
    assert gold.ratings[1].note == "empty"
    assert gold.documents[0].title == "T"
    assert list(gold.lines["items.jsonl"]) == [1, 2]


def test_an_unknown_set_names_the_nearest(tmp_path: Path) -> None:
    make(tmp_path)
    workspace = Workspace(tmp_path, tmp_path / "experiments")
    with pytest.raises(InputError, match=r"unknown gold set 'smal': did you mean small\?"):
        load_gold("smal", workspace=workspace)
    with pytest.raises(InputError, match="is not a gold set"):
        load_gold(tmp_path / "signatures", workspace=workspace)


def test_all_problems_come_in_one_message(tmp_path: Path) -> None:
    items = [*ITEMS, *({"item_id": f"i{n}", "question": "?", "answer": ""} for n in range(14))]
    items += [
        '{"item_id": "broken", "question": "?',
        ITEMS[0],
        {"item_id": "u", "question": "?", "anser": "x"},
    ]
    ratings = [
        *RATINGS,
        {"item_id": "a", "rater": "ann", "label": 101},
        {"item_id": "broken", "rater": "ann", "label": 1},
    ]
    found = "\n".join(problems_of(make(tmp_path, items=items, ratings=ratings, card=CARD + "[split]\n")))
    assert "card.toml:17: unknown key 'split': did you mean splits" in found
    assert "items.jsonl:17: broken JSON at column" in found
    assert "items.jsonl:18: item_id 'a' is in line 1 already" in found
    assert "items.jsonl:19: unknown key 'anser': did you mean answer" in found
    assert "ratings.jsonl:3: label outside the scale percentage: 101 lies outside 0..100" in found
    assert "ratings.jsonl:3: rater 'ann' rated item 'a' in line 1 already" in found
    assert "'broken'" not in found, "its item may stand in the broken line"
    assert found.count("\n") == 5
    ratings = [*RATINGS, {"item_id": "nowhere", "rater": "ann", "label": 5}]
    (found,) = problems_of(make(tmp_path / "again", ratings=ratings))
    assert "ratings.jsonl:3: no item 'nowhere' in items.jsonl" in found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"item_id": 7}, "item_id: Input should be a valid string, found 7"),
        ({"item_id": " "}, "item_id: empty: fill it in"),
        ({"question": None}, "no question: add it"),
        ({"answer": 3}, "answer: Input should be a valid string, found 3"),
        ({"group": 3}, "group: Input should be a valid string, found 3"),
        ({"reference_answer": 3}, "reference_answer: Input should be a valid list, found 3"),
        ({"reference_answer": ["x", ""]}, "reference_answer.1: empty: fill it in"),
        ({"tags": "t"}, "tags: Input should be a valid list, found 't'"),
        ({"contexts": "t"}, "contexts: Input should be a valid list, found 't'"),
        ({"contexts": [1]}, "contexts.0: Input should be a"),
        ({"conversation": "hi"}, "conversation: Input should be a valid list, found 'hi'"),
        ({"conversation": [{"role": "user"}]}, "no conversation.0.content: add it"),
        ({"fields": {"tone": 1}}, "fields.tone: Input should be a valid string, found 1"),
        ({"expect": ["x"]}, "expect: Input should be a valid dictionary, found"),
        ({"inclusion_probability": 0}, "inclusion_probability: Input should be greater than 0"),
        ({"contexts": [{"txt": "t", "text": "u"}]}, "unknown key 'txt': did you mean text"),
        (
            {"contexts": [{"text": "t", "score": "high"}]},
            "contexts.0.score: Input should be a valid number, found 'high'",
        ),
        ({"contexts": [{"text": "t", "score": 10**400}]}, "contexts.0.score"),
        ({"lable": 1}, "unknown key 'lable'"),
    ],
)
def test_a_bad_field_of_an_item(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    folder = make(tmp_path, items=[ITEMS[0] | {"item_id": "c"} | change, *ITEMS])
    problem = one_problem(folder)
    assert "items.jsonl:1: " in problem and message in problem


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": None}, "no label: add it, or remove the row"),
        ({"label": [1]}, "label must be a number or a word, found [1]"),
        ({"label": "good"}, "label outside the scale percentage: 'good' is not a number"),
        ({"label": True}, "label outside the scale percentage: True is not a number"),
        ({"label": 10**400}, "label outside the scale percentage"),
        ({"rater": ""}, "rater: empty: fill it in"),
        ({"note": 3}, "note: Input should be a valid string, found 3"),
        ({"rating": 3}, "unknown key 'rating'"),
    ],
)
def test_a_bad_field_of_a_rating(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    problem = one_problem(make(tmp_path, ratings=[RATINGS[0] | change]))
    assert "ratings.jsonl:1: " in problem and message in problem


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "found a JSON list; each line must be one JSON object"),
        ('{"item_id": "a", "item_id": "c"}', "the key 'item_id' is there twice in one object"),
        ("[" * 100_000, "broken JSON (nested too deeply)"),
    ],
)
def test_lines_that_are_no_row(tmp_path: Path, line: str, message: str) -> None:
    problem = one_problem(make(tmp_path, items=[*ITEMS, line]))
    assert "items.jsonl:3: " in problem and message in problem


def test_missing_files_and_an_empty_set(tmp_path: Path) -> None:
    assert "items.jsonl: there is no such file" in one_problem(make(tmp_path / "1", items=None))
    assert "ratings.jsonl: there is no such file" in one_problem(make(tmp_path / "2", ratings=None))
    assert "card.toml: there is no such file" in one_problem(make(tmp_path / "3", card=None))
    assert "the set is empty" in one_problem(make(tmp_path / "4", items=[], ratings=[]))


def test_a_wrong_encoding_names_line_and_byte(tmp_path: Path) -> None:
    folder = make(tmp_path)
    path = folder / "items.jsonl"
    path.write_bytes(lines(ITEMS).encode().replace(b"A1", b"caf\xe9"))
    column = path.read_bytes().index(b"\xe9") + 1
    problem = one_problem(folder)
    assert f"items.jsonl:1: not UTF-8: byte 0xe9 at byte {column} of the line" in problem
    path.write_bytes(lines(ITEMS).encode("utf-16"))
    assert "items.jsonl:1: the file is UTF-16: save it as UTF-8" in one_problem(folder)
    path.write_bytes(lines(ITEMS).encode("utf-8-sig"))
    (folder / "card.toml").write_bytes(CARD.encode().replace(b"made up", b"\xe9"))
    assert "card.toml:5: not UTF-8: byte 0xe9" in one_problem(folder)


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    item = json.dumps(ITEMS[0] | {"answer": "one\u2028two\x85three"}, ensure_ascii=False)
    gold = load_gold(make(tmp_path, items=[item + "\r", "", ITEMS[1]]))
    assert gold.items[0].answer == "one\u2028two\x85three"
    assert list(gold.lines["items.jsonl"]) == [1, 3]


def test_reference_documents_must_exist_where_there_are_documents(tmp_path: Path) -> None:
    items = [ITEMS[0] | {"reference_documents": ["d"]}, ITEMS[1] | {"reference_documents": ["d", "e"]}]
    assert load_gold(make(tmp_path / "1", items=items)).items[0].reference_documents == ("d",)
    documents = [{"document_id": "d", "text": "t"}, {"document_id": "d", "text": "t"}]
    found = problems_of(make(tmp_path / "2", items=items, documents=documents))
    assert "documents.jsonl:2: document_id 'd' is in line 1 already" in found[0]
    assert "items.jsonl:2: reference document 'e' is not in documents.jsonl" in found[1]
    assert len(found) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("schema = 1", "schema = 2", "schema 2 is newer than this judgecal reads"),
        ('version = "1"', "version = 1", "card.toml:3: version: Input should be a valid string, found 1"),
        ("version", "versoin", "card.toml:3: unknown key 'versoin': did you mean version"),
        ('"curated"', '"some"', "card.toml:7: sampling must be one of random, stratified, curated, unknown, found 'some'"),
        ('kind = "percentage"', "", "card.toml:9: no kind in [scale]"),
        ('"percentage"', '"percent"', "card.toml:10: unknown scale 'percent'"),
        ('"percentage"', '"fraction"', "card.toml:10: fraction is for imports only"),
        ('"percentage"', '"ordinal"', "card.toml:10: an ordinal scale needs min and max"),
        ('"percentage"', '"percentage"\nmax = 10', "card.toml:11: max of the scale percentage is 100, found 10"),
        ('"percentage"', '"percentage"\npass_at = 101', "pass_at 101 lies outside 0..100"),
        ('"percentage"', '"percentage"\nstep = 0', "step 0 must be above 0"),
        ('"percentage"', '"percentage"\ncategories = ["a"]', "categories belong to a nominal scale"),
        ('"100" =', '"101" =', "card.toml:13: anchor '101' is not a label of the scale percentage"),
        ("who", "whom", "card.toml:16: unknown key 'whom': did you mean who"),
        ("[raters.ann]", "[splits]\ntrain = 0.5\n[raters.ann]", "splits: the shares must sum to 1, found 1.25"),
        ("[raters.ann]", "[splits]\ntrain = -1\n[raters.ann]", "splits: train must lie between 0 and 1, found -1"),
        ("[raters.ann]", "[splits]\nseed = 0.5\n[raters.ann]", "card.toml:16: splits.seed: Input should be a valid integer"),
        ("[raters.ann]", "[splits]\nseeed = 1\n[raters.ann]", "card.toml:16: unknown key 'seeed'"),
        ("[scale]", "[scale", "card.toml: "),
    ],
)  # fmt: skip
def test_a_bad_card(tmp_path: Path, old: str, new: str, message: str) -> None:
    problem = one_problem(make(tmp_path, card=CARD.replace(old, new, 1)))
    assert message in problem


def test_a_card_may_leave_out_prose(tmp_path: Path) -> None:
    gold = load_gold(make(tmp_path, card='[scale]\nkind = "percentage"\n'))
    assert gold.name == "small" and gold.card.sampling == "unknown" and gold.card.licence == ""


def test_nominal_categories(tmp_path: Path) -> None:
    card = '[scale]\nkind = "nominal"\n'
    ratings = [
        {"item_id": "a", "rater": "ann", "label": "red"},
        {"item_id": "b", "rater": "ann", "label": "blue"},
    ]
    gold = load_gold(make(tmp_path / "1", card=card, ratings=ratings))
    assert gold.scale.categories == ("blue", "red")
    folder = make(tmp_path / "2", card=card + 'categories = ["red", "green"]\n', ratings=ratings)
    assert "ratings.jsonl:2: label outside the scale nominal: 'blue' is none of red, green" in one_problem(
        folder
    )


def test_the_sha_follows_the_content(tmp_path: Path) -> None:
    folder = make(tmp_path)
    first = load_gold(folder).sha256
    (folder / "README.md").write_text("words", encoding="utf-8")
    assert load_gold(folder).sha256 == first
    (folder / "documents.jsonl").write_text("", encoding="utf-8")
    second = load_gold(folder).sha256
    (folder / "ratings.jsonl").write_text(lines(RATINGS[:1]), encoding="utf-8")
    assert len({first, second, load_gold(folder).sha256}) == 3


def build(
    labels: dict[str, dict[str, Label]],
    *,
    scale: str = "binary",
    items: Sequence[Item] | None = None,
    splits: Splits | None = None,
    step: float | None = None,
) -> GoldSet:
    """A set of `rater -> item -> label`, one item a question unless items are given."""
    ids = dict.fromkeys(item_id for rated in labels.values() for item_id in rated)
    rows = items or [Item(item_id, item_id, f"question {item_id}", f"answer {item_id}") for item_id in ids]
    card = Card(
        name="made",
        scale=Scale.parse(scale, step=step),
        version="1",
        licence="MIT",
        source="s",
        made_by="m",
        raters={rater: RaterCard("w") for rater in labels},
        splits=splits or Splits(),
    )
    ratings = [Rating(i, rater, label) for rater, rated in labels.items() for i, label in rated.items()]
    return GoldSet("made", Path("made"), card, tuple(rows), tuple(ratings), (), "0" * 64)


def kinds(gold: GoldSet) -> set[str]:
    return {problem.kind for problem in check_gold(gold)}


def test_majority_tie_and_adjudication() -> None:
    gold = build(
        {
            "a": {"1": 1.0, "2": 1.0, "3": 0.0, "4": 1.0},
            "b": {"1": 1.0, "2": 0.0, "3": 1.0, "4": 0.0},
            "c": {"1": 0.0, "3": 1.0},
            "gold": {"4": 0.0},
        }
    )
    assert gold.labels == {"1": 1.0, "3": 1.0, "4": 0.0}
    assert gold.raters == ("a", "b", "c")
    assert "gold" not in gold.ratings_by_rater
    assert [p.message for p in check_gold(gold) if p.kind == "unlabelled"] == [
        "item '2' has no gold label: the raters tie: add a rating by 'gold' or by one more rater"
    ]


def test_median_of_numbers() -> None:
    gold = build(
        {"a": {"1": 10.0, "2": 0.0}, "b": {"1": 100.0, "2": 5.0}, "c": {"1": 20.0}}, scale="percentage"
    )
    assert gold.labels == {"1": 20.0, "2": 2.5}


def test_nominal_majority() -> None:
    gold = build({"a": {"1": "x"}, "b": {"1": "x"}, "c": {"1": "y"}}, scale="nominal")
    assert gold.labels == {"1": "x"}


def test_ties_are_items_without_a_gold_label_that_two_rated() -> None:
    gold = build(
        {
            "a": {"1": 1.0, "2": 1.0, "3": 1.0, "4": 0.0},
            "b": {"1": 0.0, "2": 0.0, "3": 1.0},
            "gold": {"1": 1.0},
        }
    )
    assert [item.item_id for item in gold.tied] == ["2"]  # 1 is adjudicated, 3 agreed on, 4 has one rating
    assert gold.peers.keys() == {"a", "b"}


def test_who_breaks_ties_stands_beside_nobody() -> None:
    ids = [str(number) for number in range(60)]
    differ = ids[:15]
    labels = {
        "a": dict.fromkeys(ids, 1.0),
        "b": {one: 0.0 if one in differ else 1.0 for one in ids},
        "c": dict.fromkeys([*differ, *ids[-2:]], 1.0),
    }
    gold = build(labels)
    assert gold.tie_breakers["c"].why.startswith(
        "they were asked mostly about answers on which the others differ (15 of 17;"
    )
    assert gold.peers.keys() == {"a", "b"} and gold.raters == ("a", "b", "c")
    assert gold.tied == ()  # the third vote is one, and makes a majority
    everywhere = build({**labels, "c": dict.fromkeys(ids, 1.0)})
    assert not everywhere.tie_breakers and everywhere.peers.keys() == {"a", "b", "c"}


@given(st.lists(st.text(max_size=20), unique=True, min_size=1, max_size=40), st.integers(0, 5))
def test_a_question_never_moves_when_the_set_grows(groups: list[str], seed: int) -> None:
    splits = Splits(seed)
    few = {group: splits.of(group) for group in groups[: len(groups) // 2]}
    assert {group: splits.of(group) for group in few} == few
    for group, split in few.items():
        text = f"{seed}:{group}".encode("utf-8", "surrogatepass")
        u = int(hashlib.sha256(text).hexdigest()[:16], 16) / 2**64
        assert split == ("train" if u < 0.25 else "dev" if u < 0.25 + 0.30 else "test")


def test_select_splits_by_group_in_file_order() -> None:
    items = [Item(str(n), f"g{n % 50}", "q", "a") for n in range(200)]
    gold = build({"a": {"0": 1.0}}, items=items)
    parts = {split: gold.select(split) for split in ("train", "dev", "test")}
    assert sum(map(len, parts.values())) == 200 and gold.select("all") == tuple(items)
    assert {i.group for i in parts["train"]}.isdisjoint(i.group for i in parts["dev"])
    opened = gold.select("open")
    assert sorted(int(i.item_id) for i in opened) == [int(i.item_id) for i in opened]
    assert set(opened) == set(parts["train"]) | set(parts["dev"])
    left = gold.select("open", without_groups={opened[0].group})
    assert opened[0].group not in {i.group for i in left} and len(left) == len(opened) - 4
    with pytest.raises(InputError, match=r"unknown split 'tets': did you mean test\?"):
        gold.select("tets")


def test_require_splits_lists_each_that_is_too_small() -> None:
    gold = build({"a": {str(n): 1.0 for n in range(8)}})
    require_splits(gold, {"all": 8})
    with pytest.raises(InputError) as error:
        require_splits(gold, {"train": 30, "test": 30, "all": 8})
    assert len(error.value.problems) == 2
    assert "the split train has" in error.value.problems[0] and "needs 30" in error.value.problems[0]
    assert "before anyone looks at a label" in error.value.problems[1]


def test_each_audit_finding() -> None:
    same = Item("1", "g1", "What is it?", "This")
    items = [same, Item("2", "g2", "what  IS it?", "this"), Item("3", "g3", "Other?", "x")]
    gold = build({"a": {"1": 1.0, "2": 0.0}, "b": {"1": 1.0}}, items=items)
    found = {problem.kind: problem for problem in check_gold(gold)}
    assert set(found) == {"unlabelled", "duplicate", "question_in_two_groups", "thin_split", "thin_stratum"}
    assert "labelled 1, 0: settle which label holds" in found["duplicate"].message
    assert "2 groups (g1, g2)" in found["question_in_two_groups"].message
    assert found["unlabelled"].message == "item '3' has no gold label: nobody rated it"


def test_near_constant() -> None:
    rated: dict[str, Label] = {str(n): 100.0 for n in range(50)}
    assert "near_constant" in kinds(build({"a": rated}, scale="percentage"))


def test_a_card_of_another_name_than_its_folder_is_refused(tmp_path: Path) -> None:
    """Results name the set by its card, and `report` and `select` look it up by its folder."""
    folder = make(tmp_path, card=CARD.replace('"small"', '"other"'))
    with pytest.raises(InputError, match="the name is 'other' and the folder 'small': make them the same"):
        load_gold(folder)
    (folder / "card.toml").write_text(CARD.replace('name = "small"\n', ""), encoding="utf-8")
    assert load_gold(folder).name == "small"


def test_simulated_crlf_checkout_is_the_same_set(tmp_path: Path) -> None:
    folder = make(tmp_path, documents=[{"document_id": "d", "text": "one\r\ntwo"}])
    before = load_gold(folder)
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    after = load_gold(folder)
    assert (after.sha256, after.items, after.ratings) == (before.sha256, before.items, before.ratings)
    assert after.documents == before.documents


NAMES_OF_ITEMS: dict[str, Any] = {
    "item_id": "a\ud800", "group": "\udfff", "system": "s\ud800", "tags": ["t", "\ud800"], "fields": {"\ud800": "x"},
    "reference_documents": ["d\ud800"],
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES_OF_ITEMS)
def test_half_a_character_in_a_name_is_named_with_its_line(tmp_path: Path, name: str) -> None:
    items = [ITEMS[0], {**ITEMS[1], name: NAMES_OF_ITEMS[name]}]
    found = [problem for problem in problems_of(make(tmp_path, items=items)) if "surrogate" in problem]
    assert (
        len(found) == 1
        and f"items.jsonl:2: {name}" in found[0]
        and "holds an unpaired surrogate (U+D" in found[0]
    )
