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
    from judgecal.experiment.compare import compare
    from judgecal.experiment.in_python import Judgements, agreement, score
    from judgecal.goldset import Columns, GoldSet, load_gold
    from judgecal.judges import judge_named as Judge  # noqa: N812 - Python's door to a judge of any kind
    from judgecal.optimize.run import optimize
    from judgecal.optimize.training import examples, metric
    from judgecal.probes.run import probe
    from judgecal.production.judge import judge
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

# What each module has; behind a colon, under which name.
_NAMES = {
    "judgecal.errors": "InputError JudgecalError",
    "judgecal.exchange.mlflow_scorer": "mlflow_scorer",
    "judgecal.experiment.compare": "compare",
    "judgecal.experiment.in_python": "Judgements agreement score",
    "judgecal.goldset": "Columns GoldSet load_gold",
    "judgecal.judges": "Judge:judge_named",
    "judgecal.optimize": "optimize",
    "judgecal.optimize.training": "examples metric",
    "judgecal.probes.run": "probe",
    "judgecal.production.judge": "judge",
    "judgecal.production.rate": "rate",
    "judgecal.rag.evaluation.run": "evaluate",
    "judgecal.records": "Estimate Item Judgement Rating",
    "judgecal.report.experiments": "load_report",
    "judgecal.scale": "Scale",
    "judgecal.selection.gate": "gate",
    "judgecal.selection.migrate": "migrate",
    "judgecal.selection.select": "select",
    "judgecal.signatures": "load_signature",
    "judgecal.stats": "alt_test reliability",
}
_HOME = {
    name.partition(":")[0]: (module, name.rpartition(":")[2])
    for module, names in _NAMES.items()
    for name in names.split()
}

__all__ = [
    "Columns", "Estimate", "GoldSet", "InputError", "Item", "Judge", "JudgecalError", "Judgement",
    "Judgements", "Rating", "Scale", "__version__", "agreement", "alt_test", "compare", "evaluate",
    "examples", "gate", "judge", "load_gold", "load_report", "load_signature", "metric", "migrate",
    "mlflow_scorer", "optimize", "probe", "rate", "reliability", "score", "select",
]  # fmt: skip


if not TYPE_CHECKING:  # which would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module 'judgecal' has no attribute {name!r}")
        module, other = _HOME[name]
        home = importlib.import_module(module)
        # a package is called itself
        value = home if module == f"{__name__}.{name}" else getattr(home, other)
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
