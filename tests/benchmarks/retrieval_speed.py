"""The retriever test's speed and memory beside rank_bm25, on a made-up corpus whose words follow
Zipf's law.

    python -m tests.benchmarks.retrieval_speed

18,000 questions of 15 words on 3,600 documents of 1,000, as words: nobody tokenises here. rank_bm25 answers
some of the questions and is extrapolated. Each contender has a process of its own; absolute numbers are those
of the machine.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.benchmarks.driver import Bench
from tests.benchmarks.processes import Found, run

QUESTIONS, DOCUMENTS, LENGTH, ASKED, VOCABULARY = 18_000, 3_600, 1_000, 15, 60_000
_SAMPLE = 40  # questions that rank_bm25 answers
_TIMES, _SECONDS, _MEGABYTES, _GROWTH = 200.0, 6.0, 700.0, 15.0

Words = list[list[str]]
Timed = tuple[float, float, float]


def made_up(documents: int, questions: int, seed: int = 0) -> tuple[Words, Words]:
    """Documents, and questions whose words stand in a document of theirs, the rarer half of them."""
    rng = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, VOCABULARY + 1)
    cumulative = np.cumsum(weights / weights.sum())
    words = np.array([sys.intern(f"w{number}") for number in range(VOCABULARY)], dtype=object)
    corpus, numbers = [], []
    for _ in range(documents):
        drawn = np.searchsorted(cumulative, rng.random(LENGTH)).astype(np.int32)
        numbers.append(drawn)
        corpus.append(words[drawn].tolist())
    asked = []
    for number in range(questions):
        own = numbers[number * documents // questions]
        asked.append(words[rng.choice(own, ASKED)].tolist())
    return corpus, asked


def peak_mb() -> float:
    """The most memory that this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def ours(corpus: Words, asked: Words) -> Timed:
    """Index; rank every reference document and keep the first 100: what the retriever test does."""
    from judgecal.goldset import GoldDocument
    from judgecal.rag.questions import Collection, Question
    from judgecal.rag.retrieval.indexes import Bm25
    from judgecal.rag.retrieval.result import by_bm25

    documents = tuple(GoldDocument(str(number), None, "") for number in range(len(corpus)))
    questions = tuple(
        Question(str(number), "", (), (str(number * len(corpus) // len(asked)),))
        for number in range(len(asked))
    )
    collection = Collection("made-up", questions, documents)
    start = time.perf_counter()
    index = Bm25.of(corpus)
    indexed = time.perf_counter()
    ranking = by_bm25(index, asked, collection, keep=100)
    done = time.perf_counter()
    return indexed - start, done - indexed, float((ranking.rank == 1).mean())


def rank_bm25(corpus: Words, asked: Words) -> Timed:
    """`get_scores` of some questions, extrapolated to all."""
    from rank_bm25 import BM25Okapi

    start = time.perf_counter()
    index = BM25Okapi(corpus)
    indexed = time.perf_counter()
    step = max(1, len(asked) // _SAMPLE)
    places = list(range(0, len(asked), step))
    first = [int(np.argmax(index.get_scores(asked[place]))) for place in places]
    took = (time.perf_counter() - indexed) * len(asked) / len(places)
    right = [found == place * len(corpus) // len(asked) for found, place in zip(first, places, strict=True)]
    return indexed - start, took, sum(right) / len(right)


CONTENDERS: dict[str, Callable[[Words, Words], Timed]] = {"ours": ours, "rank_bm25": rank_bm25}


def measure(name: str, documents: int, questions: int) -> None:
    """One contender: its numbers as a line of JSON."""
    corpus, asked = made_up(documents, questions)
    before = peak_mb()
    index_s, score_s, first = CONTENDERS[name](corpus, asked)
    found = {"index_s": index_s, "score_s": score_s, "first": first, "data_mb": before, "peak_mb": peak_mb()}
    print(json.dumps(found), flush=True)


def contend(name: str, documents: int, questions: int) -> Found:
    """Measure a contender in a process of its own."""
    sizes = ["--measure", name, "--documents", str(documents), "--questions", str(questions)]
    return run([sys.executable, str(Path(__file__).resolve()), *sizes], timeout=1800.0)


def line(name: str, found: Found, note: str = "") -> float:
    """Print one contender's numbers and give its seconds; infinite where it could not be measured."""
    if "error" in found:
        print(f"  {name:<12} skipped: {found['error']}", flush=True)
        return float("inf")
    index_s, score_s, first, peak = (float(found[key]) for key in ("index_s", "score_s", "first", "peak_mb"))
    print(
        f"  {name:<12} index {index_s:6.2f} s, scores {score_s:8.2f} s, peak {peak:6.0f} MB (words alone "
        f"{float(found['data_mb']):.0f}), own document first {100 * first:.1f}%  {note}",
        flush=True,
    )
    return _seconds(found)


def _seconds(found: Found) -> float:
    return float("inf") if "error" in found else float(found["index_s"]) + float(found["score_s"])


def compare(bench: Bench) -> None:
    """The table."""
    documents, questions = bench.options.documents, bench.options.questions
    bench.head(f"{questions:,} questions of {ASKED} words on {documents:,} documents of {LENGTH:,} words")
    own = min((contend("ours", documents, questions) for _ in range(bench.n)), key=_seconds)
    seconds = line("ours", own, "ranks and first 100")
    theirs = contend("rank_bm25", documents, questions)
    line("rank_bm25", theirs, f"extrapolated from {_SAMPLE} questions")
    if "error" in own or "error" in theirs:
        bench.line("not measured", kept=False)
        return
    times = float(theirs["score_s"]) / float(own["score_s"])
    bench.target("ours, index and ranks, s", seconds, most=_SECONDS)
    bench.target("scores and ranks, times rank_bm25's", times, least=_TIMES)
    bench.target("peak, MB", float(own["peak_mb"]), most=_MEGABYTES)
    if bench.quick:
        return
    large = contend("ours", 10 * documents, questions)
    grown = line("ours, 10 x", large, f"{10 * documents:,} documents") / seconds
    bench.target("time for 10 x the documents", grown, most=_GROWTH)


def main() -> int:
    """Compare, or measure one contender."""
    sizes = {"documents": DOCUMENTS, "questions": QUESTIONS}
    quick = {"n": 1, "documents": 40, "questions": 200}
    bench = Bench(__doc__, n=3, of="rounds of ours, the fastest counts", quick=quick, measure="", **sizes)
    given = bench.options
    if given.measure:
        measure(given.measure, given.documents, given.questions)
        return 0
    compare(bench)
    return bench.end("judgecal", "rank-bm25", "scipy", "numpy")


if __name__ == "__main__":
    sys.exit(main())
