"""Local judges of wording: how an answer's words agree with those of a reference answer."""

from __future__ import annotations

import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from rapidfuzz.distance import LCSseq, Levenshtein

from judgecal.judges.local import local_judge
from judgecal.judges.local._words import NO_REFERENCE, Characters, by_itself, folded, words

_ARTICLES = frozenset({"a", "an", "the"})


@local_judge("binary", source="SQuAD, exact match")
def exact_match(answer: str, reference_answers: Sequence[str]) -> bool:
    """1 where the answer is one of the reference answers, letter for letter once both are folded.

    Folding is Unicode NFKC and casefold; white space becomes single spaces, punctuation at both ends is left
    away.
    """
    return _ends_cut(answer) in {_ends_cut(reference) for reference in reference_answers}


def _ends_cut(text: str) -> str:
    whole = " ".join(folded(text).split())
    punctuation = "".join(char for char in set(whole) if unicodedata.category(char).startswith("P"))
    return whole.strip(f" {punctuation}") or whole


@local_judge("percentage", source="Rajpurkar et al. 2016 (SQuAD)")
def token_f1(answer: str, reference_answers: Sequence[str]) -> float:
    """F1 of the words that answer and references share, in percent, as SQuAD counts; the best reference.

    Words as in SQuAD's evaluation: without case, punctuation (of all scripts, deleted) and English articles;
    beyond it, texts are taken in Unicode's compatibility form, and a Han character or a kana is a word by
    itself. Order is not seen, and neither is a negation. Needs a reference answer.
    """
    answered = _tokens(answer)
    return 100.0 * max(_token_f1(answered, _tokens(reference)) for reference in reference_answers)


def _becomes(char: str) -> str | None:
    if by_itself(char):
        return f" {char} "
    return None if char in string.punctuation or unicodedata.category(char)[0] == "P" else char


_CHARACTERS = Characters(_becomes)


def _tokens(text: str) -> list[str]:
    return [word for word in folded(text).translate(_CHARACTERS).split() if word not in _ARTICLES]


def _token_f1(answered: Sequence[str], reference: Sequence[str]) -> float:
    if not answered or not reference:
        return float(not answered and not reference)
    shared = (Counter(answered) & Counter(reference)).total()
    return 2.0 * shared / (len(answered) + len(reference))


@local_judge("percentage", source="Lin 2004 (ROUGE-L; rapidfuzz)")
def rouge_l(answer: str, reference_answers: Sequence[str]) -> float:
    """ROUGE-L of an answer, F1 of the longest common subsequence of words, in percent; the best reference.

    As rouge-score counts it without a stemmer, whole texts and not line by line: case and punctuation are not
    seen, order is. Letters of all scripts count. Needs a reference answer.
    """
    answered = words(answer)
    return 100.0 * max(_rouge_f1(answered, words(reference)) for reference in reference_answers)


def _rouge_f1(answered: Sequence[str], reference: Sequence[str]) -> float:
    if not answered or not reference:
        return 0.0
    return 2.0 * LCSseq.similarity(answered, reference) / (len(answered) + len(reference))


@local_judge("percentage", source="word error rate, as jiwer counts it (rapidfuzz)")
def wer(answer: str, reference_answers: Sequence[str]) -> tuple[float | None, str]:
    """Word accuracy of an answer, 100 less the word error rate in percent, to the nearest reference answer.

    The word error rate of speech recognition: words put in, left out and replaced, over the words of the
    reference, here without case and punctuation. A rate is a distance and may exceed 1; the verdict is
    turned, so that more is better, and ends at 0: an answer in which the reference is one word of many gets 0
    whatever else it says. Needs a reference answer.
    """
    answered = words(answer)
    references = [sequence for answer in reference_answers if (sequence := words(answer))]
    if not references:
        return None, NO_REFERENCE
    rate = min(Levenshtein.distance(reference, answered) / len(reference) for reference in references)
    return 100.0 * max(0.0, 1.0 - rate), f"word error rate {rate:.3f}"


@local_judge(source="Zheng et al. 2023 (MT-Bench), verbosity bias")
def longer_answer(answer_a: str, answer_b: str) -> tuple[Literal["A", "B", "tie"], str]:
    """Prefers the longer of two answers, in characters, with a note why; a tie where both are as long.

    A judge of pairs should beat it.
    """
    a, b = len(answer_a), len(answer_b)
    return "A" if a > b else "B" if b > a else "tie", f"{a} and {b} characters"
