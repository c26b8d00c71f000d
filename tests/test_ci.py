"""What continuous integration reads of a gate: JUnit XML, a fixture of pytest, and a GitHub Action."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
import yaml

import judgecal as judgecal_package
from judgecal.records import Estimate
from judgecal.report.gate import gate_document
from judgecal.report.junit import junit
from judgecal.selection.gate import GateResult, gate, plan_gate
from tests.support.command import ROOT, Run
from tests.support.locks import Served, drawn, flips
from tests.support.locks import served as served  # a fixture

pytest_plugins = ["pytester"]
NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
STARTED = datetime.datetime(2026, 3, 1, 12, 0, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))


def suite_of(text: str) -> Xml.Element:
    """The one suite, held against the schema that servers share (Jenkins' junit-10.xsd): names, order,
    counts."""
    top = Xml.fromstring(text)
    (suite,) = top
    assert (top.tag, suite.tag) == ("testsuites", "testsuite")
    assert not NO_XML.search(text)
    assert [one.tag for one in suite] == ["properties", *["testcase"] * (len(suite) - 1)]
    for one in suite.iter("testcase"):
        assert {"name", "classname", "time"} == set(one.attrib) and len(one) == 1
        assert one[0].tag in ("failure", "error", "skipped", "system-out")
        assert one[0].tag not in ("failure", "error") or {"message", "type"} == set(one[0].attrib)
    for of in (top, suite):
        counted = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
        assert {name: int(of.attrib[name]) for name in counted} == {
            name: sum(1 for _ in of.iter(tag)) for name, tag in counted.items()
        }
        assert float(of.attrib["time"]) == pytest.approx(
            sum(float(one.attrib["time"]) for one in of.iter("testcase"))
        )
    datetime.datetime.strptime(suite.attrib["timestamp"], "%Y-%m-%dT%H:%M:%S")
    return suite


def outcomes(suite: Xml.Element) -> list[str]:
    return [one[0].tag if one[0].tag != "system-out" else "passed" for one in suite.iter("testcase")]


def properties(suite: Xml.Element) -> dict[str, str]:
    return {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}


@pytest.mark.parametrize("decision", ["pass", "fail", "changed", "unscored", "inconclusive"])
def test_the_xml_says_what_the_exit_code_says(
    judgecal: Run, served: Served, tmp_path: Path, decision: str
) -> None:
    gold, file = served.script.gold, tmp_path / "gate.xml"
    options: list[str] = []
    if decision == "pass":
        served.script.model_id = "mine-2027"  # is said, and fails nothing

    def mirrored(item: Any, n: int, verdict: float) -> float:
        other = 2 * float(gold.labels[item.item_id]) - verdict
        return other if 0 <= other <= 100 else verdict

    changes: dict[str, Any] = {
        "fail": lambda item, n, verdict: 100.0 - verdict,
        "changed": mirrored,
        "unscored": lambda item, n, verdict: None if drawn(item, 0) < 0.3 else verdict,
    }
    served.script.change = changes.get(decision, served.script.change)
    if decision == "inconclusive":  # a loss of which one pass does not tell whether it lasts
        served.script.change, options = flips(0.06), ["--repeats-max", "1"]
    ran = judgecal("gate", "--lock", served.path, "--json", "--junit", file, *options)
    suite, found = suite_of(file.read_text("utf-8")), json.loads(ran.out)
    told = properties(suite)
    assert told["decision"] == found["decision"] and told["run_line"] == found["run_line"]
    assert told["lock"] == found["lock"]
    assert suite.attrib["name"] == "judgecal gate" and told["next"] == found["headline"]["next"]
    assert ran.code == {"pass": 0, "fail": 1, "unscored": 1}.get(decision, 3), ran.out
    assert outcomes(suite) == [{"pass": "passed", "inconclusive": "error"}.get(decision, "failure")], found[
        "why"
    ]
    assert ("The model changed" in ran.out) is (decision == "pass")
    spoken = [one for one in suite.iter() if one.tag in ("failure", "error")]
    assert all(one.attrib["message"] == found["headline"]["sentence"] for one in spoken)
    assert all(found["headline"]["because"][0] in str(one.text) for one in spoken)


def _stopped(served: Served) -> GateResult:
    """A gate that a budget ended within its first pass."""
    return plan_gate(served.workspace, served.lock, served.path, budget_usd=0.01).run()


def test_no_name_forges_a_case_and_every_character_is_xml(served: Served) -> None:
    evil = 'a"/><testcase name="forged"/><!-- \x1b[31m \x00\ufffe\ud800 ]]> &amp;'
    result = dataclasses.replace(
        _stopped(served), lock=evil, judge=evil, why=evil, run_line=evil, decision="fail", loss_below=None,
        flip_rate=Estimate(None, reason=evil), unscored_judgements=(),
    )  # fmt: skip
    text = junit(result, gate_document(result, {}), started=STARTED, seconds=1.5)
    suite = suite_of(text)
    assert len(list(suite.iter("testcase"))) == 1
    assert "forged" in properties(suite)["lock"] and "\x1b" not in text
    assert suite.attrib["timestamp"] == "2026-03-01T10:00:00" and suite.attrib["time"] == "1.500"


def test_a_gate_without_a_whole_pass_errs(served: Served) -> None:
    result = _stopped(served)
    suite = suite_of(junit(result, gate_document(result, {}), started=STARTED, seconds=0.0))
    assert result.decision == "inconclusive" and outcomes(suite) == ["error"]


def test_the_file_is_refused_first_and_migrate_writes_one_too(
    judgecal: Run, served: Served, tmp_path: Path
) -> None:
    ran = judgecal("gate", "--lock", served.path, "--junit", "nowhere/g.xml", "--markdown", "nowhere/s.md")
    assert ran.code == 2 and served.stub.calls == 0
    assert "--junit nowhere/g.xml" in ran.err and "--markdown nowhere/s.md" in ran.err
    ran = judgecal("gate", "--lock", served.path, "--junit", "g.md", "--markdown", "g.md")
    assert (ran.code, served.stub.calls) == (2, 0) and "--markdown and --junit name one file" in ran.err
    file = tmp_path / "m.xml"
    moved = judgecal(
        "migrate", "--lock", served.path, "--to", "correctness_v2@embedded", "--json", "--junit", file
    )
    suite = suite_of(file.read_text("utf-8"))
    assert suite.attrib["name"] == "judgecal migrate" and len(outcomes(suite)) == 1
    found = json.loads(moved.out)
    assert properties(suite)["decision"] == found["decision"]
    assert outcomes(suite) == [{"pass": "passed", "fail": "failure"}.get(found["decision"], "error")]


# pytest

FIXTURE = """
def test_judge(judgecal_gate):
    assert judgecal_gate({lock!r}, workspace={root!r}{more}).decision == {decision!r}
"""


def _gated(pytester: pytest.Pytester, served: Served, decision: str, more: str = "") -> pytest.RunResult:
    made = {"lock": str(served.path), "root": str(served.workspace.root), "more": more, "decision": decision}
    pytester.makepyfile(FIXTURE.format(**made))
    with pytest.MonkeyPatch.context() as patch:  # whether this checkout is installed or not
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        return pytester.runpytest_inprocess("-p", "judgecal.pytest_plugin", "-p", "no:cacheprovider")


@pytest.mark.parametrize(
    ("decision", "outcome"), [("pass", "passed"), ("fail", "failed"), ("changed", "failed")]
)
def test_the_fixture_fails_with_the_headline_and_what_to_do(
    pytester: pytest.Pytester, served: Served, monkeypatch: pytest.MonkeyPatch, decision: str, outcome: str
) -> None:
    assert judgecal_package.gate is gate
    result = dataclasses.replace(_stopped(served), decision=decision)
    monkeypatch.setattr(judgecal_package, "gate", lambda lock, workspace: result)
    ran = _gated(pytester, served, decision)
    ran.assert_outcomes(**{outcome: 1})
    if outcome == "failed":
        ran.stdout.fnmatch_lines([f"*{decision}: *", "next: judgecal *", "run: *"])


@pytest.mark.parametrize("how", ["fail", "skip", "pass"])
def test_what_cannot_be_told_is_what_one_says(pytester: pytest.Pytester, served: Served, how: str) -> None:
    more = f", budget_usd=0.01, inconclusive={how!r}"  # ends within the first pass
    ran = _gated(pytester, served, "inconclusive", more)
    ran.assert_outcomes(**{{"fail": "failed", "skip": "skipped", "pass": "passed"}[how]: 1})


def test_a_gate_that_cannot_run_says_why(pytester: pytest.Pytester, served: Served) -> None:
    ran = _gated(pytester, served, "fail", ", margin=-1.0")
    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines(
        ["*the gate could not run: --margin is -1: a loss that is allowed is 0 or more*"]
    )
    assert served.stub.calls == 0


def test_the_plugin_loads_nothing_heavy() -> None:
    code = (
        "import sys, judgecal.pytest_plugin\n"
        "heavy = {'numpy', 'scipy', 'dspy', 'litellm', 'polars', 'pyarrow', 'sklearn', 'datasets', 'typer'}\n"
        "print(sorted(heavy & set(sys.modules)), sorted(n for n in sys.modules if "
        "n.startswith('judgecal')))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    light = ["_version", "errors", "pytest_plugin", "records", "scale"]
    assert ran.stdout.strip() == f"[] {['judgecal', *(f'judgecal.{name}' for name in light)]}"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"judgecal": "judgecal.pytest_plugin"}
    assert not [one for one in project["dependencies"] if one.startswith("pytest")]


# The GitHub Action

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
        self.stub("judgecal", 'exit "${STUB_CODE:-0}"')
        venv = '[[ $2 == venv ]] && mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; exit 0'
        self.stub("python3", venv)

    def stub(self, name: str, body: str) -> None:
        """A program that notes its arguments; `--junit` is written with the decision that STUB_DECISION
        says."""
        junit_file = (
            'for word in "$@"; do case $word in --junit=*) [[ -z ${STUB_DECISION:-} ]] || printf '
            '\'<properties><property name="decision" value="%s" /></properties>\' "$STUB_DECISION" > '
            '"${word#*=}";; '
            "esac; done"
        )
        path = self.folder / "bin" / name
        path.write_text(
            f'#!/bin/bash\nprintf "%s\\n" "$@" >> "{self.folder}/{name}.argv"\n{junit_file}\n{body}\n'
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
    junit_file = action.folder / "temp" / "judgecal-gate.xml"
    assert (action.folder / "output").read_text() == f"decision={decision}\njunit={junit_file}\n"
    summary = (action.folder / "summary").read_text()
    assert ("did not run to its end" in summary) is (code not in (0, 1, 3))
    assert action.argv("judgecal") == [
        "gate", "--lock=judge.lock.json", f"--junit={junit_file}", f"--markdown={action.folder / 'summary'}",
    ]  # fmt: skip


def test_inputs_stay_texts(action: Action) -> None:
    ran = action.run(
        1,
        LOCK=EVIL,
        WORKSPACE="space",
        MARGIN="--help",
        BUDGET_USD=EVIL,
        REPEATS_MAX="-1",
        INCONCLUSIVE="fail",
    )
    assert ran.returncode == 0 and not list(action.folder.rglob("pwned"))
    given = action.argv("judgecal")
    assert f"--lock={EVIL}" in given and f"--budget-usd={EVIL}" in given
    assert "--margin=--help" in given and "--repeats-max=-1" in given
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
