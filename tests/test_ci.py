"""The GitHub Action around the gate: its scripts, with stubs in place of judgecal and Python."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command import ROOT

ACTION = ROOT / "docs" / "github-action" / "action.yml"
EVIL = "a b'\"; touch pwned; $(touch pwned) `touch pwned`"


class Action:
    """The action's scripts in a folder of their own, with stubs in place of judgecal and Python."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps: list[dict[str, Any]] = yaml.safe_load(ACTION.read_text("utf-8"))["runs"]["steps"]
        (folder / "bin").mkdir()
        for name in ("temp", "space"):
            (folder / name).mkdir()
        for name in ("output", "path", "summary"):
            (folder / name).touch()
        self.stub("judgecal", '[[ $1 == report ]] || exit "${STUB_CODE:-0}"')
        venv = '[[ $2 == venv ]] && mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; exit 0'
        self.stub("python3", venv)

    def stub(self, name: str, body: str) -> None:
        """A program that notes its arguments and prints the JSON of STUB_DECISION."""
        printed = (  # as `gate --json` indents it
            '[[ -z ${STUB_DECISION:-} ]] || printf \'{\\n  "headline": {},\\n  "experiment": "gate-1",\\n  "decision": "%s"\\n}\\n\' '
            '"$STUB_DECISION"'
        )
        path = self.folder / "bin" / name
        path.write_text(
            f'#!/bin/bash\nprintf "%s\\n" "$@" >> "{self.folder}/{name}.argv"\n{printed}\n{body}\n'
        )
        path.chmod(0o755)

    def run(self, step: int, **env: str) -> subprocess.CompletedProcess[str]:
        """One step as a runner does it, with its variables given instead of the inputs."""
        known = dict.fromkeys(self.steps[step]["env"], "")
        assert env.keys() <= known.keys() | {"STUB_CODE", "STUB_DECISION"}
        files = {f"GITHUB_{name.upper()}": str(self.folder / name) for name in ("output", "path")}
        files |= {
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
            "RUNNER_TEMP": str(self.folder / "temp"),
        }
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", self.steps[step]["run"]],
            env={"PATH": path, **files, **known, **env}, cwd=self.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def argv(self, name: str) -> list[str]:
        """What a stub was given, over all of its calls."""
        path = self.folder / f"{name}.argv"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def action(tmp_path: Path) -> Action:
    return Action(tmp_path)


def test_no_input_is_part_of_a_script() -> None:
    made = yaml.safe_load(ACTION.read_text("utf-8"))
    steps = made["runs"]["steps"]
    assert made["runs"]["using"] == "composite" and all("${{" not in step["run"] for step in steps)
    assert all(step["shell"] == "bash" for step in steps)
    given = " ".join(value for step in steps for value in step["env"].values())
    assert set(re.findall(r"inputs\.([\w-]+)", given)) == set(made["inputs"])


@pytest.mark.parametrize(
    ("code", "decision", "inconclusive", "wanted", "said"),
    [
        (0, "pass", "fail", 0, ""),
        (1, "fail", "warn", 1, "::error"),
        (3, "inconclusive", "fail", 3, "::error"),
        (3, "inconclusive", "warn", 0, "::warning"),
        (3, "changed", "warn", 3, "::error"),
        (2, "", "warn", 2, "::error"),
        (70, "", "warn", 70, "::error"),
    ],
)  # fmt: skip
def test_how_the_job_ends(
    action: Action, code: int, decision: str, inconclusive: str, wanted: int, said: str
) -> None:
    stub = {"STUB_CODE": str(code), "STUB_DECISION": decision}
    ran = action.run(1, LOCK="judge.lock.json", WORKSPACE="space", INCONCLUSIVE=inconclusive, **stub)
    assert ran.returncode == wanted and ran.stdout.startswith(said), ran
    result = action.folder / "temp" / "judgecal-gate.json"
    assert (action.folder / "output").read_text() == f"decision={decision}\njson={result}\n"
    summary = (action.folder / "summary").read_text()
    assert ("did not run to its end" in summary) is (code not in (0, 1, 3))
    report = ["report", "gate-1", "--format", "md"] if decision else []
    assert action.argv("judgecal") == ["gate", "--lock=judge.lock.json", "--json", *report]


def test_inputs_stay_texts(action: Action) -> None:
    ran = action.run(
        1, LOCK=EVIL, WORKSPACE="space", MARGIN="--help", BUDGET_USD=EVIL, INCONCLUSIVE="fail",
    )  # fmt: skip
    assert ran.returncode == 0 and not list(action.folder.rglob("pwned"))
    given = action.argv("judgecal")
    assert f"--lock={EVIL}" in given and f"--budget-usd={EVIL}" in given
    assert "--margin=--help" in given
    odd = action.run(1, LOCK="a", WORKSPACE="space", INCONCLUSIVE="never")
    assert odd.returncode == 2 and "inconclusive is fail or warn" in odd.stdout


def test_it_installs_from_a_folder_or_git_and_never_by_the_bare_name(action: Action) -> None:
    checkout = action.folder / "judgecal"
    checkout.mkdir()
    assert (
        action.run(0, SOURCE_PATH="judgecal", PYTHON="python3").returncode == 2
    )  # no checkout, so not the index
    assert action.argv("python3") == []
    (checkout / "pyproject.toml").touch()
    ran = action.run(0, SOURCE_PATH="judgecal", PYTHON="python3")
    assert ran.returncode == 0, ran.stderr
    assert action.argv("python3")[-1] == str(checkout)
    assert (action.folder / "path").read_text() == f"{action.folder / 'temp' / 'judgecal-venv' / 'bin'}\n"
    url = "git+https://example.org/o/judgecal@0123abc"
    assert action.run(0, SOURCE_GIT=url, PYTHON="python3").returncode == 0
    assert action.argv("python3")[-1] == f"judgecal @ {url}"
    n_calls = len(action.argv("python3"))
    for odd in (
        {"SOURCE_GIT": "judgecal"},
        {"SOURCE_GIT": url, "SOURCE_PATH": "judgecal"},
        {"SOURCE_GIT": "-r x"},
    ):
        assert action.run(0, PYTHON="python3", **odd).returncode == 2
    assert len(action.argv("python3")) == n_calls
