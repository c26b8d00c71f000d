"""A judge: signature + program + model + settings, printed and parsed as one string.

`correctness_v3@gemini-flash`, or with a compiled program `correctness_v3@gemini-flash#<experiment>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import dspy

from judgecal.engine import Message, Reading
from judgecal.errors import InputError
from judgecal.judges.adapter import JudgeAdapter, neutralised
from judgecal.judges.programfile import ProgramFile, load_program
from judgecal.judges.verdict import read_reply
from judgecal.models import ModelSpec, load_catalogue
from judgecal.models.embedded import VERSION
from judgecal.records import Item, digest
from judgecal.scale import Scale
from judgecal.signatures import LoadedSignature, load_signature
from judgecal.workspace import Workspace, find_workspace

__all__ = ["Judge", "JudgeName", "item_inputs"]


@dataclass(frozen=True, slots=True)
class JudgeName:
    """A judge's string, taken apart: it is split at the first `@`."""

    signature: str
    model: str
    program: str | None = None

    @classmethod
    def parse(cls, text: str) -> JudgeName:
        """Read a judge's string.

        Raises:
            InputError: it is not `signature@model` or `signature@model#experiment`.
        """
        signature, at, rest = text.partition("@")
        model, mark, program = rest.partition("#")
        if not (signature and at and model) or (mark and not program):
            raise InputError(f"{text!r} is no judge: write signature@model or signature@model#experiment")
        return cls(signature, model, program or None)

    def __str__(self) -> str:
        return f"{self.signature}@{self.model}" + (f"#{self.program}" if self.program else "")


class Judge:
    """What can judge an item.

    Args:
        spec: the judge's string.
        workspace: where signatures, aliases and experiments are; by default the current one.
        program: a compiled program to use instead of the one that the string names; `dspy.Predict`.

    Attributes:
        name: the string.
        signature, model: what it resolves to.
        program: the `dspy.Predict` whose instructions and demos make the prompt.
        trained_on: groups whose labels the program has seen.

    Raises:
        InputError: the string names something that is not there or cannot judge.
    """

    def __init__(
        self,
        spec: str | JudgeName,
        *,
        workspace: Workspace | None = None,
        program: dspy.Predict | None = None,
    ) -> None:
        workspace = workspace or find_workspace()
        parsed = JudgeName.parse(spec) if isinstance(spec, str) else spec
        self.name = str(parsed)
        self.signature: LoadedSignature = load_signature(parsed.signature, workspace=workspace)
        self.scale: Scale = self.signature.judge_scale()
        self.model: ModelSpec = load_catalogue(workspace).resolve(parsed.model)
        self.trained_on: frozenset[str] = frozenset()
        self.program: dspy.Predict = program or dspy.Predict(self.signature.cls)
        if parsed.program and program is None:
            self._load(workspace, parsed.program)
        self._adapter = JudgeAdapter()

    def _load(self, workspace: Workspace, experiment: str) -> None:
        path = Path(experiment) if Path(experiment).is_dir() else workspace.experiments / experiment
        stored: ProgramFile = load_program(path / "program.json", self.signature)
        self.program, self.trained_on = stored.program, stored.trained_on

    @property
    def compiled(self) -> type[dspy.Signature]:
        """The signature as the program has it: an optimiser may have written other instructions."""
        compiled: type[dspy.Signature] = self.program.signature
        return compiled

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits over everything that makes the reply: model, settings, and the messages themselves.

        The messages are those of an empty item, so signature, instructions, demos, adapter and neutralising are
        all in; a change to any of them is another key in the journal.
        """
        probe = Item("", "", "", "", reference_answers=("",))
        version = VERSION if self.model.embedded else ""
        return digest([self.model.settings(), version, self.messages(probe)])[:16]

    def messages(self, item: Item) -> list[Message]:
        """The chat messages for one item: what `adapter.format` gives, with all but the item's own text made once."""
        inputs = _values(self._inputs, item)
        return [*self._prefix, {"role": "user", "content": self._user_message(neutralised(inputs))}]

    @cached_property
    def _inputs(self) -> tuple[str, ...]:
        return tuple(self.signature.inputs)

    def _user_message(self, inputs: Mapping[str, str]) -> str:
        """The texts between the pieces of the frame; the adapter's own work where it has none."""
        if self._frame is None:
            return self._adapter.format_user_message_content(self.compiled, dict(inputs), main_request=True)
        names, pieces = self._frame
        parts = [pieces[0]]
        for name, piece in zip(names, pieces[1:], strict=True):
            parts += (inputs[name], piece)
        return "".join(parts)

    @cached_property
    def _frame(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """What the adapter puts around the values of an item, and in which order they stand.

        Read off a message with a marker for each value; None where the adapter does more with a value than to set it
        in its place.
        """
        marks = {name: f"\x02judgecal {number}\x03" for number, name in enumerate(self.signature.inputs)}
        text = self._adapter.format_user_message_content(self.compiled, marks, main_request=True)
        if any(text.count(mark) != 1 for mark in marks.values()):
            return None
        names = tuple(sorted(marks, key=lambda name: text.index(marks[name])))
        pieces = []
        for name in names:
            before, _, text = text.partition(marks[name])
            pieces.append(before)
        # The adapter strips the whole message: nothing of an item may stand at its ends.
        return (names, (*pieces, text)) if pieces and pieces[0].strip() and text.strip() else None

    @cached_property
    def _prefix(self) -> Sequence[Message]:
        empty = dict.fromkeys(self.signature.inputs, "")
        formatted: list[dict[str, Any]] = self._adapter.format(self.compiled, self.demos, empty)
        return [{"role": message["role"], "content": message["content"]} for message in formatted[:-1]]

    @property
    def demos(self) -> list[Any]:
        """The program's demos: examples, or the dicts of a loaded one."""
        return list(self.program.demos)

    def read(self, text: str) -> Reading:
        """Read the verdict from the text of a reply."""
        return read_reply(self.signature, text)

    def check_items(self, items: Sequence[Item]) -> None:
        """Refuse items that lack what the signature asks for.

        Raises:
            InputError: some item has no reference answer, or no contexts; names how many and the first ones.
        """
        wanted: dict[str, Any] = {"reference_answer": lambda item: item.reference_answer is not None}
        wanted["context"] = wanted["contexts"] = lambda item: bool(item.contexts)
        for name in self.signature.inputs:
            lacking = [item.item_id for item in items if name in wanted and not wanted[name](item)]
            if lacking:
                raise InputError(
                    f"signature {self.signature.name} asks for {name}, and {len(lacking)} of {len(items)} items have "
                    f"none ({', '.join(lacking[:3])}{' ...' if len(lacking) > 3 else ''}): use a signature without it"
                )


def item_inputs(signature: LoadedSignature, item: Item) -> dict[str, str]:
    """An item's values for a signature's input fields, in the order of the prompt."""
    return _values(signature.inputs, item)


def _values(names: Iterable[str], item: Item) -> dict[str, str]:
    contexts = "\n\n".join(context.text for context in item.contexts)
    values: Mapping[str, str] = {
        "question": item.question,
        "reference_answer": item.reference_answer or "",
        "answer_under_test": item.answer,
        "context": contexts,
        "contexts": contexts,
    }
    return {name: values[name] for name in names}
