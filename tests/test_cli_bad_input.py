"""Bad input: one message that says what, where and what to do; exit 2; nothing written."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command import Ran, Run, tree
from tests.support.gold import made_gold, made_items, rated, write_signature
from tests.support.golden import WORLDS

Spoil = Callable[[Path], None]


def refused(ran: Ran) -> str:
    """The one message of a command that was refused; stdout is empty."""
    assert (ran.code, ran.out) == (2, "")
    assert "Traceback" not in ran.err
    return ran.err


NUMBERS = [
    ("--repeats", "9" * 400, "--repeats must be from 1 to 1,000, found 999999999999"),
    ("--limit", "-3", "--limit must be at least 1, found -3"),
    ("--budget-usd", "nan", "--budget-usd must be above 0, found nan"),
    ("--seed", "-1", "Invalid value for '--seed'"),
]


@pytest.mark.parametrize("command", ["score", "optimize"])
@pytest.mark.parametrize(("option", "value", "message"), NUMBERS)
def test_values_out_of_range(judgecal: Run, command: str, option: str, value: str, message: str) -> None:
    assert message in refused(judgecal(command, option, value))


def test_what_is_refused_writes_nothing(judgecal: Run, workspace_dir: Path) -> None:
    """Every refusal whose words the golden files hold."""
    before = tree(workspace_dir)
    for line in WORLDS["refusals"].lines:
        ran = judgecal(*shlex.split(line))
        assert ran.code == 2, line
        assert tree(workspace_dir) == before, line


def _broken_line(workspace: Path) -> None:
    path = workspace / "gold" / "starter" / "items.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([*lines[:16], '{"item_id": \n', *lines[17:]]), encoding="utf-8")


def _label_off_the_scale(workspace: Path) -> None:
    path = workspace / "gold" / "starter" / "ratings.jsonl"
    row = {"item_id": "starter-001", "rater": "someone", "label": 101}
    path.write_text(path.read_text(encoding="utf-8") + json.dumps(row) + "\n", encoding="utf-8")


def _two_verdicts(workspace: Path) -> None:
    write_signature(workspace, "correctness_v3", [("a", "int", "ge=0, le=100"), ("b", "bool", "")])


def _no_class(workspace: Path) -> None:
    (workspace / "signatures" / "correctness_v3.py").write_text("import dspy\n", encoding="utf-8")


def _strange_input(workspace: Path) -> None:
    path = workspace / "signatures" / "correctness_v3.py"
    path.write_text(path.read_text(encoding="utf-8").replace("question: str", "topic: str"), encoding="utf-8")


def _nominal_gold(workspace: Path) -> None:
    rows = made_items(12)
    labels = rated(rows, {"full": "good", "half": "so-so", "none": "bad"})
    _replace_starter(workspace, rows, labels, 'kind = "nominal"')


def _nominal_judge(workspace: Path) -> None:
    write_signature(workspace, "correctness_v3", [("a", 'Literal["good", "bad", "ugly"]', "")])


def _no_reference(workspace: Path) -> None:
    rows = made_items(12)
    bare = [{key: value for key, value in row.items() if key != "reference_answer"} for row in rows]
    _replace_starter(workspace, bare, rated(rows, {"full": 100, "half": 50, "none": 0}))


def _no_labels(workspace: Path) -> None:
    _replace_starter(workspace, made_items(12), [])


def _replace_starter(workspace: Path, rows: list, ratings: list, *scale: str) -> None:  # type: ignore[type-arg]
    (workspace / "gold" / "starter").rename(workspace / "old")
    made_gold(workspace / "gold" / "starter", rows, ratings, **({"scale": scale[0]} if scale else {}))


SPOILED: list[tuple[Spoil, str]] = [
    (_broken_line, "items.jsonl:17: "),
    (_label_off_the_scale, "101 lies outside 0..100"),
    (_two_verdicts, "one verdict field expected, found 2: a, b"),
    (_no_class, "holds exactly one dspy.Signature class, found none"),
    (_strange_input, "asks for topic, and"),
    (_nominal_gold, "a percentage judge cannot be held against nominal labels: they share no order"),
    (_nominal_judge, "a nominal judge cannot be held against percentage labels: they share no order"),
    (_no_reference, "asks for reference_answer, and"),
    (_no_labels, "labelled"),  # "holds no labelled item", "has 0 labelled questions"
]


@pytest.mark.parametrize("command", ["score", "optimize"])
@pytest.mark.parametrize(("spoil", "message"), SPOILED, ids=lambda value: getattr(value, "__name__", ""))
def test_a_broken_workspace_is_one_message_and_nothing_is_written(
    judgecal: Run, workspace_dir: Path, command: str, spoil: Spoil, message: str
) -> None:
    spoil(workspace_dir)
    before = tree(workspace_dir)
    assert message in refused(judgecal(command))
    assert tree(workspace_dir) == before


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[modles.a]\nid = 'x/y'\n", "unknown key 'modles': did you mean models?"),
        ("[models.a]\nidd = 'x/y'\n", "unknown key 'idd': did you mean id?"),
        ("[models.a]\nid = 'x'\n", "id must be provider/model"),
        ("schema = 2\n", "schema 2 is newer than this judgecal reads"),
        ("[models\n", "judgecal.toml: "),
    ],
)
def test_a_broken_judgecal_toml(judgecal: Run, workspace_dir: Path, toml: str, message: str) -> None:
    (workspace_dir / "judgecal.toml").write_text(toml, encoding="utf-8")
    before = tree(workspace_dir)
    for argv in (("score",), ("optimize",), ("models",)):
        assert message in refused(judgecal(*argv))
    assert tree(workspace_dir) == before


def test_too_few_questions_for_the_splits(judgecal: Run, workspace_dir: Path) -> None:
    rows = made_items(12)
    labels = rated(rows, {"full": 100, "half": 50, "none": 0})
    made_gold(workspace_dir / "gold" / "open", rows, labels, splits="train = 0.5\ndev = 0.5\ntest = 0.0")
    before = tree(workspace_dir)
    said = refused(judgecal("optimize", "--gold", "open"))
    assert "the split test has 0 labelled questions and this command needs 2" in said
    assert tree(workspace_dir) == before
    assert judgecal("optimize", "--gold", "open", "--no-final").code == 0
