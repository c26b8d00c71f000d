"""A tool that nobody has, whose exports tests write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judgecal.exchange.exports import Export, ExportFormat, Score
from judgecal.exchange.texts import contexts_of, item_of, word


def read_made_up(files: Sequence[Path], export: Export) -> None:
    """The made-up tool: {"items": [...], "scores": [{item, name, by, human, value, ...}], "spans": n}."""
    for file in files:
        whole = json.loads(file.read_text(encoding="utf-8"))
        for row in whole.get("items", []):
            export.count()
            further = {"group": row.get("group"), "contexts": contexts_of(row.get("contexts"))}
            export.add_item(item_of(word(row["id"]), row.get("question"), row.get("answer"), **further))
        for place, row in enumerate(whole.get("scores", []), start=1):
            export.count()
            by = word(row["by"])
            score = Score(
                word(row["item"]), row.get("name", "correct"), by, row.get("value"), row.get("note", ""),
                where=f"{file.name}:{place}", error=row.get("error"),
            )  # fmt: skip
            (export.add_rating if row.get("human") else export.add_judgement)(score)
        export.count(whole.get("spans", 0))
        export.skip("a span without a score", whole.get("spans", 0))


def is_made_up(begun: Sequence[Any]) -> bool:
    return all(isinstance(part, dict) and part.get("tool") == "made-up" for part in begun)


MADE_UP = ExportFormat("made-up", is_made_up, read_made_up, "what it writes, and its scores")


def items(n: int = 40) -> list[dict[str, Any]]:
    """Questions with an answer each."""
    return [{"id": f"i{k}", "question": f"What is {k}?", "answer": f"It is {k}."} for k in range(n)]


def scores(by: str, values: Sequence[Any], *, human: bool = False, **more: Any) -> list[dict[str, Any]]:
    """One score an item, in their order."""
    return [
        {"item": f"i{k}", "by": by, "value": value, "human": human, **more} for k, value in enumerate(values)
    ]
