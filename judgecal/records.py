"""The rows that judgecal reads and writes, and the one shape of every number that it reports."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import orjson

from judgecal.scale import Label

ErrorKind = Literal[
    "transport",
    "rate_limit",
    "server",
    "timeout",
    "budget",
    "parse",
    "out_of_range",
    "code",
    "refused",
    "context_length",
    "length",
    "inconsistent",
]
RETRIED_ON_RESUME: frozenset[str] = frozenset({"transport", "rate_limit", "server", "timeout", "budget"})
"""Errors that lie with the wire and not with the reply: a resumed run tries these again by itself."""

ITEM_UNIT = "item"
"""The unit of a judgement of a whole item; one of a single context is `chunk:<n>`, counted from 0."""
PAIR_UNIT = "pair"
"""The unit of a judgement of two answers to one question."""
ORDERS = ("ab", "ba")
"""Which answer of a pair a judge was shown first: the item's own A, or its B."""
OTHER: Mapping[str, str] = {"A": "B", "B": "A"}
"""Which answer of a pair a judge shown them in the order `ba` means by the name of another."""
TIE = "tie"
"""The verdict that both answers of a pair are as good."""


class Key(NamedTuple):
    """What makes a judgement one; of two rows with one key the last counts."""

    item_id: str
    item_sha: str
    judge_fingerprint: str
    repeat: int
    unit: str = ITEM_UNIT
    order: str | None = None  # of a pair: ORDERS

    def own(self, verdict: Any) -> Any:
        """Turn a verdict on a pair as it was shown into one on the item's own A and B; any other stays."""
        return OTHER.get(verdict, verdict) if self.order == ORDERS[1] else verdict


# Made once: `json.dumps` makes an encoder for every call that is not all defaults.
_canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


def as_plain(value: Any) -> Any:
    """Return a value (dataclass, mapping, list) as plain JSON values: tuples as lists, NaN as null.

    A field of a dataclass whose name ends in `_` loses it; one with `metadata={"json": False}` is left out.
    TypeError: a value has no JSON form.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name.removesuffix("_"): as_plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.metadata.get("json", True)
        }
    if isinstance(value, Mapping):
        return {str(key): as_plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} has no JSON form")


def is_missing(value: object) -> bool:
    """Return whether a value stands for none, a bool: None, NaN, and pandas' NA."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # NA has no truth value, nor has an array, which is none of these
        return not hasattr(value, "__len__")


def well_formed(text: str) -> str:
    """Return a text that every file can hold: surrogate halves joined, U+FFFD for an unpaired one."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def canonical_json(value: Any) -> str:
    """Return a value as canonical JSON text: sorted keys, no spaces; ValueError for NaN or an infinity."""
    return _canonical(value)


def digest(value: Any) -> str:
    """sha256 of a value's canonical JSON, 64 hex digits; unpaired surrogates count as themselves."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


_PARTS = ("systems", "judges", "pairs", "windows", "raters", "sets", "by")
"""What a row of a result's frame is, the first that it has."""

_BESIDE = ("low", "high", "n", "n_expected", "n_unscored")
"""What stands beside an estimate's value in a frame."""


def _columns(name: str, value: Any) -> dict[str, Any]:
    """Return a JSON value as columns, objects by dotted names, an estimate as its value and its counts."""
    if not isinstance(value, Mapping):
        return {} if isinstance(value, list) else {name: value}
    if value.keys() == {field.name for field in dataclasses.fields(Estimate)}:
        return {name: value["value"], **{f"{name}_{field}": value[field] for field in _BESIDE}}
    parts = (_columns(f"{name}.{part}" if name else part, inner) for part, inner in value.items())
    return {column: cell for part in parts for column, cell in part.items()}


def frame_of(content: Any) -> Any:
    """Return a polars DataFrame made from a content: a Result, or its JSON object (`Result.frame`)."""
    import polars

    plain = as_plain(content)
    lists = (plain[name] for name in _PARTS if isinstance(plain.get(name), list) and plain[name])
    rows = [_columns("", part) for part in next(lists, [plain])]
    return polars.DataFrame(rows, infer_schema_length=None)


class Result:
    """What a command comes to: a frozen dataclass whose fields are the keys of its JSON object."""

    __slots__ = ()
    # both set by the package's face, as the report lies above
    notebook_block: ClassVar[Callable[[Any], str]]
    headline_text: ClassVar[Callable[[Any], str]]

    def __init_subclass__(cls) -> None:
        """A dataclass keeps a repr that its class has, and so prints its headline."""
        if "__repr__" not in vars(cls):
            cls.__repr__ = Result.__repr__  # type: ignore[method-assign]

    def as_json(self) -> dict[str, Any]:
        """Return the result's own fields as the JSON object (dict) of the contract, for `json.dumps`."""
        plain: dict[str, Any] = as_plain(self)
        return plain

    def frame(self) -> Any:
        """Return the result as a polars DataFrame: a row a judge, system or part, or a row of it all.

        Columns are named as the JSON keys, a dot between two levels; an estimate is its value, with `_low`,
        `_high`, `_n`, `_n_expected` and `_n_unscored` beside it.
        """
        return frame_of(self)

    def __repr__(self) -> str:
        """The headline, what bears it out, and the next command; of a part of a result its fields."""
        return self.headline_text()

    def _repr_html_(self) -> str:
        """Headline and table in a notebook, drawn by the report, which is loaded when they are."""
        return self.notebook_block()


CANNOT_TELL = "cannot tell"
"""The reason of a rating without a label."""


@dataclass(frozen=True, slots=True)
class Context:
    """A passage that the system under test was given."""

    text: str
    document_id: str | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation: who spoke (`user`, `assistant` ...) and what was said."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to one question, of which a judge or a person prefers one."""

    answer_a: str
    answer_b: str
    system_a: str | None = None
    system_b: str | None = None

    def swapped(self) -> Pair:
        """The pair in the other order."""
        return Pair(self.answer_b, self.answer_a, self.system_b, self.system_a)


_NOTHING: Mapping[str, Any] = {}  # one for all items that have nothing there


class _Hashed:
    """What has a hash that is made once; no field, so that it stands in no file."""

    __slots__ = ("_sha",)
    _sha: str


@dataclass(frozen=True, slots=True)
class Item(_Hashed):
    """The thing judged: a question, an answer under test, and what a judge may ask for beside them.

    `reference_answers` holds equally right answers; empty where the set gives none. `group` is the question:
    items of one group are not independent and never stand in two splits. `fields` are further texts by name,
    `expect` the rules that the answer is held to, by name. `inclusion_probability` (above 0, at most 1) is
    the chance with which the item was drawn, where that is known.
    """

    item_id: str
    group: str
    question: str
    answer: str
    reference_answers: tuple[str, ...] = ()
    system: str | None = None
    reference_documents: tuple[str, ...] = ()
    contexts: tuple[Context, ...] = ()
    tags: tuple[str, ...] = ()
    conversation: tuple[Turn, ...] = ()
    fields: Mapping[str, str] = field(default_factory=lambda: _NOTHING, hash=False)
    expect: Mapping[str, Any] = field(default_factory=lambda: _NOTHING, hash=False)
    inclusion_probability: float | None = None
    pair: Pair | None = None

    @property
    def reference_answer(self) -> str | None:
        """The reference as a judge is shown it: the alternatives joined by ` | `, or None."""
        return " | ".join(self.reference_answers) if self.reference_answers else None

    @property
    def answered(self) -> str:
        """The answer as pages show it; of a pair both, each with its letter and its system."""
        if (pair := self.pair) is None:
            return self.answer
        a, b = (f" ({system})" if system else "" for system in (pair.system_a, pair.system_b))
        return f"A{a}: {pair.answer_a}\n\nB{b}: {pair.answer_b}"

    @property
    def answers(self) -> tuple[str, ...]:
        """The answer under test, or the two of a pair."""
        return (self.answer,) if self.pair is None else (self.pair.answer_a, self.pair.answer_b)

    @property
    def asked(self) -> str:
        """The question as pages show it; of an item without one its fields."""
        return self.question or "; ".join(f"{name}: {text}" for name, text in self.fields.items())

    @property
    def sha(self) -> str:
        """16 hex digits over what a judge may see; a changed text is a new key."""
        if not hasattr(self, "_sha"):
            object.__setattr__(self, "_sha", self._made_sha())
        return self._sha

    def _made_sha(self) -> str:
        contexts = [context.text for context in self.contexts]
        seen: list[Any] = [self.question, self.answer, list(self.reference_answers), contexts]
        if not (self.conversation or self.fields or self.expect or self.pair):
            with contextlib.suppress(TypeError):  # half a surrogate; of texts alone it writes the same bytes
                return hashlib.sha256(orjson.dumps(seen)).hexdigest()[:16]
            return digest(seen)[:16]
        turns = [[turn.role, turn.content] for turn in self.conversation]
        answers = [*self.answers] if self.pair else []
        further = {"conversation": turns, "fields": self.fields, "expect": self.expect, "pair": answers}
        present = {name: value for name, value in further.items() if value}
        return digest([*seen, present])[:16]


@dataclass(frozen=True, slots=True)
class Rating:
    """One human row: a label, with a note and a reason of the rater's own.

    `label` is None where the rater could not tell, and then `reason` is `CANNOT_TELL`: counted, and never a
    label. Of a pair `label` is of the item's own A and B, and `shown_left` which of them stood on the left,
    where that is known.
    """

    item_id: str
    rater: str
    label: Label | None
    note: str | None = None
    reason: str | None = None
    shown_left: Literal["A", "B"] | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a judgement has no verdict."""

    kind: ErrorKind
    message: str


@dataclass(slots=True)  # not frozen: its 22 fields would take ten times as long to set
class Judgement:
    """One judge row: the verdict on one item in one repeat, or the failure in its place.

    `verdict` is on the judge's own scale. `latency_s` is the time of the call that gave the verdict;
    `cost_usd` is summed over the attempts, None where the model has no price; `at` is UTC, ISO 8601, and so
    is `replied_at`: when the model gave the reply, where that was taken from the store; else None. Of a pair
    `verdict` is of the item's own A and B, whatever the `order` in which they were shown. `chances` are those
    of the allowed verdicts, which sum to 1, where they were asked for and could be had; else `why_said` says
    why the verdict is the word that was said.
    """

    item_id: str
    item_sha: str
    judge: str
    judge_fingerprint: str
    repeat: int
    verdict: Label | None
    reasoning: str = ""
    raw_reply: str | None = None
    error: Failure | None = None
    attempts: int = 1
    latency_s: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    model_id: str | None = None
    cached: bool = False
    replied_at: str | None = None
    at: str = ""
    unit: str = ITEM_UNIT
    order: str | None = None
    chances: dict[str, float] | None = None
    why_said: str | None = None

    @property
    def key(self) -> Key:
        """The key of the judgement; in a journal the last line of a key wins."""
        return Key(self.item_id, self.item_sha, self.judge_fingerprint, self.repeat, self.unit, self.order)

    def as_json(self) -> dict[str, Any]:
        """Return the journal line as a dict: every field in order; `dataclasses` is ten times slower."""
        row: dict[str, Any] = dict(zip(_JUDGEMENT_FIELDS, _judgement_values(self), strict=True))
        if self.error is not None:
            row["error"] = {"kind": self.error.kind, "message": self.error.message}
        return row


_JUDGEMENT_FIELDS = tuple(column.name for column in dataclasses.fields(Judgement))
_judgement_values = operator.attrgetter(*_JUDGEMENT_FIELDS)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number that may leave the house: with its interval, its n, and what is missing from it.

    >>> labels, verdicts = [1, 1, 0, 1, 0, 0, 1, 1, 0, 0], [1, 1, 0, 1, 0, 1, 1, 1, 0, None]
    >>> found = judgecal.agreement(labels, verdicts, scale="binary")
    >>> found["accuracy"].n, found["accuracy"].n_unscored, round(found["accuracy"].value, 3)
    (9, 1, 0.889)
    >>> found["kappa"].reason  # without groups each item is a question of its own
    '9 groups: fewer than 10 give no interval'

    Attributes:
        value: the point value; None where it is undefined, then `reason` says why.
        low, high: the ends of the interval; None where none can be given, then `reason` says why.
        level: the interval's nominal coverage.
        n: judgements (or pairs) that the value rests on.
        n_expected: judgements asked for.
        n_groups: questions that they belong to.
        n_unscored: judgements asked for and without a verdict.
        method: how the interval was made.
        reason: why the value or the interval is missing.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    n: int = 0
    n_expected: int = 0
    n_groups: int = 0
    n_unscored: int = 0
    method: str = ""
    reason: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The JSON object of the contract."""
        return dataclasses.asdict(self)

    def without_value(self, reason: str | None) -> Estimate:
        """The estimate without its value, and why it is undefined; counts stay."""
        return dataclasses.replace(self, value=None, low=None, high=None, method="", reason=reason)

    @property
    def clear_of_zero(self) -> bool:
        """Whether there is an interval and it does not hold 0."""
        return self.low is not None and self.high is not None and (self.low > 0.0 or self.high < 0.0)


_CHIP_OF_KIND = {
    **dict.fromkeys(("inconclusive", "cannot tell", "rescaled only", "nothing changed"), "cannot tell"),
    **{kind: kind for kind in ("too few", "unread", "pass", "fail", "changed")},
}


@dataclass(frozen=True, slots=True)
class Headline:
    """The one sentence that a result comes to, and what to do next.

    Attributes:
        kind: what it is in a word, for scripts: `use`, `tied`, `too few`, `none`, `pass`, `better` ...
        sentence: what to do or what was found, whole, with its full stop; at most 12 words.
        because: the sentences that bear it out; at most 40 words.
        unknown: what is not known, a sentence each; what weighs most comes first.
        next: the command to type; empty where there is none.
        chip: the decision in a word, one of `wording.CHIPS`; empty where nothing is decided. Of a kind that
            stands for one decision it need not be given.
        more: what else bears it out; the page folds it, the terminal has it with --full.
    """

    kind: str
    sentence: str
    because: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    next: str = ""
    chip: str = ""
    more: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.chip:
            object.__setattr__(self, "chip", _CHIP_OF_KIND.get(self.kind, ""))
