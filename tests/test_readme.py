"""The README's commands run, what it quotes is what they print, and its tree is the code's own.

`python -m tests.test_readme` writes the tree and the quoted outputs anew.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from judgecal.cli import run
from tests.support.command import ROOT, SHARED_DATA

README = ROOT / "README.md"
_BLOCK = re.compile(r"^```console(?P<data> data)?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_TREE = re.compile(r"(?<=<!-- tree -->\n)```text\n.*?^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A console block: its commands, each with the lines that the README quotes of its output."""

    needs_data: bool
    commands: tuple[tuple[str, tuple[str, ...]], ...]


def blocks(text: str) -> list[Block]:
    """The console blocks of the README in their order."""
    found = []
    for match in _BLOCK.finditer(text):
        commands: list[tuple[str, list[str]]] = []
        for line in match["body"].replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            elif line.strip():
                commands[-1][1].append(line)
        found.append(Block(match["data"] is not None, tuple((c, tuple(quoted)) for c, quoted in commands)))
    return found


def tree() -> str:
    """A line for each room of the package, a module or a folder of them: the first sentence of its docstring."""
    lines = []
    rooms = [*(ROOT / "judgecal").glob("[!_]*.py"), *(ROOT / "judgecal").rglob("*/__init__.py")]
    for path in sorted(rooms, key=lambda p: p.relative_to(ROOT).as_posix().replace("__init__.py", "")):
        doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        sentence = " ".join(doc.split("\n\n")[0].split())
        lines.append((path.relative_to(ROOT).as_posix().removesuffix("__init__.py"), sentence))
    width = max(len(name) for name, _ in lines)
    return "```text\n" + "\n".join(f"{name:<{width}}  {doc}" for name, doc in lines) + "\n```"


@contextlib.contextmanager
def _workspace() -> Iterator[Path]:
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(home)


def _output(command: str) -> str:
    """Run one README command; only `judgecal ...` and `cd DIR` stand in console blocks."""
    words = [word.replace("$DATA", str(SHARED_DATA)) for word in shlex.split(command)]
    if words[0] == "cd":
        os.chdir(words[1])
        return ""
    assert words[0] == "judgecal", f"the README shows a command that this test cannot run: {command}"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words[1:])
    assert code == 0, f"{command}: exit {code}\n{err.getvalue()}"
    return out.getvalue()


def _stable(line: str) -> str:
    """A line without what differs from run to run: latencies, and the spaces that they shift."""
    return re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)? ?m?s\b", "TIME", line)).strip().rstrip("-")


def test_commands_run_and_print_what_the_readme_quotes() -> None:
    text = README.read_text(encoding="utf-8")
    found = blocks(text)
    assert found, "the README shows no command"
    lacking = [block for block in found if block.needs_data and not SHARED_DATA.is_dir()]
    for block in (block for block in found if block not in lacking):
        with _workspace():
            for command, quoted in block.commands:
                printed = [_stable(line) for line in _output(command).splitlines()]
                missing = [line for line in quoted if line.strip() != "..." and _stable(line) not in printed]
                assert not missing, f"{command} does not print: {missing}"
    if lacking:
        pytest.skip("the public human-labelled data is not beside this checkout (../shared/data)")


def test_the_tree_is_the_codes_own() -> None:
    match = _TREE.search(README.read_text(encoding="utf-8"))
    assert match is not None
    assert match[0] == tree(), "run `python -m tests.test_readme`"


def main() -> None:
    """Write the tree and every quoted output anew, in place."""
    text = _TREE.sub(lambda _: tree(), README.read_text(encoding="utf-8"))
    text = _BLOCK.sub(_refreshed, text)
    README.write_text(text, encoding="utf-8")


def _refreshed(match: re.Match[str]) -> str:
    """A block with the outputs that it quoted replaced by today's; a command that quotes nothing stays alone."""
    body = ""
    with _workspace():
        for part in filter(None, re.split(r"(?m)^(?=\$ )", match["body"])):
            command = re.match(r"\$ (?:.*\\\n)*.*\n", part)
            assert command is not None
            quoted = part[command.end() :].strip().splitlines()
            output = _output(command[0][2:].replace("\\\n", " ").strip()).rstrip("\n").splitlines()
            body += command[0] + "".join(f"{line}\n" for line in _as_long(output, quoted))
    return f"```console{match['data'] or ''}\n{body}```"


def _as_long(output: list[str], quoted: list[str]) -> list[str]:
    """As much of the output as was quoted: all, none, or so many lines before and after a line `...`."""
    if not quoted or "..." not in quoted:
        return output if quoted else []
    head = quoted.index("...")
    tail = len(quoted) - head - 1
    return [*output[:head], "...", *output[len(output) - tail :]]


if __name__ == "__main__":
    sys.exit(main())
