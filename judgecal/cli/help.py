"""What `--help` says beside the options: the commands in groups, and an example of each, which a test runs.

The same on a terminal and off it, and without rich, which takes longer to load than all of this.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import typer
from typer.core import TyperGroup

GROUPS: dict[str, dict[str, str]] = {
    "Set up": {
        "init": "my-workspace",
        "models": "",
        "judges": "",
        "signature list": "",
        "signature new": "policy --scale binary --inputs question,answer_under_test",
        "signature check": "correctness_v3 --gold starter",
        "cache path": "",
        "cache clear": "",
    },
    "Gold set": {
        "gold list": "",
        "gold import": "labels.csv --as my-set --question question --answer answer --label ann --label bob "
        "--scale binary",
        "gold check": "starter",
        "gold agreement": "starter",
        "gold fetch": "",
        "gold make": "--documents starter --as made -n 8",
        "gold sheet": "my-set -o sheet.csv",
        "gold label": "my-set --raters ann,bob",
        "gold adjudicate": "my-set",
    },
    "Judge": {
        "score": "--signatures correctness_v1,correctness_v2,correctness_v3 --name three",
        "agreement": "--gold my-set --judgements verdicts.csv",
        "optimize": "--model embedded --gold starter",
        "compare": "three",
    },
    "Choose and keep": {
        "select": "three -o judge.lock.json",
        "gate": "--lock judge.lock.json",
        "migrate": "--lock judge.lock.json --to rag/correctness@embedded",
        "judge": "answers.csv --lock judge.lock.json -o judged.csv --question q --answer a --reference r",
        "rate": "judged.csv --lock judge.lock.json --question q --answer a",
        "plan": "--lock judge.lock.json --half-width 0.05",
    },
    "Test the rest": {
        "retrieval": "--gold starter",
        "answer": "--signatures answer_v1,answer_v2",
        "evaluate": "sweep.toml",
        "rules": "starter",
    },
    "Report": {"report": "three"},
}
"""Group -> command -> the arguments of its example, in an order in which one run gives the next what it
reads."""

_WIDTH = 72  # of an example's line


class GroupedHelp(TyperGroup):
    """A group of commands whose help lists them by `GROUPS`, each with its whole summary."""

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write a section for each group; a command that stands in none is in `Commands`."""
        found = _commands(self)
        if ctx.parent is None:
            sections = {title: [name for name in group if name in found] for title, group in GROUPS.items()}
            rest = [name for name in found if name not in EXAMPLES]
        else:
            sections, rest = {}, list(found)
        width = max(map(len, found))
        for title, names in {**sections, "Commands": rest}.items():
            if names:
                with formatter.section(title):
                    formatter.write_dl([(name.ljust(width), summary(found[name])) for name in names])


EXAMPLES: dict[str, str] = {command: words for group in GROUPS.values() for command, words in group.items()}
"""Command -> the arguments of its example."""


def example(command: str) -> str | None:
    """What the help of a command ends with; a long line goes on below, as a shell reads it."""
    if command not in EXAMPLES:
        return None
    lines = [f"judgecal {command}"]
    for words in re.split(r" (?=-)", EXAMPLES[command]):
        if len(lines[-1]) + 1 + len(words) > _WIDTH:
            lines.append(f"  {words}")
        elif words:
            lines[-1] += f" {words}"
    return "\b\nExample:\n  " + " \\\n  ".join(lines)


def summary(command: Any) -> str:
    """The first sentence of a command's help."""
    return re.split(r"(?<=[.?!])\s", inspect.cleandoc(command.help or "").replace("\n", " "), maxsplit=1)[0]


def _commands(group: Any, prefix: str = "") -> dict[str, Any]:
    """Every command of a group by the words that call it, those of its own groups too."""
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        own = (
            _commands(command, f"{prefix}{name} ")
            if hasattr(command, "commands")
            else {f"{prefix}{name}": command}
        )
        found |= own
    return found
