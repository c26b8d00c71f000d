"""An answer beside a reference answer, given the question: one row of numbers, and what speaks against it.

The numbers are lexical: words, groups of letters, numbers by value, names, refusals, lengths. What speaks
against an answer whatever it shares otherwise: another number or name in the place of the reference's, the
opposite polarity, a retraction, the question said again, a whole document handed over.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import mul

from judgecal.models.embedded.text import (
    ARTICLES,
    CLAUSE,
    NEGATIONS,
    OPPOSITES,
    STOPWORDS,
    Text,
    analyse,
    closeness,
    sentences,
    weight,
)

MAX_ALTERNATIVES = 48
BARE = 3
"""A text of so few tokens that begins with yes or no says nothing else."""
_MATCH = 0.7
_SHORT = 6
_FEW, _BRIEF = 30, 12  # tokens; of them key words

NAMES: tuple[str, ...] = (
    "contained", "new_recall", "precision", "gram_recall", "gram_dice", "first_new", "longest_missing",
    "extra_short", "answer_length", "reference_length", "question_echo", "all_words", "new_words",
    "denied",
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


@dataclass(frozen=True, slots=True)
class Comparison:
    """One item's features, in the order of `NAMES`, and what the reasoning needs to say why.

    Attributes:
        matched, missing, foreign: words as written: of the reference there and not, of the answer nowhere.
        against: what speaks against the answer, keys of `judge.AGAINST`.
        polarities: of the reference and the answer: 1 a yes, -1 a no, 0 unknown.
        bare: whether one of the texts is little but a yes or no.
    """

    values: tuple[float, ...]
    reference: Text
    answer: Text
    matched: tuple[str, ...]
    missing: tuple[str, ...]
    foreign: tuple[str, ...]
    against: tuple[str, ...]
    polarities: tuple[int, int]
    bare: bool

    def value(self, name: str) -> float:
        """One feature by its name."""
        return self.values[NAMES.index(name)]


def soft_matches(tokens: Iterable[str], pool: Text) -> dict[str, float]:
    """Of each token the best closeness to any content of the pool, 0..1."""
    scores = {}
    for token in tokens:
        if token in pool.content:
            scores[token] = 1.0
        elif len(token) < 4 or token[0] == "#":
            scores[token] = 0.0
        else:
            start, least, most = token[:4], len(token) - 2, len(token) + 2
            near = [
                closeness(token, other)
                for other in pool.by_letter.get(token[0], ())
                if least <= len(other) <= most or other.startswith(start)
            ]
            scores[token] = max(near, default=0.0)
    return scores


def _weighted(tokens: Sequence[str], scores: dict[str, float], names: frozenset[str]) -> float:
    weights = [weight(token, token in names) for token in tokens]
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
        bare = bool(reference.polarity) and len(reference.tokens) <= BARE
        said = said or (-1 if given.negations else int(bare and bool(given.tokens)))
    return meant, said


def _once(text: Text) -> Text:
    """The text, where it says the same twice the half of it."""
    half = len(text.tokens) // 2
    if half and text.tokens[:half] == text.tokens[half:]:
        return analyse(text.plain[: len(text.plain) // 2].rstrip())
    return text


def compare(question: str, alternatives: Sequence[str], answer: str) -> Comparison:
    """Compare an answer with the reference alternative that it fits best.

    `alternatives` must hold at least one text.
    """
    asked, given = analyse(question), _once(analyse(ASIDES.sub(" ", answer)))
    references = [analyse(text) for text in alternatives[:MAX_ALTERNATIVES]]
    reference = references[0]
    if len(references) > 1:
        reference = max(references, key=lambda text: _quick(text, given, asked))
    backed = asked.content | reference.content
    foreign = [token for token in given.in_order if token not in backed]
    near = soft_matches(foreign, reference)
    for other in references:
        if other is not reference and foreign:
            near = {token: max(score, near[token]) for token, score in soft_matches(foreign, other).items()}
    unlike = [token for token in foreign if near[token] < _MATCH]
    new = tuple([token for token in reference.in_order if token not in asked.content])
    key, scores = new or reference.in_order, soft_matches(reference.content, given)
    missing = [token for token in key if scores[token] < _MATCH]
    polarities = _polarities(asked, reference, given)
    values = _features(asked, reference, given, key, scores, unlike, missing)
    written, as_written = (dict(zip(text.tokens, text.words, strict=True)) for text in (reference, given))
    # a name or a number that another alternative has is no other one
    known = frozenset().union(*(text.content for text in references))
    checks: dict[str, Callable[[], bool]] = {
        "retraction": lambda: _retracts(asked, reference, given),
        "number": lambda: _other_number(reference, key, scores, [t for t in unlike if t not in known]),
        "name": lambda: _other_name(asked, reference, given, key, scores, unlike),
        "polarity": lambda: _opposed(asked, reference, given) >= _OPPOSED,
        "denial": lambda: _denies(asked, reference, given),
        "echo": lambda: (
            bool(new) and given.content <= asked.content and 2 * len(given.content) > len(asked.content)
        ),
        "dump": lambda: _hands_over(asked, references, given),
    }
    plain = all(token in STOPWORDS or token in NEGATIONS for token in unlike)
    bare = bool(
        (given.polarity and (plain or len(given.tokens) <= BARE))
        or (reference.polarity and len(reference.tokens) <= BARE)
    )
    return Comparison(
        values=tuple(values[name] for name in NAMES),
        reference=reference,
        answer=given,
        matched=tuple(written[token] for token in key if scores[token] >= _MATCH),
        missing=tuple(written[token] for token in missing),
        foreign=tuple(as_written[token] for token in unlike),
        against=tuple(name for name, speaks in checks.items() if speaks()),
        polarities=polarities,
        bare=bare,
    )


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _features(
    asked: Text,
    reference: Text,
    given: Text,
    key: Sequence[str],
    scores: dict[str, float],
    unlike: Sequence[str],
    missing: Sequence[str],
) -> dict[str, float]:
    n_given = len(given.content)
    precision = 1.0 - len(unlike) / n_given if n_given else 0.0
    shared = len(reference.grams & given.grams)
    gram_recall, gram_precision = shared / (len(reference.grams) or 1), shared / (len(given.grams) or 1)
    # F1 of all words, small ones too, each as often as it stands there; of the new ones, and no articles
    counts, old = Counter(given.tokens) & Counter(reference.tokens), asked.content | ARTICLES
    n_new = sum(token not in old for text in (given, reference) for token in text.tokens)
    all_words = 2.0 * counts.total() / (len(given.tokens) + len(reference.tokens) or 1)
    new_words = (
        2.0 * sum(n for token, n in counts.items() if token not in old) / n_new if n_new else all_words
    )
    return {
        "contained": float(bool(reference.joined) and f" {reference.joined} " in f" {given.joined} "),
        "new_recall": _weighted(key, scores, reference.names),
        "precision": precision,
        "gram_recall": gram_recall,
        "gram_dice": _f1(gram_precision, gram_recall),
        "first_new": scores[key[0]] if key else 0.0,
        "longest_missing": max(map(len, missing), default=0) / 10.0,
        "extra_short": len(unlike) / (n_given + 1.0) if n_given <= _SHORT else 0.0,
        "answer_length": math.log1p(len(given.tokens)),
        "reference_length": math.log1p(len(reference.tokens)),
        "question_echo": len(given.content & asked.content) / (n_given or 1),
        "all_words": all_words,
        "new_words": new_words,
        # the more two texts are alike otherwise, and the shorter, the more a negation in one of them says
        "denied": _f1(gram_precision, gram_recall) ** 2
        * min(1.0, 20.0 / (len(reference.tokens) or 1))
        * ((given.negations > 0) != (reference.negations > 0)),
    }


def _other_number(
    reference: Text, key: Sequence[str], scores: dict[str, float], foreign: Sequence[str]
) -> bool:
    """Whether a number of the answer stands in the place of one of the reference's.

    Beside a short reference any other number does where none of its numbers is there, else one of as many
    digits; in long texts one that differs in one digit.
    """
    lacking = [token for token in key if token[0] == "#" and not scores[token]]
    others = [token for token in foreign if token[0] == "#"]
    if not lacking or not others:
        return False
    short = len(key) <= _BRIEF
    if short and len(lacking) == sum(token[0] == "#" for token in key):
        return True
    return any(
        len(a) == len(b)
        and (short or (len(a) > 2 and reference.tokens.count(a) > 2 and sum(map(str.__ne__, a, b)) == 1))
        for a in lacking
        for b in others
    )


def _other_name(
    asked: Text,
    reference: Text,
    given: Text,
    key: Sequence[str],
    scores: dict[str, float],
    unlike: Sequence[str],
) -> bool:
    """Whether a short reference's names are all missing, and the answer has others."""
    names = [token for token in key if token in reference.names and token[0] != "#"]
    if not names or len(key) > _BRIEF or max(scores[token] for token in names) >= _MATCH:
        return False
    # beginnings of sentences and languages with capital nouns tell nothing
    capitals = 2 * len(given.names) <= len(given.content) or len(given.tokens) <= _SHORT
    return capitals and any(token in given.names and token != given.in_order[0] for token in unlike)


def _opposed(asked: Text, reference: Text, given: Text) -> float:
    """Whether a statement of the answer and the one of the reference that it is nearest to deny each other.

    Of short answers alone: in long ones too many statements lie near each other.
    """
    if len(given.tokens) > _FEW or given.refuses or reference.refuses:
        return 0.0
    denied = any(token in NEGATIONS for token in (*given.tokens, *reference.tokens))
    if not denied and not any(OPPOSITES.get(token, _NONE) & reference.content for token in given.content):
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


def _denies(asked: Text, reference: Text, given: Text) -> bool:
    """Whether a short answer denies something where neither the question nor the reference does."""
    negations = [sum(token in NEGATIONS for token in text.tokens) for text in (asked, reference, given)]
    short = len(given.tokens) <= _ONE_SENTENCE and not (given.refuses or reference.refuses)
    return short and negations == [0, 0, 1] and _DENIAL.search(given.plain) is not None


_NONE: frozenset[str] = frozenset()


def _retracts(asked: Text, reference: Text, given: Text) -> bool:
    """Whether one of the last statements takes back what stands before it, and is about nothing else."""
    topic = asked.content | reference.content
    parts = [part for part in CLAUSE.split(given.plain) if part.strip()]
    for part in parts[1:][-2:]:
        if RETRACTS.search(part):
            others = {token for token in analyse(RETRACTS.sub(" ", part)).tokens if len(token) > _SMALL_WORD}
            others -= STOPWORDS | NEGATIONS
            if len(others) <= 2 and not others & topic:
                return True
    return False


def _hands_over(asked: Text, references: Sequence[Text], given: Text) -> bool:
    """Whether a long answer is mostly about other things, and does not begin with what is asked for."""
    longest, n_words = max(len(text.tokens) for text in references), len(given.plain.split())
    if n_words < max(_DUMP, _DUMP_TIMES * longest) or longest > _FEW or given.polarity:
        return False
    new = frozenset().union(*(text.content for text in references)) - asked.content
    topic, words, off, total, head = asked.content | new, 0, 0, 0, math.inf
    for part in sentences(given.plain):
        content = analyse(part).content
        total += len(content)
        off += len(content) * (len(content & topic) < 2)
        head = min(head, words) if content & new else head
        words += len(part.split())
    return off >= _OFF_TOPIC * total and (n_words >= _DUMP_SURE or head >= _DUMP_HEAD)
