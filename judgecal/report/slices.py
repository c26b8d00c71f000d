"""Where does the judge fail? A line a slice of the open answers, and what stands out in words."""

from __future__ import annotations

from collections.abc import Iterator

from judgecal.experiment.losses import SliceTable
from judgecal.experiment.result import SliceEntry
from judgecal.records import Estimate
from judgecal.report.charts import Axis, in_percent, in_points, interval_picture
from judgecal.report.document import Fact, Rung, Section, table
from judgecal.report.numbers import count, difference, p_value, percent, signed
from judgecal.scale import Scale
from judgecal.stats.metrics import digits_of

_DRAWN = 12  # lines of the picture; the table has all
_NAMES = {
    "question word": ('"{}" questions', "{} ..."),
    "answer length": ("answers of {} words", "{} words"),
    "references": ("answers with {} references", "{} references"),
    "refusal": ("answers that refuse", "refusals"),
    "digits": ("answers with digits", "with digits"),
    "system": ("answers of {}", "{}"),
    "tag": ('answers tagged "{}"', "{}"),
}
"""Trait -> its items in a sentence, and at a line."""


def slice_name(entry: SliceEntry, *, short: bool = False) -> str:
    """Its items, to stand behind `on`, or at a line."""
    name = _NAMES[entry.trait][short].format(entry.value)
    return name.removesuffix("s") if (entry.trait, entry.value) == ("references", "1") else name


def standing_out(slices: SliceTable, scale: Scale) -> list[SliceEntry]:
    """The slices that stand out, the worst first."""

    def worse(entry: SliceEntry) -> float:
        more = (entry.error.value or 0.0) - entry.rest
        return abs(more) if scale.graded else more

    return sorted((entry for entry in slices.entries if entry.stands_out), key=worse, reverse=True)


def slice_facts(slices: SliceTable | None, scale: Scale) -> Iterator[Fact]:
    """The one that stands out most, if any does."""
    for entry in standing_out(slices, scale)[:1] if slices else ():
        if scale.graded:
            digits = digits_of("mae", scale)
            rest = f"{signed(entry.rest, digits)} elsewhere"
            what = f"verdict less label on {slice_name(entry)}; {rest}"
            yield Fact(signed(entry.error.value, digits), what)
        else:
            what = f"wrong on {slice_name(entry)}; {percent(entry.rest)} elsewhere"
            yield Fact(percent(entry.error.value), what)


def slices_section(slices: SliceTable | None, scale: Scale) -> Section | None:
    """One picture and its numbers; None without a slice."""
    if slices is None or not slices.entries:
        return None
    entries, digits = slices.entries, digits_of("mae", scale) if scale.graded else 0

    def line(entry: SliceEntry) -> str:
        return slice_name(entry, short=True)

    def wrong(error: Estimate) -> str:
        if scale.graded:
            return difference(error, digits)
        return f"{count(round((error.value or 0.0) * error.n))} of {count(error.n)}"

    def drawn(name: str, error: Estimate, *, strong: bool = False, show: str = "") -> Rung:
        value = error if scale.graded else in_points(error)
        return Rung(name, value, wrong(error), strong, hollow=not show, show=show)

    shown = sorted(entries, key=lambda entry: (not entry.stands_out, entry.p_value))[:_DRAWN]
    judge, found = entries[0].judge, standing_out(slices, scale)
    rows = [
        drawn(line(entry), entry.error, strong=entry.stands_out, show=f"{entry.mark}\nwrong:{judge}")
        for entry in shown
    ]
    rows.append(drawn("all", slices.whole))
    rows.sort(key=lambda row: -(row.value.value or 0.0))
    numbers = table(
        entries,
        {
            "answers": line,
            "verdict less label" if scale.graded else "wrong": lambda entry: (
                difference(entry.error, digits) if scale.graded else in_percent(entry.error)
            ),
            "others": lambda entry: signed(entry.rest, digits) if scale.graded else percent(entry.rest, 1),
            "n (questions)": lambda entry: f"{count(entry.n)} ({count(entry.n_groups)})",
            "p": lambda entry: p_value(entry.p_value),
            "stands out": (lambda entry: "yes" if entry.stands_out else "") if found else None,
        },
    )
    overall = slices.whole.value or 0.0
    axis = Axis("verdict less label", dashed=overall)
    if not scale.graded:
        axis = Axis("wrong verdicts, % of the answers", dashed=100.0 * overall, low=0.0)
    few = f" The {_DRAWN} of {len(entries):,} that differ most." * (len(entries) > _DRAWN)
    differ = "In bold: differs from all others (Holm)." if found else "No line is shown to differ."
    note = f"{judge} on the open answers; line: 95% interval by question; dashed: all. {differ}{few}"
    picture = interval_picture(rows, axis, numbers=numbers, note=note)
    return Section("slices", "Where does it fail?", "", [picture], card=True)
