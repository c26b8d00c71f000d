"""`judgecal retrieval`."""

from __future__ import annotations

import json as json_module
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import option
from judgecal.cli.output import print_result
from judgecal.errors import InputError

if TYPE_CHECKING:
    from judgecal.experiment import Experiment
    from judgecal.rag.retrieval import Collection, RetrievalOptions, Run
    from judgecal.workspace import Workspace

_CHARTS = (".html", ".svg")

Name = str | None
File = Path | None


@dataclass(frozen=True, slots=True)
class CollectionArguments:
    """The documents and questions that are tested on, and where they stand in files."""

    gold: Annotated[Name, option("Gold set: a name under gold/, or a path; by default starter.")] = None
    questions: Annotated[File, option("Table of questions.")] = None
    documents: Annotated[
        File, option("Table of documents, or a folder of them (txt, md, HTML, PDF, DOCX).")
    ] = None
    repliqa: Annotated[
        Name, option("Split of RepLiQA, as repliqa_0; DIR:SPLIT reads a local copy.", metavar="SPLIT")
    ] = None
    qrels: Annotated[File, option("TREC qrels, instead of a column of the questions.")] = None
    run: Annotated[
        File, option("Rankings of your own retriever: a TREC run, or JSONL of question_id, ranked.")
    ] = None
    id_pattern: Annotated[Name, option("What wraps the documents' ids, such as pdfs_repliqa_0_<id>.txt.")] = (
        None
    )
    document_id: Annotated[
        Name, option("By default document_id, doc_id, docid, _id or id.", "--document", metavar="COL")
    ] = None
    text: Annotated[Name, option("By default text.", "--text-column", metavar="COL")] = None
    title: Annotated[
        Name, option("By default title, where it is there.", "--title-column", metavar="COL")
    ] = None
    question_id: Annotated[
        Name, option("By default question_id, query_id, qid, _id or id.", "--group", metavar="COL")
    ] = None
    question: Annotated[Name, option("By default question, query or text.", metavar="COL")] = None
    reference: Annotated[
        Name, option("Ids or a JSON list; by default reference_documents or document_id.", metavar="COL")
    ] = None
    separator: Annotated[
        Name, option("The text between ids in one cell.", "--reference-separator", metavar="TEXT")
    ] = None

    def collection(self, workspace: Workspace) -> Collection:
        """The collection that the options name; the gold set starter where they name none."""
        from judgecal.goldset import load_gold
        from judgecal.rag.retrieval import FileColumns, collection_of_files, collection_of_gold, load_repliqa

        files = (self.documents, self.questions, self.qrels)
        sources = (
            ("--gold", self.gold),
            ("--repliqa", self.repliqa),
            ("--documents/--questions", any(files)),
        )
        given = [name for name, one in sources if one]
        if len(given) > 1:
            raise InputError(f"{' and '.join(given)} exclude each other: name one collection")
        if self.repliqa:
            return load_repliqa(self.repliqa)
        if not any(files):
            return collection_of_gold(load_gold(self.gold or "starter", workspace=workspace))
        missing = []
        if self.documents is None and self.run is None:
            missing.append("--documents FILE is missing: a table of documents, or a folder of them")
        if self.questions is None and (self.qrels is None or self.run is None):
            missing.append("--questions FILE is missing: only --qrels with --run do without it")
        if missing:
            raise InputError(missing)
        columns = FileColumns(**{field.name: getattr(self, field.name) for field in fields(FileColumns)})
        return collection_of_files(self.documents, self.questions, qrels=self.qrels, columns=columns)


@dataclass(frozen=True, slots=True)
class RetrieverArguments:
    """What is asked of the test."""

    k: Annotated[int, option("How many documents are handed on.", "-k", "--k")] = 5
    tokenizer: Annotated[str, option("words, split, or stem:LANGUAGE.")] = "words"
    with_title: Annotated[bool, option("Index titles in front of the texts.")] = False
    window: Annotated[int, option("Consecutive questions in a window.")] = 110
    worst: Annotated[int, option("How many of the worst questions to show.")] = 10
    seed: shared.Seed = 0

    def options(self) -> RetrievalOptions:
        """As the test takes them, checked."""
        from judgecal.rag.retrieval import RetrievalOptions

        options = RetrievalOptions(**asdict(self))
        options.check()
        return options


def retrieval(
    ctx: typer.Context,
    source: CollectionArguments,
    test: RetrieverArguments,
    markdown: Annotated[File, option("Write the report as Markdown too.", metavar="FILE")] = None,
    chart: Annotated[File, option("Write charts: .html (the page) or .svg.", metavar="FILE")] = None,
    name: shared.Name = None,
    full: shared.Full = False,
    json: shared.Json = False,
) -> None:
    """Test the retriever alone: where the right document ranks."""
    from judgecal.experiment import open_experiment
    from judgecal.rag.retrieval import measure_retrieval, read_run
    from judgecal.rag.retrieval.document import chart_file
    from judgecal.records import as_plain
    from judgecal.report.experiments import report_of
    from judgecal.workspace import write_text

    options = test.options()
    if chart is not None and chart.suffix.lower() not in _CHARTS:
        raise InputError(f"--chart {chart}: the ending must be one of {', '.join(_CHARTS)}")
    workspace = shared.workspace_of(ctx)
    collection = source.collection(workspace)
    ranked = None if source.run is None else read_run(source.run)
    # a slug that cannot be used is told now
    experiment = _plan(workspace, collection, options, run=ranked, out=name)
    tested = measure_retrieval(collection, options, ranked)
    result = replace(tested.result, experiment=experiment.slug)
    open_experiment(experiment)
    lines = (json_module.dumps(as_plain(row), ensure_ascii=False) for row in tested.ranks)
    write_text(experiment.folder / "ranks.jsonl", "".join(f"{line}\n" for line in lines))
    experiment.write_summary(result)
    report = report_of(workspace, experiment.slug)
    if markdown is not None:
        markdown.write_text(report.markdown, encoding="utf-8")
    if chart is not None and chart.suffix.lower() == ".html":
        report.write(chart)
    elif chart is not None:
        chart.write_text(chart_file(result), encoding="utf-8")
    print_result(result, report.document, json=json, full=full)


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
        **asdict(options),
    }
    return plan_experiment(workspace, config, out=out or f"retrieval-{collection.name}-{digest(config)[:8]}")
