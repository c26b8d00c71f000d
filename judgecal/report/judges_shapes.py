"""Where each judge errs, in small pictures that share their axes: confusion, and mean label against raw
verdict.

One picture a judge; those that gave the same verdicts on all items share one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judgecal.experiment.verdicts import CalibrationBin, Confusion, JudgeShape
from judgecal.report import numbers
from judgecal.report.charts import Frame, Mark
from judgecal.report.document import Block, Cell, Gallery, Paragraph, Picture, Table
from judgecal.selection.standing import Standing

_WIDTH = 270  # pixels


def small_multiples(found: Standing) -> Iterator[Block]:
    """Confusion of classes; of graded labels the people's mean label against the raw verdict."""
    shapes = {one.judge: one for one in found.shapes}
    distinct = [(_together(names), shapes[names[0]]) for names in found.alike if names[0] in shapes]
    classed = [_confusion(name, shape.confusion) for name, shape in distinct if shape.confusion]
    if classed:
        yield Gallery(classed, title="Confusion: what people say, and what the judge says")
        yield Paragraph(
            "Counts of judgements, and their share of what people say, on all items of the headline; what lies off "
            "the diagonal are errors."
        )
    graded = [(name, shape) for name, shape in distinct if shape.calibration]
    if graded and found.result.gold.scale != "binary":
        yield Gallery(
            [_calibration(name, shape) for name, shape in graded], title="Mean label against raw verdict"
        )
        yield Paragraph(
            "Points: the people's mean label of raw verdicts of about one height, with a 95% interval by question and "
            "the number of judgements above. In colour: the map from verdict to label, as fitted on all of these "
            "items; the lock carries that of train and dev. It gives the middle label where the thirds of the scale "
            "count alike, so it may lie off the means. Dotted: verdicts that need no map."
        )


def _together(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names)}: the same verdicts"


def _confusion(name: str, found: Confusion) -> Table:
    sums = [sum(row) for row in found.counts]
    width = len(found.counts[0]) if found.counts else 0
    says = [*found.classes, *["no verdict"] * (width - len(found.classes))]
    rows: list[list[str | Cell]] = [
        [people, *(_share(n, of, strong=at == place) for at, n in enumerate(row))]
        for place, (people, row, of) in enumerate(zip(found.classes, found.counts, sums, strict=True))
    ]
    return Table(["people ↓ judge →", *says], rows, title=name)


def _share(n: int, of: int, *, strong: bool) -> Cell:
    share = n / of if of else None
    return Cell(f"{numbers.count(n)} ({numbers.percent(share)})", share, strong)


def _calibration(name: str, shape: JudgeShape) -> Picture:
    steps = ", ".join(f"from {at:g} on {label:g}" for at, label in shape.calibration_map)
    says = f"{name}, raw verdict to label: {steps or 'no map'}"
    return Picture(lambda: _drawn(shape), says, title=name, numbers=_bins(shape.calibration))


def _drawn(shape: JudgeShape) -> str:
    low, high = shape.low, shape.high
    frame = Frame(_WIDTH, (low, high), (low, high), ("raw verdict", ""), left=34.0, top=18.0, tall=160.0)
    marks = [Mark("line", frame.left, frame.bottom, frame.right, frame.top, tone="equal")]
    ends = [*(at for at, _ in shape.calibration_map[1:]), high]
    steps = "".join(
        f"{'L' if number else 'M'}{frame.x(at)} {frame.y(label)}H{frame.x(end)}"
        for number, ((at, label), end) in enumerate(zip(shape.calibration_map, ends, strict=False))
    )
    marks += [Mark("path", text=steps, tone="map")] if steps else []
    for one in shape.calibration:
        x = frame.x(one.verdict)
        if one.low is not None and one.high is not None:
            marks.append(Mark("line", x, frame.y(one.low), x, frame.y(one.high)))
        marks.append(Mark("dot", x, frame.y(one.label)))
        marks.append(Mark("text", x, frame.top - 4.0, text=numbers.count(one.n)))
    return frame.drawn(marks)


def _bins(bins: Sequence[CalibrationBin]) -> Table:
    rows = [[f"{one.verdict:.3g}", f"{one.label:.3g}", _ends(one), numbers.count(one.n)] for one in bins]
    return Table(["mean raw verdict", "people's mean label", "95% interval", "judgements"], rows)


def _ends(one: CalibrationBin) -> str:
    return numbers.DASH if one.low is None or one.high is None else f"{one.low:.3g} to {one.high:.3g}"
