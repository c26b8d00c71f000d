"""What an optimisation came to, as the contract's object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.experiment import Experiment, Look, Table, full_name, run_line, scale_notes
from judgecal.judges import PromptJudge
from judgecal.optimize.decision import CANNOT_TELL, Choice, Confirmation, Scored
from judgecal.records import Estimate

__all__ = ["Outcome"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that the result is made of.

    Attributes:
        experiment, optimizer, judge: what was run; `judge` is the one before.
        reflection: alias of the model that wrote instructions, if one did.
        metric: what decided.
        tables: split -> its table, those that were used.
        scored: the judge as it was and every candidate on dev.
        choice: who was taken.
        look, found: the look at test and what it said; None where test stayed sealed.
        decisions: decisions on the test labels so far, this one included.
        usd: money spent by this run.
    """

    experiment: Experiment
    optimizer: str
    reflection: str | None
    judge: PromptJudge
    metric: str
    tables: Mapping[str, Table]
    scored: Sequence[Scored]
    choice: Choice
    look: Look | None
    found: Confirmation | None
    decisions: int
    usd: float

    def result(self) -> dict[str, Any]:
        """The object, with `Estimate`s as they are."""
        after, found = self.choice.taken, self.found
        gold = self.tables["dev"].gold
        return {
            "experiment": self.experiment.slug,
            "optimizer": self.optimizer,
            "reflection_model": self.reflection,
            "judge": f"{self.judge.signature.name}@{self.judge.model.alias}#{self.experiment.slug}",
            "metric": self.metric,
            "gold": self._gold(),
            "dev": {
                "before": self.scored[0].estimates,
                "after": after.estimates,
                "candidates": [_tried(one, self.metric) for one in self.scored],
            },
            "test": _test_part(found),
            "decision": found.decision if found else CANNOT_TELL,
            "why": _why(found, after, self.scored[0].estimates[self.metric]),
            "program": _shown(self.experiment.program),
            "n_demos": len(after.judge.demos),
            "instructions_changed": after.judge.compiled.instructions
            != self.judge.signature.cls.instructions,
            "chosen": after.name,
            "choice": self.choice.why,
            "test_looks": self.decisions,
            "test_look": self.look.sentence(gold.name) if self.look else None,
            "usd": self.usd,
            "notes": [*scale_notes(gold.scale, [after.column]), *self._fit_notes()],
            "run_line": self._run_line(),
        }

    def _gold(self) -> dict[str, Any]:
        gold = self.tables["dev"].gold
        return {
            "set": gold.name,
            "sha256": gold.sha256,
            "scale": str(gold.scale),
            "labels_by": gold.card.labels_by,
            "n_items": {split: len(table.items) for split, table in self.tables.items()},
            "n_groups": {split: len(set(table.groups)) for split, table in self.tables.items()},
        }

    def _fit_notes(self) -> list[str]:
        """Where the maps of the recalibration were fitted, if not on all of train and dev."""
        taken = self.choice.taken.candidate
        if self.found is None or taken is None or self.reflection is None:
            return []
        n = len(set(self.tables["dev"].groups))
        return [
            f"the optimiser saw every label of train, so both judges are recalibrated on dev alone ({n} questions)"
        ]

    def _run_line(self) -> str:
        split = "test" if self.found else "dev"
        extra = {"optimizer": self.optimizer, "program": self.choice.taken.judge.fingerprint[:8]}
        if self.reflection:
            extra["reflection"] = self.reflection
        return run_line(self.tables[split], split, [full_name(self.judge)], extra)


def _tried(one: Scored, metric: str) -> dict[str, Any]:
    return {
        "name": one.name,
        "n_demos": len(one.judge.demos),
        "judge_fingerprint": one.judge.fingerprint,
        "rated_in_training": one.candidate.rated if one.candidate else 0,
        "unusable_in_training": one.candidate.unusable if one.candidate else 0,
        metric: one.estimates[metric],
        "recalibrated": one.recalibrated,
    }


def _why(found: Confirmation | None, after: Scored, before: Estimate) -> str:
    if after.candidate is None and before.value is None:
        return f"dev cannot choose ({before.reason}), so the judge stays as it was"
    if after.candidate is None:
        return "no candidate was better on dev, so the judge stays as it was"
    return found.why if found else "test was not looked at (--no-final)"


def _shown(path: Path) -> str:
    """A path as results name it: relative to the current folder where it lies below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _test_part(found: Confirmation | None) -> dict[str, Any]:
    if found is None:
        return {"before": None, "after": None, "difference": None, "difference_recalibrated": None}
    return {
        "before": found.before,
        "after": found.after,
        "difference": found.difference,
        "difference_recalibrated": found.recalibrated,
        "p_value": found.p_value,
        "complete_case": {"before": found.before_complete, "after": found.after_complete},
    }
