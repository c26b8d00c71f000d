"""An experiment's folder: the result that it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from judgecal.errors import InputError
from judgecal.experiment import Experiment
from judgecal.records import Estimate, Result


@dataclass(frozen=True, slots=True)
class Found(Result):
    """A result with everything that is nested in one."""

    judge: str
    agreement: dict[str, Estimate | None]
    unscored: tuple[int, ...] = ()
    others: tuple[Found, ...] = ()


def test_a_result_comes_back_as_it_was(tmp_path: Path) -> None:
    found = Found("j@m", {"kappa": Estimate(0.5, 0.4, 0.6, n=9), "mae": None}, (1, 2), (Found("k@m", {}),))
    experiment = Experiment(tmp_path, {})
    experiment.write_summary(found)
    assert experiment.read_summary(Found) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "did not come to its end"),
        ("{", "no JSON"),
        ("[]", "must hold a JSON object"),
        ('{"schema": 99}', "schema 99 is newer"),
        ('{"schema": 1, "judge": "j"}', "agreement"),
    ],
)
def test_what_is_no_result_is_one_message(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "summary.json").write_text(text)
    with pytest.raises(InputError, match=said):
        Experiment(tmp_path, {}).read_summary(Found)
