"""An answer beside a reference answer, given the question: one row of numbers, and what speaks against it.

The numbers are lexical: words, groups of letters, numbers by value, names, refusals, lengths. What speaks
against an answer whatever it shares otherwise: another number or name in the place of the reference's, the
opposite polarity, a retraction, the question said again, a whole document handed over.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import mul

from judgecal.models.embedded.text import (
    ARTICLES,
    CLAUSE,
    NEGATIONS,
    NO_CONTENT,
    OPPOSITES,
    STOPWORDS,
    Text,
    analyse,
    closeness,
    sentences,
    weight,
)

_MAX_ALTERNATIVES = 48
_BARE = 3  # tokens of a text that begins with yes or no and says nothing else
_MATCH = 0.7
_SHORT = 6
_FEW, _BRIEF = 30, 12  # tokens; of them key words

NAMES = (
    "contained", "new_recall", "precision", "gram_recall", "gram_dice", "first_new", "longest_missing",
    "extra_short", "answer_length", "reference_length", "question_echo", "all_words", "new_words", "denied",
)  # fmt: skip
"""The features that the map weighs, each 0..1 but for the lengths, which are logarithms of tokens."""

ASIDES = re.compile(
    r"""^\s*(?:GPT|Claude|Gemini|Llama)[\w .-]{0,9}:|\((?:answered|confirmed|this\ was)\b[^)\n]*\)
    |\b(?:as\ )?(?:verified|confirmed)\ by\b[^.:\n]*[.:]|\bvon\ fachleuten\ bestätigt:
    |\bthank\ you\ for[^.!\n]*[.!]|\bgreat\ question[.!]|\bi\ hope\ (?:this|it|that)\ helps[.!]?
    |\blet\ me\ know\ if[^.!\n]*[.!]|\bvielen\ dank[^.!\n]*[.!]|\bich\ hoffe,\ das\ hilft[^.!\n]*[.!]
    |(?:^|\n)\s*(?:(?:note\ to\ the\ )?grader|verdict|(?:anmerkung\ des\ )?prüfers?)\b[^\n]*
    |\bgive\ this\ answer\b[^.\n]*\.?|\bgib\ dieser\ antwort\b[^.\n]*\.?
    |\b(?:ignore|disregard)\ the\ reference\b[^.\n]*\.?|\bignoriere\ die\ musterlösung\b[^.\n]*\.?""",
    re.IGNORECASE | re.VERBOSE,
)
"""What is said to whoever reads or grades the answer is no part of it."""
RETRACTS = re.compile(
    r"""\b(?:(?:false|untrue|wrong|incorrect|mistaken|nonsense|a\ lie
    |not\ (?:true|right|correct|so|the\ case))
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
_ONE_SENTENCE = 15  # tokens
_SMALL_WORD = 3  # letters
_DUMP, _DUMP_TIMES, _DUMP_SURE, _DUMP_HEAD = 60, 6, 150, 25  # words; times the reference's
_OFF_TOPIC = 0.65
_OPPOSED = 0.75
_NONE: frozenset[str] = frozenset()


class Comparison:
    """An answer beside the reference alternative that it fits best, given the question.

    Attributes:
        new, key: what the reference says and the question does not; where it says nothing else, all of it.
        scores: how close the answer comes to each word of the reference, 0..1.
        missing: of the key what the answer has not.
        foreign: words of the answer that are neither in the question nor in an alternative.
    """

    def __init__(self, question: str, alternatives: Sequence[str], answer: str) -> None:
        """Compare; `alternatives` must hold at least one text."""
        asked, given = analyse(question), _answer(answer)
        references = [analyse(text) for text in alternatives[:_MAX_ALTERNATIVES]]
        several = len(references) > 1
        reference = max(references, key=lambda text: _quick(text, given, asked)) if several else references[0]
        self.asked, self.answer, self.references, self.reference = asked, given, references, reference
        backed = asked.content | reference.content
        foreign = [token for token in given.in_order if token not in backed]
        near = [_closest(foreign, text) for text in references] if foreign else []
        self.foreign = [token for token in foreign if max(scores[token] for scores in near) < _MATCH]
        self.new = [token for token in reference.in_order if token not in asked.content]
        self.key = self.new or reference.in_order
        self.scores = _closest(reference.content, given)
        self.missing = [token for token in self.key if self.scores[token] < _MATCH]

    def key_words(self) -> tuple[list[str], list[str]]:
        """The key as written: what of it the answer has, and what not."""
        written = dict(zip(self.reference.tokens, self.reference.words, strict=True))
        matched = [written[token] for token in self.key if self.scores[token] >= _MATCH]
        return matched, [written[token] for token in self.missing]

    @cached_property
    def polarities(self) -> tuple[int, int]:
        """Reference's and answer's: 1 for a yes, -1 for a no, 0 unknown.

        A sentence that does not begin with a yes or no has one only where the question asks for it, and the
        answer's counts as a yes only beside a bare yes or no: "it is closed" can be a no to "is it open?".
        """
        reference, answer = self.reference, self.answer
        meant, said = reference.polarity, answer.polarity
        if self.asked.polar_question:
            meant = meant or (-1 if reference.negations else int(bool(reference.tokens)))
            bare = bool(reference.polarity) and len(reference.tokens) <= _BARE
            said = said or (-1 if answer.negations else int(bare and bool(answer.tokens)))
        return meant, said

    @property
    def bare(self) -> bool:
        """Whether one of the texts is little but a yes or no."""
        plain = all(token in STOPWORDS or token in NEGATIONS for token in self.foreign)
        return bool(
            (self.answer.polarity and (plain or len(self.answer.tokens) <= _BARE))
            or (self.reference.polarity and len(self.reference.tokens) <= _BARE)
        )

    @cached_property
    def against(self) -> Sequence[str]:
        """What speaks against the answer, keys of `judge.AGAINST`."""
        asked, given = self.asked.content, self.answer.content
        checks = {
            "retraction": self._retracts(),
            "number": self._other_number(),
            "name": self._other_name(),
            "polarity": self._opposed() >= _OPPOSED,
            "denial": self._denies(),
            "echo": bool(self.new) and given <= asked and 2 * len(given) > len(asked),
            "dump": self._hands_over(),
        }
        return [name for name, speaks in checks.items() if speaks]

    @cached_property
    def features(self) -> Mapping[str, float]:
        """The features by their names, in the order of `NAMES`."""
        asked, reference, given = self.asked, self.reference, self.answer
        n_given, n_foreign = len(given.content), len(self.foreign)
        shared = len(reference.grams & given.grams)
        gram_recall, gram_precision = shared / (len(reference.grams) or 1), shared / (len(given.grams) or 1)
        dice = 2 * gram_precision * gram_recall / (gram_precision + gram_recall) if shared else 0.0
        # F1 of all words, small ones too, each as often as it stands there; of the new ones, and no articles
        counts, old = Counter(given.tokens) & Counter(reference.tokens), asked.content | ARTICLES
        n_new = sum(token not in old for text in (given, reference) for token in text.tokens)
        new_words = 2.0 * sum(n for token, n in counts.items() if token not in old)
        all_words = 2.0 * counts.total() / (len(given.tokens) + len(reference.tokens) or 1)
        weights = [weight(token, token in reference.names) for token in self.key]
        recall = sum(map(mul, weights, [self.scores[token] for token in self.key]))
        return {
            "contained": float(bool(reference.joined) and f" {reference.joined} " in f" {given.joined} "),
            "new_recall": recall / sum(weights) if weights else 0.0,
            "precision": 1.0 - n_foreign / n_given if n_given else 0.0,
            "gram_recall": gram_recall,
            "gram_dice": dice,
            "first_new": self.scores[self.key[0]] if self.key else 0.0,
            "longest_missing": max(map(len, self.missing), default=0) / 10.0,
            "extra_short": n_foreign / (n_given + 1.0) if n_given <= _SHORT else 0.0,
            "answer_length": math.log1p(len(given.tokens)),
            "reference_length": math.log1p(len(reference.tokens)),
            "question_echo": len(given.content & asked.content) / (n_given or 1),
            "all_words": all_words,
            "new_words": new_words / n_new if n_new else all_words,
            # the more two texts are alike otherwise, and the shorter, the more a negation in one of them says
            "denied": dice**2
            * min(1.0, 20.0 / (len(reference.tokens) or 1))
            * ((given.negations > 0) != (reference.negations > 0)),
        }

    @property
    def values(self) -> Sequence[float]:
        """The features in the order of `NAMES`."""
        return tuple(self.features.values())

    def _other_number(self) -> bool:
        """Whether a number of the answer stands in the place of one of the reference's.

        Beside a short reference any other number does where none of its numbers is there, else one of as many
        digits; in long texts one that differs in one digit.
        """
        numbers = [token for token in self.key if token[0] == "#"]
        lacking = [token for token in numbers if not self.scores[token]]
        # a number that another alternative has is no other one
        others = [
            token
            for token in self.foreign
            if token[0] == "#" and not any(token in text.content for text in self.references)
        ]
        if not lacking or not others:
            return False
        short = len(self.key) <= _BRIEF
        if short and lacking == numbers:
            return True
        tokens = self.reference.tokens
        return any(
            len(a) == len(b)
            and (short or (len(a) > 2 and tokens.count(a) > 2 and sum(map(str.__ne__, a, b)) == 1))
            for a in lacking
            for b in others
        )

    def _other_name(self) -> bool:
        """Whether a short reference's names are all missing, and the answer has others."""
        given = self.answer
        names = [token for token in self.key if token in self.reference.names and token[0] != "#"]
        if not names or len(self.key) > _BRIEF or max(self.scores[token] for token in names) >= _MATCH:
            return False
        # beginnings of sentences and languages with capital nouns tell nothing
        capitals = 2 * len(given.names) <= len(given.content) or len(given.tokens) <= _SHORT
        return capitals and any(t in given.names and t != given.in_order[0] for t in self.foreign)

    def _opposed(self) -> float:
        """How near a statement of the answer and one of the reference are that deny each other.

        Of short answers alone: in long ones too many statements lie near each other.
        """
        asked, reference, given = self.asked, self.reference, self.answer
        if len(given.tokens) > _FEW or given.refuses or reference.refuses:
            return 0.0
        denied = any(token in NEGATIONS for token in (*given.tokens, *reference.tokens))
        if not denied and not any(OPPOSITES.get(t, _NONE) & reference.content for t in given.content):
            return 0.0
        new = reference.content - asked.content or reference.content
        doubt = any(token in NEGATIONS for token in asked.tokens)
        agreed, denial = 0.0, 0.0
        for content, negated in given.clauses:
            best, against = 0.0, False
            for other, other_negated in reference.clauses:
                turned = {t for t in content - other if OPPOSITES.get(t, _NONE) & (other - content)}
                both, meant = len(content & other) + len(turned), other & new
                share = both / min(len(content), len(other))
                share *= (len(meant & content) + len(turned)) / len(meant) if meant else 0.5
                if share > best:
                    flips = negated + other_negated + len(turned)
                    best, against = share, flips % 2 == 1 and not (doubt and not other_negated)
            if against:
                denial = max(denial, best)
            else:
                agreed = max(agreed, best)
        return denial if denial > agreed else 0.0

    def _denies(self) -> bool:
        """Whether a short answer denies something where neither the question nor the reference does."""
        given, reference = self.answer, self.reference
        if len(given.tokens) > _ONE_SENTENCE or given.refuses or reference.refuses:
            return False
        texts = (self.asked, reference, given)
        negations = [sum(token in NEGATIONS for token in text.tokens) for text in texts]
        return negations == [0, 0, 1] and _DENIAL.search(given.plain) is not None

    def _retracts(self) -> bool:
        """Whether one of the last statements takes back what stands before it, and is about nothing else."""
        topic = self.asked.content | self.reference.content
        parts = [part for part in CLAUSE.split(self.answer.plain) if part.strip()]
        for part in parts[1:][-2:]:
            if RETRACTS.search(part):
                tokens = analyse(RETRACTS.sub(" ", part)).tokens
                others = {token for token in tokens if len(token) > _SMALL_WORD} - NO_CONTENT
                if len(others) <= 2 and not others & topic:
                    return True
        return False

    def _hands_over(self) -> bool:
        """Whether a long answer is mostly about other things, and does not begin with what is asked for."""
        text, references = self.answer.plain, self.references
        longest, n_words = max(len(each.tokens) for each in references), len(text.split())
        if n_words < max(_DUMP, _DUMP_TIMES * longest) or longest > _FEW or self.answer.polarity:
            return False
        new = _NONE.union(*(each.content for each in references)) - self.asked.content
        topic, words, off, total, head = self.asked.content | new, 0, 0, 0, math.inf
        for part in sentences(text):
            content = analyse(part).content
            total += len(content)
            off += len(content) * (len(content & topic) < 2)
            head = min(head, words) if content & new else head
            words += len(part.split())
        return off >= _OFF_TOPIC * total and (n_words >= _DUMP_SURE or head >= _DUMP_HEAD)


def _closest(tokens: Iterable[str], pool: Text) -> dict[str, float]:
    """Of each token the best closeness to any content of the pool, 0..1."""
    scores = {}
    for token in tokens:
        if token in pool.content or len(token) < 4 or token[0] == "#":
            scores[token] = float(token in pool.content)
            continue
        start, least, most = token[:4], len(token) - 2, len(token) + 2
        near = [
            closeness(token, other)
            for other in pool.by_letter.get(token[0], ())
            if least <= len(other) <= most or other.startswith(start)
        ]
        scores[token] = max(near, default=0.0)
    return scores


def _quick(reference: Text, answer: Text, question: Text) -> float:
    """A cheap order of the alternatives: which one is the answer most likely to match?"""
    new = reference.content - question.content or reference.content
    if not new:
        return 0.0
    shared = len(new & answer.content) / len(new)
    grams = len(reference.grams & answer.grams) / (len(reference.grams) or 1)
    inside = 1.0 if reference.joined and f" {reference.joined} " in f" {answer.joined} " else 0.0
    refusing = 4.0 if reference.refuses and answer.refuses else 0.0
    return shared + grams + inside + refusing + 0.01 * min(len(new), 4) * shared


@lru_cache(maxsize=2048)
def _answer(text: str) -> Text:
    """The answer without asides; where it says the same twice the half of it."""
    answer = analyse(ASIDES.sub(" ", text))
    half = len(answer.tokens) // 2
    if half and answer.tokens[:half] == answer.tokens[half:]:
        return analyse(answer.plain[: len(answer.plain) // 2].rstrip())
    return answer
