"""What every document's sentences are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from judgecal.errors import listed

_IN_A_ROW = 4
_LEFT_OUT = 8  # columns that are named
_WORDS_BELOW = 40  # of a headline, below its sentence
_UNSCORED = "We got no verdict, or could not read it."
AS_WRONG = ("unscored", f"{_UNSCORED} It counts as wrong here, and is never dropped.")
IN_NO_RATE = ("unscored", f"{_UNSCORED} No rate counts it, and its row says why.")
"""What becomes of the unscored, as a page's glossary says it."""

CHIPS = {
    "use": ("●", "good"), "pass": ("✓", "good"), "triage only": ("◐", "careful"), "changed": ("△", "careful"),
    "too few": ("○", "open"), "cannot tell": ("○", "open"), "none": ("✕", "bad"), "fail": ("✕", "bad"),
    "unread": ("?", "bad"),
}  # fmt: skip
"""The decisions that a headline can have in a word, each with its shape and its tone."""

OWN_LABELS = "Whether people agree with these labels: the project itself made them."
"""What is not known of whatever rests on labels that no person gave."""

_FAILURES = {
    "absent": "not recorded",
    "budget": "the budget had ended",
    "code": "the judge's code failed",
    "context_length": "the prompt was too long",
    "input": "the item lacks what the judge asks for",
    "length": "the reply was cut off",
    "out_of_range": "the verdict was off the scale",
    "parse": "the reply could not be read",
    "rate_limit": "the provider was too busy",
    "refused": "the provider refused",
    "server": "the server failed",
    "timeout": "no reply in time",
    "transport": "the connection was lost",
}

Word = str | tuple[str, str]
"""A word of a page's glossary; with its meaning where the page means something of its own by it."""

_GLOSSARY = {
    "A - B": "How much more of the metric the first judge has than the second one on the same items.",
    "at most": "The most that a judge may lose against the truly best, for all judges at once.",
    "by strata": "The draw takes more labels among verdicts where the judge errs more often.",
    "calibrated rate": ("The share that passes by calibrated verdicts, with the judge's errors in it."),
    "cannot tell": "The items show neither to be better. That does not mean that the two are alike.",
    "churn": "Rows whose verdict changes sides when the new judge replaces the old one.",
    "corrected rate": "Estimate of the share that people would pass, with the judge's errors taken out.",
    "correlation": (
        "Of the judge's verdicts with people's labels; at correlation r the verdicts save r squared of "
        "the labels."
    ),
    "false pass, false fail": "A verdict that passes what people fail; one that fails what people pass.",
    "flip rate": "How often two calls on one item fall on different sides of the pass mark.",
    "floor": (
        "What a judge must beat: the best constant, and the embedded model, which is free and compares words."
    ),
    "half width": "Half the length of an interval: 71% [67, 75] has a half width of 4 points.",
    "interval": "By question, as items of one question are not independent. The heading gives its level.",
    "like for like": (
        "A person is compared with each other person, item by item, and each judge with the same labels."
    ),
    "lock": (
        "A judge that was compared with people's labels and confirmed once, with all it takes to run it "
        "again."
    ),
    "locked": "What the judge said when it was chosen; the lock holds each verdict.",
    "look": "One use of the test labels; the more decisions, the wider the intervals.",
    "loss": "How far a judge's metric lies below the best judge's, on the same items.",
    "margin": "The loss that you allow.",
    "noise": "How often two calls of the judge on one item differ.",
    "odd one out": (
        "If nothing had changed, any call of an item would be equally likely to differ from the rest."
    ),
    "p (Holm)": "The p value of a pair, corrected for all pairs compared here.",
    "PPI++": "Labels of some rows say how far the verdicts on all rows are off; their weight is tuned.",
    "precision": "Of a row's chunks that have a verdict, the share that passes; here its mean over the rows.",
    "raw rate": "Share of the verdicts that pass, as the judge gave them, with its errors in it.",
    "right": "What people pass: their label reaches the pass mark of their scale.",
    "Rogan-Gladen": "The share that is right, solved from the raw rate and error rates measured elsewhere.",
    "sensitivity": "Of what people pass, the share that the judge passes; measured when it was locked.",
    "specificity": "Of what people fail, the share that the judge fails; measured when it was locked.",
    "unscored": _UNSCORED,
}


def sentences(*parts: str | bool | Iterable[str] | None) -> tuple[str, ...]:
    """The sentences whose condition holds, in order: `n > 0 and f"{n} are left."`; lists are taken in."""
    lists = ([part] if isinstance(part, str) else part for part in parts if part and part is not True)
    return tuple(text for texts in lists for text in texts if text)


def fitting(*reasons: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What there is room for below a headline's sentence, and the rest; what weighs most comes first."""
    there = [reason for reason in reasons if reason]
    words = accumulate(len(reason.split()) for reason in there)
    n = max(1, sum(total <= _WORDS_BELOW for total in words))
    return tuple(there[:n]), tuple(there[n:])


def sentence(text: str) -> str:
    """A note as a sentence of its own; the name of a metric or a judge keeps its first letter."""
    named = not text.split(maxsplit=1)[0].rstrip(",:").isalpha()
    return f"{text}." if named else f"{text[0].upper()}{text[1:]}."


def columns_in_words(columns: Mapping[str, str], left_out: Sequence[str]) -> tuple[str, ...]:
    """What each column of a table was taken as, and which nothing is taken from."""
    used = ", ".join(f"{name} as {what}" for name, what in columns.items())
    return sentences(
        bool(columns) and f"Columns used: {used}.",
        bool(left_out) and f"Columns left: {listed(left_out, _LEFT_OUT)}.",
    )


def in_a_row(names: Sequence[str]) -> str:
    """`a, b and c`; of many the first ones, and how many more."""
    if len(names) > _IN_A_ROW:
        return listed(list(names), _IN_A_ROW)
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def path_from_here(path: Path) -> str:
    """A path as it is typed here: within the current folder without what leads to that."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def failures_in_words(unscored: Mapping[str, int]) -> str:
    """Why there is no verdict, the commonest reason first; counts where there are several."""
    reasons = sorted(unscored.items(), key=lambda reason: -reason[1])
    counts = len(reasons) > 1
    parted = ((kind.rpartition(": "), n) for kind, n in reasons)  # `answer: parse` is one of no verdict
    return ", ".join(
        f"{who}{colon}{_FAILURES.get(kind, kind)}" + f" ({n:,})" * counts for (who, colon, kind), n in parted
    )


def glossary(*words: Word) -> list[tuple[str, str]]:
    """The words of a page and what they mean."""
    return [(word, _GLOSSARY[word]) if isinstance(word, str) else word for word in words]
