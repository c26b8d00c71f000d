"""What judges held against people come to: the result with the floor below them, and its run line."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from judgecal._version import __version__
from judgecal.engine import Budget, Journal
from judgecal.errors import InputError
from judgecal.experiment.agreement import (
    AgreementResult,
    GoldSummary,
    LabelledTable,
    StoredExperiment,
    TableRate,
    constant_entry,
    entry,
    judge_entry,
    verdict_notes,
)
from judgecal.experiment.agreement_table import AgreementTable, Verdicts, free_items
from judgecal.experiment.judgements import item_scale, refuse_unfit
from judgecal.experiment.looks import looks_so_far
from judgecal.experiment.people import rater_entries, with_people
from judgecal.experiment.trials import RunOptions, run_trials
from judgecal.goldset import GoldSet, split_notes
from judgecal.judges import Judge, JudgeName, judge_named
from judgecal.models import EMBEDDED
from judgecal.records import Estimate, Item
from judgecal.scale import common_scale
from judgecal.signatures import load_signature
from judgecal.stats.prediction_powered import LabelledRows, corrected_mean, selection_test
from judgecal.stats.sample import Ints, codes_of, rescaled
from judgecal.workspace import Workspace

FLOOR_JUDGE = f"correctness_v3@{EMBEDDED}"
PAIR_FLOOR = ("longer_answer@local", f"pairwise_v1@{EMBEDDED}")
"""What stands below judges of pairs; the second where none of them has a signature."""
_REFERENCES = frozenset({"reference_answer", "reference_answers"})
_TEXTS = frozenset({"question", "answer", "answer_under_test", "response"})


def check_judge(gold: GoldSet, judge: Judge, items: Sequence[Item] = ()) -> None:
    """InputError where a judge does not fit a gold set's scale, or cannot read the given items."""
    refuse_unfit(judge, items)
    try:
        common_scale(gold.scale, item_scale(judge))
    except InputError as error:
        raise InputError(f"{judge.name} on gold set {gold.name}: {error}") from None


def prompt_signatures(judges: Iterable[str]) -> list[str]:
    """The signatures of the prompt judges among some."""
    names = map(JudgeName.read, judges)
    return [name.signature for name in names if name is not None and name.kind == "prompt"]


def floor_judges(workspace: Workspace, table: AgreementTable, judges: Iterable[str]) -> tuple[str, ...]:
    """The judges that stand below some judges: each prompt judge's own signature on the embedded model, and
    for pairs the longer answer.

    Where a judge compares an answer with a reference answer that is FLOOR_JUDGE, so that all such judges have
    one floor; so it is where there is no prompt judge, or its signature is gone.
    """
    pairs, below = any(item.pair for item in table.items), list[str]()
    usual = PAIR_FLOOR[1] if pairs else FLOOR_JUDGE
    for signature in prompt_signatures(judges):
        try:
            inputs = frozenset(load_signature(signature, workspace=workspace).inputs)
        except InputError:
            below.append(usual)
            continue
        compares = bool(inputs & _REFERENCES) and inputs <= _REFERENCES | _TEXTS
        shared = compares and table.gold.scale.numeric
        below.append(FLOOR_JUDGE if shared else f"{signature}@{EMBEDDED}")
    return tuple(dict.fromkeys([*PAIR_FLOOR[: int(pairs)], *(below or [usual])]))


def no_floor_judge(table: AgreementTable, judge: str) -> str | None:
    """Why one of the floor's judges cannot judge a table's items; None where it can."""
    why = None
    if judge == FLOOR_JUDGE and not table.gold.scale.numeric:
        why = "gives percentages, and the labels of this set have no order"
    elif judge == FLOOR_JUDGE and any(item.reference_answer is None for item in table.items):
        why = "compares with a reference answer, and some items have none"
    name = f"name SIGNATURE@{EMBEDDED}, with the judges' own signature, among them to have it as a floor"
    return why and f"{FLOOR_JUDGE} {why}: {name}"


def free_judges(
    workspace: Workspace, table: AgreementTable, judges: Iterable[str]
) -> tuple[list[Judge], list[str]]:
    """The embedded judges for the floor below some judges of a table; and the reasons where there are none.

    A signature is the user's and may be gone or changed: that costs the floor, not the result.
    """
    free, reasons = list[Judge](), list[str]()
    for name in floor_judges(workspace, table, judges):
        if why := no_floor_judge(table, name):
            reasons.append(why)
            continue
        try:
            judge = judge_named(name, workspace=workspace)
            check_judge(table.gold, judge, table.items)
            judge.check_items(table.items)
            free.append(judge)
        except InputError as error:
            reasons.append(f"the floor lacks {name}: {error}")
    return free, reasons


def floor_columns(
    workspace: Workspace, table: AgreementTable, journal: Journal, options: RunOptions, judges: Iterable[str]
) -> tuple[list[Judge], tuple[Verdicts, ...], str | None]:
    """The free judges of a table, their verdicts on its items, and why where there are none."""
    free, reasons = free_judges(workspace, table, judges)
    run_options: dict[str, Any] = {
        "journal": journal,
        "options": options,
        "budget": Budget(None),
        "label": "floor",
    }
    names, drawn, columns = {*judges}, free_items(table.items, table.seed), []
    for judge in free:
        items = table.items if judge.name in names else drawn
        columns.append(Verdicts.from_calls(judge, run_trials([judge], items, **run_options)))
    return free, tuple(columns), "; ".join(reasons) or None


def made_result(
    workspace: Workspace,
    stored: StoredExperiment,
    columns: Sequence[Verdicts],
    floor: Sequence[Verdicts],
    why: str | None,
) -> AgreementResult:
    """Make the agreement result of an experiment's judges and floor; no model is called.

    Args:
        columns: its judges, priced where their prices are known.
        floor: what stands below them, some of them among it; `why` says what it lacks.
    """
    table, config, gold = stored.table, stored.experiment.config, stored.gold
    configs = {str(judge["judge"]): judge for judge in config.get("judges", ())}
    tables = [table.with_repeats_of(column) for column in columns]
    names, judges = [], []
    for judge_table, column in zip(tables, columns, strict=True):
        judges.append(with_people(table, column, judge_entry(judge_table, column), n_judges=len(columns)))
        called = column.kind != "recorded" and column.rows
        # of a judge that the configuration does not list, what its judgements tell
        configured = f"{column.judge}[{column.rows[0].judge_fingerprint[:8]}]" if called else column.judge
        names.append(configured_name(configs[column.judge]) if column.judge in configs else configured)
    extra = {}
    if recorded := config.get("recorded"):
        extra["recorded"] = f"{recorded['file']}@{str(recorded['sha256'])[:12]}"
    most = dataclasses.replace(table, repeats=max(judge_table.repeats for judge_table in tables))
    notes = (*stored.notes, *split_notes(gold), *table.drawn_notes, *verdict_notes(gold.scale, columns))
    return AgreementResult(
        experiment=stored.experiment.slug,
        gold=summary_of_gold(table, stored.split),
        judges=tuple(judges),
        floor=(constant_entry(table), *(entry(table.asked_of(column), column) for column in floor)),
        raters=rater_entries(table, columns),
        test_looks=looks_so_far(workspace.experiments, gold),
        run_line=run_line(most, stored.split, names, extra),
        notes=notes,
        floor_reason=why,
        tie_breakers={rater: breaker.why for rater, breaker in gold.tie_breakers.items()},
        table=labelled_table(workspace, stored, columns),
    )


def stored_result(
    stored: StoredExperiment, columns: Sequence[Verdicts], workspace: Workspace
) -> AgreementResult:
    """Make the result of `score` or `agreement` again from an experiment's judgements and gold set.

    No model is called: a judge of the floor is there where it has judged, and else there is the
    reason. `columns` are its judges, priced where their prices are known.
    """
    called = {column.judge: column for column in (*columns, *stored.floor) if column.kind != "recorded"}
    judges = [column.judge for column in columns if column.kind != "recorded"]
    wanted = floor_judges(workspace, stored.table, judges)
    names = dict.fromkeys([*wanted, *(column.judge for column in stored.floor)])
    reasons = [
        no_floor_judge(stored.table, name) or f"the floor lacks {name}: it has judged nothing here"
        for name in wanted
        if name not in called
    ]
    floor = [called[name] for name in names if name in called]
    return made_result(workspace, stored, columns, floor, "; ".join(reasons) or None)


def summarised_result(stored: StoredExperiment, workspace: Workspace) -> AgreementResult | None:
    """The result that `summary.json` holds, with the looks at test as they are now.

    None where it is not of these judgements, gold set and code, or cannot be read: the judgements tell it all
    again.
    """
    experiment, gold = stored.experiment, stored.gold
    if not experiment.is_summary_current:
        return None
    try:
        result = experiment.read_summary(AgreementResult)
    except InputError:
        return None  # damaged, or of another shape
    same = (result.gold.sha256, result.gold.n_items) == (gold.sha256, len(stored.items))
    if not same or not set(stored.notes) <= set(result.notes):
        return None
    n_looks = looks_so_far(workspace.experiments, gold)
    return dataclasses.replace(result, experiment=experiment.slug, test_looks=n_looks)


def summary_of_gold(table: AgreementTable, split: str) -> GoldSummary:
    """The `gold` object of the contract for a table of a split, with what was left out without a label."""
    gold = table.gold
    return GoldSummary(
        set=gold.name,
        sha256=gold.sha256,
        split=split,
        n_items=len(table.items),
        n_groups=len(set(table.groups)),
        n_unlabelled=sum(item.item_id not in gold.labels for item in gold.select(split)),
        n_tied=len(table.tied),
        n_test_items=sum(item.group in gold.test_groups for item in table.items),
        labels_by=gold.card.labels_by,
        scale=str(gold.scale),
        pass_at=gold.scale.pass_at,
        noun="pairs" if any(item.pair for item in table.items) else "answers",
    )


def run_line(
    table: AgreementTable, split: str, judges: Sequence[str], extra: Mapping[str, Any] | None = None
) -> str:
    """The line that reproduces a table: set@sha, split, n, judges, how intervals are made, seed, version."""
    parts = {
        "gold": f"{table.gold.name}@{table.gold.sha256[:12]}",
        "split": split,
        "n": len(table.items),
        "groups": len(set(table.groups)),
        "repeats": table.repeats,
        "judges": ",".join(judges),
        **(extra or {}),
        "level": f"{table.level:.4g}",
        "by": "group",
        "seed": table.seed,
        "version": __version__,
    }
    return "|".join(f"{key}:{value}" for key, value in parts.items())


def gold_config(gold: GoldSet) -> dict[str, Any]:
    """A gold set as a configuration records it."""
    return {"set": gold.name, "sha256": gold.sha256}


def judge_config(judge: Judge) -> dict[str, Any]:
    """A judge as a configuration records it: enough to recognise it later."""
    config = {"judge": judge.name, "fingerprint": judge.fingerprint}
    if judge.signature is None or judge.model is None:
        return {**config, "kind": judge.kind, "scale": str(judge.scale)}
    return {**config, "signature_fingerprint": judge.signature.fingerprint, "model": judge.model.settings()}


def full_name(judge: Judge) -> str:
    """A judge for a run line: its string, fingerprint of its signature, model, and of all that it is."""
    return configured_name(judge_config(judge))


def configured_name(config: Mapping[str, Any]) -> str:
    """`full_name` of the judge of a configuration."""
    prompt = [str(config["signature_fingerprint"])[:8], config["model"]["id"]] if "model" in config else []
    return f"{config['judge']}[{','.join([*prompt, str(config['fingerprint'])[:8]])}]"


def labelled_table(
    workspace: Workspace, stored: StoredExperiment, columns: Sequence[Verdicts]
) -> LabelledTable | None:
    """An experiment's labelled table as its result shows it; None of one on a gold set of the workspace."""
    config = stored.experiment.config.get("table")
    if config is None:
        return None
    gold, groups = stored.gold, codes_of([item.group for item in stored.gold.items], len(stored.gold.items))
    recorded = [column for column in columns if column.kind == "recorded" and gold.scale.numeric]
    return LabelledTable(
        file=config["file"],
        columns=config["columns"],
        left_out=tuple(config["left_out"]),
        notes=tuple(config["notes"]),
        rates=tuple(_rate(gold, groups, column, stored.seed) for column in recorded),
        keep=_keep(workspace, gold.name, config),
    )


def _keep(workspace: Workspace, name: str, config: Mapping[str, Any]) -> str:
    """The command that imports the table; with a workspace first, where there is none."""
    free, number, place, made, made_in = name, 2, "", "judgecal", "judgecal-workspace"
    if workspace.is_starter:
        place = "" if Path(made_in).exists() else f"judgecal init {made_in} && "
        made = f"judgecal --workspace {made_in}"
    while ((Path(made_in) / "gold" if workspace.is_starter else workspace.gold) / free).exists():
        free, number = f"{name}-{number}", number + 1
    return f"{place}{made} gold import {shlex.quote(config['file'])} --as {free} {config['options']}"


def _rate(gold: GoldSet, groups: Ints, column: Verdicts, seed: int) -> TableRate:
    people, common = gold.scale, common_scale(gold.scale, column.scale)
    verdicts = column.on_items(gold.items, column.values)[:, 0]
    if people.kind == "binary":
        passed = verdicts >= (0.5 if common.pass_at is None else common.pass_at)
        verdicts = np.where(np.isnan(verdicts), np.nan, passed)
    else:
        verdicts = rescaled(verdicts, column.scale, people)
    labels = np.array([gold.labels.get(item.item_id, np.nan) for item in gold.items], dtype=np.float64)
    at = np.flatnonzero(~np.isnan(labels))
    labelled = LabelledRows(at, labels[at])
    ends: dict[str, Any] = {"low": people.low, "high": people.high, "seed": seed}
    done, scored = corrected_mean(verdicts, groups, labelled, **ends), verdicts[~np.isnan(verdicts)]
    raw = Estimate(
        float(scored.mean()) if len(scored) else None,
        n=len(scored),
        n_expected=len(verdicts),
        n_groups=len(np.unique(groups)),
        n_unscored=len(verdicts) - len(scored),
        reason=None if len(scored) else "no row has a verdict",
    )
    drawn = True
    if len(at) < len(verdicts):
        filled = np.where(np.isnan(verdicts), raw.value or 0.0, verdicts)
        labelled = replace(labelled, label=filled[at])
        drawn = not selection_test(filled, groups, labelled, **ends).differs
    return TableRate(column.judge, raw, done.plain, done.estimate, drawn=drawn)
