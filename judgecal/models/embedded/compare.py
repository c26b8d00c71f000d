"""An answer beside a reference answer, given the question: measures, and what decides or speaks against it.

The numbers are lexical: words, groups of letters, lengths. What speaks against an answer whatever it shares
otherwise: another number or name in the place of the reference's, the opposite polarity, a retraction, the
question said again, a whole document handed over.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

from judgecal.models.embedded.text import NEGATIONS, STOPWORDS, Text, analyse

_MAX_ALTERNATIVES = 48
_FEW, _BRIEF, _BARE = 30, 12, 3  # tokens of a short text; key words of one; tokens of a bare yes or no
_LONG_FROM, _LONG = 15, 35  # tokens of a reference
_REFUSAL = 25  # tokens of a reference that does nothing but refuse
_ONE_SENTENCE = 15  # tokens
_OPPOSED = 0.8  # the share of words that two texts share if they deny each other
_CALCULATION = 5  # numbers
_ASIDE = 8  # tokens
_MANY_CHARS = 2_000
_OFF_TOPIC = 0.65
_STATEMENT = re.compile(r"(?<=[.!?:])\s+|\n+|\s+(?=\()")
_DUMP, _DUMP_TIMES, _DUMP_HEAD = 60, 6, 25  # tokens; times the reference's

NAMES = (
    "contained", "precision", "gram_recall", "answer_length", "question_echo", "longest_missing", "all_words",
    "new_words", "denied", "long", "long_new_words",
)  # fmt: skip
"""The measures that the map weighs, each 0..1 but for the length, a logarithm of tokens."""

RULES: Mapping[str, tuple[float, str]] = {
    "empty answer": (0.01, "The answer is empty."),
    "both refuse": (1.0, "The answer and the reference both say that it cannot be answered."),
    "fact against a refusal": (
        0.04,
        "The reference says that it cannot be answered, but the answer states something.",
    ),
    "the reference itself": (1.0, "The answer is the reference, word for word."),
    "refusal against a fact": (0.01, "The answer refuses, but the reference gives an answer."),
    "same yes or no": (0.95, "The answer and the reference agree on yes or no."),
    "opposite yes or no": (0.04, "The answer and the reference disagree on yes or no."),
}
"""A rule that decides alone -> the share and the sentence that says why."""
AGAINST: Mapping[str, tuple[float, str]] = {
    "retraction": (0.03, "The answer takes back what it says."),
    "echo": (0.03, "The answer only repeats the question."),
    "dump": (0.03, "The answer is a long text that is mostly about other things."),
    "polarity": (0.2, "One of the two denies what the other states."),
    "number": (0.15, "It gives another number than the reference."),
    "name": (0.3, "It names something else than the reference."),
}
"""What speaks against an answer, whatever it shares -> the part of its share that is left, and why."""
_RETRACTS = re.compile(
    r"""\b(?:(?:false|untrue|wrong|incorrect|nonsense|a\ lie|not\ (?:true|right|correct|so|the\ case))
    |(?:forget|scratch|ignore|disregard)\ (?:that|it|this|what)|take\ (?:that|it|this)\ back
    |falsch|stimmt\ (?:so\ )?nicht|nicht\ wahr|nichts\ davon|vergiss\ (?:das|es)|unwahr|gelogen
    |faux|pas\ vrai|rien\ de\ tout|nieprawdą?|fałsz|nic\ z\ tego|falso|nada\ de\ esto|no\ es\ verdad)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_DENIAL = re.compile(
    r"\b(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|must)"
    r"(?: not\b|n['’]t\b)|\bcannot\b",
    re.IGNORECASE,
)
_PART = re.compile(
    r"[.;:,!?()\n–—]+(?:\s|$)|\b(?:but|because|and|or|aber|und|mais|ale|pero)\b", re.IGNORECASE
)


class Comparison:
    """An answer beside the reference alternative that it fits best, given the question.

    Attributes:
        key: what the reference says and the question does not; where it says nothing else, all of it.
        missing: of the key what the answer has not.
        foreign: words of the answer that are neither in the question nor in an alternative.
    """

    def __init__(self, question: str, alternatives: Sequence[str], answer: str) -> None:
        """Compare; `alternatives` must hold at least one text."""
        self.asked, references = (
            analyse(question),
            [analyse(text) for text in alternatives[:_MAX_ALTERNATIVES]],
        )
        backed = self.asked.content.union(*(text.content for text in references))
        self.whole, self.answer = analyse(answer), _to_the_point(answer, backed)
        self.reference = max(references, key=self._fits) if len(references) > 1 else references[0]
        reference, content = self.reference, self.answer.content
        self.foreign = content - backed
        self.key = reference.content - self.asked.content or reference.content
        self.missing = self.key - content

    def _fits(self, reference: Text) -> float:
        """A cheap order of the alternatives: which one is the answer most likely to match?"""
        key, answer = reference.content - self.asked.content or reference.content, self.answer
        words = len(key & answer.content) / (len(key) or 1)
        return (
            words
            + len(reference.grams & answer.grams) / (len(reference.grams) or 1)
            + _held(reference, answer)
        )

    @cached_property
    def rule(self) -> str | None:
        """The name of the rule in `RULES` that decides this item alone, or None."""
        answer, reference = self.answer, self.reference
        if not answer.tokens:
            return "empty answer"
        if reference.refuses and len(reference.tokens) <= _REFUSAL:
            return "both refuse" if answer.refuses else "fact against a refusal"
        if answer.joined and self.whole.joined == reference.joined:
            return "the reference itself"
        if answer.refuses and self.missing and len(answer.tokens) <= 2 * _FEW:
            return "refusal against a fact"
        return self._yes_or_no()

    def _yes_or_no(self) -> str | None:
        """A bare yes or no decides; so does an opposite one at the head of both texts."""
        texts = (self.reference, self.answer)
        polarities = [text.polarity for text in texts]
        bare = any(text.polarity and _bare(text) for text in texts)
        if bare and self.asked.polar_question:
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
            "name": self._other_name(),
            "polarity": self._opposed(),
            "echo": given <= asked and 2 * len(given) > len(asked) and not self.reference.content <= asked,
            "dump": self._hands_over(),
        }
        return [name for name, speaks in checks.items() if speaks]

    @cached_property
    def values(self) -> Sequence[float]:
        """The measures in the order of `NAMES`; of a long reference one of its own is added, bit by bit."""
        reference, given, asked = self.reference, self.answer, self.asked.content
        n_given, size = len(given.content), len(reference.tokens)
        long = min(1.0, max(0.0, (size - _LONG_FROM) / (_LONG - _LONG_FROM)))
        # F1 of all words, each as often as it stands there; of long texts without those of the question
        counts = Counter(given.tokens) & Counter(reference.tokens)
        shared, total = counts.total(), len(given.tokens) + size
        shared_new = sum(n for token, n in counts.items() if token not in asked) if long else 0
        total_new = (
            sum(token not in asked for text in (given, reference) for token in text.tokens) if long else 1
        )
        return (
            float(_held(reference, given)),
            1.0 - len(self.foreign) / n_given if n_given else 0.0,
            len(reference.grams & given.grams) / (len(reference.grams) or 1),
            math.log1p(len(given.tokens)),
            len(given.content & asked) / (n_given or 1),
            max(map(len, self.missing), default=0) / 10.0,
            2.0 * shared / (total or 1),
            _dice(given.content - asked, self.key),
            # the more two texts are alike otherwise, and the shorter, the more a negation in one of them says
            _dice(reference.grams, given.grams) ** 2
            * min(1.0, 20.0 / (size or 1))
            * ((given.negations > 0) != (reference.negations > 0)),
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

    def _other_name(self) -> bool:
        """Whether a short reference's names are all missing, and the answer has others."""
        names = self.key & self.reference.names
        return (
            bool(names)
            and len(self.key) <= _BRIEF
            and names <= self.missing
            and bool(self.foreign & self.answer.names)
        )

    def _opposed(self) -> bool:
        """Whether one of two texts denies what the other states.

        Two short texts that share most words and of which one has a negation more; or a sentence that says
        "is not" or the like where neither the question nor the reference denies anything.
        """
        reference, given = self.reference, self.answer
        if max(len(reference.tokens), len(given.tokens)) > _FEW or given.refuses or reference.refuses:
            return False
        if len(given.tokens) <= _ONE_SENTENCE and self.asked.negations == reference.negations == 0:
            return given.negations == 1 and _DENIAL.search(given.plain) is not None
        opposite = (given.negations + reference.negations) % 2 == 1
        return opposite and _dice(given.content, reference.content) >= _OPPOSED

    def _retracts(self) -> bool:
        """Whether one of the last statements takes back what stands before it, and is about nothing else."""
        topic = (self.asked.content | self.reference.content) - NEGATIONS
        for part in [part for part in _PART.split(self.whole.plain) if part.strip()][1:][-2:]:
            if _RETRACTS.search(part):
                content = {t for t in analyse(_RETRACTS.sub(" ", part)).tokens if len(t) > _BARE} - STOPWORDS
                if len(content - NEGATIONS) <= 2 and not content & topic:
                    return True
        return False

    def _hands_over(self) -> bool:
        """Whether a long answer is mostly about other things, and does not begin with what is asked for."""
        given, n_reference = self.whole, len(self.reference.tokens)
        if n_reference > _FEW or len(given.tokens) < max(_DUMP, _DUMP_TIMES * n_reference) or given.polarity:
            return False
        topic = self.asked.content | self.reference.content
        parts = [given.content.intersection(tokens) for tokens in given.sentences]
        off = sum(len(content) for content in parts if len(content & topic) < 2)
        return off >= _OFF_TOPIC * sum(map(len, parts)) and self.key.isdisjoint(given.tokens[:_DUMP_HEAD])


def _to_the_point(answer: str, topic: frozenset[str]) -> Text:
    """The answer without short first and last statements that share no word with question and references.

    So go greetings, names of experts and what is said to a grader. What is said twice counts once.
    """
    parts = [*dict.fromkeys(map(str.strip, _STATEMENT.split(answer)))] if len(answer) < _MANY_CHARS else []
    about = [len(text.tokens) > _ASIDE or not topic.isdisjoint(text.content) for text in map(analyse, parts)]
    if not any(about):
        return analyse(answer)
    return analyse("\n".join(parts[about.index(True) : len(about) - about[::-1].index(True)]))


def _dice(a: frozenset[str], b: frozenset[str]) -> float:
    """The F1 of what two texts have."""
    return 2.0 * len(a & b) / (len(a) + len(b) or 1)


def _held(reference: Text, answer: Text) -> bool:
    """Whether the answer has the words of the reference side by side."""
    return bool(reference.joined) and f" {reference.joined} " in f" {answer.joined} "


def _bare(text: Text) -> bool:
    """Whether a text is little but its yes or no."""
    return len(text.tokens) <= _BARE or not frozenset(text.tokens[1:]) - STOPWORDS - NEGATIONS
