"""Tables in partitions: files in folders, on this machine or where an address leads (s3://, gs://, file://
...).

What has an address is read as `pyarrow.fs` reads it, with the credentials that it finds by itself; a
partition is copied to this machine to be read, and one that is written is copied there under another name and
then renamed, so that nobody ever meets half of it.
"""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from judgecal.errors import InputError, listed, refuse

ENDINGS = (".parquet", ".csv", ".tsv")
_ADDRESS = "://"

Stamp = tuple[int, int]
"""A file's size in bytes and when it was last written, in nanoseconds: another one is another file."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file or a folder. `text`: its path, or its address with a scheme."""

    text: str

    @classmethod
    def of(cls, text: str) -> Place:
        """A path is made absolute, so that every process means the same one."""
        return cls(text.rstrip("/") if _ADDRESS in text else str(Path(text).absolute()))

    @property
    def local(self) -> Path | None:
        """The path; None of an address."""
        return None if _ADDRESS in self.text else Path(self.text)

    @property
    def identity(self) -> str:
        """The same for every name of a place on this machine, links and `file://` too; else the address."""
        here = self.local is not None or self.text.startswith("file:")
        return str(Path(self._found()[1]).resolve()) if here else self.text

    def __truediv__(self, name: str) -> Place:
        return Place(f"{self.text}/{name}")

    @property
    def name(self) -> str:
        """The last part of it."""
        return PurePosixPath(self.text).name

    def files(self) -> dict[str, Stamp] | None:
        """The files of a folder, those of folders in it among them, by their names below it; of a file it, as
        "".

        None where there is nothing. Raises InputError: it cannot be reached.
        """
        from pyarrow.fs import FileSelector, FileType

        system, path = self._found()
        try:
            info = system.get_file_info(path)
            if info.type == FileType.NotFound:
                return None
            if info.type == FileType.File:
                return {"": _stamp(info)}
            inside = system.get_file_info(FileSelector(path, recursive=True))
        except OSError as error:
            raise InputError(f"{self.text}: cannot be read ({_first_line(error)})") from None
        files = [file for file in inside if file.type == FileType.File]
        return {str(PurePosixPath(file.path).relative_to(path)): _stamp(file) for file in files}

    def stamp(self) -> Stamp | None:
        """Of a file; None where there is none."""
        return (self.files() or {}).get("")

    @contextlib.contextmanager
    def fetched(self) -> Iterator[Path]:
        """The file on this machine: itself, or a copy that is deleted afterwards."""
        if self.local is not None:
            yield self.local
            return
        with tempfile.TemporaryDirectory(prefix="judgecal-") as folder:
            copy = Path(folder) / self.name
            self._copy(str(copy), out=False)
            yield copy

    @contextlib.contextmanager
    def delivered(self) -> Iterator[Path]:
        """A path on this machine to write the file to; where that is not its own place, it goes there
        afterwards.

        Raises InputError: it cannot be copied.
        """
        if self.local is not None:
            self.local.parent.mkdir(parents=True, exist_ok=True)
            yield self.local
            return
        with tempfile.TemporaryDirectory(prefix="judgecal-") as folder:
            copy = Path(folder) / self.name
            yield copy
            self._copy(str(copy), out=True)

    def _copy(self, copy: str, *, out: bool) -> None:
        from pyarrow.fs import LocalFileSystem, copy_files

        system, path = self._found()
        try:
            if not out:
                copy_files(path, copy, source_filesystem=system, destination_filesystem=LocalFileSystem())
                return
            folder = str(PurePosixPath(path).parent)
            draft = f"{folder}/.{self.name}.{secrets.token_hex(8)}.draft"
            system.create_dir(folder, recursive=True)
            copy_files(copy, draft, source_filesystem=LocalFileSystem(), destination_filesystem=system)
            system.move(draft, path)
        except OSError as error:
            raise InputError(
                f"{self.text}: cannot be {'written' if out else 'read'} ({_first_line(error)})"
            ) from None

    def _found(self) -> tuple[Any, str]:
        import pyarrow as pa
        from pyarrow.fs import FileSystem, LocalFileSystem

        if self.local is not None:
            return LocalFileSystem(), self.local.as_posix()
        try:
            system, path = FileSystem.from_uri(self.text)
        except (pa.ArrowException, ValueError, OSError) as error:
            raise InputError(
                f"{self.text}: pyarrow cannot read this address ({_first_line(error)})"
            ) from None
        return system, path.rstrip("/")


def _stamp(info: Any) -> Stamp:
    return int(info.size or 0), int(info.mtime_ns or 0)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


@dataclass(frozen=True, slots=True)
class Partition:
    """One file of a table; `name`: below the folder that was given, `/` between its parts."""

    name: str
    place: Place
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class Partitions:
    """A table in partitions, by their names; `given`: the files and folders, as they were named."""

    given: tuple[str, ...]
    parts: tuple[Partition, ...]
    notes: tuple[str, ...]


def list_partitions(given: Sequence[str]) -> Partitions:
    """The partitions in some files and folders.

    One that is given twice counts once. What begins with `.` or `_` is none, as everywhere where tables are
    kept so; other files are named in the notes.
    """
    found: dict[str, Partition] = {}
    problems: list[str] = []
    others: list[str] = []
    for text in given:
        place = Place.of(text)
        files = place.files()
        if files is None:
            problems.append(f"{text}: there is no such file or folder")
            continue
        listed_here = [
            Partition(name or place.name, place / name if name else place, stamp)
            for name, stamp in files.items()
            if not any(part.startswith((".", "_")) for part in name.split("/"))
        ]
        parts = [part for part in listed_here if PurePosixPath(part.name).suffix.lower() in ENDINGS]
        others += sorted(part.place.text for part in listed_here if part not in parts)
        if not parts:
            problems.append(f"{text}: holds no file that ends in {', '.join(ENDINGS)}")
        given_before = {part.place for part in found.values()}
        for part in parts:
            first = part if part.place in given_before else found.setdefault(part.name, part)
            if first.place != part.place:
                problems.append(
                    f"{part.place.text}: has the name of {first.place.text}, and so would what is written: "
                    "give the folder that holds both, or judge them one after the other"
                )
    refuse(problems)
    notes = (f"left out {listed(others)}: no partitions, which end in {', '.join(ENDINGS)}",)
    return Partitions(tuple(given), tuple(found[name] for name in sorted(found)), notes[: len(others)])
