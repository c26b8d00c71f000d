"""What a run leaves for others: contaminated questions, and where the points of two runs go."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.answering.outcomes import Outcome
from judgecal.answering.pairwise import decomposed
from judgecal.errors import InputError
from judgecal.experiment.folder import Experiment, read_config
from judgecal.scale import Scale
from judgecal.workspace import Workspace, check_schema, toml_text

__all__ = ["Dropped", "contaminated", "decomposition", "read_contaminated", "right_from"]

_MIDDLE = 50.0


def right_from(people: Scale) -> float:
    """The percentage from which an answer counts as right: the people's own mark on a percentage scale, else 50."""
    return people.pass_at if people.kind == "percentage" and people.pass_at is not None else _MIDDLE


def contaminated(outcomes: Sequence[Outcome], *, right_at: float) -> dict[str, Any]:
    """The answerable questions that some system answered right in closed book, and by whom.

    Args:
        outcomes: of a closed-book run.
        right_at: the percentage from which an answer is right.

    Returns:
        The mark, the questions with the systems that know them, and how many answers could not be rated: whether
        those are known is not known.
    """
    asked = [outcome for outcome in outcomes if outcome.question.answerable]
    known: dict[str, tuple[str, list[str]]] = {}
    for outcome in asked:
        if outcome.percentage is not None and outcome.percentage >= right_at and not outcome.refused:
            _, systems = known.setdefault(outcome.question.group, (outcome.question.question, []))
            if outcome.system not in systems:
                systems.append(outcome.system)
    return {
        "right_at": right_at,
        "n_answerable": len({outcome.question.group for outcome in asked}),
        "n_unscored": sum(outcome.percentage is None for outcome in asked),
        "questions": [{"question": g, "text": text, "systems": names} for g, (text, names) in known.items()],
    }


@dataclass(frozen=True, slots=True)
class Dropped:
    """The questions that a closed-book run found contaminated.

    Attributes:
        experiment: that run.
        groups: the questions, whichever of its systems knew them.
        systems: who was asked there.
        notes: what the reader must know of them.
    """

    experiment: str
    groups: tuple[str, ...]
    systems: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def config(self) -> dict[str, Any]:
        """What a configuration says of it."""
        return {"experiment": self.experiment, "groups": list(self.groups)}

    def strangers(self, models: Sequence[str]) -> list[str]:
        """Which of these models took no part in that run, so that what they know is not known."""
        return [
            model
            for model in dict.fromkeys(models)
            if not any(system.endswith(f"@{model}") for system in self.systems)
        ]


def read_contaminated(folder: Path, *, gold: str, gold_sha256: str) -> Dropped:
    """What a closed-book run found, from its summary.

    Raises:
        InputError: it is no finished closed-book run, or one on another gold set.
    """
    path = folder / "summary.json"
    try:
        summary: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        check_schema(summary, str(path))
    except FileNotFoundError:
        raise InputError(
            f"--drop-contaminated {folder}: there is no {path.name}: give a finished run of "
            "judgecal answer --context none"
        ) from None
    except ValueError as error:
        raise InputError(f"{path}: no JSON: {error}") from error
    found = summary.get("contaminated")
    if found is None:
        raise InputError(
            f"--drop-contaminated {folder}: was no closed-book run: give one of judgecal answer --context none"
        )
    if summary["gold"]["set"] != gold:
        raise InputError(
            f"--drop-contaminated {folder}: was run on {summary['gold']['set']}, and this is {gold}"
        )
    notes = []
    if summary["gold"]["sha256"] != gold_sha256:
        notes.append(
            f"{gold} has changed since closed-book run {folder.name}: questions were matched by their ids"
        )
    if found["n_unscored"]:
        notes.append(
            f"{found['n_unscored']} answers of closed-book run {folder.name} could not be rated: whether those "
            "questions are contaminated is not known, and they stay"
        )
    return Dropped(
        folder.name,
        tuple(row["question"] for row in found["questions"]),
        tuple(row["system"] for row in summary["systems"]),
        tuple(notes),
    )


_OTHER = {"controlled": "topk", "topk": "controlled"}


def decomposition(
    workspace: Workspace,
    experiment: Experiment,
    percentages: Mapping[str, Mapping[str, Sequence[float | None]]],
    *,
    seed: int = 0,
) -> dict[str, Any] | None:
    """What retrieval and the answerer each cost, where the other context was run with the same configuration.

    Args:
        workspace: where experiments are.
        experiment: the one at hand.
        percentages: system -> group -> its percentages, of the questions asked.
        seed: of the sign flips.

    Returns:
        The slugs of both runs and an entry a system; None where there is no such pair.
    """
    kind = experiment.config["context"]["kind"]
    other = _partner(workspace, experiment) if kind in _OTHER and _is_full(experiment.config) else None
    if other is None:
        return None
    slug, theirs = other
    found = []
    for system, ours in percentages.items():
        if system in theirs:
            sides = (ours, theirs[system]) if kind == "controlled" else (theirs[system], ours)
            entry = decomposed(system, *sides, seed=seed)
            found += [] if entry is None else [entry]
    slugs = {kind: experiment.slug, _OTHER[kind]: slug}
    return {"experiments": slugs, "systems": found} if found else None


def _is_full(config: Mapping[str, Any]) -> bool:
    """Whether the reference document was handed over, where it was meant to be."""
    return not config["context"].get("without_reference", False)


def _partner(
    workspace: Workspace, experiment: Experiment
) -> tuple[str, Mapping[str, Mapping[str, Sequence[float | None]]]] | None:
    """The newest finished run that differs in its context alone, and its percentages."""
    wanted = _same(experiment.config)
    kind = _OTHER[experiment.config["context"]["kind"]]
    found: list[tuple[float, Path]] = []
    for journal in workspace.experiments.glob("*/answers.jsonl"):
        path = journal.with_name("summary.json")
        config = _config(journal.parent) if path.exists() else {}
        if config.get("context", {}).get("kind") == kind and _is_full(config) and _same(config) == wanted:
            found.append((path.stat().st_mtime, path))
    if not found:
        return None
    path = max(found)[1]
    summary: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    check_schema(summary, str(path))
    return path.parent.name, summary["percentages"]


def _config(folder: Path) -> dict[str, Any]:
    """The configuration of an answerer's run; empty where the folder holds none that can be read."""
    try:
        return read_config(folder)
    except InputError:
        return {}


def _same(config: Mapping[str, Any]) -> dict[str, Any]:
    """All of a configuration but its context, as TOML gives it back."""
    kept = {key: value for key, value in config.items() if key not in ("schema", "context")}
    return tomllib.loads(toml_text(kept))
