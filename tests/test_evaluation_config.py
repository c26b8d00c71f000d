"""The configuration of `evaluate`: every mistake in one message, lists as factors, names of systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.rag.evaluation.config import read_evaluate_config
from judgecal.rag.evaluation.factors import factors_of, problems_of, variants
from judgecal.rag.evaluation.http_config import HttpConfig
from judgecal.rag.evaluation.local_config import LocalConfig

HEAD = '[questions]\ngold = "starter"\n'
LOCAL = '[[systems]]\nname = "ours"\nkind = "local"\n'


def refused(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "sweep.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_evaluate_config(path)
    return [one.removeprefix(f"{path}: ") for one in error.value.problems]


def names(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "sweep.toml"
    path.write_text(text, encoding="utf-8")
    return [
        variant.name_of(one.name) for one in read_evaluate_config(path).systems for variant in one.variants
    ]


def test_every_mistake_is_in_one_message(tmp_path: Path) -> None:
    text = """
        desing = "grid"
        [questions]
        gold = "starter"
        limt = 3
        [judges]
        repeats = 0
        [costs]
        wrong = -1.0
        [[systems]]
        name = "ours"
        kind = "local"
        top_m = 3
        top_n = [1, 2]
        [[systems]]
        kind = "htp"
        [[systems]]
        name = "theirs"
        kind = "http"
        url = "ftp://x"
    """
    found = "\n".join(refused(tmp_path, text))
    for said in (
        "unknown key 'desing': did you mean design",
        "unknown key 'limt': did you mean limit",
        "judges.repeats: Input should be greater than or equal to 1, found 0",
        "costs.wrong: Input should be greater than or equal to 0",
        "systems: ours: unknown key 'top_m': did you mean top_",
        'systems: ours: top_n: a list makes a sweep: say design = "one_at_a_time"',
        "systems: number 2: no name: add it",
        "kind must be one of local, http, python, answers, found 'htp'",
        "systems: theirs: url: it is not an http or https address",
    ):
        assert said in found, found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LOCAL + '[questions]\ngold = "a"\nfile = "b.csv"', "questions: give either gold"),
        (LOCAL + '[questions]\nfile = "b.csv"\nsplit = "all"', "questions: split belongs to a gold set"),
        (LOCAL + '[questions]\ngold = "a"\nreference = "r"', "questions: reference: columns of a file"),
        ("systems = []\n" + HEAD, "systems: there is none"),
        (HEAD + LOCAL + LOCAL, "systems: ours stands there twice"),
        ('design = "grid"\n' + HEAD + LOCAL + "top_n = []", "top_n: the list is empty"),
        (
            'design = "grid"\n' + HEAD + LOCAL + "top_n = [1, [2]]",
            "a level is a text, a number, true or false",
        ),
        ('design = "grid"\n' + HEAD + LOCAL + "top_n = [1, 1]", "the levels 1 and 1 cannot be told apart"),
        (
            'design = "grid"\n' + HEAD + LOCAL + 'top_n = [2]\nchunk = {max = [512, "512"]}',
            "512 and '512' cannot be",
        ),
        (
            'design = "grid"\n' + HEAD + LOCAL + "base = {top_n = 1}\ntop_n = [1, 2]",
            'with design = "grid" no level',
        ),
        (
            'design = "one_at_a_time"\n' + HEAD + LOCAL + "base = {top_n = 3}\ntop_n = [1, 2]",
            "top_n is 3, and its lev",
        ),
        (
            'design = "one_at_a_time"\n'
            + HEAD
            + LOCAL
            + "base = {chunk = {mix = 3}}\nchunk = {max = [60, 90]}",
            "base: unknown factor 'chunk.mix': did you mean chunk.max?",
        ),
    ],
)
def test_a_mistake_says_what_to_do(tmp_path: Path, text: str, said: str) -> None:
    assert said in "\n".join(refused(tmp_path, text))


def test_a_list_is_a_factor_only_where_the_field_takes_none() -> None:
    table: dict[str, Any] = {
        "url": ["http://a", "http://b"],
        "body": {"messages": ["{question}"], "k": [1, 2]},  # what is sent is JSON of any shape
        "headers": {"X-Mode": ["fast", "slow"]},
        "setup": {"steps": [{"name": "a", "url": "http://a"}]},
        "unknown": [1, 2],
    }
    assert list(factors_of(table, HttpConfig)) == ["url", "headers.X-Mode"]
    assert factors_of({"chunk": {"min": 10, "max": [60, 90]}, "top_n": [1]}, LocalConfig) == {
        "chunk.max": [60, 90],
        "top_n": [1],
    }


SWEEP: dict[str, list[Any]] = {
    "chunk.max": [128, 256, 512],
    "top_n": [1, 2, 3],
    "strategy": ["plain", "rerank"],
}
TABLE: dict[str, Any] = {
    "chunk": {"min": 9, "max": [128, 256, 512]},
    "top_n": [1, 2, 3],
    "strategy": SWEEP["strategy"],
}


def test_one_at_a_time_holds_the_base() -> None:
    base = {"chunk": {"max": 256}, "top_n": 2}
    assert not list(problems_of(SWEEP, base, design="one_at_a_time"))
    found = variants(TABLE, SWEEP, base, "one_at_a_time")
    assert [tuple(one.settings.values()) for one in found] == [
        (128, 2, "plain"),
        (256, 1, "plain"),
        (256, 2, "plain"),
        (256, 2, "rerank"),
        (256, 3, "plain"),
        (512, 2, "plain"),
    ]
    assert [one.is_base for one in found] == [False, False, True, False, False, False]
    assert found[0].table == {"chunk": {"min": 9, "max": 128}, "top_n": 2, "strategy": "plain"}
    assert found[0].name_of("ours") == "ours(chunk.max=128, top_n=2, strategy=plain)"
    dotted = variants(TABLE, SWEEP, {"chunk.max": 256, "top_n": 2}, "one_at_a_time")
    assert dotted == found


def test_a_grid_has_every_combination() -> None:
    found = variants(TABLE, SWEEP, {}, "grid")
    assert len({one.name_of("ours") for one in found}) == 18
    assert not any(one.is_base for one in found)
    many = {name: list(range(20)) for name in "abc"}
    assert ["8,000 systems: at most 1,000" in one for one in problems_of(many, {}, design="grid")] == [True]


def test_systems_side_by_side(tmp_path: Path) -> None:
    fixed = '[[systems]]\nname = "theirs"\nkind = "answers"\nanswers = "a.csv"\n'
    text = 'design = "one_at_a_time"\n' + HEAD + LOCAL + 'top_n = [1, 2]\nindex = ["bm25", "lsa"]\n' + fixed
    assert names(tmp_path, text) == [
        "ours(top_n=1, index=bm25)",
        "ours(top_n=1, index=lsa)",
        "ours(top_n=2, index=bm25)",
        "theirs",
    ]


def test_paths_are_taken_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    text = HEAD + '[[systems]]\nname = "theirs"\nkind = "answers"\nanswers = "a.csv"\n'
    names(tmp_path / "inner", text)
    (one,) = read_evaluate_config(tmp_path / "inner" / "sweep.toml").systems
    assert Path(one.configs[0].answers) == tmp_path / "inner" / "a.csv"
