"""Who is chosen: every judge measured on open items, held to the caps, and the cheapest that is shown good
enough.

"Not significantly different" is no reason to take the cheap one: with few items nobody differs significantly
from anybody, and the cheapest is often the worst. So a loss must be shown to be small, and where it cannot
be, the best judge is taken and said to be taken for want of questions: it was not shown to be good enough.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import math
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgecal.errors import InputError
from judgecal.experiment import Column, Entry, StoredExperiment, Table, entry
from judgecal.judges import JudgeKind, JudgeName
from judgecal.models import EMBEDDED, ModelSpec
from judgecal.records import Item
from judgecal.stats.metrics import amount_of
from judgecal.stats.significance import MARGIN as MARGIN
from judgecal.stats.significance import OUT_OF_REACH
from judgecal.stats.simultaneous import Losses

_EPS = 1e-12
_OLLAMA = ("ollama", "ollama_chat")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One judge as production would see it, measured on the items that it is chosen on."""

    judge: str
    n_expected: int
    n_unscored: int
    usd_per_1k: float | None  # cost of a thousand judgements; None where it is not known, which is never 0
    p95_s: float | None  # seconds within which 95% of the calls came back; None where none was timed
    provider: str | None  # of its model; None for a recorded judge
    local: bool | None  # whether its model runs on this machine; None for a recorded judge
    kind: JudgeKind = "recorded"
    free: bool = False  # a local judge or the embedded model, by its kind and not by its price

    @property
    def rank(self) -> tuple[float, float]:
        """Cheapest first, then quickest; what is not known comes last."""
        unknown = math.inf
        return (
            unknown if self.usd_per_1k is None else self.usd_per_1k,
            unknown if self.p95_s is None else self.p95_s,
        )


@dataclass(frozen=True, slots=True)
class Caps:
    """What a judge may be at most, and at least; None and empty ask for nothing. What is not known keeps no
    cap."""

    usd_per_1k: float | None = None  # dollars for a thousand judgements
    p95_s: float | None = None
    unscored: float | None = None  # share of judgements without a verdict, 0..1
    providers: tuple[str, ...] = ()
    local_only: bool = False  # only models that run on this machine
    allow_below_floor: bool = (
        False  # also a judge that is not shown to beat the best constant, or on test does not
    )
    allow_unconfirmed: bool = False  # also one that on test falls further than chance and the choice explain

    def check(self) -> None:
        """Raises: InputError: lists every cap that is no cap."""
        problems = [
            f"{option} must be 0 or more and finite, found {value:g}"
            for option, value in (("--max-usd-per-1k", self.usd_per_1k), ("--max-p95-s", self.p95_s))
            if value is not None and not 0.0 <= value < math.inf
        ]
        if self.unscored is not None and not 0.0 <= self.unscored <= 1.0:
            problems.append(f"--max-unscored is a share from 0 to 1, found {self.unscored:g}")
        if problems:
            raise InputError(problems)

    def config(self) -> dict[str, Any]:
        """What a configuration says of them."""
        return {
            "max_usd_per_1k": self.usd_per_1k,
            "max_p95_s": self.p95_s,
            "max_unscored": self.unscored,
            "allow_provider": sorted(self.providers),
            "local_only": self.local_only,
            "allow_below_floor": self.allow_below_floor,
            **({"allow_unconfirmed": True} if self.allow_unconfirmed else {}),
        }

    def over(self, one: Candidate) -> str | None:
        """Why a judge is left out, every cap in one sentence; None where it is within them."""
        found = [
            _above("cost", one.usd_per_1k, self.usd_per_1k, "USD per 1,000 judgements"),
            _above("p95 latency", one.p95_s, self.p95_s, "s"),
            self._unscored(one),
            self._provider(one),
        ]
        return "; ".join(why for why in found if why) or None

    def _unscored(self, one: Candidate) -> str | None:
        if self.unscored is None or one.n_unscored <= self.unscored * one.n_expected:
            return None
        share = f"{one.n_unscored} of {one.n_expected} ({one.n_unscored / one.n_expected:.1%})"
        return f"{share} judgements are unscored, the cap is {self.unscored:.1%}"

    def _provider(self, one: Candidate) -> str | None:
        if (self.providers or self.local_only) and one.provider is None:
            return "it was recorded, so its provider is not known"
        if self.providers and one.provider not in self.providers:
            return f"its provider is {one.provider}, allowed are {', '.join(self.providers)}"
        if self.local_only and not one.local:
            return f"its model is called at {one.provider}, not on this machine"
        return None


def _above(what: str, value: float | None, cap: float | None, unit: str) -> str | None:
    if cap is None:
        return None
    if value is None:
        return f"its {what} is not known, the cap is {cap:g} {unit}"
    return f"its {what} is {value:.4g} {unit}, the cap is {cap:g}" if value > cap else None


@dataclass(frozen=True, slots=True)
class Choice:
    """Who was taken."""

    judge: str
    within: tuple[
        str, ...
    ]  # all that are shown to lose less than the margin against the truly best, cheapest first
    why: str
    # about how many more questions of train and dev would show that a judge that costs no more is good
    # enough; None where that is shown already, all others cost more, none came within the margin, or it is
    # out of reach
    more_questions: int | None = None
    nearest: str | None = None  # the judge that they would show it of

    @property
    def shown(self) -> bool:
        """Whether the judge is shown to lose less than the margin; else it has the best value, and no
        more."""
        return self.judge in self.within


def choose(candidates: Sequence[Candidate], losses: Losses, *, margin: float, metric: str) -> Choice:
    """Take the cheapest of the candidates that is shown to lose less than the margin against the best.

    Of equally cheap ones the quickest, then the better one, then by name: where neither cost nor latency is
    known, as of recorded judgements, nothing speaks for any but the best. Where none is shown to, the judge
    with the best value is taken (of equals the cheapest), and `why` says that it is no more than that.
    `losses` is made with the same margin, of the candidates at least.
    """
    seen = {judge: math.inf if found.loss is None else found.loss for judge, found in losses.by_judge.items()}
    ranked = sorted(candidates, key=lambda one: (*one.rank, seen[one.judge], one.judge))
    names = [one.judge for one in ranked]
    if len(losses.by_judge) == 1:
        return Choice(names[0], tuple(names), "it is the only judge that may be chosen")
    allowed = amount_of(margin, metric)
    uppers = {judge: losses.by_judge[judge].upper for judge in names}
    within = tuple(judge for judge in names if (upper := uppers[judge]) is not None and upper < margin)
    least = min(seen[judge] for judge in names) + _EPS
    taken = within[0] if within else next(judge for judge in names if seen[judge] <= least)
    if seen[taken] > least:
        why = (
            f"it is the cheapest of the {len(within)} judges that are shown to lose less than "
            f"{allowed} of {in_words(metric)} against the best (it loses at most "
            f"{amount_of(uppers[taken] or 0.0, metric)})"
        )
        return Choice(taken, within, why)
    able = " that may be chosen" * (least > min(seen.values()) + _EPS)
    why = f"no judge{able} has a better {in_words(metric)} on these items"
    if not within:
        why += f", but it was not shown to lose less than the margin of {allowed} against the truly best"
    if losses.reason is not None:
        return Choice(taken, within, f"{why}: {losses.reason}")
    usd = next(one.rank[0] for one in ranked if one.judge == taken)
    others = [one for one in ranked if one.judge not in (taken, *within)]
    rivals, rival = [one.judge for one in others if one.rank[0] < usd], "a cheaper one"
    if not rivals:  # those at the same cost, be it that none is known
        rivals, rival = [one.judge for one in others if one.rank[0] == usd], "another one at no higher cost"
    if not rivals:
        return Choice(taken, within, f"{why}; none is cheaper")
    unclear = Choice(taken, within, f"{why}; cannot show that {rival} is good enough")
    return _planned(unclear, rivals, losses, margin=margin, metric=metric)


def in_words(metric: str) -> str:
    """A metric in a sentence: those that lead are agreement with the labels, the others have their names."""
    return "agreement with the labels" if metric in ("macro_agreement", "accuracy") else metric


def _planned(choice: Choice, rivals: Sequence[str], losses: Losses, *, margin: float, metric: str) -> Choice:
    """The choice with what more questions would do for the rivals."""
    needed = {judge: losses.questions_needed(judge, margin) for judge in rivals}
    known = {judge: n for judge, n in needed.items() if n is not None}
    if not known:
        lost = f"each loses {amount_of(margin, metric)} or more on them, so no number of questions can be planned"
        return dataclasses.replace(choice, why=f"{choice.why}: {lost}")
    nearest = min(known, key=lambda judge: known[judge])
    more = max(1, known[nearest] - losses.n_groups)
    if more > OUT_OF_REACH:
        far = f"that is out of reach, more than {OUT_OF_REACH:,} more questions"
        return dataclasses.replace(choice, why=f"{choice.why}: {far}")
    would = f"about {more:,} more question{'s' * (more > 1)} in train and dev would, for {nearest}"
    why = f"{choice.why}: {would}, if it is as good as it looks"
    return dataclasses.replace(choice, why=why, more_questions=more, nearest=nearest)


@dataclass(frozen=True, slots=True)
class MeasuredJudge:
    """One judge: its judgements, its entry of the agreement table on open items, and what the caps ask about.

    `repeats` are the judgements of each item that it was asked for.
    """

    column: Column
    entry: Entry
    candidate: Candidate
    repeats: int


def open_items(stored: StoredExperiment, *, limit: int | None = None) -> tuple[Item, ...]:
    """The items of an experiment that may choose: those of train and dev, in file order, the first
    `limit`."""
    chosen = [item for item in stored.items if stored.gold.split_of(item.group) != "test"]
    return tuple(chosen[:limit])


def repeats_of(stored: StoredExperiment) -> int:
    """Judgements of each item by each judge: as many as were asked for, or as a recorded judge gave."""
    rows = (row.repeat for column in stored.columns[: stored.asked] for row in column.rows)
    return max([int(stored.experiment.config.get("repeats", 1)), 1 + max(rows, default=0)])


def measure(stored: StoredExperiment, table: Table) -> list[MeasuredJudge]:
    """Every judge that the experiment asked for, on the items of the table."""
    models = {str(one["judge"]): one.get("model", {}) for one in stored.experiment.config.get("judges", ())}
    return [_measured(column, models.get(column.judge), table) for column in stored.columns[: stored.asked]]


def _measured(column: Column, model: Mapping[str, Any] | None, table: Table) -> MeasuredJudge:
    """A model is priced as the experiment's configuration says: a stored reply was free, a new one is not.

    A judge that calls nobody is its own provider, on this machine.
    """
    provider = column.kind if column.kind in ("local", "python") else None
    if model:
        spec = ModelSpec(
            column.judge,
            str(model["id"]),
            api_base=model.get("api_base"),
            input_usd_per_1m=model.get("input_usd_per_1m"),
            output_usd_per_1m=model.get("output_usd_per_1m"),
        )
        column = dataclasses.replace(column, price=spec.cost_usd)
    asked = table.of(column)
    found = entry(asked, column)
    free = spec.embedded if model else is_free(column.judge)
    candidate = Candidate(
        judge=column.judge,
        n_expected=found.n_expected,
        n_unscored=found.n_unscored,
        usd_per_1k=0.0 if free else found.usd_per_1k,
        p95_s=found.latency_s.p95,
        provider=spec.provider if model else provider,
        local=_local(spec) if model else (None if provider is None else True),
        kind=column.kind,
        free=free,
    )
    return MeasuredJudge(column, found, candidate, asked.repeats)


def is_free(judge: str) -> bool:
    """Whether a judge costs nothing by its kind, recorded or called: a local one, or one of the embedded
    model."""
    name = JudgeName.read(judge)
    return name is not None and (name.kind == "local" or name.model == EMBEDDED)


def _local(spec: ModelSpec) -> bool:
    """Whether texts stay on this machine: the embedded model, or an endpoint of its own on the loopback."""
    if spec.embedded:
        return True
    if spec.api_base is None:
        return spec.provider in _OLLAMA
    host = urllib.parse.urlsplit(spec.api_base).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
