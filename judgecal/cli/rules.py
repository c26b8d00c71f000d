"""`judgecal rules`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.output import print_result
from judgecal.wings import wing

if TYPE_CHECKING:
    from judgecal.records import Item


def rules(
    ctx: typer.Context,
    gold: Annotated[str, typer.Argument(metavar="SET", help="Gold set whose items have rules (`expect`).")],
    answers: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="A table of answers by id: the columns id, answer and maybe system."
        ),
    ] = None,
    refusal_message: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The words that refuse takes for a refusal.")
    ] = None,
    words: Annotated[
        str | None, typer.Option(metavar="FILE", help="The word list of safe, a file of the workspace.")
    ] = None,
    lemmas: Annotated[
        str | None,
        typer.Option(
            metavar="LANGUAGE", help="Compare words in their dictionary forms: pl, en ...; needs simplemma."
        ),
    ] = None,
    full: shared.Full = False,
    json: shared.Json = False,
) -> None:
    """Hold answers to the rules of their items.

    The rules are include, exclude, cite, refuse and safe; totals stand over them. Nobody is called. Phrases
    are looked for both as substrings and as whole words.
    """
    from judgecal.experiment.rules import score_rules
    from judgecal.goldset import load_gold

    workspace = shared.workspace_of(ctx)
    found = load_gold(gold, workspace=workspace)
    items: Sequence[Item] = found.items
    notes: Sequence[str] = ()
    if answers is not None:
        items, notes = wing("rule answers")(items, answers)
    given = {"message": refusal_message, "words": words, "lemmas": lemmas}
    result = score_rules(
        items,
        set_name=found.name,
        workspace=workspace,
        answers=None if answers is None else Path(answers).name,
        settings={name: value for name, value in given.items() if value is not None},
        notes=notes,
    )
    print_result(result, json=json, full=full)
    if any(one.substring.n_unscored for one in result.scores):
        raise typer.Exit(4)
