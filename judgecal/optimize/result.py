"""What an optimisation came to: the object of `optimize`, and how it is made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.experiment import Experiment, Look, Table, full_name, run_line, scale_notes
from judgecal.experiment.agreement import labelled_by, unscored_counts_as
from judgecal.judges import JudgeName, PromptJudge
from judgecal.optimize.decision import CANNOT_TELL, Choice, Confirmation, OnTest, Scored
from judgecal.records import Estimate, Result
from judgecal.signatures import load_signature
from judgecal.workspace import Workspace

__all__ = ["Demo", "OnDev", "OptimizeResult", "OptimizedOn", "Outcome", "Prompts", "Tried", "read_prompts"]


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
        parts = ", ".join(
            f"{split} {n:,} items on {self.n_groups[split]:,} questions" for split, n in self.n_items.items()
        )
        return f"{self.set}@{self.sha256[:12]}: {parts}; {self.scale} labels{labelled_by(self.labels_by)}"

    @property
    def unscored_counts_as(self) -> str:
        """What an unscored item counts as."""
        return unscored_counts_as(self.scale)


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate on dev.

    Attributes:
        name: `before` for the judge as it was.
        n_demos, judge_fingerprint: of its judge.
        rated_in_training, unusable_in_training: replies that its making asked for, and those without a verdict.
        as_wrong: the deciding metric, an unscored item counted as wrong.
        recalibrated: the same once recalibrated; None on labels without order.
    """

    name: str
    n_demos: int
    judge_fingerprint: str
    rated_in_training: int
    unusable_in_training: int
    as_wrong: Estimate
    recalibrated: Estimate | None


@dataclass(frozen=True, slots=True)
class OnDev:
    """Metric -> Estimate of the judge as it was and of the one that was taken, and everything that was tried."""

    before: dict[str, Estimate]
    after: dict[str, Estimate]
    candidates: tuple[Tried, ...]


@dataclass(frozen=True, slots=True)
class OptimizeResult(Result):
    """What `optimize` came to.

    Attributes:
        experiment, optimizer: slug, and the optimiser's own name.
        reflection_model: alias of the model that wrote instructions; None where none did.
        judge: the judge that it made, `signature@model#experiment`.
        metric: what was climbed and decided on.
        decision, why: of the confirmation; better, worse, rescaled only or cannot tell.
        program: path of the compiled program.
        chosen, choice: the candidate that was taken on dev, and why.
        test_looks, test_look: decisions on these test labels so far; this one in words, None where test stayed sealed.
        usd: money spent by this run.
    """

    experiment: str
    optimizer: str
    reflection_model: str | None
    judge: str
    metric: str
    gold: OptimizedOn
    dev: OnDev
    test: OnTest
    decision: str
    why: str
    program: str
    n_demos: int
    instructions_changed: bool
    chosen: str
    choice: str
    test_looks: int
    test_look: str | None
    usd: float
    notes: tuple[str, ...]
    run_line: str

    @property
    def judge_before(self) -> str:
        """The judge as it was."""
        return self.judge.partition("#")[0]


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
        look, confirmation: the look at test and what it said; None where test stayed sealed.
        looks: decisions on the test labels so far, this one included.
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
    confirmation: Confirmation | None
    looks: int
    usd: float

    def result(self) -> OptimizeResult:
        """The object of the contract."""
        before, after, test = self.scored[0], self.choice.taken, self.confirmation
        gold = self.tables["dev"].gold
        instructions = self.judge.signature.cls.instructions
        return OptimizeResult(
            experiment=self.experiment.slug,
            optimizer=self.optimizer,
            reflection_model=self.reflection,
            judge=f"{self.judge.signature.name}@{self.judge.model.alias}#{self.experiment.slug}",
            metric=self.metric,
            gold=self._gold(),
            dev=OnDev(
                before.estimates, after.estimates, tuple(_tried(one, self.metric) for one in self.scored)
            ),
            test=test.numbers if test else OnTest(),
            decision=test.decision if test else CANNOT_TELL,
            why=_why(test, after, before.estimates[self.metric]),
            program=_shown(self.experiment.program),
            n_demos=len(after.judge.demos),
            instructions_changed=after.judge.compiled.instructions != instructions,
            chosen=after.name,
            choice=self.choice.why,
            test_looks=self.looks,
            test_look=self.look.sentence(gold.name) if self.look else None,
            usd=self.usd,
            notes=(*scale_notes(gold.scale, [after.column]), *self._fit_notes()),
            run_line=self._run_line(),
        )

    def _gold(self) -> OptimizedOn:
        gold = self.tables["dev"].gold
        return OptimizedOn(
            set=gold.name,
            sha256=gold.sha256,
            scale=str(gold.scale),
            labels_by=gold.card.labels_by,
            n_items={split: len(table.items) for split, table in self.tables.items()},
            n_groups={split: len(set(table.groups)) for split, table in self.tables.items()},
        )

    def _fit_notes(self) -> list[str]:
        """Where the maps of the recalibration were fitted, if not on all of train and dev."""
        if self.confirmation is None or self.choice.taken.candidate is None or self.reflection is None:
            return []
        n = len(set(self.tables["dev"].groups))
        return [
            f"the optimiser saw every label of train, so both judges are recalibrated on dev alone ({n} questions)"
        ]

    def _run_line(self) -> str:
        split = "test" if self.confirmation else "dev"
        extra = {"optimizer": self.optimizer, "program": self.choice.taken.judge.fingerprint[:8]}
        if self.reflection:
            extra["reflection"] = self.reflection
        return run_line(self.tables[split], split, [full_name(self.judge)], extra)


def _tried(one: Scored, metric: str) -> Tried:
    candidate = one.candidate
    return Tried(
        name=one.name,
        n_demos=len(one.judge.demos),
        judge_fingerprint=one.judge.fingerprint,
        rated_in_training=candidate.rated if candidate else 0,
        unusable_in_training=candidate.unusable if candidate else 0,
        as_wrong=one.estimates[metric],
        recalibrated=one.recalibrated,
    )


def _why(test: Confirmation | None, after: Scored, before: Estimate) -> str:
    if after.candidate is None and before.value is None:
        return f"dev cannot choose ({before.reason}), so the judge stays as it was"
    if after.candidate is None:
        return "no candidate was better on dev, so the judge stays as it was"
    return test.why if test else "test was not looked at (--no-final)"


def _shown(path: Path) -> str:
    """A path as results name it: relative to the current folder where it lies below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo: field and text; `bootstrapped` where it is the judge's own reply, which met the label."""

    fields: tuple[tuple[str, str], ...]
    bootstrapped: bool


@dataclass(frozen=True, slots=True)
class Prompts:
    """Instructions before (None where the signature is gone or has changed) and after, and the demos."""

    before: str | None
    after: str
    demos: tuple[Demo, ...]


def read_prompts(workspace: Workspace, experiment: Experiment) -> Prompts:
    """The prompt of an optimised judge, from its compiled program.

    Raises:
        InputError: the program cannot be read.
    """
    path = experiment.program
    try:
        program = json.loads(path.read_text(encoding="utf-8"))
        after = str(program["signature"]["instructions"])
        demos = tuple(_demo(dict(demo)) for demo in program["demos"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: the compiled program cannot be read ({error}); delete it and run the same command again"
        ) from error
    return Prompts(_instructions(workspace, experiment.config["judges"][0]), after, demos)


def _demo(demo: dict[str, Any]) -> Demo:
    fields = [
        (name.replace("_", " "), f"{value:g}" if isinstance(value, float) else str(value))
        for name, value in demo.items()
        if name != "augmented"
    ]
    return Demo(tuple(fields), bool(demo.get("augmented")))


def _instructions(workspace: Workspace, judge: Mapping[str, Any]) -> str | None:
    """Those of the signature as it was before, if it still is what it was."""
    try:
        loaded = load_signature(JudgeName.parse(str(judge["judge"])).signature, workspace=workspace)
    except InputError:
        return None  # the document says so
    return str(loaded.cls.instructions) if loaded.fingerprint == judge["signature_fingerprint"] else None
