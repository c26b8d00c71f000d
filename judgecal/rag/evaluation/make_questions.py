"""`gold make`: questions and answers from documents, each quoted, held against rules and critics.

A request is a passage and a kind; it depends on the documents and the seed and on no reply. Requests are made
in rounds: as many as questions are still wanted, each judged by rules, then by critics, until there are
enough or no passage is left. So the same command goes on after a kill, and no stored reply is paid for again.
"""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from pathlib import Path

from judgecal._version import __version__
from judgecal.engine.budget import Budget, CostEstimate, require_prices, together
from judgecal.engine.calls import ParsedReply
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError, listed, refuse
from judgecal.experiment.folder import Experiment, open_experiment, plan_experiment
from judgecal.experiment.score import full_name, judge_config
from judgecal.experiment.trials import models_of, open_journal, plan_calls, run_trials, stored_rows
from judgecal.goldset import Card, GoldDocument, GoldSet, load_gold, write_gold
from judgecal.goldset.wording import plain_text
from judgecal.goldset.write import name_problems
from judgecal.judges import judge_named
from judgecal.judges.protocol import Judge, Respondent
from judgecal.rag.evaluation.answerer import Writer
from judgecal.rag.questions import Collection
from judgecal.rag.retrieval.indexes import Bm25Index, Chunk, ChunkOptions, chunks_of
from judgecal.records import (
    RETRIED_ON_RESUME,
    Context,
    Failure,
    Headline,
    Item,
    Judgement,
    Result,
    canonical_json,
)
from judgecal.report.document import Document, Paragraph, section, stored_document, table
from judgecal.report.wording import count, count_of, money, sentence, sentences
from judgecal.scale import Scale
from judgecal.workspace import Workspace

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
_FOLDER = "gold_make"
_ANCHORS = {
    "1": "accepted: a user could ask it, the answer is right, and the quoted words bear it out",
    "0": "turned down: the question or the answer is useless",
}
_README = """# {name}

{n} questions that a language model made from documents ({source}). Each is a draft until \
somebody accepts it: label it
1 (accepted) or 0 (turned down), by `judgecal gold label {name}` or `judgecal gold sheet {name}`. \
The answer under test
is the reference answer itself; the contexts are the words of the document that answer it, or, \
of a question that no
document answers, the passages nearest to it.
"""


@dataclass(frozen=True, slots=True)
class QuestionRequest:
    """A question that is asked for: `name` (`factoid-0001`), and the passage that it is to be made of."""

    name: str
    kind: str
    passage: Chunk

    def item(self) -> Item:
        """Return the request as the Item that the signature of its kind is shown."""
        texts = {"title": self.passage.title or "", "passage": self.passage.text.strip()}
        return Item(self.name, self.passage.document_id, "", "", fields=texts)


class Maker(Writer):
    """Who makes questions of one kind: a signature of `gold_make/` and a model; verdicts are JSON."""

    def read(self, text: str) -> ParsedReply:
        """Read a reply's text as a ParsedReply with a draft's fields; an empty question: none to ask."""
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
        """Return the draft's own question and answer as the Item that critics are shown."""
        name = self.request.name
        return Item(name, name, self.question, self.answer, contexts=self.contexts)

    def reject(self, why: str) -> Draft:
        """The draft, turned down for a reason."""
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
        return [self.passages[number] for number in self._by_passage.search([text], k)[0][0].tolist()]

    def requests(self, kind: str, *, seed: int) -> Iterator[QuestionRequest]:
        """Yield a QuestionRequest of the named kind for each own passage, in an order drawn by a seed."""
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
        """Return the list of QuestionRequests of the pool's next round."""
        left = DRAFTS_PER_QUESTION * self.wanted - self.made
        requests = list(islice(self.requests, max(0, min(self.wanted - self.kept, left))))
        self.made += len(requests)
        return requests

    def short(self) -> str | None:
        """Say in a sentence why fewer questions were made than wanted; None where enough were."""
        if self.kept >= self.wanted:
            return None
        if self.made < DRAFTS_PER_QUESTION * self.wanted:
            return f"no passage is left: {self.made} drafts were made"
        return f"{self.made} drafts for {self.wanted} questions, and we pay for no more"


def read_draft(request: QuestionRequest, row: Judgement, corpus: Corpus) -> Draft:
    """Make a Draft from a QuestionRequest, the Judgement that replies to it, and a Corpus (may refuse)."""
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
    """Return the longest Draft that a QuestionRequest may give, on a Corpus, for a preview's bound."""
    unanswerable, text = request.kind == UNANSWERABLE, request.passage.text
    passages = corpus.nearest(text) if unanswerable else [request.passage]
    contexts = tuple(Context(passage.text, passage.document_id) for passage in passages)
    return Draft(request, text[:200], "x" * _LONGEST_ANSWER, contexts=contexts)


def draft_item(draft: Draft, name: str) -> Item:
    """Return a Draft as an Item with the name given; the draft's answer is the reference too."""
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
    """Return Drafts, turning down those that a critic (name -> Judge) fails; a function `ask` makes calls.

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
    """Whether a critic judges a draft of this kind."""
    return (critic, draft.request.kind) in _EXPECTED


def lost(row: Judgement) -> str:
    """Say in text why a Judgement's call has to be made again; empty where it need not."""
    failed = row.error is not None and row.error.kind in RETRIED_ON_RESUME
    return f"{NO_CALL} ({row.error.kind})" if failed and row.error else ""


# --- the run


@dataclass(frozen=True, slots=True)
class KindMade:
    """The questions of one kind."""

    wanted: int
    n: int
    n_drafts: int
    reason: str | None  # why they are fewer than wanted


@dataclass(frozen=True, slots=True)
class MadeQuestions(Result):
    """What `gold make` comes to."""

    experiment: str
    set: str
    path: str | None  # None where it was not written, as calls failed that the same command makes again
    n_wanted: int
    n: int
    kinds: Mapping[str, KindMade]
    rejected: Mapping[str, int]  # why drafts are no questions of the set -> how many
    n_documents: int
    n_documents_used: int
    usd: float | None  # of all drafts and critics, of earlier runs too; None where a model has no price
    n_unscored: int  # calls that gave no reply and that the same command makes again
    offline: bool  # whether the offline model made the questions
    notes: tuple[str, ...]
    run_line: str


@dataclass
class MakeRun:
    """What `gold make` is to do; `experiment` holds two journals."""

    workspace: Workspace
    name: str  # of the set
    collection: Collection
    n: int
    kinds: tuple[str, ...]
    model: str  # makes the questions
    critic: str  # judges them
    options: RunOptions
    seed: int
    replace: bool  # a set of that name gives way
    out: str | None
    drafts: list[Draft] = field(default_factory=list)

    @cached_property
    def corpus(self) -> Corpus:
        """The documents with their passages."""
        return Corpus(self.collection.documents or ())

    @cached_property
    def makers(self) -> Mapping[str, Maker]:
        """Question kind -> the `Maker` of its questions."""
        return {
            kind: Maker(f"{_FOLDER}/{kind}@{self.model}", workspace=self.workspace) for kind in self.kinds
        }

    @cached_property
    def critics(self) -> Mapping[str, Judge]:
        """Name -> judge of the drafts, in the order in which critics judge."""
        return {
            name: judge_named(f"{_FOLDER}/{name}@{self.critic}", workspace=self.workspace) for name in CRITICS
        }

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment of the two journals."""
        config = {
            "command": "make",
            "gold": {"set": self.name},
            "documents": {"from": self.collection.documents_from, "sha256": self.collection.documents_sha},
            "kinds": list(self.kinds),
            "n": self.n,
            "makers": [maker.config() for maker in self.makers.values()],
            "critics": [judge_config(judge) for judge in self.critics.values()],
            "seed": self.seed,
        }
        return plan_experiment(self.workspace, config, out=self.out)

    @property
    def replies(self) -> Path:
        """`drafts.jsonl`: a journal like `judgements.jsonl`; its verdicts are replies' fields as JSON."""
        return self.experiment.folder / "drafts.jsonl"

    @cached_property
    def pools(self) -> dict[str, Pool]:
        """The requests of each kind: equal shares are wanted, and the first kinds get one more."""
        each, more = divmod(self.n, len(self.kinds))
        return {
            kind: Pool(each + (place < more), self.corpus.requests(kind, seed=self.seed))
            for place, kind in enumerate(self.kinds)
        }

    @property
    def accepted(self) -> dict[str, Draft]:
        """The drafts that nothing stands against by the names of their items, in the order of requests."""
        fine = [draft for draft in self.drafts if draft.rejected is None]
        fine.sort(key=lambda draft: (self.kinds.index(draft.request.kind), draft.request.name))
        return {f"{self.name}-{place:04d}": draft for place, draft in enumerate(fine, 1)}

    def check(self) -> None:
        """Refuse a run that makes no set, before any call."""
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        problems = [f"--kinds: there is no kind {kind!r}: choose from {', '.join(KINDS)}" for kind in unknown]
        problems += name_problems(self.name, workspace=self.workspace, replace=True)
        problems += ["--kinds names no kind"] if not self.kinds else []
        problems += [f"-n must be at least 1, found {self.n}"] if self.n < 1 else []
        if not any(document.text.strip() for document in self.collection.documents or ()):
            problems.append(f"{self.collection.documents_from}: its documents hold no text")
        refuse(problems)
        called = models_of([*self.makers.values(), *self.critics.values()])
        may_be_ours = self.replies.is_file() and self._stands()  # what this very run has made
        self.workspace.require_writable("gold make")
        taken = name_problems(self.name, workspace=self.workspace, replace=self.replace)
        if taken and not may_be_ours:
            raise InputError(taken)
        require_prices(called, self.options.budget_usd)

    def preview(self) -> CostEstimate:
        """Return the CostEstimate of the run at most: every draft kept, as many made as may be.

        A draft is taken to quote its whole passage.
        """
        replies, judged = stored_rows(self.replies), stored_rows(self.experiment.journal)

        def planned(n_drafts: int) -> CostEstimate:
            plans = []
            for kind, pool in self.pools.items():
                requests = list(islice(self.corpus.requests(kind, seed=self.seed), n_drafts * pool.wanted))
                items = [request.item() for request in requests]
                plans.append(plan_calls([self.makers[kind]], items, replies, self.options))
                drafts = [expected_draft(request, self.corpus) for request in requests]
                for critic, judge in self.critics.items():
                    items = [draft.shown() for draft in drafts if asked(critic, draft)]
                    plans.append(plan_calls([judge], items, judged, self.options))
            return together(plans)

        return dataclasses.replace(planned(1), usd_at_most=planned(DRAFTS_PER_QUESTION).usd_at_most)

    def run(self) -> MadeQuestions:
        """Make the calls that are due, write the set, and return MadeQuestions."""
        self.check()
        open_experiment(self.experiment)
        budget, seen = Budget(self.options.budget_usd), set[tuple[str, ...]]()
        while requests := [request for pool in self.pools.values() for request in pool.take()]:
            drafts = self._drafted(requests, seen, budget)
            with self._asking(self.experiment.journal, budget) as ask:
                drafts = criticise(drafts, self.critics, ask)
            self.drafts += drafts
            for draft in drafts:
                self.pools[draft.request.kind].kept += draft.rejected is None
            if all(map(_had_no_reply, drafts)):
                break  # nobody answers any more, or the money is spent
        short = any(pool.short() for pool in self.pools.values())
        failed = sum(map(_had_no_reply, self.drafts))
        gold = None if (short and failed) or not self.accepted else self._written()
        result = _result(self, gold, failed if short else 0)
        self.experiment.write_summary(result)
        return result

    @contextmanager
    def _asking(self, path: Path, budget: Budget) -> Iterator[Ask]:
        """What asks somebody about items, and keeps the replies in a journal."""
        options = self.options
        with open_journal(path, options) as journal:
            yield lambda who, items, label: run_trials(
                [who], items, journal=journal, options=options, budget=budget, label=label
            )

    def _drafted(
        self, requests: Sequence[QuestionRequest], seen: set[tuple[str, ...]], budget: Budget
    ) -> list[Draft]:
        """The drafts of a round, those turned down that a rule does not let pass."""
        rows: dict[str, Judgement] = {}
        with self._asking(self.replies, budget) as ask:
            for kind, maker in self.makers.items():
                items = [request.item() for request in requests if request.kind == kind]
                rows |= {row.item_id: row for row in ask(maker, items, f"{kind} questions")}
        drafts = []
        for request in requests:
            row = rows[request.name]
            draft = Draft(request).reject(lost(row)) if lost(row) else read_draft(request, row, self.corpus)
            if draft.rejected is None and seen & draft.same:
                draft = draft.reject("the question is there already")
            elif draft.rejected is None:
                seen |= draft.same
            drafts.append(draft)
        return drafts

    def _stands(self) -> bool:
        return (self.workspace.gold / self.name).is_dir()

    def _written(self) -> GoldSet:
        """The set: as it stands where this run has made it before, else written."""
        items = [draft_item(draft, name) for name, draft in self.accepted.items()]
        if self._stands():
            stands = load_gold(self.name, workspace=self.workspace, labelling=True)
            if list(stands.items) == items:
                return stands  # with the labels that people have given
        made_from = self.collection.documents_from
        model = listed(sorted({maker.model.alias for maker in self.makers.values()}))
        card = Card(
            self.name,
            Scale.parse("binary"),
            version="1",
            source=f"Made from {made_from} by {model}; critics: {self.critic}.",
            made_by="llm",
            sampling="curated",
            anchors=_ANCHORS,
        )
        return write_gold(
            card,
            items,
            (),
            documents=list(self.corpus.documents.values()),
            workspace=self.workspace,
            replace=self.replace,
            readme=_README.format(name=self.name, n=len(items), source=made_from),
        )


def _had_no_reply(draft: Draft) -> bool:
    """Whether a call of it failed that the same command makes again."""
    return draft.rejected is not None and draft.rejected.startswith(NO_CALL)


def _result(run: MakeRun, gold: GoldSet | None, n_unscored: int) -> MadeQuestions:
    accepted, makers = run.accepted, run.makers.values()
    rejected = Counter(draft.rejected for draft in run.drafts if draft.rejected is not None)
    journals = (stored_rows(path) for path in (run.replies, run.experiment.journal))
    costs = [row.cost_usd for journal in journals for row in journal.latest.values()]
    line = [
        f"documents:{run.collection.documents_from}@{run.collection.documents_sha[:12]}",
        f"n:{run.n}",
        f"kinds:{','.join(run.kinds)}",
        f"makers:{','.join(f'{maker.name}[{maker.fingerprint[:8]}]' for maker in makers)}",
        f"critics:{','.join(map(full_name, run.critics.values()))}",
        f"seed:{run.seed}",
        f"version:{__version__}",
    ]
    return MadeQuestions(
        experiment=run.experiment.slug,
        set=run.name,
        path=None if gold is None else str(gold.path),
        n_wanted=run.n,
        n=len(accepted),
        kinds={
            kind: KindMade(pool.wanted, pool.kept, pool.made, pool.short())
            for kind, pool in run.pools.items()
        },
        rejected=dict(rejected.most_common()),
        n_documents=len(run.corpus.documents),
        n_documents_used=len({draft.request.passage.document_id for draft in accepted.values()}),
        usd=None if None in costs else sum(cost for cost in costs if cost is not None),
        n_unscored=n_unscored,
        offline=any(maker.model.embedded for maker in makers),
        notes=run.collection.notes,
        run_line="|".join(line),
    )


# --- the document

_EASIER = (
    "An answer that one passage holds whole is easier to find than what users ask: how a system does on "
    "these questions says little about how it will do on theirs."
)
_OFFLINE = (
    "The offline model made these: it cuts a number, a name or a word out of a sentence and asks what "
    "belongs there. They show how the command works and test next to nothing."
)


def make_document(result: MadeQuestions, *, again: str = "") -> Document:
    """Lay out MadeQuestions as a Document; `again` is the command that goes on after failed calls."""
    kinds = table(
        result.kinds.items(),
        {
            "kind": lambda row: row[0],
            "questions": lambda row: count(row[1].n),
            "wanted": lambda row: count(row[1].wanted),
            "drafts": lambda row: count(row[1].n_drafts),
        },
        short=True,
    )
    rejected = table(
        result.rejected.items(),
        {"turned down because": lambda row: row[0], "drafts": lambda row: count(row[1])},
        title="Drafts that did not become questions",
    )
    questions = section(
        "questions",
        "Questions",
        "What there is, and what fell out on the way.",
        kinds,
        Paragraph(f"Cost of all drafts and critics: {money(result.usd)} USD.", short=True),
        bool(result.rejected) and rejected,
    )
    return stored_document(
        result,
        f"{result.set}: questions made from documents",
        f"{count_of(result.n, 'question')}, {count_of(result.n_documents, 'document')}.",
        _headline(result, again),
        questions,
        notes=map(sentence, result.notes),
    )


def _headline(result: MadeQuestions, again: str) -> Headline:
    fewer = {kind: made for kind, made in result.kinds.items() if made.reason}
    short = sentences(
        [f"{kind}: {made.n} of {made.wanted}, as {made.reason}." for kind, made in fewer.items()]
    )
    wanted = count_of(result.n_wanted, "question")
    if result.path is None:
        failed = "no draft passed"
        if result.n_unscored:
            failed = f"{count_of(result.n_unscored, 'draft')} had no reply"
        what = f"{result.set} is not written: {count(result.n)} of {wanted}, and {failed}."
        return Headline("unfinished", what, short, (), again or f"judgecal report {result.experiment}")
    wanted = f"{count(result.n)} of {wanted}" if short else wanted
    used = count_of(result.n_documents_used, "document")
    what = f"{result.set} has {wanted} on {used}: drafts until people accept them."
    accept = "Label each 1 (accepted) or 0 (turned down), on the labelling page or on a sheet (gold sheet)."
    because = sentences(result.offline and _OFFLINE, short, accept)
    kind = "short" if short else "made"
    return Headline(kind, what, because, (_EASIER,), f"judgecal gold label {result.set}")
