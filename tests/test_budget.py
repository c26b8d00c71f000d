"""No room outgrows what `tests/budget.toml` gives it, and every file belongs to a feature of the ledger."""

from __future__ import annotations

import re

from tests.support.command import ROOT
from tests.support.ledger import BUDGET, PACKAGE, TESTS, feature_of, features, rooms


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


def test_every_file_belongs_to_a_feature() -> None:
    homeless = [
        str(path.relative_to(ROOT))
        for kind, folder in (("code", PACKAGE), ("tests", TESTS))
        for path in folder.rglob("*.py")
        if feature_of(path, kind) is None
    ]
    assert not homeless, f"name them in tests/budget.toml: {homeless}"


def test_the_ledger_of_the_handbook_is_about_right() -> None:
    """Not to the line: then every change would rewrite the page."""
    page = (ROOT / "docs" / "reference" / "ledger.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ([\d,]+) \| \d+ \| ([\d,]+) \|$", page, re.MULTILINE)
    written = {name: tuple(int(number.replace(",", "")) for number in numbers) for name, *numbers in rows}
    assert list(written) == list(features()), "run `python -m tests.support.handbook`"
    for name, weights in features().items():
        for told, now in zip(written[name], weights, strict=True):
            assert abs(told - now.lines) <= max(200, now.lines // 5), (
                f"{name}: run `python -m tests.support.handbook`"
            )
