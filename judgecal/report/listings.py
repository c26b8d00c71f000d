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
from judgecal.report.document import (
    Bullets,
    Document,
    Paragraph,
    Table,
    listing,
    notes_section,
    section,
    table,
)
from judgecal.report.numbers import DASH, between, count, count_of, estimate, percent
from judgecal.report.wording import sentence, sentences

_PROBLEMS = 8  # in the short form


def replies_document(result: StoredReplies) -> Document:
    """`cache path` and `cache clear`: where the store is and what it holds, or held."""
    n = result.n if result.n_deleted is None else result.n_deleted
    replies = "1 reply" if n == 1 else f"{count(n)} replies"
    kind, what = "cleared", f"{replies} deleted from {result.path}."
    because, following = (
        "Experiments keep their journals: we do not call again what they hold.",
        "judgecal score",
    )
    if result.n_deleted is None:
        kind, following = "stored", "judgecal cache clear"
        what = f"Replies are stored in {result.path} ({replies}, {result.n_bytes / 1e6:,.1f} MB)."
        again = "A request that was answered before comes from there and costs nothing"
        because = f"{again}; --no-cache asks again."
    return listing("Stored replies", Headline(kind, what, (because,), next=following))


# --- signatures


def signatures_document(result: SignatureList) -> Document:
    """`signature list`: a row a signature."""
    signatures = result.signatures
    if not signatures:
        following = "judgecal signature new my_judge --scale binary"
        return listing("Signatures", Headline("none", "There is no signature here yet.", next=following))
    broken = [signature.name for signature in signatures if signature.problem is not None]
    headline = Headline(
        "signatures",
        f"{sum(signature.scale is not None for signature in signatures)} of {len(signatures)} signatures can "
        "judge.",
        tuple(f"{name} cannot be loaded." for name in broken),
        next=f"judgecal signature check{f' {broken[0]}' if broken else ''}",
    )
    rows = [
        (signature, "cannot be loaded" if signature.problem else "none: it answers")
        for signature in signatures
    ]
    return listing("Signatures", headline, _signatures(rows))


def _signatures(
    rows: Iterable[tuple[ListedSignature | CheckedSignature, str]], *, short: bool = True
) -> Table:
    return table(
        rows,
        {
            "signature": lambda row: row[0].name,
            "scale": lambda row: row[0].scale or row[1],
            "unit": lambda row: row[0].unit or DASH,
            "inputs": lambda row: ", ".join(row[0].inputs) or DASH,
        },
        left=4,
        short=short,
    )


def signature_checks_document(result: SignatureChecks) -> Document:
    """`signature check`: every problem with its place, and what items lack."""
    signatures = result.signatures
    problems = [f"{found.where}: {found.message}" for signature in signatures for found in signature.problems]
    lacking = []
    for signature in signatures:
        missing = (
            f"{part.n_items} of {result.n_items} have no {part.input} ({part.first[0]})"
            for part in signature.lacking
        )
        if signature.lacking:
            lacking.append(f"{signature.name} on {result.gold}: of the items {', '.join(missing)}.")
    wrong = next((signature.name for signature in signatures if signature.problems), None)
    ready = next(
        (signature.name for signature in signatures if signature.scale and not signature.lacking), None
    )
    following = "judgecal signature list"
    if wrong:
        following = f"judgecal signature check {wrong}"
    elif ready:
        following = f"judgecal score --signatures {ready} --models embedded --gold {result.gold or 'starter'}"
    who = f"{signatures[0].name} has" if len(signatures) == 1 else "The signatures have"
    headline = Headline(
        "problems" if problems or lacking else "sound",
        f"{who} {count_of(len(problems), 'problem') if problems else 'no problem'}.",
        tuple(lacking),
        next=following,
    )
    lists = Bullets(problems[:_PROBLEMS], short=True), Bullets(problems[_PROBLEMS:])
    rows = [(signature, DASH) for signature in signatures]
    return listing("Signatures", headline, bool(problems) and lists, _signatures(rows))


def new_signature_document(result: NewSignature) -> Document:
    """`signature new`: where the file is, and what it is read as."""
    about = f"A judge of {result.unit}s on the scale {result.scale}; it asks for {', '.join(result.inputs)}."
    what = f"{result.path} is written{': fill in what is in parentheses' * result.to_fill_in}."
    following = f"judgecal signature check {result.name}"
    return listing(f"Signature {result.name}", Headline("written", what, (about,), next=following))


# --- judges


def judges_here_document(here: JudgesHere) -> Document:
    """`judges`: local judges with their source and needs, signatures, suites; and what cannot be loaded."""
    signatures = [signature for signature in here.signatures if not signature.problem]
    prompts = [prompt for prompt in here.prompts if not prompt.problem]
    suites = [suite for suite in here.suites if not suite.problem]
    n_local = sum(not judge.problem for judge in here.local)
    broken = [
        *(
            f"signature {signature.name}: {signature.problem}"
            for signature in (*here.signatures, *here.prompts)
            if signature.problem
        ),
        *(f"suite {suite.name}: {suite.problem}" for suite in here.suites if suite.problem),
        *(judge.problem for judge in here.local if judge.problem),
    ]
    headline = Headline(
        "judges",
        f"{count_of(len(signatures), 'signature')}, {count_of(len(prompts), 'prompt')}, "
        f"{count_of(len(suites), 'suite')} and "
        f"{count_of(n_local, 'local judge')} can judge.",
        sentences(bool(broken) and f"{len(broken):,} more cannot judge yet: --full says why."),
        next="judgecal score --judge exact_match@local",
    )
    needs = Table(
        ("local judge", "needs"), [(judge.judge, judge.needs) for judge in here.local], left=2, short=True
    )
    origins = table(
        here.local,
        {
            "local judge": lambda judge: judge.judge,
            "source": lambda judge: judge.source or DASH,
            "settings": lambda judge: "; ".join(judge.settings) or DASH,
        },
        left=3,
    )
    verdicts = table(
        here.local,
        {
            "local judge": lambda judge: judge.judge,
            "scale": lambda judge: judge.scale,
            "verdict": lambda judge: judge.about,
        },
        left=3,
    )
    members = Table(("suite", "judges"), [(suite.name, ", ".join(suite.judges)) for suite in suites], left=2)
    by_folder = _by_folder([signature.name for signature in signatures])
    as_text = ", ".join(prompt.name for prompt in prompts) or "none"
    together = ", ".join(suite.name for suite in suites) or "none"
    silent = ", ".join(here.no_verdict)
    notes = sentences(broken, silent and f"Signatures without a verdict, which cannot judge: {silent}.")
    return Document(
        title="Judges",
        about="",
        headline=headline,
        sections=[
            section(
                "local", "Local judges", "Rules and metrics that call no model.", needs, origins, verdicts
            ),
            section(
                "signatures",
                "Signatures",
                "Prompts that judge on any model: SIGNATURE@MODEL, or as text prompts/NAME.md@MODEL.",
                Paragraph(f"Signatures: {by_folder}. Text prompts: {as_text}.", short=True),
                _signatures([(each, DASH) for each in (*signatures, *prompts)], short=False),
            ),
            section(
                "suites",
                "Suites",
                "Judges that run together.",
                Paragraph(f"Suites: {together}.", short=True),
                bool(suites) and members,
            ),
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
    names = {"": lambda row: row.system} if len(result.systems) > 1 else {}
    beside = table(
        result.beside,
        {
            **names,
            "measure": lambda row: row.measure,
            "answers": lambda row: count(row.mean.n),
            "mean": lambda row: estimate(row.mean, 2),
        },
        left=1 + len(names),
        short=len(result.systems) == 1,
    )
    unscored = [f"{missing.item_id}, {missing.rule}: {missing.reason}" for missing in result.unscored]
    return Document(
        title=f"{result.set_}: answers checked by their rules",
        about=f"{result.set_}: {count_of(result.n_items, 'answer')}, {where}. Totals are pooled over "
        "conditions.",
        headline=_rules_headline(result),
        sections=[
            section(
                "rules",
                "Rules",
                "What share of the conditions is met, with its 95% interval.",
                _rules_tables(result),
            ),
            section(
                "beside", "Beside the rules", "What no rule counts, as a mean with its 95% interval.", beside
            ),
            section("unscored", "Conditions without a verdict", "", Bullets(unscored, short=True)),
            *notes_section([sentence(note) for note in result.notes], short=True),
        ],
        run_lines=(f"judges: {' '.join(result.judge_names)}",),
    )


def _rules_headline(result: RulesResult) -> Headline:
    n = count_of(sum(result.conditions.values()), "condition")
    met = {score.rule: score.substring for score in result.scores}
    totals = [score.substring for score in result.scores if score.rule == "total"]
    if not totals:
        return Headline("none", f"No item of {result.set_} has a rule.", next="judgecal judges --full")
    what = f"{len(totals)} systems meet {between([total.value for total in totals])} of {n} in all"
    if len(totals) == 1:
        pooled = [
            f"{name} {percent(met[name].value, 1)}" for name in POOLED if name in met and name != "total"
        ]
        both = f": {' and '.join(pooled)}" * (len(pooled) > 1)
        what = f"The answers meet {percent(totals[0].value, 1)} of {n}{both}"
    lost = sum(total.n_unscored for total in totals)
    because = sentences(
        lost > 0 and f"{count_of(lost, 'condition')} got no verdict.",
        result.n_inside > 0
        and f"In {count_of(result.n_inside, 'condition')} a phrase is there only inside other words, "
        "as EMS in HEMS: the column of whole words counts it as absent.",
    )
    unknown = ("Whether these rules say of an answer what people would say of it.",)
    return Headline("rules", f"{what}.", because, unknown, f"judgecal gold sheet {result.set_} -o labels.csv")


def _rules_tables(result: RulesResult) -> list[Table]:
    """Each system's rules, the totals first; of several systems the totals of all before that."""
    several = len(result.systems) > 1
    tables, totals = [], []
    for system in result.systems:
        scores, name = {score.rule: score for score in result.of(system)}, system or "the answers"
        rules = table(
            sorted(scores.values(), key=lambda score: score.rule not in POOLED),
            {
                "": lambda score: score.rule,
                "conditions": lambda score: count(score.substring.n_expected),
                "unscored": lambda score: count(score.substring.n_unscored),
                "substring": lambda score: estimate(score.substring, 1, write=percent),
                "whole words": lambda score: estimate(score.phrase, 1, write=percent),
            },
            title=name * several,
            short=not several,
        )
        tables.append(rules)
        met = [percent(scores[rule].substring.value, 1) if rule in scores else DASH for rule in POOLED]
        totals.append([name, *met, percent(scores["total"].phrase.value, 1) if "total" in scores else DASH])
    if not several:
        return tables
    return [Table(["system", *POOLED, "total, whole words"], totals, short=True), *tables]
