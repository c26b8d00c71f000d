"""Pages of reports: texts that attack them, and a parser that sees what they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from tests.support.command import Run

ATTACK = "</script><img src=x onerror=alert(1)>"
RIGHT_TO_LEFT = "שלום עולם"
OVERRIDE = "\u202eevil"
ESCAPE = "\x1b[31mred\x1b[0m"
LONG = "palaver " * 12_500  # 100 kB
OPEN = "seed = 0\ntrain = 0.0\ndev = 1.0\ntest = 0.0"


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


def page_of(judgecal: Run, slug: str) -> str:
    ran = judgecal("report", slug, "--format", "html")
    assert (ran.code, ran.err) == (0, "")
    path = Path(ran.out.strip())
    assert path.name == "report.html" and path.parent.name == slug
    return path.read_text(encoding="utf-8")
