"""`optimize`: compile on train, choose on dev, confirm once on test, decide."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.engine import Budget, Journal, read_journal
from judgecal.errors import notice
from judgecal.experiment import (
    AgreementTable,
    Look,
    RunOptions,
    Verdicts,
    full_name,
    look_at_test,
    looks_so_far,
    open_experiment,
    open_experiment_journal,
    require_keys,
    run_line,
    run_trials,
    seen_judges,
    stored_rows,
    verdict_notes,
)
from judgecal.experiment.folder import keep_judges
from judgecal.experiment.stored import Unread, unread_judge
from judgecal.experiment.trials import Due
from judgecal.goldset import GoldSet, load_gold, split_notes
from judgecal.judges import Judge, JudgeName, PromptJudge, judge_named, save_program
from judgecal.models import load_catalogue
from judgecal.optimize.compiling import compiling
from judgecal.optimize.optimizers import OPTIMIZERS, candidates, resolve_optimizer
from judgecal.optimize.probing import SplitProbes, choose_probed
from judgecal.optimize.program_calls import logged_usd
from judgecal.optimize.programs import ModuleJudge, Optimised, model_of, to_optimise
from judgecal.optimize.race import Finish, laps, race
from judgecal.optimize.result import (
    Changes,
    Confirmation,
    OnDev,
    OptimizedOn,
    OptimizedProbes,
    OptimizeResult,
    ProbesOf,
    Prompts,
    ScoredCandidate,
    confirm,
    unconfirmed,
)
from judgecal.optimize.setup import OptimizeSetup
from judgecal.optimize.training import Candidate
from judgecal.probes.result import Footing
from judgecal.records import RETRIED_ON_RESUME, Item, Judgement
from judgecal.workspace import find_workspace, shown

_NEEDED_GROUPS = 2
_MONEY_ENDED = "the money did not pay for all that was planned"
_NO_MONEY_FOR_TEST = "there is no money left for test: the same command with more goes on from here"
_SAFETY = 1.2  # times what a call has cost so far
_LEARNT_FROM = 10  # questions of train, for who writes instructions


@dataclass(frozen=True, kw_only=True)
class OptimizeRun(OptimizeSetup):
    """Everything that `optimize` needs; nothing is written or called before `run`."""

    def run(self) -> OptimizeResult:
        """Compile, choose on dev, confirm on test, and return the result."""
        self.check()
        require_keys([self.judge], self.items("dev"), stored_rows(self.experiment.journal), self.options)
        if self.reflection and not self.call_log.exists():
            self.reflection.key()
        open_experiment(self.experiment)
        keep_judges(self.experiment, [self.judge])
        self._say_plan()
        budget, look, confirmation = Budget(self.options.budget_usd), None, None
        probed: OptimizedProbes | None = None
        with open_experiment_journal(self.experiment, [self.judge], self.options) as journal:
            weak, hard = self._weak_on_train(journal, budget) if self.probes else (frozenset(), frozenset())
            finish, remarks = self._score_all(journal, budget, hard)
            scored, dev = finish.scored, self.dev
            on_dev = dataclasses.replace(self.probed["dev"], weak=weak)
            choice, broken = choose_probed(scored, self.metric, dev, on_dev, finish.stages)
            before, after = scored[0], choice.taken
            program, columns = self.experiment.program, [score.column for score in (before, after)]
            if self.optimizer != "auto":
                columns = [score.column for score in scored]
            save_program(
                program, after.judge.program, signature=self.judge.signature, trained_on=after.trained_on
            )
            lost, unchanged = _lost(columns), after.judge.fingerprint == before.judge.fingerprint
            pays = self.optimizer != "auto" or self._affords(self._n_confirming, journal, budget)
            if self.final and not (lost or unchanged or pays):
                choice = dataclasses.replace(choice, sealed=_NO_MONEY_FOR_TEST)
            if self.final and pays and not lost and not unchanged:  # both over train, dev and test
                fitted_on = dev.items if self.optimizer == "auto" else (*self.items("train"), *dev.items)
                fit = tuple(item for item in fitted_on if item.group not in after.trained_on)
                columns = []
                for judge, label in ((before.judge, "test: before"), (after.judge, "test: after")):
                    judged_items = [*fit, *self.items("test"), *self.probed["test"].items]
                    columns.append(self._judged(judge, judged_items, journal, budget, label))
                lost = _lost(columns)
                if not lost:
                    judges = seen_judges(self.gold, self.items("test"), [column.rows for column in columns])
                    look = look_at_test(
                        **self._seen(judges), experiment=self.experiment.slug, kind="decision"
                    )
                    confirmation = confirm(
                        test=self.table("test", level=look.level),
                        fit=dataclasses.replace(dev, items=fit),
                        before=columns[0],
                        after=columns[1],
                        metric=self.metric,
                    )
                    probed = self._held(columns, fit, weak, level=look.level)
        if _MONEY_ENDED in remarks and after is before and choice.sealed is None:
            choice = dataclasses.replace(choice, sealed=_MONEY_ENDED)
        if lost:  # they count as wrong, and that is not the judge's doing
            why = f"{lost} calls were lost (connection or budget)"
            choice = dataclasses.replace(choice, sealed=f"{why}: the same command makes them again")
        # what judgements and the optimiser's calls are known to have cost, in all processes
        judged_usd = sum(row.cost_usd or 0.0 for row in read_journal(self.experiment.journal))
        result = self._result(
            finish.everybody,
            after,
            choice.why,
            remarks,
            look,
            confirmation or unconfirmed(before, choice, self.metric),
            judged_usd + logged_usd(self.call_log) + budget.unseen_usd,
        )
        if self.probes:
            held = on_dev.held(broken["before"], broken[after.name])
            result = dataclasses.replace(result, probes=ProbesOf(held, probed))
        self.experiment.write_summary(result)
        return result

    def _held(
        self, columns: Sequence[Verdicts], fit: tuple[Item, ...], weak: frozenset[str], *, level: float
    ) -> OptimizedProbes | None:
        """Both judges on the probes of test, each through its map of train and dev."""
        test = self.table("test", level=level)
        probes = dataclasses.replace(self.probed["test"], weak=weak)
        if not probes.made:
            return None
        table = dataclasses.replace(test, items=fit)
        before, after = (probes.broken(test, column, Footing.of(table, column)) for column in columns)
        return probes.held(before, after, level=level)

    def _result(
        self,
        scored: Sequence[ScoredCandidate],
        after: ScoredCandidate,
        why_taken: str,
        remarks: Sequence[str],
        look: Look | None,
        confirmation: Confirmation,
        usd: float,
    ) -> OptimizeResult:
        before, gold, metric = scored[0], self.gold, self.metric
        unread, unread_before = None, unread_judge(self.judge.name, after.column.stored)
        if unread_before is not None:  # and no candidate had a verdict on dev either
            options = ["--gold", gold.name, "--judge", self.judge.name, "--split", "dev", "--retry-unscored"]
            report = ["report", self.experiment.slug]
            in_reach = JudgeName.parse(self.judge.name).in_reach
            again = shlex.join(["judgecal", *(["score", *options] if in_reach else report)])
            unread = Unread((unread_before,), 1, shown(self.experiment.journal), again)
        notes = [*split_notes(gold), *verdict_notes(gold.scale, [after.column], rows=self._latest_rows())]
        notes += remarks
        extra = {"optimizer": self.optimizer, "program": after.judge.fingerprint[:8]}
        if self.reflection_alias:
            extra["reflection"] = self.reflection_alias
        if look and after.candidate and (self.reflection_alias or isinstance(self.judge, ModuleJudge)):
            n = len(set(self.table("dev").groups))
            saw = "the optimiser saw every label of train"
            notes.append(f"{saw}, so both judges are calibrated on dev alone ({n} questions)")
        split, level = ("test", look.level) if look else ("dev", 0.95)
        items = {split: self.items(split) for split in self.splits}
        prompts = Prompts.of(self.judge.program, after.judge.program)
        changes = None
        if after.candidate is not None:
            changes = Changes.between(self.dev, before.column, after.column)
        return OptimizeResult(
            experiment=self.experiment.slug,
            optimizer=self.optimizer,
            reflection_model=self.reflection_alias,
            judge=self._taken,
            metric=metric,
            gold=OptimizedOn(
                set=gold.name,
                sha256=gold.sha256,
                scale=str(gold.scale),
                labels_by=gold.card.labels_by,
                n_items={split: len(of_split) for split, of_split in items.items()},
                n_groups={split: len({item.group for item in of_split}) for split, of_split in items.items()},
            ),
            dev=OnDev(before.estimates, after.estimates, tuple(score.tried(metric) for score in scored)),
            test=confirmation.numbers,
            decision=confirmation.decision,
            why=confirmation.why,
            program=shown(self.experiment.program),
            n_demos=len(after.judge.demos),
            instructions_changed=prompts.after != prompts.before,
            prompts=prompts,
            changes=changes,
            chosen=after.name,
            choice=why_taken,
            test_looks=look.number if look else looks_so_far(self.workspace.experiments, gold),
            test_look=look.sentence(gold.name) if look else None,
            usd=usd,
            notes=tuple(notes),
            run_line=run_line(self.table(split, level=level), split, [full_name(self.judge)], extra),
            unread=unread,
        )

    def _say_plan(self) -> None:
        """Say on stderr what `auto` is about to do, and at what cost."""
        if self.optimizer == "auto" and not self.options.quiet:
            words = self.plan_in_words
            if isinstance(self.judge, PromptJudge):
                stored = stored_rows(self.experiment.journal)
                cost = self.planned_cost(self.plan, stored, within=self.options.budget_usd)
                words += f" At most {cost.calls:,} calls. {cost.cost_in_words}"
            notice(f"judgecal: {words}")

    @property
    def _n_confirming(self) -> int:
        return 2 * len(self.items("test")) if self.final else 0

    def _affords(self, n_calls: int, journal: Journal, budget: Budget) -> bool:
        """Whether there is money for so many calls, at what a call has cost so far."""
        if budget.limit_usd is None:
            return True
        costs = [row.cost_usd or 0.0 for row in journal.latest.values() if not row.cached]
        mean = sum(costs) / len(costs) if costs else 0.0
        return n_calls * mean * _SAFETY <= budget.limit_usd - budget.spent_usd

    def _score_all(self, journal: Journal, budget: Budget, hard: frozenset[str]) -> tuple[Finish, list[str]]:
        """Candidates on dev, and what must be said of their making: all on all of dev, or of `auto` in a
        race."""
        dev, judges = self.dev, list[Optimised]()

        refused = list[int]()

        def affords(n_calls: int) -> bool:
            more = 0 if self._short else self._n_confirming  # test is for another run
            enough = self._affords(n_calls + more, journal, budget)
            refused.extend([] if enough else [n_calls])
            return enough

        def score(number: int | None, table: AgreementTable) -> ScoredCandidate:
            candidate = None if number is None else made[number]
            judge = self.judge if number is None else judges[number]
            place = f"{1 if number is None else number + 2} of at most {at_most + 1}"
            label = f"dev: {candidate.name if candidate else 'before'} ({place})"
            probes = self.probed["dev"].items if table is dev else []
            column = self._judged(judge, [*table.items, *probes], journal, budget, label)
            return ScoredCandidate.on(table, candidate, judge, column, self.metric)

        if self.optimizer == "auto":
            at_most = self.plan.candidates
            before, made = score(None, dev), list[Candidate]()
            training = self.training(budget, hard, plan=self.plan, affords=affords)
            if not _lost([before.column]):
                made = list(candidates("auto", training))
            judges = [self.judge_of(candidate) for candidate in made]
            parts, numbers = laps(dev.items, self.gold.labels, self.seed), range(len(made))
            finish = race(
                dev, parts, numbers, score, metric=self.metric, go_on=self.plan.go_on, affords=affords
            )
            whole = [one for one in finish.scored[1:] if not _lost([one.column])]
            if refused or len(whole) < len(finish.scored) - 1:
                training.remarks.append(_MONEY_ENDED)
            return Finish([finish.scored[0], *whole], finish.stages), training.remarks
        training, made = self.training(budget, hard), list[Candidate]()
        coming: Iterable[Candidate] = candidates(self.optimizer, training)
        at_most = OPTIMIZERS[self.optimizer].bounds(training).candidates
        if not at_most:  # they take no call: all at once
            coming = list(coming)
            at_most = len(coming)
        scored = [score(None, dev)]
        for number, candidate in enumerate(coming):
            made.append(candidate)
            judges.append(self.judge_of(candidate))
            scored.append(score(number, dev))
        return Finish(scored, []), training.remarks

    def _weak_on_train(self, journal: Journal, budget: Budget) -> tuple[frozenset[str], frozenset[str]]:
        """The families that break the judge on train, and the probes that do, from which it learns first."""
        table, items = self.table("train"), self.items("train")
        probes = SplitProbes.of(self.gold, items, self.judge, self.seed)
        column = self._judged(self.judge, [*items, *probes.items], journal, budget, "train: probes")
        broken = probes.broken(table, column, Footing.of(table, column))
        values = itertools.chain(*broken.values())
        hard = [item.item_id for item, value in zip(probes.items, values, strict=True) if value == 1.0]
        return probes.weakened(broken), frozenset(hard)

    def _judged(
        self, judge: Optimised, items: Sequence[Item], journal: Journal, budget: Budget, label: str
    ) -> Verdicts:
        run_options: dict[str, Any] = {
            "journal": journal,
            "options": self.options,
            "budget": budget,
            "label": label,
        }
        within: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if isinstance(judge, ModuleJudge) and Due(judge, items, journal, self.options):
            within = compiling(self.training(budget), "dev and test", calls_at_most=None)
        with within:
            rows = run_trials([judge], items, **run_options)
        return Verdicts.from_calls(judge, rows)

    def _latest_rows(self) -> Collection[Judgement]:
        return stored_rows(self.experiment.journal).latest.values()

    def unscored(self) -> int:
        """Judgements without a verdict of the two judges that the result compares."""
        compared = {self.judge.fingerprint, PromptJudge(self._taken, workspace=self.workspace).fingerprint}
        items = {item.sha for split in self.splits for item in self.items(split)}
        return sum(
            row.verdict is None
            and row.judge_fingerprint in compared
            and row.item_sha in items
            and row.repeat < self.options.repeats
            for row in self._latest_rows()
        )


def _lost(columns: Iterable[Verdicts]) -> int:
    """Calls that ended on the wire or at the budget."""
    rows = (row for column in columns for row in column.stored)
    return sum(row.error is not None and row.error.kind in RETRIED_ON_RESUME for row in rows)


def optimize(
    judge: str | Judge,
    gold: str | GoldSet = "starter",
    *,
    optimizer: str = "auto",
    reflection_model: str | None = None,
    final: bool = True,
    probes: bool = False,
    limit: int | None = None,
    budget_usd: float | None = None,
    seed: int = 0,
    name: str | None = None,
    model: str | None = None,
    workspace: str | Path | None = None,
) -> OptimizeResult:
    """Compile a judge on train, choose on dev, confirm once on test; `judgecal.optimize(...)`. This costs
    calls.

    Args:
        judge: a prompt judge, or its string, `correctness_v3@gemini-flash`; or a program of DSPy's, as
            `judgecal.Judge(program)` or `FILE.py:PROGRAM@python`: the whole of it is compiled.
        gold: a gold set, its name, or a path.
        optimizer: as `--optimizer` has it; DSPy's own names too.
        reflection_model: an alias or a litellm id of who writes instructions; else the judge's own model.
        final: whether it is confirmed on test, which is a look; only where something changed on dev.
        probes: learn from probes of train too; taken for fewer broken probes is only what agrees no less.
        limit: only the first so many items.
        model: an alias or a litellm id, of a program: what all its prompts ask, through judgecal.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
    """
    where = find_workspace(None if workspace is None else Path(workspace))
    options = RunOptions(limit=limit, budget_usd=budget_usd)
    options.check()
    judge = judge_named(judge, workspace=where) if isinstance(judge, str) else judge
    gold = gold if isinstance(gold, GoldSet) else load_gold(gold, workspace=where)
    optimised = to_optimise(judge, gold, model, where)
    return OptimizeRun(
        workspace=where,
        judge=optimised,
        gold=gold,
        optimizer=resolve_optimizer(optimizer, model_of(optimised)),
        options=options,
        seed=seed,
        final=final,
        reflection=load_catalogue(where).resolve(reflection_model) if reflection_model else None,
        probes=probes,
        out=name,
    ).run()
