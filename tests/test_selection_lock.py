"""The lock: what it holds, that it runs alone, that nothing of it changes unseen, and that it runs no code that
the workspace does not hold: over every command that reads one, `--dry-run` too."""

from __future__ import annotations

import dataclasses
import itertools
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from judgecal.errors import InputError
from judgecal.goldset import load_gold
from judgecal.judges import judge_named
from judgecal.judges.prompt import PromptJudge, save_program
from judgecal.records import digest
from judgecal.selection.lock import LockedJudge, load_lock, reply_fingerprint, write_lock
from judgecal.workspace import Workspace
from tests.support.command import Run, tree
from tests.support.locks import a_lock, lock_of

NAME = "correctness_v3"
TABLE = ("--col", "question=q", "--col", "answer=a", "--col", "reference=r")
COMMANDS = {
    "judge": ("judge", "rows.csv", "-o", "out.csv", *TABLE),
    "gate": ("gate",),
    "answer": ("answer", "--models", "embedded"),
    "migrate": ("migrate", "--to", "correctness_v1@embedded"),
    "migrate with a table": ("migrate", "--to", "correctness_v1@embedded", "--on", "rows.csv", *TABLE),
}


@pytest.fixture
def workspace(workspace_dir: Path) -> Workspace:
    return Workspace(workspace_dir, workspace_dir / "experiments")


@pytest.fixture
def judge(workspace: Workspace) -> PromptJudge:
    return PromptJudge(f"{NAME}@embedded", workspace=workspace)


@pytest.fixture
def marker(workspace: Workspace, tmp_path: Path) -> Path:
    """Made by whoever runs the hostile text, in a workspace with a table and another model."""
    (workspace.root / "rows.csv").write_text("q,a,r\nWhat?,Seven.,It is seven.\n", encoding="utf-8")
    other = '[models.other]\nid = "openai/x"\napi_base = "http://127.0.0.1:9"\n'
    workspace.config_file.write_text(other, encoding="utf-8")
    return tmp_path / "it-ran"


def edited(path: Path, change: Callable[[dict[str, Any]], object], *, signed: bool = False) -> Path:
    """The file with a change to its object; `signed` puts the right hash to it."""
    table = json.loads(path.read_text(encoding="utf-8"))
    change(table)
    if signed:
        table["sha256"] = digest({key: value for key, value in table.items() if key != "sha256"})
    path.write_text(json.dumps(table), encoding="utf-8")
    return path


def test_what_is_written_is_read_back(tmp_path: Path, judge: PromptJudge) -> None:
    lock, path = lock_of(judge), tmp_path / "deep" / "judge.lock.json"
    write_lock(path, lock)
    assert load_lock(path) == lock
    first = path.read_bytes()
    write_lock(path, load_lock(path))
    assert path.read_bytes() == first and first.endswith(b"}\n")
    assert "ü" in first.decode() and [one.name for one in path.parent.iterdir()] == ["judge.lock.json"]


def test_a_lock_without_optional_parts(tmp_path: Path, judge: PromptJudge) -> None:
    lock = lock_of(judge, calibration=None, verdicts={})
    write_lock(tmp_path / "new" / "folder" / "l", lock)
    assert load_lock(tmp_path / "new" / "folder" / "l") == lock


@pytest.mark.parametrize(
    ("change", "signed", "message"),
    [
        (lambda t: t["signature"].update(text=t["signature"]["text"] + " "), False, "changed it by hand"),
        (lambda t: t["verdicts"].update(a=86.0), False, "changed it by hand"),
        (lambda t: t.update(sha256="0"), False, "changed it by hand"),
        (lambda t: t.update(schema=2), True, "schema 2 is newer"),
        (lambda t: t.pop("margin"), True, "no margin"),
        (lambda t: t.update(margn=1), True, "did you mean margin"),
        (lambda t: t["model"].update(api_base="x"), True, "unknown key 'api_base'"),
        (lambda t: t["noise"].pop("n_calls"), True, "no noise.n_calls"),
        (lambda t: t.update(gold=[]), True, "gold: Input should be"),
        (lambda t: t.update(agreement=[]), True, "agreement: Input should be a valid dictionary"),
    ],
)
def test_a_changed_lock_is_refused(
    tmp_path: Path, judge: PromptJudge, change: Callable[[dict[str, Any]], object], signed: bool, message: str
) -> None:
    path = tmp_path / "l"
    write_lock(path, lock_of(judge))
    with pytest.raises(InputError, match=message) as caught:
        load_lock(edited(path, change, signed=signed))
    assert len(caught.value.problems) == 1 and str(path) in str(caught.value)


@pytest.mark.parametrize(("text", "message"), [("{", "no JSON"), ("[]", "a JSON object"), (None, "no lock")])
def test_no_lock_at_all(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "l"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_lock(path)


def test_the_program_is_the_lock_s(workspace: Workspace, judge: PromptJudge) -> None:
    program = dspy.Predict(judge.signature.cls)
    fields = (*judge.signature.cls.input_fields, *judge.signature.cls.output_fields)
    program.demos = [dspy.Example(**dict.fromkeys(fields, "text"))]
    folder = workspace.experiments / "slug"
    folder.mkdir(parents=True)
    save_program(folder / "program.json", program, signature=judge.signature, trained_on=["g"])
    compiled = PromptJudge("correctness_v3@embedded#slug", workspace=workspace)
    content = json.loads((folder / "program.json").read_text(encoding="utf-8"))
    (folder / "program.json").unlink()
    again = lock_of(compiled, program=content).runnable(workspace)
    assert again.trained_on == {"g"} and again.name == "correctness_v3@embedded#slug"
    assert again.fingerprint == compiled.fingerprint != judge.fingerprint


def test_endpoint_and_price_are_the_workspace_s(workspace: Workspace) -> None:
    toml = '[models.m]\nid = "openai/x"\ntemperature = 0.0\napi_base = "http://127.0.0.1:{}/v1"\n'
    workspace.config_file.write_text(toml.format(1), encoding="utf-8")
    lock = lock_of(PromptJudge("correctness_v3@m", workspace=workspace))
    assert "127.0.0.1" not in json.dumps(lock.as_json())
    moved = toml.format(2) + "input_usd_per_1m = 1.0\n"
    workspace.config_file.write_text(moved, encoding="utf-8")
    again = lock.runnable(workspace)
    assert again.model.api_base == "http://127.0.0.1:2/v1" and reply_fingerprint(again) == lock.fingerprint


@pytest.mark.parametrize(
    ("now", "message"),
    [
        ('id = "openai/y"\ntemperature = 0.0', "id is 'openai/y' and was 'openai/x'"),
        ('id = "openai/x"\ntemperature = 0.5', "temperature is 0.5 and was 0.0"),
        ('id = "openai/x"\ntemperature = 0.0\nmax_tokens = 9', "max_tokens is 9 and was None"),
    ],
)
def test_another_model_under_the_alias_is_refused(workspace: Workspace, now: str, message: str) -> None:
    workspace.config_file.write_text('[models.m]\nid = "openai/x"\ntemperature = 0.0\n', encoding="utf-8")
    lock = lock_of(PromptJudge("correctness_v3@m", workspace=workspace))
    workspace.config_file.write_text(f"[models.m]\n{now}\n", encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        lock.runnable(workspace)
    assert len(caught.value.problems) == 1


def test_an_alias_that_is_gone_and_a_prompt_that_is_another(workspace: Workspace, judge: PromptJudge) -> None:
    gone = lock_of(judge, model=dataclasses.replace(lock_of(judge).model, alias="embeded"))
    with pytest.raises(InputError, match="did you mean embedded"):
        gone.runnable(workspace)
    with pytest.raises(InputError, match="another prompt"):
        lock_of(judge, fingerprint="0" * 16).runnable(workspace)


def test_the_gold_set_must_be_the_same(workspace: Workspace, judge: PromptJudge) -> None:
    gold = load_gold("starter", workspace=workspace)
    lock = lock_of(judge)
    with pytest.raises(InputError, match="was locked on starter"):
        lock.require_gold(gold)
    dataclasses.replace(lock, gold=dataclasses.replace(lock.gold, sha256=gold.sha256)).require_gold(gold)


def test_a_lock_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no lock here; judgecal select writes one"):
        load_lock(tmp_path / "judge.json")
    (tmp_path / "b.lock.json").write_text("{}")
    with pytest.raises(InputError, match=r"there is no lock here; did you mean .*/b\.lock\.json\?"):
        load_lock(tmp_path / "judge.json")


# --- whose code it runs


def hostile(text: str, marker: Path) -> str:
    return f"from pathlib import Path\nPath({str(marker)!r}).touch()\n{text}"


def put(workspace: Workspace, judge: PromptJudge, **changes: Any) -> Path:
    """A lock of the judge as it stands, with parts of its signature replaced and a hash that is right."""
    lock = a_lock(judge, load_gold("starter", workspace=workspace))
    signature = dataclasses.replace(lock.signature, **changes)
    path = workspace.root / "judge.lock.json"
    write_lock(path, dataclasses.replace(lock, signature=signature))
    return path


@pytest.mark.parametrize("dry", [False, True], ids=["", "dry"])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_text_of_a_lock_is_not_run(
    judgecal: Run, workspace: Workspace, judge: PromptJudge, marker: Path, command: tuple[str, ...], dry: bool
) -> None:
    lock = put(workspace, judge, text=hostile(judge.signature.text, marker))
    before = tree(workspace.root)
    ran = judgecal(*command, "--lock", lock, *["--dry-run"] * dry)
    assert (ran.code, marker.exists()) == (2, False), ran.err
    assert "signatures/correctness_v3.py is not the text that was locked" in ran.err
    assert "--trust-lock" in ran.err
    assert tree(workspace.root) == before


@pytest.mark.parametrize(
    "command", [COMMANDS["judge"], COMMANDS["gate"], COMMANDS["answer"]], ids=lambda c: c[0]
)
def test_trusted_it_runs_from_a_folder_that_is_gone_afterwards(
    judgecal: Run,
    workspace: Workspace,
    judge: PromptJudge,
    marker: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:
    scratch = marker.parent / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    lock = put(workspace, judge, text=hostile(judge.signature.text, marker))
    signatures = tree(workspace.signatures)
    ran = judgecal(*command, "--lock", lock, "--dry-run", "--trust-lock")
    assert (ran.code, marker.exists()) == (0, True), ran.err
    assert "we run the lock's own text, as --trust-lock says" in ran.err
    assert not list(scratch.iterdir()) and tree(workspace.signatures) == signatures


@pytest.mark.parametrize(
    "name",
    [
        "../evil", "../../evil", "a/../../evil", "/tmp/evil", "//host/evil", "C:evil", "C:/evil", "..\\evil",
        "a\\b", "evil\0", "\0", "", ".", "..", ".hidden", "_hidden", "a//b", "a/", "evil.", "evil ", "evil.py",
        "NUL", "a/con.x", "evil\n", "~evil/x\u202ey", "a" * 300,
    ],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_refused_before_anything_is_written(
    judgecal: Run, workspace: Workspace, judge: PromptJudge, marker: Path, name: str
) -> None:
    """By every command for the first name, and where the lock is read for the others."""
    (workspace.root.parent / "evil.py").write_text(hostile(judge.signature.text, marker), encoding="utf-8")
    (workspace.root / "evil.py").write_text(hostile(judge.signature.text, marker), encoding="utf-8")
    lock = put(workspace, judge, name=name, text=hostile(judge.signature.text, marker))
    before = tree(workspace.root.parent)
    for trust, command in itertools.product((False, True), COMMANDS if name == "../evil" else ()):
        ran = judgecal(*COMMANDS[command], "--lock", lock, *["--trust-lock"] * trust)
        assert (ran.code, marker.exists()) == (2, False), (command, ran.err)
        assert "is not the name of a workspace file" in ran.err
    for trust in (False, True):
        with pytest.raises(InputError, match="is not the name of a workspace file"):
            load_lock(lock).runnable(workspace, trust_lock=trust)
        assert not marker.exists()
    assert tree(workspace.root.parent) == before


def test_the_workspace_s_file_is_used_whatever_the_line_ends(
    workspace: Workspace, judge: PromptJudge
) -> None:
    path = workspace.signatures / f"{NAME}.py"
    text = path.read_text(encoding="utf-8")
    for ours in (text.replace("\n", "\r\n"), f"\ufeff{text}"):
        path.write_text(ours, encoding="utf-8", newline="")
        assert lock_of(judge).runnable(workspace).fingerprint == judge.fingerprint
    path.write_text(text, encoding="utf-8")
    signature = dataclasses.replace(lock_of(judge).signature, text=text.replace("\n", "\r\n"))
    assert lock_of(judge, signature=signature).runnable(workspace).fingerprint == judge.fingerprint


@pytest.mark.parametrize(
    "change", [Path.unlink, lambda path: path.write_text("# another\n" + path.read_text())]
)
def test_a_file_that_is_gone_or_another_one_is_said(
    workspace: Workspace, judge: PromptJudge, change: Callable[[Path], object]
) -> None:
    change(workspace.signatures / f"{NAME}.py")
    lock = lock_of(judge)
    with pytest.raises(InputError, match=f"{NAME}.py.*--trust-lock"):
        lock.runnable(workspace)
    again = lock.runnable(workspace, trust_lock=True)
    assert (again.name, again.fingerprint) == (judge.name, judge.fingerprint)
    item = load_gold("starter", workspace=workspace).items[0]
    assert again.messages(item) == judge.messages(item)


def test_a_changed_lock_is_refused_before_its_text_is_looked_at(
    judgecal: Run, workspace: Workspace, judge: PromptJudge, marker: Path
) -> None:
    path = put(workspace, judge)
    table = json.loads(path.read_text(encoding="utf-8"))
    table["signature"]["text"] = hostile(judge.signature.text, marker)
    path.write_text(json.dumps(table), encoding="utf-8")
    for command in COMMANDS.values():
        ran = judgecal(*command, "--lock", path, "--trust-lock", "--dry-run")
        assert (ran.code, marker.exists()) == (2, False) and "somebody changed it by hand" in ran.err


# --- judges that are a function of the user's ---------------------------------------------------------------

CHECK = "def score(answer) -> bool:\n    return True\n"


def locked_function(workspace: Workspace, name: str, file: Path) -> LockedJudge:
    file.write_text(CHECK, encoding="utf-8")
    fingerprint = judge_named(name, workspace=workspace).fingerprint
    return LockedJudge(judge=name, fingerprint=fingerprint, signature=None, program=None, model=None)


def test_a_function_runs_where_its_file_is_what_was_locked(workspace: Workspace, marker: Path) -> None:
    file = workspace.root / "checks.py"
    locked = locked_function(workspace, "checks.py:score@python", file)
    assert locked.runnable(workspace).fingerprint == locked.fingerprint
    file.write_text(hostile(CHECK, marker), encoding="utf-8")
    for trust in (False, True):
        with pytest.raises(InputError, match="its code has changed since it was locked"):
            locked.runnable(workspace, trust_lock=trust)
    assert not marker.exists()


def test_a_function_s_file_is_the_workspace_s(
    workspace: Workspace, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the current folder's, where a lock may have come with a file beside it, and none that a path leads
    to."""
    elsewhere = workspace.root.parent / "downloads"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    here = locked_function(workspace, "checks.py:score@python", elsewhere / "checks.py")
    with pytest.raises(InputError, match=r"no file checks\.py in"):
        here.runnable(workspace)
    for path in (elsewhere / "checks.py", Path("..") / "downloads" / "checks.py"):
        name = f"{path}:score@python"
        with pytest.raises(InputError, match="is not the name of a workspace file"):
            dataclasses.replace(here, judge=name).runnable(workspace)


def test_a_lock_without_its_signature_runs_nothing(workspace: Workspace, judge: PromptJudge) -> None:
    with pytest.raises(InputError, match="holds no signature"):
        lock_of(judge, signature=None).runnable(workspace)
