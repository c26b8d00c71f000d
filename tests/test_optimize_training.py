"""The parts of `optimize`: examples, metric, candidates, and what may be said of a difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import dspy
import pytest

from judgecal.commands import OPTIMIZER_NAMES
from judgecal.engine.budget import Budget
from judgecal.errors import InputError
from judgecal.goldset import GoldSet, load_gold
from judgecal.judges.prompt import PromptJudge
from judgecal.judges.protocol import item_inputs
from judgecal.models import ModelSpec
from judgecal.optimize import optimizers
from judgecal.optimize.optimizers import OPTIMIZERS, resolve_optimizer
from judgecal.optimize.training import (
    AgreementMetric,
    Candidate,
    Training,
    balanced,
    label_as_verdict,
    parts_by_question,
    to_example,
)
from judgecal.records import Item
from judgecal.scale import Label, Scale
from judgecal.signatures import LoadedSignature, load_signature
from judgecal.stats import agreement
from judgecal.workspace import Workspace
from tests.support.gold import made_gold, made_items, rated, write_signature

Verdict = tuple[str, str]  # annotation, arguments of the field
Load = Callable[[Verdict], LoadedSignature]
PERCENT: Verdict = ("int", "ge=0, le=100")
PERCENT_FLOAT: Verdict = ("float", "ge=0, le=100")
BOOL: Verdict = ("bool", "")
YES_NO: Verdict = ('Literal["no", "Yes"]', "")
GRADES: Verdict = ("Literal[0, 1, 2, 3, 4]", "")
WHOLE: Verdict = ("int", "ge=1, le=5")
WORDS: Verdict = ('Literal["good", "odd", "bad"]', "")


@pytest.fixture
def signature(workspace: Workspace) -> Load:
    """A judge's signature with a verdict of some type."""

    def load(verdict: Verdict) -> LoadedSignature:
        write_signature(workspace.root, "graded", [("grade", *verdict)])
        return load_signature("graded", workspace=workspace)

    return load


def items_of(rows: Sequence[tuple[str, str]]) -> list[Item]:
    return [Item(item_id, group, "Q?", "A.", ("R.",)) for item_id, group in rows]


# --- examples


@pytest.mark.parametrize(
    ("verdict", "people", "label", "expected"),
    [
        (PERCENT, "percentage", 67.5, 68),  # the nearest that an int can hold
        (PERCENT_FLOAT, "percentage", 67.5, 67.5),
        (PERCENT, "binary", 1.0, 100),
        (PERCENT, "binary", 0.0, 0),
        (PERCENT, "ordinal:0:4", 3.0, 75),
        (BOOL, "binary", 1.0, True),
        (BOOL, "binary", 0.0, False),
        (YES_NO, "binary", 1.0, "Yes"),
        (YES_NO, "binary", 0.0, "no"),
        (YES_NO, "percentage", 50.0, "Yes"),
        (YES_NO, "percentage", 49.0, "no"),
        (GRADES, "ordinal:0:4", 3.0, 3),
        (GRADES, "percentage", 55.0, 2),
        (GRADES, "binary", 1.0, 4),
        (WHOLE, "ordinal:1:5", 4.0, 4),
        (WHOLE, "percentage", 100.0, 5),
        (WORDS, "nominal", "odd", "odd"),
    ],
)
def test_a_label_as_a_verdict_of_every_type(
    signature: Load, verdict: Verdict, people: str, label: Label, expected: object
) -> None:
    found = label_as_verdict(signature(verdict), label, Scale.parse(people))
    assert found == expected and type(found) is type(expected)


def test_a_pass_mark_decides_between_two_words(signature: Load) -> None:
    people, loaded = Scale.parse("percentage", pass_at=75), signature(YES_NO)
    assert [label_as_verdict(loaded, label, people) for label in (74.0, 75.0)] == ["no", "Yes"]


def test_no_label_without_a_common_order(signature: Load) -> None:
    for verdict, people, label in ((WORDS, "binary", 1.0), (PERCENT, "nominal", "odd")):
        with pytest.raises(InputError, match="share no order"):
            label_as_verdict(signature(verdict), label, Scale.parse(people))  # type: ignore[arg-type]


def test_an_example_shows_the_item_and_the_label_alone(signature: Load) -> None:
    (item,) = items_of([("secret", "g")])
    example = to_example(signature(PERCENT), item, 80.0, Scale.parse("percentage"))
    assert dict(example.inputs()) == {"question": "Q?", "reference_answer": "R.", "answer_under_test": "A."}
    assert example.grade == 80
    assert "reasoning" not in example  # people gave none
    assert "secret" not in repr(example) + str({**example.labels()}) + str(dict(example.inputs()))


def test_every_beginning_is_balanced_over_the_strata() -> None:
    # Twelve low, six middle, three high labels; each question has three items with the same label.
    low_middle_high = {0: 10.0, 1: 50.0, 2: 90.0}
    groups = [f"g{number}" for number in range(7)]
    strata = dict(zip(groups, (0, 0, 0, 0, 1, 1, 2), strict=True))
    items = items_of([(f"{group}-{place}", group) for group in groups for place in range(3)])
    labels = {item.item_id: low_middle_high[strata[item.group]] for item in items}
    scale = Scale.parse("percentage")
    for seed in range(20):
        order = balanced(items, labels, scale, seed=seed)
        assert sorted(item.item_id for item in order) == sorted(labels)
        for size in range(1, 10):  # up to three of each, all strata still have items
            counts = Counter(strata[item.group] for item in order[:size])
            assert max(counts.values()) - min(counts.get(kind, 0) for kind in range(3)) <= 1
        for kind in range(3):
            own = [item.group for item in order if strata[item.group] == kind]
            n_questions = len(set(own))
            assert len(set(own[:n_questions])) == n_questions  # every question once before any twice
    assert balanced(items, labels, scale, seed=1) == balanced(items, labels, scale, seed=1)
    assert balanced(items, labels, scale, seed=1) != balanced(items, labels, scale, seed=2)


# --- the metric


def rate(
    metric: AgreementMetric, loaded: LoadedSignature, people: Scale, label: Label, given: object, **how: Any
) -> Any:
    (item,) = items_of([("i", "g")])
    item = Item(next(i for i, own in metric._labels.items() if own == label), "g", "Q?", "A.", ("R.",))
    prediction = dspy.Prediction(grade=given, reasoning="")
    return metric(to_example(loaded, item, label, people), prediction, **how)


@pytest.mark.parametrize(
    ("verdict", "scale", "labels", "verdicts"),
    [
        (PERCENT, "percentage", [0.0, 10.0, 20.0, 50.0, 100.0, 90.0], [5, 10, 70, 40, 100, "85%"]),
        (PERCENT, "percentage", [0.0, 10.0, 20.0, 50.0, 100.0, 90.0], [5, None, 70, 40, "prose", 250]),
        (PERCENT, "binary", [1.0, 0.0, 0.0, 0.0, 0.0, 1.0], [80, 10, 20, 30, 0, 100]),
        (YES_NO, "binary", [1.0, 0.0, 0.0, 0.0, 0.0, 1.0], ["Yes", "no", "Yes", "no", "no", None]),
        (GRADES, "percentage", [0.0, 10.0, 20.0, 50.0, 100.0, 90.0], [0, 0, 1, 3, 4, None]),
    ],
)
def test_over_train_the_score_is_macro_agreement(
    signature: Load, verdict: Verdict, scale: str, labels: list[float], verdicts: list[object]
) -> None:
    loaded, people = signature(verdict), Scale.parse(scale)
    items = items_of([(f"i{number}", f"g{number}") for number in range(6)])
    metric = AgreementMetric(loaded, people, dict(zip((i.item_id for i in items), labels, strict=True)))
    usable = {"Yes": 1.0, "no": 0.0, "85%": 85.0, "prose": None, 250: None}
    scores = [
        metric(to_example(loaded, item, label, people), dspy.Prediction(grade=given, reasoning=""))
        for item, label, given in zip(items, labels, verdicts, strict=True)
    ]
    theirs = [usable.get(given, given) for given in verdicts]  # type: ignore[call-overload]
    expected = agreement(labels, theirs, scale=people, judge_scale=loaded.judge_scale(), unscored="wrong")
    mean = expected["accuracy" if people.kind == "nominal" else "mean_agreement"].value
    assert sum(scores) / len(scores) == pytest.approx(mean)


SHOWN, UNUSABLE = "on the scale from 0 to 100; the", "reply held no usable verdict"


@pytest.mark.parametrize(
    ("verdict", "people", "label", "given", "said"),
    [
        (PERCENT, "percentage", 80.0, 20, f"It should get 80 {SHOWN} verdict 20 is 60 too low."),
        (PERCENT, "binary", 0.0, 70, f"It should get 0 {SHOWN} verdict 70 is 70 too high."),
        (PERCENT, "percentage", 80.0, 80, f"It should get 80 {SHOWN} verdict 80 agrees."),
        (*(PERCENT, "percentage", 80.0, None), f"It should get 80 {SHOWN} {UNUSABLE}: it must give one number on that scale."),
        (YES_NO, "binary", 1.0, "no", "It should get Yes; the verdict no does not."),
        (YES_NO, "binary", 1.0, "Yes", "It should get Yes; the verdict Yes agrees."),
        (BOOL, "binary", 0.0, None, f"It should get False; the {UNUSABLE}."),
        (WORDS, "nominal", "odd", "bad", "It should get odd; the verdict bad does not."),
        (WORDS, "nominal", "odd", None, f"It should get odd; the {UNUSABLE}."),
        (WORDS, "nominal", "odd", "odd", "It should get odd; the verdict odd agrees."),
    ],
)  # fmt: skip
def test_feedback_in_words(
    signature: Load, verdict: Verdict, people: str, label: Label, given: object, said: str
) -> None:
    loaded, scale = signature(verdict), Scale.parse(people)
    found = rate(AgreementMetric(loaded, scale, {"i": label}), loaded, scale, label, given, pred_name="judge")
    assert found.feedback == said
    assert 0.0 <= found.score <= 1.0


# --- candidates


@pytest.fixture
def gold(workspace: Workspace) -> GoldSet:
    """Forty-eight questions; people are harsh: half of the facts are worth nothing."""
    rows = made_items(48)
    path = made_gold(workspace.gold / "harsh", rows, rated(rows, {"full": 100, "half": 0, "none": 0}))
    return load_gold(path, workspace=workspace)


def training(gold: GoldSet, workspace: Workspace, *, n: int | None = None) -> Training:
    items = gold.select("train")[:n]
    return Training(
        judge=PromptJudge("correctness_v3@embedded", workspace=workspace),
        items=items,
        labels={item.item_id: gold.labels[item.item_id] for item in items},
        people=gold.scale,
        seed=0,
        budget=Budget(None),
        writer=ModelSpec("writer", "openai/writer"),
    )


def demo_groups(found: Candidate, part: Training) -> set[str]:
    """The groups of the items that stand in a program's demos."""
    return {item_of(demo, part).group for demo in found.program.demos}


def item_of(demo: dspy.Example, part: Training) -> Item:
    """The item that a demo shows."""
    inputs = part.judge.signature.inputs
    shown = [demo[name] for name in inputs]
    return next(item for item in part.items if [*item_inputs(inputs, item).values()] == shown)


def test_labeled_programs_hold_train_labels(gold: GoldSet, workspace: Workspace) -> None:
    part = training(gold, workspace)
    made = list(OPTIMIZERS["labeled"].make(part))
    assert len({found.name for found in made}) == len(made) > 1
    for found in made:
        assert found.trained_on == demo_groups(found, part)
        assert 0 < len(found.program.demos) <= len(part.items)
        assert {demo.correctness_percentage for demo in found.program.demos} <= {0, 100}
        assert "judgecal_item_id" not in str(found.program.dump_state())
    again = [str(found.program.demos) for found in OPTIMIZERS["labeled"].make(part)]
    assert again == [str(found.program.demos) for found in made]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("optimizer", ["labeled", "fewshot"])
def test_a_handful_of_train_items_is_enough(
    gold: GoldSet, workspace: Workspace, optimizer: str, n: int
) -> None:
    for found in OPTIMIZERS[optimizer].make(training(gold, workspace, n=n)):
        assert 0 < len(found.program.demos) <= n


def test_fewshot_keeps_reasoning_where_the_verdict_met_the_people(
    gold: GoldSet, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    part = training(gold, workspace)
    made = list(OPTIMIZERS["fewshot"].make(part))
    assert capsys.readouterr().out == ""  # stdout is the command's result
    for found in made:
        assert found.trained_on == demo_groups(found, part)
        own = [demo for demo in found.program.demos if "correctness_reasoning" in demo]
        assert own
        for demo in own:
            label = float(part.labels[item_of(demo, part).item_id])
            assert abs(demo.correctness_percentage - label) <= 10
            assert type(demo.correctness_percentage) is int
        assert all(set(demo.keys()) <= set(part.judge.signature.cls.fields) for demo in found.program.demos)


def test_optimizers_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, embedded = ModelSpec("mine", "openai/mine"), ModelSpec("embedded", "judgecal/embedded")
    assert [resolve_optimizer("auto", one) for one in (mine, embedded)] == ["auto", "labeled"]
    known = {"labeled": "labeled", "fewshot": "fewshot", "MIPROv2": "mipro", "COPRO": "copro"}
    assert {name: resolve_optimizer(name, mine) for name in known} == known
    with pytest.raises(InputError, match="unknown optimizer 'fewshots': did you mean fewshot"):
        resolve_optimizer("fewshots", mine)
    taken = set(map(OPTIMIZER_NAMES.get, OPTIMIZER_NAMES))
    assert taken == set(OPTIMIZERS) and all(
        hasattr(dspy, name) for name in OPTIMIZER_NAMES if name != name.lower()
    )
    monkeypatch.setattr(optimizers, "find_spec", {}.get)
    wanted = r"mipro needs optuna, .* pip install '\.\[mipro\]'; or choose --optimizer"
    with pytest.raises(InputError, match=wanted):
        resolve_optimizer("mipro", mine)


# --- what the optimisers that write instructions climb on


def mixed() -> tuple[list[Item], dict[str, Label], Scale]:
    """Twenty questions with three items each: fifteen have high labels, four middle ones, one a low one."""
    items = items_of(
        [(f"i{question:02d}-{place}", f"g{question:02d}") for question in range(20) for place in range(3)]
    )
    strata = [90.0] * 15 + [50.0] * 4 + [10.0]
    return items, {item.item_id: strata[int(item.group[1:])] for item in items}, Scale.parse("percentage")


@pytest.mark.parametrize("size", [1, 3, 30, 60, 1000])
def test_in_a_balanced_sample_the_strata_count_equally(size: int) -> None:
    items, labels, scale = mixed()
    for seed in range(5):
        sample = balanced(items, labels, scale, size=size, seed=seed)
        counts = Counter(labels[item.item_id] for item in sample)
        assert len(counts) == 3 and len(set(counts.values())) == 1
        assert len(sample) <= max(3, min(size, len(items)))
        # A rare stratum comes by all of its items before it comes by one again.
        per_item = Counter(item.item_id for item in sample if labels[item.item_id] == 10.0)
        assert max(per_item.values()) - min(per_item.values()) <= 1
        assert sample == balanced(items, labels, scale, size=size, seed=seed)


def test_halves_share_no_question_and_the_strata_are_spread() -> None:
    items, labels, _ = mixed()
    for seed in range(10):
        one, other = parts_by_question(items, labels, seed=seed, n=2)
        assert sorted(i.item_id for i in [*one, *other]) == sorted(labels)
        assert not {i.group for i in one} & {i.group for i in other}
        for label, n in ((90.0, 45), (50.0, 12)):
            counts = [sum(labels[i.item_id] == label for i in half) for half in (one, other)]
            assert sum(counts) == n and abs(counts[0] - counts[1]) <= 3
    alone = [item for item in items if item.group == "g00"]
    assert parts_by_question(alone, labels, seed=0, n=2) == [tuple(alone)]


def test_plain_agreement_over_a_balanced_sample_is_macro_agreement(signature: Load) -> None:
    items, labels, scale = mixed()
    loaded = signature(PERCENT)
    metric = AgreementMetric(loaded, scale, labels)
    given = {item.item_id: (None if place % 7 == 0 else place % 101) for place, item in enumerate(items)}
    sample = balanced(items, labels, scale, size=60, seed=0)

    def score(item: Item, label: Label, grade: object) -> float:
        rated = metric(to_example(loaded, item, label, scale), dspy.Prediction(grade=grade, reasoning=""))
        assert isinstance(rated, float)
        return rated

    scores = [score(item, labels[item.item_id], given[item.item_id]) for item in sample]
    assert all(0.0 <= value <= 1.0 for value in scores)  # what GEPA takes for perfect is 1.0
    people, judge = ([known[item.item_id] for item in sample] for known in (labels, given))
    expected = agreement(people, judge, scale=scale, unscored="wrong")["macro_agreement"].value
    assert sum(scores) / len(scores) == pytest.approx(expected)
    assert score(items[-1], 10.0, 10) == 1.0


def test_gepa_asks_again_for_the_words(signature: Load) -> None:
    loaded, scale = signature(PERCENT), Scale.parse("percentage")
    metric = AgreementMetric(loaded, scale, {"i": 100.0})
    example = to_example(loaded, items_of([("i", "g")])[0], 100.0, scale)
    unusable = dspy.Prediction(grade=None, reasoning="")
    assert metric(example, unusable) == 0.0
    again = metric(example, unusable, None, "judge", None)
    assert again.score == 0.0 and "no usable verdict" in again.feedback
