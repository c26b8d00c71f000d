"""What `answer` came to, and what later runs take from it: contaminated questions, and where the points go.

Contamination: questions that a model answers right without any document say nothing of how it reads.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgecal.artefacts import toml_text
from judgecal.errors import InputError
from judgecal.experiment import Experiment, read_config
from judgecal.experiment.unread import Unread
from judgecal.judges import JudgeName
from judgecal.rag.answering.answerer import GradedBy
from judgecal.rag.answering.outcomes import Outcome, SystemEntry
from judgecal.rag.answering.pairwise import (
    DifferingQuestion,
    OneQuestion,
    SystemLoss,
    SystemPair,
    system_loss,
)
from judgecal.records import Result
from judgecal.scale import Scale
from judgecal.workspace import Workspace

_MIDDLE = 50.0
_OTHER = {"controlled": "topk", "topk": "controlled"}
Percentages = Mapping[str, Mapping[str, Sequence[float | None]]]


@dataclass(frozen=True, slots=True)
class AskedOf:
    """The gold set, and how many of its questions were asked."""

    set: str
    sha256: str
    n_questions: int


@dataclass(frozen=True, slots=True)
class NotAsked:
    """A question that could not be asked with such a context, and why."""

    question: str
    kind: str
    message: str
    sealed: bool = False  # a question of test: it is counted, and shown nowhere


@dataclass(frozen=True, slots=True)
class KnownQuestion:
    """A question that some system answered right in closed book, and by whom; one of test has no text."""

    question: str
    text: str | None
    systems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contaminated:
    """What a closed-book run says of the answerable questions."""

    right_at: float  # the percentage from which an answer is right
    n_answerable: int
    n_unscored: int  # answers that could not be rated: whether those questions are known is not known
    questions: tuple[KnownQuestion, ...]


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Retrieval or answerer? The slugs of the controlled and the naive (`topk`) run, and an entry a
    system."""

    experiments: dict[str, str]
    systems: tuple[SystemLoss, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """The questions that a closed-book run found contaminated, whichever of its systems knew them."""

    experiment: str
    groups: tuple[str, ...]
    systems: tuple[str, ...] = field(default=(), metadata={"json": False})  # who was asked there
    notes: tuple[str, ...] = field(default=(), metadata={"json": False})

    def strangers(self, models: Sequence[str]) -> list[str]:
        """Which of these models took no part in that run, so that what they know is not known."""
        there = {name.model for name in map(JudgeName.read, self.systems) if name is not None}
        return [model for model in dict.fromkeys(models) if model not in there]


@dataclass(frozen=True, slots=True)
class AnswerResult(Result):
    """What `answer` came to with one kind of context.

    `percentages` (system -> group -> one a repeat, of the questions that it was asked) stand in
    `summary.json` alone.
    """

    experiment: str
    gold: AskedOf
    judge: str
    rated_by: GradedBy
    context: str  # controlled, topk, none or recorded
    context_options: dict[str, bool | int | str]
    systems: tuple[SystemEntry, ...]
    n_expected: int
    n_unscored: int
    comparisons: tuple[SystemPair, ...]
    most_different: tuple[DifferingQuestion, ...]
    not_asked: tuple[NotAsked, ...]
    contaminated: Contaminated | None  # of a closed-book run alone
    dropped: Dropped | None
    decomposition: Decomposition | None  # where the other of controlled and topk was run too
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    run_line: str
    question: OneQuestion | None = None  # the one that was asked to be shown
    also: tuple[AnswerResult, ...] = ()  # of further contexts that the same command ran
    percentages: dict[str, dict[str, tuple[float | None, ...]]] = field(
        default_factory=dict, metadata={"json": False}
    )
    unread: Unread | None = None  # why, where no answer could be rated

    @property
    def without_reference(self) -> bool:
        """Whether the reference document was left out, so that a refusal is right."""
        return bool(self.context_options.get("without_reference"))

    def stored(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return {**self.as_json(), "percentages": self.percentages}


def right_from(people: Scale) -> float:
    """The percentage from which an answer counts as right: the people's own mark on a percentage scale, else
    50."""
    return people.pass_at if people.kind == "percentage" and people.pass_at is not None else _MIDDLE


def contaminated(
    outcomes: Sequence[Outcome], *, right_at: float, sealed: Collection[str] = ()
) -> Contaminated:
    """The answerable questions that some system answered right in a closed-book run; `sealed` groups without
    text."""
    answerable = [outcome for outcome in outcomes if outcome.question.answerable]
    known: dict[str, tuple[str, list[str]]] = {}
    for outcome in answerable:
        if outcome.percentage is not None and outcome.percentage >= right_at and not outcome.refused:
            _, systems = known.setdefault(outcome.question.group, (outcome.question.question, []))
            if outcome.system not in systems:
                systems.append(outcome.system)
    return Contaminated(
        right_at=right_at,
        n_answerable=len({outcome.question.group for outcome in answerable}),
        n_unscored=sum(outcome.percentage is None for outcome in answerable),
        questions=tuple(
            KnownQuestion(group, None if group in sealed else text, tuple(names))
            for group, (text, names) in known.items()
        ),
    )


def read_contaminated(experiment: Experiment, *, gold: str, gold_sha256: str) -> Dropped:
    """What a closed-book run found.

    Raises:
        InputError: it is no finished closed-book run, or one on another gold set.
    """
    option, slug = f"--drop-contaminated {experiment.folder}", experiment.slug
    if not experiment.summary.exists():
        raise InputError(
            f"{option}: there is no summary.json: give a finished run of judgecal answer --contexts none"
        )
    if experiment.config.get("context", {}).get("kind") != "none":
        raise InputError(f"{option}: was no closed-book run: give one of judgecal answer --contexts none")
    result = experiment.read_summary(AnswerResult)
    known = result.contaminated
    if known is None or result.gold.set != gold:
        raise InputError(f"{option}: was run on {result.gold.set}, and this is {gold}")
    notes = []
    if result.gold.sha256 != gold_sha256:
        notes.append(f"{gold} has changed since closed-book run {slug}: questions were matched by their ids")
    if known.n_unscored:
        unknown = "whether those questions are contaminated is not known, and they stay"
        notes.append(f"{known.n_unscored} answers of closed-book run {slug} could not be rated: {unknown}")
    groups, systems = (row.question for row in known.questions), (row.system for row in result.systems)
    return Dropped(slug, tuple(groups), tuple(systems), tuple(notes))


def decomposition(
    workspace: Workspace, experiment: Experiment, percentages: Percentages, *, seed: int = 0
) -> Decomposition | None:
    """What retrieval and the answerer each cost, where the other context was run with the same configuration.

    `percentages` are those of the experiment at hand; the seed is of the sign flips.
    """
    kind = experiment.config["context"]["kind"]
    other = _partner(workspace, experiment) if kind in _OTHER and _is_full(experiment.config) else None
    if other is None:
        return None
    runs = {kind: percentages, _OTHER[kind]: other.read_summary(AnswerResult).percentages}
    naive = runs["topk"]
    losses = [
        system_loss(system, ours, naive[system], seed=seed)
        for system, ours in runs["controlled"].items()
        if system in naive
    ]
    known = tuple(loss for loss in losses if loss is not None)
    return Decomposition({kind: experiment.slug, _OTHER[kind]: other.slug}, known) if known else None


def _is_full(config: Mapping[str, Any]) -> bool:
    """Whether the reference document was handed over, where it was meant to be."""
    return not config["context"].get("without_reference", False)


def _partner(workspace: Workspace, experiment: Experiment) -> Experiment | None:
    """The newest finished run that differs in its context alone."""
    wanted = _without_context(experiment.config)
    kind = _OTHER[experiment.config["context"]["kind"]]
    partners: list[tuple[float, Path]] = []
    for journal in workspace.experiments.glob("*/answers.jsonl"):
        path = journal.with_name("summary.json")
        try:
            config = read_config(journal.parent) if path.exists() else {}
        except InputError:
            continue  # no folder of an experiment
        same = config.get("context", {}).get("kind") == kind and _without_context(config) == wanted
        if same and _is_full(config):
            partners.append((path.stat().st_mtime, journal.parent))
    return Experiment(max(partners)[1], {}) if partners else None


def _without_context(config: Mapping[str, Any]) -> dict[str, Any]:
    """All of a configuration but its context, as TOML gives it back."""
    rest = {key: value for key, value in config.items() if key not in ("schema", "context")}
    return tomllib.loads(toml_text(rest))
