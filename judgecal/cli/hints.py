"""What to type in the place of an option or a command that does not exist.

One rule for all: the parts of a table that `--col` names, the values of the options that there are, the names
and the help of the commands, and then what is spelt most like it.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from judgecal.commands import COMMANDS, load
from judgecal.errors import InputError

_NEAR = 0.6  # how like two names are where one may be meant by the other


def unknown_options(command: Any, path: str, args: Sequence[str]) -> InputError:
    """The error for the options of a command line that the command does not have, each with what to type.

    Args:
        command: the command, whose parameters are the options that there are.
        path: what is typed in front of the options, such as `gold check`.
        args: the command line behind it.
    """
    options = [param for param in command.params if param.param_type_name == "option"]
    names = {name: param for param in options for name in (*param.opts, *param.secondary_opts)}
    problems, words = [], iter(args)
    for word in words:
        name, sign, value = word.partition("=")
        if word == "--":
            break
        if name in names:
            if not (sign or names[name].is_flag):
                next(words, None)
        elif name.startswith("--") or (name.startswith("-") and len(name) == 2):
            if not sign:
                value = next(iter(args[args.index(word) + 1 :]), "")
                value = "" if value.startswith("-") else value
            problems.append(
                f"{path or 'judgecal'} has no option {name}: {_meant(name, value, options, path)}"
            )
    return InputError(problems)


def _meant(name: str, value: str, options: Sequence[Any], path: str) -> str:
    word = name.lstrip("-").replace("-", "_")
    longest = {max(param.opts, key=len): param for param in options}
    if "--col" in longest and (part := _part(word)):
        return f"write --col {part}={shlex.quote(value) if value else 'COLUMN'}"
    for option, param in longest.items():
        if word in (param.metavar or "").split("|"):
            return f"write {option} {word}"
    spelt = {option.lstrip("-"): option for option in longest}
    near = difflib.get_close_matches(name.lstrip("-"), spelt, n=1, cutoff=_NEAR)
    return f"write {spelt[near[0]]}" if near else f"{f'judgecal {path}'.strip()} --help lists its options"


def _part(word: str) -> str | None:
    """The part of a table that a word names: as `--col` does, as Python's `Columns` does, or as judges do."""
    from judgecal.tables.columns import PARTS, part_of

    fields = {field: part for part, field in PARTS.items()}
    stem = word.removesuffix("_column")
    part = fields.get(stem, part_of(stem))
    return part if part in PARTS else None


def unknown_command(group: str, word: str, loaded: Callable[[str], Any]) -> InputError:
    """The error for a command that does not exist, with the one to type.

    It is, in this order, a command of the group whose help speaks of the word or that has an option of its
    name; any command of that name; any other whose help speaks of it; and the one that is spelt most like it.
    `loaded` gives a command with its options.
    """
    typed = f"{group} {word}".strip()
    of_group = [name for name, command in COMMANDS.items() if group and command.group == group]
    named = [name for name, command in COMMANDS.items() if command.word == word]
    near = difflib.get_close_matches(typed, COMMANDS, n=1, cutoff=_NEAR)
    options = [
        f"{name} --{word}" for name in of_group if any(f"--{word}" in p.opts for p in loaded(name).params)
    ]
    meant = [*_speaking(of_group, word), *options, *named, *_speaking(COMMANDS, word), *near]
    hint = f"type judgecal {meant[0]}" if meant else "judgecal --help lists all"
    return InputError(f"there is no command judgecal {typed}: {hint}")


def _speaking(names: Iterable[str], word: str) -> list[str]:
    """The commands whose help has the word, those first that have it in their line."""
    pattern = re.compile(rf"(?<![\w-]){re.escape(word)}", re.IGNORECASE)
    texts = {name: (COMMANDS[name].line, load(COMMANDS[name].function).__doc__) for name in names}
    return [name for place in (0, 1) for name, text in texts.items() if pattern.search(text[place])]
