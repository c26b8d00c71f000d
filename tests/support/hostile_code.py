"""Functions of a user's that raise what no function should, and return what raises when it is looked at."""

from __future__ import annotations

CLASSES = """
import asyncio, collections.abc, sys


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Odd(BaseException):
    pass


class Shy:
    def __repr__(self):
        raise ZeroDivisionError("not shown")

    __str__ = __repr__


class Trap(collections.abc.Mapping):
    def __getitem__(self, key):
        raise GeneratorExit("trapped")

    get = __len__ = __getitem__

    def __iter__(self):
        return iter(("answer",))


def act(what):
    if what == "cancelled":
        raise asyncio.CancelledError("by itself")
    if what == "generator exit":
        raise GeneratorExit
    if what == "base":
        raise Odd("base \\ud83d")
    if what == "mute":
        raise Mute
    if what == "exit":
        sys.exit(0)
    if what == "long":
        raise ValueError("x" * 20_000_000)
    return {"shy": Shy(), "trap": Trap(), "large": "x" * 50_000_000}.get(what, what)
"""
WHATS = {
    "cancelled": "code: CancelledError: by itself",
    "generator exit": "code: GeneratorExit",
    "base": "code: Odd: base \ufffd",
    "mute": "code: Mute: it cannot say what happened: RuntimeError",
    "exit": "code: SystemExit: 0",
    "long": "code: ValueError: " + "x" * 500,
    "shy": "code: ZeroDivisionError: not shown",
}
"""What a function is told to do -> the error on its row, whoever runs it."""
