"""What is declared is imported, and what is imported is declared: pyproject.toml beside the code."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# Packages that are imported by another name.
IMPORTED_AS = {"dspy-ai": "dspy", "pyyaml": "yaml", "scikit-learn": "sklearn"}
ONLY_FOR_TYPES = {"_typeshed"}  # mypy brings it along
BY_STRING = ("import_module", "find_spec", "__import__")


def packages(requirements: list[str]) -> set[str]:
    """The names by which required packages are imported."""
    names = (re.match(r"[\w.-]+", line)[0].lower() for line in requirements)  # type: ignore[index]
    return {IMPORTED_AS.get(name, name.replace("-", "_")) for name in names}


def modules(path: Path) -> Iterator[str]:
    """The modules that a file imports anywhere in it, by strings too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in BY_STRING:
            yield from (arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant))


def test_what_is_declared_is_imported_and_what_is_imported_is_declared() -> None:
    extras = PROJECT["project"]["optional-dependencies"].values()
    declared = packages(PROJECT["project"]["dependencies"]).union(*map(packages, extras))
    files = (ROOT / "judgecal").rglob("*.py")
    roots = {name.partition(".")[0] for path in files for name in modules(path)}
    imported = roots - sys.stdlib_module_names - ONLY_FOR_TYPES - {"judgecal"}
    assert imported - declared == set(), "imported and not declared"
    assert declared - imported == set(), "declared and not imported"


def test_mypy_skips_only_what_is_declared() -> None:
    extras = PROJECT["project"]["optional-dependencies"].values()
    declared = packages(PROJECT["project"]["dependencies"]).union(*map(packages, extras))
    (override,) = PROJECT["tool"]["mypy"]["overrides"]
    assert {name.removesuffix(".*") for name in override["module"]} <= declared
