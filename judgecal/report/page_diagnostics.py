"""The last section of a page about judges: where they fail, their noise, their cost, and what words mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judgecal.report import numbers
from judgecal.report.charts_judges import calibration, kappa_over_cut, points
from judgecal.report.glossary import glossary_of
from judgecal.report.page import Section
from judgecal.report.page_blocks import (
    Block,
    Cell,
    Folded,
    Gallery,
    Glossary,
    Heading,
    Lines,
    Picture,
    Prose,
    Table,
)
from judgecal.report.wording import sentence
from judgecal.stats.metrics import digits_of

__all__ = ["diagnostics"]


def diagnostics(found: Mapping[str, Any]) -> list[Section]:
    """One section; its parts in the order in which they are asked for."""
    blocks: list[Block] = [
        *_by_part(found, "by_tag", "tag"),
        *_by_part(found, "by_system", "system"),
        *_noise(found),
        *_points(found),
        *_unscored(found),
        _cost(found),
        *_curves(found),
        *_looks(found),
        Folded("Every metric of every judge, the floor and the raters", [_metrics(found)]),
        Folded("Words on this page", [Glossary(glossary_of(found))]),
    ]
    caption = (
        "Serves the next step: what to mend in the prompt, what to label next, whether repeats "
        "pay. Nothing here chooses a "
        "judge: of many small parts some are bad by chance, and a cut taken from such a curve "
        "flatters itself."
    )
    return [Section("diagnostics", "Diagnostics", caption, blocks)]


def _by_part(found: Mapping[str, Any], key: str, kind: str) -> list[Block]:
    """Failures as counts, a column a judge, the worst part first."""
    judges = found["result"]["judges"]
    parts = {name: None for judge in judges for name in judge[key]}
    if not parts or (kind == "system" and len(parts) < 2):
        return []
    rows = [[name, *(_failures(judge[key].get(name)) for judge in judges)] for name in parts]
    rows.sort(key=lambda row: -max((cell.share or 0.0) for cell in row[1:] if isinstance(cell, Cell)))
    told = "False passes + false fails, of the judgements with a verdict. Counts, no tests."
    if not any(part["passes"] is not None for judge in judges for part in judge[key].values()):
        told = "Agreement of the part; there is no pass mark to count failures at. No tests."
    return [
        Table([kind, *(judge["judge"] for judge in judges)], rows, title=f"Failures by {kind}"),
        Prose(told),
    ]


def _failures(part: Mapping[str, Any] | None) -> Cell:
    if part is None:
        return Cell(numbers.DASH)
    if part["passes"] is None:
        metric = "mean_agreement" if "mean_agreement" in part else "accuracy"
        value = part[metric].value
        return Cell(f"{numbers.plain(value)} (n {part['n']})", None if value is None else 1.0 - value)
    wrong, n = part["false_passes"] + part["false_fails"], part["n"]
    counts = [numbers.count(one) for one in (part["false_passes"], part["false_fails"], n)]
    return Cell(f"{counts[0]} + {counts[1]} of {counts[2]}", wrong / n if n else None)


def _noise(found: Mapping[str, Any]) -> list[Block]:
    repeated = [one for one in found["result"]["judges"] if "retest" in one]
    if not repeated:
        text = (
            "Each item was judged once, so the judges' own noise is not known. With "
            "--repeats 3 it stands here beside the margin."
        )
        return [Heading("Noise against the margin"), Prose(text)]
    rows = []
    for judge in repeated:
        again = judge["retest"]
        flips = next((again[name] for name in again if name.startswith("flip_rate")), None)
        rows.append(
            [
                judge["judge"],
                str(again["repeats"]),
                numbers.estimate(flips) if flips else numbers.DASH,
                numbers.estimate(again["within_item_sd_share"]),
                _swing(again["expected"]),
                f"{100.0 * found['margin']:g}",
            ]
        )
    header = [
        "judge",
        "repeats",
        "flip rate",
        "within-item SD, of the range",
        "two runs differ by, points",
        "margin",
    ]
    return [
        Table(header, rows, title="Noise against the margin"),
        *(Prose(sentence(f"{judge['judge']}: {judge['retest']['why']}")) for judge in repeated[:3]),
    ]


def _swing(expected: Sequence[Mapping[str, Any]]) -> str:
    """Within what 95% of pairs of runs would differ by noise alone: 1.96 sqrt(2) times the noise of one run's mean."""
    first, last = expected[0], expected[-1]
    if first["error"] is None or last["error"] is None:
        return numbers.DASH
    noise = max(0.0, first["error"] ** 2 - last["error"] ** 2) / (1.0 - 1.0 / last["repeats"])
    return numbers.points(1.96 * (2.0 * noise) ** 0.5)


def _points(found: Mapping[str, Any]) -> list[Block]:
    shapes = [shape for shape in found["shapes"] if shape.get("points")]
    if not shapes:
        return []
    pictures = [
        Picture(points(shape), f"{shape['judge']}: verdict against label", title=shape["judge"])
        for shape in shapes
    ]
    drawn = max(len(shape["points"]) for shape in shapes)
    of = max(shape["n_points"] for shape in shapes)
    sample = (
        f"a random {numbers.count(drawn)} of {numbers.count(of)} judgements each"
        if drawn < of
        else "every judgement"
    )
    told = (
        f"Shown: {sample}, moved a little so that equal ones do not hide each other. Dashed: the "
        "pass mark; what lies above it "
        "on the left are false passes."
    )
    return [Gallery(pictures, title="Verdict against label"), Prose(told)]


def _unscored(found: Mapping[str, Any]) -> list[Block]:
    judges = [one for one in found["result"]["judges"] if one["n_unscored"]]
    if not judges:
        return [Heading("Unscored"), Prose("Every judgement has a verdict.")]
    rows = [
        [
            one["judge"],
            f"{numbers.count(one['n_unscored'])} of {numbers.count(one['n_expected'])}",
            ", ".join(f"{kind} {numbers.count(n)}" for kind, n in one["unscored"].items()),
        ]
        for one in judges
    ]
    told = "Wherever judges are ranked an unscored item counts as the verdict farthest from its label."
    return [Table(["judge", "unscored", "why"], rows, title="Unscored"), Prose(told)]


def _cost(found: Mapping[str, Any]) -> Table:
    rows = [
        [
            one["judge"],
            numbers.money(one["usd_per_1k"]),
            numbers.seconds(one["latency_s"]["p50"]),
            numbers.seconds(one["latency_s"]["p95"]),
            numbers.count(one["tokens"]["prompt"]),
            numbers.count(one["tokens"]["completion"]),
        ]
        for one in found["result"]["judges"]
    ]
    header = ["judge", "USD per 1,000", "latency p50", "p95", "prompt tokens", "completion tokens"]
    return Table(header, rows, title="Cost and latency")


def _curves(found: Mapping[str, Any]) -> list[Block]:
    shapes = [shape for shape in found["shapes"] if shape.get("kappa_over_cut")]
    if not shapes:
        return []
    kappas = [
        Picture(kappa_over_cut(shape), f"{shape['judge']}: kappa over the judge's cut", title=shape["judge"])
        for shape in shapes
    ]
    heights = [
        Picture(
            calibration(shape), f"{shape['judge']}: share that people pass by verdict", title=shape["judge"]
        )
        for shape in shapes
    ]
    told = (
        "Dashed: the people's mark. A curve that peaks elsewhere means that the judge uses "
        "the scale in its own way."
    )
    return [
        Gallery(heights, title="Calibration"),
        Prose("Dotted: verdicts that say how often people pass. Larger points are more judgements."),
        Gallery(kappas, title="Kappa over the cut"),
        Prose(told),
    ]


def _looks(found: Mapping[str, Any]) -> list[Block]:
    result = found["result"]
    gold, n = result["gold"], result["test_looks"]
    test = (
        f"{numbers.count(gold['n_test_items'])} of the items here are test items. "
        if gold["n_test_items"]
        else ""
    )
    told = f"{test}Decisions taken on the test labels of {gold['set']} so far: {numbers.count(n)}."
    notes = [sentence(note) for note in (result.get("floor_reason"), *result["notes"]) if note]
    return [
        Heading("Test looks and run line"),
        Prose(told),
        *map(Prose, notes),
        Lines([f"run: {result['run_line']}"]),
    ]


def _metrics(found: Mapping[str, Any]) -> Table:
    result = found["result"]
    names = list(result["judges"][0]["agreement"])
    header = ["", "n", f"{found['metric']}, unscored as wrong", *names]
    rows: list[list[str]] = [_metric_row(one, found["metric"], names) for one in result["judges"]]
    rows += [["floor"], *(_metric_row(one, found["metric"], names) for one in result["floor"])]
    for rater in result["raters"]:
        rows.append([f"{rater['judge']} against the other raters, and the judges on the same items"])
        rows += [_metric_row(one, found["metric"], names) for one in (rater, *rater["judges"])]
    return Table(header, rows)


def _metric_row(one: Mapping[str, Any], metric: str, names: Sequence[str]) -> list[str]:
    return [
        one["judge"],
        f"{numbers.count(one['n'])}/{numbers.count(one['n_expected'])}",
        numbers.estimate(one["as_wrong"].get(metric)),
        *(numbers.estimate(one["agreement"].get(name), digits_of(name, one["unit"])) for name in names),
    ]
