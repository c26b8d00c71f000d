"""How recorded verdicts are written: on the people's scale, as yes and no, as percentages, or as fractions of
1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from judgecal.goldset.reading import percent
from judgecal.goldset.scale_fit import fitting_scale, narrow_labels
from judgecal.records import Failure
from judgecal.scale import Label, Scale

_FRACTIONS = 10  # verdicts of 0 and 1 alone; fewer may be so by chance


def read_verdict(scale: Scale, text: str) -> tuple[Label | None, Failure | None]:
    """A recorded verdict, or why it is none of the scale."""
    if not text.strip():
        return None, Failure("parse", "no verdict was recorded")
    try:
        verdict = scale.read(text)
        return (percent(verdict) if scale.from_fraction and isinstance(verdict, float) else verdict), None
    except ValueError as error:
        return None, Failure("parse", str(error))


def judged_twice(judge: str, item_id: str, first: str) -> str:
    """What to say of a second row of one judge, item and repeat; `first`: where the other stands."""
    return (
        f"{judge} judged item {item_id} in {first} already: delete one row, or tell them apart by a column repeat "
        "(0, 1, ...)"
    )


def verdict_scale(people: Scale, cells: Iterable[str]) -> Scale:
    """How one judge's verdicts are to be read, told by what they are.

    On the people's scale (grades may have verdicts between them), or where more of them can be read so as yes
    and no or as percentages; of the latter, where all lie in a small part of them (1 to 10), on the scale
    that fits. All of 0..1 are fractions of 1 where the people's scale does not hold them, holds them as a
    small part of it only, or counts in percent.
    """
    # The steps of a points scale are those of people's labels.
    own = replace(people, step=None) if people.kind == "points" else people
    if not people.numeric:
        return own
    written = [cell.strip() for cell in cells if cell.strip()]
    between = [Scale("points", people.low, people.high)] if people.kind == "ordinal" else []
    forms = (own, *between, Scale.parse("binary"), Scale.parse("percentage"))
    readable = {one: _readable(one, written) for one in forms}
    scale = max(readable, key=lambda one: readable[one])  # of equals the first
    fraction = Scale.parse("fraction")
    shares = [read_verdict(fraction, cell)[0] for cell in written]
    if not shares or None in shares:
        return _fitting(scale, written)
    inner = any(share not in (0.0, 100.0) for share in shares)
    if not inner and (len(shares) < _FRACTIONS or people.kind in ("binary", "percentage")):
        return scale  # 0 and 1 alone may be labels as they are
    verdicts = [float(cell) for cell in written]
    holds = scale is own and own.kind != "percentage" and readable[own] == len(written)
    return scale if holds and not (inner and narrow_labels(verdicts, own)) else fraction


def _fitting(scale: Scale, cells: Sequence[str]) -> Scale:
    """The scale itself, or where percentages would be verdicts of 1 to 10 the one that these are on."""
    verdicts = [verdict for cell in cells if isinstance(verdict := read_verdict(scale, cell)[0], float)]
    if (
        scale.kind != "percentage"
        or any(cell.endswith("%") for cell in cells)
        or not narrow_labels(verdicts, scale)
    ):
        return scale
    return Scale.parse(fitting_scale(verdicts))


def _readable(scale: Scale, cells: Sequence[str]) -> int:
    return sum(read_verdict(scale, cell)[0] is not None for cell in cells)
