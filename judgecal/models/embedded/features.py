"""What an answer shares with a reference answer, given the question: one row of numbers per item.

The features are lexical: words, numbers by value, names, negation, yes/no, refusals, lengths. Nothing here
knows the world, which is why this judge is a floor and not a rival of a language model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import filterfalse
from operator import mul

from rapidfuzz.distance import LCSseq

from judgecal.models.embedded.text import ARTICLES, STOPWORDS, Text, analyse, closeness, word_list

MAX_ALTERNATIVES = 48
# A text of so few tokens that begins with yes or no says nothing else.
BARE_TOKENS = 3
_MATCH = 0.7
_SHORT = 6
_BRIEF = 20.0  # tokens

NAMES: tuple[str, ...] = tuple(
    word_list("""contained new_recall recall precision f1 gram_recall gram_dice in_order first_new
    number_recall number_conflict name_conflict longest_missing extra_short early negation_mismatch
    answer_refuses yes_no_agree yes_no_conflict answer_length reference_length length_ratio question_echo
    all_words new_words""")
)


@dataclass(frozen=True, slots=True)
class AnswerFeatures:
    """One item's features, in the order of `NAMES`, and what the reasoning needs to say why."""

    values: tuple[float, ...]
    reference: Text
    answer: Text
    matched: tuple[str, ...]
    missing: tuple[str, ...]
    foreign: tuple[str, ...]
    reference_polarity: int
    answer_polarity: int

    def value(self, name: str) -> float:
        """One feature by its name."""
        return self.values[NAMES.index(name)]


def soft_matches(tokens: Iterable[str], pool: Text) -> dict[str, float]:
    """Of each token the best closeness to any content of the pool, 0..1."""
    known, by_letter = pool.content, pool.by_letter
    scores = {}
    for token in tokens:
        if token in known:
            scores[token] = 1.0
        elif len(token) < 4 or token[0] == "#" or token[0] not in by_letter:
            scores[token] = 0.0
        else:
            start, least, most = token[:4], len(token) - 2, len(token) + 2
            near = [
                closeness(token, other)
                for other in by_letter[token[0]]
                if least <= len(other) <= most or other.startswith(start)
            ]
            scores[token] = max(near) if near else 0.0
    return scores


def _weighted(tokens: Sequence[str], scores: dict[str, float], names: frozenset[str]) -> float:
    """A number or a name says more than a common word, a long word more than a short one."""
    weights = [2.0 if t in names or t[0] == "#" else 0.6 if len(t) < 4 else 1.0 for t in tokens]
    total = sum(weights)
    return sum(map(mul, weights, [scores[t] for t in tokens])) / total if total else 0.0


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


def _polarities(asked: Text, reference: Text, given: Text) -> tuple[int, int]:
    """Reference's and answer's: 1 for a yes, -1 for a no, 0 unknown.

    A sentence that does not begin with a yes or no has one only where the question asks for it, and the
    answer's counts as a yes only beside a bare yes or no: "it is closed" can be a no to "is it open?".
    """
    meant, said = reference.polarity, given.polarity
    if asked.polar_question:
        meant = meant or (-1 if reference.negations else int(bool(reference.tokens)))
        bare = bool(reference.polarity) and len(reference.tokens) <= BARE_TOKENS
        said = said or (-1 if given.negations else int(bare and bool(given.tokens)))
    return meant, said


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@dataclass(frozen=True, slots=True)
class _Pair:
    """An answer beside one reference: what is new in the reference, and what in the answer nothing backs."""

    asked: Text
    given: Text
    reference: Text
    key: tuple[str, ...]
    scores: dict[str, float]
    unlike: tuple[str, ...]

    def missing(self) -> list[str]:
        return [t for t in self.key if self.scores[t] < _MATCH]


def _pair(asked: Text, references: Sequence[Text], given: Text) -> _Pair:
    # A single reference, as most items have, needs no comparing.
    reference = (
        references[0] if len(references) == 1 else max(references, key=lambda one: _quick(one, given, asked))
    )
    backed = asked.content | reference.content
    foreign = [t for t in given.in_order if t not in backed]
    near = soft_matches(foreign, reference)
    for other in references:
        if other is not reference:
            near = {token: max(score, near[token]) for token, score in soft_matches(foreign, other).items()}
    return _Pair(
        asked=asked,
        given=given,
        reference=reference,
        key=tuple([t for t in reference.in_order if t not in asked.content]) or reference.in_order,
        scores=soft_matches(reference.content, given),
        unlike=tuple([t for t in foreign if near[t] < _MATCH]),
    )


def compare(question: str, alternatives: Sequence[str], answer: str) -> AnswerFeatures:
    """Compare an answer with the reference alternative that it fits best.

    `alternatives` must hold at least one text. The result has one finite number per name in `NAMES`; the
    shares lie in 0..1.
    """
    asked, given = analyse(question), analyse(answer)
    pair = _pair(asked, [analyse(text) for text in alternatives[:MAX_ALTERNATIVES]], given)
    polarities = _polarities(asked, pair.reference, given)
    values = _wording(pair)
    values |= _facts(pair, values["new_recall"]) | _shape(pair, values["gram_dice"])
    values["yes_no_agree"] = float(polarities[0] * polarities[1] > 0)
    values["yes_no_conflict"] = float(polarities[0] * polarities[1] < 0)
    missing = tuple(pair.missing())
    return AnswerFeatures(
        values=tuple(values[name] for name in NAMES),
        reference=pair.reference,
        answer=given,
        matched=tuple(t for t in pair.key if t not in missing),
        missing=missing,
        foreign=pair.unlike,
        reference_polarity=polarities[0],
        answer_polarity=polarities[1],
    )


def _wording(pair: _Pair) -> dict[str, float]:
    """How much of the wording is shared, by words, by their order and by groups of three letters."""
    given, reference, scores = pair.given, pair.reference, pair.scores
    recall = _weighted(reference.in_order, scores, reference.names)
    precision = 1.0 - len(pair.unlike) / len(given.content) if given.content else 0.0
    shared = len(reference.grams & given.grams)
    gram_recall = shared / (len(reference.grams) or 1)
    gram_precision = shared / (len(given.grams) or 1)
    said, meant = ([t for t in text.tokens if t not in STOPWORDS] for text in (given, reference))
    new = frozenset(pair.key)
    # 1 where the answer comes to the point at once, towards 0 where it takes many words; 0 if never
    place = next((place for place, token in enumerate(given.tokens) if token in new), math.inf)
    return {
        "recall": recall,
        "new_recall": _weighted(pair.key, scores, reference.names),
        "precision": precision,
        "f1": _f1(precision, recall),
        "gram_recall": gram_recall,
        "gram_dice": _f1(gram_precision, gram_recall),
        # the longest common subsequence
        "in_order": LCSseq.similarity(meant, said) / len(meant) if meant else 0.0,
        "first_new": scores[pair.key[0]] if pair.key else 0.0,
        "early": 1.0 / (1.0 + place / 12.0),
    }


def _facts(pair: _Pair, new_recall: float) -> dict[str, float]:
    """Numbers and names, and whether the reference is there as a whole."""
    given, reference, scores = pair.given, pair.reference, pair.scores
    numbers = [scores[t] for t in pair.key if t[0] == "#"]
    names = [scores[t] for t in pair.key if t in reference.names]
    number_recall = sum(numbers) / len(numbers) if numbers else new_recall
    other_number = any(t[0] == "#" for t in pair.unlike)
    other_name = any(t in given.names for t in pair.unlike)
    inside = f" {reference.joined} " in f" {given.joined} "
    return {
        "contained": float(bool(reference.joined) and inside),
        "number_recall": number_recall,
        # among many key words a number is one detail of several
        "number_conflict": (1.0 - number_recall)
        * (bool(numbers) and other_number)
        * min(1.0, 8.0 / (len(pair.key) or 1)),
        "name_conflict": (1.0 - sum(names) / len(names)) * other_name if names else 0.0,
        "longest_missing": max((len(t) for t in pair.missing()), default=0) / 10.0,
    }


def _shape(pair: _Pair, alike: float) -> dict[str, float]:
    """Lengths (log tokens), what a short answer adds, negation and refusal."""
    given, reference = pair.given, pair.reference
    n_given, n_reference = len(given.content), len(reference.content)
    # F1 of all words, small ones too, each as often as it stands there; of the new ones, and no articles
    old = pair.asked.content | ARTICLES
    shared = {t: min(given.counts[t], reference.counts[t]) for t in given.counts.keys() & reference.counts}
    new_shared = sum([n for t, n in shared.items() if t not in old])
    n_new = sum([len(list(filterfalse(old.__contains__, text.tokens))) for text in (given, reference)])
    all_words = 2.0 * sum(shared.values()) / (len(given.tokens) + len(reference.tokens) or 1)
    return {
        "extra_short": len(pair.unlike) / (n_given + 1.0) if n_given <= _SHORT else 0.0,
        # the more two texts are alike otherwise, and the shorter, the more a negation in one of them says
        "negation_mismatch": alike**2
        * min(1.0, _BRIEF / (len(reference.tokens) or 1))
        * ((given.negations > 0) != (reference.negations > 0)),
        "answer_refuses": float(given.refuses and not reference.refuses),
        "answer_length": math.log1p(len(given.tokens)),
        "reference_length": math.log1p(len(reference.tokens)),
        "length_ratio": math.log((n_given + 1.0) / (n_reference + 1.0)),
        "all_words": all_words,
        "new_words": 2.0 * new_shared / n_new if n_new else all_words,
        "question_echo": len(given.content & pair.asked.content) / (n_given or 1),
    }
