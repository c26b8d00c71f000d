"""Exports of other tools in tests: written, read, and spoilt one value at a time."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, formats, read_export

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "exports"


def written(path: Path, value: Any) -> Path:
    """A JSON file of a value, or a file of a text."""
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def accounted(export: Export) -> int:
    """What came out of an export: items, ratings, judgements and skips."""
    return len(export.items) + len(export.ratings) + len(export.judgements) + export.skipped.total()


def spoilt(value: Any) -> Iterator[Any]:
    """The value with each part of it in turn replaced by null, a number, a text, a list and an object."""
    for path in _paths(value):
        for other in (None, 7.5, "x", [1], {"a": [None]}):
            changed = copy.deepcopy(value)
            place = changed
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = other
            yield changed


def _paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*above, key)
        yield from _paths(inner, (*above, key))


def read_or_refused(path: Path | Sequence[Path], tool: str) -> Export | None:
    """The export, with everything accounted for; None where it was refused in words. Anything else is raised.

    Every tool is asked first whether the files are its own, which must never raise.
    """
    files = [path] if isinstance(path, Path) else path
    for one in formats().values():
        assert one.holds(files) in (True, False)
    try:
        export = read_export(files, tool)
    except InputError as error:
        assert error.problems and all(problem.strip() for problem in error.problems)
        return None
    assert accounted(export) == export.n_records
    return export
