"""Experiments: configuration -> trials -> results."""

from judgecal.experiment.agreement import (
    Column,
    StoredExperiment,
    Table,
    entry,
    require_metric,
    verdict_matrix,
    verdict_notes,
)
from judgecal.experiment.chunks import item_scale, refuse_unfit, whole_item, whole_items
from judgecal.experiment.compare import CompareRun
from judgecal.experiment.costs import CostEstimate, plan_calls, plan_trials, together
from judgecal.experiment.drawn import refuse_unequal
from judgecal.experiment.floor import check_judge
from judgecal.experiment.folder import Experiment, open_experiment, plan_experiment, read_config
from judgecal.experiment.looks import Look, LookKind, foresee_look, look_at_test, looks_so_far, verdicts_sha
from judgecal.experiment.people import rater_entries
from judgecal.experiment.recorded import AgreementRun, read_recorded
from judgecal.experiment.result import AgreementResult, Entry, GoldSummary
from judgecal.experiment.score import (
    ScoreRun,
    asked_items,
    full_name,
    gold_config,
    judge_config,
    run_line,
    score,
    summary_of_gold,
)
from judgecal.experiment.stored import read_experiment
from judgecal.experiment.stored_verdicts import StoredVerdicts, stored_notes
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
    Due,
    Judgements,
    RunOptions,
    judge_to_journal,
    models_of,
    open_journal,
    require_keys,
    run_trials,
    say_remarks,
    stored_rows,
)

__all__ = [
    "UNREADABLE",
    "AgreementResult",
    "AgreementRun",
    "Column",
    "CompareRun",
    "CostEstimate",
    "Due",
    "Entry",
    "Experiment",
    "GoldSummary",
    "JudgedItems",
    "Judgements",
    "Look",
    "LookKind",
    "ReadRow",
    "Reader",
    "RowReader",
    "RunOptions",
    "ScoreRun",
    "StoredExperiment",
    "StoredVerdicts",
    "Table",
    "TableRows",
    "asked_items",
    "check_judge",
    "entry",
    "foresee_look",
    "full_name",
    "gold_config",
    "input_config",
    "item_scale",
    "judge_config",
    "judge_to_journal",
    "judgement_of",
    "look_at_test",
    "looks_so_far",
    "models_of",
    "open_experiment",
    "open_journal",
    "plan_calls",
    "plan_experiment",
    "plan_trials",
    "rater_entries",
    "read_config",
    "read_experiment",
    "read_recorded",
    "refuse_unequal",
    "refuse_unfit",
    "require_keys",
    "require_metric",
    "run_line",
    "run_trials",
    "say_remarks",
    "score",
    "stored_notes",
    "stored_rows",
    "summary_of_gold",
    "together",
    "verdict_matrix",
    "verdict_notes",
    "verdicts_sha",
    "whole_item",
    "whole_items",
]  # fmt: skip
