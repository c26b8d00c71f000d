"""The built wheel, in an empty environment outside the checkout, does what the README says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.command import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("build")]
_UV = Path(sys.executable).parent / "uv"


def _run(*command: str | Path, cwd: Path, **environment: str) -> str:
    env = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")} | environment
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel and an sdist, built without network by the pinned hatchling."""
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


def test_the_wheel_carries_the_starter_and_no_leftovers(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (
        "judgecal/starter/prompts/correctness.md",
        "judgecal/starter/signatures/correctness_v3.py",
        "judgecal/starter/signatures/mosaic/groundedness.py",
        "judgecal/starter/suites/mosaic.toml",
        "judgecal/starter/gold/starter/items.jsonl",
        "judgecal/starter/judgecal.toml",
        "judgecal/models/embedded/weights.json",
        "judgecal/py.typed",
    ):
        assert wanted in names
    assert not [
        name
        for name in names
        if "__pycache__" in name or name.startswith(("tests/", "gold/", "experiments/"))
    ]


def test_the_sdist_holds_what_a_build_needs(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml", "signatures/answer_v1.py", "suites/mosaic.toml", "gold/starter/card.toml",
        "judgecal.toml", "examples/answers.csv", "mkdocs.yml",
    } <= names  # fmt: skip
    assert not [
        name for name in names if ".venv" in name or "__pycache__" in name or name.startswith(".demo")
    ]


def installed(dist: Path, folder: Path, interpreter: str) -> Path:
    """The command of the wheel and its pinned requirements in an empty environment of an interpreter."""
    (wheel,) = dist.glob("*.whl")
    python = folder / "env" / "bin" / "python"
    _run(_UV, "venv", "--quiet", "--python", interpreter, folder / "env", cwd=folder)
    _run(
        _UV, "pip", "sync", "--quiet", "--python", python, "--require-hashes", ROOT / "requirements.lock",
        cwd=folder,
    )  # fmt: skip
    _run(_UV, "pip", "install", "--quiet", "--python", python, "--no-deps", wheel, cwd=folder)
    return python.with_name("judgecal")


def interpreter(version: str) -> str | None:
    """An interpreter of a version that runs: of the path, or one that pyenv keeps."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{version}.*/bin/python")
    able = [path for path in (shutil.which(f"python{version}"), *map(str, sorted(kept))) if path]
    return next(
        (p for p in able if subprocess.run([p, "-c", ""], capture_output=True, check=False).returncode == 0),
        None,
    )


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_the_wheel_measures_a_judge_on_each_python(version: str, dist: Path, tmp_path: Path) -> None:
    if sys.version.startswith(f"{version}."):
        return  # the next test
    if (python := interpreter(version)) is None:
        pytest.skip(f"no Python {version} on this machine")
    tool, home = installed(dist, tmp_path, python), {"HOME": str(tmp_path)}
    table, options = ROOT / "examples" / "judged.csv", ("--labels-by", "project", "--json")
    found = json.loads(_run(tool, "agreement", table, *options, cwd=tmp_path, **home))
    assert found["judges"][0]["agreement"]["macro_agreement"]["value"] == pytest.approx(0.5271849593)


def test_a_stranger_installs_the_wheel_and_optimises(dist: Path, tmp_path: Path) -> None:
    tool = installed(dist, tmp_path, sys.executable)
    home = {"HOME": str(tmp_path / "home"), "JUDGECAL_CACHE_DIR": str(tmp_path / "cache")}
    _run(tool, "init", "demo", cwd=tmp_path, **home)
    out = _run(tool, "optimize", cwd=tmp_path / "demo", **home)
    assert "of macro_agreement once calibrated on dev" in " ".join(out.split())
    _run(tool, "score", "--limit", "20", "--name", "first", cwd=tmp_path / "demo", **home)
    page = _run(tool, "report", "first", "--format", "html", cwd=tmp_path / "demo", **home).strip()
    assert "</html>" in Path(page).read_text(encoding="utf-8")  # its templates are in the wheel
    # Outside a workspace the starter inside the package is used, and nothing is written into it.
    before = sorted(tool.parent.parent.rglob("starter/**/*"))
    _run(
        tool,
        "score",
        "--limit",
        "3",
        cwd=tmp_path / "home" if (tmp_path / "home").is_dir() else tmp_path,
        **home,
    )
    assert sorted(tool.parent.parent.rglob("starter/**/*")) == before
