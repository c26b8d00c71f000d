"""DSPy's optimisers, under short names and DSPy's own. They make candidates from train alone; our own scoring
of dev chooses.

`labeled` and `fewshot` put examples into the prompt. `mipro`, `gepa`, `simba` and `copro` have another model
write instructions, and climb plain agreement over balanced examples; where DSPy wants a set to learn from and
another to climb on, train is cut in two by question. They hand over their best few programs, not the best
alone: by how much these differ on train is mostly noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import dspy
from dspy.teleprompt.gepa import InstructionProposer

from judgecal.commands import OPTIMIZER_NAMES
from judgecal.errors import InputError, JudgecalError, not_installed, unknown_name
from judgecal.models import ModelSpec
from judgecal.optimize.compiling import JudgeProgram, compiling
from judgecal.optimize.program_calls import ProgramCalls, program_lm
from judgecal.optimize.training import CLIMBED_ON, Candidate, Plan, Training

# What each tries, most of it as DSPy names it; an experiment's configuration has it.
_LABELED: dict[str, Any] = {"sizes": [4, 8, 16, 32], "draws": 3}
_FEWSHOT: dict[str, Any] = {"max_bootstrapped_demos": 4, "max_labeled_demos": 12, "draws": 3}
# Its candidates: instructions, the present ones among them, and sets of demos, none among them.
_MIPRO: dict[str, Any] = {"num_candidates": 5, "max_bootstrapped_demos": 3, "max_labeled_demos": 8}
_GEPA: dict[str, Any] = {"calls": 360, "climbed_on": CLIMBED_ON, "minibatch": 5}
_AUTO: dict[str, Any] = {"climbed_on": 16, "minibatch": 12}
_SIMBA: dict[str, Any] = {"max_steps": 4, "num_candidates": 4, "bsize": 16, "max_demos": 3}
_COPRO: dict[str, Any] = {"breadth": 4, "depth": 2}
_HANDED_OVER = 3
_IDLE_ROUNDS = 8  # of GEPA, whose batches without an error ask for nothing


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an optimiser can take at most, by its own settings."""

    examples: Sequence[tuple[int, int]]  # how many, and which draw, in each program that is scored on dev
    task: int = 0  # calls of the judge's model while it works
    reflection: int = 0  # calls of the model that writes instructions
    written: int = 0  # replies of that model which one judge's instructions can hold


@dataclass(frozen=True, slots=True)
class Optimizer:
    """How one optimiser makes its candidates, and what it takes."""

    make: Callable[[Training], Iterable[Candidate]]
    settings: Mapping[str, Any]  # what it will try, for an experiment's configuration
    bounds: Callable[[Training], Bounds]
    reflects: bool = False  # whether it uses a model that writes instructions


# --- examples alone


def _labeled(training: Training) -> Iterator[Candidate]:
    """Demos that carry people's labels: how many, and which, is for dev to say."""
    for size, draw in _labeled_bounds(training).examples:
        yield labelled(training, size, draw)


def _labeled_bounds(training: Training) -> Bounds:
    sizes = [size for size in _LABELED["sizes"] if size < len(training.items)] or [len(training.items)]
    return Bounds([(size, draw) for draw in range(_LABELED["draws"]) for size in sizes])


def labelled(training: Training, size: int, draw: int, on: Candidate | None = None) -> Candidate:
    """Return a Candidate of a Training with `size` examples of a `draw`, on a Candidate or the judge."""
    student = (on or training.judge).program.deepcopy()
    compiled = dspy.LabeledFewShot(k=size).compile(student, trainset=training.examples(draw), sample=False)
    name = f"labeled-{size}-draw{draw + 1}"
    return training.candidate(f"{on.name}+{name}" if on else name, compiled, saw_all=on is not None)


def _fewshot(training: Training) -> Iterator[Candidate]:
    """Demos with the judge's own reasoning where its verdict met the label, filled up with labels."""
    for draw in range(_FEWSHOT["draws"]):
        optimizer = dspy.BootstrapFewShot(
            metric=training.metric(),
            max_bootstrapped_demos=_FEWSHOT["max_bootstrapped_demos"],
            max_labeled_demos=min(_FEWSHOT["max_labeled_demos"], len(training.items)),
            max_errors=1,
        )
        with compiling(training, "fewshot", calls_at_most=len(training.items)):
            compiled = optimizer.compile(JudgeProgram(training.judge), trainset=training.examples(draw))
        yield training.candidate(f"fewshot-draw{draw + 1}", compiled.judge)


# --- those that have instructions written


_Search = Callable[[Training, dspy.LM, ProgramCalls], Iterable[dspy.Module]]


def _written(training: Training, name: str, search: _Search, calls_at_most: int) -> list[Candidate]:
    """Return the first few programs of a search that differ from the judge as it was, as candidates."""
    with compiling(training, name, calls_at_most=calls_at_most) as calls:
        writer = program_lm(training.writer, calls, purpose="reflection")
        programs = [program.judge for program in search(training, writer, calls)]
    by_content = {_content(program): program.deepcopy() for program in programs}
    by_content.pop(_content(training.judge.program), None)
    new = enumerate([*by_content.values()][:_HANDED_OVER], 1)
    return [training.candidate(f"{name}-{number}", program, saw_all=True) for number, program in new]


def _content(program: dspy.Predict) -> str:
    return str((program.signature.instructions, [*map(dict, program.demos)]))


def _by_instructions(
    name: str,
    search: _Search,
    settings: Mapping[str, Any],
    *,
    passes: int = 0,
    task: int = 0,
    demos: int = 4,
    **most: int,
) -> Optimizer:
    """A search that calls the judge `passes` times on each example, and `task` times more."""

    def bounds(training: Training) -> Bounds:
        task_calls = task + passes * min(CLIMBED_ON, len(training.items))
        return Bounds([(demos, 0)] * _HANDED_OVER, task_calls, **{"written": 1, **most})

    def make(training: Training) -> list[Candidate]:
        most = bounds(training)
        return _written(training, name, search, most.task + most.reflection)

    return Optimizer(make, {"climbed_on": CLIMBED_ON, **settings}, bounds, reflects=True)


def _best_first(compiled: Any) -> list[dspy.Module]:
    return [candidate["program"] for candidate in compiled.candidate_programs]


def _mipro(training: Training, writer: dspy.LM, _calls: ProgramCalls) -> list[dspy.Module]:
    """Instructions written from a summary of the data, and sets of demos, searched on train."""
    learn, climb = training.halves()
    student = JudgeProgram(training.judge)
    optimizer = dspy.MIPROv2(
        metric=training.metric(),
        prompt_model=writer,
        auto=None,
        max_errors=1,
        seed=training.seed,
        **{**_MIPRO, "max_labeled_demos": min(_MIPRO["max_labeled_demos"], len(learn))},
    )
    compiled = optimizer.compile(student, trainset=learn, valset=climb, num_trials=10, minibatch=False)
    return _best_first(compiled)


def _gepa(
    training: Training, writer: dspy.LM, calls: ProgramCalls, settings: Mapping[str, Any] = _GEPA
) -> list[dspy.Module]:
    """Instructions rewritten by reflection on a few judged answers, and on what people said of them; the best
    first. The calls of both models are counted as they are asked for."""
    learn, climb = training.halves(climbed_on=settings["climbed_on"])
    batch = min(int(settings["minibatch"]), len(learn))
    # a batch before and after, a reply of who writes, and a pass over the set that is climbed on
    step, rounds = 2 * batch + 1 + len(climb), list[int]()

    def stop(_state: Any) -> bool:
        rounds.append(calls.n_asked)
        idle = rounds[-_IDLE_ROUNDS:].count(rounds[-1]) == _IDLE_ROUNDS
        return idle or rounds[-1] + step > settings["calls"]

    optimizer = dspy.GEPA(
        metric=training.metric(),
        max_metric_calls=settings["calls"] * step,  # of the metric, whose calls for one request are one call
        reflection_lm=writer,
        instruction_proposer=InstructionProposer(adapter=dspy.settings.adapter),
        reflection_minibatch_size=batch,
        use_merge=False,
        track_stats=True,
        warn_on_score_mismatch=False,
        seed=training.seed,
        gepa_kwargs={"stop_callbacks": stop},
    )
    climbed = optimizer.compile(JudgeProgram(training.judge), trainset=learn, valset=climb).detailed_results
    pairs = zip(climbed.val_aggregate_scores, climbed.candidates, strict=True)
    return [program for _, program in sorted(pairs, key=lambda pair: -pair[0])]


def _gepa_calls(settings: Mapping[str, Any]) -> dict[str, int]:
    """A round takes a batch of answers, before and after, to one reply of who writes."""
    writes = settings["calls"] // (2 * settings["minibatch"])
    return {"task": settings["calls"] - writes, "reflection": writes, "written": int(writes > 0)}


def _simba(training: Training, writer: dspy.LM, _calls: ProgramCalls) -> list[dspy.Module]:
    """Advice and demos drawn from the answers on which the judge differs most with itself."""
    examples = training.balanced(training.items)
    optimizer = dspy.SIMBA(
        metric=partial(training.metric(), pred_name="judge"),  # score and feedback at once
        prompt_model=writer,
        **{**_SIMBA, "bsize": min(_SIMBA["bsize"], len(examples))},
    )
    return _best_first(optimizer.compile(JudgeProgram(training.judge), trainset=examples, seed=training.seed))


def _copro(training: Training, writer: dspy.LM, _calls: ProgramCalls) -> list[dspy.Module]:
    """Several instructions written anew, then again from the best of them and their scores."""
    optimizer = dspy.COPRO(prompt_model=writer, metric=training.metric(), **_COPRO)
    student, examples = JudgeProgram(training.judge), training.balanced(training.items)
    quietly = {"display_progress": False}
    return _best_first(optimizer.compile(student, trainset=examples, eval_kwargs=quietly))


# --- by itself


def _auto(training: Training) -> list[Candidate]:
    """GEPA's instructions, the best of them with people's examples, and examples alone."""
    plan, written = training.plan, list[Candidate]()
    if plan.gepa_calls:
        search = partial(_gepa, settings={**_AUTO, "calls": plan.gepa_calls})
        try:
            written = _written(training, "gepa", search, plan.gepa_calls)
            if not written:
                training.remarks.append("GEPA wrote no instruction that did better on train")
        except JudgecalError as error:
            what = "GEPA ended without an instruction, and examples alone were tried"
            training.remarks.append(f"{what}: {error}")
    joined = [labelled(training, min(16, plan.demos), 0, best) for best in written[:1]]
    alone = [labelled(training, size, draw) for size, draw in _auto_sizes(plan)]
    return [*written[:1], *joined, *alone[:1], *written[1:2], *alone[1:]][: plan.candidates]


def _auto_sizes(plan: Plan) -> list[tuple[int, int]]:
    """Sizes and draws of examples alone, the first wanted first."""
    return [draw for draw in ((32, 1), (16, 0), (8, 1), (16, 2), (4, 1)) if draw[0] <= plan.demos]


def _auto_bounds(training: Training) -> Bounds:
    plan = training.plan
    sizes = sorted([(min(16, plan.demos), 0), *_auto_sizes(plan)], reverse=True)
    return Bounds(sizes[: plan.candidates], **_gepa_calls({**_AUTO, "calls": plan.gepa_calls}))


OPTIMIZERS: Mapping[str, Optimizer] = {
    "auto": Optimizer(_auto, _AUTO, _auto_bounds, reflects=True),
    "labeled": Optimizer(_labeled, _LABELED, _labeled_bounds),
    "fewshot": Optimizer(_fewshot, _FEWSHOT, lambda training: Bounds([(12, 0)] * 3, 3 * len(training.items))),
    # three sets of demos, bootstrapped on one half of train, and eleven combinations on the other
    "mipro": _by_instructions("mipro", _mipro, _MIPRO, passes=14, reflection=26, demos=8),
    "gepa": _by_instructions("gepa", _gepa, _GEPA, **_gepa_calls(_GEPA)),
    # in each of four steps a batch of 16 is judged nine times, and all at the end of each and at the start
    "simba": _by_instructions("simba", _simba, _SIMBA, passes=5, task=576, reflection=64, written=4),
    "copro": _by_instructions("copro", _copro, _COPRO, passes=8, reflection=8),
}
"""Optimisers by name."""


def resolve_optimizer(name: str, model: ModelSpec) -> str:
    """Return an optimizer's name in `OPTIMIZERS`, for a name (judgecal's or DSPy's) and a ModelSpec.

    `auto` is `labeled` for the embedded model, which reads no instructions and whose calls are free.
    """
    if name not in OPTIMIZER_NAMES:
        raise unknown_name("optimizer", name, list(OPTIMIZER_NAMES))
    name = OPTIMIZER_NAMES[name]
    if name == "mipro" and find_spec("optuna") is None:
        raise not_installed(
            "--optimizer mipro needs", "optuna", "mipro", instead="choose --optimizer labeled or gepa"
        )
    return "labeled" if name == "auto" and model.embedded else name


def check_reflection(optimizer: str, judge: ModelSpec, reflection: ModelSpec | None) -> None:
    """By optimizer name and judge's ModelSpec, refuse a reflection ModelSpec that writes no instructions."""
    reflects = OPTIMIZERS[optimizer].reflects
    if reflection is not None and not reflects:
        able = ", ".join(name for name, optimizer_ in OPTIMIZERS.items() if optimizer_.reflects)
        raise InputError(
            f"--reflection-model: optimizer {optimizer} writes no instructions; leave it out, or choose "
            f"--optimizer {able}"
        )
    if reflects and (reflection or judge).embedded:
        raise InputError(
            f"--optimizer {optimizer}: the embedded model cannot write instructions; give a model that can "
            "with --reflection-model, or choose --optimizer labeled or fewshot"
        )
