"""judgecal: calibrate an LLM judge against people before you trust its numbers.

The names below are loaded when they are first used, so that `import judgecal` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from judgecal._version import __version__
from judgecal.records import Result

if TYPE_CHECKING:
    from judgecal.errors import InputError, JudgecalError
    from judgecal.exchange.mlflow_scorer import mlflow_scorer
    from judgecal.experiment import Judgements
    from judgecal.experiment.in_python import agreement, compare, score
    from judgecal.goldset import Columns, GoldSet, load_gold
    from judgecal.judges import judge_named as Judge  # noqa: N812 - Python's door to a judge of any kind
    from judgecal.optimize.plain_dspy import examples, metric
    from judgecal.optimize.run import optimize
    from judgecal.probes.run import probe
    from judgecal.production.judge import judge
    from judgecal.production.plan import plan
    from judgecal.production.rate import rate
    from judgecal.rag.evaluation.run import evaluate
    from judgecal.records import Estimate, Item, Judgement, Rating
    from judgecal.report.experiments import load_report
    from judgecal.scale import Scale
    from judgecal.selection.gate import gate
    from judgecal.selection.migrate import migrate
    from judgecal.selection.select import select
    from judgecal.signatures import load_signature
    from judgecal.stats import alt_test, reliability

# Where each name is; behind a colon, under which name.
_HOME = {
    "Columns": "judgecal.goldset",
    "Estimate": "judgecal.records",
    "GoldSet": "judgecal.goldset",
    "InputError": "judgecal.errors",
    "Item": "judgecal.records",
    "Judge": "judgecal.judges:judge_named",
    "JudgecalError": "judgecal.errors",
    "Judgement": "judgecal.records",
    "Judgements": "judgecal.experiment",
    "Rating": "judgecal.records",
    "Scale": "judgecal.scale",
    "agreement": "judgecal.experiment.in_python",
    "alt_test": "judgecal.stats",
    "compare": "judgecal.experiment.in_python",
    "evaluate": "judgecal.rag.evaluation.run",
    "examples": "judgecal.optimize.plain_dspy",
    "gate": "judgecal.selection.gate",
    "judge": "judgecal.production.judge",
    "load_gold": "judgecal.goldset",
    "load_report": "judgecal.report.experiments",
    "load_signature": "judgecal.signatures",
    "metric": "judgecal.optimize.plain_dspy",
    "migrate": "judgecal.selection.migrate",
    "mlflow_scorer": "judgecal.exchange.mlflow_scorer",
    "optimize": "judgecal.optimize",
    "plan": "judgecal.production.plan",
    "probe": "judgecal.probes.run",
    "rate": "judgecal.production.rate",
    "reliability": "judgecal.stats",
    "score": "judgecal.experiment.in_python",
    "select": "judgecal.selection.select",
}

__all__ = [
    "Columns",
    "Estimate",
    "GoldSet",
    "InputError",
    "Item",
    "Judge",
    "JudgecalError",
    "Judgement",
    "Judgements",
    "Rating",
    "Scale",
    "__version__",
    "agreement",
    "alt_test",
    "compare",
    "evaluate",
    "examples",
    "gate",
    "judge",
    "load_gold",
    "load_report",
    "load_signature",
    "metric",
    "migrate",
    "mlflow_scorer",
    "optimize",
    "plan",
    "probe",
    "rate",
    "reliability",
    "score",
    "select",
]


if not TYPE_CHECKING:  # which would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module 'judgecal' has no attribute {name!r}")
        module, _, other = _HOME[name].partition(":")
        home = importlib.import_module(module)
        # a package is called itself
        value = home if module == f"{__name__}.{name}" else getattr(home, other or name)
        globals()[name] = value
        return value


def _drawn(result: Result, by: str) -> str:
    text: str = getattr(importlib.import_module("judgecal.report.experiments"), by)(result)
    return text


# a result lies below the report, which knows how it is drawn
Result.notebook_block = lambda result: _drawn(result, "block_of")
Result.headline_text = lambda result: _drawn(result, "text_of")


def __dir__() -> list[str]:
    return sorted(__all__)
