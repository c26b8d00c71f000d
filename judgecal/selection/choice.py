"""Who is chosen: every judge measured on open items, held to the caps, and the cheapest shown good enough.

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

from judgecal.errors import refuse
from judgecal.experiment import Column, Entry, StoredExperiment, Table, entry
from judgecal.judges import JudgeName
from judgecal.models import EMBEDDED, ModelSpec
from judgecal.records import Item
from judgecal.stats.metrics import amount_of
from judgecal.stats.significance import MARGIN as MARGIN
from judgecal.stats.significance import OUT_OF_REACH
from judgecal.stats.simultaneous import Losses

_EPS = 1e-12
_OLLAMA = ("ollama", "ollama_chat")


@dataclass(frozen=True, slots=True)
class MeasuredJudge:
    """One judge as production would see it, measured on the items that it is chosen on."""

    column: Column  # its judgements, priced: a stored reply was free, a new one is not
    entry: Entry  # its line of the agreement table on those items
    repeats: int  # judgements of each item that it was asked for
    usd_per_1k: float | None  # cost of a thousand judgements; None where it is not known, which is never 0
    provider: str | None  # of its model; None for a recorded judge
    local: bool | None  # whether its model runs on this machine; None for a recorded judge
    free: bool = False  # a local judge or the embedded model, by its kind and not by its price

    @property
    def judge(self) -> str:
        """Its name."""
        return self.column.judge

    @property
    def rank(self) -> tuple[float, float]:
        """Cheapest first, then quickest; what is not known comes last."""
        p95_s = self.entry.latency_s.p95
        return (
            math.inf if self.usd_per_1k is None else self.usd_per_1k,
            math.inf if p95_s is None else p95_s,
        )


@dataclass(frozen=True, slots=True)
class Caps:
    """What a judge may be at most, and at least; None and empty ask for nothing. The unknown keeps no cap."""

    usd_per_1k: float | None = None  # dollars for a thousand judgements
    p95_s: float | None = None
    unscored: float | None = None  # share of judgements without a verdict, 0..1
    providers: tuple[str, ...] = ()
    local_only: bool = False  # only models that run on this machine
    allow_below_floor: bool = False  # also a judge not shown to beat the best constant, or on test does not
    allow_unconfirmed: bool = False  # also one that on test falls further than chance and the choice explain

    def check(self) -> None:
        """Refuse every cap that is no cap."""
        problems = [
            f"{option} must be 0 or more and finite, found {value:g}"
            for option, value in (("--max-usd-per-1k", self.usd_per_1k), ("--max-p95-s", self.p95_s))
            if value is not None and not 0.0 <= value < math.inf
        ]
        if self.unscored is not None and not 0.0 <= self.unscored <= 1.0:
            problems.append(f"--max-unscored is a share from 0 to 1, found {self.unscored:g}")
        refuse(problems)

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

    def over(self, judge: MeasuredJudge) -> str | None:
        """Why a judge is left out, every cap in one sentence; None where it is within them."""
        reasons, entry, provider = [], judge.entry, judge.provider
        for what, value, cap, unit in (
            ("cost", judge.usd_per_1k, self.usd_per_1k, "USD per 1,000 judgements"),
            ("p95 latency", entry.latency_s.p95, self.p95_s, "s"),
        ):
            if cap is not None and value is None:
                reasons.append(f"its {what} is not known, the cap is {cap:g} {unit}")
            elif cap is not None and value is not None and value > cap:
                reasons.append(f"its {what} is {value:.4g} {unit}, the cap is {cap:g}")
        if self.unscored is not None and entry.n_unscored > self.unscored * entry.n_expected:
            share = f"{entry.n_unscored} of {entry.n_expected} ({entry.n_unscored / entry.n_expected:.1%})"
            reasons.append(f"{share} judgements are unscored, the cap is {self.unscored:.1%}")
        if (self.providers or self.local_only) and provider is None:
            reasons.append("it was recorded, so its provider is not known")
        elif self.providers and provider not in self.providers:
            reasons.append(f"its provider is {provider}, allowed are {', '.join(self.providers)}")
        elif self.local_only and not judge.local:
            reasons.append(f"its model is called at {provider}, not on this machine")
        return "; ".join(reasons) or None


@dataclass(frozen=True, slots=True)
class Choice:
    """Who was taken."""

    judge: str
    within: tuple[str, ...]  # all shown to lose less than the margin against the truly best, cheapest first
    why: str
    # about how many more questions of train and dev would show that a judge that costs no more is good
    # enough; None where that is shown already, all others cost more, none came within the margin, or it is
    # out of reach
    more_questions: int | None = None
    nearest: str | None = None  # the judge that they would show it of

    @property
    def shown(self) -> bool:
        """Whether it is shown to lose less than the margin; else it has the best value, and no more."""
        return self.judge in self.within


def choose(judges: Sequence[MeasuredJudge], losses: Losses, *, margin: float, metric: str) -> Choice:
    """Take the cheapest of the judges that is shown to lose less than the margin against the best.

    Of equally cheap ones the quickest, then the better one, then by name: where neither cost nor latency is
    known, as of recorded judgements, nothing speaks for any but the best. Where none is shown to, the judge
    with the best value is taken (of equals the cheapest), and `why` says that it is no more than that.
    `losses` is made with the same margin, of these judges at least.
    """
    seen = {judge: math.inf if loss.loss is None else loss.loss for judge, loss in losses.by_judge.items()}
    ranked = sorted(judges, key=lambda judge: (*judge.rank, seen[judge.judge], judge.judge))
    names = [judge.judge for judge in ranked]
    if len(losses.by_judge) == 1:
        return Choice(names[0], tuple(names), "it is the only judge that may be chosen")
    allowed = amount_of(margin, metric)
    uppers = {judge: losses.by_judge[judge].upper for judge in names}
    within = tuple(judge for judge in names if (upper := uppers[judge]) is not None and upper < margin)
    least = min(seen[judge] for judge in names) + _EPS
    taken = within[0] if within else next(judge for judge in names if seen[judge] <= least)
    if seen[taken] > least:
        why = (
            f"it is the cheapest of the {len(within)} judges that are shown to lose less than {allowed} of "
            f"{in_words(metric)} against the best (it loses at most "
            f"{amount_of(uppers[taken] or 0.0, metric)})"
        )
        return Choice(taken, within, why)
    able = " that may be chosen" * (least > min(seen.values()) + _EPS)
    why = f"no judge{able} has a better {in_words(metric)} on these items"
    if not within:
        why += f", but it was not shown to lose less than the margin of {allowed} against the truly best"
    if losses.reason is not None:
        return Choice(taken, within, f"{why}: {losses.reason}")
    usd = next(judge.rank[0] for judge in ranked if judge.judge == taken)
    others = [judge for judge in ranked if judge.judge not in (taken, *within)]
    rivals, rival = [judge.judge for judge in others if judge.rank[0] < usd], "a cheaper one"
    if not rivals:  # those at the same cost, be it that none is known
        rivals, rival = (
            [judge.judge for judge in others if judge.rank[0] == usd],
            "another one at no higher cost",
        )
    if not rivals:
        return Choice(taken, within, f"{why}; none is cheaper")
    why += f"; cannot show that {rival} is good enough"
    needed = {judge: losses.questions_needed(judge, margin) for judge in rivals}
    known = {judge: n for judge, n in needed.items() if n is not None}
    if not known:
        lost = f"each loses {allowed} or more on them, so no number of questions can be planned"
        return Choice(taken, within, f"{why}: {lost}")
    nearest = min(known, key=lambda judge: known[judge])
    more = max(1, known[nearest] - losses.n_groups)
    if more > OUT_OF_REACH:
        far = f"that is out of reach, more than {OUT_OF_REACH:,} more questions"
        return Choice(taken, within, f"{why}: {far}")
    would = f"about {more:,} more question{'s' * (more > 1)} in train and dev would, for {nearest}"
    return Choice(taken, within, f"{why}: {would}, if it is as good as it looks", more, nearest)


def in_words(metric: str) -> str:
    """A metric in a sentence: those that lead are agreement with the labels, the others have their names."""
    return "agreement with the labels" if metric in ("macro_agreement", "accuracy") else metric


def open_items(stored: StoredExperiment, *, limit: int | None = None) -> tuple[Item, ...]:
    """The items that may choose: those of train and dev, in file order, the first `limit`."""
    return tuple(item for item in stored.items if stored.gold.split_of(item.group) != "test")[:limit]


def repeats_of(stored: StoredExperiment) -> int:
    """Judgements of each item by each judge: as many as were asked for, or as a recorded judge gave."""
    rows = (row.repeat for column in stored.columns[: stored.asked] for row in column.rows)
    return max([int(stored.experiment.config.get("repeats", 1)), 1 + max(rows, default=0)])


def measure(
    stored: StoredExperiment, table: Table, entries: Mapping[str, Entry] | None = None
) -> list[MeasuredJudge]:
    """Every judge that the experiment asked for, on the items of the table.

    A model is priced as the experiment's configuration says. A judge that calls nobody is its own provider,
    on this machine. `entries` are what is known of judges on these very items, and need not be measured
    again.
    """
    models = {str(judge["judge"]): judge.get("model") for judge in stored.experiment.config.get("judges", ())}
    measured = []
    for column in stored.columns[: stored.asked]:
        provider: str | None = column.kind if column.kind in ("local", "python") else None
        local, free = None if provider is None else True, is_free(column.judge)
        if model := models.get(column.judge):
            prices = {name: model.get(name) for name in ("input_usd_per_1m", "output_usd_per_1m")}
            spec = ModelSpec(column.judge, str(model["id"]), api_base=model.get("api_base"), **prices)
            column = dataclasses.replace(column, price=spec.cost_usd)
            provider, local, free = spec.provider, _is_local(spec), spec.embedded
        asked = table.of(column)
        line = (entries or {}).get(column.judge) or entry(asked, column)
        usd = 0.0 if free else line.usd_per_1k
        measured.append(MeasuredJudge(column, line, asked.repeats, usd, provider, local, free))
    return measured


def is_free(judge: str) -> bool:
    """Whether a judge costs nothing by its kind, recorded or called: a local one, or the embedded model's."""
    name = JudgeName.read(judge)
    return name is not None and (name.kind == "local" or name.model == EMBEDDED)


def _is_local(spec: ModelSpec) -> bool:
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
