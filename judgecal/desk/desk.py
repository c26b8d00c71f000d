"""The desk of one set for all its raters: what they see, what becomes of their labels, and how they go back.

Nothing here knows of HTTP: `server` calls `act` with what a page sent.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from judgecal.desk.label_journal import LabelEntry, LabelJournal, LabelQueue
from judgecal.engine.log import now
from judgecal.errors import JudgecalError, visible
from judgecal.goldset import GoldSet
from judgecal.goldset.card import plain_label
from judgecal.goldset.labels import by_side, left_of, read_label
from judgecal.goldset.write import RatingKey, RatingsFile
from judgecal.records import CANNOT_TELL, Item, Rating, well_formed

_LONGEST_NOTE = 4_000  # characters


class Refusal(JudgecalError):
    """An act that cannot be done; `status` is HTTP's. Nothing has been written."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Labelling:
    """The items to be labelled, and by whom."""

    gold: GoldSet
    items: Sequence[Item]
    raters: Sequence[str]
    overlap: float = 1.0
    shuffled: bool = True
    seed: int = 0
    # item id -> the raters' ratings, shown without their names to whoever adjudicates
    opinions: Mapping[str, Sequence[Rating]] | None = None

    def left(self, item: Item, rater: str) -> Literal["A", "B"] | None:
        """Return which answer of a pair a rater sees on the left."""
        return left_of(item, self.gold.scale, f"{self.seed}:{rater}")

    @property
    def adjudicates(self) -> bool:
        """Whether the labels settle what raters said before."""
        return self.opinions is not None

    def queue(self, ratings: Sequence[RatingKey]) -> LabelQueue:
        """Return the LabelQueue of the task's own items; those of the ratings (RatingKeys) are done in it."""
        ids = [item.item_id for item in self.items]
        queue = LabelQueue(ids, self.raters, overlap=self.overlap, shuffled=self.shuffled, seed=self.seed)
        for item_id, rater in ratings:
            if rater in self.raters:
                queue.label(rater, item_id)
        return queue


@dataclass(eq=False)
class _Act:
    """A label on its way to the disk, and the rating that it replaces."""

    entry: LabelEntry
    before: Rating | None
    over: bool = False
    refusal: Refusal | None = None


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
            by_id = {item.item_id: item for item in task.gold.items}
            self.file.put({act.key: act.rating for act in self.journal.unsaved if _is_of(act, by_id)})
        except BaseException:
            self.journal.close()
            raise
        self._items = {item.item_id: item for item in task.items}
        keys = random.SystemRandom().sample(range(len(self._items)), len(self._items))
        self._keys = dict(zip(self._items, map(str, keys), strict=True))  # ids may tell a system or a tag
        self._by_key = {key: item_id for item_id, key in self._keys.items()}
        self._acting = {rater: asyncio.Lock() for rater in task.raters}  # one act of a rater at a time
        changed = {key for key, act in self.journal.last.items() if not _is_of(act, self._items)}
        self.queue = task.queue([key for key in self.file.ratings if key not in changed])
        self.rubric = _rubric(task.gold)
        self._waiting: list[_Act] = []
        self._writing = asyncio.Lock()
        self._behind: dict[RatingKey, Rating] = {}  # in the journal, and not yet in the ratings

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._restore()
            self.journal.save()
        finally:
            self.journal.close()

    def seen(self) -> GoldSet:
        """Return the set with the labels given so far."""
        return dataclasses.replace(self.gold, ratings=tuple(self.file.ratings.values()))

    # --- what a page asks for

    async def act(self, rater: str, verb: str, sent: Mapping[str, Any]) -> dict[str, Any]:
        """For a rater (name), do what a verb and the JSON sent ask for; return the JSON that is shown.

        `next` shows the next item; `label` writes a label (or that the rater cannot tell) and shows the next
        item; `step` by -1 or 1 shows what the rater labelled before.

        Raises:
            Refusal: it cannot be done; nothing has been written.
        """
        async with self._acting[rater]:
            if verb == "label":
                await self._label(rater, sent)
            elif verb == "step":
                done = [*self.queue.done[rater]]
                item_id = self._by_key.get(str(sent.get("item")), "")
                at = done.index(item_id) if item_id in self.queue.done[rater] else len(done)
                at = max(0, at + (1 if sent.get("by") == 1 else -1))
                if at < len(done):
                    return self._show(rater, done[at])
            return self._show(rater, self.queue.next(rater))

    async def _label(self, rater: str, sent: Mapping[str, Any]) -> None:
        item_id = self._by_key.get(str(sent.get("item")))
        if item_id is None:
            raise Refusal(404, "This item is not here: load the page again.")
        rating = self._rating(rater, item_id, sent)
        before = self.file.ratings.get((item_id, rater))
        if before == rating:
            self.queue.label(rater, item_id)
            return
        if before is not None and sent.get("before") != _label_text(before, rating.shown_left):
            raise _elsewhere(before)
        await self._commit(rating, before)

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
        return Rating(item_id, rater, value, note, reason=reason, shown_left=left)

    # --- what is written

    async def _commit(self, rating: Rating, before: Rating | None) -> None:
        """Return once the rating that replaces `before` is on disk."""
        entry = LabelEntry(rating, now("milliseconds"), self._items[rating.item_id].sha)
        self._waiting.append(act := _Act(entry, before))
        async with self._writing:  # acts that come at once share one trip to the disk
            if not act.over:
                batch, self._waiting = self._waiting, []
                try:
                    await asyncio.to_thread(self._write, batch)
                except (OSError, JudgecalError) as error:
                    for each in batch:
                        each.refusal = Refusal(507, f"This label is not saved: {visible(str(error))}")
                for each in batch:
                    each.over = True
        if act.refusal is None or act.refusal.status == 409:  # the item has a label, of here or of elsewhere
            self.queue.label(rating.rater, rating.item_id)
        if act.refusal is not None:
            raise act.refusal

    def _write(self, acts: Sequence[_Act]) -> None:
        """Write acts, but for those whose item the rater labelled elsewhere meanwhile."""
        self._restore()
        for act in acts:
            other = self.file.ratings.get(act.entry.key)
            if other is not None and other not in (act.before, act.entry.rating):
                act.refusal = _elsewhere(other)
        entries = [act.entry for act in acts if act.refusal is None]
        self.journal.append(entries)
        self._behind |= {entry.key: entry.rating for entry in entries}
        self.file.put(self._behind)
        self._behind = {}

    def _restore(self) -> None:
        """Put back what somebody else's write has taken out: it was read before a label of ours was there."""
        if self.file.reread():
            given = {entry.key: entry.rating for entry in self.journal.unsaved}
            self.file.put({key: rating for key, rating in given.items() if key not in self.file.ratings})

    # --- what is shown

    def counts(self, rater: str, sent: Mapping[str, Any]) -> dict[str, Any]:
        """For a rater and the JSON sent, return counts (dict), and if its item has a label elsewhere."""
        done = self.queue.done[rater]
        elsewhere = self._by_key.get(str(sent.get("item"))) in done
        counts = {"done": len(done), "left": self.queue.left(rater), "elsewhere": elsewhere}
        return {**counts, "all_done": self.queue.n_labelled, "all": len(self._items)}

    def _show(self, rater: str, item_id: str | None) -> dict[str, Any]:
        """Return what a label is given by: no id, system, tag or document; nothing in it acts."""
        counts = self.counts(rater, {})
        if item_id is None:
            return {**counts, "item": None}
        task, item = self.task, self._items[item_id]
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
        shown["key"] = self._keys[item_id]
        if (mine := self.file.ratings.get((item_id, rater))) is not None:
            reason = None if mine.label is None else mine.reason
            shown["mine"] = {"said": _label_text(mine, left), "note": mine.note, "reason": reason}
        if task.opinions is not None:
            opinions = task.opinions.get(item_id, ())
            shown["opinions"] = [[_label_text(each, left), visible(each.note or "")] for each in opinions]
        return {**counts, "item": shown}


def _is_of(entry: LabelEntry, items: Mapping[str, Item]) -> bool:
    """Whether an act was on one of these items, with the texts that it has now."""
    item = items.get(entry.rating.item_id)
    return item is not None and item.sha == entry.item_sha


def _elsewhere(stands: Rating) -> Refusal:
    return Refusal(
        409,
        f"You labelled this item in another window or a sheet: {_label_text(stands, stands.shown_left)}. "
        "That stays; go back to the item to change it.",
    )


def _label_text(rating: Rating, left: str | None) -> str:
    """Return a label as a page sends and shows it; of a pair by the side."""
    return CANNOT_TELL if rating.label is None else by_side(str(plain_label(rating.label)), left)


def _rubric(gold: GoldSet) -> str:
    """Return the raters' instructions, of the file in the set's folder that the card names."""
    path = (gold.path / gold.card.rubric).resolve()
    if not gold.card.rubric or not path.is_relative_to(gold.path.resolve()) or not path.is_file():
        return ""
    return visible(path.read_bytes().decode("utf-8", "replace"))
