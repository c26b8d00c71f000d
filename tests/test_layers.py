"""The shape of the house: layers, DSPy's rooms, import circles, long functions, and what the report may
hold."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.support.command import ROOT
from tests.support.layers import (
    CORE,
    MODULES,
    NAMED_BY_STRINGS,
    PACKAGE,
    TREES,
    WINGS,
    imported,
    imports_of,
    room_of,
)

# Who may know DSPy: whole layers, and single modules of others.
DSPY_LAYERS = ("signatures", "judges", "optimize", "rag")
DSPY_MODULES = ("engine.transport", "models.embedded.engine")
BANNED_NAMES = ("utils", "common", "helpers", "core", "manager")
# What works on arrays and rows alone: no model, no file of the user's.
PURE = {"stats": ("errors", "scale", "records", "stats")}

REPORT = {name: tree for name, tree in TREES.items() if name.split(".")[0] == "report"}


def layer_of(name: str) -> str | None:
    """The layer of an imported name, None where it is not ours."""
    parts = name.split(".")
    return parts[1] if parts[0] == "judgecal" and len(parts) > 1 else None


def test_every_room_has_a_layer() -> None:
    assert {room_of(module) for module in MODULES if module} <= {*CORE, *WINGS}


def may_import(module: str, layer: str) -> bool:
    """Whether a module may import from a room: of the core what is not above it, of the wings its own."""
    own = room_of(module)
    if own in PURE:
        return layer in PURE[own]
    if own in WINGS:
        return layer in (*CORE, own)
    return layer in CORE[: CORE.index(own) + 1]


def test_imports_only_from_below_and_no_wing() -> None:
    wrong = [
        f"{MODULES[module].relative_to(ROOT)}:{line} imports {name}"
        for module in filter(None, MODULES)
        for line, name in imported(module)
        if (layer := layer_of(name)) and not may_import(module, layer)
        if module not in NAMED_BY_STRINGS
    ]
    assert not wrong, "\n".join(wrong)


def test_the_tables_of_strings_import_nothing_of_ours() -> None:
    """What they name is loaded when it is asked for."""
    for module in NAMED_BY_STRINGS:
        imports = [node for node in ast.walk(TREES[module]) if isinstance(node, ast.Import | ast.ImportFrom)]
        assert not [node for node in imports if "judgecal" in ast.unparse(node)]


@pytest.mark.parametrize("table", NAMED_BY_STRINGS)
def test_what_a_table_of_strings_names_is_there(table: str) -> None:
    strings = [node.value for node in ast.walk(TREES[table]) if isinstance(node, ast.Constant)]
    named = [
        text for text in map(str, strings) if re.fullmatch(r"[a-z_.]+:\w+", text) and text != "module:name"
    ]
    wrong = [
        text
        for text in named
        if (module := text.split(":")[0]) not in MODULES
        or not re.search(rf"\b{text.split(':')[1]}\b", MODULES[module].read_text(encoding="utf-8"))
    ]
    assert not wrong and len(named) > 5


def test_dspy_is_known_to_few() -> None:
    wrong = [
        f"{MODULES[module].relative_to(ROOT)}:{line}"
        for module in MODULES
        if module.split(".")[0] not in DSPY_LAYERS and not module.startswith(DSPY_MODULES)
        for line, name in imported(module)
        if name.split(".")[0] == "dspy"
    ]
    assert not wrong, "\n".join(wrong)


def test_no_module_with_a_name_that_says_nothing() -> None:
    assert not [path for path in PACKAGE.rglob("*") if path.stem in BANNED_NAMES]


# --- import circles


def target(name: str) -> str | None:
    """The module that an imported name is or stands in: `judgecal.stats.means.mean` -> `stats.means`."""
    parts = name.split(".")
    if parts[0] != "judgecal":
        return None
    places = (".".join(parts[1:end]) for end in range(len(parts), 1, -1))
    return next(
        (place for place in places if place in MODULES), ""
    )  # what else it gives is a name of the face


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules each of which reaches all others of its group (Tarjan's strongly connected
    components)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in graph:
        if node not in order:
            visit(node)
    return found


def imports_at_run_time(module: str) -> Iterator[tuple[int, str]]:
    """All imports; of a package that resolves its names by `__getattr__`, those that run when it is
    loaded."""
    tree = TREES[module]
    if not any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body):
        return imported(module)
    top = ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
    return imports_of(top, f"judgecal.{module}".rstrip("."))


def test_no_import_circle() -> None:
    graph = {
        module: {
            other
            for _, name in imports_at_run_time(module)
            if (other := target(name)) not in (None, module)
            if module not in NAMED_BY_STRINGS  # named there, loaded by whoever asks
        }
        for module in MODULES
    }
    assert circles(graph) == []


# --- the size and the shape of functions, and what the report may hold


def per_module(offences: Callable[[ast.Module], int]) -> Counter[str]:
    """How many offences each module of `report/` holds."""
    return Counter({name: n for name, tree in REPORT.items() if (n := offences(tree))})


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_no_function_over_80_lines() -> None:
    long = Counter(
        f"{name}:{one.name}"
        for name, tree in TREES.items()
        for one in functions(tree)
        if (one.end_lineno or 0) - one.lineno + 1 > 80
    )
    assert not long, f"functions over 80 lines: {sorted(long)}"


def untyped_parameters(tree: ast.Module) -> int:
    """Parameters that are a mapping of anything, alone or inside another type."""
    every = (
        parameter
        for one in functions(tree)
        for parameter in [
            *one.args.posonlyargs,
            *one.args.args,
            *one.args.kwonlyargs,
            one.args.vararg,
            one.args.kwarg,
        ]
    )
    said = (ast.unparse(one.annotation) for one in every if one is not None and one.annotation is not None)
    return sum(bool(re.search(r"\b(dict|Mapping)\[str, Any\]", one)) for one in said)


def test_the_report_takes_typed_results() -> None:
    assert not per_module(untyped_parameters)


def marked_up_strings(tree: ast.Module) -> int:
    """Strings that hold `<` and a letter or `/`; docstrings are prose."""
    prose = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    strings = (
        node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return sum(id(node) not in prose and bool(re.search(r"<[A-Za-z/]", str(node.value))) for node in strings)


def test_no_markup_in_a_string_of_the_report() -> None:
    assert not per_module(marked_up_strings)


def test_no_second_text_of_a_result() -> None:
    assert not [name for name in MODULES if name.endswith("_text")]


# --- the tests themselves


def test_no_test_module_imports_another() -> None:
    """What they share stands in tests/support/."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for line, name in imports_of(ast.parse(path.read_text(encoding="utf-8")), "tests")
        if re.match(r"tests\.(\w+\.)*test_|tests\.conftest\b", name)
    ]
    assert not wrong, "\n".join(wrong)
