"""What can go wrong, told in one message.

    JudgecalError
    ├── InputError      wrong use or bad input: exit 2, every problem in one message
    ├── AuthError       the provider refused the key: the run stops at once (exit 2)
    ├── BudgetError     an optimiser's own call would overrun the budget
    └── BusyError       another process works on the same experiment (exit 2)

A failed *judgement* is not an exception: it is a row with an error (`records.Failure`).
"""

from __future__ import annotations

import difflib
import re
import shlex
import sys
from collections.abc import Collection, Iterable, Sequence

# What moves a cursor, changes colours, starts a line or turns the direction of what follows, and what no XML
# may hold.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff\ufff9-\ufffb\ufffe\uffff]"
)
_DESCRIBED = 500  # characters of an exception's message
ERASE_LINE = "\r\x1b[2K"
"""The one control sequence that is written on a terminal: back to the start of the line, which is wiped."""


class JudgecalError(Exception):
    """Any error that judgecal explains in words; `str(error)` is the whole message."""


class InputError(JudgecalError):
    """Wrong use or bad input: one message, or every problem (what, where, what was found, what to do)."""

    def __init__(self, problems: str | Iterable[str]) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[str, ...]]]:
        return type(self), (self.problems,)  # from another process it comes with each of them


class AuthError(JudgecalError):
    """The provider refused the credentials; no further call can succeed."""


class BudgetError(JudgecalError):
    """A call outside the journal would overrun the budget; inside it, that is a row with an error."""


class Stopped(BaseException):
    """Unwinds a program of DSPy's whose calls have ended; no `Exception`, for DSPy catches those."""


class BusyError(InputError):
    """Another process holds the experiment."""


def error_text(error: BaseException) -> str:
    """Return type and message of an error of somebody's code as one line; its message may raise as well."""
    try:
        text = str.__getitem__(str(error), slice(_DESCRIBED))
    except KeyboardInterrupt:
        raise
    except BaseException as worse:  # noqa: BLE001 - a stranger's `__str__`
        text = f"it cannot say what happened: {type(worse).__name__}"
    return f"{type(error).__name__}{': ' * bool(text)}{' '.join(text.split())}"


def unknown_name(kind: str, name: str, names: Sequence[str]) -> InputError:
    """Return an InputError for an unknown name of a kind ("gold set"), with the nearest of the names."""
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {listed(names, _KNOWN_SHOWN) or 'none'}"
    if kind in _LISTED_BY:
        hint += f" ({_LISTED_BY[kind]} lists all)"
    return InputError(f"unknown {kind} {name!r}: {hint}")


_KNOWN_SHOWN = 12  # names, where none is near
_LISTED_BY = {
    "model": "judgecal models",
    "signature": "judgecal judges",
    "judge": "judgecal judges",
    "suite": "judgecal judges",
    "local judge": "judgecal judges",
    "gold set": "judgecal gold check",
    "gold set or experiment": "judgecal gold check",
    "experiment": "judgecal report --all",
}


def not_installed(what: str, package: str, extra: str, *, instead: str = "") -> InputError:
    """From texts `what` (who needs it), package and extra, return an InputError with the line to install.

    `extra`: judgecal's own that brings the package; judgecal is installed from a checkout alone. `instead`:
    what to do without it.
    """
    lines = f"pip install {shlex.quote(package)}, or in a checkout of judgecal pip install '.[{extra}]'"
    return InputError(
        f"{what} {package}, which is not installed: {lines}{f'; or {instead}' if instead else ''}"
    )


def listed(names: Sequence[str], most: int = 5, *, sealed: Collection[str] = ()) -> str:
    """Return as text the first few of the names, with commas, and the number of those left out."""
    shown = [name for name in names if name not in sealed]
    n_sealed = len(names) - len(shown)
    more = f" and {len(shown) - most:,} more" if len(shown) > most else ""
    counted = f"{n_sealed:,} of test, which are not shown" if n_sealed else ""
    return "; ".join(filter(None, (", ".join(shown[:most]) + more, counted)))


def refuse(problems: Iterable[str], most: int = 20) -> None:
    """Refuse bad input (InputError) if there are problems (texts): the first of them, each once."""
    if messages := list(dict.fromkeys(problems)):
        more = [f"... and {len(messages) - most:,} more problems"] if len(messages) > most else []
        raise InputError([*messages[:most], *more])


def visible(text: str) -> str:
    """Text without what acts: control characters, turns of direction, lone surrogates, as their codes."""
    return UNSEEN.sub(_code, text)


def visible_line(text: str) -> str:
    """Visible text that stays on its line: a name that holds line ends starts none."""
    return visible(text).replace("\n", "\u240a").replace("\t", " ")


def _code(match: re.Match[str]) -> str:
    point = ord(match[0])
    if point < 0x20:
        return chr(0x2400 + point)  # Unicode's own pictures of control characters
    return "\u2421" if point == 0x7F else f"[U+{point:04X}]"


def notice(*messages: str) -> None:
    """Print messages on stderr, a line each; no name in one acts, or passes for a line of ours."""
    sys.stderr.write("".join(visible(message).replace("\n", "\n  ") + "\n" for message in messages))
