"""Experiments: configuration -> trials -> results."""

from judgecal.experiment.agreement import (
    AgreementResult,
    Entry,
    GoldSummary,
    StoredExperiment,
    entry,
    refuse_unequal,
    verdict_notes,
)
from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.experiment.compare import CompareRun
from judgecal.experiment.folder import Experiment, open_experiment, plan_experiment, read_config
from judgecal.experiment.judgements import StoredVerdicts, item_scale, stored_notes, whole_item, whole_items
from judgecal.experiment.looks import (
    Look,
    LookKind,
    foresee_look,
    look_at_test,
    looks_so_far,
    seen_judges,
    verdicts_sha,
)
from judgecal.experiment.recorded import read_recorded
from judgecal.experiment.score import (
    ScoreRun,
    asked_items,
    check_judge,
    full_name,
    gold_config,
    judge_config,
    run_line,
    summary_of_gold,
)
from judgecal.experiment.stored import read_experiment
from judgecal.experiment.table_rows import (
    UNREADABLE,
    JudgedItems,
    Reader,
    ReadRow,
    RowReader,
    TableRows,
    input_config,
    judgement_of,
)
from judgecal.experiment.trials import (
    CostEstimate,
    Due,
    ExperimentJournal,
    RunOptions,
    judge_to_journal,
    models_of,
    open_journal,
    plan_calls,
    plan_trials,
    recorder,
    require_keys,
    run_trials,
    say_remarks,
    stored_rows,
    together,
)

__all__ = [
    "UNREADABLE", "AgreementResult", "AgreementTable", "CompareRun", "CostEstimate", "Due", "Entry",
    "Experiment", "ExperimentJournal", "GoldSummary", "JudgedItems", "Look", "LookKind", "ReadRow",
    "Reader", "RowReader", "RunOptions", "ScoreRun", "StoredExperiment", "StoredVerdicts", "TableRows",
    "Verdicts", "asked_items", "check_judge", "entry", "foresee_look", "full_name", "gold_config",
    "input_config", "item_scale", "judge_config", "judge_to_journal", "judgement_of", "look_at_test",
    "looks_so_far", "models_of", "open_experiment", "open_journal", "plan_calls", "plan_experiment",
    "plan_trials", "read_config", "read_experiment", "read_recorded", "recorder", "refuse_unequal",
    "require_keys", "run_line", "run_trials", "say_remarks", "seen_judges", "stored_notes",
    "stored_rows", "summary_of_gold", "together", "verdict_notes", "verdicts_sha", "whole_item",
    "whole_items",
]  # fmt: skip
