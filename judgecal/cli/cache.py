"""`judgecal cache`: the replies of models that are stored, so that the same request is paid once."""

from __future__ import annotations

import typer

from judgecal.cli.help import GroupedHelp, example
from judgecal.cli.options import Json, grouped
from judgecal.cli.output import print_result

app = typer.Typer(
    help="Stored replies: path, clear.", no_args_is_help=True, rich_markup_mode=None, cls=GroupedHelp
)


@app.command("path", epilog=example("cache path"))
@grouped
def path_command(as_json: Json = False) -> None:
    """Say where replies of models are stored, and how many."""
    _show(clear=False, as_json=as_json)


@app.command("clear", epilog=example("cache clear"))
@grouped
def clear_command(as_json: Json = False) -> None:
    """Delete every stored reply; what experiments hold stays."""
    _show(clear=True, as_json=as_json)


def _show(*, clear: bool, as_json: bool) -> None:
    from judgecal.engine.cache import stored_replies
    from judgecal.report.listings import replies_document

    result = stored_replies(clear=clear)
    print_result(result, replies_document(result), json=as_json)
