"""The configuration of `evaluate`: every mistake in one message, the levels of a sweep, names of systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.rag.evaluation.config import ReadConfig, read_evaluate_config, sweep_problems, variants

HEAD = '[questions]\ngold = "starter"\n'
LOCAL = '[[systems]]\nname = "ours"\nkind = "local"\n'
ONE = HEAD + LOCAL
SWEEP = "[sweep.ours]\n"


def read(tmp_path: Path, text: str) -> ReadConfig:
    path = tmp_path / "sweep.toml"
    path.write_text(text, encoding="utf-8")
    return read_evaluate_config(path)


def test_every_mistake_is_in_one_message(tmp_path: Path) -> None:
    text = """
        judge = 3
        [questions]
        gold = "starter"
        limt = 3
        [judges]
        repeats = 0
        [[systems]]
        name = "ours"
        kind = "local"
        top_m = 3
        [[systems]]
        kind = "htp"
        [[systems]]
        name = "theirs"
        kind = "http"
        url = "ftp://x"
    """
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    found = "\n".join(error.value.problems)
    for said in (
        "unknown key 'judge': did you mean judges",
        "unknown key 'limt': did you mean limit",
        "judges.repeats: Input should be greater than or equal to 1, found 0",
        "systems: ours: unknown key 'top_m': did you mean top_",
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
        (LOCAL + '[questions]\ngold = "a"\ncol = ["reference=r"]', "questions: col is of a file"),
        ("systems = []\n" + HEAD, "systems: none is named"),
        (HEAD + LOCAL + LOCAL, "systems: ours is there twice"),
        (ONE + SWEEP + "top_n = []", "top_n: give its levels as a list, found []"),
        (ONE + SWEEP + "top_n = 2", "top_n: give its levels as a list, found 2"),
        (ONE + SWEEP + "top_n = [1, [2]]", "a level is a text, a number, true or false"),
        (ONE + SWEEP + "top_n = [1, 1]", "two of the levels 1, 1 are the same"),
        (ONE + SWEEP + '"chunk.max" = [512, "512"]', "512, '512' are the same"),
        (ONE + "top_n = 3\n" + SWEEP + "top_n = [1, 2]", "top_n is 3 in the system's table, and its levels are 1, 2"),
        (ONE + SWEEP + '"chunk.mix" = [60, 90]', "systems: ours: unknown key 'mix': did you mean min or max?"),
        (ONE + "[sweep.our]\ntop_n = [60, 90]", "sweep: unknown system 'our': did you mean ours?"),
    ],
)  # fmt: skip
def test_a_mistake_says_what_to_do(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert said in "\n".join(error.value.problems)


def test_a_list_outside_of_the_sweep_is_a_value(tmp_path: Path) -> None:
    """What is sent to a service is JSON of any shape, and any part of it may be swept."""
    system = '[[systems]]\nname = "http"\nkind = "http"\nurl = "http://a"\nanswer = "x"\n'
    body = (
        'body = { messages = ["{question}"] }\n[sweep.http]\n"body.k" = [1, 2]\n"headers.X-Mode" = ["a", '
        '"b"]\n'
    )
    tables = [one.options for one in read(tmp_path, HEAD + system + body).systems]
    assert [one.body for one in tables] == [{"messages": ["{question}"], "k": k} for k in (1, 1, 2)]
    assert [one.headers for one in tables] == [{"X-Mode": mode} for mode in "aba"]


FACTORS: dict[str, list[Any]] = {
    "chunk.max": [128, 256, 512],
    "top_n": [1, 2, 3],
    "strategy": ["plain", "rerank"],
}


def test_one_at_a_time_holds_what_the_system_says() -> None:
    table = {"chunk": {"min": 9, "max": 256}, "top_n": 2}
    assert not list(sweep_problems(FACTORS, table))
    found = list(variants(table, FACTORS))
    assert [tuple(settings.values()) for settings, _, _ in found] == [
        (128, 2, "plain"), (256, 1, "plain"), (256, 2, "plain"), (256, 2, "rerank"), (256, 3, "plain"),
        (512, 2, "plain"),
    ]  # fmt: skip
    assert [is_base for _, _, is_base in found] == [False, False, True, False, False, False]
    assert found[0][1] == {"chunk": {"min": 9, "max": 128}, "top_n": 2, "strategy": "plain"}
