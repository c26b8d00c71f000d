"""The desk: labels on disk before the next item, once each, through every kind of end."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from judgecal.desk.desk import Refusal
from judgecal.errors import BusyError, InputError
from judgecal.goldset import load_gold
from tests.support.command import Run
from tests.support.desk import act, desk_of, journal, ratings, waiting
from tests.torture.damage import harm

PERCENT = 'kind = "percentage"\nmin = 0\nmax = 100\nstep = 5'


def label(desk: Any, rater: str, shown: dict[str, Any], said: str | None, **more: Any) -> dict[str, Any]:
    sent = {"item": shown["item"]["key"], "label": said, **more}
    return act(desk, rater, "label", **sent)


def test_labels_notes_and_cannot_tell_land_in_the_set(tmp_path: Path) -> None:
    folder = waiting(tmp_path / "set", 2)
    (folder / "RUBRIC.md").write_text("Be fair.\n", encoding="utf-8")
    card = (folder / "card.toml").read_text(encoding="utf-8")
    (folder / "card.toml").write_text(f'rubric = "RUBRIC.md"\n{card}', encoding="utf-8")
    with desk_of(folder, shuffled=False) as desk:
        shown = act(desk, "ann", "next")
        assert shown["done"] == 0 and shown["left"] == shown["all"] == 2
        shown = label(desk, "ann", shown, "yes", note=" short ")
        (row,) = ratings(folder)
        assert row == {"item_id": "i000-full", "rater": "ann", "label": 1, "note": "short"}
        (line,) = journal(folder)
        assert line.items() > row.items() and line["at"] > "2020" and desk.rubric == "Be fair.\n"
        shown = label(desk, "ann", shown, None, reason="cannot tell")
        assert shown["item"] is None and shown["left"] == 0
    gold = load_gold(folder)
    assert gold.labels == {"i000-full": 1.0} and gold.cannot_tell == {"ann": 1}


def test_what_is_sent_is_blind(tmp_path: Path) -> None:
    contexts = [{"text": "A passage.", "document_id": "doc-7"}]
    folder = waiting(tmp_path / "set", 3, texts={"system": "gpt-9", "tags": ["wrong"], "contexts": contexts})
    with desk_of(folder) as desk:
        sent = json.dumps(act(desk, "ann", "next"))
    assert "A passage." in sent
    assert not [word for word in ("i000", "gpt-9", "wrong", "doc-7", "g000") if word in sent]


@pytest.mark.parametrize(
    ("sent", "status", "why"),
    [
        ({"label": "7"}, 422, "not a label of the scale"),
        ({"label": "0.5"}, 422, "not a label of the scale"),
        ({"label": None}, 422, "No label"),
        ({"label": None, "reason": "no idea"}, 422, "No label"),
        ({"label": "yes", "reason": "cannot tell"}, 422, "does not go with a label"),
        ({"label": ["yes"]}, 422, "are texts"),
        ({"label": "yes", "note": "x" * 4_001}, 422, "4,000"),
        ({"item": "../../etc/passwd", "label": "yes"}, 404, "is not here"),
        ({"item": "i000-full", "label": "yes"}, 404, "is not here"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    tmp_path: Path, sent: dict[str, Any], status: int, why: str
) -> None:
    folder = waiting(tmp_path / "set", 6)
    with desk_of(folder) as desk:
        key = act(desk, "ann", "next")["item"]["key"]
        with pytest.raises(Refusal, match=why) as refused:
            act(desk, "ann", "label", **{"item": key, **sent})
        assert refused.value.status == status
    assert ratings(folder) == journal(folder) == []


def test_going_back_and_changing_a_label(tmp_path: Path) -> None:
    folder = waiting(tmp_path / "set", 12, scale=PERCENT)
    with desk_of(folder, shuffled=False) as desk:
        first = act(desk, "ann", "next")
        second = label(desk, "ann", first, "75", note="near")
        third = label(desk, "ann", second, "20")
        back = act(desk, "ann", "step", item=third["item"]["key"], by=-1)
        assert back["item"]["key"] == second["item"]["key"] and back["item"]["mine"]["said"] == "20"
        back = act(desk, "ann", "step", item=back["item"]["key"], by=-1)
        assert back["item"]["mine"] == {"said": "75", "note": "near", "reason": None}
        back_again = act(desk, "ann", "step", item=back["item"]["key"], by=-1)
        assert back_again["item"]["key"] == first["item"]["key"]
        again = label(desk, "ann", back, "80", before="75")  # a change of mind
        assert again["item"]["key"] == third["item"]["key"]
        given = [(row["item_id"], row["label"]) for row in ratings(folder)]
        assert given == [("i001-full", 20), ("i000-full", 80)]
    with desk_of(folder, shuffled=False) as desk:  # and after a break
        shown = act(desk, "ann", "next")
        back = act(desk, "ann", "step", item=shown["item"]["key"], by=-1)
        assert back["item"]["mine"]["said"] == "80" and shown["done"] == 2


def test_two_windows_of_one_rater_lose_and_double_nothing(tmp_path: Path) -> None:
    folder = waiting(tmp_path / "set", 6)
    with desk_of(folder, shuffled=False) as desk:
        one, two = act(desk, "ann", "next"), act(desk, "ann", "next")
        assert one == two
        label(desk, "ann", one, "yes")
        label(desk, "ann", two, "yes")  # the same again is no second label
        with pytest.raises(Refusal, match="another window or a sheet: 1") as refused:
            label(desk, "ann", two, "no")
        assert refused.value.status == 409
    assert len(ratings(folder)) == 1 and len([one for one in journal(folder) if "item_id" in one]) == 1


def test_a_sheet_of_the_same_rater_is_not_written_over(tmp_path: Path) -> None:
    """It came while the page showed its item."""
    folder = waiting(tmp_path / "set", 9)
    path = folder / "ratings.jsonl"
    row = '{"item_id": "i000-full", "rater": "ann", "label": 0, "note": "of the sheet"}\n'
    with desk_of(folder, shuffled=False) as desk:
        shown = act(desk, "ann", "next")
        path.write_text(row, encoding="utf-8")
        with pytest.raises(Refusal, match="a sheet: 0") as refused:
            label(desk, "ann", shown, "yes")
        assert refused.value.status == 409
        shown = act(desk, "ann", "next")
        assert shown["done"] == 1 and "mine" not in shown["item"]
        label(desk, "ann", shown, "yes")
    assert [(one["item_id"], one["label"]) for one in ratings(folder)] == [("i000-full", 0), ("i001-full", 1)]


def _labels_and_dies(folder: Path, n: int) -> None:
    """Label n items and be killed once the next one is shown."""
    desk = desk_of(folder)
    for _ in range(n):
        shown = act(desk, "ann", "next")
        label(desk, "ann", shown, "yes")
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_after_every_label_loses_and_doubles_none(tmp_path: Path) -> None:
    folder = waiting(tmp_path / "set", 40)
    for done in range(1, 31):
        child = multiprocessing.get_context("fork").Process(target=_labels_and_dies, args=(folder, 1))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
        rows = ratings(folder)
        assert len(rows) == done == len({row["item_id"] for row in rows})
        if done == 15:  # as if the power went between the two files, with half a line on its way
            text = (folder / "ratings.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
            (folder / "ratings.jsonl").write_text("".join(text[:-5]), encoding="utf-8")
            with (folder / "labels.jsonl").open("a", encoding="utf-8") as file:
                file.write('{"item_id": "i0')
            desk_of(folder).__exit__()
            assert len(ratings(folder)) == done
    with desk_of(folder) as desk:
        assert act(desk, "ann", "next")["done"] == 30
    assert len(load_gold(folder).labels) == 30


def test_a_label_goes_to_no_item_that_took_the_place_of_another(tmp_path: Path) -> None:
    """Somebody wrote other items while the page was open; and an act of before is none on another text."""
    folder = waiting(tmp_path / "set", 6)
    text = (folder / "items.jsonl").read_text(encoding="utf-8")
    with pytest.raises(InputError, match="items have changed"), desk_of(folder, shuffled=False) as desk:
        first = act(desk, "ann", "next")
        shown = label(desk, "ann", first, "yes")
        other = text.replace(first["item"]["question"], "Why?", 1)
        (folder / "items.jsonl").write_text(other, encoding="utf-8")
        with pytest.raises(Refusal, match=r"not saved: .*items have changed"):
            label(desk, "ann", shown, "no")
        assert len(ratings(folder)) == 1
    (folder / "ratings.jsonl").write_text("", encoding="utf-8")
    with desk_of(folder, shuffled=False) as desk:
        shown = act(desk, "ann", "next")
        assert shown["done"] == 0 and shown["item"]["question"] == "Why?"
        assert ratings(folder) == []


def test_a_set_that_people_label_is_not_replaced(judgecal: Run, workspace_dir: Path) -> None:
    folder = waiting(workspace_dir / "gold" / "small", 2)
    table = workspace_dir / "other.csv"
    table.write_text("question,answer,label\n" + "".join(f"q{n},a,1\n" for n in range(9)), encoding="utf-8")
    words = ("gold", "import", table, "--as", "small", "--scale", "binary", "--label", "label")
    words += ("--col", "question=question", "--col", "answer=answer", "--replace")
    with desk_of(folder):
        ran = judgecal(*words)
        assert ran.code == 2 and "people are labelling it" in ran.err
    assert len(load_gold(folder).items) == 2
    assert judgecal(*words).code == 0 and not (folder / ".labels.lock").exists()


def test_one_desk_a_set(tmp_path: Path) -> None:
    folder = waiting(tmp_path / "set", 6)
    with desk_of(folder), pytest.raises(BusyError, match="is serving this set"):
        desk_of(folder)


def test_a_full_disk_is_said_and_the_label_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = waiting(tmp_path / "set", 6)
    with desk_of(folder) as desk:
        shown = act(desk, "ann", "next")
        with monkeypatch.context() as patch:
            full = OSError(28, "No space left on device")
            patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(full))
            with pytest.raises(Refusal, match=r"not saved: .*No space") as refused:
                label(desk, "ann", shown, "yes")
            assert refused.value.status == 507 and journal(folder) == ratings(folder) == []
        assert act(desk, "ann", "next")["item"]["key"] == shown["item"]["key"]
        label(desk, "ann", shown, "yes")
    assert len(ratings(folder)) == 1


ACT = '{"item_id": "i000-full", "rater": "ann", "label": 1, "at": "2026-01-01", "item_sha": "x"}'
NO_ACTS = {
    "off the scale": ACT.replace('"label": 1', '"label": "zz"'), "a list": ACT.replace('"label": 1', '"label": [1]'),
    "too high": ACT.replace('"label": 1', '"label": 500'), "infinite": ACT.replace('"label": 1', '"label": 1e999'),
    "digits": ACT.replace('"label": 1', f'"label": {"9" * 400}'), "no label": ACT.replace('"label": 1, ', ""),
    "note": ACT.replace("}", ', "note": [1]}'), "reason": ACT.replace("}", ', "reason": 3}'),
    "seconds": ACT.replace("}", ', "seconds": 3}'), "at": ACT.replace('"2026-01-01"', "7"),
    "key": ACT.replace("}", ', "x": 1}'),
    "rater": ACT.replace('"ann"', "null"),
    "half": ACT.replace("ann", "\\ud83d"),
    "deep": "[" * 100_000, "array": "[1]", "empty": "", "text": "hello", "bytes": "\udcff",
    "NaN": ACT.replace('"label": 1', '"label": NaN'),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_ACTS)
@pytest.mark.parametrize("torn", ["", '{"item_id": "i0'])
def test_a_line_that_is_no_act_is_named_and_nothing_is_written(tmp_path: Path, name: str, torn: str) -> None:
    folder = waiting(tmp_path / "set", 6)
    path = folder / "labels.jsonl"
    data = "\n".join([*[ACT] * 4, NO_ACTS[name], torn]).encode(errors="surrogateescape")
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"labels\.jsonl:5: no act of a rater"):
        desk_of(folder)
    assert path.read_bytes() == data and ratings(folder) == []


@pytest.mark.parametrize("seed", range(40))
def test_a_harmed_journal_harms_no_set(tmp_path: Path, seed: int) -> None:
    """Either it is refused and nothing is written, or what is written can be read."""
    rng = random.Random(seed)
    folder = waiting(tmp_path / "set", 6)
    with desk_of(folder) as desk:
        for said in ("yes", "no", "yes", None):
            label(desk, "ann", act(desk, "ann", "next"), said, **({} if said else {"reason": "cannot tell"}))
    path = folder / "labels.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace('{"saved": true}\n', ""), encoding="utf-8")
    given = (folder / "ratings.jsonl").read_bytes()
    harm(path, rng)
    harmed = path.read_bytes() if path.is_file() else b""
    try:
        desk_of(folder).__exit__()
    except (InputError, OSError):
        assert (folder / "ratings.jsonl").read_bytes() == given
        assert not path.is_file() or path.read_bytes() == harmed
    load_gold(folder, labelling=True)


def test_a_write_of_somebody_else_takes_no_label_away(tmp_path: Path) -> None:
    """A sheet was read before the label was there, and written after it."""
    folder = waiting(tmp_path / "set", 6)
    path = folder / "ratings.jsonl"
    with desk_of(folder) as desk:
        shown = label(desk, "ann", act(desk, "ann", "next"), "yes")
        path.write_text('{"item_id": "i000-full", "rater": "sheet", "label": 0}\n', encoding="utf-8")
        label(desk, "ann", shown, "yes")
        assert {row["rater"] for row in ratings(folder)} == {"ann", "sheet"} and len(ratings(folder)) == 3
        path.write_text("", encoding="utf-8")
    assert [row["rater"] for row in ratings(folder)] == ["ann", "ann"]


def test_a_label_of_nought_comes_back_from_the_journal(tmp_path: Path) -> None:
    folder = waiting(tmp_path / "set", 6)
    with desk_of(folder) as desk:
        label(desk, "ann", act(desk, "ann", "next"), "no")
    given = ratings(folder)
    (folder / "ratings.jsonl").write_text("", encoding="utf-8")
    lines = (folder / "labels.jsonl").read_text(encoding="utf-8").splitlines()
    # as if the power went before it was saved
    (folder / "labels.jsonl").write_text(lines[0] + "\n", encoding="utf-8")
    desk_of(folder).__exit__()
    assert ratings(folder) == given and given[0]["label"] == 0
