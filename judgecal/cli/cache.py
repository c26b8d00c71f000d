"""`judgecal cache`: the replies of models that are stored, so that the same request is paid once."""

from __future__ import annotations

from judgecal.cli.options import Json
from judgecal.cli.output import print_result


def path_command(as_json: Json = False) -> None:
    """Say where replies of models are stored, and how many."""
    _show(clear=False, as_json=as_json)


def clear_command(as_json: Json = False) -> None:
    """Delete every stored reply; what experiments hold stays."""
    _show(clear=True, as_json=as_json)


def _show(*, clear: bool, as_json: bool) -> None:
    from judgecal.engine.cache import stored_replies

    result = stored_replies(clear=clear)
    print_result(result, json=as_json)
