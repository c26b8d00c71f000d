"""What an experiment left on disk, read back without a call: its judges with their judgements, the items."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from judgecal.engine.log import Journal
from judgecal.errors import InputError
from judgecal.experiment.agreement import StoredExperiment
from judgecal.experiment.agreement_table import Verdicts, is_absent
from judgecal.experiment.folder import Experiment, kept_judges, read_config
from judgecal.experiment.judgements import (
    VerdictRows,
    judged_by,
    read_set,
    read_verdicts,
    values_of,
    whole_items,
)
from judgecal.experiment.people import tied_items
from judgecal.experiment.score import asked_items
from judgecal.goldset import load_gold
from judgecal.judges.protocol import single_calls
from judgecal.records import Judgement, Result
from judgecal.workspace import Workspace, shown

_READ = ("score", "agreement")


def find_experiment(workspace: Workspace, name: str) -> Experiment:
    """Return the Experiment, in a Workspace, of a name (slug) or the path of its folder."""
    folder = workspace.find_experiment(name)
    return Experiment(folder, read_config(folder))


def read_experiment(workspace: Workspace, name: str) -> StoredExperiment:
    """Return the StoredExperiment, in a Workspace, of a name: judges, items and gold set.

    Items are those that a judge asked for has judged; of recorded judgements, all that were asked. The
    questions that a compiled judge was trained on are left out.
    """
    experiment = find_experiment(workspace, name)
    config, where = experiment.config, experiment.folder / "experiment.toml"
    command, named = config.get("command"), config.get("gold")
    if command not in _READ:
        raise InputError(
            f"{where}: an experiment of {command!r}; only those of {', '.join(_READ)} hold judges"
        )
    if not isinstance(named, Mapping) or not {"set", "sha256"} <= named.keys():
        raise InputError(f"{where}: [gold] must name set and sha256, as judgecal wrote them")
    gold = read_set(experiment.folder) if "table" in config else load_gold(named["set"], workspace=workspace)
    if gold.sha256 != named["sha256"]:
        raise InputError(
            f"gold set {gold.name} has changed since this experiment: it had sha256 "
            f"{str(named['sha256'])[:12]} and has {gold.sha256[:12]} now; restore the old set, or run "
            "the experiment's command again"
        )
    calls = read_verdicts(experiment.verdicts)
    if experiment.journal.is_file():
        latest = Journal.looked_at(experiment.journal).latest
        calls = VerdictRows.joined([VerdictRows.from_rows([*latest.values()]), calls])
    rows_of, repeats = calls.by_judge(), config.get("repeats", 1)
    descriptions, notes = kept_judges(experiment), list[str]()
    asked = [judge for judge, stored in descriptions.items() if stored.kind == "recorded"]
    asked += [str(judge["judge"]) for judge in config.get("judges", ())]
    if absent := [judge for judge in asked if judge not in descriptions]:
        raise InputError(f"{where}: judges.json lacks {absent[0]}: run the same command again")

    def read(judge: str) -> Verdicts:
        """Two names of one prompt and model have one fingerprint: they are one judge and one call."""
        stored, scale = descriptions[judge], descriptions[judge].verdicts()
        single, n_calls = single_calls(stored.fingerprint)
        calls_made = rows_of.get(single, VerdictRows.from_rows([])).of(judge, repeats * n_calls)
        rows = judged_by(judge, n_calls, calls_made) if n_calls > 1 else calls_made
        whole = whole_items(rows, scale)
        return Verdicts(
            judge, scale if whole is rows else scale.of_means, whole, kind=stored.kind, calls=rows
        )

    judges = tuple(map(read, asked))
    if not any(judge.rows for judge in judges):
        raise InputError(f"{experiment.folder}: it holds no judgement: run the same command again")
    prints = {descriptions[judge].fingerprint for judge in asked}
    floor = (read(judge) for judge, stored in descriptions.items() if stored.fingerprint not in prints)
    trained = frozenset(group for judge in descriptions.values() for group in judge.trained_on)
    split = str(config.get("split", "all"))
    if command == "agreement":
        items = asked_items(gold, split)
    else:
        judged = {item_id for judge in judges for item_id in values_of(judge.rows, "item_id")}
        items = tuple(item for item in gold.items if item.item_id in judged and item.item_id in gold.labels)
    if n := len({item.group for item in gold.select(split)} & trained):
        notes.append(f"we left out {n} questions that a compiled judge was trained on")
    if not items:
        raise InputError(f"{experiment.folder}: it has no labelled item: run the same command again")
    return StoredExperiment(
        experiment=experiment,
        gold=gold,
        items=items,
        tied=tied_items(gold, split, items, without_groups=trained),
        split=split,
        judges=judges,
        floor=tuple(judge for judge in floor if judge.rows),
        seed=int(config.get("seed", 0)),
        notes=tuple(notes),
    )


def stored_prompts(stored: StoredExperiment) -> dict[str, str]:
    """Return judge -> its prompt's messages as one text, of a StoredExperiment, fields' names in place."""
    descriptions = kept_judges(stored.experiment)
    names = [column.judge for column in stored.judges if column.judge in descriptions]
    return {name: messages for name in names if (messages := descriptions[name].messages)}


@dataclass(frozen=True, slots=True)
class UnreadReplies(Result):
    """A judge none of whose judgements has a verdict."""

    judge: str
    n: int
    kind: str  # the commonest failure
    # the commonest of that kind; None where only test items have one, as it may quote them
    message: str | None


@dataclass(frozen=True, slots=True)
class Unread(Result):
    """The judges without any verdict among those asked."""

    judges: tuple[UnreadReplies, ...]
    n_judges: int
    journal: str  # where their replies are
    again: str  # the command that asks them anew

    @property
    def all(self) -> bool:
        """Whether nothing could be read, so that nobody can be ranked."""
        return bool(self.judges) and len(self.judges) == self.n_judges


def unread_judge(
    judge: str, rows: Iterable[Judgement], *, n_expected: int = 0, sealed: Container[str] = ()
) -> UnreadReplies | None:
    """Return UnreadReplies of a judge's name and Judgements without a verdict; None where any has."""
    judged = list(rows)
    if any(row.verdict is not None for row in judged) or not (judged or n_expected):
        return None
    kinds = Counter(row.error.kind if row.error else "parse" for row in judged)
    kind: str = kinds.most_common(1)[0][0] if kinds else "missing"
    messages = Counter(
        row.error.message
        for row in judged
        if row.error is not None and row.error.kind == kind and row.item_id not in sealed
    )
    message = messages.most_common(1)[0][0] if messages else None
    return UnreadReplies(judge, max(len(judged), n_expected), kind, message)


def unread_of(stored: StoredExperiment) -> Unread:
    """Return Unread: the judges of a StoredExperiment that have no verdict on its items."""
    item_ids, sealed, unread = {item.item_id for item in stored.items}, stored.gold.test_ids, []
    for column in stored.judges:
        if is_absent(stored.table.verdicts(column)).all():
            rows = [row for row in column.stored if row.item_id in item_ids]
            judge = unread_judge(column.judge, rows, n_expected=len(item_ids), sealed=sealed)
            unread += [judge] if judge is not None else []
    return Unread(tuple(unread), len(stored.judges), shown(stored.experiment.judged[0]), _again(stored))


def _again(stored: StoredExperiment) -> str:
    """The command that asks for missing verdicts; recorded ones are read by other columns, if at all."""
    config = stored.experiment.config
    if config["command"] == "agreement":
        return "judgecal agreement --help"
    judges = [word for column in stored.judges for word in ("--judge", column.judge)]
    options = ["--split", stored.split, "--repeats", str(config["repeats"]), "--seed", str(stored.seed)]
    if len(stored.items) < len(asked_items(stored.gold, stored.split)):
        options += ["--limit", str(len(stored.items))]
    name = ["--name", stored.experiment.slug, "--retry-unscored"]
    return shlex.join(["judgecal", "score", "--gold", stored.gold.name, *judges, *options, *name])
