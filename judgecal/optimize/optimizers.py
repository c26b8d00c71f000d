"""DSPy's optimisers under their names. They make candidates from train alone; our own scoring of dev chooses.

`labeled` and `fewshot` put examples into the prompt. `mipro`, `gepa` and `simba` have another model write
instructions: each climbs plain agreement over balanced train examples (see `metric`), and where DSPy wants a
set to learn from and another to climb on, train is cut in two by question. Everything these make has seen
every train label. They hand over their best few programs, not the best alone: by how much these differ on
train is mostly noise, and dev chooses. The settings are frugal: a few hundred calls of the judge, and some
tens of the model that writes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any

import dspy
from dspy.teleprompt.gepa import InstructionProposer

from judgecal.errors import InputError, not_installed, unknown_name
from judgecal.models import ModelSpec
from judgecal.optimize.compiling import JudgeProgram, compiling
from judgecal.optimize.metric import AgreementMetric
from judgecal.optimize.training import CLIMBED_ON, Bounds, Candidate, Optimizer, Training

_LABELED_SIZES = (4, 8, 16, 32)
_DRAWS = 3
_BOOTSTRAPPED = 4
_BOOTSTRAP_LABELED = 12
# A reply is taken as an example of good judging where it lies within a tenth of the scale from the people.
GOOD_ENOUGH = 0.9


def _labeled(training: Training) -> Iterator[Candidate]:
    """Demos that carry people's labels: how many, and which, is for dev to say."""
    sizes = [size for size in _LABELED_SIZES if size < len(training.items)] or [len(training.items)]
    for draw in range(_DRAWS):
        ordered = training.examples(draw)
        for size in sizes:
            compiled = dspy.LabeledFewShot(k=size).compile(training.student(), trainset=ordered, sample=False)
            yield training.candidate(f"labeled-{size}-draw{draw + 1}", compiled)


def _fewshot(training: Training) -> Iterator[Candidate]:
    """Demos with the judge's own reasoning where its verdict met the label, filled up with labels."""
    for draw in range(_DRAWS):
        metric = training.metric()
        optimizer = dspy.BootstrapFewShot(
            metric=metric,
            metric_threshold=GOOD_ENOUGH,
            max_bootstrapped_demos=_BOOTSTRAPPED,
            max_labeled_demos=min(_BOOTSTRAP_LABELED, len(training.items)),
            max_errors=1,
        )
        with compiling(training, "fewshot", calls_at_most=len(training.items)):
            compiled = optimizer.compile(training.student(), trainset=training.examples(draw))
        made = training.candidate(f"fewshot-draw{draw + 1}", compiled)
        yield dataclasses.replace(made, rated=metric.calls, unusable=metric.unusable)


_HANDED_OVER = 3
_SUMMARY_BATCH = 10  # examples that MIPRO shows at once where it has the data described

# Candidates of MIPRO: instructions, the present ones among them, and sets of demos, none among them.
_MIPRO: dict[str, Any] = {
    "candidates": 5,
    "trials": 10,
    "bootstrapped": 3,
    "labeled": 8,
    "threshold": GOOD_ENOUGH,
}
_GEPA: dict[str, Any] = {"full_passes": 6, "steps": 12, "minibatch": 5}
_SIMBA: dict[str, Any] = {"steps": 4, "candidates": 4, "batch": 16, "demos": 3}


def _mipro(training: Training) -> Iterator[Candidate]:
    """Instructions written from a summary of the data, and sets of demos, searched on train."""
    metric = training.metric(weighted=False)
    learn, climb = training.halves()
    with compiling(training, "mipro", calls_at_most=_mipro_bounds(training).calls) as room:
        optimizer = dspy.MIPROv2(
            metric=metric,
            prompt_model=room.reflection,
            task_model=room.task,
            auto=None,
            num_candidates=_MIPRO["candidates"],
            max_bootstrapped_demos=_MIPRO["bootstrapped"],
            max_labeled_demos=min(_MIPRO["labeled"], len(learn)),
            metric_threshold=_MIPRO["threshold"],
            num_threads=room.threads,
            max_errors=1,
            seed=training.seed,
        )
        best = optimizer.compile(
            JudgeProgram(training.student()),
            trainset=learn,
            valset=climb,
            num_trials=_MIPRO["trials"],
            minibatch=False,
            view_data_batch_size=_SUMMARY_BATCH,
        )
    yield from _handed_over(
        training, "mipro", [one["program"] for one in best.candidate_programs], metric=metric
    )


def _mipro_bounds(training: Training) -> Bounds:
    learn, climb = training.halves()
    sets = _MIPRO["candidates"]
    combinations = min(_MIPRO["trials"] + 1, sets * sets)
    summary = min(10, math.ceil(len(learn) / _SUMMARY_BATCH)) + 1
    task = (sets - 2) * _distinct(learn) + combinations * _distinct(climb)
    return Bounds(_HANDED_OVER, task=task, reflection=summary + 3 * sets, written=1, demos=_MIPRO["labeled"])


def _gepa(training: Training) -> Iterator[Candidate]:
    """Instructions rewritten by reflection on a few judged answers, and on what people said of them."""
    metric = training.metric(weighted=False)
    learn, climb = training.halves()
    with compiling(training, "gepa", calls_at_most=_gepa_bounds(training).calls) as room:
        optimizer = dspy.GEPA(
            metric=metric,
            max_metric_calls=_gepa_calls(len(climb)),
            reflection_lm=room.reflection,
            instruction_proposer=InstructionProposer(adapter=room.adapter),
            reflection_minibatch_size=_minibatch(len(learn)),
            use_merge=False,  # there is one prompt: nothing to merge
            num_threads=room.threads,
            track_stats=True,
            warn_on_score_mismatch=False,
            seed=training.seed,
        )
        best = optimizer.compile(JudgeProgram(training.student()), trainset=learn, valset=climb)
    climbed = best.detailed_results
    ranked = sorted(
        zip(climbed.val_aggregate_scores, climbed.candidates, strict=True), key=lambda pair: -pair[0]
    )
    yield from _handed_over(training, "gepa", [program for _, program in ranked], metric=metric)


def _gepa_calls(n_climb: int) -> int:
    return int(_GEPA["full_passes"] * n_climb + 2 * _GEPA["steps"] * _GEPA["minibatch"])


def _minibatch(n_learn: int) -> int:
    return min(int(_GEPA["minibatch"]), n_learn)


def _gepa_bounds(training: Training) -> Bounds:
    learn, climb = training.halves()
    counted, batch = _gepa_calls(len(climb)), _minibatch(len(learn))
    # A round that has begun is finished: a batch before and after, and a pass over the set that is climbed
    # on.
    task = counted + 2 * batch + len(climb)
    return Bounds(_HANDED_OVER, task=task, reflection=math.ceil(counted / batch), written=1)


def _simba(training: Training) -> Iterator[Candidate]:
    """Advice and demos drawn from the answers on which the judge differs most with itself."""
    metric = training.metric(weighted=False)
    examples = training.balanced(training.items)
    with compiling(training, "simba", calls_at_most=_simba_bounds(training).calls) as room:
        optimizer = dspy.SIMBA(
            metric=metric.in_words,
            bsize=min(_SIMBA["batch"], len(examples)),
            num_candidates=_SIMBA["candidates"],
            max_steps=_SIMBA["steps"],
            max_demos=_SIMBA["demos"],
            prompt_model=room.reflection,
            num_threads=room.threads,
        )
        best = optimizer.compile(JudgeProgram(training.student()), trainset=examples, seed=training.seed)
    yield from _handed_over(
        training, "simba", [one["program"] for one in best.candidate_programs], metric=metric
    )


def _simba_bounds(training: Training) -> Bounds:
    examples = training.balanced(training.items)
    steps, batch = _SIMBA["steps"], min(_SIMBA["batch"], len(examples))
    task = steps * batch * (2 * _SIMBA["candidates"] + 1) + (steps + 1) * _distinct(examples)
    return Bounds(_HANDED_OVER, task=task, reflection=steps * batch, written=steps, demos=_SIMBA["demos"] + 1)


def _distinct(examples: Iterable[dspy.Example]) -> int:
    """A repeated example is the same request, and paid once."""
    return len({id(example) for example in examples})


def _handed_over(
    training: Training, name: str, programs: Iterable[JudgeProgram], *, metric: AgreementMetric
) -> Iterator[Candidate]:
    """The first few of the programs that differ from the judge as it was, and from each other."""
    made: list[Candidate] = []
    seen = {_content(training.judge.program)}
    for program in programs:
        content = _content(program.judge)
        if content not in seen and len(made) < _HANDED_OVER:
            seen.add(content)
            made.append(training.candidate(f"{name}-{len(made) + 1}", program.judge.deepcopy(), saw_all=True))
    if not made:  # it found nothing: what it rated is shown all the same
        made = [training.candidate(f"{name}-1", training.student(), saw_all=True)]
    yield dataclasses.replace(made[0], rated=metric.calls, unusable=metric.unusable)
    yield from made[1:]


def _content(program: dspy.Predict) -> tuple[str, str]:
    return program.signature.instructions, str(
        [sorted(dict(demo).items(), key=str) for demo in program.demos]
    )


OPTIMIZERS: Mapping[str, Optimizer] = {
    "labeled": Optimizer(
        _labeled, {"sizes": list(_LABELED_SIZES), "draws": _DRAWS}, lambda training: Bounds(candidates=0)
    ),
    "fewshot": Optimizer(
        _fewshot,
        {
            "bootstrapped": _BOOTSTRAPPED,
            "labeled": _BOOTSTRAP_LABELED,
            "threshold": GOOD_ENOUGH,
            "draws": _DRAWS,
        },
        lambda training: Bounds(_DRAWS, task=_DRAWS * len(training.items), demos=_BOOTSTRAP_LABELED),
    ),
    "mipro": Optimizer(_mipro, {**_MIPRO, "climbed_on": CLIMBED_ON}, _mipro_bounds, reflects=True),
    "gepa": Optimizer(_gepa, {**_GEPA, "climbed_on": CLIMBED_ON}, _gepa_bounds, reflects=True),
    "simba": Optimizer(_simba, {**_SIMBA, "climbed_on": CLIMBED_ON}, _simba_bounds, reflects=True),
}
"""Optimisers by name; `auto` is one of them."""

AUTO = "labeled"
"""What `auto` stands for, for every model.

It can be defended without knowing the model: it costs no calls but those of scoring, no reply can fail it,
and its programs are trained on the questions of their demos alone, so that the rest of train still counts in
`score`. The others spend hundreds of calls on gains that some tens of questions rarely can tell from noise:
they are for a set large enough that dev and test can tell, and for a judge that demos do not mend.
"""


def resolve_optimizer(name: str) -> str:
    """The optimiser's own name, also of `auto`."""
    if name != "auto" and name not in OPTIMIZERS:
        raise unknown_name("optimizer", name, ["auto", *OPTIMIZERS])
    if name == "mipro" and find_spec("optuna") is None:
        raise not_installed(
            "--optimizer mipro needs", "optuna", "mipro", instead="choose --optimizer labeled or gepa"
        )
    return AUTO if name == "auto" else name


def candidates(optimizer: str, training: Training) -> Iterator[Candidate]:
    """The candidates of an optimiser, by its name in `OPTIMIZERS`, made one by one."""
    return OPTIMIZERS[optimizer].make(training)


def check_reflection(optimizer: str, judge: ModelSpec, reflection: ModelSpec | None) -> None:
    """Refuse a model that cannot write instructions, and one that nobody would ask."""
    reflects = OPTIMIZERS[optimizer].reflects
    if reflection is not None and not reflects:
        able = ", ".join(name for name, one in OPTIMIZERS.items() if one.reflects)
        raise InputError(
            f"--reflection-model: optimizer {optimizer} writes no instructions; leave it out, or choose "
            f"--optimizer {able}"
        )
    if reflects and (reflection or judge).embedded:
        raise InputError(
            f"--optimizer {optimizer}: the embedded model cannot write instructions; give a model that can "
            "with --reflection-model, or choose --optimizer labeled or fewshot"
        )
