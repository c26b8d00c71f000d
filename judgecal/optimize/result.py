"""What an optimisation came to: the object of `optimize`, and the prompt before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from judgecal.artefacts import read_json
from judgecal.errors import InputError
from judgecal.experiment import Experiment
from judgecal.experiment.folder import kept_judges
from judgecal.experiment.result import labelled_by, unscored_counts_as
from judgecal.experiment.stored import Unread
from judgecal.optimize.decision import OnTest, Tried
from judgecal.records import Estimate, Result


@dataclass(frozen=True, slots=True)
class OptimizedOn:
    """The gold set, and what each split that was used holds."""

    set: str
    sha256: str
    scale: str
    labels_by: str
    n_items: dict[str, int]
    n_groups: dict[str, int]

    @property
    def in_words(self) -> str:
        """The whole of it, without a full stop."""
        parts = [
            f"{split} {n:,} items on {self.n_groups[split]:,} questions" for split, n in self.n_items.items()
        ]
        return (
            f"{self.set}@{self.sha256[:12]}: {', '.join(parts)}; {self.scale} "
            f"labels{labelled_by(self.labels_by)}"
        )

    @property
    def unscored_counts_as(self) -> str:
        """What an unscored item counts as."""
        return unscored_counts_as(self.scale)


@dataclass(frozen=True, slots=True)
class OnDev:
    """Metric -> Estimate of the judge before and after, and everything that was tried."""

    before: dict[str, Estimate]
    after: dict[str, Estimate]
    candidates: tuple[Tried, ...]


@dataclass(frozen=True, slots=True)
class OptimizeResult(Result):
    """What `optimize` came to."""

    experiment: str
    optimizer: str
    reflection_model: str | None  # alias; None where nobody wrote instructions
    judge: str  # that it made, `signature@model#experiment`
    metric: str  # what was climbed and decided on
    gold: OptimizedOn
    dev: OnDev
    test: OnTest
    decision: str  # better, worse, rescaled only, cannot tell or nothing changed
    why: str
    program: str  # path of the compiled program
    n_demos: int
    instructions_changed: bool
    chosen: str  # the candidate that was taken on dev
    choice: str  # why
    test_looks: int  # decisions on these test labels so far
    test_look: str | None  # this one in words, None where test stayed sealed
    usd: float  # spent by all runs of this experiment
    notes: tuple[str, ...]
    run_line: str
    unread: Unread | None = None  # why, where the judge had no verdict on dev, and no candidate either

    @property
    def judge_before(self) -> str:
        """The judge as it was."""
        return self.judge.partition("#")[0]


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo: field and text; `bootstrapped` where it is the judge's own reply, which met the label."""

    fields: tuple[tuple[str, str], ...]
    bootstrapped: bool


@dataclass(frozen=True, slots=True)
class Prompts:
    """Instructions before (None where nobody wrote them down) and after, and the demos."""

    before: str | None
    after: str
    demos: tuple[Demo, ...]


def read_prompts(experiment: Experiment) -> Prompts:
    """The prompt of an optimised judge, from its compiled program."""
    path = experiment.program
    try:
        program = read_json(path, absent="there is no compiled program here")
        after = str(program["signature"]["instructions"])
        demos = tuple(_demo(dict(demo)) for demo in program["demos"])
    except (OSError, InputError, ValueError, KeyError, TypeError) as error:
        how = "delete it and run the same command again"
        raise InputError(f"{path}: the compiled program cannot be read ({error}); {how}") from error
    before = kept_judges(experiment).get(str(experiment.config["judges"][0]["judge"]))
    return Prompts(before.instructions if before else None, after, demos)


def _demo(demo: dict[str, Any]) -> Demo:
    fields = [
        (name.replace("_", " "), f"{value:g}" if isinstance(value, float) else str(value))
        for name, value in demo.items()
        if name != "augmented"
    ]
    return Demo(tuple(fields), bool(demo.get("augmented")))
