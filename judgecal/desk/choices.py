"""What a rater may answer: a button and a key for each label, or a number; and the rubric."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from judgecal.errors import visible
from judgecal.goldset import Card, GoldSet
from judgecal.goldset.card import plain_label
from judgecal.scale import Label, Scale

_MOST_BUTTONS = 11
_FIFTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class Choice:
    """A button: the label as it is sent, its name, what the card says that it means, its key."""

    said: str
    name: str
    meaning: str = ""
    key: str = ""


def choices_of(card: Card) -> list[Choice]:
    """The buttons, lowest label first; yes stands before no."""
    scale, meanings = card.scale, _meanings(card)

    def choice(label: Label, key: str, name: str = "") -> Choice:
        said = str(plain_label(label))
        return Choice(said, visible(name or said), visible(meanings.get(label, "")), key)

    if scale.kind == "binary":
        return [choice(1.0, "1", "Yes"), choice(0.0, "0", "No")]
    if scale.kind == "nominal":
        return [
            choice(word, str(place) if place < 10 else "")
            for place, word in enumerate(scale.categories, start=1)
        ]
    labels = _grades(scale)
    if labels is None:
        anchored = sorted(float(label) for label in meanings)
        labels = (
            anchored
            if len(anchored) > 2
            else [_on_step(scale, scale.low + part * scale.span) for part in _FIFTHS]
        )
        return [
            choice(label, str(place) if place < 10 else "") for place, label in enumerate(labels, start=1)
        ]
    keys = {label: f"{label:g}" for label in labels if label in range(10)}
    if 10.0 in labels and 0.0 not in labels:
        keys[10.0] = "0"
    return [choice(label, keys.get(label, "")) for label in labels]


def typed_of(scale: Scale) -> dict[str, Any] | None:
    """The ends and the step of a number that is typed; None where the buttons are all there is."""
    if scale.kind == "nominal":
        return None if scale.categories else {"words": True}
    if not scale.graded or _grades(scale) is not None:
        return None
    return {"low": scale.low, "high": scale.high, "step": scale.step}


def _grades(scale: Scale) -> list[float] | None:
    """Every label of a short scale; None where there are too many for buttons."""
    if scale.kind == "percentage" or scale.step is None:
        return None
    n = round(scale.span / scale.step) + 1
    return [round(scale.low + place * scale.step, 9) for place in range(n)] if n <= _MOST_BUTTONS else None


def _on_step(scale: Scale, label: float) -> float:
    return label if scale.step is None else scale.low + round((label - scale.low) / scale.step) * scale.step


def _meanings(card: Card) -> dict[Label, str]:
    return {card.scale.read(label): meaning for label, meaning in card.anchors.items()}


@dataclass(frozen=True, slots=True)
class Rubric:
    """The raters' instructions; "" and None where the set has none."""

    text: str = ""
    sha256: str | None = None


def rubric_of(gold: GoldSet) -> Rubric:
    """The file that the card names, which lies in the set's folder."""
    if not gold.card.rubric:
        return Rubric()
    path = (gold.path / gold.card.rubric).resolve()
    if not path.is_relative_to(gold.path.resolve()) or not path.is_file():
        return Rubric()
    data = path.read_bytes()
    return Rubric(visible(data.decode("utf-8", "replace")), hashlib.sha256(data).hexdigest())
