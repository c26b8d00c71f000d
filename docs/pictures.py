"""The handbook's pictures, of real runs: `make docs-pictures`, or `python -m docs.pictures [DATA]`.

It needs Chromium, and DATA, the folder with the public data. The pictures are committed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from judgecal.cli import run
from tests.support.browser import Browser, Tab, browser
from tests.support.command import ROOT, SHARED_DATA
from tests.support.desk import served

PICTURES = ROOT / "docs" / "img"
_LARGEST = 150_000  # bytes of a picture
_CALLOUT = (
    "position:absolute;z-index:9;width:30px;height:30px;border-radius:50%;background:#8a1c7c;color:#fff;"
    "font:700 17px/30px system-ui,sans-serif;text-align:center;box-shadow:0 0 0 3px #fff;left:{left}px;top:{top}px"
)
_BOX = "(e => {if (!e) return null; const r = e.getBoundingClientRect(); return [r.left + scrollX, r.top + scrollY, r.width, r.height]})"


def main(argv: Sequence[str]) -> None:
    """Run what the pages show, and take the pictures."""
    data = Path(argv[0] if argv else SHARED_DATA).resolve()
    os.environ["COLUMNS"] = "80"
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        os.chdir(folder)
        os.environ["JUDGECAL_CACHE_DIR"] = str(Path(folder) / "cache")
        _judgecal("init demo")
        os.chdir("demo")
        _page_and_ladder(chromium, data / "nq301")
        _labelling(chromium)
        _card(chromium)
        os.chdir(ROOT)
    for path in sorted(PICTURES.glob("*.png")):
        size = path.stat().st_size
        print(f"{path.relative_to(ROOT)}: {size:,} bytes")
        assert size <= _LARGEST, "too large: show less of it"


def _judgecal(line: str, *more: str) -> None:
    code = run([*line.split(), *more])
    assert code == 0, f"judgecal {line}: exit {code}"


def _page_and_ladder(chromium: Browser, data: Path) -> None:
    """The run of README and `page.md`: its first screen with a number at each part, and its ladder."""
    raters = " ".join(f"--label annotator{n}" for n in (1, 2, 3))
    _judgecal(
        f"gold import {data / 'items.csv'} --as nq301 {raters} --col gold=acceptable --scale binary",
        "--reference-separator",
        " | ",
    )
    _judgecal(f"agreement --gold nq301 --judgements {data / 'judgements.csv'} --verdict verdict --name nq")
    tab = _opened(chromium, "nq", 1280, 960)
    _cut(tab, "ladder", [".card:has(.free)"])
    parts = [".chip", ".card:has(.free)", ".card:has(.hundred)", "#slices", ".card.next"]
    tab.run("document.body.style.paddingLeft = '44px', 0")
    for number, selector in enumerate(parts, start=1):
        left, top, _, _ = _box(tab, selector)
        style = _CALLOUT.format(left=max(4.0, left - 26.0), top=max(4.0, top - 14.0))
        tab.run(f"document.body.insertAdjacentHTML('beforeend', '<b style=\"{style}\">{number}</b>'), 0")
    tab.picture(PICTURES / "page.png", clip={"x": 0, "y": 0, "width": 1280, "height": 960, "scale": 0.72})


def _card(chromium: Browser) -> None:
    """The card of the judge that `first_judge.md` locks, on the set of the labelling page."""
    judges = "--judge correctness_v3@embedded --judge token_f1@local"
    _judgecal(f"score --gold mine {judges} --name first")
    _judgecal("probe --gold mine --judge correctness_v3@embedded")
    _judgecal("select first")
    for _ in range(3):
        _judgecal("gate --lock judge.lock.json")
    _judgecal("report judge.lock.json --format html")
    tab = chromium.tab()
    tab.size(1280, 820)
    tab.call("Emulation.setScrollbarsHidden", hidden=True)
    tab.open(Path("judge.lock.card.html").resolve().as_uri())
    tab.picture(PICTURES / "card.png", clip={"x": 0, "y": 0, "width": 1280, "height": 820, "scale": 0.72})


def _labelling(chromium: Browser) -> None:
    """The labelling page, at the first answer."""
    examples = ROOT / "examples"
    _judgecal(
        f"gold import {examples / 'answers.csv'} --as mine "
        "--label rater_a --label rater_b --scale binary --labels-by project"
    )
    with served(Path.cwd(), "label", "mine", "--raters", "anna") as desk:
        tab = chromium.tab()
        tab.size(1000, 470)
        tab.call("Emulation.setScrollbarsHidden", hidden=True)
        tab.open(desk.links["anna"])
        tab.until("document.querySelector('main').innerText.length > 200")
        tab.picture(PICTURES / "labelling.png")


def _opened(chromium: Browser, experiment: str, width: int, height: int) -> Tab:
    _judgecal(f"report {experiment} --format html")
    tab = chromium.tab()
    tab.size(width, height)
    tab.call("Emulation.setScrollbarsHidden", hidden=True)
    return tab.open((Path("experiments") / experiment / "report.html").resolve().as_uri())


def _box(tab: Tab, selector: str) -> list[float]:
    box = tab.run(f"{_BOX}(document.querySelector({json.dumps(selector)}))")
    assert box is not None, selector
    found: list[float] = box
    return found


def _cut(tab: Tab, name: str, selectors: Sequence[str]) -> None:
    """The part of a page that these elements cover, with a little air."""
    boxes = [_box(tab, selector) for selector in selectors]
    left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
    right, bottom = max(box[0] + box[2] for box in boxes), max(box[1] + box[3] for box in boxes)
    clip = {"x": left - 8, "y": top - 8, "width": right - left + 16, "height": bottom - top + 16, "scale": 1}
    tab.picture(PICTURES / f"{name}.png", whole=True, clip=clip)


if __name__ == "__main__":
    main(sys.argv[1:])
