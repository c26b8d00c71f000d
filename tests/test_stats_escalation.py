"""Which rows a person must read: the promise holds, and what is said where none can be made."""

from __future__ import annotations

import numpy as np

from judgecal.stats.error_rates import EscalationLabels, escalation


def world(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Confidences, and whether the judge is right: the surer the more often."""
    rng = np.random.default_rng(seed)
    confidence = rng.random(n)
    return confidence, rng.random(n) < 0.6 + 0.4 * confidence


def sample(confidence: np.ndarray, agrees: np.ndarray, n: int, rng: np.random.Generator) -> EscalationLabels:
    at = rng.choice(len(agrees), n, replace=False)
    return EscalationLabels(confidence[at], agrees[at], at, np.ones(n))


def test_the_promise_holds() -> None:
    rng = np.random.default_rng(0)
    confidence, agrees = world(20_000, 1)
    kept, shares = 0, []
    for _ in range(300):
        found = escalation(confidence, sample(confidence, agrees, 300, rng), target=0.85)
        if found.threshold is None:
            kept += 1
            continue
        assert found.agreement is not None and found.agreement.value is not None
        shares.append(found.share)
        kept += agrees[confidence >= found.threshold].mean() >= 0.85
    assert kept >= 0.95 * 300 - 8
    assert np.mean(shares) > 0.2 and len(shares) > 150


def test_nothing_qualifies() -> None:
    rng = np.random.default_rng(1)
    confidence, agrees = world(5_000, 2)
    few = escalation(confidence, sample(confidence, agrees, 60, rng), target=0.95)
    assert (few.threshold, few.share, few.agreement) == (None, 0.0, None)
    coin = rng.random(5_000) < 0.5
    hopeless = escalation(confidence, sample(confidence, coin, 400, rng), target=0.9)
    assert hopeless.threshold is None


def test_answers_of_one_question_count_once() -> None:
    confidence = np.ones(100)
    alone = EscalationLabels(np.ones(60), np.ones(60, np.bool_), np.arange(60), np.ones(60))
    together = EscalationLabels(np.ones(60), np.ones(60, np.bool_), np.arange(60) // 5, np.ones(60))
    assert escalation(confidence, alone, target=0.9).threshold == 1.0
    assert escalation(confidence, together, target=0.9).threshold is None
