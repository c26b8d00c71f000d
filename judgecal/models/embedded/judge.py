"""An answer beside a reference answer or contexts: measures, what decides, and the share that was learnt.

The measures are lexical: words, groups of letters, lengths. A logistic regression turns them into a share
0..1; `weights.json` has its coefficients and names the data that they were fitted on, by
`tests/benchmarks/embedded_fit.py`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import dropwhile
from operator import mul
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgecal.errors import listed
from judgecal.models.embedded.text import END, NEGATIONS, POLAR, STOPWORDS, Text, analyse, refuses

WEIGHTS_FILE = Path(__file__).with_name("weights.json")
Vector = NDArray[np.float64]
GROUNDS = ("words", "together", "beside")
_GRID = np.linspace(-3.0, 3.0, 7)
_PRIOR = 6.0  # demos that the shipped share counts as
_REACH = 0.5  # of a measure beside the share: how far demos move it
_MAX_ALTERNATIVES = 48
_FEW, _BRIEF, _BARE = 30, 12, 3  # tokens of a short text; key words of one; tokens of a bare yes or no
_LONG_FROM, _LONG = 15, 35  # tokens of a reference
_REFUSAL, _ONE_SENTENCE = 25, 15  # tokens of a reference that does nothing but refuse, of one sentence
_OPPOSED = 0.8  # the share of words that two texts share if they deny each other
_CALCULATION, _MANY_KEYS = 5, 12  # numbers; key words of which an answer must have one
_ASIDE, _OF_TOPIC = 8, 0.34  # tokens of a short statement; the share of its words that must be of the topic
_MANY_CHARS, _ENDING = 2_000, 400
_STATEMENT = re.compile(r"\s(?:(?<=\n)|(?<=[.!?:]\s)|\s*(?=\())\s*")

NAMES = (
    "precision", "gram_recall", "answer_length", "question_echo", "first_word", "longest_missing",
    "all_words", "new_words", "negated", "denied", "long", "long_new_words",
)  # fmt: skip
"""The measures that the map weighs, each 0..1 but for the length, a logarithm of tokens."""

RULES: Mapping[str, tuple[float, str]] = {
    "empty answer": (0.01, "The answer is empty."),
    "both refuse": (1.0, "The answer and the reference both say that there is no answer."),
    "fact against a refusal": (0.04, "The reference says that there is no answer, but the answer has one."),
    "number beside a refusal": (0.3, "The answer refuses, but gives a number all the same."),
    "the reference itself": (1.0, "The answer is the reference, word for word."),
    "refusal against a fact": (0.01, "The answer refuses, but the reference gives an answer."),
    "same yes or no": (0.7, "The answer and the reference agree on yes or no."),
    "opposite yes or no": (0.04, "The answer and the reference disagree on yes or no."),
}
"""A rule that decides alone -> the share and the sentence that says why."""
AGAINST: Mapping[str, tuple[float, str]] = {
    "retraction": (0.03, "The answer takes back what it says."),
    "echo": (0.03, "The answer only repeats the question."),
    "polarity": (0.2, "One of the two denies what the other states."),
    "elsewhere": (0.3, "It has no key word of the reference."),
    "number": (0.15, "It gives another number than the reference."),
}
"""What speaks against an answer, whatever it shares -> the part of its share that is left, and why."""
_RETRACTS = re.compile(
    r"""(?ix)\b(?:(?:false|untrue|wrong|incorrect|nonsense|a\ lie|not\ (?:true|right|correct|so|the\ case))
    |(?:forget|scratch|ignore|disregard)\ (?:that|it|this|what)|take\ (?:that|it|this)\ back
    |falsch|stimmt\ (?:so\ )?nicht|nicht\ wahr|nichts\ davon|vergiss\ (?:das|es)|unwahr|gelogen)\b"""
)
_DENIAL = re.compile(
    r"(?i)\b(?:is|are|was|were|do(?:es)?|did|ha[sd]|have|can|[cw]ould|should|will)(?: not|n['’]t)\b|cannot"
)
_CONDITION = re.compile(r"(?i)\s*(?:if|wenn|falls|si)\b")
_PART = re.compile(r"(?i)[.;:,!?()\n–—]+(?:\s|$)|\b(?:but|because|and|or|aber|und|mais|ale|pero)\b")


class Comparison:
    """An answer beside the reference alternative that it fits best, given the question.

    Attributes:
        key: what the reference says and the question does not; where it says nothing else, all of it.
        missing: of the key what the answer has not.
        foreign: words of the answer that are neither in the question nor in an alternative.
    """

    def __init__(self, question: str, alternatives: Sequence[str], answer: str) -> None:
        """Compare; `alternatives` must hold at least one text."""
        self.asked, references = analyse(question), [*map(analyse, alternatives[:_MAX_ALTERNATIVES])]
        backed = self.asked.content.union(*(text.content for text in references))
        self.whole = analyse(answer)
        self.answer = _to_the_point(self.whole, backed)
        self.reference = max(references, key=self._fits) if len(references) > 1 else references[0]
        reference, content = self.reference, self.answer.content
        self.foreign = content - backed
        self.key = reference.content - self.asked.content or reference.content
        self.missing = self.key - content

    def _fits(self, reference: Text) -> float:
        """A cheap order of the alternatives: which one is the answer most likely to match?"""
        key, answer = reference.content - self.asked.content or reference.content, self.answer
        grams = len(reference.grams & answer.grams) / (len(reference.grams) or 1)
        return len(key & answer.content) / (len(key) or 1) + grams

    @cached_property
    def rule(self) -> str | None:
        """The name of the rule in `RULES` that decides this item alone, or None."""
        answer, reference = self.answer, self.reference
        if not answer.tokens:
            return "empty answer"
        if refuses(reference.plain) and len(reference.tokens) <= _REFUSAL:
            if refuses(answer.plain) and self._gives_a_number():
                return "number beside a refusal"
            return "both refuse" if refuses(answer.plain) else "fact against a refusal"
        if self.whole.tokens == reference.tokens:
            return "the reference itself"
        if refuses(answer.plain) and self.missing and len(answer.tokens) <= 2 * _FEW:
            return "refusal against a fact"
        return self._yes_or_no()

    def _gives_a_number(self) -> bool:
        """Whether a statement that does not refuse has a number that the question has not."""
        parts = map(analyse, filter(None, map(str.strip, _STATEMENT.split(self.whole.plain))))
        return any(not refuses(part.plain) and part.numbers - self.asked.numbers for part in parts)

    def _yes_or_no(self) -> str | None:
        """A bare yes or no decides; so does an opposite one at the head of both texts."""
        texts = (self.reference, self.answer)
        polarities = [self.reference.polarity, self.whole.polarity]
        bare = any(text.polarity and _bare(text) for text in texts)
        if bare and not POLAR.isdisjoint(self.asked.tokens[:1]):
            polarities = [text.polarity or (-1 if text.negations else 1) for text in texts]
        if 0 in polarities or min(len(text.tokens) for text in texts) > _FEW or self.against:
            return None
        if polarities[0] != polarities[1]:
            return "opposite yes or no"
        return "same yes or no" if bare and len(self.reference.tokens) <= _FEW else None

    @cached_property
    def against(self) -> Sequence[str]:
        """What speaks against the answer, keys of `AGAINST`."""
        asked, given = self.asked.content, self.whole.content
        checks = {
            "retraction": self._retracts(),
            "number": self._other_number(),
            "polarity": self._opposed(),
            "elsewhere": len(self.key) >= _MANY_KEYS and self.missing == self.key,
            "echo": given <= asked and 2 * len(given) > len(asked) and not self.reference.content <= asked,
        }
        return [name for name, speaks in checks.items() if speaks]

    @cached_property
    def values(self) -> Sequence[float]:
        """The measures in the order of `NAMES`; of a long reference one of its own is added, bit by bit."""
        reference, given, asked = self.reference, self.answer, self.asked.content
        n_given, size = len(given.content), len(reference.tokens)
        long = min(1.0, max(0.0, (size - _LONG_FROM) / (_LONG - _LONG_FROM)))
        # F1 of all words, each as often as it stands there; of long texts without those of the question
        a, b = given.counts, reference.counts
        shared = {token: min(a[token], b[token]) for token in a.keys() & b.keys()}
        n_shared, total = sum(shared.values()), len(given.tokens) + size
        shared_new = n_shared - sum(shared[token] for token in asked & shared.keys())
        total_new = total - sum(a[token] + b[token] for token in asked)
        negated = float((given.negations > 0) != (reference.negations > 0))
        return (
            1.0 - len(self.foreign) / n_given if n_given else 0.0,
            len(reference.grams & given.grams) / (len(reference.grams) or 1),
            math.log1p(len(given.tokens)),
            len(given.content & asked) / (n_given or 1),
            next((token in given.content for token in reference.written if token in self.key), 0.0),
            max(map(len, self.missing), default=0) / 10.0,
            2.0 * n_shared / (total or 1),
            _dice(given.content - asked, self.key),
            negated,
            # the more two texts are alike otherwise, and the shorter, the more a negation in one of them says
            negated * _dice(reference.grams, given.grams) ** 2 * min(1.0, 20.0 / (size or 1)),
            long,
            long * 2.0 * shared_new / (total_new or 1),
        )

    def _other_number(self) -> bool:
        """Whether a number of the key is missing, and the answer has one that nothing else has."""
        numbers = self.key & self.reference.numbers
        lacking, others = numbers & self.missing, [token for token in self.foreign if token[0] == "#"]
        if len(self.key) <= _BRIEF:
            return bool(lacking and others)
        calculates = len(numbers) >= _CALCULATION
        central = [token for token in lacking if calculates and self.reference.tokens.count(token) > 1]
        return any(len(a) == len(b) > 2 and sum(map(str.__ne__, a, b)) == 1 for a in central for b in others)

    def _opposed(self) -> bool:
        """Whether one of two texts denies what the other states.

        Two short texts that share most words and of which one has a negation more; or a sentence that says
        "is not" or the like where neither the question nor the reference denies anything.
        """
        reference, given = self.reference, self.answer
        if any(len(text.tokens) > _FEW or refuses(text.plain) for text in (reference, given)):
            return False
        if len(given.tokens) <= _ONE_SENTENCE and self.asked.negations == reference.negations == 0:
            return given.negations == 1 and _DENIAL.search(given.plain) is not None
        opposite = (given.negations + reference.negations) % 2 == 1
        return opposite and _dice(given.content, reference.content) >= _OPPOSED

    def _retracts(self) -> bool:
        """Whether one of the last statements takes back what stands before it, and is about nothing else."""
        topic = (self.asked.content | self.reference.content) - NEGATIONS
        for part in [part for part in _PART.split(self.whole.plain[-_ENDING:]) if part.strip()][1:][-2:]:
            if _RETRACTS.search(part) and not _CONDITION.match(part):
                content = {t for t in analyse(_RETRACTS.sub(" ", part)).tokens if len(t) > _BARE} - STOPWORDS
                if len(content - NEGATIONS) <= 2 and not content & topic:
                    return True
        return False


def _to_the_point(answer: Text, topic: frozenset[str]) -> Text:
    """The answer without short first and last statements that share few words with question and references.

    So go greetings, names of experts and what is said to a grader. What is said twice counts once.
    """

    def aside(statement: str) -> bool:
        content = analyse(statement).content if len(statement.split()) <= _ASIDE else topic
        return len(topic & content) <= _OF_TOPIC * len(content)

    statements = [*filter(None, map(str.strip, _STATEMENT.split(answer.plain)))]
    if len(statements) < 2 or len(answer.plain) >= _MANY_CHARS:
        return answer
    kept = [*dropwhile(aside, dict.fromkeys(statements))]
    if not kept:
        return max(map(analyse, statements), key=lambda text: len(topic & text.content))
    while aside(kept[-1]):
        kept.pop()
    return answer if len(kept) == len(statements) else analyse("\n".join(kept))


def _dice(a: frozenset[str], b: frozenset[str]) -> float:
    """The F1 of what two texts have."""
    return 2.0 * len(a & b) / (len(a) + len(b) or 1)


def _bare(text: Text) -> bool:
    """Whether a text is little but its yes or no."""
    return len(text.tokens) <= _BARE or not frozenset(text.tokens[1:]) - STOPWORDS - NEGATIONS


class Linear(NamedTuple):
    """A linear map from the measures of a family to a logit."""

    intercept: float
    slopes: Sequence[float]

    def share(self, values: Sequence[float]) -> float:
        """Return the share 0..1 of a row of measures, its values."""
        return sigmoid(float(self.intercept + sum(map(mul, self.slopes, values))))


def sigmoid(logit: float) -> float:
    """Return the share 0..1 of a logit, safe for any finite one."""
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, logit))))


@lru_cache(maxsize=8)
def shipped(family: str, names: tuple[str, ...]) -> Linear:
    """Return the shipped Linear map of a family for measures of these names."""
    fitted = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))[family]
    return Linear(fitted["intercept"], tuple(fitted["coefficients"][name] for name in names))


def correctness(comparison: Comparison, linear: Linear | None = None) -> float:
    """Return the share 0..1 to which a Comparison's answer is right, by a rule, else by the fitted map."""
    if comparison.rule is not None:
        return RULES[comparison.rule][0]
    share = (linear or shipped("correctness", NAMES)).share(comparison.values)
    return share * min([AGAINST[name][0] for name in comparison.against], default=1.0)


def worded(words: Sequence[str]) -> str:
    """Write words in a sentence, long ones cut."""
    return listed([word[:40] for word in words])


def reasoning(comparison: Comparison) -> str:
    """Write one to three sentences on a Comparison: what of the reference the answer has and lacks."""
    if comparison.rule is not None:
        return RULES[comparison.rule][1]
    key = [(token, word) for token, word in comparison.reference.written.items() if token in comparison.key]
    matched = worded([word for token, word in key if token not in comparison.missing])
    missing = worded([word for token, word in key if token in comparison.missing])
    about = f"The answer has {matched or 'no key word'} of the reference"
    about += f"; it lacks {missing}." if missing else "."
    return " ".join([about, *(AGAINST[name][1] for name in comparison.against[:2])])


def support(question: str, text: str, source: str) -> tuple[tuple[float, float, float], Sequence[str]]:
    """Return the shares of a text's words that a source holds, a question's aside, and those it lacks.

    What the question says already counts neither for nor against; a paraphrase counts as unsupported.
    """
    asked, given, held = analyse(question).content, analyse(text), analyse(source)
    new = given.content - asked
    shared = new & held.content
    total = sum(len(new.intersection(tokens)) for tokens in given.sentences)
    bits = {token: 1 << place for place, token in enumerate(shared)}

    def as_bits(sentences: Sequence[Sequence[str]], least: int) -> list[int]:
        parts = [part for part in map(shared.intersection, sentences) if len(part) >= least]
        return [sum(map(bits.__getitem__, part)) for part in parts]

    # each shared word stands in some sentence of the source, so that one is had without a look
    parts, pieces = as_bits(given.sentences, 1), {*as_bits(held.sentences, 2)}
    words = sum(map(int.bit_count, parts)) / total if total else 1.0
    most = sum(max(1, *map(int.bit_count, map(part.__and__, pieces)), 1) for part in parts)
    together = most / total if total else 1.0
    pairs = {pair for pair in given.pairs if END not in pair}
    beside = len(pairs & held.pairs) / len(pairs) if pairs else together
    missing = new - shared
    return (words, together, beside), [word for token, word in given.written.items() if token in missing]


def refit(shares: Sequence[float], rows: Sequence[Sequence[float]], labels: Sequence[float]) -> Linear:
    """Fit a Linear map to demos: their shipped shares, rows of measures, and labels 0..1.

    What is shipped is in it as made-up demos at the demos' mean measures: at each logit as often right as it
    says. A graded label is a bit of either class.
    """
    from sklearn.linear_model import LogisticRegression

    measures = np.asarray(rows, dtype=np.float64).reshape(len(rows), -1)
    middle, reach = measures.mean(axis=0), np.append(1.0, np.full(measures.shape[1], _REACH))
    grid = np.column_stack([_GRID, np.zeros((len(_GRID), len(middle)))])
    taught = np.column_stack([[logit(share) for share in shares], measures - middle])
    design = np.vstack([taught, grid]) * reach
    goals = np.append(labels, 1.0 / (1.0 + np.exp(-_GRID)))
    weights = np.append(np.ones(len(labels)), np.full(len(_GRID), _PRIOR / len(_GRID)))
    twice = np.append(weights * goals, weights * (1.0 - goals)) + 1e-9
    model = LogisticRegression(C=1.0, max_iter=300)
    model.fit(np.vstack([design, design]), np.repeat([1, 0], len(goals)), sample_weight=twice)
    slopes = model.coef_[0] * reach
    return Linear(float(model.intercept_[0] - slopes[1:] @ middle), tuple(map(float, slopes)))


def logit(share: float) -> float:
    """Return the log odds, a number, of a share, which is kept from 0 and 1."""
    share = min(0.999, max(0.001, share))
    return math.log(share / (1.0 - share))
