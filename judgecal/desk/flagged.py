"""Items flagged `label looks wrong` on a report's page: its CSV, or a list of their ids."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from judgecal.errors import InputError, listed
from judgecal.goldset import GoldSet
from judgecal.tables import read_table, undo
from judgecal.tables.text import read_text
from judgecal.workspace import shown

_FLAG = "label looks wrong"


def read_flagged(path: Path, gold: GoldSet) -> frozenset[str]:
    """The ids of the items that the file flags: rows of a CSV, or the link of a page in a text file."""
    known = {item.item_id for item in gold.items}
    ids = _of_link(path) if path.suffix.lower() in ("", ".txt", ".url") else _of_table(path)
    if not ids:
        raise InputError(
            f"{shown(path)}: flags no item: press f on an item of the report's page, and save its CSV"
        )
    strange = [item_id for item_id in ids if item_id not in known]
    if strange:
        raise InputError(f"{shown(path)}: {listed(strange)}: no such item in gold set {gold.name!r}")
    return frozenset(ids)


def flagged_at(path: Path) -> str:
    """When the file was written: labels given later have looked at the item anew."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="milliseconds")


def _of_table(path: Path) -> list[str]:
    table = read_table(str(path))
    table.require("item_id", "flag")
    return [undo(row.cells["item_id"]) for row in table.rows if _FLAG in row.cells["flag"].casefold()]


def _of_link(path: Path) -> list[str]:
    links = read_text(path).split()
    return [item_id for link in links for item_id in parse_qs(urlsplit(link).fragment).get("flag", ())]
