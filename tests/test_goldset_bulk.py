"""Large tables as gold sets: little of each row is held, a failure leaves nothing, and what is said is
bounded."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from judgecal.errors import InputError
from judgecal.goldset import Columns, Imported, SideTables, import_gold, load_gold, split_counts
from judgecal.goldset.gold_set import content_sha
from judgecal.tables import open_source
from judgecal.workspace import Workspace
from tests.support.command import Run

LONG = 20_000  # characters of an answer


def run(place: Workspace, file: str, scale: str = "binary", **options: Any) -> Imported:
    named = {name: options.pop(name) for name in ("beside", "replace", "progress") if name in options}
    columns = Columns("q", "a", **options)
    return import_gold(place.root / file, name="new", columns=columns, scale=scale, workspace=place, **named)


def rows(n: int, *, raters: int = 1) -> Iterator[dict[str, Any]]:
    """Rows with long answers, none like another; with several raters each item has so many rows."""
    for place in range(n // raters):
        answer = f"{place} ".ljust(LONG, "abcdefgh"[place % 8])
        for rater in range(raters):
            yield {
                "id": f"row {place}",
                "q": f"Q{place}",
                "a": answer,
                "who": f"r{rater}",
                "x": (place + rater) % 2,
            }


def write(path: Path, n: int, *, raters: int = 1) -> None:
    if path.suffix == ".parquet":
        pl.DataFrame(list(rows(n))).write_parquet(path)
    elif path.suffix == ".csv":
        cells = "\n".join(",".join(map(str, row.values())) for row in rows(n, raters=raters))
        path.write_text(f"id,q,a,who,x\n{cells}\n")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows(n, raters=raters)))


MEASURE = """
import json, sys
from pathlib import Path
from judgecal.goldset import Columns, import_gold
from judgecal.workspace import Workspace

def held():
    return next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))

options, files = json.loads(sys.argv[1]), sys.argv[2:]
place = Workspace(Path("."), Path("experiments"))
for file in files:
    columns = Columns("q", "a", labels=("x",), **options)
    import_gold(file, name="new", columns=columns, scale="binary", workspace=place, replace=True)
    print(held())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the most memory held is told in /proc")
@pytest.mark.parametrize(("ending", "options"), [("csv", {"item": "id"}), ("jsonl", {"rater": "who"})])
def test_no_text_is_held(place: Workspace, ending: str, options: dict[str, str]) -> None:
    """1,500 rows more of 20 kB each, 30 MB, take less than 10 MB more."""
    raters = 2 if "rater" in options else 1
    for name, n in (("small", 400), ("large", 1_900)):
        write(place.root / f"{name}.{ending}", n, raters=raters)
    command = [sys.executable, "-c", MEASURE, json.dumps(options), f"small.{ending}", f"large.{ending}"]
    done = subprocess.run(command, cwd=place.root, capture_output=True, text=True, check=True)
    small, large = (int(line) * 1024 for line in done.stdout.split())
    assert large - small < 10_000_000, f"{(large - small) / 1_500:,.0f} bytes a row"


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_long_rows_come_in_small_pieces(tmp_path: Path, ending: str) -> None:
    write(tmp_path / f"t.{ending}", 900)
    sizes = [len(piece.rows) for piece in open_source(tmp_path / f"t.{ending}").pieces()]
    assert sum(sizes) == 900 and max(sizes) <= 300


COUNTED: dict[str, tuple[str, dict[str, Any], str]] = {
    "wide": (
        "q,a,s,ann,ben,fin\nQ1,A,one,yes,no,\nQ1,B,two,yes,yes,no\nQ2,A,one,,,\nQ3,A,one,no,yes,\n,,,,,\n",
        {"labels": ("ann", "ben"), "gold_label": "fin", "system": "s"},
        "binary",
    ),
    "long": (
        "q,a,who,x,fin\nQ1,A,ann,x,z\nQ2,A,ben,y,\nQ1,A,ben,y,z\nQ2,A,ann,x,\nQ2,A,cleo,x,\nQ3,A,ann,x,\nQ3,A,ben,y,\n",
        {"labels": ("x",), "rater": "who", "gold_label": "fin"},
        "nominal",
    ),
    "graded": ("i,q,a,x\n7,Q1,A,80%\n8,Q2,A,\n9,Q2,B,35\n", {"labels": ("x",), "item": "i"}, "percentage"),
}


@pytest.mark.parametrize("case", COUNTED)
def test_what_is_counted_while_reading_is_what_the_set_holds(place: Workspace, case: str) -> None:
    text, options, scale = COUNTED[case]
    (place.root / "t.csv").write_text(text)
    done = run(place, "t.csv", scale, **options)
    gold = load_gold("new", workspace=place)
    assert (done.n_items, done.n_groups) == (len(gold.items), gold.n_groups(gold.items))
    assert (done.n_ratings, done.sha256, done.scale) == (len(gold.ratings), gold.sha256, str(gold.scale))
    assert done.raters == Counter(rating.rater for rating in gold.ratings) and done.people == gold.raters
    assert done.splits == split_counts(gold)
    missing = len(gold.items) - len(gold.labels)
    assert missing, "a tie, or nobody rated it"
    assert f"{missing} of {len(gold.items)} items have no gold label (no rating, or a tie)" in " ".join(
        done.notes
    )


def test_the_sha_takes_no_notice_of_line_ends(place: Workspace) -> None:
    (place.root / "t.csv").write_text("q,a,x\nQ1,A,yes\nQ2,B,no\n")
    folder = run(place, "t.csv", labels=("x",)).path
    before = content_sha(folder)
    items = folder / "items.jsonl"
    items.write_bytes(items.read_bytes().replace(b"\n", b"\r\n"))
    assert content_sha(folder) == before
    items.write_bytes(items.read_bytes() + b"\r")
    assert content_sha(folder) != before


class Stopped(Exception):
    """What ends an import in the middle."""


@pytest.mark.parametrize("failure", [KeyboardInterrupt, Stopped, InputError])
def test_an_import_that_ends_in_the_middle_leaves_nothing(
    place: Workspace, failure: type[BaseException]
) -> None:
    (place.root / "old.csv").write_text("q,a,x\nQ1,A,yes\nQ2,B,no\n")
    (place.root / "t.csv").write_text("q,a,x\n" + "".join(f"Q{n},A,yes\n" for n in range(4_000)))
    run(place, "old.csv", labels=("x",))
    old = load_gold("new", workspace=place)
    seen: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        seen.append((done, total))
        drafts = [path for path in place.gold.iterdir() if path.name != "new"]
        assert len(drafts) == 1 and (drafts[0] / "items.jsonl").exists(), (
            "it is written beside the set's place"
        )
        if done == 3_000:
            raise failure("stop")

    with pytest.raises(failure):
        run(place, "t.csv", labels=("x",), replace=True, progress=stop)
    assert seen == [(1_000, 4_000), (2_000, 4_000), (3_000, 4_000)]
    assert load_gold("new", workspace=place) == old
    assert [path.name for path in place.gold.iterdir()] == ["new"], "nothing is left beside the set"


def test_a_long_import_says_how_far_it_is(
    judgecal: Run, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgecal.engine.run._PLAIN_LINE_S", 0.0)
    monkeypatch.setattr("judgecal.goldset.import_tables._LARGE", 10_000)
    lines = "".join(f"Q{n},A,{'yes' if n % 3 else 'no'}\n" for n in range(2_500))
    (workspace_dir / "t.csv").write_text(f"q,a,x\n{lines}")
    options = ("--question", "q", "--answer", "a", "--label", "x", "--scale", "binary")
    ran = judgecal("gold", "import", "t.csv", "--as", "long", *options)
    assert ran.code == 0 and "long has 2,500 items on 2,500 questions" in ran.said
    assert "judgecal: t.csv is 0.0 GB: it is read to the end before its rows are taken" in ran.err
    assert "gold import: rows: 1000/2500" in ran.err and "gold import: rows: 2000/2500" in ran.err


def test_of_very_many_problems_the_first_are_told_and_all_counted(place: Workspace) -> None:
    lines = "".join(f"Q{n},A{n},{'maybe' if n % 2 else ''}\n" for n in range(24_000))
    (place.root / "t.csv").write_text(f"q,a,x\n{lines}\n")
    with pytest.raises(InputError) as error:
        run(place, "t.csv", labels=("x",))
    assert len(error.value.problems) == 2
    assert (
        "'maybe' is none of yes/no" in error.value.problems[0] and "and 9,997 more" in error.value.problems[0]
    )
    assert "2,000 more problems" in error.value.problems[1]


def test_a_second_label_in_a_file_of_ratings_is_no_silent_loss(place: Workspace) -> None:
    (place.root / "t.csv").write_text("i,q,a\n1,Q1,A\n2,Q2,A\n")
    (place.root / "r.csv").write_text("i,x\n1,yes\n2,no\n1,no\n")
    with pytest.raises(
        InputError, match=r"r\.csv:4: a second label of 'x' for item '1', the first is in line 2"
    ):
        run(place, "t.csv", item="i", labels=("x",), beside=SideTables(place.root / "r.csv"))


def test_names_that_no_file_can_hold_are_told_by_their_line(place: Workspace) -> None:
    named = [{"q": "Q", "a": "A", "i": "fine", "x": 1}, {"q": "Q", "a": "A", "i": "half \ud83d", "x": 1}]
    (place.root / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in named))
    with pytest.raises(InputError, match=r"t\.jsonl:2: item_id holds an unpaired surrogate \(U\+D83D\)"):
        run(place, "t.jsonl", item="i", labels=("x",))
    named = [{"q": "Q", "a": "A", "who": "half \ud83d", "x": 1}]
    (place.root / "t.jsonl").write_text(json.dumps(named[0]))
    with pytest.raises(InputError, match=r"t\.jsonl:1: rater holds an unpaired surrogate"):
        run(place, "t.jsonl", rater="who", labels=("x",))
