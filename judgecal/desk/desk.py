"""The desk: what raters see, what becomes of their labels, and how they go back; a page of one set for all
its raters.

Nothing here knows of HTTP: `server` calls `act` with what a page sent.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import random
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from judgecal.desk.label_journal import LabelEntry, LabelJournal
from judgecal.desk.label_queue import LabelQueue, Next, Order
from judgecal.engine.log import now
from judgecal.errors import JudgecalError, visible
from judgecal.goldset import GOLD, GoldSet
from judgecal.goldset.card import plain_label
from judgecal.goldset.labels import read_label
from judgecal.goldset.pairs import by_side, left_of
from judgecal.goldset.write import RatingKey, RatingsFile
from judgecal.records import CANNOT_TELL, Item, Rating, well_formed
from judgecal.scale import Label

if TYPE_CHECKING:
    from judgecal.desk.progress import Timing

_LONGEST_NOTE = 4_000  # characters
_PAUSE_S = 3600.0  # longer than that nobody looks at an item: the page was left open


class Refusal(JudgecalError):
    """What a page sent cannot be done; `status` is HTTP's. Nothing has been written."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Labelling:
    """What is to be labelled, by whom, and how."""

    gold: GoldSet
    items: Sequence[Item]  # of the set, those that are asked for
    raters: Sequence[str]
    overlap: float = 1.0  # this and the next three as the queue takes them
    order: Order = "random"
    seed: int = 0
    second: int = 0
    drafts: Mapping[str, Label | None] | None = None  # item id -> a machine's verdict shown beside the item
    # item id -> what raters said, shown without their names to whoever adjudicates
    opinions: Mapping[str, Sequence[Rating]] | None = None
    since: str | None = None  # labels before that moment (UTC, ISO 8601) are given anew

    def left(self, item: Item, rater: str) -> Literal["A", "B"] | None:
        """Which answer of a pair a rater sees on the left."""
        return left_of(item, self.gold.scale, f"{self.seed}:{rater}")

    @property
    def adjudicates(self) -> bool:
        """Whether the labels settle what raters said before."""
        return self.opinions is not None


@dataclass
class _Rater:
    """One rater at the desk: who acts, one act at a time; what can be taken back; what is before the eyes."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    # each with what stood before it
    acts: list[tuple[LabelEntry, Rating | None]] = field(default_factory=list)
    shown: tuple[str, float] = ("", 0.0)


class Desk:
    """The desk of one set, from opening to closing.

    Raises:
        BusyError: another process serves the set.
    """

    def __init__(self, task: Labelling) -> None:
        self.task, self.gold = task, task.gold
        self.journal = LabelJournal(task.gold.path, task.gold.scale)
        try:
            self.file = RatingsFile(task.gold)
            # What an earlier desk wrote into its journal and, killed, not into the ratings.
            known = {item.item_id: item for item in task.gold.items}
            acts = (entry for entry in self.journal.unsaved if entry.turn == 1 and _is_of(entry, known))
            self.file.put({entry.key: entry.rating for entry in acts})
        except BaseException:
            self.journal.close()
            raise
        self._items = {item.item_id: item for item in task.items}
        self.queue = LabelQueue(
            [*self._items],
            task.raters,
            overlap=task.overlap,
            order=task.order,
            seed=task.seed,
            second=task.second,
        )
        keys = random.SystemRandom().sample(range(len(self._items)), len(self._items))
        self._keys = dict(zip(self._items, map(str, keys), strict=True))  # ids may tell a system or a tag
        self._by_key = {key: item_id for item_id, key in self._keys.items()}
        self._raters = {rater: _Rater() for rater in task.raters}
        self._second: dict[RatingKey, Rating] = {}
        self._replay()
        self.rubric, self._rubric_sha = _rubric(task.gold)
        self._waiting: list[tuple[LabelEntry, Rating | None, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._behind: dict[RatingKey, Rating | None] = {}  # in the journal, and not yet in the ratings

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._restore()
            self.file.flush()
            self.journal.save()
        finally:
            self.journal.close()

    def _replay(self) -> None:
        """Who has labelled what, and what each may take back."""
        since, in_force = self.task.since, defaultdict[tuple[str, str, int], Rating | None](lambda: None)
        entries = [entry for entry in self.journal.entries if entry.rater in self._raters]
        known = {entry.key for entry in entries}
        for item_id, rater in self.file.ratings if since is None else ():  # by a sheet, say
            if rater in self._raters and (item_id, rater) not in known:
                self.queue.label(rater, item_id)
        for entry in entries:
            if not _is_of(entry, self._items) or (since is not None and entry.at < since):
                continue
            place = (*entry.key, entry.turn)
            acts = self._raters[entry.rater].acts
            if entry.undone and acts:
                acts.pop()
            elif not entry.undone:
                acts.append((entry, in_force[place]))
            in_force[place] = entry.rating
            self._note(entry, standing=entry.turn == 2 or entry.key in self.file.ratings)

    def _note(self, entry: LabelEntry, *, standing: bool = True) -> None:
        if entry.turn == 2:
            self._second.pop(entry.key, None)
            if entry.rating is not None:
                self._second[entry.key] = entry.rating
        noted = self.queue.label if standing and entry.rating is not None else self.queue.forget
        noted(entry.rater, entry.item_id, entry.turn)

    def seen(self) -> GoldSet:
        """The set as its labels stand now."""
        return dataclasses.replace(self.gold, ratings=tuple(self.file.ratings.values()))

    def timing(self) -> Timing:
        """How long items took, and what second looks said, by rater."""
        from judgecal.desk.progress import Timing

        seconds: dict[str, list[float]] = {rater: [] for rater in self._raters}
        for entry in list(self.journal.entries):  # this runs beside the loop
            if entry.rater in seconds and entry.item_id in self._items and entry.seconds is not None:
                seconds[entry.rater].append(entry.seconds)
        looks: dict[str, tuple[int, int]] = {}
        for key, second in list(self._second.items()):
            first, (n, same) = self.file.ratings.get(key), looks.get(key[1], (0, 0))
            looks[key[1]] = n + 1, same + (first is not None and first.label == second.label)
        return Timing(seconds, looks)

    @property
    def n_seen_to(self) -> int:
        """The items that somebody has labelled, or could not tell."""
        return len(set().union(*self.queue.done.values()))

    # --- what a page asks for

    async def act(self, rater: str, verb: str, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Do what a rater's page asks for, and give what it is to show.

        `next` shows the next item; `label` writes a label (or that the rater cannot tell) and shows the next
        item; `undo` takes the last label back and shows its item; `step` by -1 or 1 shows what the rater
        labelled before.

        Raises:
            Refusal: it cannot be done; nothing has been written.
        """
        async with self._raters[rater].lock:
            if verb == "label":
                await self._label(rater, sent)
            elif verb == "undo":
                if not (acts := self._raters[rater].acts):
                    raise Refusal(409, "There is nothing to take back.")
                last, before = acts[-1]
                place = Next(last.item_id, last.turn)
                await self._commit(self._entry(rater, place, before, undone=True), last.rating)
                return self._show(rater, place)
            elif verb == "step":
                done = [*self.queue.done[rater]]
                key = self._by_key.get(str(sent.get("item")), "")
                at = (
                    done.index(key)
                    if key in self.queue.done[rater] and sent.get("turn", 1) == 1
                    else len(done)
                )
                at = max(0, at + (1 if sent.get("by") == 1 else -1))
                if at < len(done):
                    return self._show(rater, Next(done[at]))
            return self._show(rater, self.queue.next(rater))

    async def _label(self, rater: str, sent: Mapping[str, Any]) -> None:
        item_id, turn = self._by_key.get(str(sent.get("item"))), sent.get("turn", 1)
        if item_id is None or turn not in (1, 2):
            raise Refusal(404, "This item is not here: load the page again.")
        rating = self._rating(rater, item_id, sent)
        before = (self._second if turn == 2 else self.file.ratings).get((item_id, rater))
        fresh = self.task.since is not None and item_id not in self.queue.done[rater]
        if before == rating and not fresh:  # what is confirmed anew is an act, or it would be asked again
            self.queue.label(rater, item_id, turn)
            return
        if before is not None and not fresh and sent.get("before") != _label_text(before, rating.shown_left):
            raise _elsewhere(before)
        shown_id, since = self._raters[rater].shown
        took = time.monotonic() - since
        seconds = round(took, 1) if shown_id == item_id and took < _PAUSE_S else None
        await self._commit(self._entry(rater, Next(item_id, turn), rating, seconds=seconds), before)

    def _rating(self, rater: str, item_id: str, sent: Mapping[str, Any]) -> Rating:
        label, reason, note = (sent.get(name) for name in ("label", "reason", "note"))
        if not all(text is None or isinstance(text, str) for text in (reason, note, label)):
            raise Refusal(422, "A label, a reason and a note are texts.")
        reason, note = (well_formed(text).strip() or None if text else None for text in (reason, note))
        if max(len(reason or ""), len(note or "")) > _LONGEST_NOTE:
            raise Refusal(422, f"A note has at most {_LONGEST_NOTE:,} characters.")
        value, left = None, self.task.left(self._items[item_id], rater)
        if label is None:
            if reason != CANNOT_TELL:
                raise Refusal(422, "No label: choose one, or say that you cannot tell.")
        elif reason == CANNOT_TELL or (reason and not self.task.adjudicates):
            raise Refusal(422, "This reason does not go with a label.")
        elif self.task.adjudicates and not reason:
            raise Refusal(422, "Say why: others will see the reason beside your label.")
        else:
            scale = self.gold.scale
            try:
                value = read_label(by_side(label, left), scale)
            except (ValueError, OverflowError) as error:
                why = f"That is not a label of the scale {scale}: {visible(str(error))}."
                raise Refusal(422, why) from None
        drafted = self.task.drafts is not None and self.task.drafts.get(item_id) is not None
        return Rating(item_id, rater, value, note, drafted, reason, self._rubric_sha, left)

    # --- what is written

    def _entry(self, rater: str, place: Next, rating: Rating | None, **more: Any) -> LabelEntry:
        at, sha = now("milliseconds"), self._items[place.item_id].sha
        return LabelEntry(place.item_id, rater, rating, turn=place.turn, at=at, item_sha=sha, **more)

    async def _commit(self, entry: LabelEntry, before: Rating | None) -> None:
        """On disk when this is over; acts that come at once share one trip. `before` is what it replaces."""
        written = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, before, written))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_waiting())
        await asyncio.shield(written)
        acts = self._raters[entry.rater].acts
        if entry.undone:
            acts.pop()
        else:
            acts.append((entry, before))
        self._note(entry)

    async def _write_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                stands = await asyncio.to_thread(self._write, [(entry, before) for entry, before, _ in batch])
            except (OSError, JudgecalError) as error:
                for *_, written in batch:
                    written.set_exception(Refusal(507, f"This label is not saved: {visible(str(error))}"))
                continue
            for (entry, _, written), other in zip(batch, stands, strict=True):
                if other is None:
                    written.set_result(None)
                    continue
                self._note(dataclasses.replace(entry, rating=other))
                if entry.undone:
                    self._raters[entry.rater].acts.pop()
                written.set_exception(_elsewhere(other))

    def _write(self, acts: Sequence[tuple[LabelEntry, Rating | None]]) -> list[Rating | None]:
        """Write acts, but for those whose item the rater labelled elsewhere meanwhile: what stands there."""
        self._restore()
        stands: list[Rating | None] = []
        for entry, before in acts:
            other = self.file.ratings.get(entry.key) if entry.turn == 1 else None
            stands.append(None if other in (before, entry.rating) else other)
        entries = [entry for (entry, _), other in zip(acts, stands, strict=True) if other is None]
        self.journal.append(entries)
        self._behind |= {entry.key: entry.rating for entry in entries if entry.turn == 1}
        self.file.put(self._behind)
        self._behind = {}
        return stands

    def _restore(self) -> None:
        """Put back what somebody else's write has taken out: it was read before a label of ours was there."""
        if self.file.reread():
            given = {entry.key: entry.rating for entry in self.journal.unsaved if entry.turn == 1}
            lost = {key: rating for key, rating in given.items() if rating and key not in self.file.ratings}
            self.file.put(lost)

    # --- what is shown

    def counts(self, rater: str, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Where a rater is at this moment, and whether the item that a page shows was labelled elsewhere."""
        done = self.queue.done[rater]
        counts = {"done": len(done), "left": self.queue.left(rater), "undo": bool(self._raters[rater].acts)}
        return {**counts, "elsewhere": self._by_key.get(str(sent.get("item"))) in done}

    def _show(self, rater: str, place: Next | None) -> dict[str, Any]:
        """What a label is given by: no id, system, tag or document; nothing in it acts."""
        counts = self.counts(rater, {})
        if place is None:
            return {**counts, "item": None}
        task, item, key = self.task, self._items[place.item_id], (place.item_id, rater)
        self._raters[rater].shown = (place.item_id, time.monotonic())
        texts: dict[str, Any] = {
            "question": visible(item.question),
            "references": list(map(visible, item.reference_answers)),
            "answer": "" if item.pair else visible(item.answer),
            "contexts": [visible(context.text) for context in item.contexts],
            "conversation": [[visible(turn.role), visible(turn.content)] for turn in item.conversation],
            "fields": [[visible(name), visible(text)] for name, text in item.fields.items()],
        }
        left = task.left(item, rater)
        if pair := item.pair and (item.pair.swapped() if left == "B" else item.pair):
            texts["answers"] = [visible(pair.answer_a), visible(pair.answer_b)]
        shown = {name: value for name, value in texts.items() if value or name == "answer"}
        shown |= {"key": self._keys[place.item_id], "turn": place.turn}
        mine = (self._second if place.turn == 2 else self.file.ratings).get(key)
        fresh = task.since is not None and place.item_id not in self.queue.done[rater]
        if mine is not None and not fresh:
            reason = None if mine.label is None else mine.reason
            shown["mine"] = {"said": _label_text(mine, left), "note": mine.note, "reason": reason}
        if task.drafts is not None and (draft := task.drafts.get(place.item_id)) is not None:
            shown["draft"] = visible(by_side(str(plain_label(draft)), left))
        if task.opinions is not None:
            opinions = task.opinions.get(place.item_id, ())
            shown["opinions"] = [[_label_text(each, left), visible(each.note or "")] for each in opinions]
        return {**counts, "item": shown}


def _is_of(entry: LabelEntry, items: Mapping[str, Item]) -> bool:
    """Whether an act was on one of these items, with the texts that it has now."""
    item = items.get(entry.item_id)
    return item is not None and item.sha == entry.item_sha


def _elsewhere(stands: Rating) -> Refusal:
    return Refusal(
        409,
        f"You labelled this item in another window or a sheet: {_label_text(stands, stands.shown_left)}. "
        "That stays; go back to the item to change it.",
    )


def _label_text(rating: Rating, left: str | None) -> str:
    """A label as a page sends and shows it; of a pair by the side."""
    return CANNOT_TELL if rating.label is None else by_side(str(plain_label(rating.label)), left)


def _rubric(gold: GoldSet) -> tuple[str, str | None]:
    """The raters' instructions, of the file in the set's folder that the card names, and their sha256."""
    path = (gold.path / gold.card.rubric).resolve()
    if not gold.card.rubric or not path.is_relative_to(gold.path.resolve()) or not path.is_file():
        return "", None
    data = path.read_bytes()
    return visible(data.decode("utf-8", "replace")), hashlib.sha256(data).hexdigest()


def rater_problems(raters: Sequence[str]) -> list[str]:
    """Why these are no names of raters, if they are not."""
    problems = [] if raters else ["--raters names nobody: give names such as --raters ann,bob"]
    for rater in raters:
        if rater == GOLD:
            problems.append(
                f"--raters: {GOLD!r} is the adjudicated label (judgecal gold adjudicate): choose another name"
            )
        elif visible(rater) != rater or len(rater) > 80 or "\n" in rater:
            problems.append(
                f"--raters: {visible(rater)[:80]!r} holds characters that no name has, or too many"
            )
    return problems
