"""Servers that hold a reply to a JSON schema, refuse one, or pass over it: scripts for `server.running`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.http import Answer
from tests.support.server import Script

Asked = Callable[[dict[str, Any]], Mapping[str, Any] | None]
"""The schema in the body of a request; None where there is none."""


def openai_schema(body: dict[str, Any]) -> Mapping[str, Any] | None:
    """The schema of a chat completion."""
    asked = body.get("response_format")
    schema: Mapping[str, Any] | None = asked and asked["json_schema"]["schema"]
    return schema


def fitting(schema: Mapping[str, Any], verdict: Any) -> str:
    """An object of a schema: its texts say `because`, its verdict is the given one."""
    fields = schema["properties"]
    values = {
        name: "because" if one["type"].lower() == "string" and "enum" not in one else verdict
        for name, one in fields.items()
    }
    return json.dumps(values)


def enforcing(
    verdict: Any, *, prose: str = "It is fine, I should say.", asked: Asked = openai_schema
) -> Script:
    """Holds a reply to the schema; without one the model writes prose."""

    def script(body: dict[str, Any]) -> str:
        schema = asked(body)
        return prose if schema is None else fitting(schema, verdict)

    return script


def refusing(refusal: Answer, text: str, *, key: str = "response_format") -> Script:
    """Answers every request that holds a schema with a refusal, and any other with a text."""
    return lambda body: refusal if key in body else text


def schemas_asked(bodies: list[dict[str, Any]]) -> list[str | None]:
    """The type of the response format of each request."""
    return [body["response_format"]["type"] if "response_format" in body else None for body in bodies]
