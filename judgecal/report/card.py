"""The judge card: what a locked judge may be trusted with, on one page, from the lock and the experiments
beside it.

Nothing is computed anew and no model is called: what nobody measured is said to be unmeasured, with the
command that measures it.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal.artefacts import read_json
from judgecal.errors import InputError, listed
from judgecal.experiment.agreement import AgreementResult, JudgeEntry
from judgecal.experiment.folder import Experiment, kept_judges, read_config
from judgecal.judges.suite import load_suite
from judgecal.records import Estimate, Headline, Result, as_plain
from judgecal.report import charts
from judgecal.report.document import (
    Bullets,
    Document,
    Folded,
    Hundred,
    Ladder,
    Lines,
    Section,
    section,
    table,
)
from judgecal.report.html import Report, rendered
from judgecal.report.judges_headline import use
from judgecal.report.judges_sections import slice_name
from judgecal.report.select import select_document
from judgecal.report.wording import DASH, between, count, money, percent, seconds, sentence
from judgecal.selection.lock import Lock, load_lock
from judgecal.selection.select_result import SelectResult
from judgecal.stats.metrics import metric_facts
from judgecal.workspace import Workspace

_FOOT = (
    "Made from the lock and the experiments beside it: we called no model and computed no number again, and "
    "this page loads nothing from elsewhere."
)
_GATES = 10  # that a table shows, the newest first
_FAILED = {"fail": "it failed its last gate", "changed": "by its last gate it is another judge"}
_COLOURS = {"use": "#1a7f37", "pass": "#1a7f37", "triage only": "#8a5a00", "too few": "#57606a"}
_WIDE = 7  # pixels a character of the badge


@dataclass(frozen=True, slots=True)
class GateSince:
    """A gate of the lock: when (UTC, ISO 8601), what it decided, and the deciding metric then."""

    at: str
    decision: str
    now: Estimate | None = None


@dataclass(frozen=True)
class LockCard(Result):
    """A lock with its selection, the scores that it was chosen from, and its gates, the oldest first."""

    path: Path
    lock: Lock
    selected: SelectResult | None = None
    scored: AgreementResult | None = None
    gates: tuple[GateSince, ...] = ()
    prompt: str | None = None

    @cached_property
    def headline(self) -> Headline:
        """What the selection says of the judge; where the last gate did not pass, that goes before."""
        judge, following = self.lock.judge, f"judgecal gate --lock {shlex.quote(str(self.path))}"
        if self.selected is not None:
            headline = select_document(self.selected).headline
        elif not self.lock.confirmed_on_test:
            what = f"{judge} was taken, though not shown to beat the best constant."
            headline = Headline("none", what, chip="none")
        else:
            chip, what = use(judge, None, self.lock.margin, "answers")
            headline = Headline("use", what, chip=chip)
        last = self.gates[-1].decision if self.gates else ""
        if last in _FAILED:
            what = f"Do not use {judge}: {_FAILED[last]}."
            headline = Headline(last, what, headline.because, chip=last)
        return dataclasses.replace(headline, unknown=(), next=following)

    @property
    def agreement(self) -> Estimate:
        """The deciding metric on test, as production applies the verdicts."""
        return self.lock.applied[self.lock.metric]

    def written(self, value: Estimate | None) -> str:
        """An estimate of the deciding metric with its interval."""
        return DASH if value is None else charts.metric_text(value, self.lock.metric, self.lock.gold.scale)

    @property
    def floor(self) -> Estimate | None:
        """The agreement of the best constant on the same test items."""
        return None if self.selected is None else self.selected.floor

    @property
    def ceiling(self) -> dict[str, float | None]:
        """Each person beside the others, on the items that they share."""
        beside = None if self.selected is None else self.selected.stand_in
        return {} if beside is None else {name: rater.person for name, rater in beside.raters.items()}

    @property
    def entry(self) -> JudgeEntry | None:
        """The judge among those that it was chosen from."""
        judges = () if self.scored is None else self.scored.judges
        return next((judge for judge in judges if judge.judge == self.lock.judge), None)

    @property
    def slices(self) -> tuple[Any, ...] | None:
        """The slices that stand out; None where nobody looked."""
        looked = () if self.scored is None else self.scored.slices or ()
        ours = [entry for entry in looked if entry.judge == self.lock.judge]
        return tuple(entry for entry in ours if entry.stands_out) if ours else None

    @cached_property
    def hundred(self) -> Hundred | None:
        """What it does with a hundred answers like those of test; None without a pass mark."""
        rates = {metric_facts(name).name: rate for name, rate in self.lock.applied.items()}
        right = rates.get("prevalence")
        if right is None or right.value is None or not {"tpr", "tnr"} <= rates.keys():
            return None
        return charts.hundred(
            self.lock.judge, right.value, charts.complement(rates["tpr"]), charts.complement(rates["tnr"])
        )

    @property
    def voids(self) -> tuple[str, ...]:
        """What makes the card void, a sentence each."""
        model = self.lock.model
        code = "another version of its code"
        made = code if model is None else f"another model than {model.model_id or model.id}, another prompt"
        gold, systems = self.lock.gold, listed([*self.lock.gold.systems])
        unlike = f"questions, answers or systems unlike those of {gold.set}{f' ({systems})' * bool(systems)}"
        return made, unlike, "a gate that fails or finds another judge"

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """What nobody measured, each with the command that does."""
        judge, gold, entry = shlex.quote(self.lock.judge), self.lock.gold.set, self.entry
        selected = self.selected is not None
        missing = {
            "what it was chosen from: its selection is not in this workspace": not selected,
            f"what people reach (judgecal gold label {gold} --raters a,b)": selected and not self.ceiling,
            f"where it fails (judgecal score --gold {gold} --judge {judge})": self.slices is None,
            f"probes (judgecal probe --gold {gold} --judge {judge})": not self.lock.probes,
            "whether it agrees with itself: it was locked without further calls": not self.lock.calls,
            "its cost": entry is None or entry.usd_per_1k is None,
            "gates (the next command)": not self.gates,
        }
        return tuple(what for what, is_missing in missing.items() if is_missing)

    def as_json(self) -> dict[str, Any]:
        """Return the card's own fields as a dict, the JSON object of the contract."""
        entry, on = self.entry, self.selected.confirmed_on if self.selected else None
        squares = self.hundred.squares() if self.hundred else ()
        return {
            "lock": str(self.path),
            "judge": self.lock.judge,
            "chip": self.headline.chip,
            "sentence": self.headline.sentence,
            "agreement": as_plain(self.lock.applied),
            "ceiling": self.ceiling,
            "floor": as_plain(self.floor),
            "hundred": {outcome.kind: n for outcome, n, _ in squares} or None,
            "slices": as_plain(self.slices),
            "probes": [
                {"family": family, "n": probes.n, "broken": as_plain(probes.broken)}
                for family, probes in self.lock.probes.items()
            ],
            "flip_rate": as_plain(self.lock.noise.flip_rate) if self.lock.calls else None,
            "usd_per_1k": entry and entry.usd_per_1k,
            "latency_s": as_plain(entry and entry.latency_s),
            "gold": as_plain(on or self.lock.gold),
            "voids": list(self.voids),
            "gates": [{"at": gate.at, "decision": gate.decision} for gate in self.gates],
            "unmeasured": list(self.unmeasured),
        }


def card_of(path: Path, workspace: Workspace) -> LockCard:
    """Read a LockCard from the path of a lock and a Workspace; a changed lock is refused (InputError)."""
    lock, selected, scored, prompt = load_lock(path), None, None, None
    for experiment in _experiments(workspace, "select"):
        if read_json(experiment.summary, absent="is gone").get("lock_sha256") == lock.sha256:
            selected = experiment.read_summary(SelectResult)
    if selected is not None and (workspace.experiments / selected.chosen_from / "summary.json").is_file():
        chosen_from = Experiment(workspace.experiments / selected.chosen_from, {})
        judges = kept_judges(chosen_from)
        prompt = judges[lock.judge].messages if lock.judge in judges else None
        scored = chosen_from.read_summary(AgreementResult)
    gates = list[GateSince]()
    for experiment in _experiments(workspace, "gate"):
        if experiment.config.get("lock") == lock.sha256:
            result = read_json(experiment.summary, absent="is gone")
            now = (result.get("now_calibrated") or result.get("now") or {}).get(lock.metric)
            at = f"{experiment.last_written:%Y-%m-%dT%H:%M:%SZ}"
            gates.append(GateSince(at, str(result.get("decision")), Estimate(**now) if now else None))
    return LockCard(path, lock, selected, scored, tuple(sorted(gates, key=lambda gate: gate.at)), prompt)


def _experiments(workspace: Workspace, command: str) -> Iterator[Experiment]:
    """The finished experiments of a command."""
    mark = f'command = "{command}"'.encode()
    for path in sorted(workspace.experiments.glob("*/experiment.toml")):
        if mark in path.read_bytes() and path.with_name("summary.json").is_file():
            yield Experiment(path.parent, read_config(path.parent))


# --- as it is shown


def card_document(card: LockCard) -> Document:
    """Lay out a LockCard, the card of a judge, as a Document."""
    lock, value, on = card.lock, card.agreement, card.selected.confirmed_on if card.selected else None
    metric, scale = lock.metric, lock.gold.scale
    who = {"project": ", labelled by the project itself", "people": ", labelled by people"}
    about = (
        f"Locked {lock.locked_at[:10]}; test of {lock.gold.set}@{lock.gold.sha256[:12]}: "
        f"{count(value.n_expected)} {on.noun if on else 'answers'} to {count(value.n_groups)} questions, "
        f"{count(value.n_unscored)} unscored{who.get(on.labels_by, '') if on else ''}"
    )
    floor = charts.metric_row("the best constant", card.floor, metric, scale) if card.floor else None
    rung = charts.metric_row(lock.judge, value, metric, scale, strong=True)
    ladder = Ladder(charts.axis_of(metric), [rung], floor, foot=floor.value.value if floor else None)
    note = f"Line: {value.level:.0%} interval, on test."
    return Document(
        f"Judge card: {lock.judge}",
        about,
        card.headline,
        [*_sections(card)],
        run_lines=(f"lock: {card.path} (sha256 {lock.sha256[:12]})",),
        foot=_FOOT,
        data={"result": card.as_json()},
        picture=charts.ladder_picture(ladder, "How far up the ladder is it?", note=note),
        hundred=card.hundred,
    )


def _sections(card: LockCard) -> Iterator[Section]:
    lines = [sentence(line) for line in _lines(card)]
    what = "Every number is of the lock, or of an experiment beside it."
    trust = section("trust", "What it may be trusted with", what, Bullets(lines, short=True))
    yield dataclasses.replace(trust, card=True)
    if card.gates:
        yield _gate_section(card)
    rejected = card.selected.rejected if card.selected else ()
    yield section(
        "chosen",
        "What it was chosen from",
        "Why the others were not taken.",
        f"Chosen from {card.selected.chosen_from}." if card.selected else None,
        (f"Not taken: {judge.judge}: {sentence(judge.why)}" for judge in rejected),
        bool(card.prompt) and [Folded("Its prompt", [Lines((card.prompt or "").splitlines())])],
    )


def _lines(card: LockCard) -> Iterator[str]:
    """What it says of the judge, a line each."""
    entry = card.entry
    if card.hundred is not None:
        yield card.hundred.says.removesuffix(".")
    if card.ceiling:
        reach = between([*card.ceiling.values()])
        yield f"Ceiling: people reach {reach} with each other, on the items that they share"
    if card.slices is not None:
        named = [f"{slice_name(entry)} ({percent(entry.error.value)} wrong)" for entry in card.slices]
        yield f"It fails more often on {', '.join(named)}" if named else "No slice of answers stands out"
    fooled = {name: probes.broken for name, probes in card.lock.probes.items() if probes.broken.value}
    if card.lock.probes:
        worst = sorted(fooled, key=lambda family: -(fooled[family].value or 0.0))
        broken = ", ".join(f"{family} {charts.in_percent(fooled[family])}" for family in worst)
        yield f"Probes that break it: {broken or 'none'}, of {len(card.lock.probes)} families"
    if card.lock.calls:
        flips = charts.in_percent(card.lock.noise.flip_rate)
        yield f"Two calls of one item fall on different sides in {flips}"
    if entry is not None and entry.usd_per_1k is not None:
        took = seconds(entry.latency_s.p95) if entry.latency_s else DASH
        yield f"1,000 judgements cost {money(entry.usd_per_1k)} USD; 95% come within {took}"
    if card.gates:
        decided = Counter(gate.decision for gate in card.gates)
        shares = ", ".join(f"{n:,} {decision}" for decision, n in decided.items())
        last = card.gates[-1]
        yield f"Gates since {card.gates[0].at[:10]}: {shares}; the last, {last.at[:10]}: {last.decision}"
    if card.unmeasured:
        yield f"Unmeasured: {'; '.join(card.unmeasured)}"
    yield f"Void with {'; '.join(card.voids)}"


def _gate_section(card: LockCard) -> Section:
    """The gates since the lock, a line each, the newest ones."""
    metric, scale = card.lock.metric, card.lock.gold.scale
    drawn = [
        charts.metric_row(gate.at[:10], gate.now, metric, scale, strong=gate.decision != "pass")
        for gate in card.gates[: -_GATES - 1 : -1]
        if gate.now is not None and gate.now.value is not None
    ]
    columns: Any = {
        "gate": lambda gate: gate.at,
        "decision": lambda gate: gate.decision,
        metric: lambda gate: card.written(gate.now),
    }
    newest = table(card.gates[: -_GATES - 1 : -1], columns, left=2)
    axis = charts.Axis(charts.axis_of(metric))
    picture = charts.interval_picture(drawn, axis, title="Agreement at each gate", numbers=newest)
    what = "The judge called again: has it drifted?"
    return section("gates", "Gates since then", what, picture if len(drawn) > 1 else newest)


def _suite_document(cards: Mapping[str, LockCard], name: str) -> Document:
    """The cards of a suite's locks, a column a judge."""
    rows: dict[str, Any] = {
        "judge": lambda card: card.lock.judge,
        "may be used for": lambda card: card.headline.chip,
        "agreement on test": lambda card: card.written(card.agreement),
        "answers": lambda card: count(card.agreement.n),
        "of a hundred": lambda card: card.hundred.says.partition(": ")[2] if card.hundred else DASH,
        "last gate": lambda card: card.gates[-1].decision if card.gates else DASH,
        "unmeasured": lambda card: count(len(card.unmeasured)),
    }
    columns: dict[str, Any] = {"": lambda row: row[0]}
    columns |= {column: lambda row, card=card: row[1](card) for column, card in cards.items()}
    able = sum(card.headline.chip in ("use", "triage only") for card in cards.values())
    because = tuple(card.headline.sentence for card in cards.values())
    what = f"{able} of the {len(cards):,} locked judges of {name} may be used."
    headline = Headline("card", what, because, next=next(iter(cards.values())).headline.next)
    grid = section("judges", "Judges", "A column a judge.", table(rows.items(), columns, short=True))
    result = {"suite": name, "judges": {column: card.as_json() for column, card in cards.items()}}
    return Document(f"Judge cards: {name}", f"suite {name}", headline, [grid], foot=_FOOT, data=result)


def card_report(path: Path, workspace: Workspace) -> Report:
    """Return a Report on a lock or suite (`.toml`), from its path and a Workspace; `svg` is its badge."""
    if path.suffix != ".toml":
        card = card_of(path, workspace)
        return Report(card_document(card), card.lock.locked_at[:10])
    suite = load_suite(str(path), workspace=workspace)
    cards = {judge.name: card_of(judge.lock, workspace) for judge in suite.judges if judge.lock is not None}
    if not cards:
        raise InputError(f"{path}: no judge of this suite is a lock: judgecal select writes one")
    return Report(_suite_document(cards, suite.name))


def badge(card: LockCard) -> str:
    """Draw a LockCard as a one-line SVG text: `judge: triage only, 84.9% [82.3, 87.0]`."""
    text, colour = f"{card.headline.chip}, {charts.in_percent(card.agreement)}", card.headline.chip
    sizes = {
        "left": 12 + 5 * _WIDE,
        "room": 12 + len(text) * _WIDE,
        "colour": _COLOURS.get(colour, "#b42318"),
    }
    return rendered("badge.svg", judge=card.lock.judge, text=text, **sizes).strip()
