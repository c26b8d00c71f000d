"""Signatures: the scale read from the types, a clear word for a file that cannot be used, the fingerprint."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from judgecal.errors import InputError
from judgecal.signatures import list_signatures, load_signature, unit_of
from judgecal.workspace import Workspace, find_workspace
from tests.support.command import ROOT

HEAD = """from typing import Literal

import dspy


class One(dspy.Signature):
    \"\"\"Judge the answer.\"\"\"

    question: str = dspy.InputField()
    answer_under_test: str = dspy.InputField(desc="data")
    reasoning: str = dspy.OutputField(desc="why")
"""


def source(field: str) -> str:
    return f"{HEAD}    {field}\n"


def write(folder: Path, text: str | bytes, name: str = "one") -> Path:
    path = folder / f"{name}.py"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


# --- the repository's own -----------------------------------------------------------------------------------

OWN = {
    "answer_v1": None,
    "answer_v2": None,
    "correctness_v1": "percentage",
    "correctness_v2": "percentage",
    "correctness_v3": "percentage",
}


@pytest.mark.parametrize("name", list_signatures(find_workspace(ROOT)))
def test_every_file_of_the_repository_loads(name: str) -> None:
    loaded = load_signature(name, workspace=find_workspace(ROOT))
    assert loaded.name == name
    assert (str(loaded.scale) if loaded.scale else None) == OWN.get(name, loaded.scale and str(loaded.scale))
    assert len(loaded.text.splitlines()) <= 60
    assert "judgecal" not in loaded.text


def test_roles_are_read_from_the_fields() -> None:
    loaded = load_signature("correctness_v3", workspace=find_workspace(ROOT))
    assert loaded.inputs == ("question", "reference_answer", "answer_under_test")
    assert (loaded.reasoning, loaded.verdict) == ("correctness_reasoning", "correctness_percentage")


# --- scales -------------------------------------------------------------------------------------------------

# verdict field -> scale, words of a binary
SCALES = [
    ("v: int = dspy.OutputField(ge=0, le=100)", "percentage", None),
    ("v: float = dspy.OutputField(ge=0, le=100)", "percentage", None),
    ("v: float = dspy.OutputField(ge=0.0, le=100.0)", "percentage", None),
    ("v: float = dspy.OutputField(ge=0, le=5)", "points:0:5", None),
    ("v: float = dspy.OutputField(ge=0.5, le=2.5)", "points:0.5:2.5", None),
    ("v: bool = dspy.OutputField()", "binary", None),
    ('v: Literal["yes", "no"] = dspy.OutputField()', "binary", ("yes", "no")),
    ('v: Literal["Fail", "Pass"] = dspy.OutputField()', "binary", ("Pass", "Fail")),
    ('v: Literal["1", "0"] = dspy.OutputField()', "binary", ("1", "0")),
    ("v: Literal[0, 1, 2, 3] = dspy.OutputField()", "ordinal:0:3", None),
    ("v: Literal[3, 1, 2] = dspy.OutputField()", "ordinal:1:3", None),
    ("v: Literal[-1, 0, 1] = dspy.OutputField()", "ordinal:-1:1", None),
    ("v: int = dspy.OutputField(ge=1, le=5)", "ordinal:1:5", None),
    ('v: Literal["good", "bad"] = dspy.OutputField()', "nominal", None),
    ('v: Literal["yes", "no", "partly"] = dspy.OutputField()', "nominal", None),
    ("v: str = dspy.OutputField()", None, None),
    ("v: list[int] = dspy.OutputField()", None, None),
]


@pytest.mark.parametrize("postponed", [False, True], ids=["now", "postponed"])
@pytest.mark.parametrize(("field", "scale", "words"), SCALES)
def test_the_scale_is_read_from_the_type(
    tmp_path: Path, field: str, scale: str | None, words: tuple[str, str] | None, postponed: bool
) -> None:
    head = "from __future__ import annotations\n\n" if postponed else ""
    loaded = load_signature(write(tmp_path, head + source(field)))
    assert (str(loaded.scale) if loaded.scale else None) == scale
    assert loaded.words == words
    assert loaded.verdict == ("v" if scale else None)


def test_nominal_words_keep_their_spelling_and_order(tmp_path: Path) -> None:
    loaded = load_signature(write(tmp_path, source('v: Literal["Zeta", "alpha"] = dspy.OutputField()')))
    assert loaded.judge_scale().categories == ("Zeta", "alpha")


# --- files that cannot be used ------------------------------------------------------------------------------

_TWO = (
    HEAD
    + "    v: bool = dspy.OutputField()\n\n\nclass Two(dspy.Signature):\n    q: str = dspy.InputField()\n"
)
# file -> what the message says
BROKEN: dict[str, tuple[str | bytes, str]] = {
    "two verdicts": (
        source("v: int = dspy.OutputField(ge=0, le=100)\n    w: bool = dspy.OutputField()"),
        "one verdict field expected, found 2: v, w; keep one",
    ),
    "no bounds": (source("v: int = dspy.OutputField()"), r"v needs two bounds.*ge=0, le=100"),
    "one bound": (source("v: int = dspy.OutputField(ge=0)"), "v needs two bounds"),
    "open bounds": (source("v: int = dspy.OutputField(gt=0, lt=100)"), "v needs two bounds"),
    "equal bounds": (source("v: int = dspy.OutputField(ge=5, le=5)"), "v needs two bounds, the lower first"),
    "gaps": (source("v: Literal[0, 100] = dspy.OutputField()"), r"without gaps, found \(0, 100\)"),
    "a huge gap": (source("v: Literal[0, 1000000000000] = dspy.OutputField()"), "without gaps"),
    "one word": (source('v: Literal["yes"] = dspy.OutputField()'), "at least two words"),
    "one grade": (source("v: Literal[1] = dspy.OutputField()"), "without gaps"),
    "syntax": (
        source("v: int = dspy.OutputField(ge=0"),
        r"SyntaxError: '\(' was never closed \(one\.py, line 12\)",
    ),
    "unknown name": (source("v: Missing = dspy.OutputField()"), "NameError: name 'Missing' is not defined"),
    "raises": ("raise RuntimeError('boom')\n", "running the file raised RuntimeError: boom"),
    "exits": ("import sys\nsys.exit(3)\n", "running the file raised SystemExit: 3"),
    "imports nothing": ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
    "two classes": (_TWO, "exactly one dspy.Signature class, found One, Two"),
    "no class": ("import dspy\n", "exactly one dspy.Signature class, found none"),
    "an imported class": ("from dspy import Signature\n", "found none"),
    "empty": ("", "found none"),
    "NUL": (HEAD + "\x00", "null bytes"),
    "not UTF-8": (HEAD.encode() + b"# \xe9\n", r"not UTF-8 \(byte \d+\): save the file as UTF-8"),
}


@pytest.mark.parametrize(("text", "says"), BROKEN.values(), ids=BROKEN.keys())
def test_a_file_that_cannot_be_used_is_explained(tmp_path: Path, text: str | bytes, says: str) -> None:
    path = write(tmp_path, text)
    for _ in range(2):  # a second look says the same
        with pytest.raises(InputError, match=says) as caught:
            load_signature(path)
        assert "one.py" in str(caught.value)


def test_a_signature_without_a_verdict_cannot_judge(tmp_path: Path) -> None:
    loaded = load_signature(write(tmp_path, HEAD))
    with pytest.raises(
        InputError, match=r"one cannot judge: among its outputs \(reasoning\) none is a verdict"
    ):
        loaded.judge_scale()


@pytest.mark.parametrize(("name", "unit"), [("weather", "item"), ("chunk", "chunk")])
def test_any_input_name_is_allowed_and_a_chunk_is_a_unit_of_its_own(
    tmp_path: Path, name: str, unit: str
) -> None:
    field = f"{name}: str = dspy.InputField()\n    v: bool = dspy.OutputField()"
    loaded = load_signature(write(tmp_path, source(field)))
    assert loaded.inputs[-1] == name and unit_of(loaded.inputs) == unit
    assert str(loaded.judge_scale()) == "binary"


def test_signatures_in_sub_folders_carry_their_folder(tmp_path: Path) -> None:
    for folder in ("signatures/mosaic", "signatures/_hidden", "gold"):
        (tmp_path / folder).mkdir(parents=True)
    workspace: Workspace = find_workspace(tmp_path)
    write(workspace.signatures / "mosaic", HEAD, "groundedness")
    write(workspace.signatures / "_hidden", HEAD, "draft")
    assert list_signatures(workspace) == ["mosaic/groundedness"]
    assert load_signature("mosaic/groundedness", workspace=workspace).name == "mosaic/groundedness"


def test_an_unknown_name_names_the_nearest(tmp_path: Path) -> None:
    for name in ("signatures", "gold"):
        (tmp_path / name).mkdir()
    workspace: Workspace = find_workspace(tmp_path)
    write(workspace.signatures, HEAD, "strict")
    write(workspace.signatures, HEAD, "_draft")
    assert list_signatures(workspace) == ["strict"]
    for asked, says in (
        ("strct", "did you mean strict"),
        ("../x", "unknown signature"),
        ("_draft", "unknown"),
    ):
        with pytest.raises(InputError, match=says):
            load_signature(asked, workspace=workspace)
    with pytest.raises(InputError, match="there is no such signature file"):
        load_signature(tmp_path / "nothing.py")


# --- the file stays the user's ------------------------------------------------------------------------------


def test_a_file_from_windows_loads(tmp_path: Path) -> None:
    text = "\ufeff" + source("v: bool = dspy.OutputField()").replace("\n", "\r\n")
    loaded = load_signature(write(tmp_path, text))
    plain = load_signature(write(tmp_path, source("v: bool = dspy.OutputField()"), "two"))
    assert loaded.fingerprint == plain.fingerprint


def test_the_file_does_not_inherit_our_own_future_imports(tmp_path: Path) -> None:
    # With postponed annotations `kind` is looked up by name after `del` and is gone.
    text = source("v: kind = dspy.OutputField()").replace(
        "import dspy\n", 'import dspy\n\nkind = Literal["yes", "no"]\n'
    )
    assert str(load_signature(write(tmp_path, text + "\n\ndel kind\n")).scale) == "binary"


def test_a_broken_file_stays_out_of_the_loaded_modules(tmp_path: Path) -> None:
    before = {name for name in sys.modules if name.startswith("judgecal_file_")}
    with pytest.raises(InputError):
        load_signature(write(tmp_path, "raise ValueError"))
    with pytest.raises(KeyboardInterrupt):
        load_signature(write(tmp_path, "raise KeyboardInterrupt"))
    assert {name for name in sys.modules if name.startswith("judgecal_file_")} == before


def test_two_folders_may_use_one_name(tmp_path: Path) -> None:
    for name, field in (
        ("a", "v: bool = dspy.OutputField()"),
        ("b", "v: int = dspy.OutputField(ge=0, le=100)"),
    ):
        (tmp_path / name).mkdir()
        write(tmp_path / name, source(field))
    assert str(load_signature(tmp_path / "a" / "one.py").scale) == "binary"
    assert str(load_signature(tmp_path / "b" / "one.py").scale) == "percentage"


# --- fingerprints -------------------------------------------------------------------------------------------

BASE = source("v: int = dspy.OutputField(ge=0, le=100)")
_REASON = "import pydantic\n\n\nclass Point(pydantic.BaseModel):\n    text: str\n\n\nclass One"
TYPED = BASE.replace("\n\nclass One", f"\n{_REASON}").replace("reasoning: str", "reasoning: list[Point]")
# change of the file -> is it another signature?
CHANGES: list[tuple[str, str, bool]] = [
    ("import dspy\n", "import dspy  # a comment\n\nUNUSED = 1\n", False),
    ("class One", "class Another", False),
    ("dspy.OutputField(ge=0, le=100)", "dspy.OutputField(\n        ge=0,\n        le=100,\n    )", False),
    ('    """Judge the answer."""', '    """\n    Judge the answer.\n    """', False),
    ("Judge the answer.", "Judge the answers.", True),
    ('desc="why"', 'desc="why not"', True),
    ("v: int", "v: float", True),
    ("le=100", "le=10", True),
    ("v: int", "verdict: int", True),
    ("question: str", "question: list[str]", True),
    ("    question: str = dspy.InputField()\n", "", True),
]


@pytest.mark.parametrize(("old", "new", "other"), CHANGES)
def test_the_fingerprint_follows_what_a_model_is_shown(
    tmp_path: Path, old: str, new: str, other: bool
) -> None:
    assert old in BASE
    before = load_signature(write(tmp_path, BASE)).fingerprint
    after = load_signature(write(tmp_path, BASE.replace(old, new))).fingerprint
    assert len(before) == 64
    assert (before != after) == other


def test_a_type_of_the_files_own_does_not_carry_the_files_formatting(tmp_path: Path) -> None:
    before = load_signature(write(tmp_path, TYPED)).fingerprint
    assert load_signature(write(tmp_path, TYPED + "\n# a comment\n")).fingerprint == before
