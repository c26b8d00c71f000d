"""Pages of reports: texts that attack them, and a parser that sees what they hold."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judgecal.experiment.agreement import StoredExperiment
from judgecal.experiment.score import read_result
from judgecal.experiment.stored import read_experiment
from judgecal.scale import Label
from judgecal.selection.decision import Evidence, decide_on_judges
from judgecal.workspace import find_workspace
from tests.support.command import Run
from tests.support.gold import made_gold, made_items, rated

ATTACK = "</script><img src=x onerror=alert(1)>"
RIGHT_TO_LEFT = "שלום עולם"
OVERRIDE = "\u202eevil"
ESCAPE = "\x1b[31mred\x1b[0m"
LONG = "palaver " * 12_500  # 100 kB
OPEN = "seed = 0\ntrain = 0.0\ndev = 1.0\ntest = 0.0"
BINARY = 'kind = "binary"'
PERCENTAGE = 'kind = "percentage"'
KINDS = ("full", "half", "none")


class Parsed(HTMLParser):
    """Elements with their attributes, the text between them, and what scripts hold."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        (self.scripts if self._inside == "script" else self.text).append(data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


_SAID = ("verdict", "given", "error", "why", "raw")


def items_of(page: str) -> dict[str, Any]:
    """What the explorer of a page carries: its judges and items."""
    (packed,) = re.findall(
        r'<script type="application/octet-stream" id="items">([A-Za-z0-9+/=]*)</script>', page
    )
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
    for item in found["items"]:
        item["said"] = [one and dict.fromkeys(_SAID, "") | one for one in item.get("said", ())]
        item.setdefault("marks", [])
    return found


def recorded(
    judgecal: Run, folder: Path, verdicts: Mapping[str, Sequence[object]], rows: Sequence[Mapping[str, Any]]
) -> str:
    """Have `agreement` take these judges in, with a reasoning that attacks; the slug."""
    path = folder / "recorded.jsonl"
    lines = [
        {"item_id": row["item_id"], "judge": judge, "verdict": verdict, "reasoning": f"{ATTACK} {ESCAPE}"}
        for judge, own in verdicts.items()
        for row, verdict in zip(rows, own, strict=True)
        if verdict is not None
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    ran = judgecal("agreement", "--gold", "made", "--judgements", path, "--name", "rec")
    assert ran.code == 0, ran.err
    return "rec"


def made_set(
    workspace: Path,
    n_groups: int = 20,
    *,
    labels: Sequence[Label] = (1, 0, 0),
    scale: str = BINARY,
    splits: str = OPEN,
    more: Mapping[int, Mapping[str, Any]] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """The set `made`: labels of full, half and empty answers by one rater; `more`: row -> what it has otherwise."""
    rows = made_items(n_groups)
    for place, texts in more.items():
        rows[place] |= texts
    ratings = rated(rows, dict(zip(KINDS, labels, strict=True)))
    made_gold(workspace / "gold" / "made", rows, ratings, scale=scale, splits=splits)
    return rows


def by_kind(rows: Iterable[Mapping[str, Any]], *verdicts: Any) -> list[Any]:
    """Verdicts of a judge that says the first of full answers, the second of half ones, the third of others."""
    return [verdicts[KINDS.index(row["kind"])] for row in rows]


def decided(slug: str, *, margin: float = 0.03) -> tuple[StoredExperiment, Evidence]:
    """An experiment as it is stored, and what is decided by it."""
    workspace = find_workspace(None)
    kept = read_experiment(workspace, slug)
    return kept, decide_on_judges(workspace, kept, margin=margin, result=read_result(kept, workspace))


def page_of(judgecal: Run, slug: str) -> str:
    ran = judgecal("report", slug, "--format", "html")
    assert (ran.code, ran.err) == (0, "")
    path = Path(ran.out.strip())
    assert path.name == "report.html" and path.parent.name == slug
    return path.read_text(encoding="utf-8")


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
    """Sections in order after the decision, each with a caption; numbers; nothing to run or
    load."""
    page = page_of(judgecal, printed["experiment"])
    parsed = Parsed(page)
    assert [one["id"] for one in parsed.all("section") if one["id"] != "explore"] == list(sections)
    assert page.index('id="decision"') < page.index("What nobody knows yet") < page.index("<section id=")
    captions = re.findall(r'<p class="caption">(.*?)</p>', page)
    assert len(captions) == len(sections) and not any(one.startswith("Serves") for one in captions)
    shown = unescape(page)
    for number in numbers:
        assert number in shown, number
    assert not parsed.all("img") and ESCAPE not in page and OVERRIDE not in page
    assert len(parsed.scripts) == ('id="explore"' in page) + ("application/octet-stream" in page)
    assert not [url for _, attrs in parsed.elements for url in (attrs.get("src"),) if url]
    carried = json.loads(judgecal("report", printed["experiment"], "--json").out)
    if "headline" in carried:
        assert carried["headline"]["sentence"] and carried["headline"]["unknown"]
    else:
        assert carried["decision"] and carried["not_known"]
    assert carried["result"] == {key: one for key, one in printed.items() if key != "headline"}
    short = judgecal("report", printed["experiment"], "--format", "md").out
    assert "Not known:" in short and printed["run_line"] in short
    assert ATTACK not in re.sub(
        r"^(`{3,})diff\n.*?^\1$", "", short, flags=re.M | re.S
    )  # in a fence it is inert
    return page
