"""The README and the handbook: their commands are run, and what they quote is what is printed.

`python -m tests.support.handbook [PAGE...]` writes anew what pages quote, and the generated pages.
A page's blocks run in their order in one folder, in which `examples/` stands as it does in a checkout:

- `console`: lines that begin with `$ ` are commands, `judgecal ...` or `cd DIR`; the lines below are quoted
of their
  output, and a line `...` stands for any number of lines. A command that ends in `# exit N` ends so.
- `python`: run with what the blocks above it left. What is not to be run is called `py` or `sh`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgecal.cli import run
from tests.support.command import ROOT, SHARED_DATA
from tests.support.reference import GENERATED

DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^```(?P<kind>console|python)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"\$ (?P<words>(?:.*\\\n)*.*)\n")
_EXIT = re.compile(r"\s+# exit (\d+)$")


def pages() -> list[Path]:
    """The README and every page of the handbook that is written by hand."""
    return [ROOT / "README.md", *(page for page in sorted(DOCS.rglob("*.md")) if page not in GENERATED)]


def needs_data(text: str) -> bool:
    """Whether a page's commands read the public data beside the checkout."""
    return any("$DATA" in match["body"] for match in _BLOCK.finditer(text))


def runs(text: str) -> bool:
    """Whether anything of a page is run."""
    return _BLOCK.search(text) is not None


def refreshed(text: str) -> str:
    """A page with each output that it quotes replaced by today's; AssertionError where a command ends
    otherwise."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with _folder():
        return _BLOCK.sub(lambda match: _block(match, names), text)


def stable(text: str) -> str:
    """A page without what differs from run to run: times, and the spaces and dashes that they shift."""
    without = re.sub(r"\d+(\.\d+)? ?m?s\b|\d{4}-\d\d-\d\dT[\d:.+Z]+|\d{8}T\d+\.\d+Z", "TIME", text)
    return "\n".join(re.sub(r"\s+|-{3,}", " ", line).strip() for line in without.splitlines())


@contextlib.contextmanager
def _folder() -> Iterator[None]:
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(home)


def _block(match: re.Match[str], names: dict[str, Any]) -> str:
    if match["kind"] == "python":
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(match["body"], "handbook", "exec", dont_inherit=True), names)
        return match[0]
    body = ""
    for part in filter(None, re.split(r"(?m)^(?=\$ )", match["body"])):
        command = _COMMAND.match(part)
        assert command is not None, f"the block begins with what is no command: {part}"
        quoted = part[command.end() :].rstrip("\n").splitlines()
        printed = _output(command["words"].replace("\\\n", " ").strip()).rstrip("\n").splitlines()
        body += command[0] + "".join(f"{line}\n" for line in _as_long(printed, quoted))
    return f"```console\n{body}```"


def _output(command: str) -> str:
    """What one command prints."""
    expected = _EXIT.search(command)
    words = [word.replace("$DATA", str(SHARED_DATA)) for word in shlex.split(command, comments=True)]
    if words[0] == "cd":
        os.chdir(words[1])
        return ""
    assert words[0] == "judgecal", f"only judgecal and cd stand in console blocks: {command}"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words[1:])
    assert code == (int(expected[1]) if expected else 0), f"{command}: exit {code}\n{err.getvalue()}"
    return out.getvalue()


def _as_long(printed: list[str], quoted: list[str]) -> list[str]:
    """As much of the output as was quoted: all, none, or around each `...` as many lines as stood there."""
    if not quoted or "..." not in quoted:
        return printed if quoted else []
    parts: list[list[str]] = [[]]
    for line in quoted:
        if line == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    kept, tail = printed[: len(parts[0])], printed[len(printed) - len(parts[-1]) :]
    return [*kept, *(line for part in parts[1:-1] for line in ["...", *_found(part, printed)]), "...", *tail]


def _found(part: list[str], printed: list[str]) -> list[str]:
    """The lines of a part in the middle, from that on with which its first line begins."""
    start = next((at for at, line in enumerate(printed) if line[:12] == part[0][:12]), None)
    assert start is not None, f"no line begins as {part[0]!r}"
    return printed[start : start + len(part)]


def main(argv: list[str]) -> None:
    """Write the generated pages and the quoted outputs anew, in place; with paths those pages alone."""
    os.environ["COLUMNS"] = "80"
    for page, make in GENERATED.items() if not argv else ():
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(make(), encoding="utf-8")
    for page in [Path(name).resolve() for name in argv] or pages():
        text = page.read_text(encoding="utf-8")
        if needs_data(text) and not SHARED_DATA.is_dir():
            print(
                f"{page.name}: left alone, for the public data is not beside this checkout (../shared/data)"
            )
            continue
        with tempfile.TemporaryDirectory() as cache:
            os.environ["JUDGECAL_CACHE_DIR"] = cache
            new = refreshed(text)
        if stable(new) != stable(text):
            page.write_text(new, encoding="utf-8")
            print(f"{page.name}: written")


if __name__ == "__main__":
    main(sys.argv[1:])
