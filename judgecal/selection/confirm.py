"""The one confirmation on test, and the lock: verdicts, noise, fitted threshold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from judgecal.engine.budget import Budget
from judgecal.engine.log import now
from judgecal.engine.run import RunOptions
from judgecal.errors import notice
from judgecal.experiment.agreement import constant_entry
from judgecal.experiment.agreement_table import AgreementTable, Verdicts, as_lists
from judgecal.experiment.judgements import item_scale
from judgecal.experiment.looks import Look
from judgecal.experiment.people import tied_items
from judgecal.experiment.trials import open_journal, run_trials
from judgecal.judges.protocol import Judge
from judgecal.probes.result import Footing, locked_probes, stored_probes
from judgecal.records import RETRIED_ON_RESUME, Estimate, Judgement
from judgecal.scale import Label
from judgecal.selection.decision import Caps, MeasuredJudge, in_words
from judgecal.selection.lock import Lock, LockedGold, LockedJudge, Noise, model_ids, versions
from judgecal.stats import Calibration, leading_metric, metric_facts
from judgecal.stats.confirmation import Held, fall_between
from judgecal.stats.reliability import repeatability
from judgecal.stats.sample import Floats
from judgecal.workspace import Workspace

NOISE_CALLS = 3
"""Calls of each locked item, where not said otherwise."""
NOISE_FILE = "noise.jsonl"
"""The journal of those calls, in the folder of the selection."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What test says of a judge."""

    look: Look  # where this stands among the decisions on test
    # the test items, at the level of the look
    table: AgreementTable
    column: Verdicts  # its judgements over test and the items that it was chosen on
    estimates: Mapping[str, Estimate]  # METRIC -> Estimate, an unscored item counted as wrong
    complete: Mapping[str, Estimate]  # the same over the scored items alone
    calibration: Calibration | None  # its map, fitted on train and dev
    calibrated: Mapping[str, Estimate]  # as `estimates`, what test says through the map

    @classmethod
    def from_table(cls, look: Look, table: AgreementTable, column: Verdicts) -> Confirmed:
        """Make Confirmed from a Look, an AgreementTable of test items and a judge's Verdicts on them."""
        calibration, agreements = calibrate(table, column), table.agreements(column)
        through = table.through(calibration, column)
        return cls(look, table, column, agreements["as_wrong"], agreements["agreement"], calibration, through)

    @property
    def n_lost(self) -> int:
        """The number of calls lost on the wire or at the budget, which the same command makes again."""
        return sum(map(is_lost, self.column.rows))

    def decided_by(self, metric: str) -> Estimate:
        """Return the Estimate on test of the metric so named, through the map where the metric asks so."""
        through = self.calibrated if metric_facts(metric).calibrated else {}
        return through.get(metric, self.estimates[metric])


def is_lost(row: Judgement) -> bool:
    """Whether a call ended on the wire or at the budget: the same command makes it again."""
    return row.error is not None and row.error.kind in RETRIED_ON_RESUME


def calibrate(test: AgreementTable, column: Verdicts) -> Calibration | None:
    """Fit a Calibration on train and dev, given an AgreementTable of test and a judge's Verdicts; or None."""
    gold, judged = test.gold, {row.item_id for row in column.rows}
    items = tuple(
        item
        for item in gold.items
        if item.item_id in judged and item.item_id in gold.labels and gold.split_of(item.group) != "test"
    )
    table = replace(test, items=items)
    return table.calibration(column, fitted_on=f"train and dev of {gold.name}")


@dataclass(frozen=True, slots=True)
class Upheld:
    """Whether test upholds the choice."""

    refused: str | None  # why no lock is written; None where one may be
    doubt: str | None  # why test does not confirm the judge, lock or no lock; None where it does


def check_choice(
    chosen: MeasuredJudge,
    confirmed: Confirmed,
    *,
    chosen_on: AgreementTable,
    metric: str,
    n_judges: int,
    caps: Caps,
) -> Upheld:
    """Return Upheld: MeasuredJudge, Confirmed, AgreementTable that chose, metric, n_judges and Caps."""
    problems, test = [], confirmed.table

    def figure(value: float, by: str) -> str:
        return f"{100.0 * value:.1f}%" if in_words(by) != by else f"{value:.3g}"

    leading = leading_metric(chosen_on.gold.scale)
    floors = constant_entry(test, [metric, leading]).as_wrong
    # of a correlation a constant has none
    at = metric if floors[metric].value is not None else leading
    estimate, floor = confirmed.decided_by(at), floors[at].value
    if estimate.value is not None and floor is not None:
        lead = estimate.value - floor
        if (-lead if metric_facts(at).direction == "less" else lead) <= 0.0:
            pair = f"{figure(estimate.value, at)} against {figure(floor, at)}"
            why = f"on test it does no better than the best constant ({in_words(at)} {pair})"
            problems.append((why, caps.allow_below_floor, "--allow-below-floor"))

    column = replace(chosen.column, rows=confirmed.column.rows, calls=())

    def held(table: AgreementTable, mapped: Floats | None) -> Held:
        verdicts = table.verdicts(column) if mapped is None else mapped
        scale = column.scale if mapped is None else table.gold.scale
        return Held(table.labels, verdicts, scale, table.groups, table.weights)

    # from the questions that chose, each by a map that did not see it, to test, by the map of all of them
    before = chosen_on.calibrated(column) if metric_facts(metric).calibrated else None
    after, final = None, confirmed.calibration
    if before is not None and final is not None:
        after = final.mapped(test.verdicts(column))
    people = test.gold.scale
    fall = fall_between(
        held(chosen_on, before), held(test, after), people=people, metric=metric, n_judges=n_judges
    )
    if fall is not None and fall.unexplained:
        n, n_all = estimate.n_unscored, estimate.n_expected
        why = (
            f"on test its {in_words(metric)} is {figure(fall.value, metric)} worse than on the questions "
            f"that chose it, and chance and the choice among {n_judges:,} explain "
            f"{figure(fall.at_most, metric)}: most often questions of train and dev have leaked into the "
            f"prompt or the training of the judge ({n:,} of {n_all:,} test items have no verdict, and count "
            "as wrong)"
        )
        problems.append((why, caps.allow_unconfirmed, "--allow-unconfirmed"))
    refused = [f"{why}; {flag} locks it anyway" for why, allowed, flag in problems if not allowed]
    doubt = "; ".join(why for why, _, _ in problems) or None
    if doubt is None and not shown_above_floor(test, estimate, at):
        reason = estimate.reason or floors[at].reason
        doubt = f"test cannot tell whether it beats the best constant: {reason}"
        if estimate.low is not None and floor is not None:
            doubt = f"its interval there holds the {figure(floor, at)} of the best constant"
    return Upheld("; ".join(refused) or None, doubt)


def shown_above_floor(test: AgreementTable, estimate: Estimate, metric: str) -> bool:
    """Return whether, on an AgreementTable, an Estimate of the metric so named beats the best constant."""
    floor = constant_entry(test, [metric]).as_wrong[metric].value
    if estimate.low is None or estimate.high is None or floor is None:
        return False
    return estimate.high < floor if metric_facts(metric).direction == "less" else estimate.low > floor


def lock_judge(
    judge: Judge,
    confirmed: Confirmed,
    *,
    metric: str,
    margin: float,
    confirmed_on_test: bool,
    folder: Path,
    options: RunOptions,
    budget: Budget,
    workspace: Workspace,
) -> tuple[Lock, Sequence[Judgement]]:
    """Lock Judge (Confirmed, metric, margin, on test?, folder, RunOptions, Budget, Workspace): Lock, rows.

    `gate` holds the judge to those: the call that chose it flatters it, and one alone does not tell its
    noise.
    The journal of these calls goes to the folder, that of the selection.
    """
    test, rows = confirmed.table, confirmed.column.rows
    gold, verdicts = test.gold, {row.item_id: row.verdict for row in rows if row.repeat == 0}
    items = tuple(item for item in gold.items if item.item_id in verdicts)
    called = replace(test, items=items, repeats=NOISE_CALLS)
    afresh = replace(options, repeats=NOISE_CALLS, use_cache=False, retry_unscored=False)
    # A journal of its own: these calls take nothing from earlier ones, and the same command goes on here.
    with open_journal(folder / NOISE_FILE, afresh) as journal:
        if journal.latest and not options.quiet:
            stored = f"{len(journal.latest):,} calls of the lock are stored with this selection"
            notice(f"judgecal: {stored}; another --name makes them again")
        label = f"{judge.name}, calls of the lock"
        again = run_trials([judge], items, journal=journal, options=afresh, budget=budget, label=label)
    column = Verdicts.from_calls(judge, again)
    calls = whole_calls(column, called)
    given = [verdict for row in calls.values() for verdict in row] or [*verdicts.values()]
    n_tied = len(tied_items(gold, "test", test.items))
    probes = stored_probes(workspace.experiments, gold).get(judge.fingerprint)
    footing = Footing.through(confirmed.calibration, gold.scale, item_scale(judge))
    model_id = next(iter([*model_ids(column.rows), *model_ids(rows)]), None)
    locked = LockedJudge.from_judge(judge, workspace, model_id=model_id)
    lock = Lock(
        **{field.name: getattr(locked, field.name) for field in fields(locked)},
        gold=LockedGold(
            gold.name,
            gold.sha256,
            "test",
            str(gold.scale),
            gold.scale.pass_at,
            ties=n_tied / (n_tied + len(test.items)),
            sampling=gold.card.sampling,
            systems=Counter(item.system for item in test.items if item.system is not None),
        ),
        verdicts=verdicts,
        calls=calls,
        unscored=given.count(None) / len(given),
        agreement=confirmed.estimates,
        calibrated=confirmed.calibrated,
        calibration=confirmed.calibration,
        confirmed_on_test=confirmed_on_test,
        noise=noise_of(column, called, confirmed.calibration),
        metric=metric,
        margin=margin,
        versions=versions(),
        locked_at=now(),
        probes=locked_probes(probes, footing),
    )
    return lock, column.rows


def whole_calls(column: Verdicts, called: AgreementTable) -> dict[str, tuple[Label | None, ...]]:
    """Return item id -> tuple of Labels, of repeats without loss, from Verdicts and an AgreementTable."""
    lost = {row.repeat for row in column.rows if is_lost(row)}
    whole = [repeat for repeat in range(called.repeats) if repeat not in lost]
    verdicts = zip(called.items, as_lists(called.verdicts(column)), strict=True)
    return {item.item_id: tuple(row[at] for at in whole) for item, row in verdicts if whole}


def noise_of(column: Verdicts, called: AgreementTable, calibration: Calibration | None) -> Noise:
    """Measure Noise from repeated Verdicts, an AgreementTable of their items and a Calibration or None."""
    people, verdicts, scale = called.gold.scale, called.verdicts(column), column.scale
    if calibration is not None:
        verdicts, scale = calibration.mapped(verdicts), people
    estimates = repeatability(verdicts, scale=people, judge_scale=scale, groups=called.groups)
    blank = estimates["exact_agreement"].without_value(f"the scale {people} has no pass mark")
    flips = (estimate for name, estimate in estimates.items() if name.startswith("flip_rate"))
    return Noise(next(flips, blank), len(called.items), called.repeats)
