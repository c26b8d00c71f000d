"""Exports of other tools in tests: found, written, spoilt one value at a time, and read as golden files."""

from __future__ import annotations

import copy
import dataclasses
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, formats, read_export
from judgecal.exchange.files import outline
from judgecal.goldset.write import item_row
from judgecal.records import as_plain

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "exports"
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "exports"
TRAPS = GOLDEN / "traps"
_NO_EXPORT = {".md", ".sh", ".js", ".yaml"}


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.is_file() and path.suffix not in _NO_EXPORT]


def exports_of(tool: str) -> dict[str, list[Path]]:
    """Each file of a tool's folder is an export; the files of a folder within are handed over together."""
    parts = [path for path in sorted((FIXTURES / tool).iterdir()) if path.is_dir()]
    alone = {file.name: [file] for file in _files(FIXTURES / tool)}
    return alone | {part.name: files for part in parts if (files := _files(part))}


TOOLS = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())
TRAPPED = sorted(path.stem for path in TRAPS.iterdir())
EXPORTS = [(tool, name, files) for tool in TOOLS for name, files in exports_of(tool).items()]


def golden(tool: str) -> str:
    """What is read of a tool's exports: JSON with a line for each item, score and skip."""
    parts = [
        f"{json.dumps(name)}: {_lines(read_export(files, tool))}" for name, files in exports_of(tool).items()
    ]
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    for folder in (FIXTURES / tool, (FIXTURES / tool).relative_to(FIXTURES.parents[2])):
        text = text.replace(f"{folder}/", "")
    return text


def _lines(export: Export) -> str:
    """An export, each record without what is as it is by default."""

    def told(record: Any) -> dict[str, Any]:
        values = {field: getattr(record, field.name) for field in dataclasses.fields(record)}
        plain = {field.name: as_plain(value) for field, value in values.items() if value != field.default}
        return {name: value for name, value in plain.items() if value not in ([], {}, None)}

    lists = {
        "items": list(map(told, export.items.values())),
        "ratings": list(map(told, export.ratings)),
        "judgements": list(map(told, export.judgements)),
        "skipped": [{reason: n} for reason, n in sorted(export.skipped.items())],
        "notes": export.notes,
    }
    rows = [f'"n_records": {export.n_records}']
    for name, values in lists.items():
        if values:
            inner = ",\n  ".join(json.dumps(value, ensure_ascii=False) for value in values)
            rows.append(f'"{name}": [\n  {inner}]')
    return "{\n " + ",\n ".join(rows) + "}"


def tools_of(files: Sequence[Path]) -> list[str]:
    """The tools whose exports files may be."""
    begun = [outline(file) for file in files]
    return [name for name, form in formats().items() if form.holds(begun)]


def cases_of(tool: str) -> list[dict[str, Any]]:
    """What is easily taken for something else in a tool's files: a name, the files, and what is read of them."""
    cases: list[dict[str, Any]] = json.loads((TRAPS / f"{tool}.json").read_text(encoding="utf-8"))
    return cases


def traps(tool: str, folder: Path) -> str:
    """The cases of a tool, each with whose its files are and what is read of them, or why nothing is."""
    texts = []
    for case in cases_of(tool):
        files = write_case(case, folder)
        lines = {
            name: json.dumps(case[name], ensure_ascii=False)
            for name in ("case", "why", "files")
            if name in case
        }
        lines["tools"] = json.dumps(tools_of(files))
        try:
            lines["read"] = _lines(read_export(files, tool))
        except InputError as error:
            lines["refused"] = json.dumps(error.problems, ensure_ascii=False)
        inner = ",\n".join(f"{json.dumps(name)}: {text}" for name, text in lines.items())
        texts.append("{" + inner.replace(f"{folder}/", "") + "}")
    return "[\n" + ",\n\n".join(texts) + "\n]\n"


def write_case(case: dict[str, Any], folder: Path) -> list[Path]:
    """The files of a case, in a folder."""
    return [written(folder / name, value) for name, value in case["files"].items()]


def write_golden() -> None:
    """Write `tests/golden/exports` anew."""
    for tool in TOOLS:
        (GOLDEN / f"{tool}.json").write_text(golden(tool), encoding="utf-8")
    for tool in TRAPPED:
        with tempfile.TemporaryDirectory() as folder:
            text = traps(tool, Path(folder))
        (TRAPS / f"{tool}.json").write_text(text, encoding="utf-8")


def written(path: Path, value: Any) -> Path:
    """A JSON file of a value, or a file of a text."""
    text = value if isinstance(value, str) else json.dumps(value)
    path.write_text(text, encoding="utf-8", errors="replace")
    return path


def accounted(export: Export) -> int:
    """What came out of an export: items, ratings, judgements and skips."""
    return len(export.items) + len(export.ratings) + len(export.judgements) + export.skipped.total()


def spoilt(value: Any) -> Iterator[Any]:
    """The value with each part of it in turn replaced by null, a number, half of a character, a list and an object."""
    for path in _paths(value):
        for other in (None, 7.5, "x\ud800", [1], {"a": [None]}):
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


def read_spoilt(folder: Path, tool: str, files: dict[str, Any]) -> int:
    """Files of these values, read or refused in words whichever part is spoilt; how many of them were read.

    A value that is the rows of a `.jsonl` is written a row a line.
    """
    n_read = 0
    for values in spoilt(files):
        paths = []
        for name, value in values.items():
            lines = name.endswith(".jsonl") and isinstance(value, list)
            text = (
                "\n".join(map(json.dumps, value))
                if lines
                else value
                if isinstance(value, str)
                else json.dumps(value)
            )
            paths.append(written(folder / name, text))
        n_read += read_or_refused(paths, tool) is not None
    return n_read


def read_or_refused(path: Path | Sequence[Path], tool: str) -> Export | None:
    """The export, with everything accounted for; None where it was refused in words. Anything else is raised.

    Every tool is asked first whether the files are its own, which must never raise.
    """
    files = [path] if isinstance(path, Path) else path
    tools_of(files)
    try:
        export = read_export(files, tool)
    except InputError as error:
        assert error.problems and all(problem.strip() for problem in error.problems)
        return None
    assert accounted(export) == export.n_records
    scores = (*export.ratings, *export.judgements)
    json.dumps([item_row(item) for item in export.items.values()], ensure_ascii=False).encode()
    json.dumps([(score.item_id, score.by) for score in scores], ensure_ascii=False).encode()
    return export
