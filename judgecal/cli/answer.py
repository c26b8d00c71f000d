"""`judgecal answer`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli import options as shared
from judgecal.errors import InputError

if TYPE_CHECKING:
    from judgecal.answering import AnswerRun, ContextOptions, Dropped, RatingJudge
    from judgecal.goldset import GoldSet
    from judgecal.workspace import Workspace

_DEFAULT_JUDGE = "correctness_v3@embedded"


def answer(
    ctx: typer.Context,
    models: Annotated[str | None, typer.Option("--models", help="Models, separated by commas.")] = None,
    signatures: Annotated[
        str | None, typer.Option("--signatures", help="Answerers' signatures, separated by commas.")
    ] = None,
    gold: shared.GoldName = "starter",
    context: Annotated[
        str,
        typer.Option(
            "--context", help="controlled, topk (the naive chain) or none (closed book); several by commas."
        ),
    ] = "controlled",
    distractors: Annotated[
        int, typer.Option("--distractors", help="Documents beside the reference document, best by BM25.")
    ] = 3,
    position: Annotated[
        str,
        typer.Option("--position", help="Of the reference document: first, last, middle or a number from 1."),
    ] = "first",
    without_reference: Annotated[
        bool, typer.Option("--without-reference", help="Leave the reference document out: does it refuse?")
    ] = False,
    k: Annotated[int, typer.Option("-k", help="Documents of --context topk.")] = 5,
    tokenizer: Annotated[str, typer.Option("--tokenizer", help="Which words BM25 sees.")] = "words",
    answers: Annotated[
        Path | None,
        typer.Option("--answers", help="Answers of a system elsewhere: CSV, TSV, JSONL or Parquet."),
    ] = None,
    question_column: Annotated[
        str | None,
        typer.Option(
            "--question-column",
            help="Of --answers: question id or text; by default question_id, group or question.",
        ),
    ] = None,
    answer_column: Annotated[str, typer.Option("--answer-column", help="Of --answers.")] = "answer",
    system_column: Annotated[
        str | None,
        typer.Option("--system-column", help="Of --answers: by default system, or else it is one system."),
    ] = None,
    judge: Annotated[
        str | None, typer.Option("--judge", help="Who rates, such as correctness_v3@embedded.")
    ] = None,
    lock: Annotated[
        Path | None, typer.Option("--lock", metavar="L", help="Rate with a locked judge (judge.lock.json).")
    ] = None,
    drop_contaminated: Annotated[
        str | None,
        typer.Option(
            "--drop-contaminated",
            metavar="EXPERIMENT",
            help="Leave out what a --context none run answered right.",
        ),
    ] = None,
    right_at: Annotated[
        float | None,
        typer.Option(
            "--right-at", help="Percentage from which an answer is right; else the set's mark, or 50."
        ),
    ] = None,
    question: Annotated[
        str | None, typer.Option("--question", metavar="GROUP", help="Show this question across all systems.")
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", help="Answers to each question by each system.")] = 1,
    *,
    call: shared.RunArguments,
) -> None:
    """The answerer test: every signature x model pair with the right document in hand, rated by one judge."""
    options = call.options(repeats=repeats)
    from judgecal.answering import Answerer, AnswerInput, questions_of, read_answers
    from judgecal.experiment import together
    from judgecal.goldset import load_gold

    workspace = shared.workspace_of(ctx)
    gold_set = load_gold(gold, workspace=workspace)
    dropped = _dropped(drop_contaminated, gold_set, workspace)
    asked = questions_of(gold_set, without=dropped.groups if dropped else ())
    recorded = None
    if answers is not None:
        columns = {"question_column": question_column, "system_column": system_column}
        recorded = read_answers(answers, asked.asked, answer_column=answer_column, **columns)
    called = _called(models, signatures, recorded=recorded is not None)
    made = AnswerInput(
        workspace=workspace,
        gold=gold_set,
        questions=asked,
        answerers=tuple(Answerer(name, workspace=workspace) for name in called),
        recorded=recorded,
        rater=_rater(judge, lock, workspace),
        options=options,
        seed=call.seed,
        right_at=right_at,
        dropped=dropped,
    )
    contexts = _contexts(
        shared.names(context) if called else ["recorded"],
        distractors=distractors,
        position=position,
        without_reference=without_reference,
        k=k,
        tokenizer=tokenizer,
        called=bool(called),
    )
    several = len(contexts) > 1
    runs = [
        made.run(one, out=f"{call.name}-{one.kind}" if call.name and several else call.name)
        for one in contexts
    ]
    for run in runs:
        run.check()
    if call.dry_run:
        shared.show_plan(together([run.preview() for run in runs]), json=call.json)
        return
    results = [run.run(question=question) for run in runs]
    _show(results, question=question is not None, json=call.json)
    _finish(runs, results)


def _dropped(name: str | None, gold: GoldSet, workspace: Workspace) -> Dropped | None:
    """The questions that a closed-book run found contaminated, where one is named."""
    if name is None:
        return None
    from judgecal.answering import read_contaminated
    from judgecal.experiment.stored import find_experiment

    folder = find_experiment(workspace, name).folder
    return read_contaminated(folder, gold=gold.name, gold_sha256=gold.sha256)


def _rater(judge: str | None, lock: Path | None, workspace: Workspace) -> RatingJudge:
    """Who rates: the judge of a lock, or one that is named.

    Raises:
        InputError: both are given, or the lock is refused.
    """
    from judgecal.answering import rating_judge
    from judgecal.judges import judge_named

    if lock is None:
        return rating_judge(judge_named(judge or _DEFAULT_JUDGE, workspace=workspace))
    if judge is not None:
        raise InputError(f"--lock {lock} and --judge {judge} both name who rates: give one of them")
    return _locked(lock, workspace)


def _locked(path: Path, workspace: Workspace) -> RatingJudge:
    """A lock's judge; the band of an average is what its bias on test may be."""
    from judgecal.answering import rating_judge
    from judgecal.scale import Scale, common_scale
    from judgecal.selection import load_lock

    lock = load_lock(path)
    judge, bias = lock.runnable(workspace), lock.agreement.get("bias")
    band = None
    if bias is not None and bias.low is not None and bias.high is not None:
        span = common_scale(Scale.parse(lock.gold.scale), judge.scale).span
        band = 100.0 * max(abs(bias.low), abs(bias.high)) / span
    return rating_judge(
        judge,
        f"{lock.judge} ({path.name})",
        locked_on=lock.gold.set,
        band=band,
        band_from=f"the farther end of its bias on the test items of {lock.gold.set}",
    )


def _called(models: str | None, signatures: str | None, *, recorded: bool) -> list[str]:
    """Every signature x model pair; none where only answers from a file are asked for."""
    if recorded and not models and not signatures:
        return []
    pairs = [
        f"{signature}@{model}"
        for signature in shared.names(signatures or "answer_v1")
        for model in shared.names(models or "embedded")
    ]
    if not pairs:
        raise InputError("no answerer is named: give --models A,B and --signatures S,T, or --answers FILE")
    return pairs


def _contexts(
    kinds: Sequence[str],
    *,
    distractors: int,
    position: str,
    without_reference: bool,
    k: int,
    tokenizer: str,
    called: bool,
) -> list[ContextOptions]:
    """The contexts to run one after the other; an option of one kind is no part of another."""
    from judgecal.answering import ContextOptions, context_kind

    if not kinds:
        raise InputError("--context is empty: give controlled, topk, none, or several by commas")
    controlled = "controlled" in kinds
    found = []
    for kind in kinds:
        options = ContextOptions(
            kind=context_kind(kind, called=called),
            k=k,
            distractors=distractors,
            position=position,
            without_reference=without_reference and (kind == "controlled" or not controlled),
            tokenizer=tokenizer,
        )
        options.check()
        found.append(options)
    return found


def _show(results: Sequence[dict[str, Any]], *, question: bool, json: bool) -> None:
    """One object, that of further contexts under `also`; or one text below the other."""
    from judgecal.report import json_text
    from judgecal.report.answer_text import answer_text, question_text

    first, *others = results
    last = results[-1]["decomposition"]
    if others:  # the first was made before the other one was there
        first = {**first, "decomposition": first["decomposition"] or last, "also": others}
    if json:
        typer.echo(json_text(first))
        return
    texts = [question_text(one["question"]) if question else answer_text(one) for one in results]
    typer.echo("\n\n\n".join(texts))


def _finish(runs: Sequence[AnswerRun], results: Sequence[dict[str, Any]]) -> None:
    """Exit 4 where questions ended without a rated answer; says why, and where the rest of it stands."""
    for run, result in zip(runs, results, strict=True):
        if result["n_unscored"]:
            counts: Counter[str] = Counter()
            for one in result["systems"]:
                counts.update(one["unscored"])
            named = ", ".join(f"{count} {kind}" for kind, count in counts.items())
            typer.echo(
                f"judgecal: {result['n_unscored']} of {result['n_expected']} answers have no rating ({named}); "
                f"{run.answers} and {run.experiment.journal.name} hold why",
                err=True,
            )
    if any(result["n_unscored"] for result in results):
        raise typer.Exit(4)
