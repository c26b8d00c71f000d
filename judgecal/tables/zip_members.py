"""JSON files within a zip archive; none is unpacked to a file, and none may be larger than can be held."""

from __future__ import annotations

import contextlib
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from judgecal.errors import InputError
from judgecal.tables.json_files import json_value
from judgecal.tables.text import decode, unreadable
from judgecal.workspace import shown

LARGEST = 256 * 2**20
"""Bytes of one member, unpacked."""
LARGEST_SUM = 16 * 2**30
"""Bytes of all members that are read, unpacked."""
_ZSTANDARD = 93  # Python's zipfile reads this method from 3.14 on
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_BROKEN = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, UnicodeError,
    ValueError,
)  # fmt: skip


class Archive:
    """An open archive: its members' names and JSON; of two of one name the later counts."""

    def __init__(self, opened: zipfile.ZipFile, file: IO[bytes], where: str) -> None:
        self.where = where
        self.names = tuple(dict.fromkeys(opened.namelist()))
        self.n_rewritten = len(opened.namelist()) - len(self.names)
        self._opened, self._file, self._sum = opened, file, 0

    def json(self, name: str) -> Any:
        """The value of a member; NaN is None. InputError: it is broken, encrypted or too large."""
        info, where = self._opened.getinfo(name), f"{self.where}: {name}"
        if info.file_size > LARGEST:
            raise InputError(f"{where}: holds {info.file_size:,} bytes, and at most {LARGEST:,} are read")
        try:
            data = self._zstandard(info) if info.compress_type == _ZSTANDARD else self._plain(info)
        except (*_BROKEN, OSError) as error:
            raise InputError(f"{where}: cannot be unpacked ({error}): copy the file again") from None
        self._sum += len(data)
        if self._sum > LARGEST_SUM:
            raise InputError(f"{self.where}: its members hold over {LARGEST_SUM:,} bytes: split the file")
        text, problems = decode(data, where)
        if problems:
            raise InputError(problems)
        return json_value(text, where)

    def _plain(self, info: zipfile.ZipInfo) -> bytes:
        with self._opened.open(info) as member:
            return _whole(member.read(info.file_size + 1), info)

    def _zstandard(self, info: zipfile.ZipInfo) -> bytes:
        import pyarrow as pa

        if info.flag_bits & 1:
            raise RuntimeError("it is encrypted")
        self._file.seek(info.header_offset)
        mark, n_name, n_extra = _LOCAL_HEADER.unpack(self._file.read(_LOCAL_HEADER.size))
        if mark != b"PK\x03\x04":
            raise zipfile.BadZipFile("its header is not where it should be")
        self._file.seek(n_name + n_extra, 1)
        packed = self._file.read(min(info.compress_size, LARGEST))
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as member:
            return _whole(member.read(info.file_size + 1), info)


def _whole(data: bytes, info: zipfile.ZipInfo) -> bytes:
    """The data where it is as long and has the checksum that the archive tells."""
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise zipfile.BadZipFile("it is not what the archive tells of it")
    return data


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open a zip archive; InputError: it is none, or cannot be read."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from None
    with file:
        try:
            opened = zipfile.ZipFile(file)
        except _BROKEN as error:
            raise InputError(f"{shown(path)}: is no zip archive ({error}): copy the file again") from None
        with opened:
            yield Archive(opened, file, shown(path))
