"""What an experiment has spent on calls, over all of its processes."""

from __future__ import annotations

import json
from pathlib import Path

from judgecal.artefacts import SCHEMA
from judgecal.errors import InputError
from judgecal.workspace import write_text

_WRITTEN_AHEAD = (
    0.01  # of what is spent: the ledger is written once in so much, and never after the money is gone
)
_WRITTEN_AHEAD_USD = 1e-4  # and not more often than that


class Ledger:
    """What an experiment's processes have spent on calls, in a file of one number.

    The number runs ahead of the spending, by a hundredth of it or as much as is in flight: who is killed has
    spent no more than stands there. A process that ends by itself leaves what it spent.

    Raises:
        InputError: the file holds no amount.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.before_usd = 0.0
        if path.exists():
            try:
                self.before_usd = float(json.loads(path.read_text(encoding="utf-8"))["spent_usd"])
            except (OSError, ValueError, TypeError, KeyError) as error:
                raise InputError(
                    f"{path}: what this experiment has spent cannot be read ({error}): mend or delete it; deleted, "
                    "--budget-total-usd counts from 0"
                ) from error
        self._written = self.before_usd

    def cover(self, spent_usd: float, *, in_flight_usd: float) -> None:
        """Have the file hold no less than this process has spent and has in flight."""
        known = self.before_usd + spent_usd + in_flight_usd
        if known > self._written:
            self._write(known + max(_WRITTEN_AHEAD * known, _WRITTEN_AHEAD_USD))

    def settle(self, spent_usd: float) -> None:
        """Leave what was spent; nothing is in flight."""
        if self.before_usd + spent_usd != self._written:
            self._write(self.before_usd + spent_usd)

    def _write(self, usd: float) -> None:
        write_text(self._path, json.dumps({"schema": SCHEMA, "spent_usd": usd}) + "\n")
        self._written = usd
