"""Which format a table is in. Every module of this package may offer formats in `FORMATS`, and is found by
being here: a new format is one new file.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import pkgutil
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from judgecal.commands import wing
from judgecal.errors import InputError, error_text, refuse
from judgecal.tables.table import NoRowsError, Table
from judgecal.tables.text import unreadable
from judgecal.workspace import replacing, shown

if TYPE_CHECKING:
    import polars as pl

SEPARATED = (".csv", ".tsv", ".tab", ".txt")
"""The endings of files of separated cells."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of tables, by the endings of files' names (lower case, with the dot).

    `open` reads a path; `write` writes a frame there, behind the columns of a table whose first rows it is
    of. None where it cannot be done.
    """

    endings: tuple[str, ...]
    open: Callable[..., Table] | None = None
    write: Callable[[Path, pl.DataFrame, Table | None], None] | None = None


@functools.cache
def _formats() -> tuple[Format, ...]:
    package = importlib.import_module(__name__.rpartition(".")[0])
    modules = [
        importlib.import_module(f"{package.__name__}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
    ]
    return tuple(form for module in modules for form in getattr(module, "FORMATS", ()))


def _format_of(path: Path, *, writing: bool = False) -> Format:
    able = [form for form in _formats() if (form.write if writing else form.open) is not None]
    ending = path.suffix.lower()
    for form in able:
        if ending in form.endings:
            return form
    endings = [*(ending for form in able for ending in form.endings), *["hf:org/name"] * (not writing)]
    raise InputError(f"{shown(path)}: unknown ending {ending!r}: it must be one of {', '.join(endings)}")


def open_table(path: str | Path, encoding: str | None = None) -> Table:
    """Return the Table, with all its rows, at a path of a file or an address, `hf:org/name[:split]`.

    The columns of JSON are all the keys that occur, the fields of nested objects by their dotted names; a key
    that a row lacks is an empty cell there, null and NaN too. `encoding` is of separated cells; by default
    the file tells it. InputError lists the first problems with their lines; NoRowsError: there are no rows.
    """
    if encoding is not None and Path(path).suffix.lower() not in SEPARATED:
        raise InputError(f"--encoding is of {', '.join(SEPARATED)}, and {path} is no such file")
    if str(path).startswith("hf:"):
        table: Table = wing("data set of the Hub")(str(path))
        return table
    path = Path(path)
    opener = _format_of(path).open
    assert opener is not None
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe or a device would never end
            raise InputError(f"{shown(path)}: is not a file")
    except OSError as error:
        raise unreadable(path, error) from None
    table = opener(path) if encoding is None else opener(path, encoding)
    if not table.n_rows:
        raise NoRowsError(f"{table.top}: the file holds no rows")
    return table


def read_table(path: str | Path, encoding: str | None = None) -> Table:
    """Read a table as `open_table`, without the rows that have no content."""
    return open_table(path, encoding).filled()


def check_output(path: Path, source: Path | None = None, *, replace: bool = True) -> None:
    """Refuse (InputError) an output path that cannot be written: its ending, its folder, the source itself,
    or, where it may not be replaced, a file that is there.
    """
    problems: list[str] = []
    try:
        _format_of(path, writing=True)
    except InputError as error:
        problems.extend(error.problems)
    if path.is_dir():
        problems.append(f"{shown(path)}: is a folder: name a file in it")
    elif not path.parent.is_dir():
        problems.append(f"{shown(path.parent)}: there is no such folder: make it first")
    elif source is not None and path.exists() and source.exists() and path.samefile(source):
        problems.append(f"{shown(path)}: is the input itself: write to another file")
    elif path.is_file() and not replace:
        problems.append(
            f"{shown(path)}: is there already: add --replace to overwrite it, or name another file"
        )
    refuse(problems)


def write_table(
    path: Path, frame: pl.DataFrame, source: Table | None = None, *, before: Callable[[], None] | None = None
) -> None:
    """Write a polars frame to a path, behind the columns of a source Table whose first rows it is of.

    The file appears whole under its name. `before` is called when every row is written, before that.
    """
    writer = _format_of(path, writing=True).write
    assert writer is not None
    with replacing(path) as draft:
        writer(draft, frame, source)
        if before is not None:
            before()


def written_rows(frame: pl.DataFrame, source: Table | None) -> Iterator[dict[str, Any]]:
    """Yield dicts of JSON values, a row each, from a polars frame and its source Table, or None."""
    if source is None:
        yield from frame.iter_rows(named=True)
        return
    for row, added in zip(source.each(frame.height), frame.iter_rows(named=True), strict=True):
        yield {name: row.raw[name] for name in source.columns if name in row.raw} | added


def free_names(names: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Return a list of new column names, from names and those taken: a free number stands behind such."""
    used, free = {*taken}, list[str]()
    for name in names:
        numbered = (f"{name}_{number}" for number in itertools.count(2))
        free.append(next(each for each in itertools.chain([name], numbered) if each not in used))
        used.add(free[-1])
    return free


@contextlib.contextmanager
def reaching(address: str) -> Iterator[tuple[Any, str]]:
    """Yield (file system, path there) of an address; InputError where something there cannot be done."""
    from fsspec.core import url_to_fs

    try:
        system, path = url_to_fs(address)
        system.invalidate_cache()
        yield system, path
    except Exception as error:  # each file system has exceptions of its own
        raise InputError(f"{address}: cannot be reached ({error_text(error)})") from error


def addresses_of(text: str) -> list[str]:
    """Return a list of addresses of files, from a text: a path or URL with or without `*`."""
    if urlsplit(text).password:
        raise InputError("an address with a password would stand in the experiment: leave the password out")
    with reaching(text) as (system, path):
        paths = [path] if system.exists(path) or "*" not in path else sorted(system.glob(path))
        local = "file" in (system.protocol if isinstance(system.protocol, tuple) else [system.protocol])
        return [str(each) if local else str(system.unstrip_protocol(each)) for each in paths]
