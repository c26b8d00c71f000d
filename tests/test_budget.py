"""No room outgrows what `tests/budget.toml` gives it."""

from __future__ import annotations

from tests.support.ledger import BUDGET, rooms


def test_no_room_outgrows_its_budget() -> None:
    over = [
        f"{name}: {what} {now:,}, at most {most:,}"
        for name, weight in rooms().items()
        for what, now, most in (
            ("lines", weight.lines, BUDGET["rooms"].get(name, {}).get("lines", 0)),
            ("files", weight.files, BUDGET["rooms"].get(name, {}).get("files", 0)),
        )
        if now > most
    ]
    assert not over, "say the same in less, or raise tests/budget.toml on purpose:\n" + "\n".join(over)
