"""What a reply must be, where a server can be held to it: one JSON object with these fields in this order.

Every server takes another part of JSON Schema, and refuses the rest: OpenAI's own and Google's take bounds of
numbers and no enumeration of them that is long, Anthropic's takes neither bounds nor lengths, a server that
makes a grammar of the schema (Ollama, vLLM, llama.cpp) may pass over the bounds of a number and holds to
every enumeration and length.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from judgecal.models import ModelSpec
from judgecal.records import digest

SchemaForm = Literal["json_schema", "plain", "json_object"]
"""How a server is asked: as its protocol says; the same without any bound; by OpenAI's older `json_object`,
with the schema beside it, as llama.cpp's Python server has it."""

Dialect = Literal["ranges", "plain", "grammar"]
"""What a server understands: bounds of numbers; neither bounds nor lengths; enumerations and lengths, each of
them."""

_OPENAIS_OWN = "https://api.openai.com"
_GOOGLES = ("gemini", "vertex_ai")
_GRAMMARS = ("hosted_vllm", "lm_studio", "ollama", "ollama_chat")
_FEW = 11  # whole numbers that are written out for a server that takes no bounds: 0..10, and no 0..100
_MOST = 1001  # whole numbers that are written out for a grammar
_AROUND = 64  # tokens of an object beside its texts
_LONGEST, _SHORTEST = 1500, 100  # characters of a text: grammars refuse 2,000 repetitions


@dataclass(frozen=True)
class ReplySchema:
    """The fields of a reply.

    Attributes:
        properties: name -> JSON Schema of its value (type, enum, minimum, maximum), in the order of the
            reply.
        form: how the server is asked.
    """

    properties: Mapping[str, Mapping[str, Any]]
    form: SchemaForm = "json_schema"

    def in_form(self, form: SchemaForm) -> ReplySchema:
        """The same, asked for in another way."""
        return dataclasses.replace(self, form=form)

    @cached_property
    def key(self) -> str:
        """16 hex digits over the fields, whatever the form."""
        return digest(self.as_json())[:16]

    @cached_property
    def size(self) -> int:
        """Bytes of the schema: providers count it with the prompt."""
        return len(str(self.as_json()))

    def as_json(self) -> dict[str, Any]:
        """The whole schema."""
        return _object({name: dict(schema) for name, schema in self.properties.items()})

    def spoken(self, spec: ModelSpec) -> dict[str, Any]:
        """The schema as the server of a model understands it."""
        dialect = "plain" if self.form == "plain" else dialect_of(spec)
        longest = _longest(spec, sum(schema["type"] == "string" for schema in self.properties.values()))
        return _object({name: _said(dict(one), dialect, longest) for name, one in self.properties.items()})


def dialect_of(spec: ModelSpec) -> Dialect:
    """What the server of a model understands, by its provider and its address."""
    if spec.provider in _GRAMMARS:
        return "grammar"
    if spec.provider != "openai":
        return "ranges" if spec.provider in _GOOGLES else "plain"
    return "ranges" if spec.address.startswith(_OPENAIS_OWN) else "grammar"


def _object(properties: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _said(schema: dict[str, Any], dialect: Dialect, longest: int) -> dict[str, Any]:
    """One field in a dialect."""
    if schema["type"] == "string":
        return {**schema, "maxLength": longest} if dialect == "grammar" and "enum" not in schema else schema
    if dialect == "ranges" or "minimum" not in schema:
        return schema
    low, high = schema.pop("minimum"), schema.pop("maximum")
    if schema["type"] == "integer" and high - low < (_MOST if dialect == "grammar" else _FEW):
        return {**schema, "enum": list(range(low, high + 1))}
    return {**schema, "minimum": low, "maximum": high} if dialect == "grammar" else schema


def _longest(spec: ModelSpec, texts: int) -> int:
    """Characters of each text, so that a model that rambles comes to its verdict before its reply is cut.

    A token is a character at least.
    """
    room = ((spec.max_tokens or _LONGEST + _AROUND) - _AROUND) // max(1, texts)
    return max(_SHORTEST, min(_LONGEST, room))
