"""`judgecal gold make`: questions with answers from documents, as drafts for people to accept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import option
from judgecal.cli.output import print_result

if TYPE_CHECKING:
    from judgecal.rag.retrieval import Collection
    from judgecal.workspace import Workspace


@dataclass(frozen=True, slots=True)
class MakeArguments:
    """What questions are made of, how many of which kind, and by whom."""

    documents: Annotated[
        str,
        option(
            "Folder of documents (txt, md, HTML, PDF, DOCX), one such file, a table (document_id, title, "
            "text), "
            "or a gold set with documents.",
            metavar="PATH|SET",
        ),
    ] = "starter"
    n: Annotated[int, option("Questions, over all kinds in equal shares.", "-n", metavar="N")] = 20
    kinds: Annotated[
        str, option("factoid, two_documents, unanswerable, distracting; with commas between.")
    ] = "factoid,two_documents,unanswerable,distracting"
    model: Annotated[str, option("Who makes the questions.")] = "embedded"
    critic: Annotated[str | None, option("Who judges the drafts; by default --model.", metavar="MODEL")] = (
        None
    )
    per_document: Annotated[int, option("Questions of one document at most.", metavar="K")] = 3
    replace: Annotated[bool, option("Replace a set of this name.")] = False


def make_command(
    ctx: typer.Context,
    gold_set: Annotated[str, option("The name of the set.", "--as", metavar="SET")],
    *,
    what: MakeArguments,
    call: shared.ResumeArguments,
) -> None:
    """Make questions of documents, with answers and quotes.

    Each answer has the words of its document that bear it out. Rules and critics turn drafts down; the rest
    waits for people to accept it. The same command goes on after an interruption and pays for nothing twice.
    """
    from judgecal.rag.evaluation.make_document import make_document
    from judgecal.rag.evaluation.make_questions import MakeInput, plan_make

    workspace = shared.workspace_of(ctx)
    given = MakeInput(
        workspace=workspace,
        name=gold_set,
        collection=_collection(what.documents, workspace),
        n=what.n,
        kinds=tuple(shared.names(what.kinds)),
        model=what.model,
        critic=what.critic or what.model,
        options=call.options(),
        per_document=what.per_document,
        seed=call.seed,
        replace=what.replace,
    )
    run = plan_make(given, out=call.name)
    if call.dry_run:
        shared.show_plan(run.preview(), json=call.json, live=True)
        return
    result = run.run()
    again = shared.typed_command(ctx, "gold make", without=("json", "full"))
    print_result(result, make_document(result, again=again), json=call.json, full=call.full)
    shared.finish(result.n_unscored, journal=run.experiment.folder)


def _collection(name: str, workspace: Workspace) -> Collection:
    """The documents of a gold set, or of files.

    Raises:
        InputError: there is neither; or as their readers.
    """
    from judgecal.errors import unknown_name
    from judgecal.goldset import list_gold, load_gold
    from judgecal.rag.retrieval import FileColumns, collection_of_files, collection_of_gold

    known = list_gold(workspace)
    if name in known:
        return collection_of_gold(load_gold(name, workspace=workspace))
    if not Path(name).exists():
        raise unknown_name("file, folder or gold set", name, known)
    return collection_of_files(Path(name), None, columns=FileColumns())
