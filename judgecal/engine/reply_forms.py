"""Whether a model's server takes a schema of the reply: asked once in a process.

With `structured = "auto"` the first call of a model goes out with the schema, and those behind it wait for
its answer, a second at most. A server that refuses it is asked again without one, within the same call: any
400 or 422 counts while no reply to a schema has come, and so does another error that names the parameter. It
is taken for a refusal only where the reply without a schema comes, so that a faulty text turns nothing off.
"""

from __future__ import annotations

import asyncio
import re

from judgecal.engine.calls import Reply, ReplySchema
from judgecal.models import ModelSpec
from judgecal.records import Failure

_PATIENCE_S = 1.0  # a refusal comes before a word is written; who has not refused by then is writing
_PARAMETER = re.compile(
    r"response.?(format|schema|mime.?type|json)|json.?(schema|object)"
    r"|output.?(config|format)|structured output",
    re.IGNORECASE,
)

takes_schema: dict[tuple[str, str, str], bool] = {}
"""What servers of models (id, address, way) have answered in this process: optimisers begin many runs."""


class ReplyForms:
    """What is known of one model's server in a run. Made and used in one running event loop.

    Attributes:
        may_do_without: whether a call may be made without the schema; else a refusal is the call's failure.
        taken: keys of schemas that a reply has come to; an error refuses none of them.
        off: whether the server takes no schema at all.
        refused: keys of schemas that were refused where others were taken.
    """

    def __init__(self, spec: ModelSpec) -> None:
        self.may_do_without = spec.structured == "auto"
        self._model = (spec.id, spec.address, spec.way)
        self._known = takes_schema.get(self._model)
        self.off = self.may_do_without and self._known is False
        self.taken: set[str] = set()
        self.refused: set[str] = set()
        self._first: asyncio.Future[None] | None = None

    async def asking(self, schema: ReplySchema) -> SchemaAttempts:
        """How one call asks for a schema (`SchemaAttempts`); the first call to a server holds others up."""
        if self._known is None and self._first is None:
            self._first = asyncio.get_running_loop().create_future()
        elif self._first is not None and not self._first.done():
            await asyncio.wait((self._first,), timeout=_PATIENCE_S)
        return SchemaAttempts(self, schema, sent=not self.off and schema.key not in self.refused)

    def learn(self, *, taken: bool) -> None:
        """Note that a server takes schemas, or that it took none."""
        takes_schema[self._model] = taken
        self.off = not taken

    def release(self) -> None:
        """Let the calls go on that waited for the first call."""
        if self._first is not None and not self._first.done():
            self._first.set_result(None)


class SchemaAttempts:
    """One call's way with its schema and without.

    Attributes:
        schema: what the next attempt is sent; None for one without.
    """

    def __init__(self, forms: ReplyForms, schema: ReplySchema, *, sent: bool) -> None:
        self.schema = schema if sent else None
        self._forms, self._key = forms, schema.key
        self._fell_back = False

    def again(self, reply: Reply | None, failure: Failure | None) -> bool:
        """Take in the reply or failure of an attempt; whether to call at once again without the schema."""
        forms = self._forms
        if reply is not None:
            if self.schema is not None:
                forms.taken.add(self._key)
                forms.learn(taken=True)
            elif self._fell_back and forms.taken:
                forms.refused.add(self._key)  # this one alone
            elif self._fell_back:
                forms.learn(taken=False)
        elif self.schema and failure and forms.may_do_without and self._key not in forms.taken:
            # some Python servers answer 500 to what they do not know
            named = failure.kind == "server" and _PARAMETER.search(failure.message)
            if failure.kind == "refused" or named:
                self.schema, self._fell_back = None, True
                return True
        forms.release()
        return False

    def end(self) -> None:
        """Note that the call is over, and let the calls go on that waited for it."""
        self._forms.release()
