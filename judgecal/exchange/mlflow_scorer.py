"""A locked judge as a scorer of MLflow 3, so that a dashboard keeps its column; needs the extra `mlflow`.

    mlflow.genai.evaluate(data=..., scorers=[judgecal.mlflow_scorer("judge.lock.json", name="correctness")])

Rows are read as `judge --columns mlflow` reads them; contexts are those of the trace's retriever spans where
it has any. Sources: mlflow.org, "Custom code-based scorers" (`mlflow.genai.scorers.scorer`) and
`mlflow.entities.Feedback`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.engine import Journal
from judgecal.errors import InputError, not_installed
from judgecal.exchange.mosaic_rows import in_mosaics_words, read_record
from judgecal.experiment import RunOptions, run_trials
from judgecal.judges import Judge, JudgeName
from judgecal.records import ITEM_UNIT, Judgement
from judgecal.selection.lock import Lock, load_lock
from judgecal.selection.pass_rates import PassRule
from judgecal.workspace import find_workspace

_WORDS = {True: "yes", False: "no"}


def mlflow_scorer(
    lock: str | Path,
    *,
    name: str | None = None,
    workspace: str | Path | None = None,
    trust_lock: bool = False,
) -> Any:
    """An MLflow 3 scorer that gives a `Feedback` with the rationale: yes or no where the lock has a pass
    mark, else the verdict calibrated to the people's scale.

    Its metadata say which judge and lock gave it, which model answered, the verdict on the judge's own scale,
    and the verdict calibrated to the people's scale. What could not be judged is a `Feedback` with an error
    and no value.

    Args:
        lock: the judge.lock.json of select.
        name: of the feedback; the signature's by default.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
        trust_lock: as `--trust-lock`.
    """
    mlflow = _MLflow.load()
    locked = load_lock(Path(lock))
    home = find_workspace(None if workspace is None else Path(workspace))
    judge = locked.runnable(home, trust_lock=trust_lock)
    if judge.unit != ITEM_UNIT:
        raise InputError(
            f"{locked.judge} judges single contexts, and a scorer gives one feedback a row: use judgecal "
            "judge"
        )
    named = name or JudgeName.parse(locked.judge).signature.rpartition("/")[2].removesuffix(".py")
    locked_scorer = _LockedScorer(named, locked, judge, PassRule.of_lock(locked, judge.scale), mlflow)

    def judged(inputs: Any = None, outputs: Any = None, expectations: Any = None, trace: Any = None) -> Any:
        record = {"inputs": inputs, "outputs": outputs, "expectations": expectations}
        return locked_scorer.feedback(record | _retrieved(trace))

    judged.__name__ = named if named.isidentifier() else judged.__name__
    return mlflow.scorer(name=named)(judged)


@dataclass(frozen=True, slots=True)
class _MLflow:
    """The parts of MLflow that are used."""

    scorer: Any
    entities: Any

    @classmethod
    def load(cls) -> _MLflow:
        """InputError: it is not there, or older than 3."""
        try:
            scorers = importlib.import_module("mlflow.genai.scorers")
            return cls(scorers.scorer, importlib.import_module("mlflow.entities"))
        except (ImportError, AttributeError) as error:
            raise not_installed("mlflow_scorer needs", "mlflow>=3.1", "mlflow") from error


@dataclass(frozen=True, slots=True)
class _LockedScorer:
    name: str
    lock: Lock
    judge: Judge
    rule: PassRule
    mlflow: _MLflow

    def feedback(self, record: Mapping[str, Any]) -> Any:
        """What the judge says of one record."""
        row = in_mosaics_words(read_record(record, self.judge.inputs))
        lacking = row.lacking(self.judge)
        if lacking is not None:
            return self._failed("input", lacking, {})
        item = row.shown(self.judge)
        (found,) = run_trials([self.judge], [item], journal=Journal(None), options=RunOptions(quiet=True))
        metadata = self._metadata(found)
        if found.verdict is None:
            kind, message = (
                (found.error.kind, found.error.message) if found.error else ("parse", "no verdict")
            )
            return self._failed(kind, message, metadata)
        passed, calibrated = self.rule.passes(found.verdict), self.rule.calibrated(found.verdict)
        value = found.verdict if calibrated is None else calibrated
        return self.mlflow.entities.Feedback(
            name=self.name,
            value=value if passed is None else _WORDS[passed],
            rationale=found.reasoning or None,
            source=self._source,
            metadata=metadata,
        )

    def _failed(self, kind: str, message: str, metadata: Mapping[str, str]) -> Any:
        error = self.mlflow.entities.AssessmentError(error_code=kind, error_message=message)
        told = {**self._identity, **metadata}
        return self.mlflow.entities.Feedback(name=self.name, error=error, source=self._source, metadata=told)

    @property
    def _source(self) -> Any:
        kind = "LLM_JUDGE" if self.judge.model is not None else "CODE"
        return self.mlflow.entities.AssessmentSource(source_type=kind, source_id=self.lock.judge)

    @property
    def _identity(self) -> dict[str, str]:
        return {"judge": self.lock.judge, "lock_sha256": self.lock.sha256}

    def _metadata(self, found: Judgement) -> dict[str, str]:
        """Texts alone, as MLflow stores them; what is not known is left out."""
        calibrated = self.rule.calibrated(found.verdict)
        told = {"model_id": found.model_id, "verdict": found.verdict, "calibrated": calibrated}
        return {**self._identity, **{name: str(value) for name, value in told.items() if value is not None}}


def _retrieved(trace: Any) -> dict[str, Any]:
    """The passages that a trace's retriever spans gave, the last span's where there are several."""
    spans = [] if trace is None else trace.search_spans(span_type="RETRIEVER")
    return {"retrieved_context": spans[-1].outputs} if spans and isinstance(spans[-1].outputs, list) else {}
