"""`gold make`: questions and answers from documents, each quoted, held against rules and critics.

Requests are made in rounds: as many as questions are still wanted, each judged by rules, then by critics,
until there are enough or no passage is left. The rounds follow from the documents, the seed and the replies
in the journals, so the same command goes on after a kill, and no stored reply is paid for again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from judgecal._version import __version__
from judgecal.engine import Budget, require_prices
from judgecal.errors import InputError, listed, refuse
from judgecal.experiment import (
    CostEstimate,
    Experiment,
    RunOptions,
    full_name,
    judge_config,
    models_of,
    open_experiment,
    open_journal,
    plan_calls,
    plan_experiment,
    run_trials,
    stored_rows,
    together,
)
from judgecal.goldset import Card, GoldSet, load_gold, write_gold
from judgecal.goldset.gold_set import SplitCounts, split_counts
from judgecal.goldset.write import name_problems
from judgecal.judges import Judge, judge_named
from judgecal.rag.evaluation.question_drafts import (
    CRITICS,
    DRAFTS_PER_QUESTION,
    KINDS,
    NEAREST,
    NO_CALL,
    UNANSWERABLE,
    Corpus,
    Draft,
    Maker,
    Pool,
    Request,
    Seen,
    checks,
    criticise,
    item_of,
    lost,
    read_draft,
)
from judgecal.rag.retrieval import Collection
from judgecal.records import Context, Estimate, Item, Judgement, Result
from judgecal.scale import Scale
from judgecal.stats.intervals import mean_estimate
from judgecal.tables import write_json_lines
from judgecal.workspace import Workspace

_FOLDER = "gold_make"
_LONGEST_ANSWER = 400  # characters of an answer, for the bound of a preview
_EXAMPLES = 4
_ANCHORS = {
    "1": "accepted: a user could ask it, the answer is right, and the quoted words bear it out",
    "0": "turned down: the question or the answer is of no use",
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
class KindMade:
    """The questions of one kind."""

    wanted: int
    n: int
    n_drafts: int
    reason: str | None  # why they are fewer than wanted


@dataclass(frozen=True, slots=True)
class MadeExample:
    """A question of the set that is none of test."""

    kind: str
    question: str
    answer: str
    quotes: tuple[str, ...]
    documents: tuple[str, ...]


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
    per_document: int
    lexically_easy: Estimate  # of the answerable questions, the share whose documents BM25 puts first
    ranks: Mapping[str, int]  # rank of its document by BM25 (1, 2 to 5, 6 and later) -> questions
    splits: Mapping[str, SplitCounts]
    made_by: tuple[str, ...]
    critics: tuple[str, ...]
    usd: float | None  # of all drafts and critics, of earlier runs too; None where a model has no price
    n_unscored: int  # calls that gave no reply and that the same command makes again
    offline: bool  # whether the offline model made the questions
    examples: tuple[MadeExample, ...]
    notes: tuple[str, ...]
    run_line: str


@dataclass(frozen=True)
class MakeInput:
    """What `gold make` is to do.

    `model` makes the questions, `critic` judges them; `replace`: a set of that name gives way.
    """

    workspace: Workspace
    name: str
    collection: Collection
    n: int
    kinds: tuple[str, ...]
    model: str  # makes the questions
    critic: str  # judges them
    options: RunOptions
    per_document: int = 3
    seed: int = 0
    replace: bool = False  # a set of that name gives way

    def check(self) -> None:
        """Refuse what makes no set."""
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        problems = [f"--kinds: there is no kind {kind!r}: choose from {', '.join(KINDS)}" for kind in unknown]
        problems += name_problems(self.name, workspace=self.workspace, replace=True)
        problems += ["--kinds names no kind"] if not self.kinds else []
        problems += [f"-n must be at least 1, found {self.n}"] if self.n < 1 else []
        if self.per_document < 1:
            problems.append(f"--per-document must be at least 1, found {self.per_document}")
        if not any(document.text.strip() for document in self.collection.documents or ()):
            problems.append(f"{self.collection.documents_from}: its documents hold no text")
        refuse(problems)

    @property
    def targets(self) -> dict[str, int]:
        """How many questions of each kind are wanted: equal shares, the first kinds get one more."""
        each, more = divmod(self.n, len(self.kinds))
        return {kind: each + (place < more) for place, kind in enumerate(self.kinds)}


@dataclass
class MakeRun:
    """One run of `gold make`; `experiment` holds two journals, and every draft with what became of it."""

    given: MakeInput
    corpus: Corpus
    makers: Mapping[str, Maker]
    critics: Mapping[str, Judge]
    experiment: Experiment
    drafts: list[Draft] = field(default_factory=list)

    @property
    def replies(self) -> Path:
        """`drafts.jsonl`: a journal like `judgements.jsonl`; its verdicts are replies' fields as JSON."""
        return self.experiment.folder / "drafts.jsonl"

    @cached_property
    def pools(self) -> dict[str, Pool]:
        """The requests of each kind that may be made, at most as many as will be paid for."""
        seed = self.given.seed
        targets = self.given.targets.items()
        return {kind: Pool(kind, wanted, self.corpus.requests(kind, seed=seed)) for kind, wanted in targets}

    @property
    def kept(self) -> list[Draft]:
        """The drafts that nothing stands against, by kind in the order of their requests."""
        fine = [draft for draft in self.drafts if draft.rejected is None]
        order = self.given.kinds.index
        return sorted(fine, key=lambda draft: (order(draft.request.kind), draft.request.name))

    def check(self) -> None:
        """Refuse what would be refused after the calls."""
        self.given.workspace.require_writable("gold make")
        problems = name_problems(self.given.name, workspace=self.given.workspace, replace=self.given.replace)
        may_be_ours = self._there() and self.replies.is_file()  # what this very run has made
        if problems and not may_be_ours:
            raise InputError(problems)
        called = models_of([*self.makers.values(), *self.critics.values()])
        require_prices(called, self.given.options.limit_usd)

    def preview(self) -> CostEstimate:
        """What a run would call where every draft is kept; at most, where as many are made as may be.

        A draft that is not there yet is taken to quote its whole passage.
        """
        likely: list[CostEstimate] = []
        most: list[CostEstimate] = []
        rows = stored_rows(self.replies).latest
        for pool in self.pools.values():
            every = self.corpus.requests(pool.kind, seed=self.given.seed)
            requests = list(islice(every, DRAFTS_PER_QUESTION * pool.wanted))
            drafts = [self._expected(request, rows.values()) for request in requests]
            for estimates, n in ((likely, pool.wanted), (most, len(requests))):
                estimates.append(self._plan(pool.kind, requests[:n], drafts[:n]))
        return replace(together(likely), usd_at_most=together(most).usd_at_most)

    def _plan(self, kind: str, requests: Sequence[Request], drafts: Sequence[Draft]) -> CostEstimate:
        options, to_draft = self.given.options, [request.item() for request in requests]
        plans = [plan_calls([self.makers[kind]], to_draft, stored_rows(self.replies), options)]
        journal, left = (
            stored_rows(self.experiment.journal),
            [draft for draft in drafts if not draft.rejected],
        )
        for critic, judge in self.critics.items():
            items = [item for draft in left for item, _, _ in checks(critic, draft)]
            plans.append(plan_calls([judge], items, journal, options))
        return together(plans)

    def _expected(self, request: Request, rows: Iterable[Judgement]) -> Draft:
        stored = next((row for row in rows if row.item_id == request.name), None)
        if stored is not None:
            return read_draft(request, stored, self.corpus)
        passages = (request.passage, *([request.other] if request.other else []))
        if request.kind == UNANSWERABLE:
            passages = tuple(self.corpus.nearest(request.passage.text, NEAREST))
        contexts = tuple(Context(passage.text, passage.document_id) for passage in passages)
        return Draft(request, request.passage.text[:200], "x" * _LONGEST_ANSWER, contexts=contexts)

    def run(self) -> MadeQuestions:
        """Make the calls that are due, write the set, and give the result."""
        self.check()
        open_experiment(self.experiment)
        options, budget = self.given.options, self.given.options.open_budget(self.experiment.folder)
        seen = Seen()
        while requests := self._next_round():
            drafts = self._judged(self._drafted(requests, seen, options, budget), options, budget)
            self.drafts += drafts
            for draft in drafts:
                self.pools[draft.request.kind].kept += draft.rejected is None
            if all(map(_had_no_reply, drafts)):
                break  # nobody answers any more, or the money is spent
        short = any(pool.short() for pool in self.pools.values())
        failed = sum(map(_had_no_reply, self.drafts))
        gold = None if (short and failed) or not self.kept else self._written()
        self._keep_drafts()
        result = _result(self, gold, failed if short else 0)
        self.experiment.write_summary(result)
        return result

    def _next_round(self) -> list[Request]:
        """The requests of as many questions as are still wanted, no document above its number."""
        taken = Counter(name for draft in self.kept for name in draft.request.documents)
        per_document = self.given.per_document
        return [request for pool in self.pools.values() for request in pool.take(taken, per_document)]

    def _drafted(
        self, requests: Sequence[Request], seen: Seen, options: RunOptions, budget: Budget
    ) -> list[Draft]:
        """The drafts of a round, those turned down that a rule does not let pass."""
        rows: dict[str, Judgement] = {}
        with open_journal(self.replies, options) as journal:
            for kind, maker in self.makers.items():
                items = [request.item() for request in requests if request.kind == kind]
                label = f"{kind} questions"
                made = run_trials(
                    [maker], items, journal=journal, options=options, budget=budget, label=label
                )
                rows |= {row.item_id: row for row in made}
        drafts = []
        for request in requests:
            row = rows[request.name]
            draft = Draft(request).reject(lost(row)) if lost(row) else read_draft(request, row, self.corpus)
            if draft.rejected is None and not seen.new(draft):
                draft = draft.reject("the question is there already, or nearly the same one")
            drafts.append(draft)
        return drafts

    def _judged(self, drafts: Sequence[Draft], options: RunOptions, budget: Budget) -> list[Draft]:
        """The drafts of a round with what the critics say of them."""
        with open_journal(self.experiment.journal, options) as journal:

            def ask(judge: Judge, items: Sequence[Item], label: str) -> Sequence[Judgement]:
                return run_trials(
                    [judge], items, journal=journal, options=options, budget=budget, label=label
                )

            return criticise(drafts, self.critics, ask)

    def _there(self) -> bool:
        return (self.given.workspace.gold / self.given.name).is_dir()

    def _written(self) -> GoldSet:
        """The set: as it stands where this run has made it before, else written."""
        given = self.given
        items = [item_of(draft, self._name(place)) for place, draft in enumerate(self.kept, 1)]
        if self._there():
            stands = load_gold(given.name, workspace=given.workspace, labelling=True)
            if list(stands.items) == items:
                return stands  # with the labels that people have given
        model = listed(sorted({maker.model.alias for maker in self.makers.values()}))
        source = f"Made from {given.collection.documents_from} by {model}; critics: {given.critic}."
        card = Card(
            given.name,
            Scale.parse("binary"),
            version="1",
            source=source,
            made_by="llm",
            sampling="curated",
            anchors=_ANCHORS,
        )
        return write_gold(
            card,
            items,
            (),
            documents=list(self.corpus.documents.values()),
            workspace=given.workspace,
            replace=given.replace,
            readme=_README.format(name=given.name, n=len(items), source=given.collection.documents_from),
        )

    def _name(self, place: int) -> str:
        return f"{self.given.name}-{place:04d}"

    def _keep_drafts(self) -> None:
        """`questions.jsonl`: every draft, and what became of it."""
        names = {draft.request.name: self._name(place) for place, draft in enumerate(self.kept, 1)}
        rows = (
            {
                "draft": draft.request.name,
                "item_id": names.get(draft.request.name),
                "rejected": draft.rejected,
                "documents": list(draft.request.documents),
                "passage": draft.request.passage.chunk_id,
                "other_passage": draft.request.other.chunk_id if draft.request.other else None,
                "question": draft.question,
                "answer": draft.answer,
                "quotes": list(draft.quotes),
                "bm25_rank": draft.rank,
            }
            for draft in self.drafts
        )
        write_json_lines(self.experiment.folder / "questions.jsonl", rows)


def _had_no_reply(draft: Draft) -> bool:
    """Whether a call of it failed that the same command makes again."""
    return draft.rejected is not None and draft.rejected.startswith(NO_CALL)


def plan_make(given: MakeInput, *, out: str | None = None) -> MakeRun:
    """The run of `gold make`, held against the documents; nothing is written or called."""
    given.check()
    home = given.workspace
    makers = {kind: Maker(f"{_FOLDER}/{kind}@{given.model}", workspace=home) for kind in given.kinds}
    critics: dict[str, Judge] = {
        name: judge_named(f"{_FOLDER}/{name}@{given.critic}", workspace=home) for name in CRITICS
    }
    config = {
        "command": "make",
        "gold": {"set": given.name},
        "documents": {"from": given.collection.documents_from, "sha256": given.collection.shas[0]},
        "kinds": list(given.kinds),
        "n": given.n,
        "per_document": given.per_document,
        "makers": [maker.config() for maker in makers.values()],
        "critics": [judge_config(judge) for judge in critics.values()],
        "seed": given.seed,
    }
    experiment = plan_experiment(given.workspace, config, out=out)
    run = MakeRun(given, Corpus(given.collection.documents or ()), makers, critics, experiment)
    run.check()
    return run


def _result(run: MakeRun, gold: GoldSet | None, n_unscored: int) -> MadeQuestions:
    given, kept = run.given, run.kept
    answered = [draft for draft in kept if draft.request.kind != UNANSWERABLE]
    of = [draft.request.documents[0] for draft in answered]
    easy = mean_estimate([float(draft.easy) for draft in answered], of)
    ranks = Counter(draft.band for draft in answered)
    rejected = Counter(draft.rejected for draft in run.drafts if draft.rejected is not None)
    rows = [*stored_rows(run.replies).latest.values(), *stored_rows(run.experiment.journal).latest.values()]
    costs = [row.cost_usd for row in rows]
    return MadeQuestions(
        experiment=run.experiment.slug,
        set=given.name,
        path=None if gold is None else str(gold.path),
        n_wanted=given.n,
        n=len(kept),
        kinds={
            kind: KindMade(pool.wanted, pool.kept, pool.made, pool.short())
            for kind, pool in run.pools.items()
        },
        rejected=dict(rejected.most_common()),
        n_documents=len(run.corpus.documents),
        n_documents_used=len({name for draft in kept for name in draft.request.documents}),
        per_document=given.per_document,
        lexically_easy=easy,
        ranks={band: ranks[band] for band in ("1", "2 to 5", "6 on")},
        splits={} if gold is None else split_counts(gold),
        made_by=tuple(maker.described for maker in run.makers.values()),
        critics=tuple(full_name(judge) for judge in run.critics.values()),
        usd=None if None in costs else sum(cost for cost in costs if cost is not None),
        n_unscored=n_unscored,
        offline=any(maker.model.embedded for maker in run.makers.values()),
        examples=_examples(run, gold),
        notes=given.collection.notes,
        run_line=_run_line(run),
    )


def _examples(run: MakeRun, gold: GoldSet | None) -> tuple[MadeExample, ...]:
    """The first question of each kind; those of test are shown nowhere once the set is written."""
    sealed = frozenset[str]() if gold is None else gold.test_groups
    first: dict[str, MadeExample] = {}
    for place, draft in enumerate(run.kept, 1):
        kind = draft.request.kind
        if gold is not None and run._name(place) not in sealed:
            example = MadeExample(kind, draft.question, draft.answer, draft.quotes, draft.request.documents)
            first.setdefault(kind, example)
    return tuple(first.values())[:_EXAMPLES]


def _run_line(run: MakeRun) -> str:
    """The line that reproduces the set: documents@sha, kinds, makers, critics, seed, version."""
    given, config = run.given, run.experiment.config
    parts = [
        f"documents:{given.collection.documents_from}@{config['documents']['sha256'][:12]}",
        f"n:{given.n}",
        f"kinds:{','.join(given.kinds)}",
        f"per_document:{given.per_document}",
        f"makers:{','.join(maker.described for maker in run.makers.values())}",
        f"critics:{','.join(full_name(judge) for judge in run.critics.values())}",
        f"seed:{given.seed}",
    ]
    return "|".join([*parts, f"version:{__version__}"])
