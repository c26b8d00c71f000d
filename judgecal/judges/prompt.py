"""A judge that is a prompt to a model: signature + program + model + settings.

A compiled program stands in an experiment's `program.json` as DSPy saves it, with what judgecal must know to
trust it again; `dspy.Predict(signature).load(path)` reads it too, as our part stands under a key of its own.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import dspy

from judgecal.artefacts import SCHEMA, check_schema, read_json, validated
from judgecal.engine.calls import Message, ParsedReply, ReplySchema, Token
from judgecal.errors import InputError, refuse
from judgecal.judges.chat import JudgeAdapter, TextAdapter, neutralised, reply_schema
from judgecal.judges.protocol import JudgeKind, JudgeName, item_inputs, refuse_lacking
from judgecal.judges.reply import read_reply, read_text_reply, read_verdict
from judgecal.models import ModelSpec, load_catalogue
from judgecal.models.embedded import VERSION
from judgecal.records import Context, Item, Pair, Turn, digest
from judgecal.scale import FALSE_WORDS, TRUE_WORDS, Label, Scale
from judgecal.signatures import LoadedSignature, load_signature, unit_of
from judgecal.workspace import Workspace, find_workspace, write_text

PROBE = Item("", "", "", "", reference_answers=("",))
"""An empty item: the messages of a judge about it hold everything of the prompt but the item's own text."""

_NAMED = Item(
    item_id="",
    group="",
    question="{question}",
    answer="{answer}",
    reference_answers=("{reference_answer}",),
    contexts=(Context("{context}"),),
    pair=Pair("{answer_a}", "{answer_b}"),
    conversation=(Turn("user", "{conversation}"),),
)
_OURS = "judgecal"


def turns_text(turns: Iterable[Message]) -> str:
    """Messages as one text, the role above each."""
    return "\n\n".join(f"[{turn['role']}]\n{turn['content']}" for turn in turns)


class PromptJudge:
    """A judge that calls a model.

    Args:
        program: a compiled program to use instead of the one that the string names; `dspy.Predict`.
        loaded: signature and model to use instead of those that the string names.

    Attributes:
        program: the `dspy.Predict` whose instructions and demos make the prompt.
        trained_on: groups whose labels the program has seen.
    """

    kind: JudgeKind = "prompt"

    def __init__(
        self,
        spec: str | JudgeName,
        *,
        workspace: Workspace | None = None,
        program: dspy.Predict | None = None,
        loaded: tuple[LoadedSignature, ModelSpec] | None = None,
    ) -> None:
        workspace = workspace or find_workspace()
        parsed = JudgeName.parse(spec) if isinstance(spec, str) else spec
        self.name = str(parsed)
        self.signature: LoadedSignature
        self.model: ModelSpec
        if loaded is None:
            signature = load_signature(parsed.signature, workspace=workspace)
            loaded = signature, load_catalogue(workspace).resolve(parsed.model)
        self.signature, self.model = loaded
        self.mark = parsed.mark
        self.unit = unit_of(self.signature.inputs)
        self.inputs = self.signature.inputs
        call = self.signature.judge_scale()
        if self.model.weighs:  # half the chances of yes are a pass
            call = dataclasses.replace(call.of_means, pass_at=0.5 if call.kind == "binary" else call.pass_at)
        self.scale: Scale = parsed.scale_of(call)
        self.trained_on: frozenset[str] = frozenset()
        self.program: dspy.Predict = program or dspy.Predict(self.signature.cls)
        if parsed.program and program is None:
            experiment = Path(parsed.program)
            folder = experiment if experiment.is_dir() else workspace.experiments / experiment
            stored = load_program(folder / "program.json", self.signature)
            self.program, self.trained_on = stored.program, stored.trained_on

    @cached_property
    def verbatim(self) -> bool:
        """Whether a text prompt is sent as it stands: no optimiser has added to it.

        The embedded model reads no prose, so it is given the fields.
        """
        program, plain = self.program, self.signature.cls.instructions
        unchanged = not program.demos and program.signature.instructions == plain
        return self.signature.prompt is not None and unchanged and not self.model.embedded

    @cached_property
    def schema(self) -> ReplySchema | None:
        """What the reply must be; of a text prompt only where its head asks for it."""
        if not self.model.replies_in_json:
            return None
        if (prompt := self.signature.prompt) is None or not self.verbatim:
            return reply_schema(self.signature)
        return reply_schema(self.signature, str(prompt.path[0])) if prompt.structured else None

    @cached_property
    def adapter(self) -> dspy.Adapter:
        """The DSPy adapter that makes the judge's messages."""
        return TextAdapter(self.signature) if self.verbatim else JudgeAdapter(in_json=self.schema is not None)

    @property
    def compiled(self) -> type[dspy.Signature]:
        """The signature as the program has it: an optimiser may have written other instructions."""
        compiled: type[dspy.Signature] = self.program.signature
        return compiled

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits over everything that makes the reply: model, settings, and the prompt.

        The messages are those of an empty item, so signature, instructions, demos, adapter and neutralising
        are all in; a change to any of them is another key in the journal. Whether the server takes the schema
        is not: it is asked with the same prompt either way, so a judge is one judge wherever it runs.
        """
        version = VERSION if self.model.embedded else ""
        return digest([self.model.settings(), version, *self.prompt()])[:16] + self.mark

    def prompt(self) -> list[Any]:
        """Return the messages that are sent about an empty item, for fingerprints, and any schema."""
        messages = self.messages(PROBE)
        return [messages] if self.schema is None else [messages, self.schema.as_json()]

    def messages(self, item: Item) -> list[Message]:
        """Return the list of chat Messages for an Item, as `adapter.format`; all but its text made once."""
        if self.verbatim:
            return list(self.adapter.format(self.compiled, [], item_inputs(self.inputs, item)))
        harmless = neutralised(item_inputs(self.inputs, item), keys=self._reply_keys)
        names, pieces = self._frame
        parts = [pieces[0]]
        for name, piece in zip(names, pieces[1:], strict=True):
            parts += (harmless[name], piece)
        return [*self._prefix, {"role": "user", "content": "".join(parts)}]

    def as_sent(self) -> str:
        """Return the messages as a text, with the names of the inputs in their places."""
        return turns_text(
            self.messages(dataclasses.replace(_NAMED, fields={name: f"{{{name}}}" for name in self.inputs}))
        )

    @cached_property
    def _reply_keys(self) -> tuple[str, ...]:
        return tuple(self.compiled.output_fields) if self.schema is not None else ()

    @cached_property
    def _frame(self) -> tuple[list[str], list[str]]:
        """The names of an item's values in the user message, and the pieces of text around them.

        Read off a message with a marker for each value: the adapter itself takes twenty times as long.
        """
        marks = {name: f"\x02judgecal {number}\x03" for number, name in enumerate(self.inputs)}
        text = self.adapter.format_user_message_content(self.compiled, marks, main_request=True)
        return sorted(marks, key=lambda name: text.index(marks[name])), re.split(
            "\x02judgecal \\d+\x03", text
        )

    @cached_property
    def _prefix(self) -> Sequence[Message]:
        empty = dict.fromkeys(self.inputs, "")
        formatted: list[dict[str, Any]] = self.adapter.format(self.compiled, self.demos, empty)
        return [{"role": message["role"], "content": message["content"]} for message in formatted[:-1]]

    @property
    def demos(self) -> list[Any]:
        """The program's demos: examples, or the dicts of a loaded one."""
        return list(self.program.demos)

    def read(self, text: str) -> ParsedReply:
        """Read the verdict from the text of a reply."""
        return (read_text_reply if self.verbatim else read_reply)(self.signature, text)

    @property
    def weigh(self) -> Callable[[str, Sequence[Token], ParsedReply], ParsedReply] | None:
        """What takes the verdict from the chances of its token; None where the word counts."""
        if self.model.weighs and self.model.embedded:
            return partial(embedded_mean, self.signature)
        return partial(weigh_verdict, self.signature, read=self.read) if self.model.weighs else None

    def check_items(self, items: Sequence[Item]) -> None:
        """Refuse Items that lack what the judge's own signature asks for, as `refuse_lacking` does."""
        refuse_lacking(f"signature {self.signature.name}", self.inputs, items)
        text = self.signature.prompt.text if self.signature.prompt else ""
        meant = {name for item in items for name in item.fields if f"{{{name}}}" in text} - {*self.inputs}
        what = "would be sent as it stands, and the items have such a field: write"
        who = self.signature.name
        refuse([f"{who}: {{{name}}} {what} {{{{ {name} }}}}" for name in sorted(meant)])


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A compiled program and the groups whose labels it has seen."""

    program: dspy.Predict
    trained_on: frozenset[str]


def save_program(
    path: Path, program: dspy.Module, *, signature: LoadedSignature, trained_on: Iterable[str]
) -> None:
    """Write to a path, as JSON, a program (dspy.Module), its LoadedSignature and the groups trained on."""
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "program.json"
        program.save(str(saved))
        state = json.loads(saved.read_text(encoding="utf-8"))
    state["schema"] = SCHEMA
    state[_OURS] = {
        "signature": signature.name,
        "signature_fingerprint": signature.fingerprint,
        "trained_on": sorted(trained_on),
    }
    write_text(path, json.dumps(state, indent=2) + "\n")


def load_program(path: Path, signature: LoadedSignature) -> ProgramFile:
    """Read the file at a path as a ProgramFile, for the LoadedSignature that it was compiled from."""
    state = read_json(path, absent="there is no compiled program here; judgecal optimize writes one")
    return program_of(state, signature, str(path))


@dataclass(frozen=True, slots=True)
class _CompiledFrom:
    signature: str
    signature_fingerprint: str
    trained_on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _FieldState:
    prefix: str
    description: str


@dataclass(frozen=True, slots=True)
class _SignatureState:
    instructions: str
    fields: tuple[_FieldState, ...]


@dataclass(frozen=True, slots=True)
class PromptState:
    """What DSPy saves of a prompt: texts and numbers."""

    signature: _SignatureState
    demos: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _ProgramState(PromptState):
    """What is read of `program.json`: no model, traces and versions."""

    judgecal: _CompiledFrom
    fields: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)


def program_of(state: Mapping[str, Any], signature: LoadedSignature, where: str) -> ProgramFile:
    """Return the ProgramFile that a state (JSON) holds for a LoadedSignature; `where` names it in errors.

    Data alone is taken over: DSPy's own loader would set whatever attribute a file names, and make its model.
    """
    check_schema(state, where)
    if not isinstance(state.get(_OURS), dict):
        raise InputError(
            f"{where}: not written by judgecal: it does not say which signature it was compiled from"
        )
    read = validated(_ProgramState, state, where)
    ours = read.judgecal
    if ours.signature_fingerprint != signature.fingerprint:
        raise InputError(
            f"{where}: compiled from signature {ours.signature} with fingerprint "
            f"{ours.signature_fingerprint[:8]}, and {signature.name} now has {signature.fingerprint[:8]}: "
            "run judgecal optimize again"
        )
    program = with_prompt(dspy.Predict(signature.cls), state, where)
    program.fields = read.fields
    return ProgramFile(program, frozenset(ours.trained_on))


def with_prompt(program: dspy.Module, state: Mapping[str, Any], where: str) -> dspy.Module:
    """Return a copy of a dspy.Module, its one prompt from a state of DSPy's; `where` names it in errors."""
    program, again = program.deepcopy(), "run judgecal optimize again"
    if not {"signature", "demos"} <= state.keys() or len(program.predictors()) != 1:
        raise InputError(f"{where}: the saved program has no such prompt: {again}")
    (predictor,) = program.predictors()
    read = validated(PromptState, {key: state[key] for key in ("signature", "demos")}, where)
    saved, there = len(read.signature.fields), len(predictor.signature.fields)
    if saved != there:
        raise InputError(f"{where}: signature.fields has {saved} entries, and the signature {there}: {again}")
    predictor.signature = predictor.signature.load_state(dataclasses.asdict(read.signature))
    predictor.demos = read.demos
    return program


LEAST_MASS = 0.9
"""Of the probability at the verdict's token that must lie on allowed verdicts."""
_AROUND = " \t\r\n\"'`*_{}[](),.:;"  # what a token may hold beside a verdict
_OTHERS = 12  # verdicts that are tried in a token's place
_CANDIDATES = 64  # tokens in whose place they are: a reply is read again for each

NO_TOKENS = "the server gave no chances"
NO_TOKEN = "the verdict was no single token"
NO_MASS = f"less than {LEAST_MASS:g} of the chances lay on allowed verdicts"


def weigh_verdict(
    signature: LoadedSignature,
    text: str,
    tokens: Sequence[Token],
    parsed: ParsedReply,
    read: Callable[[str], ParsedReply],
) -> ParsedReply:
    """Return a ParsedReply with its verdict's chances, by LoadedSignature, text, Tokens and parser `read`.

    A verdict of several tokens has none, nor has one that may be the beginning of another, as `1` is of `10`
    where the model writes digits one by one: unless the longer one is seen to be a token of its own. A token
    that stands alone, with nothing that might have stood there, tells no chance.
    """
    scale, verdict = signature.judge_scale(), parsed.verdict
    words = _words(scale)
    others = [(word, label) for word, label in words.items() if label != verdict][:_OTHERS]

    def decides(token: Token) -> bool:
        core = token[1].strip(_AROUND)
        start = token[0] + token[1].index(core)
        before, whole, after = text[:start], text[start : start + len(core)], text[start + len(core) :]
        return whole == core and any(
            read(f"{before}{word}{after}").verdict == label for word, label in others
        )

    saying = [token for token in tokens if read_verdict(signature, token[1].strip(_AROUND))[0] == verdict]
    deciding = [token for token in saying[-_CANDIDATES:] if decides(token)]
    token: Token = deciding[0] if len(deciding) == 1 else [0, "", {}]
    forms = {form: form.strip(_AROUND).lower() for form in token[2]}
    mass: dict[Label, float] = {}
    for form, core in forms.items():
        label = read_verdict(signature, core)[0]
        longer = {word for word, other in words.items() if other != label and word.startswith(core)}
        if label is not None and longer <= {*forms.values()}:
            mass[label] = mass.get(label, 0.0) + math.exp(token[2][form])
    total, alone = sum(mass.values()), not tokens or len(forms) == 1
    if verdict not in mass or total < LEAST_MASS or alone:
        why = NO_TOKENS if alone else NO_MASS if verdict in mass else NO_TOKEN
        return replace(parsed, why_said=why, token=token)
    names: dict[Label, str] = {label: f"{label:g}" if isinstance(label, float) else label for label in mass}
    if scale.kind == "binary":
        names = dict(zip((1.0, 0.0), signature.words or ("yes", "no"), strict=True))
    chances = {names[label]: mass[label] / total for label in mass}
    if scale.numeric:
        mean = sum(float(label) * share for label, share in mass.items()) / total
        verdict = min(scale.high, max(scale.low, mean))  # rounding
    return replace(parsed, verdict=verdict, chances=chances, token=token)


def embedded_mean(
    signature: LoadedSignature, _text: str, tokens: Sequence[Token], parsed: ParsedReply
) -> ParsedReply:
    """From LoadedSignature, text (unused), Tokens and ParsedReply, return a ParsedReply of mean verdict."""
    chances = tokens[0][2] if tokens else {}
    labels = {read_verdict(signature, word)[0]: share for word, share in chances.items()}
    grades = {label: share for label, share in labels.items() if isinstance(label, float)}
    if not grades or len(grades) < len(labels):
        return parsed
    return replace(parsed, verdict=round(sum(grade * share for grade, share in grades.items()), 4))


def _words(scale: Scale) -> dict[str, Label]:
    """What may be said, in small letters; nothing where numbers have decimals, of which none is one token."""
    if scale.kind == "binary":
        return {word: float(word in TRUE_WORDS) for word in sorted(TRUE_WORDS | FALSE_WORDS)}
    whole = range(int(scale.low), int(scale.high) + 1) if scale.kind in ("ordinal", "percentage") else ()
    return {word.lower(): word for word in scale.categories} | {str(n): float(n) for n in whole}
