"""The examples that a page of the handbook cannot run by itself: a server, and what a script writes."""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT, Run, one_object

EXAMPLES = ROOT / "examples"


def test_the_files_are_what_their_script_writes(tmp_path: Path) -> None:
    runpy.run_path(str(EXAMPLES / "make.py"))["main"](tmp_path)
    made = sorted(tmp_path.iterdir())
    assert [one.name for one in made] == [
        "judged.csv",
        "mlflow_traces.jsonl",
        "mosaic.jsonl",
        "promptfoo.json",
    ]
    assert [one.name for one in made if one.read_bytes() != (EXAMPLES / one.name).read_bytes()] == []


def test_the_system_over_http_is_asked(judgecal: Run, tmp_path: Path) -> None:
    """Its port is another one here, as the example's own may be taken."""
    with subprocess.Popen(
        [sys.executable, str(EXAMPLES / "rag_server.py"), str(ROOT / "gold/starter/documents.jsonl"), "0"],
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            root = server.stdout.readline().strip()
            text = (EXAMPLES / "http_system.toml").read_text(encoding="utf-8")
            assert text.count("http://127.0.0.1:8765") == 1
            config = tmp_path / "http_system.toml"
            config.write_text(text.replace("http://127.0.0.1:8765", root).replace("limit = 40", "limit = 12"))
            found = one_object(judgecal("evaluate", config, "--json"))
        finally:
            server.terminate()
    (system,) = found["systems"]
    assert (system["system"], system["n"], system["n_unscored"]) == ("rag_server", 12, 0)
    assert 0.0 < system["answered"]["value"] <= 1.0


def test_every_example_is_named_in_its_readme() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    names = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md"}
    assert {name for name in names if f"`{name}`" not in text} == set()


def test_the_notebook_runs_and_shows_its_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cell by cell, as a notebook does: in its folder; the last expression of each is what it shows."""
    notebook = ROOT / "docs" / "notebooks" / "first_judge.py"
    monkeypatch.chdir(notebook.parent)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    names: dict[str, Any] = {"__name__": "__main__"}  # Jupyter names no file
    shown = []
    for cell in notebook.read_text(encoding="utf-8").split("# %%\n")[1:]:
        *statements, last = ast.parse(cell.split("# %% [markdown]")[0]).body
        if not isinstance(last, ast.Expr):
            statements.append(last)
        exec(compile(ast.Module(statements, []), str(notebook), "exec"), names)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), str(notebook), "eval"), names))
    pages = [one._repr_html_() for one in shown if hasattr(one, "_repr_html_")]
    assert len(pages) >= 5
    assert sum("&lt;svg" in page for page in pages) == 3  # plots, in the frame of a page
