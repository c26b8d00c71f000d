"""The label cells of a filled sheet: `85`, `85%`, `82,5` as a German Excel writes it, an apostrophe in front."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from judgecal.records import Rating
from judgecal.scale import Label, Scale
from judgecal.tables import undo

__all__ = ["read_label", "slipped_notes"]

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d{1,2}(?:\s*%)?", re.ASCII)


def read_label(cell: str, scale: Scale) -> Label:
    """One label.

    Raises:
        ValueError: it is no label of the scale, or lies between two of its steps.
    """
    text = undo(cell).strip()
    if scale.numeric and _DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    label = scale.read(text)
    if scale.step is not None and scale.numeric:
        steps = (float(label) - scale.low) / scale.step
        if abs(steps - round(steps)) > 1e-6:
            raise ValueError(f"{label:g} lies between the steps of {scale.step:g}")
    return label


def slipped_notes(ratings: Iterable[Rating], scale: Scale) -> list[str]:
    """Raters all of whose labels lie in 0..1 of a percentage, fractions among them: meant as parts of one, likely."""
    if scale.kind != "percentage":
        return []
    given: defaultdict[str, list[float]] = defaultdict(list)
    for rating in ratings:
        given[rating.rater].append(float(rating.label))
    return [
        f"{rater!r} gave no label above 1 on a scale of 0..100: were they meant as fractions? Then mend the sheet and "
        "import it with --replace"
        for rater, labels in given.items()
        if max(labels) <= 1.0 and any(label % 1.0 for label in labels)
    ]
