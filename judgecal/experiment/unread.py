"""Judges that came to no verdict at all: why, where their replies are, and the command that asks again."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass

from judgecal.experiment.agreement import StoredExperiment
from judgecal.experiment.score import asked_items
from judgecal.records import Judgement, Result
from judgecal.workspace import shown


@dataclass(frozen=True, slots=True)
class UnreadJudge(Result):
    """A judge none of whose judgements has a verdict.

    `kind` is the commonest failure and `message` the commonest of that kind, `n_message` how many have it;
    the message is None where only test items have one, as it may quote them.
    """

    judge: str
    n: int
    kind: str
    message: str | None
    n_message: int


@dataclass(frozen=True, slots=True)
class Unread(Result):
    """The judges without any verdict among those asked; `again` asks them anew, `journal` holds what they
    said."""

    judges: tuple[UnreadJudge, ...]
    n_judges: int
    journal: str
    again: str

    @property
    def all(self) -> bool:
        """Whether nothing could be read, so that nobody can be ranked."""
        return bool(self.judges) and len(self.judges) == self.n_judges


def unread_judge(
    judge: str, rows: Iterable[Judgement], *, n_expected: int = 0, sealed: Container[str] = ()
) -> UnreadJudge | None:
    """Why a judge has no verdict; None where it has one. `sealed` are the ids of test items."""
    asked = list(rows)
    if any(row.verdict is not None for row in asked) or not (asked or n_expected):
        return None
    kinds = Counter(row.error.kind if row.error else "parse" for row in asked)
    kind: str = kinds.most_common(1)[0][0] if kinds else "missing"
    failed = [
        row for row in asked if row.error is not None and row.error.kind == kind and row.item_id not in sealed
    ]
    messages = Counter(row.error.message for row in failed if row.error is not None)
    message, n_message = messages.most_common(1)[0] if messages else (None, 0)
    return UnreadJudge(judge, max(len(asked), n_expected), kind, message, n_message)


def unread_of(stored: StoredExperiment) -> Unread:
    """Of the judges that an experiment asked for, on its labelled items."""
    asked = {item.item_id for item in stored.items}
    columns = stored.columns[: stored.asked]
    judges = [
        unread_judge(
            column.judge,
            [row for row in column.stored if row.item_id in asked],
            n_expected=len(asked),
            sealed=stored.gold.test_ids,
        )
        for column in columns
    ]
    unread = tuple(judge for judge in judges if judge is not None)
    return Unread(unread, len(columns), shown(stored.experiment.journal), _again(stored))


def _again(stored: StoredExperiment) -> str:
    """The command that asks for the verdicts that are missing; recorded ones are read by other columns, if at
    all."""
    config, gold = stored.experiment.config, stored.gold
    if config["command"] == "agreement":
        return "judgecal agreement --help"
    judges = [column.judge for column in stored.columns[: stored.asked]]
    if config["command"] == "optimize":
        judges, where = judges[:1], ["--split", "dev"]
    else:
        given = {
            "--split": (stored.split, "open"),
            "--repeats": (config["repeats"], 1),
            "--seed": (stored.seed, 0),
        }
        where = [
            word for name, (value, usual) in given.items() if value != usual for word in (name, str(value))
        ]
        where += ["--name", stored.experiment.slug]
        if len(stored.items) < len(asked_items(gold, stored.split)):
            where += ["--limit", str(len(stored.items))]
    named = [word for judge in judges for word in ("--judge", judge)]
    return shlex.join(["judgecal", "score", "--gold", gold.name, *named, *where, "--retry-unscored"])
