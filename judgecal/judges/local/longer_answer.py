"""`longer_answer@local`: prefers the longer of two answers, in characters; a tie where both are as long.

A judge of pairs should beat it.
"""

from __future__ import annotations

from typing import Literal

SOURCE = "Zheng et al. 2023 (MT-Bench), verbosity bias"


def longer_answer(answer_a: str, answer_b: str) -> tuple[Literal["A", "B", "tie"], str]:
    """Which is longer, and both lengths."""
    a, b = len(answer_a), len(answer_b)
    return "A" if a > b else "B" if b > a else "tie", f"{a} and {b} characters"
