"""Ways in which a file comes to harm: torn, overwritten, edited by hand with the wrong thing, or gone."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from judgecal.records import digest

# What a value may be replaced with, as JSON; not all of it is valid, as a hand does not ask.
VALUES = (
    *("null", "true", "[]", "{}", "[[1]]", '[null, "x"]', '{"a": {"b": []}}', "-1", "0", "1e400", "-1e400", "NaN"),
    *("1" + "0" * 400, "3.5", '""', '"x"', '"\\ud800"', '"\\u0000"', '"../../x"', '"nan"', "1e308"),
    "[" * 3000 + "]" * 3000,
)  # fmt: skip
TOML_VALUES = (
    *('""', '"x"', "[]", "{}", "[[1]]", "-1", "nan", "inf", "1e400", "true", "1979-05-27", "9" * 400, '"../x"'),
    *('"\\u0000"', '"' + "x" * 300 + '"', "{ a = { b = [] } }", "[1, 'x']"),
)  # fmt: skip


def harm(path: Path, rng: random.Random) -> str:
    """Do something to a file; says what."""
    kinds: dict[str, list[Callable[[Path, random.Random], str]]] = {
        ".json": [edit_json, edit_json, edit_json],
        ".jsonl": [edit_line, edit_line, edit_line],
        ".toml": [edit_toml, edit_toml, edit_toml],
    }
    return rng.choice([harm_bytes, *kinds.get(path.suffix, [])])(path, rng)


def harm_bytes(path: Path, rng: random.Random) -> str:
    """Bytes cut off, written over or put in; another thing in the file's place."""
    data = path.read_bytes()
    at = rng.randrange(len(data) + 1)
    ways: dict[str, Callable[[], object]] = {
        f"torn at byte {at}": lambda: path.write_bytes(data[:at]),
        f"begun at byte {at}": lambda: path.write_bytes(data[at:]),
        f"NUL at byte {at}": lambda: path.write_bytes(data[:at] + b"\0" * 9 + data[at:]),
        f"no UTF-8 at byte {at}": lambda: path.write_bytes(data[:at] + b"\xff\xfe" + data[at:]),
        f"a zeroed block at byte {at}": lambda: path.write_bytes(data[:at] + b"\0" * 512 + data[at + 512 :]),
        "a byte order mark": lambda: path.write_bytes(b"\xef\xbb\xbf" + data),
        "UTF-16": lambda: path.write_bytes(data.decode("latin-1").encode("utf-16")),
        "CRLF": lambda: path.write_bytes(data.replace(b"\n", b"\r\n")),
        "twice": lambda: path.write_bytes(data + data),
        "empty": lambda: path.write_bytes(b""),
        "a folder in its place": lambda: (path.unlink(), path.mkdir()),
        "gone": path.unlink,
        "a link to itself": lambda: (path.unlink(), path.symlink_to(path)),
        "unreadable": lambda: path.chmod(0),
    }
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        del ways["unreadable"]  # root reads all
    name = rng.choice(list(ways))
    ways[name]()
    return name


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to each value within a JSON value."""
    if path:
        yield path
    pairs = (
        value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    )
    for key, inner in pairs:
        yield from _places(inner, (*path, key))


def edited(table: Any, rng: random.Random) -> tuple[str, str]:
    """The JSON of an object with one edit, and what it was."""
    place = rng.choice(sorted(_places(table), key=len)[:80])
    table = json.loads(json.dumps(table))
    holder = table
    for key in place[:-1]:
        holder = holder[key]
    way = rng.choice(["replaced", "replaced", "replaced", "left out", "added", "twice"])
    new = rng.choice(VALUES)
    if way == "left out":
        del holder[place[-1]]
    elif way == "added" and isinstance(holder, dict):
        holder["surplus"] = "\x07"
    elif way == "twice" and isinstance(holder, dict):
        text = json.dumps(table)
        twice = f"{json.dumps(place[-1])}: {json.dumps(holder[place[-1]])}"
        return text.replace(twice, f"{twice}, {twice}", 1), f"{place} twice"
    else:
        holder[place[-1]] = "\x07"
    return json.dumps(table).replace(json.dumps("\x07"), new, 1), f"{place} {way}: {new[:30]}"


def edit_json(path: Path, rng: random.Random) -> str:
    """One edit of a JSON file; a lock gets the hash that belongs to it, as somebody who means harm would
    do."""
    table = json.loads(path.read_text(encoding="utf-8"))
    text, what = edited(table, rng)
    if "sha256" in table and "signature" in table:
        try:
            content = {key: value for key, value in json.loads(text).items() if key != "sha256"}
            text = re.sub(r'"sha256": "[0-9a-f]{64}"\}$', f'"sha256": "{digest(content)}"}}', text)
        except (ValueError, RecursionError):
            what += ", not signed"
    path.write_text(text, encoding="utf-8")
    return what


def edit_line(path: Path, rng: random.Random) -> str:
    """One edit of one line of a JSON Lines file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    number = rng.randrange(len(lines))
    lines[number], what = edited(json.loads(lines[number]), rng)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return f"line {number + 1}: {what}"


def edit_toml(path: Path, rng: random.Random) -> str:
    """One value of a TOML file replaced, or one line left out, doubled or broken."""
    lines = path.read_text(encoding="utf-8").splitlines()
    number = rng.choice([n for n, line in enumerate(lines) if line.strip()])
    key, equals, _ = lines[number].partition("=")
    new = rng.choice(TOML_VALUES)
    ways = [[], [lines[number]] * 2, [lines[number][:-1]], ["surplus = 1", lines[number]]]
    ways += [[f"{key}= {new}"]] * 6 if equals else []
    chosen = rng.choice(ways)
    path.write_text("\n".join([*lines[:number], *chosen, *lines[number + 1 :]]) + "\n", encoding="utf-8")
    return f"line {number + 1}: {lines[number][:40]!r} -> {str(chosen)[:60]}"


def copied(template: Path, to: Path) -> Path:
    """A copy of a workspace: what is named once a process is named by its path."""
    shutil.copytree(template, to)
    return to
