"""`judgecal answer`."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import option
from judgecal.cli.output import print_result
from judgecal.cli.row_columns import Answer, TrustLock, column

if TYPE_CHECKING:
    from judgecal.goldset import GoldSet
    from judgecal.rag.answering.answerer import Answerer, Grader
    from judgecal.rag.answering.contexts import ContextOptions
    from judgecal.rag.answering.questions import Question, RecordedAnswers
    from judgecal.rag.answering.result import Dropped
    from judgecal.workspace import Workspace

DropContaminated = Annotated[
    str | None,
    option(
        "Leave out what a --contexts none run answered right.", "--drop-contaminated", metavar="EXPERIMENT"
    ),
]
RightAt = Annotated[
    float | None,
    option("Percentage from which an answer is right; else the set's mark, or 50.", "--right-at"),
]
OneQuestion = Annotated[
    str | None, option("Show this question across all systems.", "--show", metavar="GROUP")
]


@dataclass(frozen=True, slots=True)
class GraderArguments:
    """Who rates the answers."""

    judge: Annotated[str | None, option("Who rates, such as correctness_v3@embedded.")] = None
    lock: Annotated[Path | None, option("Rate with a locked judge (judge.lock.json).", metavar="L")] = None
    trust_lock: TrustLock = False

    def grader(self, workspace: Workspace) -> Grader:
        """The judge that is named, or the lock's."""
        from judgecal.rag.answering.answerer import choose_grader

        return choose_grader(self.judge, self.lock, workspace=workspace, trust_lock=self.trust_lock)


@dataclass(frozen=True, slots=True)
class ContextArguments:
    """What an answerer is shown."""

    contexts: Annotated[
        str, option("controlled, topk (the naive chain) or none (closed book); several by commas.")
    ] = "controlled"
    distractors: Annotated[int, option("Documents beside the reference document, best by BM25.")] = 3
    position: Annotated[str, option("Of the reference document: first, last, middle or a number from 1.")] = (
        "first"
    )
    without_reference: Annotated[bool, option("Leave the reference document out: does it refuse?")] = False
    k: Annotated[int, option("Documents of --contexts topk.", "-k")] = 5
    tokenizer: Annotated[str, option("Which words BM25 sees.")] = "words"

    def options(self, *, called: bool) -> tuple[ContextOptions, ...]:
        """One for each context that is asked for; where all answers come from a file, that alone."""
        from judgecal.rag.answering.contexts import ContextOptions, context_options

        options = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)[1:]}
        kinds = shared.names(self.contexts) if called else ["recorded"]
        return tuple(context_options(kinds, ContextOptions(**options), called=called))


@dataclass(frozen=True, slots=True)
class RecordedArguments:
    """Answers that a system elsewhere gave."""

    answers: Annotated[Path | None, option("Answers of a system elsewhere: CSV, TSV, JSONL or Parquet.")] = (
        None
    )
    question: Annotated[
        str | None, column("Of --answers: question id or text; by default question_id, group or question.")
    ] = None
    answer: Answer = None
    system: Annotated[str | None, column("Of --answers: by default system, or else it is one system.")] = None

    def read(self, questions: Sequence[Question]) -> RecordedAnswers | None:
        """The answers, held against the questions; None where no file is named."""
        from judgecal.rag.answering.questions import read_answers

        if self.answers is None:
            return None
        return read_answers(self.answers, questions, self.question, self.answer or "answer", self.system)


def answer(
    ctx: typer.Context,
    models: Annotated[str | None, option("Models, separated by commas.")] = None,
    signatures: Annotated[str | None, option("Answerers' signatures, separated by commas.")] = None,
    gold: shared.GoldName = "starter",
    drop_contaminated: DropContaminated = None,
    right_at: RightAt = None,
    show: OneQuestion = None,
    repeats: Annotated[int, option("Answers to each question by each system.")] = 1,
    *,
    who: GraderArguments,
    how: ContextArguments,
    table: RecordedArguments,
    call: shared.BatchArguments,
) -> None:
    """Test the answerer alone, with the right document in hand. Each signature x model pair answers, a judge
    rates."""
    from judgecal.goldset import load_gold
    from judgecal.rag.answering.answerer import answerers
    from judgecal.rag.answering.document import question_document
    from judgecal.rag.answering.questions import questions_of
    from judgecal.rag.answering.run import AnswerRun

    workspace = shared.workspace_of(ctx)
    gold_set = load_gold(gold, workspace=workspace)
    dropped = _contaminated(workspace, gold_set, drop_contaminated)
    questions = questions_of(gold_set, without=dropped.groups if dropped else ())
    called: tuple[Answerer, ...] = ()
    if table.answers is None or models or signatures:
        pairs = (shared.names(signatures or "answer_v1"), shared.names(models or "embedded"))
        called = answerers(*pairs, workspace=workspace)
    run = AnswerRun(
        workspace=workspace,
        gold=gold_set,
        found=questions,
        answerers=called,
        contexts=how.options(called=bool(called)),
        recorded=table.read(questions.asked),
        grader=who.grader(workspace),
        options=call.options(repeats=repeats),
        seed=call.seed,
        right_at=right_at,
        dropped=dropped,
        out=call.name,
    )
    if call.dry_run:
        shared.show_plan(run.preview(), json=call.json)
        return
    result = run.run(question=show)
    document = None if result.question is None else question_document(result, result.question)
    print_result(result, document, json=call.json, full=call.full)
    kinds = sum((Counter(system.unscored) for system in result.systems), Counter[str]())
    why = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    shared.finish(
        result.n_unscored,
        f"{result.n_unscored} of {result.n_expected} answers have no rating ({why}); "
        f"{run.called.journal(run.experiment.folder)} and {run.experiment.journal.name} hold why",
    )


def _contaminated(workspace: Workspace, gold: GoldSet, experiment: str | None) -> Dropped | None:
    """What a closed-book experiment answered right; None where none is named."""
    from judgecal.experiment.stored import find_experiment
    from judgecal.rag.answering.result import read_contaminated

    if experiment is None:
        return None
    return read_contaminated(find_experiment(workspace, experiment), gold=gold.name, gold_sha256=gold.sha256)
