"""Models: aliases, prices, keys, and what judgecal.toml may say of them."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from judgecal.errors import InputError
from judgecal.models import ALIASES, Catalogue, ModelSpec, load_catalogue
from judgecal.workspace import find_workspace

Load = Callable[[str], Catalogue]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Read a catalogue with the given judgecal.toml over it."""
    for name in ("signatures", "gold"):
        (tmp_path / name).mkdir()

    def catalogue(toml: str) -> Catalogue:
        (tmp_path / "judgecal.toml").write_text(toml, encoding="utf-8")
        return load_catalogue(find_workspace(tmp_path))

    return catalogue


def price_file() -> dict[str, dict[str, float]]:
    found = importlib.util.find_spec("litellm")
    assert found is not None
    assert found.origin is not None
    path = Path(found.origin).parent / "model_prices_and_context_window_backup.json"
    rows: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
    return rows


# --- what comes with judgecal -------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ALIASES, ids=lambda spec: spec.alias)
def test_a_priced_alias_is_in_the_price_file(load: Load, spec: ModelSpec) -> None:
    resolved = load("").resolve(spec.alias)
    assert not spec.id.endswith("-latest")
    if spec.provider in ("judgecal", "ollama_chat"):
        assert (resolved.input_usd_per_1m, resolved.output_usd_per_1m, resolved.key_env) == (0.0, 0.0, None)
        return
    rows = price_file()
    row = rows.get(spec.id) or rows[spec.id.split("/", 1)[1]]
    assert resolved.input_usd_per_1m == pytest.approx(row["input_cost_per_token"] * 1e6)
    assert resolved.output_usd_per_1m == pytest.approx(row["output_cost_per_token"] * 1e6)
    assert resolved.context_window == row["max_input_tokens"]
    assert resolved.key_env in ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY")


def test_prices_are_read_without_litellm(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom judgecal.models import load_catalogue\nfrom judgecal.workspace import "
        "find_workspace\nassert load_catalogue(find_workspace()).resolve('gpt-4o').priced\n"
        "print(sorted({'litellm', 'dspy', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_call_costs_its_tokens() -> None:
    spec = ModelSpec("m", "p/m", input_usd_per_1m=2.5, output_usd_per_1m=10.0)
    # 1000 x 2.5 + 100 x 10 = 3500 USD per million
    assert spec.cost_usd(1000, 100) == pytest.approx(0.0035)
    assert spec.cost_usd(None, 100) is None
    assert ModelSpec("m", "p/m").cost_usd(1000, 100) is None
    assert ModelSpec("m", "p/m", input_usd_per_1m=0.0, output_usd_per_1m=0.0).cost_usd(None, None) == 0.0


# --- any litellm id -----------------------------------------------------------------------------------------

# id -> key variable, priced
IDS = [
    ("openai/gpt-4o", "OPENAI_API_KEY", True),
    ("groq/llama-no-such", "GROQ_API_KEY", False),
    ("hosted_vllm/mine", None, False),
    ("openrouter/org/model", "OPENROUTER_API_KEY", False),
    ("no-such-provider/x@y", None, False),
]


@pytest.mark.parametrize(("model_id", "key", "priced"), IDS)
def test_any_id_works_as_it_is(load: Load, model_id: str, key: str | None, priced: bool) -> None:
    spec = load("").resolve(model_id)
    assert (spec.alias, spec.id, spec.key_env, spec.priced) == (model_id, model_id, key, priced)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gpt-4", "did you mean gpt-4o"),
        ("zzz", "known: embedded, gemini-flash"),
        ("openai/", "unknown model"),
    ],
)
def test_an_unknown_alias_names_the_nearest(load: Load, name: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        load("").resolve(name)


def test_one_providers_price_is_not_anothers(load: Load) -> None:
    assert load("").resolve("openai/gpt-4o").priced
    assert not load("").resolve("hosted_vllm/gpt-4o").priced


# --- judgecal.toml ------------------------------------------------------------------------------------------


def test_a_table_adds_an_alias(load: Load) -> None:
    spec = load(
        '[models.mine]\nid = "openai/my-model"\napi_base = "http://127.0.0.1:1/v1"\ninput_usd_per_1m = 0\n'
        "output_usd_per_1m = 0\ntimeout = 120\nmax_concurrency = 3\ncontext_window = 9"
    ).resolve("mine")
    assert (spec.id, spec.key_env, spec.priced) == ("openai/my-model", None, True)
    assert (spec.timeout, spec.max_concurrency, spec.context_window) == (120, 3, 9)


def test_a_table_overrides_key_by_key(load: Load) -> None:
    before = load("").resolve("gpt-4o")
    after = load("[models.gpt-4o]\ntemperature = 0.7\nmax_tokens = 5\ninput_usd_per_1m = 99").resolve(
        "gpt-4o"
    )
    assert (after.temperature, after.max_tokens, after.input_usd_per_1m) == (0.7, 5, 99)
    assert (after.id, after.key_env, after.context_window) == (
        before.id,
        before.key_env,
        before.context_window,
    )
    assert after.output_usd_per_1m == before.output_usd_per_1m


def test_another_id_brings_its_own_price_and_key(load: Load) -> None:
    spec = load('[models.llama3]\nid = "openai/gpt-4o"').resolve("llama3")
    assert spec.key_env == "OPENAI_API_KEY"
    assert spec.input_usd_per_1m == load("").resolve("gpt-4o").input_usd_per_1m
    assert spec.context_window == load("").resolve("gpt-4o").context_window
    assert not load('[models.gpt-4o]\nid = "openai/no-such"').resolve("gpt-4o").priced


def test_the_example_in_the_repository_is_valid(load: Load) -> None:
    text = (Path(__file__).resolve().parent.parent / "judgecal.toml").read_text(encoding="utf-8")
    example = [
        line.removeprefix("# ") for line in text.splitlines() if line.startswith(("# [", "# id", "# "))
    ]
    tables = "\n".join(line for line in example if line.startswith("[") or " = " in line)
    catalogue = load(tables)
    assert catalogue.resolve("gpt-mini").max_concurrency == 32
    assert catalogue.resolve("my-server").priced


# judgecal.toml -> what the message says
WRONG = [
    ("[model.x]", "unknown key 'model': did you mean models"),
    ('[models.x]\nid = "a/b"\ntemprature = 1', "unknown key 'temprature': did you mean temperature"),
    ('[models.x]\nid = "a/b"\nkey = "sk-1"', "unknown key 'key'"),
    ("[models.x]\ntimeout = 1", r"\[models.x\]: no id: add it"),
    ("[models.x]\nid = 5", "id: Input should be a valid string, found 5"),
    ('[models.x]\nid = "gpt-4o"', "id must be provider/model such as openai/gpt-4o, found 'gpt-4o'"),
    ('[models.x]\nid = "/m"', "id must be provider/model"),
    ("[models.gpt-4o]\ntimeout = '9'", "timeout: Input should be a valid number, found '9'"),
    ("[models.gpt-4o]\ntimeout = true", "timeout: Input should be a valid number, found True"),
    ("[models.gpt-4o]\ntimeout = 0", "timeout: Input should be greater than 0, found 0"),
    ("[models.gpt-4o]\ntimeout = inf", "timeout: Input should be a finite number, found inf"),
    ("[models.gpt-4o]\ninput_usd_per_1m = nan", "input_usd_per_1m: Input should be a finite number, found nan"),
    ("[models.gpt-4o]\noutput_usd_per_1m = -1", "output_usd_per_1m: Input should be greater than or equal to 0, found -1"),
    ("[models.gpt-4o]\nmax_tokens = 1.5", "max_tokens: Input should be a valid integer, found 1.5"),
    ("[models.gpt-4o]\nmax_concurrency = 0", "max_concurrency: Input should be greater than 0"),
    ("models = 3", r"models must be tables: \[models.NAME\]"),
    ("[models]\nx = 3", r"\[models.x\]: must be a table"),
    ("schema = 2", "schema 2 is newer"),
    ("[models.x\n", r"judgecal\.toml: .*line 1"),
]  # fmt: skip


@pytest.mark.parametrize(("toml", "says"), WRONG)
def test_a_wrong_table_is_named(load: Load, toml: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        load(toml)
    assert "sk-1" not in str(caught.value)


def test_every_problem_is_told_at_once(load: Load) -> None:
    with pytest.raises(InputError) as caught:
        load('[models.a]\nid = "x"\n[models.b]\ntimeout = -1\n[other]')
    # other is no key; a's id; b has no id and a negative timeout
    assert len(caught.value.problems) == 4


# --- keys ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, "", "  \n"])
def test_a_missing_key_is_one_message_naming_the_variable(
    load: Load, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is not None:
        monkeypatch.setenv("OPENAI_API_KEY", value)
    spec = load("").resolve("gpt-4o")
    assert spec.key_present is False
    with pytest.raises(InputError) as caught:
        spec.key()
    assert str(caught.value) == "model gpt-4o (openai/gpt-4o) needs a key: set the variable OPENAI_API_KEY"


def test_a_key_is_read_and_shown_nowhere(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret\n")
    spec = load("").resolve("gpt-4o")
    assert (spec.key(), spec.key_present) == ("sk-secret", True)
    assert "sk-secret" not in repr(spec) + str(spec.settings())
