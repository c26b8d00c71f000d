"""A locked judge as a scorer of MLflow 3, so that a dashboard keeps its column; needs the extra `mlflow`.

    mlflow.genai.evaluate(data=..., scorers=[judgecal.mlflow_scorer("judge.lock.json", name="correctness")])

Rows are read as `judge --columns mlflow` reads them; contexts are those of the trace's retriever spans where
it has any. Sources: mlflow.org, "Custom code-based scorers" (`mlflow.genai.scorers.scorer`) and
`mlflow.entities.Feedback`.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from judgecal.engine.log import Journal
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError, not_installed
from judgecal.exchange.mosaic_rows import read_record
from judgecal.experiment.judgements import whole_items
from judgecal.experiment.trials import run_trials
from judgecal.judges.protocol import JudgeName
from judgecal.records import ITEM_UNIT
from judgecal.selection.lock import load_lock
from judgecal.selection.pass_rates import PassRule
from judgecal.workspace import find_workspace


def mlflow_scorer(
    lock: str | Path,
    *,
    name: str | None = None,
    workspace: str | Path | None = None,
    trust_lock: bool = False,
) -> Any:
    """Return the MLflow 3 scorer of the lock at a path; it gives a `Feedback` with the rationale. Its value
    is yes or no where the lock has a pass mark, else the verdict calibrated.

    Its metadata say which judge and lock gave it, which model answered, the verdict on the judge's own scale,
    and the verdict calibrated to the people's scale. What could not be judged is a `Feedback` with an error
    and no value.

    Args:
        lock: the judge.lock.json of select.
        name: of the feedback; the signature's by default.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
        trust_lock: as `--trust-lock`.
    """
    try:
        scorer = importlib.import_module("mlflow.genai.scorers").scorer
        entities = importlib.import_module("mlflow.entities")
    except (ImportError, AttributeError) as error:  # not there, or older than 3
        raise not_installed("mlflow_scorer needs", "mlflow>=3.1", "mlflow") from error
    locked = load_lock(Path(lock))
    home = find_workspace(None if workspace is None else Path(workspace))
    judge = locked.runnable(home, trust_lock=trust_lock)
    if judge.unit != ITEM_UNIT:
        raise InputError(
            f"{locked.judge} judges single contexts, and a scorer gives one feedback a row: use judgecal "
            "judge"
        )
    named = name or JudgeName.parse(locked.judge).signature.rpartition("/")[2].removesuffix(
        ".py"
    ).removesuffix(".md")
    rule = PassRule.for_scale(locked.gold, judge.scale, locked.calibration)
    kind = "LLM_JUDGE" if judge.model is not None else "CODE"

    def feedback(metadata: dict[str, Any], **further: Any) -> Any:
        """Its metadata are texts alone, as MLflow stores them; what is not known is left out."""
        every = {"judge": locked.judge, "lock_sha256": locked.sha256, **metadata}
        texts = {key: str(value) for key, value in every.items() if value is not None}
        source = entities.AssessmentSource(source_type=kind, source_id=locked.judge)
        return entities.Feedback(name=named, source=source, metadata=texts, **further)

    def judged(inputs: Any = None, outputs: Any = None, expectations: Any = None, trace: Any = None) -> Any:
        record = {"inputs": inputs, "outputs": outputs, "expectations": expectations}
        spans = [] if trace is None else trace.search_spans(span_type="RETRIEVER")
        if spans and isinstance(spans[-1].outputs, list):
            record["retrieved_context"] = spans[-1].outputs
        row = read_record(record, judge.inputs)
        lacking = row.lacking(judge)
        if lacking is not None:
            return feedback({}, error=entities.AssessmentError(error_code="input", error_message=lacking))
        item, options = row.shown(judge), RunOptions(quiet=True)
        rows = run_trials([judge], [item], journal=Journal(None), options=options)
        [judgement] = whole_items(rows, judge.scale)
        verdict, failure = judgement.verdict, judgement.error
        calibrated = rule.calibrated(verdict)
        metadata = {"model_id": judgement.model_id, "verdict": verdict, "calibrated": calibrated}
        if verdict is None:
            code, message = (failure.kind, failure.message) if failure else ("parse", "no verdict")
            return feedback(metadata, error=entities.AssessmentError(error_code=code, error_message=message))
        passed = rule.passes(verdict)
        graded = verdict if calibrated is None else calibrated
        value = graded if passed is None else "yes" if passed else "no"
        return feedback(metadata, value=value, rationale=judgement.reasoning or None)

    judged.__name__ = named if named.isidentifier() else judged.__name__
    return scorer(name=named)(judged)
