"""Candidates: compiled programs to be held against each other on dev.

DSPy's optimisers make them from train alone; which one is taken is decided by our own scoring of dev, so that a
failed call is a row with an error and not a silent zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judgecal.errors import InputError
from judgecal.models import ModelSpec
from judgecal.optimize.demos import FEWSHOT, LABELED
from judgecal.optimize.instructions import GEPA, MIPRO, SIMBA
from judgecal.optimize.optimizer import Optimizer
from judgecal.optimize.training import Candidate, Training, reflection_spec

__all__ = [
    "OPTIMIZERS",
    "Candidate",
    "Training",
    "auto_optimizer",
    "candidates",
    "check_reflection",
    "optimizer_settings",
    "reflection_config",
]

OPTIMIZERS: Mapping[str, Optimizer] = {
    "labeled": LABELED,
    "fewshot": FEWSHOT,
    "mipro": MIPRO,
    "gepa": GEPA,
    "simba": SIMBA,
}
"""Optimisers by name; `auto` picks one of them."""


def candidates(optimizer: str, training: Training) -> Iterator[Candidate]:
    """The candidates of an optimiser, by its name in `OPTIMIZERS`, made one by one."""
    return OPTIMIZERS[optimizer].make(training)


def optimizer_settings(optimizer: str) -> dict[str, Any]:
    """What an optimiser will try, for an experiment's configuration: a change here is another experiment."""
    return dict(OPTIMIZERS[optimizer].settings)


def auto_optimizer(model: ModelSpec) -> str:
    """What `auto` stands for: `labeled`, for every model.

    It is the one that can be defended without knowing the model: it makes no calls of its own, so its whole cost is
    that of scoring; people's labels go into the prompt as they are, so there is no reply that it could fail on; and a
    program of it is trained on the questions of its demos alone, so that the rest of train still counts in `score`.
    The others spend hundreds of calls on gains that a train split of some tens of questions rarely can tell from
    noise. They are for a set large enough that dev and test can tell, and for a judge that demos do not mend.
    """
    return "labeled"


def check_reflection(optimizer: str, judge: ModelSpec, reflection: ModelSpec | None) -> None:
    """Refuse a model that cannot write instructions, and one that nobody would ask.

    Raises:
        InputError: says which option to give or to leave out.
    """
    reflects = OPTIMIZERS[optimizer].reflects
    if reflection is not None and not reflects:
        able = ", ".join(name for name, one in OPTIMIZERS.items() if one.reflects)
        raise InputError(
            f"--reflection-model: optimizer {optimizer} writes no instructions; leave it out, or choose "
            f"--optimizer {able}"
        )
    if reflects and (reflection or judge).embedded:
        raise InputError(
            f"--optimizer {optimizer}: the embedded model cannot write instructions; give a model that can with "
            "--reflection-model, or choose --optimizer labeled or fewshot"
        )


def reflection_config(optimizer: str, judge: ModelSpec, reflection: ModelSpec | None) -> dict[str, Any]:
    """What a configuration says of the model that writes instructions; nothing where none does.

    Raises:
        InputError: see `check_reflection`.
    """
    check_reflection(optimizer, judge, reflection)
    if not OPTIMIZERS[optimizer].reflects:
        return {}
    writer = reflection_spec(reflection or judge)
    return {"reflection_model": {"model": writer.alias, **writer.settings()}}
