"""The document of `compare`: who agrees better with people, and every pair after Holm."""

from __future__ import annotations

from judgecal.experiment.compare import CompareResult
from judgecal.records import Estimate, Headline
from judgecal.report.charts import Axis, axis_of, change_in_points, change_of, change_row, interval_picture
from judgecal.report.document import Document, Grid, Paragraph, Picture, section, stored_document, table
from judgecal.report.judges_headline import naming_unread, raters_in_words, unread_headline
from judgecal.report.wording import (
    DASH,
    OWN_LABELS,
    count,
    fitting,
    gold_in_words,
    in_a_row,
    p_value,
    percent,
    points,
    sentence,
    sentences,
)
from judgecal.stats import PLANNED_DISCORDANCE, POWER
from judgecal.stats.means import driven_in_words
from judgecal.stats.metrics import amount_of, metric_facts
from judgecal.stats.significance import MARGIN

_NAMED = 3  # of pairs in the headline, and of cells of the grid
_DRAWN = 12  # pairs in the picture; the table has all


def compare_document(result: CompareResult) -> Document:
    """Lay out a CompareResult as a Document: every pair of judges with its decision."""
    return stored_document(
        result,
        f"{result.experiment}: judges compared with each other",
        f"Judges of {result.compared_from}; {gold_in_words(result.gold)}. An unscored item counts as "
        f"{result.gold.unscored_counts_as}.",
        unread_headline(result.unread) or naming_unread(_headline(result), result.unread),
        section(
            "pairs",
            "Differences",
            "Which judge agrees better? Each pair is compared on the same items, question by question. An "
            "interval looks at its pair alone, a decision allows for all pairs (Holm).",
            _pairs(result),
            _picture(result),
            result.test_look and Paragraph(sentence(result.test_look), short=True),
        ),
        notes=_notes(result),
    )


def _headline(result: CompareResult) -> Headline:
    """Two judges: what both reach, how far they are apart, what these items would show. Several: who is told
    apart, each worse one by the better ones.
    """
    whom = raters_in_words(result.gold.labels_by)[0]
    leading = "accuracy" if result.gold.scale == "nominal" else "macro_agreement"
    by = "" if result.metric == leading else f" by {result.metric}"
    unclear = [judges for judges, pair in result.pairs.items() if pair.decision == "cannot tell"]
    n, n_pairs = len({judge for judges in result.pairs for judge in judges}), len(result.pairs)
    who = (
        f"the {n} judges"
        if len(unclear) == n_pairs
        else f"the two judges of {len(unclear)} of the {n_pairs} pairs"
    )
    unknown = sentences(  # what weighs most comes first
        bool(unclear)
        and f"Whether {who} are equally good: that no difference is shown is no proof that there is none.",
        result.gold.labels_by == "project" and OWN_LABELS,
        "Which judge to use: cost and the allowed loss are for judgecal select to weigh.",
    )
    better: dict[str, list[str]] = {}
    for judges, pair in result.pairs.items():
        if pair.decision != "cannot tell":
            above, below = judges if pair.decision == "A" else judges[::-1]
            better.setdefault(below, []).append(above)
    following = f"judgecal select {result.compared_from}"
    if n_pairs > 1:
        if not better:
            what = f"We cannot tell any two of these {n} judges apart{by}."
            return Headline("cannot tell", what, (), unknown, following)
        clauses = [
            f"{in_a_row(names)} agree{'s' * (len(names) == 1)} better with {whom} than {worse}{by}"
            for worse, names in better.items()
        ]
        cannot = [f"{a} from {b}" for a, b in unclear]
        what = f"{n_pairs - len(unclear)} of {n_pairs} pairs of judges are told apart."
        because, more = fitting(f"{_first(clauses)}.", bool(cannot) * f"We cannot tell {_first(cannot)}.")
        return Headline("told apart", what, because, unknown, following, more=more)
    [((a, b), pair)] = result.pairs.items()
    share, least, reached = metric_facts(result.metric).unit != "scale", pair.smallest_detectable, ""
    if share and pair.a is not None and pair.b is not None:
        change = change_in_points(pair.difference)
        shown = "" if least is None else f" These items could only reveal a gap of {points(least)} or more."
        if unclear and pair.planned and least is not None and least > MARGIN:
            needed = pair.planned.groups_for(MARGIN)
            shown += f" About {needed:,} questions would reveal one of {points(MARGIN)}." if needed else ""
        once = " once calibrated" * (pair.raw is not None)
        each = f"{a} reaches {percent(pair.a, 1)}{once}, {b} {percent(pair.b, 1)}"
        reached = f"{each}: {change} points.{shown}"
    what = f"We cannot tell whether {a} or {b} agrees better{by}."
    if better:
        [(worse, [name])] = better.items()
        what = f"{name} agrees better with {whom} than {worse}{by}."
    because, more = fitting(*dict.fromkeys([reached, sentence(pair.why)]))
    return Headline(pair.decision, what, because, unknown, following, more=more)


def _first(clauses: list[str]) -> str:
    more = f"; and {len(clauses) - _NAMED:,} more" if len(clauses) > _NAMED else ""
    return "; ".join(clauses[:_NAMED]) + more


def _picture(result: CompareResult) -> Picture | None:
    """The differences of the pairs with their intervals, held against 0; None where there is none."""
    rows = [
        change_row(
            f"{a} - {b}", pair.difference, result.metric, result.gold.scale, strong=pair.decision in "AB"
        )
        for (a, b), pair in result.pairs.items()
        if pair.difference.value is not None
    ]
    axis = Axis(f"difference of {axis_of(result.metric)}", full=0.0)
    return interval_picture(rows[:_DRAWN], axis, title="How far apart are they?") if rows else None


def _pairs(result: CompareResult) -> Grid:
    """A line a pair, those that are told apart first; the raw verdicts and the complete cases beside it."""
    metric, scale = result.metric, result.gold.scale
    pairs = list(result.pairs.values())
    unscored = any(pair.difference.n_unscored for pair in pairs)

    def change(difference: Estimate) -> str:
        return change_of(difference, metric, scale)

    return table(
        sorted(result.pairs.items(), key=lambda row: row[1].decision == "cannot tell"),
        {
            "A": lambda row: row[0][0],
            "B": lambda row: row[0][1],
            f"A - B ({100 * result.level:.4g}% interval)": lambda row: change(row[1].difference),
            "n": lambda row: f"{row[1].difference.n:,}/{row[1].difference.n_expected:,}",
            "decision": lambda row: row[1].decision,
            "p (Holm)" if len(pairs) > 1 else "p": lambda row: p_value(row[1].p_adjusted),
            "detectable": lambda row: _amount(row[1].smallest_detectable, result),
            "raw": (lambda row: change(row[1].raw.difference) if row[1].raw else DASH)
            if any(pair.raw for pair in pairs)
            else None,
            "unscored left out": (
                lambda row: change(row[1].complete_case.difference) if row[1].complete_case else DASH
            )
            if unscored
            else None,
            "unscored": (lambda row: count(row[1].difference.n_unscored)) if unscored else None,
        },
        left=2,
        short=True,
    )


def _amount(size: float | None, result: CompareResult) -> str:
    return DASH if size is None else amount_of(size, result.metric, result.gold.scale)


def _notes(result: CompareResult) -> tuple[str, ...]:
    pairs = list(result.pairs.values())
    strata = pairs[0].strata
    counts = ", ".join(f"{stratum.name} {count(stratum.n)}" for stratum in strata)
    made = dict.fromkeys(
        f"intervals {pair.difference.method}; p: {pair.p_method}" for pair in pairs if pair.p_method
    )
    assumed = (
        f"with {100 * POWER:.0f}% power, if the judges differ {100 * PLANNED_DISCORDANCE:.0f}% as much "
        "as two that err independently, or as much as these do where that is more"
    )
    return sentences(
        f"Detectable: the smallest difference that we would find {assumed}; of several pairs, "
        "at the first step of Holm.",
        bool(strata) and f"{result.metric} is the mean over groups of labels: {counts}.",
        (f"{why}." for why in driven_in_words((*two, pair.strata) for two, pair in result.pairs.items())),
        (f"Paired on the same items: {method}." for method in made),
        map(sentence, result.notes),
        f"Decisions taken on the test labels of {result.gold.set} so far: {result.test_looks}.",
    )
