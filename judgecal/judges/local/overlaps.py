"""Local judges of overlap: word-overlap stand-ins for what RAG evaluations ask a model for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, NamedTuple

from judgecal.goldset.wording import sentences
from judgecal.judges.local import local_judge
from judgecal.judges.local._words import CACHED, key_words, key_words_anew, runs, runs_anew, share_in_words

_NO_CLAIM = "no sentence of the answer has a key word to look for"
_SOURCE = "word and word-pair overlap by sentence"
_LIST_POINT = re.compile(r"\n(?=[^\S\n]*(?:[-*•–]|\d{1,3}[.)])\s)")


class Sentence(NamedTuple):
    """A sentence of an answer, how far the contexts hold it (0..1), and its key words."""

    text: str
    held: float
    n_words: int


@lru_cache(maxsize=256)
def _places(text: str) -> dict[str, list[int]]:
    """Each key word of a text with the sentences that hold it."""
    places: dict[str, list[int]] = {}
    for place, sentence in enumerate(sentences(text)):
        for word in key_words_anew(sentence):
            places.setdefault(word, []).append(place)
    return places


def supported(answer: str, contexts: Sequence[str], *, beside: bool = False) -> list[Sentence]:
    """Each sentence of an answer with how far the contexts hold it.

    The share of its key words that stand in some context; `beside`: the mean of this, of the share of its
    neighbouring words that stand side by side in some context, and of its key words that one sentence of a
    context holds at most. A point of a list is a sentence; one without a key word says nothing that could be
    looked up and is left out.
    """
    sets = [key_words(context) for context in contexts]
    shares = []
    for point in _LIST_POINT.split(answer):
        for sentence in sentences(point):
            wanted = key_words_anew(sentence)
            if not wanted:
                continue
            share = len(frozenset[str]().union(*(wanted & held for held in sets))) / len(wanted)
            if beside:
                pairs = runs_anew(sentence, 2)
                shared_pairs = frozenset[tuple[str, ...]]().union(
                    *(pairs & runs(context, 2) for context in contexts)
                )
                best = max((_most_together(wanted, context) for context in contexts), default=0) / len(wanted)
                share = (share + best + (len(shared_pairs) / len(pairs) if pairs else best)) / 3.0
            shares.append(Sentence(sentence, share, len(wanted)))
    return shares


def _most_together(key_words: frozenset[str], context: str) -> int:
    """The most of some words that one sentence of a context holds."""
    places = (_places if len(context) <= CACHED else _places.__wrapped__)(context)
    counts: dict[int, int] = {}
    for word in key_words:
        for place in places.get(word, ()):
            counts[place] = counts.get(place, 0) + 1
    return max(counts.values(), default=0)


def mean_held(sentences: Sequence[Sentence]) -> float:
    """How far sentences are held, 0..1, each counting by its key words."""
    return sum(sentence.held * sentence.n_words for sentence in sentences) / sum(
        sentence.n_words for sentence in sentences
    )


@local_judge("percentage", source=_SOURCE, needs="answer, contexts")
def faithfulness_overlap(
    answer: str, contexts: Sequence[str] = (), *, share: Annotated[float, (0.0, 1.0)] = 0.0
) -> tuple[float | None, str]:
    """How far the contexts hold the sentences of the answer, in percent, with a note why.

    Of each sentence the mean of three shares: of its key words in the contexts, of its neighbouring words
    that stand side by side there, and of its key words at most in one sentence of a context; sentences count
    by their key words. Words that the contexts only hold strewn about weigh little so.
    `faithfulness_overlap(share=0.6)@local` counts sentences instead: those with more than that share of their
    key words in the contexts, whatever the order. A stand-in for the faithfulness that RAG evaluations ask a
    model for: it sees no negation or paraphrase, and takes "the text does not say" for a claim. An item
    without contexts gets 0, as nothing holds its answer. Needs contexts.
    """
    sentences = supported(answer, contexts, beside=not share)
    if not sentences:
        return None, _NO_CLAIM
    missed = [sentence.text for sentence in sentences if sentence.held <= (share or 0.5)]
    good = len(sentences) - len(missed)
    reason = share_in_words(good, len(sentences), "sentences", missed)
    return 100.0 * (good / len(sentences) if share else mean_held(sentences)), reason


@local_judge("percentage", source=_SOURCE, needs="answer, contexts")
def hallucination_overlap(
    answer: str,
    contexts: Sequence[str] = (),
    *,
    share: Annotated[float, (0.0, 1.0)] = 0.0,
    rest: bool = False,
) -> tuple[float | None, str]:
    """How far the answer is not made up, in percent, with a note why; 100 is the best.

    Graded, it is the verdict of `faithfulness_overlap`. `hallucination_overlap(share=0.6)@local` counts
    sentences: one is made up where more than that share of its key words stand in no context, so that between
    the two thresholds a sentence is neither made up nor faithful. `hallucination_overlap(rest=true)@local` is
    what other tools call hallucination: 1 - faithfulness, 100 being the worst. An item without contexts gets
    0, with `rest=true` 100. Needs contexts.
    """
    sentences = supported(answer, contexts, beside=not share)
    if not sentences:
        return None, _NO_CLAIM
    made_up = [sentence.text for sentence in sentences if 1.0 - sentence.held > (share or 0.5)]
    good = len(sentences) - len(made_up)
    reason = share_in_words(good, len(sentences), "sentences", made_up)
    verdict = 100.0 * good / len(sentences) if share else 100.0 * mean_held(sentences)
    return 100.0 - verdict if rest else verdict, reason


@local_judge("percentage", source="key-word overlap")
def relevancy_overlap(question: str, answer: str) -> float | tuple[None, str]:
    """Share of the question's key words that the answer takes up, in percent.

    A word-overlap stand-in for the relevance that RAG evaluations ask a model for: it sees whether the answer
    speaks of the same things, not whether it answers. A short right answer ("in 1969") gets 0. Needs a
    question.
    """
    wanted = key_words(question)
    if not wanted:
        return None, "the question has no key word"
    return 100.0 * len(wanted & key_words(answer)) / len(wanted)
