"""What a judge is: anything that gives a verdict on an item, be it a prompt to a model, a rule, or the user's
code.

A judge prints and parses as one string, split at the first `@`: `correctness_v3@gemini-flash` (a signature
and a model; with a compiled program `...#<experiment>`), `exact_match@local` (a rule that calls nobody),
`checks.py:score@python` (a function of the user's). A rule may have settings, `include(match=phrase)@local`.
`...*5` (or `... x5`) is the mean of five calls of a judge that is asked anew
each time. Verdicts that came with the data are a recorded judge's.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeGuard

from judgecal.engine.calls import Message, ParsedReply, ReplySchema
from judgecal.errors import InputError
from judgecal.judges.local import local_rules
from judgecal.models import EMBEDDED, ModelSpec
from judgecal.records import ITEM_UNIT, ORDERS, PAIR_UNIT, Item
from judgecal.scale import Scale
from judgecal.signatures import ANSWER_A, ANSWER_B, CHUNK, LoadedSignature

JudgeKind = Literal["prompt", "local", "python", "recorded"]
_SHOWN = 3  # item ids named in one message
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_SETTING = re.compile(rf'\s*([^\W\d]\w*)\s*=\s*({_QUOTED}|[^,()"]*)\s*')
_WITH_SETTINGS = re.compile(rf'([^@]+?)\(((?:{_QUOTED}|[^()"])*)\)@local')
_CALLS = re.compile(r'(.+@.+?)(?:\*| +x(?=[\d.-]|$))([^@"()]*)', re.DOTALL)
_MOST_CALLS = 100
_BARE = re.compile(r"[\w.+-]+")  # a value that needs no quotes
ITEM_VALUES: Mapping[str, Callable[[Item], Any]] = {
    "item": lambda item: item,
    "question": lambda item: item.question or None,
    **dict.fromkeys(
        # an answer to a question may be empty
        ("answer_under_test", "answer", "response"),
        lambda item: item.answer if item.answer or item.question else None,
    ),
    "reference_answer": lambda item: item.reference_answer,
    "reference_answers": lambda item: item.reference_answers or None,
    "context": lambda item: "\n\n".join([part.text for part in item.contexts]) if item.contexts else None,
    "contexts": lambda item: tuple(context.text for context in item.contexts) or None,
    "conversation": lambda item: item.conversation or None,
    "expect": lambda item: item.expect or None,
    # the one that `units_of` names, or the item's only context
    CHUNK: lambda item: item.fields.get(
        CHUNK, (item.contexts[0].text if len(item.contexts) == 1 else "") if item.contexts else None
    ),
    ANSWER_A: lambda item: item.pair and item.pair.answer_a,
    ANSWER_B: lambda item: item.pair and item.pair.answer_b,
}
"""What a judge is given of an item under an input's name; None where the item has nothing for it."""


@dataclass(frozen=True, slots=True)
class JudgeName:
    """A judge's string, taken apart.

    Attributes:
        signature: the signature; of a local judge its name, of a python judge `file.py:function`.
        model: the model's alias, or the word `local` or `python`.
        program: the experiment that compiled its program, or None.
        settings: of a local judge, by name: the values as texts.
        calls: how many make one verdict, their mean.
    """

    signature: str
    model: str
    program: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    calls: int = 1

    @classmethod
    def parse(cls, text: str) -> JudgeName:
        """Parse a text such as `correctness_v3@model` as a JudgeName; InputError where it is none."""
        if match := _CALLS.fullmatch(text):
            single = cls.parse(match[1])
            calls = int(match[2]) if match[2].isdecimal() else 0
            if single.kind == "local" or single.model == EMBEDDED:
                raise InputError(f"{text}: {single} gives the same verdict each time: leave *{match[2]} out")
            if single.calls > 1 or not 2 <= calls <= _MOST_CALLS:
                raise InputError(f"{text}: *K is one number of calls, from 2 to {_MOST_CALLS}")
            return dataclasses.replace(single, calls=calls)
        if match := _WITH_SETTINGS.fullmatch(text):
            return cls(match[1], "local", settings=_settings(match[2], text))
        signature, _, behind = text.partition("@")
        model, mark, program = behind.partition("#")
        name = cls(signature, model, program or None)
        if signature and model and (program or not mark) and (name.kind != "local" or not program):
            return name
        kind = "local" if text in local_rules() else "embedded"
        meant = f" (did you mean {text}@{kind}?)" if re.fullmatch(r"[\w/.-]+", text) else ""
        raise InputError(
            f"{text!r} is not a judge: write signature@model, signature@model#experiment, NAME@local, "
            f"NAME(setting=value)@local or FILE.py:FUNCTION@python{meant}"
        )

    @classmethod
    def read(cls, text: str) -> JudgeName | None:
        """Parse a text as a JudgeName; None where it has another form, such as a model's name alone."""
        try:
            return cls.parse(text)
        except InputError:
            return None

    @property
    def kind(self) -> JudgeKind:
        """What the string names."""
        kinds: Mapping[str, JudgeKind] = {"local": "local", "python": "python"}
        return kinds.get(self.model, "prompt")

    @property
    def in_reach(self) -> bool:
        """Whether a command can run it: a function that only a script has in hand is in no file."""
        return self.kind != "python" or ".py:" in self.signature

    @property
    def system(self) -> str:
        """The model with its program, as it stands behind the `@`, with the number of calls."""
        return self.model + (f"#{self.program}" if self.program else "") + self.mark

    @property
    def mark(self) -> str:
        """`*5` for the mean of five calls, at the end of name and fingerprint; empty for one call."""
        return f"*{self.calls}" if self.calls > 1 else ""

    def scale_of(self, call: Scale) -> Scale:
        """Return the Scale of the judge's verdicts from the Scale of a call; half the calls' yes passes."""
        if self.calls == 1:
            return call
        return dataclasses.replace(call.of_means, pass_at=0.5 if call.kind == "binary" else call.pass_at)

    @property
    def stem(self) -> str:
        """The signature's, prompt's or function's own name, without folders and ending."""
        return self.signature.rpartition("/")[2].removesuffix(".py").removesuffix(".md")

    def __str__(self) -> str:
        settings = ",".join(f"{name}={_written(value)}" for name, value in self.settings)
        return f"{self.signature}{f'({settings})' * bool(settings)}@{self.system}"


def _settings(text: str, whole: str) -> tuple[tuple[str, str], ...]:
    """`overlap=0.2, match="a phrase"` by name, sorted."""
    settings: dict[str, str] = {}
    at = 0
    while at < len(text.rstrip()):
        match = _SETTING.match(text, at)
        if match is None or (match.end() < len(text) and text[match.end()] != ","):
            raise InputError(
                f'{whole}: write its settings as (name=value, other="a text with blanks"), found ({text})'
            )
        name, value = match[1], match[2].strip()
        if name in settings:
            raise InputError(f"{whole}: the setting {name} is given twice: keep one")
        settings[name] = _unquoted(value, whole)
        at = match.end() + 1
    return tuple(sorted(settings.items()))


def _unquoted(value: str, whole: str) -> str:
    try:
        return str(json.loads(value, strict=False)) if value.startswith('"') else value
    except ValueError:
        raise InputError(f"{whole}: {value} is not a text in quotes: write a backslash as \\\\") from None


def _written(value: str) -> str:
    """A value as it is written; in quotes without an `@`, so that a name is split at its first one."""
    if _BARE.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False).replace("@", "\\u0040")


class Respondent(Protocol):
    """Who is asked about items: a judge with a verdict, or an answerer whose verdict is its answer.

    Attributes:
        name: the string, as rows of the journal carry it.
        unit: `item`, or `chunk` where each context of an item is asked about by itself.
        fingerprint: 16 hex digits over everything that makes the verdict.
        model: who is called; None where nobody is.
    """

    name: str
    unit: str

    @property
    def fingerprint(self) -> str: ...

    @property
    def model(self) -> ModelSpec | None: ...

    def check_items(self, items: Sequence[Item]) -> None:
        """Raises: InputError: items lack what is asked for."""


class Caller(Respondent, Protocol):
    """A respondent with a call to make; `schema` is what its reply must be, None where the prompt says it."""

    @property
    def model(self) -> ModelSpec: ...

    @property
    def schema(self) -> ReplySchema | None: ...

    def messages(self, item: Item) -> Sequence[Message]:
        """The chat messages for one item."""
        ...

    def read(self, text: str) -> ParsedReply:
        """What a reply says."""
        ...


class Decider(Respondent, Protocol):
    """A respondent with a verdict to give."""

    def verdict(self, item: Item) -> ParsedReply | Awaitable[ParsedReply]:
        """The verdict on one item, or why there is none; or what gives it once awaited."""
        ...


class Judge(Respondent, Protocol):
    """What can judge items; a `Caller` or a `Decider` too, unless its verdicts were recorded.

    Attributes:
        kind: how it comes to its verdicts.
        scale: of its verdicts.
        inputs: what it asks for of an item, by name.
        trained_on: groups whose labels it has seen.
        signature: of a prompt; None where there is none.
    """

    kind: JudgeKind
    scale: Scale
    inputs: tuple[str, ...]
    trained_on: frozenset[str]

    @property
    def signature(self) -> LoadedSignature | None: ...


def calls_a_model(judge: Respondent) -> TypeGuard[Caller]:
    """Whether somebody is called, so that there is something to pay and to wait for."""
    return judge.model is not None


def decides_itself(judge: Respondent) -> TypeGuard[Decider]:
    """Whether a judge gives its verdicts without a call (`Decider`)."""
    return judge.model is None


@dataclass(slots=True)
class RecordedJudge:
    """A judge whose verdicts came with the data: it can be read, and not be asked."""

    name: str
    scale: Scale
    fingerprint: str
    kind: JudgeKind = "recorded"
    unit: str = ITEM_UNIT
    inputs: tuple[str, ...] = ()
    trained_on: frozenset[str] = frozenset()
    model: None = None
    signature: None = None

    def check_items(self, items: Sequence[Item]) -> None:
        """Accept any items: a recorded judge asks for nothing."""


def single_calls(fingerprint: str) -> tuple[str, int]:
    """From a judge's fingerprint, return that of its calls in a journal, and their number in a verdict."""
    single, _, calls = fingerprint.partition("*")
    return single, int(calls or 1)


def units_of(judge: Respondent, item: Item) -> Iterator[tuple[str, str | None, Item]]:
    """Yield (unit, order, Item as shown) for all that a judge (Respondent) is asked about of an Item.

    The whole item; or each of its contexts: then the item holds that text as its field `chunk`; or its pair
    of answers in both orders.
    """
    if judge.unit in (PAIR_UNIT, CHUNK):
        return _parts(judge, item)
    return iter(((ITEM_UNIT, None, item),))


def _parts(judge: Respondent, item: Item) -> Iterator[tuple[str, str | None, Item]]:
    if judge.unit == CHUNK:
        for place, context in enumerate(item.contexts):
            shown = dataclasses.replace(item, fields={**item.fields, CHUNK: context.text})
            yield f"{CHUNK}:{place}", None, shown
    elif item.pair is None:
        yield ITEM_UNIT, None, item
    else:
        yield PAIR_UNIT, ORDERS[0], item
        yield PAIR_UNIT, ORDERS[1], dataclasses.replace(item, pair=item.pair.swapped())


def item_value(name: str, item: Item) -> Any:
    """Return the value that an Item has under an input's name, also in its fields; None for nothing."""
    value_of = ITEM_VALUES.get(name)
    return item.fields.get(name) if value_of is None else value_of(item)


def item_inputs(names: Iterable[str], item: Item) -> dict[str, str]:
    """Return an item's texts for the input fields of a prompt, in their order; one that it lacks is empty."""
    return {name: _text(item_value(_AS_TEXT.get(name, name), item)) for name in names}


_AS_TEXT = {"reference_answers": "reference_answer", "contexts": "context"}


def _text(value: Any) -> str:
    if isinstance(value, tuple):  # the turns of a conversation
        return "\n\n".join([f"{turn.role}: {turn.content}" for turn in value])
    return value if isinstance(value, str) else ""


def lacking_inputs(names: Iterable[str], item: Item) -> list[str]:
    """The inputs that an item has nothing for; an answer may be empty, and so may a field that is there."""
    return [name for name in names if item_value(name, item) is None]


def refuse_lacking(who: str, names: Sequence[str], items: Sequence[Item]) -> None:
    """Refuse Items that lack inputs of these names, for the judge (`who`), all in one message."""
    lacking: dict[str, list[str]] = {}
    for item in items:
        for name in lacking_inputs(names, item):
            lacking.setdefault(name, []).append(item.item_id)
    if lacking:
        raise InputError(
            f"{who} asks for {name}, and {len(ids)} of {len(items)} items have none "
            f"({', '.join(ids[:_SHOWN])}{' ...' * (len(ids) > _SHOWN)}): use a judge without it"
            for name, ids in lacking.items()
        )
