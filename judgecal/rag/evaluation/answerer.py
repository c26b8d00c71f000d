"""Who answers: an `answer_*` signature + model, asked as a judge is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from judgecal.engine.calls import Message, ParsedReply
from judgecal.errors import InputError, refuse
from judgecal.judges.chat import JudgeAdapter, reply_schema
from judgecal.judges.protocol import JudgeName, item_inputs
from judgecal.judges.reply import after_thoughts, reply_fields
from judgecal.models import load_catalogue
from judgecal.models.embedded import VERSION
from judgecal.records import ITEM_UNIT, Failure, Item, digest
from judgecal.signatures import load_signature
from judgecal.workspace import Workspace

_INPUTS = ("question", "context", "contexts")
_REFUSE = "If the contexts do not hold the answer, reply with exactly these words and no others:"


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

    def messages(self, item: Item) -> Sequence[Message]:
        """Return the chat Messages, a sequence, that ask the writer to answer an Item."""
        inputs = item_inputs(self.signature.inputs, item)
        formatted: list[dict[str, Any]] = self._adapter.format(self._asked, [], inputs)
        return [{"role": message["role"], "content": message["content"]} for message in formatted]

    def check_items(self, items: Sequence[Item]) -> None:
        """What an item lacks is empty in the prompt."""

    def fields(self, text: str, needed: str) -> dict[str, str] | Failure:
        """Parse the text of a reply into field -> text; a Failure where the field `needed` is absent.

        A reply without any field is the output itself, where the signature has no other.
        """
        if not text.strip():
            return Failure("parse", "the reply is empty")
        reply = after_thoughts(text)
        fields: dict[str, str] = {}
        for name, value in reply_fields(reply, self.texts):  # the first of two with one name, as in DSPy
            fields.setdefault(name, "" if value is None else str(value).strip())
        text_alone = reply.partition("[[ ##")[0].strip()
        if fields.keys() <= {"completed"} and text_alone and [needed] == [*self.signature.cls.output_fields]:
            return {needed: text_alone}
        return (
            fields
            if needed in fields
            else Failure("parse", f"no {needed} in the reply: {text.strip()[:80]!r}")
        )

    def config(self) -> dict[str, Any]:
        """Return the writer's configuration as a dict: enough to know the same writer again."""
        return {
            "system": self.name,
            "fingerprint": self.fingerprint,
            "signature_fingerprint": self.signature.fingerprint,
            "model": self.model.settings(),
        }


class Answerer(Writer):
    """Who answers questions; `field` is the output of the answer: `answer`, else the last text."""

    def __init__(self, spec: str, *, workspace: Workspace, **options: Any) -> None:
        super().__init__(spec, workspace=workspace, **options)
        signature, name = self.signature, self.signature.name
        if signature.scale is not None:
            raise InputError(
                f"signature {name} gives a verdict ({signature.verdict}): it judges, and cannot answer"
            )
        problems = [] if self.texts else [f"signature {name} cannot answer: it has no text among its outputs"]
        if strange := ", ".join(field for field in signature.inputs if field not in _INPUTS):
            allowed = f"answerers may ask for {', '.join(_INPUTS)}"
            problems.append(f"signature {name}: we have nothing for input {strange}; {allowed}")
        refuse(problems)
        self.field = "answer" if "answer" in self.texts else self.texts[-1]

    @property
    def reads_contexts(self) -> bool:
        """Whether the prompt has a place for documents."""
        return any(name in ("context", "contexts") for name in self.signature.inputs)

    def read(self, text: str) -> ParsedReply:
        """Parse a reply's text into a ParsedReply whose verdict is the answer; an empty one counts."""
        fields = self.fields(text, self.field)
        if isinstance(fields, Failure):
            return ParsedReply(None, failure=fields)
        others = [fields[name] for name in self.texts if name != self.field and name in fields]
        return ParsedReply(fields[self.field], "\n".join(others))
