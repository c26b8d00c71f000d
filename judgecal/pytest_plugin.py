"""A fixture for pytest: `judgecal_gate(lock)` fails the test where the locked judge has drifted.

    def test_the_judge_is_still_the_one_that_we_locked(judgecal_gate):
        judgecal_gate("judge.lock.json", budget_usd=2)

pytest finds this module by itself where judgecal is installed. It is loaded in every run of pytest there, so
that it imports nothing until the fixture is called.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from judgecal.selection.gate import GateResult

Inconclusive = Literal["fail", "skip", "pass"]
_WAYS = ("fail", "skip", "pass")


@pytest.fixture
def judgecal_gate() -> Callable[..., GateResult]:
    """`judgecal_gate(lock, *, inconclusive="fail", **options)`: run the gate, as `judgecal.gate` does.

    It fails the test where the gate fails, or where another judge answers under the name; the result is
    returned for further asserts. `inconclusive` says what becomes of the test where the gate cannot tell:
    "fail", "skip" or "pass". `options` are those of `judgecal.gate`; each call of the fixture calls the model
    afresh.
    """
    return _gate


def _gate(lock: str | Path, *, inconclusive: Inconclusive = "fail", **options: Any) -> GateResult:
    __tracebackhide__ = True
    if inconclusive not in _WAYS:
        raise ValueError(f"inconclusive={inconclusive!r}: it is one of {', '.join(_WAYS)}")
    import judgecal
    from judgecal.errors import JudgecalError
    from judgecal.report.gate import gate_document

    try:
        result = judgecal.gate(lock, **options)
    except JudgecalError as error:  # in its own words, as on the command line
        pytest.fail(f"the gate could not run: {error}", pytrace=False)
    headline = gate_document(result, {}).headline
    lines = [
        f"{headline.chip}: {headline.sentence}",
        *headline.because,
        *(f"Not known: {one}" for one in headline.unknown),
    ]
    said = "\n".join([*lines, f"next: {headline.next}", f"run: {result.run_line}"])
    if result.decision in ("fail", "changed"):
        pytest.fail(said, pytrace=False)
    if result.decision == "inconclusive" and inconclusive != "pass":
        (pytest.skip if inconclusive == "skip" else pytest.fail)(said)
    return result
