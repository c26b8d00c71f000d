"""Decide between two judges on rows without labels, from where they differ and a few labels there; what
people label: the items of a set or of an experiment, and draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson

from judgecal.artefacts import SCHEMA, read_json, validated
from judgecal.commands import wing
from judgecal.engine.log import PRIVATE
from judgecal.errors import InputError, refuse, unknown_name
from judgecal.experiment.folder import Experiment, read_config
from judgecal.experiment.looks import DRAW, Look, look_at_test
from judgecal.experiment.stored import find_experiment
from judgecal.experiment.trials import stored_rows
from judgecal.goldset import Card, GoldSet, load_gold
from judgecal.goldset.draw import DrawStratum, LabelSample, allocate, draw, drawn_card
from judgecal.goldset.write import name_problems
from judgecal.records import Estimate, Item, digest
from judgecal.scale import Label
from judgecal.stats.calibration import Calibration
from judgecal.stats.disagreement import (
    MACRO,
    KnownClasses,
    Outlook,
    VerdictPairs,
    draw_strata,
    labels_needed,
    loss_on_labels,
    worst_loss,
)
from judgecal.stats.intervals import MIN_GROUPS
from judgecal.stats.metrics import amount_of
from judgecal.stats.prediction_powered import LabelledRows
from judgecal.stats.sample import Floats, Ints, codes_of
from judgecal.workspace import Workspace, replacing, shown

RowVerdicts = Sequence[Label | None]
LEAST_DRAWN = 10
"""Fewer labels than this decide nothing."""
ROWS = "rows.json"


@dataclass(frozen=True, slots=True)
class Differ:
    """How far two judges differ on rows without labels."""

    n: int
    n_groups: int
    share: Estimate
    worst_loss: Estimate | None  # one-sided; None where nothing bounds it


@dataclass(frozen=True, slots=True, kw_only=True)
class OnRows:
    """What rows, and labels of some of them, say of what a candidate loses against a reference."""

    reference: str
    candidate: str
    differ: Differ
    loss: Estimate | None  # on the labels, two-sided; None without labels
    loss_below: float | None  # one-sided at the level
    n_labels: int
    labels_needed: int | None  # about how many in all, drawn where they differ; None where none would do
    labels_at_random: int | None  # the same drawn at random
    decided_by: Literal["rows", "labels"] | None  # None: neither decides
    decision: Literal["pass", "fail"] | None
    why: str
    look: str | None  # which decision on the draw this is, in words
    labels: str | None = None  # the set that they are in

    @property
    def more(self) -> int | None:
        """Labels beside those that there are; None where it is decided, or where none would do."""
        if self.decision is not None or self.labels_needed is None:
            return None
        left = self.labels_needed - self.n_labels
        return max(LEAST_DRAWN, left if left > 0 else self.n_labels // 2)  # as planned, or half as many again


@dataclass(frozen=True)
class UnlabelledRows:
    """Items without labels, and the verdicts of an old and a new judge, each through its own map."""

    gold: GoldSet
    metric: str
    judges: tuple[str, str]
    items: tuple[Item, ...]
    verdicts: tuple[RowVerdicts, RowVerdicts]
    # labelled items of train and dev with the same judges' verdicts, for the mix of labels and for planning
    known: tuple[Item, ...]
    of_known: tuple[RowVerdicts, RowVerdicts]
    where: str = ""  # what the rows are, in words
    n_left_out: int = 0  # rows on questions that a judge was trained on

    @classmethod
    def of(
        cls,
        gold: GoldSet,
        metric: str,
        judges: tuple[str, str],
        maps: tuple[Calibration | None, Calibration | None],
        known: tuple[Sequence[Item], Sequence[RowVerdicts]],
        rows: Iterable[tuple[Item, RowVerdicts]],
        *,
        where: str,
        trained: frozenset[str] = frozenset(),
    ) -> UnlabelledRows | None:
        """Return UnlabelledRows or None: GoldSet, metric, judges, their maps, known items, rows, `where`.

        Each text once, without rows on questions that a judge was `trained` on (groups of the set; a table
        may know them by their texts); None where too little is known.
        """
        if gold.n_groups(known[0]) < MIN_GROUPS:
            return None
        seen = trained | {item.question.strip() for item in gold.items if item.group in trained}
        items, once, n_left_out = dict[str, Item](), list[RowVerdicts](), 0
        for item, verdicts in rows:
            if seen & {item.group, item.question.strip()}:
                n_left_out += 1
                continue
            first = items.setdefault(item.item_id, item)
            if first is not item and first.sha != item.sha:
                raise InputError(f"{where}: other texts have one id, {item.item_id!r}: leave --col item= out")
            once += [verdicts] if first is item else []
        if not once:
            return None
        old, new, *of_known = (
            verdicts if calibration is None else [*map(calibration.apply, verdicts)]
            for sides in (zip(*once, strict=True), known[1])
            for calibration, verdicts in zip(maps, sides, strict=True)
        )
        of_items = tuple(items.values()), (old, new), tuple(known[0]), (of_known[0], of_known[1])
        return cls(gold, metric, judges, *of_items, where, n_left_out)

    @cached_property
    def pair(self) -> VerdictPairs:
        a, b = map(_numbers, self.verdicts)
        groups = codes_of([item.group for item in self.items], len(self.items))
        return VerdictPairs(a, b, groups, self.gold.scale, self.metric)

    @cached_property
    def outlook(self) -> tuple[Outlook, KnownClasses]:
        """What the labelled items let expect, and the mix of their labels."""
        labels = _numbers([self.gold.labels[item.item_id] for item in self.known])
        groups = [item.group for item in self.known]
        a, b = map(_numbers, self.of_known)
        two = VerdictPairs(a, b, codes_of(groups, len(labels)), self.gold.scale, self.metric)
        return Outlook.of(two, labels), KnownClasses(two.class_of(labels), two.groups)

    @cached_property
    def strata(self) -> tuple[Ints, Floats]:
        """Strata to draw labels by, and their spreads."""
        return draw_strata(self.pair, self.outlook[0].shares)

    def draws(self) -> list[DrawStratum]:
        """Return the list of DrawStratum, with their items and spreads, from which `gold sheet` draws."""
        (codes, spreads), differ, strata = self.strata, self.pair.differ, []
        for number, spread in enumerate(spreads.tolist()):
            at = np.flatnonzero(codes == number)
            name = f"they {'differ' if differ[at].any() else 'agree'}, {number + 1}"
            strata.append(DrawStratum(name, tuple(self.items[place] for place in at.tolist()), spread))
        return strata

    def write(self, folder: Path) -> None:
        """Write its own rows in their strata into a folder, so that `gold sheet` can draw from them."""
        title = f"{self.where} where {', '.join(self.judges)} differ"
        kept = {"schema": SCHEMA, "where": title, "strata": self.draws()}
        with replacing(folder / ROWS) as draft:
            draft.chmod(PRIVATE)  # before texts of production stand in it, as in the journal
            draft.write_bytes(orjson.dumps(kept))

    def labelled(self, gold: GoldSet) -> LabelledRows:
        """Return the LabelledRows that a drawn GoldSet labels: labels, and chances to be drawn.

        Of a stratum that is labelled in part, that part counts as drawn: sheets show a draw in random order.
        """
        place = {(item.item_id, item.sha): at for at, item in enumerate(self.items)}
        chance = {item.item_id: item.inclusion_probability or 0.0 for item in gold.items}
        done = [item for item in gold.items if item.item_id in gold.labels]
        if not done or not all(chance.values()):
            n = sum(chance[item.item_id] > 0.0 for item in done)
            raise InputError(
                f"gold set {gold.name}: labels that decide are of rows drawn with a recorded chance "
                f"(inclusion_probability), and {n} of its {len(gold.items)} items have both: import "
                "the filled sheet of judgecal gold sheet EXPERIMENT --strata disagreement"
            )
        lost = [item.item_id for item in done if (item.item_id, item.sha) not in place]
        n_rows = sum(1.0 / share for share in chance.values())  # each had a chance: those drawn stand for all
        if lost or abs(n_rows - len(self.items)) > 0.5:
            raise InputError(
                f"{gold.name} was drawn from {n_rows:,.0f} rows, and {len(lost)} of its labelled items "
                f"are none of these {len(self.items):,}: name the table that it was drawn from with --on, as "
                "it was then"
            )
        n_of, here = Counter(chance.values()), Counter(chance[item.item_id] for item in done)
        chances = [share * here[share] / n_of[share] for share in (chance[item.item_id] for item in done)]
        at = np.array([place[item.item_id, item.sha] for item in done], dtype=np.int64)
        return LabelledRows(at, _numbers([gold.labels[item.item_id] for item in done]), np.array(chances))

    def at_level(self, experiment: Experiment, gold: GoldSet | None) -> dict[str, Any]:
        """Return a dict, arguments of `decide`, from an Experiment (look, level) and a GoldSet or None."""
        if gold is None:
            return {"level": Look(1, new=True).level}
        drawn, done = self.labelled(gold), [item for item in gold.items if item.item_id in gold.labels]
        by = f"{experiment.config['command']} where judges differ by {self.metric}"
        shas, judges = [item.sha for item in self.items], dict[str, str]()
        for name, verdicts in zip(self.judges, self.verdicts, strict=True):
            judges[name] = digest(sorted(zip(shas, map(str, verdicts), strict=True)))[:16]
        seen: dict[str, Any] = {"experiment": experiment.slug, "kind": DRAW, "by": by, "judges": judges}
        look = look_at_test(experiment.folder.parent, gold, done, **seen)
        sentence = look.sentence(gold.name, labels="drawn labels")
        return {"drawn": drawn, "look": sentence, "labels": gold, "level": look.level}

    def decide(
        self,
        *,
        margin: float,
        level: float,
        drawn: LabelledRows | None = None,
        look: str | None = None,
        labels: GoldSet | None = None,
    ) -> OnRows:
        """Return OnRows: whether the candidate loses less than a margin, decided at a confidence level."""
        two, (outlook, classes), (reference, candidate) = self.pair, self.outlook, self.judges
        worst = worst_loss(two, classes, level=level)
        share = replace(two.share_differing(level=level), n_expected=two.n + self.n_left_out)
        differ = Differ(two.n, len(np.unique(two.groups)), share, worst)
        on = None if drawn is None else loss_on_labels(two, drawn, level=level)
        strata, spreads = self.strata
        sizes = np.bincount(strata).tolist()
        needed = partial(labels_needed, two, outlook, margin=margin, level=level)
        where_differ = needed(
            strata=strata, sizes=lambda n: allocate(sizes, spreads.tolist(), n, at_large=0.0)
        )
        at_random = needed(strata=np.zeros_like(strata), sizes=lambda n: [n])
        decided: tuple[Literal["rows", "labels"] | None, Literal["pass", "fail"] | None] = (None, None)
        if on is not None and on.upper is not None and on.loss.low is not None and on.loss.low > margin:
            decided = "labels", "fail"
        elif on is not None and on.upper is not None and on.upper < margin:
            decided = "labels", "pass"
        elif worst is not None and worst.high is not None and worst.high < margin:
            decided = "rows", "pass"
        rows = OnRows(
            reference=reference,
            candidate=candidate,
            differ=differ,
            loss=None if on is None else on.loss,
            loss_below=None if on is None else on.upper,
            n_labels=0 if drawn is None else len(drawn.at),
            labels_needed=where_differ,
            labels_at_random=at_random,
            decided_by=decided[0],
            decision=decided[1],
            why="",
            look=look,
            labels=None if labels is None else labels.name,
        )
        return replace(rows, why=self._why(rows, margin))

    def _why(self, on: OnRows, margin: float) -> str:
        """What the rows and their labels come to, and how many labels go on, in a sentence."""
        n_rows, n = on.differ.n, round((on.differ.share.value or 0.0) * on.differ.n)
        out = f" ({self.n_left_out:,} rows left out)" * bool(self.n_left_out)
        why = f"they differ on {n:,} of {n_rows:,} rows ({100.0 * n / n_rows:.1f}%){out}"

        def amount(loss: float | None) -> str:
            return amount_of(max(loss or 0.0, 0.0), self.metric, str(self.gold.scale))

        allowed, loss, worst = f", and we allow {amount(margin)}", on.loss, on.differ.worst_loss
        if loss is not None and (loss.low is None or loss.high is None):
            why += f"; the labels do not tell: {loss.reason}"
        elif loss is not None:
            end = f"least {amount(loss.low)}" if on.decision == "fail" else f"most {amount(on.loss_below)}"
            why += f"; on {on.n_labels:,} labels {on.candidate} loses at {end}{allowed}"
        if on.decided_by == "rows" and worst is not None:
            sure = self.gold.card.sampling == "random" or self.metric not in MACRO
            mix = "" if sure else "if good and bad answers are as common as in the gold set, "
            why += f": {mix}whatever people say of these, {on.candidate} loses at most {amount(worst.high)}"
            return why + allowed
        if on.decision is not None or on.more is None:
            return why if on.decision else f"{why}; labels of all of them would hardly settle it"
        more = f"{on.more:,}{' more' * bool(on.n_labels)} labels, mostly on those, would settle it"
        return f"{why}; about {more}"


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Rows without labels that a migration wrote down, in strata to draw from."""

    where: str  # what they are, in words
    strata: tuple[DrawStratum, ...]


def _numbers(labels: Sequence[Label | None]) -> Floats:
    """Labels or verdicts as an array, NaN where there is none."""
    return np.array([np.nan if label is None else label for label in labels], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class LabelSource:
    """Items with the set that their questions are of."""

    gold: GoldSet
    items: tuple[Item, ...]
    to: str  # the set that the labels go into: `gold`, or a new one where the answers are an answerer's


def find_source(name: str, workspace: Workspace, *, labelling: bool = False) -> LabelSource:
    """Return the LabelSource, Items to label, for a name (of a set or experiment) in a Workspace.

    Of an experiment the items are those that its judges judged, as they are in the set today.
    """
    folders = [workspace.experiments / name, Path(name)]
    folder = next((folder for folder in folders if (folder / "experiment.toml").is_file()), None)
    sets = workspace.gold_sets
    if name in sets or folder is None:
        if name not in sets and not Path(name).is_dir():
            made = sorted(path.parent.name for path in workspace.experiments.glob("*/experiment.toml"))
            raise unknown_name("gold set or experiment", name, [*sets, *made])
        gold = load_gold(name, workspace=workspace, labelling=labelling)
        return LabelSource(gold, gold.items, gold.name)
    config = read_config(folder)
    set_name = config.get("gold", {}).get("set")
    if not isinstance(set_name, str):
        raise InputError(f"{folder}: its experiment.toml names no gold set, so it has no items for a sheet")
    if "table" in config:
        keep = f"judgecal report {name} ends with the command that imports it"
        raise InputError(f"{name} is of a table that is no gold set yet: {keep}")
    gold = load_gold(set_name, workspace=workspace)
    if config.get("command") in ("answer", "evaluate"):  # new items, which labels make a gold set of
        return LabelSource(gold, wing("answered items")(folder), folder.name)
    judged = {(row.item_id, row.item_sha) for row in stored_rows(folder / "judgements.jsonl").latest.values()}
    items = tuple(item for item in gold.items if (item.item_id, item.sha) in judged)
    if not items:
        raise InputError(
            f"{folder}: it holds no judgement of an item of gold set {set_name!r} as it is today"
        )
    return LabelSource(gold, items, gold.name)


def answers_sample(source: LabelSource) -> LabelSample:
    """Return all answers of a LabelSource, an answerer's experiment, as a LabelSample."""
    about = f"answers of experiment {source.to}"
    card = Card(source.to, source.gold.scale, version="1", source=about, anchors=source.gold.card.anchors)
    return LabelSample(card, source.items, ())


def draw_of(
    source: str, workspace: Workspace, *, n: int | None, name: str, seed: int, labels: str | None = None
) -> LabelSample:
    """Draw n of the rows that a migration, an experiment's name in a Workspace, wrote down: a LabelSample.

    `name`: the new set; `labels`: the set of what was drawn before, which the new ones join.
    """
    if n is None or n < LEAST_DRAWN:
        raise InputError(f"--strata draws: say how many items by -n, {LEAST_DRAWN} or more")
    workspace.require_writable("gold sheet --strata")
    experiment = find_experiment(workspace, source)
    path = experiment.folder / ROWS
    why = "no rows without labels were kept: name some by judgecal migrate --on FILE"
    kept = validated(KeptRows, read_json(path, absent=why), shown(path))
    before = None if labels is None else load_gold(labels, workspace=workspace)
    problems = [] if before else name_problems(name, workspace=workspace, replace=False)
    done = {item.item_id: item.inclusion_probability for item in before.items} if before else {}
    drawn_of = [[done[i.item_id] for i in part.items if i.item_id in done] for part in kept.strata]
    if sum(map(len, drawn_of)) < len(done) or any(len({*chances}) > 1 for chances in drawn_of):
        problems.append(f"--labels {labels}: rows or judges have changed: leave it out for a new draw")
    refuse(problems)
    drawn = draw(kept.strata, n, seed=seed, before=done, at_large=0.0)
    counts = ", ".join(f"{stratum}: {size} of {there}" for stratum, (size, there) in drawn.counts.items())
    if before is not None:
        joined = f"they join gold set {before.name}, whose {len(done)} items have new inclusion_probabilities"
        notes = (f"drawn: {counts}", joined)
        return LabelSample(before.card, drawn.items, notes, before=before, earlier=drawn.earlier)
    gold = load_gold(experiment.config["gold"]["set"], workspace=workspace)
    card = drawn_card(name, gold.scale, f"drawn from {kept.where} ({counts}), seed {seed}", "stratified")
    like_gold = {key: getattr(gold.card, key) for key in ("licence", "anchors", "splits")}
    waits = f"the items and their inclusion_probability are gold set {name}, which waits for the labels"
    waits += f"; once it has them, the command that made {source} takes --labels {name}"
    return LabelSample(replace(card, **like_gold), drawn.items, (f"drawn: {counts}", waits))
