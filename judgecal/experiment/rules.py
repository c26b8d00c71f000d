"""Answers held to the rules of their items: the share of each condition that is met, and the totals over
them.

A condition is one rule of one item. The totals are pooled over conditions, as RAG-IFEval has them:
correctness over include, exclude and cite, safety over refuse and safe, total over all. A condition without a
verdict counts in `n_expected` and `n_unscored`, never as 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, NamedTuple

from judgecal.judges import judge_named, set_local
from judgecal.judges.local.cite_f1 import citations
from judgecal.records import Estimate, Item, Result
from judgecal.stats.intervals import mean_estimate
from judgecal.workspace import Workspace

JUDGES = {"include": "include", "exclude": "exclude", "cite": "cite_f1", "refuse": "refuse", "safe": "safe"}
"""The local judge of each rule."""
POOLED: Mapping[str, tuple[str, ...]] = {
    "correctness": ("include", "exclude", "cite"),
    "safety": ("refuse", "safe"),
    "total": tuple(JUDGES),
}
"""What each total is pooled over."""
_LISTED = 20


@dataclass(frozen=True, slots=True)
class RuleScore:
    """One rule, or one total, for one system: the mean over conditions, 0..1."""

    system: str
    rule: str
    substring: Estimate  # a phrase may stand inside other words, as in the benchmark (HEMS holds EMS)
    phrase: Estimate  # it may not


@dataclass(frozen=True, slots=True)
class BesideRules:
    """What no rule counts, for one system: precision and recall of citations (0..1), words of an answer."""

    system: str
    measure: str
    mean: Estimate  # precision leaves out answers that cite nothing, as unscored


@dataclass(frozen=True, slots=True)
class UnscoredCondition:
    """A condition without a verdict, and why."""

    item_id: str
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class RulesResult(Result):
    """What answers come to by the rules of their items."""

    set_: str  # the gold set
    answers: str | None  # the file of the answers; None where the set holds them
    n_items: int
    conditions: Mapping[str, int]  # how many there are of each rule, over all systems
    n_inside: int  # conditions of which phrases stand only inside other words
    judge_names: tuple[str, ...]  # the judges by the strings that reproduce them
    scores: tuple[RuleScore, ...]
    beside: tuple[BesideRules, ...]
    unscored: tuple[UnscoredCondition, ...]  # the first conditions without a verdict
    notes: tuple[str, ...] = ()

    def of(self, system: str) -> tuple[RuleScore, ...]:
        """The scores of one system."""
        return tuple(score for score in self.scores if score.system == system)

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems, in the order of the items; one without a name is the empty text."""
        return tuple(dict.fromkeys(score.system for score in self.scores))


class _Condition(NamedTuple):
    system: str
    group: str
    rule: str
    substring: float  # 0..1, NaN where there is no verdict
    phrase: float


def score_rules(
    items: Sequence[Item],
    *,
    set_name: str,
    workspace: Workspace,
    answers: str | None = None,
    settings: Mapping[str, str] | None = None,
    notes: Iterable[str] = (),
) -> RulesResult:
    """Hold each item's answer to its rules, looking for phrases in both ways.

    Args:
        settings: of the judges that take them: `message`, `words`, `lemmas`.
    """
    conditions, unscored, used = list[_Condition](), list[UnscoredCondition](), dict[str, None]()
    local = [f"{judge}@local" for judge in JUDGES.values()]
    names = [set_local(local, match=match, **(settings or {})) for match in ("substring", "phrase")]
    for rule, *by_match in zip(JUDGES, *names, strict=True):
        ruled = [item for item in items if rule in item.expect]
        judges: list[Any] = [judge_named(name, workspace=workspace) for name in by_match if ruled]
        used |= dict.fromkeys(judge.name for judge in judges)
        for item in ruled:
            replies, shares = [judge.verdict(item) for judge in judges], [math.nan, math.nan]
            failure = replies[0].failure
            if failure is not None:
                unscored.append(UnscoredCondition(item.item_id, rule, failure.message))
            else:
                shares = [reply.verdict / judges[0].scale.span for reply in replies]
            conditions.append(_Condition(item.system or "", item.group, rule, *shares))
    systems = list(dict.fromkeys(item.system or "" for item in items))
    return RulesResult(
        set_=set_name,
        answers=answers,
        n_items=len(items),
        conditions=dict.fromkeys(JUDGES, 0) | Counter(condition.rule for condition in conditions),
        n_inside=sum(
            condition.substring != condition.phrase
            for condition in conditions
            if not math.isnan(condition.substring)
        ),
        judge_names=tuple(used),
        scores=tuple(score for system in systems for score in _scores(system, conditions)),
        beside=tuple(row for system in systems for row in _beside(system, items)),
        unscored=tuple(unscored[:_LISTED]),
        notes=tuple(notes),
    )


def lemmas_for(language: str, asked: str | None) -> tuple[str, tuple[str, ...]]:
    """The language whose dictionary forms are compared, "" for none; and where they are off, that they are.

    Args:
        language: of the set; "" where its card names none.
        asked: by the user; None for the set's own where simplemma is installed, `off` for none.
    """
    if asked is not None and asked != "off":
        return asked, ()
    why = "as --lemmas off asks"
    if asked is None and language:
        if find_spec("simplemma") is not None:
            return language, ()
        why = f"as simplemma, which knows those of {language}, is not installed (pip install '.[lemmas]')"
    elif asked is None:
        why = 'as card.toml names no language: write language = "pl" there, or give --lemmas pl'
    return "", (f"words are compared as they are written, and not in their dictionary forms, {why}",)


def _beside(system: str, items: Sequence[Item]) -> Iterable[BesideRules]:
    mine = [item for item in items if (item.system or "") == system]
    cited = [
        (item.group, citations(item.answer, item.expect, item)) for item in mine if "cite" in item.expect
    ]
    counted = [(group, counts) for group, counts in cited if not isinstance(counts, str)]
    groups = [group for group, _ in counted]
    precision = [hits / n if n else math.nan for _, (hits, _, n) in counted]
    recall = [hits / n_right for _, (hits, n_right, _) in counted]
    words = [float(len(item.answer.split())) for item in mine]
    measures = {"cite precision": (precision, groups), "cite recall": (recall, groups)}
    for name, (values, of) in {**measures, "words": (words, [item.group for item in mine])}.items():
        if values:
            mean = mean_estimate(values, of, high=max(1.0, *words) if name == "words" else 1.0)
            yield BesideRules(system, name, replace(mean, n_unscored=mean.n_expected - mean.n))


def _scores(system: str, conditions: Sequence[_Condition]) -> Iterable[RuleScore]:
    for name, rules in {**{rule: (rule,) for rule in JUDGES}, **POOLED}.items():
        pooled = [
            condition for condition in conditions if condition.system == system and condition.rule in rules
        ]
        if pooled:
            groups = [condition.group for condition in pooled]
            estimates = (
                mean_estimate([getattr(condition, match) for condition in pooled], groups)
                for match in ("substring", "phrase")
            )
            substring, phrase = (
                replace(estimate, n_unscored=estimate.n_expected - estimate.n) for estimate in estimates
            )
            yield RuleScore(system, name, substring, phrase)
