"""`judgecal retrieval`, `answer`, `evaluate` and `gold make`: their options, and what these come to."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import TrustLock, argument, columns_option, option
from judgecal.cli.output import print_result
from judgecal.errors import InputError, unknown_name

if TYPE_CHECKING:
    from judgecal.engine.run import RunOptions
    from judgecal.rag.evaluation.config import ReadConfig
    from judgecal.rag.questions import Collection
    from judgecal.workspace import Workspace

Name = str | None
File = Path | None
_MOST = 10**9  # documents or questions of an option


@dataclass(frozen=True, slots=True)
class CollectionArguments:
    """The documents and questions that are tested on, and where they stand in files."""

    gold: Annotated[Name, option("Gold set: a name under gold/, or a path; by default starter.")] = None
    questions: Annotated[File, option("Table of questions.")] = None
    documents: Annotated[File, option("Table of documents, or a folder of texts (txt, md).")] = None
    qrels: Annotated[File, option("TREC qrels, instead of a column of the questions.")] = None
    run: Annotated[
        File, option("Rankings of your own retriever: a TREC run (question Q0 document rank score tag).")
    ] = None
    col: Annotated[
        list[str] | None,
        columns_option(
            "of documents document (the id), text and title; of questions group (the id), question and "
            "reference (ids of documents, or a JSON list)"
        ),
    ] = None
    separator: Annotated[
        Name, option("The text between ids in one cell.", "--reference-separator", metavar="TEXT")
    ] = None

    def collection(self, workspace: Workspace) -> Collection:
        """Read the Collection that the options name, in a Workspace; by default the set starter's."""
        from judgecal.goldset import load_gold
        from judgecal.rag.questions import collection_of_files, collection_of_gold
        from judgecal.tables import read_columns

        files = any((self.documents, self.questions, self.qrels))
        if self.gold and files:
            raise InputError("--gold and --documents/--questions exclude each other: name one collection")
        if not files:
            gold = load_gold(self.gold or "starter", workspace=workspace)
            if not gold.documents:
                raise InputError(
                    f"gold set {gold.name} has no documents: put them into documents.jsonl "
                    "(document_id, title, text), or give --documents and --questions"
                )
            return collection_of_gold(gold)
        if self.documents is None and self.run is None:
            raise InputError("--documents FILE is missing: a table of documents, or a folder of them")
        if self.questions is None and (self.qrels is None or self.run is None):
            raise InputError("--questions FILE is missing: only --qrels with --run works without it")
        parts = ("document", "text", "title", "group", "question", "reference")
        more = {"reference_separator": self.separator}
        columns = read_columns(self.col or (), takes=parts, inputs=(), workspace=workspace, **more)
        references, columns = columns.reference, dataclasses.replace(columns, reference=None)
        return collection_of_files(
            self.documents, self.questions, qrels=self.qrels, columns=columns, references=references
        )


def retrieval(
    ctx: typer.Context,
    source: CollectionArguments,
    k: Annotated[int, option("How many documents are handed on.", "-k", "--k", min=1, max=_MOST)] = 5,
    window: Annotated[int, option("Consecutive questions in a window.", min=1, max=_MOST)] = 110,
    name: shared.Name = None,
    full: shared.Full = False,
    json: shared.Json = False,
) -> None:
    """Test the retriever alone: where the right document ranks."""
    from judgecal.experiment.folder import open_experiment, plan_experiment
    from judgecal.rag.retrieval.result import measure_retrieval, read_run
    from judgecal.records import as_plain, digest
    from judgecal.report.experiments import report_of
    from judgecal.tables import write_json_lines

    workspace = shared.workspace_of(ctx)
    collection = source.collection(workspace)
    run = None if source.run is None else read_run(source.run)
    shas = {"documents_sha256": collection.documents_sha, "questions_sha256": collection.questions_sha}
    config: dict[str, Any] = {
        "command": "retrieval",
        "collection": {"name": collection.name, **shas},
        "retriever": {"run": run.name, "sha256": run.sha256} if run else {"bm25": "okapi"},
        "k": k,
        "window": window,
    }
    slug = name or f"retrieval-{collection.name}-{digest(config)[:8]}"
    experiment = plan_experiment(workspace, config, out=slug)  # a slug that cannot be used is told now
    result = dataclasses.replace(
        measure_retrieval(collection, k=k, window=window, run=run), experiment=experiment.slug
    )
    open_experiment(experiment)
    write_json_lines(experiment.folder / "ranks.jsonl", map(as_plain, result.ranks))
    experiment.write_summary(result)
    print_result(result, report_of(workspace, experiment.slug).document, json=json, full=full)


def answer(
    ctx: typer.Context,
    models: Annotated[Name, option("Models, separated by commas.")] = None,
    signatures: Annotated[Name, option("Answerers' signatures, separated by commas.")] = None,
    gold: shared.GoldName = "starter",
    judge: Annotated[Name, option("Who rates, such as correctness_v3@embedded.")] = None,
    lock: Annotated[File, option("Rate with a locked judge (judge.lock.json).", metavar="L")] = None,
    trust_lock: TrustLock = False,
    repeats: Annotated[int, option("Judgements of each answer by a judge that calls a model.")] = 1,
    contexts: Annotated[
        str,
        option(
            "controlled, topk (the naive chain), none (closed book) or own (the items' own, numbered); "
            "several by commas."
        ),
    ] = "controlled",
    k: Annotated[int, option("Documents of --contexts topk.", "-k")] = 5,
    *,
    call: shared.RunArguments,
) -> None:
    """Test the answerer alone, with the right document in hand. Each signature x model pair answers, a judge
    rates."""
    from judgecal.rag.evaluation.config import answer_config

    workspace, options = shared.workspace_of(ctx), call.options(repeats=repeats)
    typed = shared.typed_command(ctx, "answer", without=("json", "full", "name", "retry_unscored", "dry_run"))
    config = answer_config(
        typed.partition(" answer")[2],
        gold=gold,
        signatures=shared.names(signatures or "answer_v1"),
        models=shared.names(models or "embedded"),
        contexts=shared.names(contexts),
        k=k,
        judge=judge,
        lock=lock,
        trust_lock=trust_lock,
        repeats=repeats,
    )
    _evaluate(workspace, config, options, call)


def evaluate(
    ctx: typer.Context,
    config: Annotated[Path, argument("Questions, systems and judges.", metavar="CONFIG.toml")],
    repeats: Annotated[int | None, option("Judgements of each answer by a judge that calls a model.")] = None,
    *,
    call: shared.RunArguments,
) -> None:
    """Compare whole RAG systems and their settings.

    The file says which. An option goes before what the file says; what was asked and judged before is not
    again.
    """
    from judgecal.rag.evaluation.config import read_evaluate_config

    options = call.options(repeats=1 if repeats is None else repeats)
    _evaluate(shared.workspace_of(ctx), read_evaluate_config(config), options, call, repeats=repeats)


def _evaluate(
    workspace: Workspace, config: ReadConfig, options: RunOptions, call: shared.RunArguments, **more: Any
) -> None:
    """Run a configuration, or show what it would call, and print what it came to."""
    from judgecal.rag.evaluation.run import EvaluateRun

    run = EvaluateRun(
        workspace=workspace, config=config, options=options, seed=call.seed, out=call.name, **more
    )
    if call.dry_run:
        shared.show_plan(run.preview(), json=call.json)
        return
    result = run.run()
    print_result(result, json=call.json, full=call.full)
    n = len(result.systems) * result.questions.n
    why = f"{result.n_unscored:,} of {n:,} answers lack some verdict; "
    shared.finish(result.n_unscored, f"{why}{result.states.measured} says why, row by row")


def make(
    ctx: typer.Context,
    new_set: Annotated[str, option("The name of the set.", "--as", metavar="SET")],
    documents: Annotated[
        str,
        option(
            "Folder of texts (txt, md), one such file, a table (document_id, title, text), or a gold set "
            "with documents.",
            metavar="PATH|SET",
        ),
    ] = "starter",
    n: Annotated[int, option("Questions, over all kinds in equal shares.", "-n", metavar="N")] = 20,
    kinds: Annotated[str, option("factoid, unanswerable; with a comma between.")] = "factoid,unanswerable",
    model: Annotated[str, option("Who makes the questions.")] = "embedded",
    critic: Annotated[Name, option("Who judges the drafts; by default --model.", metavar="MODEL")] = None,
    replace: Annotated[bool, option("Replace a set of this name.")] = False,
    *,
    call: shared.ResumeArguments,
) -> None:
    """Make questions from documents, with answers and quotes.

    Each answer has the words of its document that bear it out. Rules and critics turn drafts down; the rest
    waits for people to accept it. The same command goes on after an interruption and pays for nothing twice.
    """
    from judgecal.goldset import load_gold
    from judgecal.rag.evaluation.make_questions import MakeRun, make_document
    from judgecal.rag.questions import Collection, collection_of_gold, read_documents

    workspace = shared.workspace_of(ctx)
    gold_sets, path = workspace.gold_sets, Path(documents)
    if documents in gold_sets:
        collection = collection_of_gold(load_gold(documents, workspace=workspace))
    elif not path.exists():
        raise unknown_name("file, folder or gold set", documents, gold_sets)
    else:
        read, notes = read_documents(path)
        collection = Collection(path.stem, (), read, documents_from=path.name, notes=tuple(notes))
    run = MakeRun(
        workspace=workspace,
        name=new_set,
        collection=collection,
        n=n,
        kinds=tuple(shared.names(kinds)),
        model=model,
        critic=critic or model,
        options=call.options(),
        seed=call.seed,
        replace=replace,
        out=call.name,
    )
    run.check()
    if call.dry_run:
        shared.show_plan(run.preview(), json=call.json)
        return
    result = run.run()
    again = shared.typed_command(ctx, "gold make", without=("json", "full"))
    print_result(result, make_document(result, again=again), json=call.json, full=call.full)
    shared.finish(result.n_unscored, journal=run.experiment.folder)
