"""The document of `judgecal rules`: what share of the conditions answers meet."""

from __future__ import annotations

from judgecal.experiment.rules import POOLED, RuleScore, RulesResult
from judgecal.records import Headline
from judgecal.report import numbers
from judgecal.report.document import Bullets, Document, Section, Table, notes_section
from judgecal.report.wording import sentence

_ONE = "the answers"


def rules_document(result: RulesResult) -> Document:
    """The totals, each rule, and the conditions without a verdict."""
    unscored = [f"{one.item_id}, {one.rule}: {one.reason}" for one in result.unscored]
    return Document(
        title=f"{result.set_}: answers held to their rules",
        about=_about(result),
        headline=_headline(result),
        sections=[
            Section(
                "rules",
                "Rules",
                "What share of the conditions is met, with its 95% interval.",
                _tables(result),
            ),
            Section("unscored", "Conditions without a verdict", "", [Bullets(unscored, short=True)]),
            *notes_section([sentence(note) for note in result.notes], short=True),
        ],
        run_lines=(f"judges: {' '.join(result.judge_names)}",),
    )


def _about(result: RulesResult) -> str:
    where = f"answers of {result.answers}" if result.answers else "answers of the set"
    return f"{result.set_}: {numbers.count_of(result.n_items, 'answer')}, {where}. Totals are pooled over conditions."


def _headline(result: RulesResult) -> Headline:
    n = numbers.count_of(sum(result.conditions.values()), "condition")
    totals = {
        system: next(one for one in result.of(system) if one.rule == "total") for system in result.systems
    }
    if not totals:
        return Headline("none", f"No item of {result.set_} has a rule.", next="judgecal judges --full")
    shares = [one.substring.value for one in totals.values()]
    if len(totals) == 1:
        said = f"The answers meet {numbers.percent(shares[0], 1)} of {n}{_parts(result)}"
    else:
        said = f"{len(totals)} systems meet {numbers.between(shares)} of {n} in all"
    lost = sum(one.substring.n_unscored for one in totals.values())
    because = [f"{numbers.count_of(lost, 'condition')} could not be scored."] if lost else []
    if result.n_inside:
        because.append(
            f"In {numbers.count_of(result.n_inside, 'condition')} a phrase stands only inside other words, as EMS in "
            "HEMS: the column of whole words counts it as absent."
        )
    unknown = ("Whether these rules say of an answer what people would say of it.",)
    return Headline(
        "rules", f"{said}.", tuple(because), unknown, f"judgecal gold sheet {result.set_} -o labels.csv"
    )


def _parts(result: RulesResult) -> str:
    """Correctness and safety, where both have conditions."""
    found = {one.rule: numbers.percent(one.substring.value, 1) for one in result.scores}
    parts = [name for name in POOLED if name in found and name != "total"]
    return f": {' and '.join(f'{name} {found[name]}' for name in parts)}" if len(parts) > 1 else ""


def _tables(result: RulesResult) -> list[Table]:
    if not result.systems:
        return []
    if len(result.systems) == 1:
        rows = [_row(one) for one in _ordered(result.scores)]
        return [Table(["", "conditions", "unscored", "substring", "whole words"], rows, short=True)]
    header = ["system", *POOLED, "total, whole words"]
    rows = [_system_row(result, system) for system in result.systems]
    return [
        Table(header, rows, short=True),
        *(
            Table(
                ["", "conditions", "unscored", "substring", "whole words"],
                [_row(one) for one in _ordered(result.of(system))],
                title=system or _ONE,
            )
            for system in result.systems
        ),
    ]


def _ordered(scores: tuple[RuleScore, ...]) -> list[RuleScore]:
    """The totals first."""
    return sorted(scores, key=lambda one: one.rule not in POOLED)


def _row(one: RuleScore) -> list[str]:
    found = one.substring
    shown = [numbers.estimate(share, 1, write=numbers.percent) for share in (found, one.phrase)]
    return [one.rule, numbers.count(found.n_expected), numbers.count(found.n_unscored), *shown]


def _system_row(result: RulesResult, system: str) -> list[str]:
    found = {one.rule: one for one in result.of(system)}
    shares = [
        numbers.percent(found[name].substring.value, 1) if name in found else numbers.DASH for name in POOLED
    ]
    whole = numbers.percent(found["total"].phrase.value, 1) if "total" in found else numbers.DASH
    return [system or _ONE, *shares, whole]
