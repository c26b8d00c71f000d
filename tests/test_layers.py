"""The layers of the house: a module imports only from its own layer or from those below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "judgecal"

# Low to high, as the design lists them; a room that is not built yet may stand here already.
LAYERS = (
    "errors",
    "scale",
    "records",
    "workspace",
    "models",
    "signatures",
    "goldset",
    "stats",
    "engine",
    "judges",
    "retrieval",
    "answering",
    "experiment",
    "optimize",
    "selection",
    "report",
    "cli",
)
# `python -m judgecal` is the command line by another door.
ENTRY = {"__main__": "cli"}
# Who may know DSPy: whole layers, and single modules of others.
DSPY_LAYERS = ("signatures", "judges", "optimize", "answering")
DSPY_MODULES = ("engine.transport", "models.embedded.engine")
BANNED_NAMES = ("utils", "common", "helpers", "core", "manager")
# What works on arrays and rows alone: no model, no file of the user's.
PURE = {"stats": ("errors", "scale", "records", "stats"), "report": ("errors", "scale", "records", "report")}

MODULES = sorted(PACKAGE.rglob("*.py"))


def dotted(path: Path) -> str:
    """`judgecal/engine/run.py` -> `engine.run`; the package's own `__init__` is the empty name."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(path: Path) -> str:
    """The layer that a module belongs to."""
    first = dotted(path).split(".")[0]
    return ENTRY.get(first, first)


def imports_of(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Every import with its line, those inside functions and under TYPE_CHECKING too, as absolute names."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from judgecal import cli` imports a layer; `from judgecal import __version__` imports a constant.
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """The imports of a module of the package."""
    package = ".".join(("judgecal", *path.relative_to(PACKAGE).parts[:-1]))
    return imports_of(path.read_text(encoding="utf-8"), package)


def layer_of(name: str) -> str | None:
    """The layer of an imported name, None where it is not ours or only the package's version."""
    parts = name.split(".")
    return parts[1] if parts[0] == "judgecal" and len(parts) > 1 and parts[1] != "__version__" else None


def test_every_room_has_a_layer() -> None:
    assert {room_of(path) for path in MODULES if dotted(path)} <= set(LAYERS)


@pytest.mark.parametrize("path", [path for path in MODULES if dotted(path)], ids=dotted)
def test_imports_only_from_below(path: Path) -> None:
    own = room_of(path)
    allowed = PURE.get(own, LAYERS[: LAYERS.index(own) + 1])
    wrong = [
        f"{path.name}:{line} imports {name}"
        for line, name in imported(path)
        if (layer := layer_of(name)) is not None and layer not in allowed
    ]
    assert not wrong


@pytest.mark.parametrize("path", MODULES, ids=lambda path: dotted(path) or "judgecal")
def test_dspy_is_known_to_few(path: Path) -> None:
    name = dotted(path)
    if name.split(".")[0] in DSPY_LAYERS or name.startswith(DSPY_MODULES):
        return
    wrong = [f"{path.name}:{line}" for line, what in imported(path) if what.split(".")[0] == "dspy"]
    assert not wrong


def test_no_module_with_a_name_that_says_nothing() -> None:
    assert not [path for path in PACKAGE.rglob("*") if path.stem in BANNED_NAMES]


def test_the_reader_of_imports_sees_all_kinds() -> None:
    """The test of the test: the places where an import can hide, and the relative forms."""
    source = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from judgecal.cli import app
def late():
    import judgecal.report.layout
    from judgecal import optimize, __version__
    from . import run
    from ..stats import means
"""
    assert [name for _, name in imports_of(source, "judgecal.engine")] == [
        "typing.TYPE_CHECKING",
        "judgecal.cli.app",
        "judgecal.report.layout",
        "judgecal.optimize",
        "judgecal.__version__",
        "judgecal.engine.run",
        "judgecal.stats.means",
    ]


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("judgecal.cli.app", "cli"),
        ("judgecal.stats", "stats"),
        ("judgecal.__version__", None),
        ("dspy.LM", None),
    ],
)
def test_layer_of_a_name(name: str, layer: str | None) -> None:
    assert layer_of(name) == layer
