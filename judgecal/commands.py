"""Every command of the program, in one table of strings: the core knows those of the wings by it, too.

A new command is its run with its result, the document of that result, and a line here. What a line names is
loaded by whoever calls it: `--help` and completion load none.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Command:
    """One command; what is loaded stands as `module:name` below `judgecal`."""

    name: str  # as it is typed
    function: str  # whose parameters are the options
    line: str  # of help: the first sentence of the function's docstring
    example: str = ""  # arguments, in an order in which one command gives the next what it reads
    documents: Mapping[str, str] = field(default_factory=dict)  # class of a result -> what makes its document
    report: str = ""  # of its experiment: the stored result's class, or of (workspace, experiment, margin)

    @property
    def group(self) -> str:
        """The first word of a name of two words, else empty."""
        return self.name.rpartition(" ")[0]

    @property
    def word(self) -> str:
        """The last word of the name."""
        return self.name.rpartition(" ")[2]


OPTIMIZER_NAMES = {
    **{name: name for name in ("auto", "labeled", "fewshot", "mipro", "gepa", "simba", "copro")},
    "LabeledFewShot": "labeled",
    "BootstrapFewShot": "fewshot",
    "BootstrapFewShotWithRandomSearch": "fewshot",  # which is that: dev chooses among its draws
    "MIPROv2": "mipro",
    "GEPA": "gepa",
    "SIMBA": "simba",
    "COPRO": "copro",
}
"""What `--optimizer` takes, DSPy's own names too; ours each for itself."""

# fmt: off
TABLE = {
    "Set up": (
        Command("init", "cli.report:init", "Write the starter workspace into a new folder.",
                "my-workspace"),
        Command("models", "cli.report:models",
                "List the models (price, key), and where replies are stored.",
                documents={"ModelsHere": "report.listings:models_document"}),
        Command("judges", "cli.report:judges",
                "List signatures, rules and suites, or check one of them.",
                "correctness_v3",
                documents={"Listing": "report.listings:judges_here_document",
                           "ShownJudge": "report.listings:shown_judge_document"}),
    ),
    "Gold set": (
        Command("gold import", "cli.gold_import:import_command",
                "Make a gold set from a table or another tool's export.",
                "labels.csv --as my-set --label ann --label bob --scale binary",
                documents={"Imported": "report.gold:import_document"}),
        Command("gold check", "cli.gold:check_command",
                "List the gold sets, or name every problem of one.", "starter",
                documents={"GoldList": "report.gold:list_document",
                           "CheckedSet": "report.gold:check_document"}),
        Command("gold make", "rag.commands:make",
                "Make questions from documents, with answers and quotes.",
                "--documents starter --as made -n 8",
                documents={"MadeQuestions": "rag.evaluation.make_questions:make_document"},
                report="rag.evaluation.make_questions:MadeQuestions"),
        Command("gold sheet", "cli.gold:sheet_command",
                "Write blind sheets for people to label in a spreadsheet.", "my-set -o sheet.csv"),
        Command("gold label", "desk.command:label_command",
                "Label in the browser, on a page of this machine.", "my-set --raters ann,bob"),
    ),
    "Judge": (
        Command("score", "cli.agreement:score", "Run judges over a gold set: their agreement with people.",
                "--signatures correctness_v1,correctness_v2,correctness_v3 --name three",
                report="report.judges:judges_report"),
        Command("agreement", "cli.agreement:agreement",
                "Say whether a CSV's judges agree with its people's labels.",
                "labels.csv --label ann --verdict bob",
                report="report.judges:judges_report"),
        Command("probe", "cli.agreement:probe", "Say which judge can be fooled, by answers made by rules.",
                "--families empty,refusal,give_100 -n 10",
                documents={"ProbeResult": "report.probe:probe_document"},
                report="probes.result:ProbeResult"),
        Command("optimize", "cli.agreement:optimize",
                "Improve a judge's prompt, and say whether it improved.",
                "--model embedded --gold starter",
                documents={"OptimizeResult": "report.optimize:optimize_document"},
                report="optimize.result:OptimizeResult"),
        Command("compare", "cli.agreement:compare", "Say which of two judges is better on the same items.",
                "three",
                documents={"CompareResult": "report.compare:compare_document"},
                report="experiment.compare:CompareResult"),
    ),
    "Choose and keep": (
        Command("select", "cli.select:select", "Choose the cheapest judge within the margin, and lock it.",
                "three -o judge.lock.json",
                documents={"SelectResult": "report.select:select_document"},
                report="selection.select_result:SelectResult"),
        Command("gate", "cli.select:gate", "Score the locked judge again: has it drifted?",
                "--lock judge.lock.json",
                documents={"GateResult": "report.gate:gate_document"},
                report="selection.gate:GateResult"),
        Command("migrate", "cli.select:migrate",
                "Say whether another judge may replace the locked one.",
                "--lock judge.lock.json --to rag/correctness@embedded",
                documents={"MigrateResult": "report.gate:migrate_document"},
                report="selection.migrate:MigrateResult"),
        Command("judge", "cli.judge:judge", "Judge a table of answers with locked judges or a suite.",
                "answers.csv --lock judge.lock.json -o judged.csv --col question=q --col answer=a",
                documents={"JudgeResult": "report.judge:judge_document"},
                report="production.results:JudgeResult"),
        Command("rate", "cli.judge:rate", "Say what share is right, corrected for the judge's error.",
                "judged.csv --lock judge.lock.json --col question=q --col answer=a",
                documents={"RateResult": "report.rate:rate_document"},
                report="production.rate:RateResult"),
    ),
    "Test the rest": (
        Command("retrieval", "rag.commands:retrieval",
                "Test the retriever alone: where the right document ranks.", "--gold starter",
                documents={"RetrievalResult": "rag.retrieval.document:retrieval_document"},
                report="rag.retrieval.result:RetrievalResult"),
        Command("answer", "rag.commands:answer",
                "Test the answerer alone, with the right document in hand.",
                "--signatures answer_v1,answer_v2",
                report="rag.evaluation.document:evaluate_report"),
        Command("evaluate", "rag.commands:evaluate", "Compare whole RAG systems and their settings.",
                "sweep.toml",
                documents={"EvaluateResult": "rag.evaluation.document:evaluate_document"},
                report="rag.evaluation.document:evaluate_report"),
    ),
    "Report": (
        Command("report", "cli.report:report", "Show an experiment again, or the card of a locked judge.",
                "three"),
    ),
}
# fmt: on
"""Title on the first help -> its commands."""

GROUPS = {"gold": "Gold sets: check, import, made questions, sheets, labelling."}
"""First word of commands of two words -> what its help says."""

COMMANDS = {command.name: command for commands in TABLE.values() for command in commands}
"""Every command by its name."""


def load(name: str) -> Any:
    """Import and return what a name, a `module:name` of the table, stands for."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(f"judgecal.{module}"), attribute)


def document_of(result: object) -> Any:
    """Return the Document of a result; None where the table names none for its class."""
    kind = type(result).__name__
    makers = (command.documents[kind] for command in COMMANDS.values() if kind in command.documents)
    maker = next(makers, None)
    return None if maker is None else load(maker)(result)


GIVES = {
    "answered items": "rag.evaluation.run:answered_items",
    "guess export": "exchange.exports:guess",
    "import export": "exchange.export_import:import_export",
    "export labels": "exchange.export_import:LabelOptions",
    "data set of the Hub": "exchange.hub:read_hub",
    "holds rules": "exchange.rag_ifeval:holds_rules",
    "import rules": "exchange.rag_ifeval:import_rules",
    "mosaic rows": "exchange.mosaic_rows:MosaicReader",
    "files": "bulk.files:FilesRun",
    "ray": "bulk.ray_engine:judge_on_ray",
    "needs ray": "bulk.ray_engine:require_ray",
}
"""What the wings give the core, which imports none of them: name -> `module:attribute` below `judgecal`."""


def wing(name: str) -> Any:
    """What a wing gives under a name of the table; its module is loaded now."""
    return load(GIVES[name])
