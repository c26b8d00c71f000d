"""What an experiment has spent is in a file, which runs ahead of the spending and binds every later
process."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgecal.engine import Budget, Ledger
from judgecal.engine.budget import Bill
from judgecal.errors import InputError


def test_a_killed_process_has_spent_no_more_than_the_ledger_says(tmp_path: Path) -> None:
    path = tmp_path / "spending.json"
    budget = Budget(None, total_usd=1.0, ledger=Ledger(path))
    for _ in range(50):
        assert budget.hold("m", 0.002, alone=False)
        assert Ledger(path).before_usd >= budget.spent_usd + 0.002
        budget.settle("m", 0.002, Bill(0.001))
    left = Ledger(path).before_usd  # killed here
    assert 0.05 <= left <= 0.054
    again = Budget(None, total_usd=1.0, ledger=Ledger(path))
    assert again.limit_usd == pytest.approx(1.0 - left)
    again.save()
    assert Ledger(path).before_usd == left


def test_the_smaller_limit_binds(tmp_path: Path) -> None:
    (path := tmp_path / "spending.json").write_text('{"schema": 1, "spent_usd": 3.0}')
    assert Budget(0.5, total_usd=5.0, ledger=Ledger(path)).limit_usd == 0.5
    assert Budget(2.5, total_usd=5.0, ledger=Ledger(path)).limit_usd == 2.0
    spent = Budget(None, total_usd=2.0, ledger=Ledger(path))
    assert (spent.limit_usd, spent.hold("m", 0.001, alone=True)) == (0.0, False)
    assert (
        spent.refuse("m", 0.001)
        == "the next call could overrun 2 USD in total: 3 are spent, and it may cost 0.001"
    )


def test_a_ledger_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (path := tmp_path / "spending.json").write_text('{"spent_usd": "much"}')
    with pytest.raises(InputError, match="what this experiment has spent cannot be read"):
        Ledger(path)
