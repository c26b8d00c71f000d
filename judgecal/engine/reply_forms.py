"""Whether a model's server takes a schema of the reply, and in which form: asked once, and remembered.

With `structured = "auto"` the first call of a model goes out with the schema, and those behind it wait for
its answer, a second at most. A server that refuses it is asked again without one, within the same call: any
400 or 422 counts while no reply to a schema has come, and so does another error that names the parameter. It
is taken for a refusal only where the reply without a schema comes, so that a faulty text turns nothing off.
What a server said stands in `structured.json` beside the stored replies for a week, under a hash of the model
and its address.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from pathlib import Path
from typing import Any, Literal

from judgecal.artefacts import SCHEMA
from judgecal.engine.calls import Reply, ReplySchema, SchemaForm
from judgecal.models import ModelSpec
from judgecal.records import Failure, digest
from judgecal.workspace import write_text

_FILE = "structured.json"
_KEPT_S = 7 * 24 * 3600.0  # then the server is asked again: it may have learnt it
_PATIENCE_S = 1.0  # a refusal comes before a word is written; who has not refused by then is writing
_PARAMETER = re.compile(
    r"response.?(format|schema|mime.?type|json)|json.?(schema|object)"
    r"|output.?(config|format)|structured output",
    re.IGNORECASE,
)
_BOUND = re.compile(r"max_?length|minimum|maximum|\benum\b", re.IGNORECASE)

KnownForm = SchemaForm | Literal["off"]
_FORMS: tuple[KnownForm, ...] = ("json_schema", "plain", "json_object", "off")


class ReplyForms:
    """What is known of one model's server in a run. Made and used in one running event loop.

    Args:
        folder: where it is remembered; a folder that cannot be written to means that the server is asked in
            every run.

    Attributes:
        may_do_without: whether a call may be made without the schema; else a refusal is the call's failure.
        taken: keys of schemas that a reply has come to in this run; an error refuses none of them.
    """

    def __init__(self, spec: ModelSpec, folder: Path) -> None:
        self.may_do_without = spec.structured == "auto"
        self._path = folder / _FILE
        self._model = digest([spec.id, spec.address, spec.way])[:32]
        known = _remembered(self._path).get(self._model)
        self._form: KnownForm | None = known if self.may_do_without or known != "off" else None
        self.taken: set[str] = set()
        self._refused: set[str] = set()  # schemas that were refused where others were taken
        self._first: asyncio.Future[None] | None = None
        self._shapes: dict[tuple[str, SchemaForm], ReplySchema] = {}  # transports know an object again

    async def asking(self, schema: ReplySchema) -> SchemaForms:
        """How one call is to ask; the first of a model that nothing is known of holds the others up."""
        if self._form is None and self._first is None:
            self._first = asyncio.get_running_loop().create_future()
            return SchemaForms(self, schema, schema)
        if self._form is None and self._first is not None and not self._first.done():
            await asyncio.wait((self._first,), timeout=_PATIENCE_S)
        if self._form == "off" or schema.key in self._refused:
            return SchemaForms(self, schema, None)
        return SchemaForms(self, schema, self.shape(schema, self._form or "json_schema"))

    def shape(self, schema: ReplySchema, form: SchemaForm) -> ReplySchema:
        """The schema in a form."""
        if form == schema.form:
            return schema
        return self._shapes.setdefault((schema.key, form), schema.in_form(form))

    def release(self) -> None:
        """Let the calls go that waited for the first one."""
        if self._first is not None and not self._first.done():
            self._first.set_result(None)

    def learn(self, schema: ReplySchema, form: KnownForm) -> None:
        """Note that a reply came to a call in a form; `off`: after the schema had been refused."""
        if form == "off" and self.taken:
            self._refused.add(schema.key)  # this one alone
            return
        if form != "off":
            self.taken.add(schema.key)
        if form != self._form:
            self._form = form
            _remember(self._path, self._model, form)


class SchemaForms:
    """One call's way through the forms of its model.

    Attributes:
        shape: what the next attempt is sent; None for a call without a schema.
    """

    def __init__(self, forms: ReplyForms, schema: ReplySchema, shape: ReplySchema | None) -> None:
        self.shape = shape
        self._forms = forms
        self._schema = schema
        self._fell_back = False

    def again(self, reply: Reply | None, failure: Failure | None) -> bool:
        """Take in what came of an attempt; whether the call is made again at once, as `shape` then has it."""
        if reply is not None:
            if self.shape is not None:
                self._forms.learn(self._schema, self.shape.form)
            elif self._fell_back:
                self._forms.learn(self._schema, "off")
        elif (
            self.shape
            and failure
            and self._schema.key not in self._forms.taken
            and (
                # some Python servers answer 500 to what they do not know
                failure.kind == "refused" or (failure.kind == "server" and _PARAMETER.search(failure.message))
            )
        ):
            form: SchemaForm | None = None  # that the refusal points to: no more than two are tried
            if self.shape.form == "json_schema":
                form = "plain" if _BOUND.search(failure.message) else None
                form = "json_object" if "json_object" in failure.message else form
            if form or self._forms.may_do_without:
                self.shape = self._forms.shape(self._schema, form) if form else None
                self._fell_back = True
                return True
        self._forms.release()
        return False

    def end(self) -> None:
        """The call is over, however it ended."""
        self._forms.release()


def gives_chances(spec: ModelSpec, folder: Path, *, refused: bool = False) -> bool:
    """Whether a model's server is asked for the chances of tokens: unless it `refused` them within a week."""
    path, model = folder / _FILE, digest([spec.id, spec.address, spec.way, "chances"])[:32]
    if refused:
        _remember(path, model, "off")
    return not refused and model not in _remembered(path)


def _entries(path: Path) -> dict[str, Any]:
    """The models in the file; of a file that is damaged none, for a server can be asked again."""
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
        return dict(json.loads(path.read_text(encoding="utf-8"))["models"])
    return {}


def _remembered(path: Path) -> dict[str, KnownForm]:
    """Hash of a model -> the form that its server took within the last week."""
    since, known = time.time() - _KEPT_S, dict[str, KnownForm]()
    for model, entry in _entries(path).items():
        if isinstance(entry, dict) and isinstance(at := entry.get("at"), int | float) and at > since:
            known.update((model, form) for form in _FORMS if form == entry.get("form"))
    return known


def _remember(path: Path, model: str, form: KnownForm) -> None:
    models = {**_entries(path), model: {"form": form, "at": round(time.time())}}
    with contextlib.suppress(OSError):  # then it is asked again in the next run
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_text(path, json.dumps({"schema": SCHEMA, "models": models}, indent=2) + "\n")
