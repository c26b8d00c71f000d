"""Who answers, an `answer_*` signature + model asked as a judge is; and who grades the answers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal.engine import Message, ParsedReply
from judgecal.errors import InputError, refuse
from judgecal.judges import Judge, JudgeAdapter, JudgeName, item_inputs, judge_named, reply_fields
from judgecal.judges.chat import reply_schema
from judgecal.judges.reply import after_thoughts
from judgecal.models import load_catalogue
from judgecal.models.embedded import VERSION
from judgecal.production.suite import LoadedJudge
from judgecal.rag.evaluation.summary import CORRECTNESS
from judgecal.records import ITEM_UNIT, Failure, Item, digest
from judgecal.selection.lock import load_lock
from judgecal.signatures import load_signature
from judgecal.stats import Calibration
from judgecal.workspace import Workspace

_INPUTS = ("question", "context", "contexts")
_REFUSE = "If the contexts do not hold the answer, reply with exactly these words and no others:"
_DEFAULT_JUDGE = "correctness_v3@embedded"


class Writer:
    """Who writes texts, by a string such as `answer_v1@model`: a signature whose outputs are read as texts.

    A `system_message` stands in the place of the signature's instructions, which make that message; to either
    the `refusal_message` is added, as the words to refuse with; a `temperature` in the place of the alias's
    own. As a judge's, the reply is asked for by a JSON schema where the alias does not say
    `structured = "off"`, so that no field can be missing.
    """

    unit = ITEM_UNIT

    def __init__(
        self,
        spec: str,
        *,
        workspace: Workspace,
        temperature: float | None = None,
        system_message: str | None = None,
        refusal_message: str | None = None,
    ) -> None:
        parsed = JudgeName.parse(spec)
        if parsed.program:
            raise InputError(
                f"{spec}: compiled programs are judges' alone; write {parsed.signature}@{parsed.model}"
            )
        self.name = str(parsed)
        self.signature = load_signature(parsed.signature, workspace=workspace)
        self.model = replace(load_catalogue(workspace).resolve(parsed.model), verdict="said")
        if temperature is not None:
            self.model = replace(self.model, temperature=temperature)
        outputs = self.signature.cls.output_fields
        instructions = system_message or self.signature.cls.instructions
        if refusal_message:
            instructions += f"\n\n{_REFUSE} {refusal_message}"
        self._asked = self.signature.cls.with_instructions(instructions)
        self.refusal_message, self.system_message = refusal_message, system_message
        self.texts = [field for field, info in outputs.items() if info.annotation is str]
        self.schema = reply_schema(self.signature) if self.model.replies_in_json else None
        self._adapter = JudgeAdapter(in_json=self.schema is not None)

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits over what makes the reply: model, settings, and the messages of an empty item."""
        version = VERSION if self.model.embedded else ""
        return digest([self.model.settings(), version, self.messages(Item("", "", "", ""))])[:16]

    @property
    def described(self) -> str:
        """Its string, its signature's fingerprint, its model, that of the whole prompt."""
        return f"{self.name}[{self.signature.fingerprint[:8]},{self.model.id},{self.fingerprint[:8]}]"

    def messages(self, item: Item) -> Sequence[Message]:
        """The chat messages for one item."""
        inputs = item_inputs(self.signature.inputs, item)
        formatted: list[dict[str, Any]] = self._adapter.format(self._asked, [], inputs)
        return [{"role": message["role"], "content": message["content"]} for message in formatted]

    def check_items(self, items: Sequence[Item]) -> None:
        """What an item lacks is empty in the prompt."""

    def fields(self, text: str, needed: str) -> dict[str, str] | Failure:
        """The texts of a reply by their names, stripped; a failure where the needed one is not there.

        A reply without any field is the output itself, where the signature has no other.
        """
        if not text.strip():
            return Failure("parse", "the reply is empty")
        said = after_thoughts(text)
        fields: dict[str, str] = {}
        for name, value in reply_fields(said, self.texts):  # the first of two with one name, as in DSPy
            fields.setdefault(name, "" if value is None else str(value).strip())
        text_alone = said.partition("[[ ##")[0].strip()
        if fields.keys() <= {"completed"} and text_alone and [needed] == [*self.signature.cls.output_fields]:
            return {needed: text_alone}
        return (
            fields
            if needed in fields
            else Failure("parse", f"no {needed} in the reply: {text.strip()[:80]!r}")
        )

    def config(self) -> dict[str, Any]:
        """What a configuration says of it: enough to know that it is the same one."""
        return {
            "system": self.name,
            "fingerprint": self.fingerprint,
            "signature_fingerprint": self.signature.fingerprint,
            "model": self.model.settings(),
        }


class Answerer(Writer):
    """Who answers questions; `field` is the output of the answer: `answer`, else the last text."""

    def __init__(self, spec: str, *, workspace: Workspace, **how: Any) -> None:
        super().__init__(spec, workspace=workspace, **how)
        signature, name = self.signature, self.signature.name
        if signature.scale is not None:
            raise InputError(
                f"signature {name} gives a verdict ({signature.verdict}): it judges, and cannot answer"
            )
        problems = [] if self.texts else [f"signature {name} cannot answer: it has no text among its outputs"]
        if strange := ", ".join(field for field in signature.inputs if field not in _INPUTS):
            asked = f"answerers may ask for {', '.join(_INPUTS)}"
            problems.append(f"signature {name}: we have nothing for input {strange}; {asked}")
        refuse(problems)
        self.field = "answer" if "answer" in self.texts else self.texts[-1]

    @property
    def reads_contexts(self) -> bool:
        """Whether the prompt has a place for documents."""
        return any(name in ("context", "contexts") for name in self.signature.inputs)

    def read(self, text: str) -> ParsedReply:
        """The answer as the verdict; an empty one is an answer, a reply without the field is none."""
        fields = self.fields(text, self.field)
        if isinstance(fields, Failure):
            return ParsedReply(None, failure=fields)
        others = [fields[name] for name in self.texts if name != self.field and name in fields]
        return ParsedReply(fields[self.field], "\n".join(others))

    def check_items(self, items: Sequence[Item]) -> None:
        """Refuse documents that the prompt has no place for."""
        if not self.reads_contexts and any(item.contexts for item in items):
            raise InputError(
                f"signature {self.signature.name} has no input context or contexts, so that no document "
                f"would reach {self.name}: give it one, or use --contexts none"
            )


@dataclass(frozen=True, slots=True)
class GradedBy:
    """Who graded, as the result names it."""

    described: str  # its string, or the lock that it comes from
    locked_on: str | None  # the gold set; None where it was not locked
    fingerprint: str
    band: float | None = None  # half the width of its own uncertainty in percentage points, where known
    band_from: str | None = None  # what the band is, in words
    calibration: Calibration | None = None  # its lock's map, from verdicts to shares of the people's scale


@dataclass(frozen=True, slots=True)
class Grader:
    """A judge in the role of the grader of answers, by the map of its lock where it has one."""

    loaded: LoadedJudge
    about: GradedBy

    @property
    def judge(self) -> Judge:
        return self.loaded.judge

    def __post_init__(self) -> None:
        if not self.judge.scale.numeric:
            unfit = "gives words without an order, and we rate an answer in percent"
            raise InputError(f"{self.judge.name} {unfit}: use another")

    def warnings(self, answerers: Sequence[Answerer], groups: Collection[str]) -> list[str]:
        """What stands against its grading these answerers' answers to these questions."""
        notes, model, trained = [], self.judge.model, self.judge.trained_on & set(groups)
        if self.about.locked_on is None:
            unknown = "nobody here knows how far its ratings agree with people's"
            notes.append(f"{self.about.described} was not locked on a gold set: {unknown}")
        if model is not None and any(answerer.model.id == model.id for answerer in answerers):
            notes.append(
                f"model {model.alias} answers and rates its own answers, and judges favour their own"
            )
        if trained:
            of = f"labels of {len(trained)} of these questions"
            notes.append(f"{self.judge.name} was trained on {of}: it may know them")
        return notes


def choose_grader(
    judge: str | None, lock: Path | None, *, workspace: Workspace, trust_lock: bool = False
) -> Grader:
    """Who grades: a named judge (`correctness_v3@embedded` where none is), or the judge of a lock.

    The band of a lock's judge is what its bias on test may be; `trust_lock` is as `Lock.runnable` has it.
    """
    if lock is None:
        named = judge_named(judge or _DEFAULT_JUDGE, workspace=workspace)
        if named.unit != ITEM_UNIT:
            raise InputError(f"{named.name} judges single contexts, and we rate whole answers")
        return Grader(LoadedJudge.unlocked(CORRECTNESS, named), GradedBy(named.name, None, named.fingerprint))
    if judge is not None:
        raise InputError(f"--lock {lock} and --judge {judge} both name who rates: give one of them")
    locked = load_lock(lock)
    loaded = LoadedJudge.locked(CORRECTNESS, lock, workspace, trust_lock=trust_lock)
    gold, bias, rule = locked.gold, locked.applied.get("bias"), loaded.rule
    people = rule.common if rule.calibration is None else rule.people
    band, to_shares = None, rule.calibration
    if to_shares is not None:
        shares = tuple((label - people.low) / people.span for label in to_shares.values)
        to_shares = replace(to_shares, values=shares)
    if bias is not None and bias.low is not None and bias.high is not None:
        band = 100.0 * max(abs(bias.low), abs(bias.high)) / people.span
    band_from = f"the farther end of its bias on the test items of {gold.set}"
    described = f"{locked.judge} ({lock.name})"
    by = GradedBy(described, gold.set, loaded.judge.fingerprint, band, band_from, to_shares)
    return Grader(loaded, by)
