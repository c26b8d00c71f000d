"""What an import would come to: the set is made in a folder of its own, looked at, and thrown away.

So what `--dry-run` says of a file cannot differ from what the import does.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

from judgecal.errors import refuse
from judgecal.goldset.card import plain_label, read_card
from judgecal.goldset.gold_set import CARD, ITEMS, JUDGEMENTS, RATINGS
from judgecal.goldset.imports import Imported
from judgecal.goldset.labels import read_verdict, verdict_scale
from judgecal.goldset.write import name_problems
from judgecal.records import Result
from judgecal.scale import Label, Scale
from judgecal.tables.columns import GOLD
from judgecal.tables.table import record_row
from judgecal.workspace import Workspace

ScaleFrom = Literal["declared", "labels", "assumed"]
"""Who says what the scale is: an option, the labels, or nobody, as there is no label yet."""
_FEW = 7  # different labels are each told with their share; more as quantiles
_SHOWN = 160  # characters of a text
_QUANTILES = {"min": 0.0, "p25": 0.25, "median": 0.5, "p75": 0.75, "max": 1.0}


@dataclass(frozen=True, slots=True)
class LabelSpread:
    """One rater's labels: the share of each where they are few or words, else quantiles; `n` counts those who
    could not tell too, who are in no share.
    """

    n: int
    n_cannot_tell: int
    shares: Mapping[str, float]
    quantiles: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RecordedVerdicts:
    """One judge's rows: how many, how many hold no verdict, and the scale that the others are on."""

    n: int
    n_unscored: int
    scale: str


@dataclass(frozen=True, slots=True)
class Understood(Result):
    """How a file was understood; nothing has been written.

    The counts are as those of `Imported`. `scale_from`: who says so. `columns`: a table's columns and what
    each is taken as. `labels`, `verdicts`: by rater and by judge. `first_item`: the first one outside test,
    its texts shortened; None where there is none.
    """

    set_: str
    tool: str | None
    scale: str
    scale_from: ScaleFrom
    n_rows: int
    n_items: int
    n_groups: int
    n_ratings: int
    raters: Mapping[str, int]
    judges: Mapping[str, int]
    skipped: Mapping[str, int]
    columns: Mapping[str, str]
    left_out: tuple[str, ...]
    labels: Mapping[str, LabelSpread]
    verdicts: Mapping[str, RecordedVerdicts]
    first_item: Mapping[str, str] | None
    notes: tuple[str, ...]


def understand(
    run: Callable[[Workspace], Imported],
    *,
    name: str,
    workspace: Workspace,
    replace: bool,
    columns: Mapping[str, str],
    declared: bool,
) -> Understood:
    """Run an import in a workspace that is thrown away.

    Args:
        run: the import, into the workspace that it is given.
        columns: what the options say of the columns.
        declared: whether the options say the scale.
    """
    workspace.require_writable("gold import")
    refuse(name_problems(name, workspace=workspace, replace=replace))
    with tempfile.TemporaryDirectory(prefix="judgecal-") as root:
        scratch = Workspace(Path(root), Path(root) / "experiments")
        place, old = scratch.gold / name, workspace.gold / name / CARD
        if old.is_file():
            place.mkdir(parents=True)
            shutil.copyfile(old, place / CARD)  # what a replaced card keeps: splits, raters
        result = run(scratch)
        card = read_card(place / CARD)
        outside_test = (
            row
            for row in _rows(place / ITEMS)
            if card.splits.of(str(row.get("group") or row.get("question") or row["item_id"])) != "test"
        )
        names = {field.name for field in fields(Understood)} & {field.name for field in fields(result)}
        same = {name: getattr(result, name) for name in names}
        return Understood(
            **same | {"scale": str(card.scale)},
            scale_from="declared" if declared else "labels" if result.n_ratings else "assumed",
            columns=columns,
            labels=_spreads(_rows(place / RATINGS)),
            verdicts=_recorded(_rows(place / JUDGEMENTS), card.scale),
            first_item=next(map(_shortened, outside_test), None),
        )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if path.is_file():
        with path.open(encoding="utf-8", newline="\n") as lines:
            yield from map(json.loads, lines)


def _spreads(rows: Iterable[Mapping[str, Any]]) -> dict[str, LabelSpread]:
    counts: dict[str, Counter[Label | None]] = {}
    for row in rows:
        counts.setdefault(row["rater"], Counter())[row.get("label")] += 1
    ordered = sorted(counts, key=lambda rater: (rater != GOLD, rater))
    return {rater: _spread(counts[rater]) for rater in ordered}


def _spread(counts: Counter[Label | None]) -> LabelSpread:
    """Of one rater's labels, by their counts; None is who could not tell."""
    n, unknown = counts.total(), counts.pop(None, 0)
    labels = sorted(
        (label for label in counts if label is not None), key=lambda one: (isinstance(one, str), one)
    )
    known = counts.total()
    if len(labels) <= _FEW or isinstance(labels[-1], str):
        return LabelSpread(
            n, unknown, {str(plain_label(label)): counts[label] / known for label in labels}, {}
        )
    up_to = list(accumulate(counts[label] for label in labels))
    quantiles = {
        name: float(labels[bisect_right(up_to, at * (known - 1))]) for name, at in _QUANTILES.items()
    }
    return LabelSpread(n, unknown, {}, quantiles)


def _recorded(rows: Iterable[Mapping[str, Any]], people: Scale) -> dict[str, RecordedVerdicts]:
    by_judge: dict[str, list[str]] = {}
    for row in rows:
        cell = record_row(0, {"verdict": row.get("verdict")}).cells["verdict"]
        by_judge.setdefault(str(row["judge"]), []).append(cell)
    recorded: dict[str, RecordedVerdicts] = {}
    for judge, cells in by_judge.items():
        scale = verdict_scale(people, cells)
        n_unscored = sum(read_verdict(scale, cell)[0] is None for cell in cells)
        shown = "fractions of 1" if scale.from_fraction else str(scale)
        recorded[judge] = RecordedVerdicts(len(cells), n_unscored, shown)
    return recorded


def _shortened(row: Mapping[str, Any]) -> dict[str, str]:

    def cut(value: Any) -> str:
        text = " ".join(str(value).split())
        return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."

    texts: dict[str, str] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            texts |= {f"{name}: {inner}": cut(text) for inner, text in value.items()}
            continue
        parts = value if isinstance(value, list) else [value]
        first = parts[0] if parts else ""
        text = first.get("text", first.get("content", "")) if isinstance(first, dict) else first
        more = f" (and {len(parts) - 1} more)" if len(parts) > 1 else ""
        texts[name] = cut(text) + more
    return texts
