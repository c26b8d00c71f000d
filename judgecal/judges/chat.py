"""What a judge is sent: DSPy's adapter, with text under test that cannot forge anything.

It differs from DSPy's in two things: what could pass for a part of a reply is made harmless inside values
(texts without any such thing give messages byte-equal to DSPy's own), and nothing is called twice. Where a
model replies in JSON the prompt is that of DSPy's JSON adapter, demos included. It serves the optimisers too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, get_args

import dspy

from judgecal.engine.calls import ReplySchema
from judgecal.judges.reply import read_text_reply
from judgecal.scale import Label
from judgecal.signatures import LoadedSignature

_MARKER = "[[ ##"
_HARMLESS = "[[\u200b ##"
# What models' own chat templates set between turns: `<|im_start|>` and all of its form, and the names that
# stand alone.
_TEMPLATE_TOKEN = re.compile(
    r"<(?=[|｜][^<>|｜\n]{1,64}[|｜]>"
    r"|/?(?:s|bos|eos|pad|unk|mask|sop|eop|start_of_turn|end_of_turn|start_of_image|end_of_image|think|tool_call"
    r"|tool_response|reserved_\d{1,6}|extra_id_\d{1,6}|unused\d{1,6})>"
    r"|</?(?i:SYS)>>)"
    r"|\[(?=/?(?:(?i:INST)|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|IMG|IMG_BREAK|IMG_END|PREFIX"
    r"|MIDDLE|SUFFIX|CLS|SEP|MASK|gMASK|UNUSED_TOKEN_\d{1,6})\])"
)


_CHAT, _JSON = dspy.ChatAdapter(), dspy.JSONAdapter()


class JudgeAdapter(dspy.ChatAdapter):  # type: ignore[misc]
    """The adapter of every judgecal program; it never falls back to a second, paid call.

    Args:
        in_json: whether replies are asked for as a JSON object instead of fields behind markers.
    """

    def __init__(self, *, in_json: bool = False) -> None:
        super().__init__(use_json_adapter_fallback=False)
        self._in_json = in_json

    def asks_for_json(self, signature: type[dspy.Signature]) -> bool:
        """Whether the reply to a signature is to be a JSON object."""
        return self._in_json

    def harmless(self, signature: type[dspy.Signature], values: Mapping[str, Any]) -> dict[str, Any]:
        """The values with whatever could forge a reply to the signature made harmless."""
        return neutralised(values, keys=signature.output_fields if self.asks_for_json(signature) else ())

    def format_field_structure(self, signature: type[dspy.Signature]) -> str:
        """Return the text, for a dspy.Signature, of the system message on the form of a reply."""
        return str(self._form(signature).format_field_structure(signature))

    def user_message_output_requirements(self, signature: type[dspy.Signature]) -> str:
        """Return the text, for a dspy.Signature, that ends the user message: the form of a reply."""
        return str(self._form(signature).user_message_output_requirements(signature))

    def _form(self, signature: type[dspy.Signature]) -> dspy.ChatAdapter:
        return _JSON if self.asks_for_json(signature) else _CHAT

    def format_user_message_content(
        self,
        signature: type[dspy.Signature],
        inputs: dict[str, Any],
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> str:
        """Return DSPy's user message as text, for a dspy.Signature and a dict of inputs, neutralised."""
        content: str = super().format_user_message_content(
            signature,
            self.harmless(signature, inputs),
            prefix=prefix,
            suffix=suffix,
            main_request=main_request,
        )
        return content

    def format_assistant_message_content(
        self,
        signature: type[dspy.Signature],
        outputs: dict[str, Any],
        missing_field_message: str | None = None,
    ) -> str:
        """Return DSPy's demo reply as text, for a dspy.Signature and a dict of outputs, neutralised."""
        harmless = self.harmless(signature, outputs)
        written = self._form(signature).format_assistant_message_content
        return str(written(signature, harmless, missing_field_message=missing_field_message))


class TextAdapter(dspy.Adapter):  # type: ignore[misc]
    """The adapter of a text prompt: what is sent are its bytes, with the inputs in their places.

    Instructions and demos have no place in it, so a program that has any is not sent through it.
    """

    def __init__(self, signature: LoadedSignature) -> None:
        super().__init__()
        assert signature.prompt is not None
        self._signature, self._prompt = signature, signature.prompt

    def format(
        self, signature: type[dspy.Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Return a list of messages for a dspy.Signature, demos (not used) and a dict of inputs."""
        keys = {part for part in self._prompt.path if isinstance(part, str)}
        return list(self._prompt.filled(neutralised(inputs, keys=keys)))

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """Return a dict of reasoning and verdict, for a dspy.Signature, from the text of a completion."""
        read = read_text_reply(self._signature, completion)
        if read.failure is not None:
            raise dspy.AdapterParseError(
                adapter_name="TextAdapter",
                signature=signature,
                lm_response=completion,
                message=read.failure.message,
            )
        return {"reasoning": read.reasoning, "verdict": typed_verdict(self._signature, read.verdict)}


def typed_verdict(signature: LoadedSignature, verdict: Label | None) -> Any:
    """Return, for a LoadedSignature, a verdict (Label or None) in its field's type, as a demo holds it."""
    if isinstance(verdict, str) or verdict is None:
        return verdict
    if signature.words:
        return signature.words[0] if verdict else signature.words[1]
    annotation = signature.cls.output_fields[signature.verdict].annotation
    if annotation is bool:
        return bool(verdict)
    return verdict if annotation is float else round(verdict)


def reply_schema(signature: LoadedSignature, verdict_name: str | None = None) -> ReplySchema | None:
    """Return the ReplySchema (or None) of a LoadedSignature's output fields, the verdict in its bounds.

    None where a field is neither text nor the verdict: then the reply is asked for behind markers.
    """
    properties: dict[str, Mapping[str, Any]] = {}
    for name, field in signature.cls.output_fields.items():
        if name == signature.verdict:
            properties[verdict_name or name] = _verdict_schema(signature, field.annotation)
        elif field.annotation is str:
            properties[name] = {"type": "string"}
        else:
            return None
    return ReplySchema(properties)


def _verdict_schema(signature: LoadedSignature, annotation: Any) -> dict[str, Any]:
    scale = signature.judge_scale()
    if annotation is bool:
        return {"type": "boolean"}
    if not scale.numeric or signature.words:
        return {"type": "string", "enum": [str(word) for word in get_args(annotation)]}
    if annotation is float:
        return {"type": "number", "minimum": scale.low, "maximum": scale.high}
    return {"type": "integer", "minimum": int(scale.low), "maximum": int(scale.high)}


def neutralised(values: Mapping[str, Any], *, keys: Collection[str] = ()) -> dict[str, Any]:
    """Return a copy of values (name -> value) with markers of fields and template tokens made harmless.

    A marker gets a zero-width space, `<|im_start|>` becomes `< |im_start|>`: still to be read, and no token
    any more.

    Args:
        keys: fields of a JSON reply; where a value holds one as the name in front of a colon, that gets the
            same.
    """
    names = tuple(keys)
    return {name: _harmless(value, names) for name, value in values.items()}


def _harmless(value: Any, keys: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        if "<" in value or "[" in value:
            value = _TEMPLATE_TOKEN.sub(r"\g<0> ", value.replace(_MARKER, _HARMLESS))
        if ":" in value and any(key in value for key in keys):
            value = _key_pattern(keys).sub(lambda key: f"{key[0][0]}\u200b{key[0][1:]}", value)
        return value
    if isinstance(value, Mapping):
        return {_harmless(name, keys): _harmless(inner, keys) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_harmless(inner, keys) for inner in value]
    return value


@lru_cache(maxsize=64)
def _key_pattern(keys: tuple[str, ...]) -> re.Pattern[str]:
    """The name of a field where `reply` would take it for a key."""
    return re.compile(rf"""(?<!\w)(?:{"|".join(map(re.escape, keys))})(?=["'`\\]{{0,4}}\s{{0,20}}:)""")
