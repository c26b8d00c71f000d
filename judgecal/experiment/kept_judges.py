"""What a report shows of an experiment's judges without running any code: `judges.json`, written when they
are made."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from judgecal.artefacts import SCHEMA, read_json, validated
from judgecal.experiment.folder import Experiment
from judgecal.judges import Judge, PromptJudge
from judgecal.records import Context, Item, Turn, as_plain
from judgecal.scale import Scale
from judgecal.workspace import write_text

_FILE = "judges.json"
_BLANK = Item(
    item_id="",
    group="",
    question="{question}",
    answer="{answer}",
    reference_answers=("{reference_answer}",),
    contexts=(Context("{context}"),),
    conversation=(Turn("user", "{conversation}"),),
)


@dataclass(frozen=True, slots=True)
class KeptJudge:
    """A judge as it was when the experiment was made.

    Attributes:
        scale: of its verdicts; `categories` are those of a nominal one.
        instructions: of its signature; None where it has no prompt.
        messages: what it is sent, with the names of the item's fields in their places.
    """

    scale: str
    categories: tuple[str, ...] = ()
    instructions: str | None = None
    messages: str | None = None

    def verdicts(self) -> Scale:
        """The scale of its verdicts."""
        found = Scale.parse(self.scale)
        return dataclasses.replace(found, categories=self.categories) if self.categories else found


def keep_judges(experiment: Experiment, judges: Iterable[Judge]) -> None:
    """Write down what a report will show of the judges."""
    kept = {"schema": SCHEMA, "judges": {judge.name: as_plain(_kept(judge)) for judge in judges}}
    write_text(experiment.folder / _FILE, json.dumps(kept, indent=2) + "\n")


def _kept(judge: Judge) -> KeptJudge:
    scale, categories = str(judge.scale), judge.scale.categories
    if not isinstance(judge, PromptJudge):
        return KeptJudge(scale, categories)
    item = dataclasses.replace(_BLANK, fields={one: f"{{{one}}}" for one in judge.inputs})
    messages = "\n\n".join(f"[{one['role']}]\n{one['content']}" for one in judge.messages(item))
    return KeptJudge(scale, categories, str(judge.signature.cls.instructions), messages)


def kept_judges(experiment: Experiment) -> Mapping[str, KeptJudge]:
    """The judges by name; empty where nothing was written down.

    Raises:
        InputError: the file is damaged.
    """
    path = experiment.folder / _FILE
    if not path.is_file():
        return {}
    table = read_json(path, absent="is not there")
    return validated(dict[str, KeptJudge], table.get("judges", {}), str(path))
