"""Which passages questions are made of, what a model made of them, and what rules and critics say of a draft.

A request is a passage and a kind; it depends on the documents and the seed and on no reply, so that
a run that goes on later makes the same requests, and every reply that is stored serves again.
"""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice

from judgecal.engine import ParsedReply
from judgecal.goldset import GoldDocument
from judgecal.goldset.wording import plain_text
from judgecal.judges import Judge, Respondent
from judgecal.rag.evaluation.answerer import Writer
from judgecal.rag.retrieval.chunking import Chunk, ChunkOptions, chunks_of
from judgecal.rag.retrieval.indexes import Bm25Index
from judgecal.records import RETRIED_ON_RESUME, Context, Failure, Item, Judgement, canonical_json

FACTOID, UNANSWERABLE = KINDS = ("factoid", "unanswerable")
"""The kinds of questions; each is the signature of that name in `gold_make/`."""
ANSWERABLE, FOLLOWS = "answerable", "follows"
CRITICS = (ANSWERABLE, FOLLOWS)
"""The critics, in the order in which they are called; each is the signature of that name in `gold_make/`."""
NO_CALL = "no reply came"
"""How the reason of a draft begins whose call has to be made again."""
DRAFTS_PER_QUESTION = 4
"""Drafts that are asked for at most, for each question that is wanted."""

_NOT_THERE = "The answer is not found in the documents."  # the reference of a question that none answers
_NEAREST = 5  # passages in which the answer to an unanswerable question is looked for
_PASSAGES = ChunkOptions(min=400, max=900)
_LEAST_WORDS = 12  # of a passage: below it stands a heading, or a line of a table
_LONGEST_ANSWER = 400  # characters of an answer, for the bound of a preview


@dataclass(frozen=True, slots=True)
class QuestionRequest:
    """A question that is asked for: `name` (`factoid-0001`), and the passage that it is to be made of."""

    name: str
    kind: str
    passage: Chunk

    def item(self) -> Item:
        """As the signature of its kind is shown it."""
        texts = {"title": self.passage.title or "", "passage": self.passage.text.strip()}
        return Item(self.name, self.passage.document_id, "", "", fields=texts)


class Maker(Writer):
    """Who makes questions of one kind: a signature of `gold_make/` and a model; verdicts are JSON."""

    def read(self, text: str) -> ParsedReply:
        """The fields; an empty question means that there is nothing to ask, none that there is no draft."""
        fields = self.fields(text, "question")
        if isinstance(fields, Failure):
            return ParsedReply(None, failure=fields)
        return ParsedReply(canonical_json(fields))


@dataclass(frozen=True, slots=True)
class Draft:
    """What became of a request."""

    request: QuestionRequest
    question: str = ""
    answer: str = ""
    quote: str = ""  # as it stands in the document
    rejected: str | None = None  # why it is no question of the set
    contexts: tuple[Context, ...] = ()

    @property
    def same(self) -> set[tuple[str, ...]]:
        """What makes another draft the same: the same words, or the same answer from the same quote."""
        return {(plain_text(self.question),), *([(self.answer, self.quote)] if self.quote else [])}

    def shown(self) -> Item:
        """As critics are shown it."""
        name = self.request.name
        return Item(name, name, self.question, self.answer, contexts=self.contexts)

    def reject(self, why: str) -> Draft:
        """The same, turned down."""
        return dataclasses.replace(self, rejected=why)


class Corpus:
    """The documents with their passages, which BM25 has indexed."""

    def __init__(self, documents: Sequence[GoldDocument]) -> None:
        self.documents = {each.document_id: each for each in documents if each.text.strip()}
        chunks = chunks_of(self.documents.values(), _PASSAGES)
        self.passages = [chunk for chunk in chunks if len(chunk.text.split()) >= _LEAST_WORDS]

    @cached_property
    def _by_passage(self) -> Bm25Index:
        return Bm25Index([passage.text for passage in self.passages])

    def nearest(self, text: str, k: int = _NEAREST) -> list[Chunk]:
        """The k passages that share most with a text, best first."""
        return [self.passages[number] for number in self._by_passage.search([text], k).chunks[0].tolist()]

    def requests(self, kind: str, *, seed: int) -> Iterator[QuestionRequest]:
        """Every passage once, from document to document in an order drawn by the seed."""
        draw = random.Random(f"{seed}:{kind}")
        by_document: dict[str, list[Chunk]] = {}
        for passage in self.passages:
            by_document.setdefault(passage.document_id, []).append(passage)
        piles = list(by_document.values())
        draw.shuffle(piles)
        for pile in piles:
            draw.shuffle(pile)
        turns = (pile[turn : turn + 1] for turn in range(max(map(len, piles), default=0)) for pile in piles)
        for number, passage in enumerate(chain.from_iterable(turns), 1):
            yield QuestionRequest(f"{kind}-{number:04d}", kind, passage)


@dataclass
class Pool:
    """The requests of one kind, of which at most `DRAFTS_PER_QUESTION` are made for each question."""

    wanted: int
    requests: Iterator[QuestionRequest]  # made when they are taken
    kept: int = 0
    made: int = 0

    def take(self) -> list[QuestionRequest]:
        """The requests of the next round."""
        left = DRAFTS_PER_QUESTION * self.wanted - self.made
        requests = list(islice(self.requests, max(0, min(self.wanted - self.kept, left))))
        self.made += len(requests)
        return requests

    def short(self) -> str | None:
        """Why there are fewer than were wanted; None where there are not."""
        if self.kept >= self.wanted:
            return None
        if self.made < DRAFTS_PER_QUESTION * self.wanted:
            return f"no passage is left: {self.made} drafts were made"
        return f"{self.made} drafts for {self.wanted} questions, and we pay for no more"


def read_draft(request: QuestionRequest, row: Judgement, corpus: Corpus) -> Draft:
    """A reply as a draft, turned down where a rule does it."""
    if row.verdict is None:
        kind = row.error.kind if row.error else "parse"
        return Draft(request).reject(
            "the reply could not be read" if kind == "parse" else f"no reply ({kind})"
        )
    fields: Mapping[str, str] = json.loads(str(row.verdict))
    draft = Draft(request, " ".join(fields["question"].split()))
    if not draft.question:
        return draft.reject("the model found nothing to ask for")
    if request.kind == UNANSWERABLE:
        near = (Context(chunk.text.strip(), chunk.document_id) for chunk in corpus.nearest(draft.question))
        return dataclasses.replace(draft, answer=_NOT_THERE, contexts=tuple(near))
    # as it stands in the document, whatever its white space; empty where it does not
    words, name = [re.escape(word) for word in fields.get("quote", "").split()], request.passage.document_id
    match = re.search(r"\s+".join(words), corpus.documents[name].text) if words else None
    quote, answer = match[0] if match else "", fields.get("answer", "")
    draft = dataclasses.replace(draft, answer=answer, quote=quote, contexts=(Context(quote, name),))
    if not answer:
        return draft.reject("there is no answer")
    return draft if quote else draft.reject("a quote is not in its document")


def expected_draft(request: QuestionRequest, corpus: Corpus) -> Draft:
    """What may be drafted, for the bound of a preview: the whole passage as its quote."""
    unanswerable, text = request.kind == UNANSWERABLE, request.passage.text
    passages = corpus.nearest(text) if unanswerable else [request.passage]
    contexts = tuple(Context(passage.text, passage.document_id) for passage in passages)
    return Draft(request, text[:200], "x" * _LONGEST_ANSWER, contexts=contexts)


def item_of(draft: Draft, name: str) -> Item:
    """The question as an item of the set: its answer is the reference too, and people accept it or not."""
    answerable = draft.request.kind != UNANSWERABLE
    return Item(
        item_id=name,
        group=name,
        question=draft.question,
        answer=draft.answer,
        reference_answers=(draft.answer,),
        reference_documents=(draft.request.passage.document_id,) if answerable else (),
        contexts=draft.contexts,
        tags=(draft.request.kind,),
    )


# The critics of drafted questions

Ask = Callable[[Respondent, Sequence[Item], str], Sequence[Judgement]]
"""Has somebody asked about items; the text is what progress shows."""


def criticise(drafts: Sequence[Draft], critics: Mapping[str, Judge], ask: Ask) -> list[Draft]:
    """The same drafts, those turned down that a critic does not let pass; each critic sees what is left.

    `critics`: a judge for each of `CRITICS`, in the order in which they are asked.
    """
    left = list(drafts)
    for critic, judge in critics.items():
        due = [place for place, draft in enumerate(left) if not draft.rejected and asked(critic, draft)]
        rows = ask(judge, [left[place].shown() for place in due], f"critic: {critic}")
        for place, row in zip(due, rows, strict=True):
            draft = left[place]
            wanted, why = _EXPECTED[critic, draft.request.kind]
            if row.verdict is None:
                why = lost(row) or f"we could not read what the critic {critic} said"
                left[place] = draft.reject(why)
            elif bool(row.verdict) is not wanted:
                left[place] = draft.reject(why)
    return left


_EXPECTED = {
    (ANSWERABLE, UNANSWERABLE): (False, "a document of the collection answers it"),
    (ANSWERABLE, FACTOID): (True, "the quoted words alone do not answer it"),
    (FOLLOWS, FACTOID): (True, "the answer does not follow from the quoted words"),
}
"""What a critic must say of a draft of a kind, and what the draft is turned down for else."""


def asked(critic: str, draft: Draft) -> bool:
    """Whether a critic has anything to say of a draft."""
    return (critic, draft.request.kind) in _EXPECTED


def lost(row: Judgement) -> str:
    """Why a call has to be made again; empty where it gave what it gives."""
    failed = row.error is not None and row.error.kind in RETRIED_ON_RESUME
    return f"{NO_CALL} ({row.error.kind})" if failed and row.error else ""
