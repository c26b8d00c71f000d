"""The layers of the house and what its modules import, as `ast` reads them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.support.command import ROOT

PACKAGE = ROOT / "judgecal"

# Low to high, as the design lists them; a module imports from its own line and from those above it.
CORE = (
    "_version", "commands", "errors", "scale", "records", "artefacts", "workspace", "models",
    "prompts", "signatures", "engine",
    "tables", "goldset", "stats", "judges", "experiment", "probes", "optimize", "selection", "production", "report",
    "cli",
)  # fmt: skip
# Each imports the core and no other wing; the core knows them by two tables of strings: what a wing gives, and
# the commands with their results and documents.
WINGS = ("rag", "exchange", "bulk", "desk")
NAMED_BY_STRINGS = ("commands",)
# `python -m judgecal` is the command line by another door, and pytest's fixture the gate of it.
ENTRY = {"__main__": "cli"}
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").removesuffix("."): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
"""`engine.run` -> its file; the package's own `__init__` is the empty name."""
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def room_of(module: str) -> str:
    """The layer that a module belongs to."""
    first = module.split(".")[0]
    return ENTRY.get(first, first)


def imports_of(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Every import with its line, those inside functions and under TYPE_CHECKING too, as absolute names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from ((node.lineno, name) for name in names_of_modules(node, tree))


def names_of_modules(call: ast.Call, tree: ast.AST) -> Iterator[str]:
    """What `import_module` is given: a string, or an f-string filled from a table of the same module."""
    given = call.args[0]
    if isinstance(given, ast.Constant):
        yield str(given.value)
    elif isinstance(given, ast.JoinedStr) and isinstance(given.values[0], ast.Constant):
        head = str(given.values[0].value)
        strings = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
        rows = (f"{head}{text.split(':')[0]}" for text in strings if isinstance(text, str))
        yield from (row for row in rows if row.removeprefix("judgecal.") in MODULES)


def imported(module: str) -> Iterator[tuple[int, str]]:
    """The imports of a module of the package."""
    package = ".".join(("judgecal", *MODULES[module].relative_to(PACKAGE).parts[:-1]))
    return imports_of(TREES[module], package)
