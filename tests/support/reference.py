"""The generated pages of the handbook: every command's help, every public name, every package of the tree."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import judgecal
from judgecal.cli import run
from judgecal.commands import COMMANDS
from tests.support.command import ROOT
from tests.support.house_picture import house_picture
from tests.support.layers import CORE
from tests.support.schema import schema_page

_REFERENCE = ROOT / "docs" / "reference"
_MADE = "<!-- Written by `python -m tests.support.handbook`; a change goes into {where}. -->\n\n"


_OPTION = re.compile(r"^  -.*\n(?: {4,}.*\n)*", re.MULTILINE)
_SEVERAL = 3  # commands from which an option stands among the shared ones


def command_pages() -> str:
    """`judgecal COMMAND --help` of every command, at 80 columns; options that several share stand once."""
    head = _MADE.format(where="the command's own help") + "# The commands\n\n"
    head += (
        "What `judgecal COMMAND --help` prints; what three commands or more say in the same words of an "
        "option stands\n[at the end](#shared-options). Exit codes, defaults and JSON keys stand on "
        "[Scripts](../scripts.md).\n"
    )
    helps = {name: _help(name) for name in sorted(COMMANDS)}
    options = {name: {text: _option(text) for text in _OPTION.findall(page)} for name, page in helps.items()}
    n_commands = Counter(option for listed in options.values() for option in listed.values())
    shared = {option for option, n in n_commands.items() if n >= _SEVERAL}
    pages = [f"\n## judgecal\n\n```text\n{_help('judgecal')}```\n"]
    for name, page in helps.items():
        for text, option in options[name].items():
            page = page.replace(text, "") if option in shared else page
        names = [f"`{option[0].split()[0]}`" for option in options[name].values() if option in shared]
        pages.append(f"\n## {name}\n\n```text\n{page}```\n\nAnd {', '.join(names)}.\n")
    rows = [f"- `{declared}`: {meaning}\n" for declared, meaning in sorted(shared)]
    return head + "".join(pages) + "\n## Shared options\n\n" + "".join(rows)


def _option(text: str) -> tuple[str, str]:
    """How an option is typed, and what it means."""
    declared, _, meaning = text.strip().partition("  ")
    if "\n" in declared:
        declared, _, meaning = text.strip().partition("\n")
    return " ".join(declared.split()), " ".join(meaning.split())


def _help(name: str) -> str:
    out, before = io.StringIO(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    try:
        with contextlib.redirect_stdout(out):
            assert run([*([] if name == "judgecal" else name.split()), "--help"]) == 0
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)
    return "\n".join(line.rstrip() for line in out.getvalue().strip().splitlines()) + "\n"


def name_pages() -> str:
    """Every name of `judgecal.__all__` with its signature and its docstring."""
    head = _MADE.format(where="the docstrings") + "# Python\n\n"
    head += (
        "The names of `import judgecal`; each is loaded when it is first used. Commands and functions give "
        "the same results:\n`as_json()` is the command's JSON object, `frame()` a polars table, and "
        "in a notebook\na result displays itself. [From Python](../python.md) "
        "puts them to use,\nand `help(judgecal.NAME)` says what each argument is.\n"
    )
    names = [name for name in judgecal.__all__ if not name.startswith("__")]
    return head + "".join(_name_page(name, getattr(judgecal, name)) for name in names)


def _name_page(name: str, value: Any) -> str:
    shown = f"```py\n{_signed(name, value)}\n```"
    if is_dataclass(value):
        shown = f"Its fields: {', '.join(f'`{field}`' for field in inspect.signature(value).parameters)}."
    parts = [f"\n## {name}\n\n{shown}\n", "\n" + (inspect.getdoc(value) or "").split("\n\n")[0] + "\n"]
    if inspect.isclass(value) and not issubclass(value, Exception):
        members = [key for key, member in vars(value).items() if not key.startswith("_") and _doc(member)]
        parts += ["\nIt has " + ", ".join(f"`{key}`" for key in members) + ".\n"] * bool(members)
    return "".join(parts).rstrip() + "\n"


def _signed(name: str, value: Any) -> str:
    """The call as it is typed, one parameter a line where it is long."""
    if inspect.isclass(value) and issubclass(value, Exception):
        return name
    call = f"{name}{_call(value)}"
    if len(call) <= 88:
        return call
    signature = inspect.signature(value)
    lines, starred = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            lines.append("    *,")
            starred = True
        lines.append(f"    {_plain(str(parameter))},")
    return "\n".join([f"{name}(", *lines, ")" + _returned(signature)])


def _call(value: Any) -> str:
    return _plain(str(inspect.signature(value)))


def _returned(signature: inspect.Signature) -> str:
    result = signature.return_annotation
    if result is inspect.Signature.empty or result is None:
        return ""
    return f" -> {_plain(result if isinstance(result, str) else getattr(result, '__name__', str(result)))}"


def _plain(text: str) -> str:
    """Without quotes about annotations, module paths, addresses, and factories of defaults."""
    text = re.sub(r"(?<=[:>|] )'([^']*)'(?=[,)=]|$| =)", r"\1", text)
    text = re.sub(r"<factory>", "...", text)
    return re.sub(r"\b(?:judgecal|collections\.abc|typing|pathlib)(?:\.[a-z_]+)*\.(?=[A-Z])", "", text)


def _doc(member: Any) -> str:
    inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    return inspect.getdoc(inner) or "" if callable(inner) or isinstance(inner, property) else ""


def package_page() -> str:
    """A line for each package and each module at the top: the first sentence of its docstring."""
    head = _MADE.format(where="the docstrings of the packages") + "# The tree of the code\n\n"
    head += (
        "A module imports only from its own package or from those above it in this order, and a test holds "
        "that:\n" + ", ".join(CORE) + ".\n\n| package | what it holds |\n| --- | --- |\n"
    )
    paths = [*(ROOT / "judgecal").glob("[!_]*.py"), *(ROOT / "judgecal").rglob("*/__init__.py")]
    rows = []
    for path in sorted(paths, key=lambda path: path.relative_to(ROOT).as_posix().replace("__init__.py", "")):
        doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        name = path.relative_to(ROOT).as_posix().removesuffix("__init__.py")
        line = " ".join(doc.split("\n\n")[0].split())
        rows.append(f"| `{name}` | {line} |\n")
    return head + "".join(rows)


def evidence_page() -> str:
    """A row for each promise of the handbook, those that were missed marked."""
    table = tomllib.loads((ROOT / "tests" / "benchmarks" / "promises.toml").read_text(encoding="utf-8"))
    parts, missed, n_promised = list[str](), list[str](), 0
    for section in table["section"]:
        parts += [
            f"\n## {section['title']}\n\n| what | promised | measured | command |\n",
            "| --- " * 4 + "|\n",
        ]
        for row in section["promise"]:
            n_promised += "promised" in row
            missed += [row["what"]] * row.get("missed", False)
            measured = "**Missed:** " * row.get("missed", False) + row["measured"]
            cells = (row["what"], row.get("promised", "nothing"), measured, f"`{row['command']}`")
            parts.append(f"| {' | '.join(cells)} |\n")
        parts.append(f"\n{section['after']}" if section["after"] else "")
    head = _MADE.format(where="tests/benchmarks/promises.toml") + table["head"]
    count = f"\nOf {n_promised} promises {len(missed)} are missed; they are marked.\n"
    return head + count + "".join(parts)


GENERATED: dict[Path, Callable[[], str]] = {
    ROOT / "docs" / "evidence.md": evidence_page,
    _REFERENCE / "commands.md": command_pages,
    _REFERENCE / "evaluate.md": lambda: schema_page(_MADE),
    _REFERENCE / "names.md": name_pages,
    _REFERENCE / "packages.md": package_page,
    _REFERENCE.parent / "img" / "house.svg": house_picture,
}
"""Each generated page and what writes it."""
