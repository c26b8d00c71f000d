"""The documents of the commands that list what is here: signatures, judges, stored replies, rules met."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from judgecal.engine.cache import StoredReplies
from judgecal.experiment.rules import POOLED, RulesResult
from judgecal.judges.listing import JudgesHere
from judgecal.judges.signature_files import (
    CheckedSignature,
    ListedSignature,
    NewSignature,
    SignatureChecks,
    SignatureList,
)
from judgecal.records import Headline
from judgecal.report import numbers
from judgecal.report.document import (
    Block,
    Bullets,
    Document,
    Paragraph,
    Section,
    Table,
    listing,
    notes_section,
    table,
)
from judgecal.report.wording import sentence, sentences

_PROBLEMS = 8  # in the short form


def replies_document(result: StoredReplies) -> Document:
    """`cache path` and `cache clear`: where the store is and what it holds, or held."""
    if result.n_deleted is not None:
        what = f"{_replies(result.n_deleted)} deleted from {result.path}."
        because = "Journals of experiments stay: what they hold is not called again."
        headline = Headline("cleared", what, (because,), next="judgecal score")
    else:
        where = f"Replies are stored in {result.path} ({_replies(result.n)}, {result.n_bytes / 1e6:,.1f} MB)."
        because = "A request that was answered before is taken from there and costs nothing"
        headline = Headline(
            "stored", where, (f"{because}; --no-cache asks anew.",), next="judgecal cache clear"
        )
    return listing("Stored replies", headline, [])


def _replies(n: int) -> str:
    return "1 reply" if n == 1 else f"{numbers.count(n)} replies"


# --- signatures


def signatures_document(result: SignatureList) -> Document:
    """`signature list`: a row a signature."""
    signatures = result.signatures
    if not signatures:
        following = "judgecal signature new my_judge --scale binary"
        return listing("Signatures", Headline("none", "There is no signature here yet.", next=following), [])
    broken = [signature.name for signature in signatures if signature.error is not None]
    judging = sum(signature.scale is not None for signature in signatures)
    headline = Headline(
        "signatures",
        f"{judging} of {len(signatures)} signatures can judge.",
        tuple(f"{name} cannot be loaded." for name in broken),
        next=f"judgecal signature check{f' {broken[0]}' if broken else ''}",
    )
    rows = [
        (signature, "cannot be loaded" if signature.error else "none: it answers") for signature in signatures
    ]
    return listing("Signatures", headline, [_signatures(rows)])


def _signatures(rows: Iterable[tuple[ListedSignature | CheckedSignature, str]]) -> Table:
    """A line a signature; beside each what stands where it has no scale."""
    return table(
        rows,
        {
            "signature": lambda row: row[0].name,
            "scale": lambda row: row[0].scale or row[1],
            "unit": lambda row: row[0].unit or numbers.DASH,
            "inputs": lambda row: ", ".join(row[0].inputs) or numbers.DASH,
        },
        left=4,
        short=True,
    )


def signature_checks_document(result: SignatureChecks) -> Document:
    """`signature check`: every problem with its place, and what items lack."""
    signatures = result.signatures
    problems = [f"{problem.where}: {problem.message}" for one in signatures for problem in one.problems]
    lacking = [
        f"{signature.name} on {result.gold}: of the items "
        + ", ".join(f"{part.n_items} of {result.n_items} have no {part.input} ({part.first[0]})"
                    for part in signature.lacking)
        + "."
        for signature in signatures if signature.lacking
    ]  # fmt: skip
    wrong = next((signature.name for signature in signatures if signature.problems), None)
    ready = next((one.name for one in signatures if one.scale and not one.lacking), None)
    who = f"{signatures[0].name} has" if len(signatures) == 1 else "The signatures have"
    headline = Headline(
        "problems" if problems or lacking else "sound",
        f"{who} {numbers.count_of(len(problems), 'problem') if problems else 'no problem'}.",
        tuple(lacking),
        next=f"judgecal signature check {wrong}"
        if wrong
        else f"judgecal score --signatures {ready} --models embedded --gold {result.gold or 'starter'}"
        if ready
        else "judgecal signature list",
    )
    blocks: list[Block] = []
    if problems:
        blocks = [Bullets(problems[:_PROBLEMS], short=True), Bullets(problems[_PROBLEMS:])]
    rows = [(signature, numbers.DASH) for signature in signatures]
    return listing("Signatures", headline, [*blocks, _signatures(rows)])


def new_signature_document(result: NewSignature) -> Document:
    """`signature new`: where the file is, and what it is read as."""
    about = f"A judge of {result.unit}s on the scale {result.scale}; it asks for {', '.join(result.inputs)}."
    what = f"{result.path} is written: fill in what stands in parentheses."
    following = f"judgecal signature check {result.name}"
    return listing(f"Signature {result.name}", Headline("written", what, (about,), next=following), [])


# --- judges


def judges_here_document(here: JudgesHere) -> Document:
    """`judges`: local judges with their source and needs, signatures, suites; and what cannot be loaded."""
    signatures = [signature for signature in here.signatures if not signature.problem]
    suites = [suite for suite in here.suites if not suite.problem]
    local = [judge for judge in here.local if not judge.problem]
    broken = [
        *(f"signature {one.name}: {one.problem}" for one in here.signatures if one.problem),
        *(f"suite {one.name}: {one.problem}" for one in here.suites if one.problem),
        *(one.problem for one in here.local if one.problem),
    ]
    they_are = "it is" if len(broken) == 1 else "they are"
    headline = Headline(
        "judges",
        f"{numbers.count_of(len(signatures), 'signature')}, {numbers.count_of(len(suites), 'suite')} and "
        f"{numbers.count_of(len(local), 'local judge')} can judge here.",
        sentences(bool(broken) and f"{len(broken):,} more cannot judge as {they_are}: --full says why."),
        next="judgecal score --judge exact_match@local",
    )
    needs = table(
        here.local, {"local judge": lambda one: one.judge, "needs": lambda one: one.needs}, left=2, short=True
    )
    origins = table(
        here.local,
        {
            "local judge": lambda one: one.judge,
            "source": lambda one: one.source or numbers.DASH,
            "settings": lambda one: "; ".join(one.settings) or numbers.DASH,
        },
        left=3,
    )
    verdicts = table(
        here.local,
        {
            "local judge": lambda one: one.judge,
            "scale": lambda one: one.scale,
            "verdict": lambda one: one.about,
        },
        left=3,
    )
    prompts = table(
        signatures,
        {
            "signature": lambda one: one.name,
            "scale": lambda one: one.scale,
            "unit": lambda one: one.unit,
            "inputs": lambda one: ", ".join(one.inputs),
        },
        left=4,
    )
    named = Paragraph(f"Signatures: {_by_folder([one.name for one in signatures])}.", short=True)
    together = Paragraph(f"Suites: {', '.join(one.name for one in suites) or 'none'}.", short=True)
    members = table(
        suites, {"suite": lambda one: one.name, "judges": lambda one: ", ".join(one.judges)}, left=2
    )
    silent = ", ".join(here.no_verdict)
    notes = sentences(broken, silent and f"Signatures without a verdict, which cannot judge: {silent}.")
    asked = "Prompts that judge on any model: SIGNATURE@MODEL."
    return Document(
        title="Judges",
        about="",
        headline=headline,
        sections=[
            Section(
                "local", "Local judges", "Rules and metrics that call nobody.", [needs, origins, verdicts]
            ),
            Section("signatures", "Signatures", asked, [named, prompts]),
            Section("suites", "Suites", "Judges that run together.", [together, *[members] * bool(suites)]),
            *notes_section(notes),
        ],
        run_lines=("run: judgecal judges",),
    )


def _by_folder(names: Sequence[str]) -> str:
    """Names with commas, those of a sub-folder together: `mosaic/* (9)`."""
    folders: dict[str, list[str]] = {}
    for name in names:
        folder, slash, file = name.rpartition("/")
        folders.setdefault(folder + slash, []).append(file)
    alone = folders.pop("", [])
    return ", ".join([*alone, *(f"{folder}* ({len(files)})" for folder, files in folders.items())]) or "none"


# --- rules


def rules_document(result: RulesResult) -> Document:
    """`rules`: the totals, each rule, and the conditions without a verdict."""
    where = f"answers of {result.answers}" if result.answers else "answers of the set"
    shares = "What share of the conditions is met, with its 95% interval."
    unscored = [f"{one.item_id}, {one.rule}: {one.reason}" for one in result.unscored]
    return Document(
        title=f"{result.set_}: answers held to their rules",
        about=(
            f"{result.set_}: {numbers.count_of(result.n_items, 'answer')}, {where}. Totals are pooled over "
            "conditions."
        ),
        headline=_rules_headline(result),
        sections=[
            Section("rules", "Rules", shares, _rules_tables(result)),
            Section("unscored", "Conditions without a verdict", "", [Bullets(unscored, short=True)]),
            *notes_section([sentence(note) for note in result.notes], short=True),
        ],
        run_lines=(f"judges: {' '.join(result.judge_names)}",),
    )


def _rules_headline(result: RulesResult) -> Headline:
    n = numbers.count_of(sum(result.conditions.values()), "condition")
    met = {one.rule: one.substring for one in result.scores}
    totals = [one.substring for one in result.scores if one.rule == "total"]
    if not totals:
        return Headline("none", f"No item of {result.set_} has a rule.", next="judgecal judges --full")
    if len(totals) == 1:
        pooled = [name for name in POOLED if name in met and name != "total"]
        parts = " and ".join(f"{name} {numbers.percent(met[name].value, 1)}" for name in pooled)
        both = f": {parts}" * (len(pooled) > 1)
        what = f"The answers meet {numbers.percent(totals[0].value, 1)} of {n}{both}"
    else:
        reach = numbers.between([total.value for total in totals])
        what = f"{len(totals)} systems meet {reach} of {n} in all"
    lost = sum(total.n_unscored for total in totals)
    because = sentences(
        lost > 0 and f"{numbers.count_of(lost, 'condition')} could not be scored.",
        result.n_inside > 0
        and f"In {numbers.count_of(result.n_inside, 'condition')} a phrase stands only inside other words, "
        "as EMS in HEMS: the column of whole words counts it as absent.",
    )
    unknown = ("Whether these rules say of an answer what people would say of it.",)
    return Headline("rules", f"{what}.", because, unknown, f"judgecal gold sheet {result.set_} -o labels.csv")


def _rules_tables(result: RulesResult) -> list[Table]:
    """Each system's rules, the totals first; of several systems the totals of all before that."""
    several = len(result.systems) > 1
    by_system = {system: {score.rule: score for score in result.of(system)} for system in result.systems}
    each = [
        table(
            sorted(scores.values(), key=lambda score: score.rule not in POOLED),
            {
                "": lambda score: score.rule,
                "conditions": lambda score: numbers.count(score.substring.n_expected),
                "unscored": lambda score: numbers.count(score.substring.n_unscored),
                "substring": lambda score: numbers.estimate(score.substring, 1, write=numbers.percent),
                "whole words": lambda score: numbers.estimate(score.phrase, 1, write=numbers.percent),
            },
            title=(system or "the answers") * several,
            short=not several,
        )
        for system, scores in by_system.items()
    ]
    if not several:
        return each
    rows = []
    for system, scores in by_system.items():
        met = [
            numbers.percent(scores[name].substring.value, 1) if name in scores else numbers.DASH
            for name in POOLED
        ]
        whole = numbers.percent(scores["total"].phrase.value, 1) if "total" in scores else numbers.DASH
        rows.append([system or "the answers", *met, whole])
    return [Table(["system", *POOLED, "total, whole words"], rows, short=True), *each]
