"""Words that pages use beside the names of metrics, a line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judgecal.stats.metrics import METRICS, metric_facts

__all__ = ["MEANINGS", "glossary_of"]

MEANINGS: Mapping[str, str] = {
    "loss": "Agreement of the best judge less that of this one, in points of 100.",
    "margin": "The loss that is allowed for a lower price.",
    "interval": "By question: items of one question are not independent. Its level stands in the heading.",
    "floor": "What a judge must beat: the best constant, and the embedded model, which is free and compares words.",
    "like for like": "A person against the other people's label, and each judge on the same items against the same.",
    "false pass, false fail": "A verdict that passes what people fail; one that fails what people pass.",
    "unscored": "No verdict could be had or read. It is never 0 and never dropped.",
    "flip rate": "How often two calls on one item fall on different sides of the pass mark.",
    "look": "One use of the test labels; the more decisions, the wider the intervals.",
}


def glossary_of(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The words that a page about judges uses: the metrics of its scale, then the rest."""
    metrics = {metric_facts(name).name: None for name in found["result"]["judges"][0]["agreement"]}
    return [*((name, METRICS[name].meaning) for name in metrics), *MEANINGS.items()]
