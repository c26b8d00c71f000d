"""`judgecal retrieval`."""

from __future__ import annotations

import json as json_module
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli import options as shared
from judgecal.cli.output import print_result
from judgecal.errors import InputError

if TYPE_CHECKING:
    from judgecal.experiment import Experiment
    from judgecal.report.rendered import Report
    from judgecal.retrieval import Collection, FileColumns, RetrievalOptions, RetrievalResult, Run, Tested
    from judgecal.workspace import Workspace

_CHARTS = (".html", ".svg", ".png")

Name = str | None
File = Path | None
Gold = Annotated[
    Name, typer.Option("--gold", help="Gold set: a name under gold/, or a path; by default starter.")
]
Questions = Annotated[File, typer.Option("--questions", help="Table of questions.")]
Documents = Annotated[
    File, typer.Option("--documents", help="Table of documents, or a folder of text files.")
]
Repliqa = Annotated[
    Name,
    typer.Option(
        "--repliqa", metavar="SPLIT", help="Split of RepLiQA, as repliqa_0; DIR:SPLIT reads a local copy."
    ),
]
Qrels = Annotated[File, typer.Option("--qrels", help="TREC qrels, instead of a column of the questions.")]
RunFile = Annotated[
    File,
    typer.Option(
        "--run", help="Rankings of your own retriever: a TREC run, or JSONL of question_id, ranked."
    ),
]
K = Annotated[int, typer.Option("-k", "--k", help="How many documents are handed on.")]
TokenizerName = Annotated[str, typer.Option("--tokenizer", help="words, split, or stem:LANGUAGE.")]
WithTitle = Annotated[bool, typer.Option("--with-title", help="Index titles in front of the texts.")]
Window = Annotated[int, typer.Option("--window", help="Consecutive questions in a window.")]
Worst = Annotated[int, typer.Option("--worst", help="How many of the worst questions to show.")]
Markdown = Annotated[
    File, typer.Option("--markdown", metavar="FILE", help="Write the report as Markdown too.")
]
Chart = Annotated[File, typer.Option("--chart", metavar="FILE", help="Write charts: .html, .svg or .png.")]
IdPattern = Annotated[
    Name, typer.Option("--id-pattern", help="What wraps the documents' ids, such as pdfs_repliqa_0_<id>.txt.")
]
DocumentId = Annotated[
    Name, typer.Option("--document-id-column", help="By default document_id, doc_id, docid, _id or id.")
]
Text = Annotated[Name, typer.Option("--text-column", help="By default text.")]
Title = Annotated[Name, typer.Option("--title-column", help="By default title, where it is there.")]
QuestionId = Annotated[
    Name, typer.Option("--question-id-column", help="By default question_id, query_id, qid, _id or id.")
]
QuestionText = Annotated[Name, typer.Option("--question-column", help="By default question, query or text.")]
Reference = Annotated[
    Name,
    typer.Option(
        "--reference-column", help="Ids or a JSON list; by default reference_documents or document_id."
    ),
]
Separator = Annotated[
    Name, typer.Option("--reference-separator", metavar="TEXT", help="The text between ids in one cell.")
]


def retrieval(
    ctx: typer.Context,
    gold: Gold = None,
    questions: Questions = None,
    documents: Documents = None,
    repliqa: Repliqa = None,
    qrels: Qrels = None,
    run: RunFile = None,
    k: K = 5,
    tokenizer: TokenizerName = "words",
    with_title: WithTitle = False,
    window: Window = 110,
    worst: Worst = 10,
    id_pattern: IdPattern = None,
    document_id_column: DocumentId = None,
    text_column: Text = None,
    title_column: Title = None,
    question_id_column: QuestionId = None,
    question_column: QuestionText = None,
    reference_column: Reference = None,
    reference_separator: Separator = None,
    markdown: Markdown = None,
    chart: Chart = None,
    seed: shared.Seed = 0,
    name: shared.Name = None,
    json: shared.Json = False,
) -> None:
    """Where the reference document of each question ranks: the retriever tested alone."""
    from judgecal.report.rendered import Report
    from judgecal.report.retrieval import retrieval_document
    from judgecal.retrieval import FileColumns, RetrievalOptions, read_run

    options = RetrievalOptions(k, tokenizer, with_title, window, worst, seed)
    columns = FileColumns(
        document_id=document_id_column,
        text=text_column,
        title=title_column,
        question_id=question_id_column,
        question=question_column,
        reference=reference_column,
        separator=reference_separator,
        id_pattern=id_pattern,
    )
    options.check()
    _check_chart(chart)
    workspace = shared.workspace_of(ctx)
    files = _Files(documents, questions, qrels, columns)
    collection = _collection(workspace, files, gold=gold, repliqa=repliqa, has_run=run is not None)
    ranked = None if run is None else read_run(run)
    result = _tested(workspace, collection, options, run=ranked, out=name)
    report = Report(retrieval_document(result))
    if markdown is not None:
        markdown.write_text(report.markdown, encoding="utf-8")
    if chart is not None:
        _write_chart(chart, result, report)
    print_result(result, report.document, json=json)


@dataclass(frozen=True, slots=True)
class _Files:
    """The file options of the command."""

    documents: File
    questions: File
    qrels: File
    columns: FileColumns

    @property
    def any(self) -> bool:
        """Whether one is given."""
        return any((self.documents, self.questions, self.qrels))

    def missing(self, has_run: bool) -> list[str]:
        """What the files lack to be a collection."""
        found = []
        if self.documents is None and not has_run:
            found.append("--documents FILE is missing: a table of documents, or a folder of text files")
        if self.questions is None and not (self.qrels is not None and has_run):
            found.append("--questions FILE is missing: only --qrels with --run do without it")
        return found


def _check_chart(chart: File) -> None:
    if chart is not None and chart.suffix.lower() not in _CHARTS:
        raise InputError(f"--chart {chart}: the ending must be one of {', '.join(_CHARTS)}")


def _collection(
    workspace: Workspace, files: _Files, *, gold: Name, repliqa: Name, has_run: bool
) -> Collection:
    """The collection that the options name; the gold set starter where they name none."""
    from judgecal.goldset import load_gold
    from judgecal.retrieval import collection_of_files, collection_of_gold, load_repliqa

    given = [
        name
        for name, one in (("--gold", gold), ("--repliqa", repliqa), ("--documents/--questions", files.any))
        if one
    ]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} exclude each other: name one collection")
    if repliqa:
        return load_repliqa(repliqa)
    if not files.any:
        return collection_of_gold(load_gold(gold or "starter", workspace=workspace))
    missing = files.missing(has_run)
    if missing:
        raise InputError(missing)
    return collection_of_files(files.documents, files.questions, qrels=files.qrels, columns=files.columns)


def _tested(
    workspace: Workspace, collection: Collection, options: RetrievalOptions, *, run: Run | None, out: Name
) -> RetrievalResult:
    """Measure and store; a slug that cannot be used is told before the work."""
    from judgecal.retrieval import measure_retrieval

    experiment = _plan(workspace, collection, options, run=run, out=out)
    tested = measure_retrieval(collection, options, run)
    result = replace(tested.result, experiment=experiment.slug)
    _store(experiment, replace(tested, result=result))
    return result


def _plan(
    workspace: Workspace, collection: Collection, options: RetrievalOptions, *, run: Run | None, out: Name
) -> Experiment:
    """The experiment of this collection, retriever and options; nothing is written yet."""
    from judgecal.experiment import plan_experiment
    from judgecal.records import digest

    documents, questions = collection.shas
    config: dict[str, Any] = {
        "command": "retrieval",
        "collection": {
            "name": collection.name,
            "documents_sha256": documents or "",
            "questions_sha256": questions,
        },
        "retriever": {"run": run.name, "sha256": run.sha256} if run else {"bm25": "okapi"},
        "k": options.k,
        "tokenizer": options.tokenizer,
        "with_title": options.with_title,
        "window": options.window,
        "worst": options.n_worst,
        "seed": options.seed,
    }
    return plan_experiment(workspace, config, out=out or f"retrieval-{collection.name}-{digest(config)[:8]}")


def _store(experiment: Experiment, tested: Tested) -> None:
    """experiment.toml, summary.json and ranks.jsonl, a line a question."""
    from judgecal.experiment import open_experiment
    from judgecal.records import as_plain
    from judgecal.workspace import write_text

    open_experiment(experiment)
    lines = (json_module.dumps(as_plain(row), ensure_ascii=False) for row in tested.ranks)
    write_text(experiment.folder / "ranks.jsonl", "".join(f"{line}\n" for line in lines))
    experiment.write_summary(tested.result)


def _write_chart(path: Path, result: RetrievalResult, report: Report) -> None:
    """The page, or its charts as one picture."""
    from judgecal.report.retrieval_chart import chart_file

    ending = path.suffix.lower()
    if ending == ".html":
        report.write(path)
    else:
        path.write_bytes(chart_file(result, ending))
