"""`judgecal init` and `judgecal models`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgecal.cli import options as shared
from judgecal.errors import notice


def init(directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")]) -> None:
    """Write the starter workspace: signatures, the starter gold set, judgecal.toml."""
    from judgecal.workspace import init_workspace

    made = init_workspace(directory)
    typer.echo(f"{made.root}: signatures/, gold/starter/, experiments/, judgecal.toml")
    notice(f"next: cd {made.root} && judgecal optimize")


def models(ctx: typer.Context, json: shared.Json = False) -> None:
    """Aliases with litellm id, price, context window, and whether the key is present."""
    from judgecal.cli.output import print_json
    from judgecal.models import load_catalogue
    from judgecal.report import text_table

    specs = load_catalogue(shared.workspace_of(ctx)).specs.values()
    if json:
        kept = ("alias", "id", "input_usd_per_1m", "output_usd_per_1m", "context_window", "key_env", "key_present")
        print_json({"models": [{name: getattr(spec, name) for name in kept} for spec in specs]})
        return
    words = {None: "none needed", True: "set", False: "not set"}
    rows = [
        [
            spec.alias,
            spec.id,
            _price(spec.input_usd_per_1m),
            _price(spec.output_usd_per_1m),
            str(spec.context_window or "-"),
            f"{spec.key_env or ''} {words[spec.key_present]}".strip(),
        ]
        for spec in specs
    ]
    header = ["alias", "litellm id", "USD/1M in", "USD/1M out", "context", "key"]
    typer.echo(text_table(header, rows, left=2))


def _price(usd: float | None) -> str:
    return "unknown" if usd is None else f"{usd:g}"
