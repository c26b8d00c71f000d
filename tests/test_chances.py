"""Verdicts from the chances of tokens: which token it is, what counts, who refuses, and what graded judges
make of it."""

from __future__ import annotations

import csv
import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from judgecal.engine.cache import cache_folder
from judgecal.engine.calls import ParsedReply
from judgecal.engine.transport.chances import tokens_in
from judgecal.errors import InputError
from judgecal.judges.prompt import NO_MASS, NO_TOKEN, NO_TOKENS, PromptJudge
from judgecal.models import ModelSpec, load_catalogue
from judgecal.models.embedded import weighed_reply
from judgecal.records import Item
from judgecal.selection.lock import load_lock
from judgecal.workspace import Workspace, find_workspace
from tests.support.command import Run, journal, one_object
from tests.support.http import Answer, as_answer
from tests.support.server import Script, Serve, StubServer, completion, failing

Tokens = Sequence[str | Mapping[str, float]]
"""Each a text, or the chances of what may stand there, of which the first is what is said."""


def with_tokens(*tokens: str | Mapping[str, float], given: bool = True) -> Answer:
    """A completion of these tokens; without logprobs where none are `given`."""
    tops = [{token: 1.0} if isinstance(token, str) else token for token in tokens]
    rows = [[_row(text, chance) for text, chance in top.items()] for top in tops]
    body = completion("".join(next(iter(top)) for top in tops))
    if given:
        content = [{**row[0], "top_logprobs": row} for row in rows]
        body["choices"][0]["logprobs"] = {"content": content}
    return as_answer(body)


def _row(text: str, chance: float) -> dict[str, Any]:
    return {"token": text, "logprob": math.log(chance), "bytes": list(text.encode())}


def sure_of(chance_of_yes: float, rng: random.Random) -> dict[str, float]:
    """The chances of a yes or a no, with a surface form and a rest beside them; what is said is drawn by them."""
    forms = {
        "yes": 0.9 * chance_of_yes,
        "Yes": 0.07 * chance_of_yes,
        "no": 0.97 * (1 - chance_of_yes),
        "the": 0.03,
    }
    said = "yes" if rng.random() < chance_of_yes else "no"
    return {said: forms[said], **forms}


def judge_by_number(name: str = "verdict", seed: int = 1) -> Script:
    """Says yes with the chance that stands in the answer as `sure 0.37`; a reasoning with a yes stands before."""
    rng = random.Random(seed)

    def script(body: dict[str, Any]) -> Answer:
        chance = float(re.findall(r"sure (\d\.\d+)", json.dumps(body["messages"][-1]))[-1])
        before = ('{"reasoning": "yes', ' or no", "', name, '": "')
        return with_tokens(*before, sure_of(chance, rng), '"}', given="logprobs" in body)

    return script


def write_rows(path: Path, n_groups: int, of_each: int = 3, seed: int = 7) -> Path:
    """A table whose labels are yes with the chance that the judge gives each answer, a beta of 1/2 and 1/2."""
    rng = random.Random(seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(("item_id", "group", "question", "reference_answer", "answer", "label"))
        for n in range(n_groups * of_each):
            chance, group = min(0.999, max(0.001, rng.betavariate(0.5, 0.5))), n // of_each
            label = "yes" if rng.random() < chance else "no"
            answer = f"It is {n}, sure {chance:.4f}."
            out.writerow((f"i{n}", f"q{group}", f"What is {group}?", f"It is {n}.", answer, label))
    return path


HEAD = '''from typing import Literal

import dspy


class Judge(dspy.Signature):
    """Judge the answer."""

    question: str = dspy.InputField()
    answer: str = dspy.InputField()
    reasoning: str = dspy.OutputField()
    verdict: '''
TYPES = {
    "words": 'Literal["yes", "no"] = dspy.OutputField()',
    "truth": "bool = dspy.OutputField()",
    "ten": "int = dspy.OutputField(ge=0, le=10)",
    "percent": "int = dspy.OutputField(ge=0, le=100)",
    "kinds": 'Literal["good", "goodish", "bad"] = dspy.OutputField()',
    "half": "float = dspy.OutputField(ge=0, le=5)",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    for name in ("signatures", "gold", "experiments"):
        (tmp_path / name).mkdir()
    for name, kind in TYPES.items():
        (tmp_path / "signatures" / f"{name}.py").write_text(f"{HEAD}{kind}\n", encoding="utf-8")
    return set_up(tmp_path, "http://127.0.0.1:1/v1")


def set_up(folder: Path, api_base: str, **settings: str) -> Workspace:
    """Two aliases of one model, `word` and `chance`, at an address."""
    common = f'id = "openai/stub"\napi_base = "{api_base}"\ninput_usd_per_1m = 0\noutput_usd_per_1m = 0\n'
    common += "".join(f'{name} = "{value}"\n' for name, value in settings.items())
    text = f'[models.word]\n{common}\n[models.chance]\n{common}verdict = "expected"\n'
    (folder / "judgecal.toml").write_text(text, encoding="utf-8")
    return find_workspace(folder)


def read(workspace: Workspace, signature: str, *tokens: Any) -> ParsedReply:
    """What a judge by chances reads of a reply of these tokens."""
    choice = json.loads(with_tokens(*tokens).body)["choices"][0]
    text, rows = choice["message"]["content"], choice["logprobs"]["content"]
    judge = PromptJudge(f"{signature}@chance", workspace=workspace)
    weigh = judge.weigh
    assert weigh is not None
    return weigh(text, tokens_in(text, rows) or (), judge.read(text))


JSON = ('{"reasoning": "8 of 10, yes', '", "', "verdict", '": ')
MARKED = ("[[ ## reasoning ## ]]\n", "yes", " 10 8 true\n\n[[ ## ver", "dict ## ]]\n")
FOUND: list[tuple[str, Tokens, float | str, dict[str, float]]] = [
    ("words", (*JSON, ' "', {"yes": 0.6, "no": 0.2, "Yes": 0.1, ' "no': 0.08}, '"}'), 0.714, {"yes": 0.714, "no": 0.286}),
    ("words", (*MARKED, {"no": 0.75, " yes": 0.25}, "\n"), 0.25, {"yes": 0.25, "no": 0.75}),
    ("words", ("<think>yes no</think>", *MARKED, {"no": 0.75, "yes": 0.25}), 0.25, {"yes": 0.25, "no": 0.75}),
    ("truth", (*JSON, {"true": 0.9, "false": 0.1}, "}"), 0.9, {"yes": 0.9, "no": 0.1}),
    ("ten", (*JSON, {"8": 0.5, "10": 0.3, "9": 0.2}, "}"), 8.8, {"8": 0.5, "9": 0.2, "10": 0.3}),
    ("ten", (*JSON, {"10": 0.5, "1": 0.5}, "}"), 5.5, {"1": 0.5, "10": 0.5}),  # 10 is a token here, so 1 is 1
    ("words", ('{"verdict": "', {'yes",': 0.6, "Yes.": 0.1, "no": 0.28}, ' "reasoning": "no, yes"}'), 0.714, {"yes": 0.714, "no": 0.286}),
    ("kinds", (*JSON, '"', {"bad": 0.6, "good": 0.3, "goodish": 0.1}, '"}'), "bad", {"bad": 0.6, "good": 0.3, "goodish": 0.1}),
    ("percent", (*JSON, {"85": 0.5, "90": 0.42, "8": 0.04}, "}"), 87.283, {"85": 0.543, "90": 0.457}),
]  # fmt: skip
SAID: list[tuple[str, Tokens, Any, str]] = [
    ("ten", (*JSON, {"1": 0.8, "8": 0.2}, "0", "}"), 10.0, NO_TOKEN),
    ("ten", (*JSON, {"1": 0.8, "8": 0.2}, "}"), 1.0, NO_TOKEN),  # may be the beginning of a 10
    ("ten", (*JSON, {"8": 0.8, "1": 0.2}, "}"), 8.0, NO_MASS),  # so the 1 counts for nobody
    ("percent", (*JSON, {"8": 0.8, "9": 0.2}, "5", "}"), 85.0, NO_TOKEN),
    ("words", (*JSON, '"', {"yes": 0.6, "no": 0.2, "the": 0.2}, '"}'), 1.0, NO_MASS),
    ("words", (*JSON, '"', "y", "es", '"}'), 1.0, NO_TOKEN),
    ("kinds", (*JSON, '"', {"good": 0.6, "bad": 0.4}, '"}'), "good", NO_TOKEN),
    ("words", (*JSON, '"', {"yes": 0.95}, '"}'), 1.0, NO_TOKENS),  # nothing stood beside it
    ("half", (*JSON, {"3": 0.6, "4": 0.4}, "}"), 3.0, NO_TOKEN),
]


@pytest.mark.parametrize(("signature", "tokens", "mean", "chances"), FOUND)
def test_the_mean_is_by_the_chances_of_the_one_token(
    workspace: Workspace, signature: str, tokens: Tokens, mean: float | str, chances: dict[str, float]
) -> None:
    parsed = read(workspace, signature, *tokens)
    assert parsed.verdict == pytest.approx(mean, abs=1e-3)
    assert parsed.chances == pytest.approx(chances, abs=1e-3)
    assert parsed.chances and sum(parsed.chances.values()) == pytest.approx(1.0) and parsed.why_said is None


@pytest.mark.parametrize(("signature", "tokens", "verdict", "why"), SAID)
def test_a_verdict_that_is_no_token_or_lacks_mass_is_as_it_was_said(
    workspace: Workspace, signature: str, tokens: Tokens, verdict: Any, why: str
) -> None:
    parsed = read(workspace, signature, *tokens)
    assert (parsed.verdict, parsed.chances, parsed.why_said) == (verdict, None, why)


def test_tokens_are_found_by_their_bytes_and_damage_is_no_chance() -> None:
    half, rest = (list("😀".encode()[part]) for part in (slice(2), slice(2, 4)))
    values = (-0.5, float("-inf"), float("nan"), None, "x", 2.0)
    top: list[Any] = [{"token": "yes", "logprob": value} for value in values]
    rows = [
        {"token": "?", "bytes": half, "logprob": 0.0, "top_logprobs": 3},
        {"token": "?", "bytes": rest},
        {"token": "yes", "bytes": [300], "logprob": -9999.0, "top_logprobs": [*top, "no", {"token": "no"}]},
    ]
    assert (tokens_in("😀yes", rows) or ())[-1] == [1, "yes", {"yes": -0.5, "no": -9999.0, "None": -9999.0}]
    assert tokens_in("other", rows) == [[0, "", {}]] and tokens_in("yes", 3) is None


def test_a_mean_stays_on_its_scale(workspace: Workspace) -> None:
    for n in range(60):
        parsed = read(workspace, "ten", *JSON, {"10": 0.9 + n / 997, "9": 1e-17}, "}")
        assert parsed.chances and isinstance(parsed.verdict, float) and parsed.verdict <= 10.0


def test_settings_scale_and_fingerprint(workspace: Workspace) -> None:
    word, chance = (load_catalogue(workspace).resolve(name) for name in ("word", "chance"))
    assert "verdict" not in word.settings() and chance.settings()["verdict"] == "expected"
    scales = {name: str(PromptJudge(f"{name}@chance", workspace=workspace).scale) for name in TYPES}
    assert scales == {
        "words": "points:0:1", "truth": "points:0:1", "ten": "points:0:10", "percent": "percentage",
        "kinds": "nominal", "half": "points:0:5",
    }  # fmt: skip
    assert {name: str(PromptJudge(f"{name}@embedded", workspace=workspace).scale) for name in TYPES} == scales
    workspace.config_file.write_text('[models.embedded]\nverdict = "said"\n', encoding="utf-8")
    assert str(PromptJudge("words@embedded", workspace=workspace).scale) == "binary"
    workspace.config_file.write_text('[models.gpt-mini]\nverdict = "expectd"\n', encoding="utf-8")
    with pytest.raises(
        InputError, match=r"gpt-mini\]: verdict must be one of said, expected, found 'expectd'"
    ):
        load_catalogue(workspace)


# --- through the commands -----------------------------------------------------------------------------------


def make_set(workspace: Workspace, judgecal: Run, n_groups: int = 100) -> None:
    write_rows(workspace.root / "t.csv", n_groups)
    options = ("--as", "made", "--label", "label", "--scale", "binary", "--labels-by", "people")
    assert judgecal("gold", "import", "t.csv", *options).code == 0


@pytest.fixture
def server(serve: Serve, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> StubServer:
    server = serve(judge_by_number())
    set_up(workspace.root, server.api_base)
    monkeypatch.chdir(workspace.root)
    return server


def test_a_judge_by_chances_is_scored_locked_used_and_escalates(
    judgecal: Run, server: StubServer, workspace: Workspace
) -> None:
    make_set(workspace, judgecal)
    both = ("--judge", "words@word", "--judge", "words@chance")
    score = one_object(judgecal("score", "--gold", "made", *both, "--name", "s", "--json"))
    n = score["gold"]["n_items"]
    assert server.calls == 2 * n  # what was stored without tokens is of no use to who wants chances
    word, chance = score["judges"]
    assert chance["agreement"]["auc"]["low"] > word["agreement"]["auc"]["value"]
    assert chance["agreement"]["brier"]["high"] < word["agreement"]["brier"]["value"]
    assert chance["calibrated"]["brier"]["high"] < word["agreement"]["brier"]["value"]
    told = " ".join(score["notes"])
    assert f"{n} of {n} verdicts have the chances of their tokens" in told
    rows = [row for row in journal(workspace.root, "s") if row["judge"] == "words@chance"]
    assert all(row["verdict"] == pytest.approx(row["chances"]["yes"]) for row in rows)
    assert len({row["verdict"] for row in rows}) > n / 2

    again = one_object(judgecal("score", "--gold", "made", *both[2:], *both[:2], "--name", "again", "--json"))
    assert server.calls == 2 * n and again["judges"][0]["agreement"] == chance["agreement"]
    assert len((cache_folder() / "replies.sqlite").read_bytes()) < 2000 * n  # one token of each is kept

    chosen = judgecal("select", "s", "-o", "j.lock.json")
    assert chosen.code == 0, chosen.err
    lock = load_lock(workspace.root / "j.lock.json")
    assert lock.judge == "words@chance" and lock.model and lock.model.settings["verdict"] == "expected"
    judged = judgecal("judge", "t.csv", "--lock", "j.lock.json", "-o", "judged.csv")
    assert judged.code == 0, judged.err
    with (workspace.root / "judged.csv").open(encoding="utf-8-sig") as file:
        verdicts = {row["verdict"] for row in csv.DictReader(file)}
    assert len(verdicts) > 100
    rate = ("rate", "judged.csv", "--lock", "j.lock.json", "--labels", "made", "--escalate", "0.9")
    found = one_object(judgecal(*rate, "--json"))["escalate"]
    assert 0.0 < found["share"] < 1.0

    # another setting is another judge
    set_up(workspace.root, server.api_base)
    text = workspace.config_file.read_text(encoding="utf-8").replace('verdict = "expected"', "")
    workspace.config_file.write_text(text, encoding="utf-8")
    changed = judgecal("judge", "t.csv", "--lock", "j.lock.json", "-o", "other.csv")
    assert changed.code != 0 and "verdict is 'said' and was 'expected'" in changed.err


@pytest.fixture
def rows_of(judgecal: Run, server: StubServer, workspace: Workspace) -> Callable[..., list[dict[str, Any]]]:
    """Scores a judge on a small set, and gives its rows."""
    make_set(workspace, judgecal, 5)

    def scored(name: str = "s", judge: str = "words@chance", *options: str) -> list[dict[str, Any]]:
        judgecal("score", "--gold", "made", "--split", "all", "--judge", judge, "--name", name, *options)
        return [row for row in journal(workspace.root, name) if row["judge"] == judge]

    return scored


REFUSALS = [
    (failing(400, "logprobs is not supported with this model"), 0),
    (failing(500, "top_logprobs: extra inputs are not permitted"), 0),
    (failing(400, "top_logprobs must be at most 5"), 5),
]


@pytest.mark.parametrize(("refusal", "takes"), REFUSALS)
@pytest.mark.parametrize("transport", ["http", "dspy"])
def test_a_server_that_refuses_is_asked_for_five_then_for_none_and_the_word_counts(
    rows_of: Callable[..., list[dict[str, Any]]],
    server: StubServer,
    workspace: Workspace,
    refusal: Answer,
    takes: int,
    transport: str,
) -> None:
    answer = judge_by_number()
    server.script = lambda body: refusal if body.get("top_logprobs", 0) > takes else answer(body)
    set_up(workspace.root, server.api_base, transport=transport)
    rows = rows_of()
    assert {bool(row["chances"]) for row in rows} == {takes > 0}
    assert {row["why_said"] for row in rows} == {None if takes else NO_TOKENS}
    asked = sum("logprobs" in body for body in server.bodies)
    assert asked >= len(rows) if takes else asked < len(rows)  # it is remembered


def test_a_refused_text_that_speaks_of_chances_turns_nothing_off(
    rows_of: Callable[..., list[dict[str, Any]]], server: StubServer
) -> None:
    answer, refusal = judge_by_number(), failing(400, "cannot read the text 'what are logprobs?'")
    server.script = lambda body: refusal if "What is 0?" in str(body) else answer(body)
    found = {(row["error"] is None, bool(row["chances"])) for row in rows_of()}
    assert found == {(True, True), (False, False)}


def test_chances_of_a_pair_are_of_its_own_a_and_b(
    judgecal: Run, server: StubServer, workspace: Workspace
) -> None:
    head = HEAD.replace("answer: str", "answer_a: str = dspy.InputField()\n    answer_b: str")
    kind = 'Literal["A", "B", "tie"] = dspy.OutputField()\n'
    (workspace.root / "signatures" / "better.py").write_text(head + kind, encoding="utf-8")
    lines = [f"i{n},q{n},Why {n}?,good,bad,A" for n in range(8)]
    head = "item_id,group,question,answer_a,answer_b,label"
    (workspace.root / "p.csv").write_text("\n".join([head, *lines]), encoding="utf-8")
    columns = ("--col", "answer_a=answer_a", "--col", "answer_b=answer_b", "--label", "label")
    assert judgecal("gold", "import", "p.csv", "--as", "made", "--labels-by", "people", *columns).code == 0

    def answer(body: dict[str, Any]) -> Answer:
        text = body["messages"][-1]["content"]
        swapped = text.index("bad") < text.index("good")
        top = {"B": 0.75, "A": 0.25} if swapped else {"A": 0.5, "B": 0.5}
        return with_tokens('{"reasoning": "A", "verdict": "', top, '"}')

    server.script = answer
    assert judgecal("score", "--gold", "made", "--judge", "better@chance", "--name", "s").code == 0
    rows = [row for row in journal(workspace.root, "s") if row["judge"] == "better@chance"]
    assert {(row["order"], row["verdict"], row["chances"]["A"], row["chances"]["B"]) for row in rows} == {
        ("ab", "A", 0.5, 0.5), ("ba", "A", 0.75, 0.25),
    }  # fmt: skip


def test_gemini_is_asked_in_its_own_form(workspace: Workspace) -> None:
    from judgecal.engine.transport.wires import Gemini

    wire = Gemini(ModelSpec("g", "gemini/m", api_base="http://127.0.0.1:1", verdict="expected"), None)
    wire.chances = 20
    config = wire.payload([{"role": "user", "content": "?"}])["generationConfig"]
    assert config == {"responseLogprobs": True, "logprobs": 20}
    one = {"token": "yes", "logProbability": -0.25}
    two = {"token": "no", "logProbability": -1.5}
    result = {"chosenCandidates": [one], "topCandidates": [{"candidates": [one, two]}]}
    part = {"content": {"parts": [{"text": "yes"}]}, "logprobsResult": result}
    assert wire.reply({"candidates": [part]}, []).tokens == [[0, "yes", {"yes": -0.25, "no": -1.5}]]


def test_the_embedded_model_gives_its_share_and_its_word_where_it_is_asked_for(workspace: Workspace) -> None:
    item = Item("i", "g", "Who runs the ferry to Holm?", "The ferry is run by Jane Smith and others.")
    for name, share in {"words": 0.0, "truth": 0.0, "ten": 0.0, "percent": 0.0, "half": 0.0}.items():
        judge = PromptJudge(f"{name}@embedded", workspace=workspace)
        text, chances = weighed_reply(judge.messages(item))
        said, weigh = judge.read(text), judge.weigh
        assert weigh is not None and said.verdict is not None
        graded = weigh(text, [[0, "", chances]] if chances else [], said).verdict
        assert isinstance(graded, float) and graded > share
        assert (graded != said.verdict) == (name in ("words", "truth", "ten"))
        assert not chances or sum(chances.values()) == pytest.approx(1.0)
