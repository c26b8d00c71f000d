"""What a suite writes: which columns a measure fills under which naming, and what goes into them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from judgecal.experiment import whole_item
from judgecal.judges import Judge
from judgecal.judges.suite import Aggregate
from judgecal.records import ITEM_UNIT, Judgement
from judgecal.scale import Label, Scale
from judgecal.selection.lock import Lock
from judgecal.selection.pass_rates import PassRule
from judgecal.tables.formats import Kind

Naming = Literal["plain", "mosaic", "mlflow"]
NAMINGS: tuple[Naming, ...] = ("plain", "mosaic", "mlflow")
"""What `--columns` takes."""

# Who gave a value, in MLflow's words: columns of ours, by which `gold import --from mlflow` knows the judge.
_SOURCE = {"source_type": "{name}/source_type", "source_id": "{name}/source_id"}
# The part of a result -> the column that it fills; {column} is the suite's, {name} the judge's.
_COLUMNS: Mapping[tuple[Naming, Aggregate], Mapping[str, str]] = {
    ("mosaic", "rating"): {
        "rating": "{column}/rating",
        "rationale": "{column}/rationale",
        "error": "{column}/error_message",
    },
    ("mosaic", "precision"): {
        "rating": "{column}/ratings",
        "rationale": "{column}/rationales",
        "error": "{column}/error_messages",
        "share": "{column}/precision",
    },
    ("mosaic", "share"): {"share": "{column}", "error": "{column}/error_message"},
    ("mlflow", "rating"): {
        "rating": "{name}/value",
        "rationale": "{name}/rationale",
        "error": "{name}/error_message",
        "error_code": "{name}/error_code",
        **_SOURCE,
    },
    ("mlflow", "precision"): {
        "rating": "{name}/values",
        "rationale": "{name}/rationales",
        "error": "{name}/error_messages",
        "error_code": "{name}/error_codes",
        "share": "{name}/precision/value",
        **_SOURCE,
    },
    ("mlflow", "share"): {
        "share": "{name}/value",
        "error": "{name}/error_message",
        "error_code": "{name}/error_code",
        **_SOURCE,
    },
    ("plain", "rating"): {
        "verdict": "{name}_verdict",
        "passed": "{name}_passed",
        "rationale": "{name}_reasoning",
        "error": "{name}_error",
    },
    ("plain", "precision"): {
        "verdict": "{name}_verdicts",
        "rationale": "{name}_reasonings",
        "error": "{name}_errors",
        "share": "{name}_precision",
    },
    ("plain", "share"): {"share": "{name}_share", "error": "{name}_error"},
}
# What the verdicts of a lock have beside them under plain names, as those of a single lock.
_OF_LOCK = {
    "calibrated": "{name}_calibrated",
    "model_id": "{name}_model_id",
    "cost_usd": "{name}_cost_usd",
    "latency_s": "{name}_latency_s",
}
# The same for the numbers of a run.
_METRICS: Mapping[tuple[Naming, Aggregate], Mapping[str, str]] = {
    ("mosaic", "rating"): {"share": "{column}/rating/percentage", "average": "{column}/rating/average"},
    ("mosaic", "precision"): {"average": "{column}/precision/average"},
    ("mosaic", "share"): {"average": "{column}/average"},
    ("mlflow", "rating"): {"average": "{name}/mean"},
    ("mlflow", "precision"): {"average": "{name}/precision/mean"},
    ("mlflow", "share"): {"average": "{name}/mean"},
    ("plain", "rating"): {"share": "{name}_passed", "average": "{name}_verdict"},
    ("plain", "precision"): {"average": "{name}_precision"},
    ("plain", "share"): {"average": "{name}_share"},
}
_WORDS = {True: "yes", False: "no"}


class Said(NamedTuple):
    """What a judge said of an item or of one chunk; `error` is `kind: message` where there is no verdict,
    `row` the judgement where the judge was asked.
    """

    verdict: Label | None
    rationale: str = ""
    error: str | None = None
    row: Judgement | None = None


def own_rule(scale: Scale) -> PassRule:
    """Which verdicts of an unlocked judge pass: yes on a binary scale, and none where nobody has set a
    mark."""
    return PassRule(scale, scale, scale, 0.5 if scale.kind == "binary" else scale.pass_at)


@dataclass(frozen=True, slots=True)
class Member:
    """A judge of a run: its name in the suite, and which of its verdicts on whole items pass. `lock`,
    `lock_path`: None without.
    """

    name: str
    judge: Judge
    rule: PassRule
    lock: Lock | None = None
    lock_path: str | None = None

    @property
    def unit_rule(self) -> PassRule:
        """The rule for a verdict on one chunk, which the lock's map, one of whole items, is not for."""
        if self.lock is None or self.judge.unit == ITEM_UNIT:
            return self.rule
        return PassRule.of(self.lock.gold, self.judge.scale)

    def label(self, verdict: Label | None) -> Label | None:
        """A verdict on the people's scale where the lock has a map to it, else as it is."""
        mapped = self.rule.calibrated(verdict) if self.judge.unit == ITEM_UNIT else None
        return verdict if mapped is None else mapped


@dataclass(frozen=True, slots=True)
class Measure:
    """One place in the table and the judges that fill it, who stand in for each other; named as the first of
    them."""

    column: str
    aggregate: Aggregate
    members: tuple[Member, ...]

    @property
    def name(self) -> str:
        """The first judge's."""
        return self.members[0].name

    @property
    def inputs(self) -> tuple[str, ...]:
        """What its judges ask for, by name."""
        return tuple(dict.fromkeys(name for member in self.members for name in member.judge.inputs))

    @property
    def locked(self) -> bool:
        """Whether one of its judges has a lock."""
        return any(member.lock is not None for member in self.members)

    @property
    def calibrates(self) -> bool:
        """Whether locks bring all its verdicts to the people's scale, by a map or because both sides say yes
        or no."""
        return self.aggregate != "precision" and all(
            member.lock is not None and member.rule.calibrated(member.judge.scale.low) is not None
            for member in self.members
        )

    @property
    def rated(self) -> bool:
        """Whether its ratings are yes and no: its verdicts pass or fail."""
        return all(member.rule.mark is not None for member in self.members)

    def problems(self) -> list[str]:
        """Why these judges cannot fill this place together."""
        units = {member.judge.unit for member in self.members}
        kinds = {str(member.judge.scale) for member in self.members}
        names = ", ".join(member.name for member in self.members)
        found = []
        if len(units) > 1 or len(kinds) > 1:
            found.append(
                f"{names} fill one column, and differ in unit or scale ({', '.join(sorted(units | kinds))})"
            )
        if (self.aggregate == "precision") != ("chunk" in units):
            found.append(
                f"{names}: aggregate {self.aggregate!r} fits no judge of {' and '.join(sorted(units))}"
            )
        if self.aggregate == "share" and "nominal" in kinds:
            found.append(f"{names}: aggregate 'share' needs numbers, and its verdicts are words")
        return found

    def columns(self, naming: Naming) -> dict[str, str]:
        """The part of a result -> its column."""
        return {part: self._filled(name) for part, name in self._parts(naming).items()}

    def _parts(self, naming: Naming) -> Mapping[str, str]:
        parts = _COLUMNS[naming, self.aggregate]
        return {**parts, **_OF_LOCK} if self.locked and naming == "plain" else parts

    def metrics(self, naming: Naming) -> dict[str, str]:
        """`share` and `average` -> under which name a run gives them."""
        return {part: self._filled(name) for part, name in _METRICS[naming, self.aggregate].items()}

    def _filled(self, name: str) -> str:
        return name.replace("{column}", self.column).replace("{name}", self.name)

    def kind(self, part: str) -> Kind:
        """What the values of a part's column are."""
        if part in ("share", "calibrated", "cost_usd", "latency_s"):
            return "number"
        if part == "model_id":
            return "text"
        if part == "passed":
            return "flag"
        if part in _SOURCE:
            return "text"
        words = part in ("rationale", "error", "error_code") or not self.members[0].judge.scale.numeric
        text = words or (part == "rating" and self.rated)
        many: Mapping[bool, Kind] = {True: "texts", False: "numbers"}
        one: Mapping[bool, Kind] = {True: "text", False: "number"}
        return (many if self.aggregate == "precision" else one)[text]

    def share(self, member: Member, said: Iterable[Said], *, raw: bool = False) -> float | None:
        """The share of an item, 0..1: of its scored chunks that pass, or its verdict's place on its scale.

        `raw`: before the lock's map.
        """
        verdicts = [one.verdict for one in said if one.verdict is not None]
        if not verdicts:
            return None
        if self.aggregate == "share":
            mapped = None if raw or member.lock is None else member.rule.calibrated(verdicts[0])
            label, scale = (
                (verdicts[0], member.judge.scale) if mapped is None else (mapped, member.rule.people)
            )
            return (float(label) - scale.low) / scale.span
        passes = member.unit_rule.raw_passes if raw else member.unit_rule.passes
        passed = [one for one in map(passes, verdicts) if one is not None]
        return sum(passed) / len(passed) if passed else None

    def values(self, member: Member, said: Sequence[Said], naming: Naming) -> list[Any]:
        """What goes into the columns of one row, in their order."""
        return [self._value(part, member, said) for part in self._parts(naming)]

    def _value(self, part: str, member: Member, said: Sequence[Said]) -> Any:
        if part == "share":
            return self.share(member, said)
        if part == "source_type":
            return "CODE" if member.judge.model is None else "LLM_JUDGE"
        if part == "source_id":
            return member.judge.name
        if part in _OF_LOCK:
            return self._of_lock(part, member, [one.row for one in said if one.row is not None])
        values = [self._one(part, member, one) for one in said]
        return values if self.aggregate == "precision" else values[0]

    def _one(self, part: str, member: Member, said: Said) -> Any:
        if part == "rationale":
            return said.rationale or None
        if part == "error":
            return said.error
        if part == "error_code":
            return None if said.error is None else said.error.partition(":")[0]
        passed = member.unit_rule.passes(said.verdict)
        if part == "passed":
            return passed
        if part == "verdict":
            return said.verdict
        return _WORDS[passed] if self.rated and passed is not None else member.label(said.verdict)

    def _of_lock(self, part: str, member: Member, rows: Sequence[Judgement]) -> Any:
        """As a single lock has it: of a judge of chunks that of the whole item."""
        if not rows:
            return None
        row = whole_item(rows)
        return member.rule.calibrated(row.verdict) if part == "calibrated" else getattr(row, part)
