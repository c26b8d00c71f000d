"""Experiments: configuration -> trials -> results."""

from judgecal.experiment.agreement import (
    Column,
    Table,
    entry,
    judge_entry,
    rater_entries,
    require_metric,
    scale_notes,
    verdict_matrix,
)
from judgecal.experiment.compare import CompareRun
from judgecal.experiment.folder import Experiment, open_experiment, plan_experiment, read_config
from judgecal.experiment.looks import Look, look_at_test, looks_so_far
from judgecal.experiment.plans import Plan, together
from judgecal.experiment.recorded import AgreementRun, Recorded, read_recorded
from judgecal.experiment.score import (
    FLOOR_JUDGE,
    ScoreRun,
    asked_items,
    check_scales,
    floor_entries,
    full_name,
    gold_config,
    gold_summary,
    judge_config,
    preview,
    run_line,
    score,
)
from judgecal.experiment.stored import StoredExperiment, read_experiment
from judgecal.experiment.trials import (
    Judgements,
    RunOptions,
    keep_trials,
    open_journal,
    plan_calls,
    require_keys,
    run_trials,
    stored_rows,
)

__all__ = [
    "FLOOR_JUDGE",
    "AgreementRun",
    "Column",
    "CompareRun",
    "Experiment",
    "Judgements",
    "Look",
    "Plan",
    "Recorded",
    "RunOptions",
    "ScoreRun",
    "StoredExperiment",
    "Table",
    "asked_items",
    "check_scales",
    "entry",
    "floor_entries",
    "full_name",
    "gold_config",
    "gold_summary",
    "judge_config",
    "judge_entry",
    "keep_trials",
    "look_at_test",
    "looks_so_far",
    "open_experiment",
    "open_journal",
    "plan_calls",
    "plan_experiment",
    "preview",
    "rater_entries",
    "read_config",
    "read_experiment",
    "read_recorded",
    "require_keys",
    "require_metric",
    "run_line",
    "run_trials",
    "scale_notes",
    "score",
    "stored_rows",
    "together",
    "verdict_matrix",
]
