"""The judges that need no model beside one-line baselines: `python -m tests.benchmarks.free_judges --data DATA`.

Groundedness: MTRAG, the one public set at hand that has contexts and people's grades of faithfulness.
Correctness: the sets with reference answers and people's marks. What of them the embedded model was fitted on
stands in `weights.json`; `embedded_fit` prints the numbers of fits that left a set out.

All of ours are the shipped signatures; where they ask for yes or no, the share is the verdict.

A line a judge: area under the ROC curve (share of pairs in the right order, where labels are graded) and
macro_agreement once calibrated, with intervals by question. Promised: where labels are people's, the AUC of ours
is not below that of the best of the three baselines; and 3,000 judgements a CPU second of each shipped signature,
on MTRAG's items with their contexts.
"""

from __future__ import annotations

import csv
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from judgecal.goldset.wording import sentences
from judgecal.judges import judge_named
from judgecal.judges.local._words import runs
from judgecal.judges.prompt import PromptJudge
from judgecal.models.embedded import text as embedded_text
from judgecal.models.embedded import weighed_reply
from judgecal.records import Context, Item, Pair
from judgecal.signatures import list_signatures, load_signature
from judgecal.stats import agreement, cross_fit
from judgecal.workspace import find_workspace
from tests.benchmarks.driver import Bench
from tests.support.gold import made_items

csv.field_size_limit(10**9)
_A_SECOND = 3_000.0


class Labelled(NamedTuple):
    """Items with people's labels."""

    items: list[Item]
    labels: list[float]
    scale: str


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def correctness_sets(data: Path) -> dict[str, Labelled]:
    """The sets with reference answers and people's marks; SAF's percentages, yes or no elsewhere."""

    def read(paths: Sequence[str], references: Callable[[dict[str, str]], list[str]], label: str) -> Labelled:
        rows = [row for path in paths for row in _rows(data / path)]
        items = [
            Item(
                row["item_id"],
                row["group"],
                row["question"],
                row["answer"],
                reference_answers=tuple(one for one in references(row) if one.strip()) or ("",),
            )
            for row in rows
        ]
        if label == "score_percent":
            return Labelled(items, [float(row[label]) for row in rows], "percentage")
        return Labelled(items, [float(row[label] in ("yes", "correct")) for row in rows], "binary")

    def split_at(mark: str) -> Callable[[dict[str, str]], list[str]]:
        return lambda row: row["reference_answer"].split(mark)

    def all_of(row: dict[str, str]) -> list[str]:
        return [row["reference_answer"], *json.loads(row.get("other_references") or "[]")]

    sets = {"nq301": read(["nq301/items.csv"], split_at(" | "), "acceptable")}
    for half in ("nq", "tq"):
        sets[f"evouna {half}"] = read([f"evouna/{half}.csv"], split_at("/"), "correct")
    for language in ("english", "german"):
        paths = [f"saf/{part}_{language}.csv" for part in ("training", "unseen_answers")]
        sets[f"saf {language}"] = read(paths, all_of, "score_percent")
    for name in ("beetle", "scientsbank"):
        paths = [f"semeval2013/{name}_{part}.csv" for part in ("train", "unseen-answers")]
        sets[name] = read(paths, all_of, "label")
    return sets


def mtrag(data: Path, metric: str = "faithfulness") -> Labelled:
    """MTRAG's answers and the median grades; of completeness without the references as their own answers."""
    grades = {
        row["item_id"]: statistics.median(float(row[f"r{n}"]) for n in range(1, 8) if row[f"r{n}"])
        for row in _rows(data / "mtrag" / "ratings.csv")
        if row["metric"] == metric and (metric == "faithfulness" or not row["item_id"].endswith("-reference"))
    }
    items = []
    for line in (data / "mtrag" / "items.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["item_id"] not in grades:
            continue
        contexts = tuple(Context(one["text"]) for one in row["contexts"])
        items.append(
            Item(
                row["item_id"], row["group"], row["question"], row["answer"],
                reference_answers=(row["reference_answer"],), contexts=contexts,
            )
        )  # fmt: skip
    return Labelled(items, [grades[item.item_id] for item in items], "points:1:4:0.5")


def _share(length: int, found: Callable[[Item], Sequence[str]]) -> Callable[[Sequence[Item]], list[float]]:
    """The share of the answer's words, or runs of them, that texts of the item hold; the best text."""

    def of(item: Item) -> float:
        asked = runs(item.answer, length)
        best = max((len(asked & runs(one, length)) for one in found(item)), default=0)
        return 100.0 * best / len(asked) if asked else 0.0

    return lambda items: [of(item) for item in items]


def _tfidf(found: Callable[[Item], Sequence[str]]) -> Callable[[Sequence[Item]], list[float]]:
    """The cosine of the answer's TF-IDF vector to the nearest text of the item; weights of the whole set."""

    def of(items: Sequence[Item]) -> list[float]:
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = {item.item_id: found(item) for item in items}
        fitted = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b").fit(
            [*(item.answer for item in items), *(one for each in texts.values() for one in each)]
        )
        answers = fitted.transform([item.answer for item in items])
        return [
            100.0 * min(1.0, float((answers[n] @ fitted.transform(texts[item.item_id]).T).max()))
            if texts[item.item_id]
            else 0.0
            for n, item in enumerate(items)
        ]

    return of


def embedded(signature: str) -> Callable[[Sequence[Item]], list[float]]:
    """The verdicts of a shipped signature on the embedded model, in percent."""
    judge = judge_named(f"{signature}@embedded")
    assert isinstance(judge, PromptJudge)

    def of(item: Item) -> float:
        text, chances = weighed_reply(judge.messages(item))
        parsed = judge.read(text)
        if judge.weigh is not None:
            parsed = judge.weigh(text, [[0, "", chances]], parsed)
        assert isinstance(parsed.verdict, float)
        return 100.0 * (parsed.verdict - judge.scale.low) / judge.scale.span

    return lambda items: [of(item) for item in items]


def local(name: str) -> Callable[[Sequence[Item]], list[float]]:
    """A local judge's verdicts; what it cannot judge is taken for 0."""
    judge: Any = judge_named(f"{name}@local")
    return lambda items: [judge.verdict(item).verdict or 0.0 for item in items]


def figures(labelled: Labelled, verdicts: Sequence[float]) -> tuple[Any, Any]:
    """AUC, or for grades the share of pairs in order, and macro_agreement once calibrated."""
    groups = [item.group for item in labelled.items]
    order = "auc" if labelled.scale == "binary" else "concordance_index"
    how: dict[str, Any] = {"scale": labelled.scale, "groups": groups}
    found = agreement(labelled.labels, verdicts, judge_scale="percentage", metrics=[order], **how)
    fit = cross_fit(labelled.labels, verdicts, judge_scale="percentage", **how)
    again = (
        agreement(labelled.labels, fit.verdicts, metrics=["macro_agreement"], **how)
        if fit is not None
        else {}
    )
    return found[order], again.get("macro_agreement")


def shown(estimate: Any) -> str:
    """A value with its interval, where it has one."""
    if estimate is None or estimate.value is None:
        return "-"
    ends = f" [{estimate.low:.3f}, {estimate.high:.3f}]" if estimate.low is not None else " (no interval)"
    return f"{estimate.value:.3f}{ends}"


Judges = Mapping[str, Callable[[Sequence[Item]], list[float]]]


def table(
    bench: Bench, name: str, labelled: Labelled, ours: Judges, baselines: Judges, *, promised: bool = True
) -> None:
    """One set: a line a judge; of ours each must not be below the best baseline."""
    n_groups = len({item.group for item in labelled.items})
    bench.head(f"{name}: n = {len(labelled.items):,}, {n_groups:,} questions, labels {labelled.scale}")
    best = 0.0
    for judges, kept in ((baselines, True), (ours, False)):
        for judge, verdicts in judges.items():
            order, macro = figures(labelled, verdicts(labelled.items))
            fine = kept or not promised or order.value >= best - 0.0005
            bench.line(f"  {judge:<28} AUC {shown(order):<22} macro {shown(macro):<22}", kept=fine)
            best = max(best, order.value) if kept else best


def made_up() -> Labelled:
    """Thirty questions with a full, a half and a wrong answer: the set of a quick run."""
    rows = made_items(30)
    items = [
        Item(row["item_id"], row["group"], row["question"], row["answer"], (row["reference_answer"],))
        for row in rows
    ]
    return Labelled(
        items, [{"full": 100.0, "half": 50.0, "none": 0.0}[row["kind"]] for row in rows], "percentage"
    )


def speed(bench: Bench, items: Sequence[Item]) -> None:
    """Print how many items a CPU second each shipped signature judges, the fastest of three runs."""
    bench.head("items judged a CPU second, with nothing known of their texts and the messages made before")
    fields = {
        "guidelines": "Never mention prices. Use at most 100 words.",
        "expected_facts": "It is long\nIt is old",
    }
    whole = [replace(item, fields=fields, pair=Pair(item.answer, items[0].answer)) for item in items]
    for name in list_signatures(find_workspace()):
        if name.endswith(".md") or load_signature(name).scale is None:
            continue
        judge = judge_named(f"{name}@embedded")
        assert isinstance(judge, PromptJudge)
        messages, rates = [judge.messages(item) for item in whole], []
        for _ in range(3):
            embedded_text._short.cache_clear()
            embedded_text._long.cache_clear()
            start = time.process_time()
            for each in messages:
                weighed_reply(each)
            rates.append(len(messages) / (time.process_time() - start))
        bench.target(name, max(rates), least=_A_SECOND)


def main() -> int:
    bench = Bench(__doc__, n=0, of="rows of the longest sets at most; 0 for all", data="../shared/data")
    data = Path(bench.options.data)

    def contexts(item: Item) -> list[str]:
        return ["\n".join(one.text for one in item.contexts)] if item.contexts else []

    def in_sentences(item: Item) -> list[str]:
        return [part for one in item.contexts for part in sentences(one.text)]

    def references(item: Item) -> list[str]:
        return list(item.reference_answers)

    grounds = {
        "share of words": _share(1, contexts),
        "share of word pairs": _share(2, contexts),
        "TF-IDF, best sentence": _tfidf(in_sentences),
    }
    ours: Judges = {
        "faithfulness_overlap@local": local("faithfulness_overlap"),
        "mosaic/groundedness@embedded": embedded("mosaic/groundedness"),
        "rag/faithfulness@embedded": embedded("rag/faithfulness"),
    }
    plain: Judges = {
        "token_f1@local": local("token_f1"),
        "share of words": _share(1, references),
        "TF-IDF cosine": _tfidf(references),
    }
    if bench.quick:
        table(bench, "made up", made_up(), {"embedded": embedded("correctness_v3")}, plain)
        speed(bench, made_up().items)
        return bench.end()
    faithful = mtrag(data)
    speed(bench, faithful.items)
    table(bench, "MTRAG, people's faithfulness", faithful, ours, grounds)
    long = mtrag(data, "completeness")
    table(
        bench, "MTRAG, people's completeness", long, {"embedded": embedded("correctness_v3")}, plain,
        promised=False,
    )  # fmt: skip
    for name, labelled in correctness_sets(data).items():
        some = np.random.default_rng(0).permutation(len(labelled.items))[: bench.n or None]
        part = Labelled([labelled.items[i] for i in some], [labelled.labels[i] for i in some], labelled.scale)
        table(bench, name, part, {"embedded": embedded("correctness_v3")}, plain)
    return bench.end("scikit-learn", "numpy")


if __name__ == "__main__":
    sys.exit(main())
