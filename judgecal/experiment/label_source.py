"""What people label: the items of a set or of an experiment, and a judge's verdicts on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from judgecal.errors import InputError, unknown_name
from judgecal.experiment.drawn import Drawing, draw_where_judges_differ
from judgecal.experiment.folder import read_config
from judgecal.experiment.stored import read_experiment
from judgecal.experiment.trials import stored_rows
from judgecal.goldset import GoldSet, list_gold, load_gold
from judgecal.records import Item
from judgecal.scale import Label
from judgecal.wings import wing
from judgecal.workspace import Workspace


@dataclass(frozen=True, slots=True)
class LabelSource:
    """Items with the set that their questions are of; of an experiment a judge's verdicts too."""

    gold: GoldSet
    items: tuple[Item, ...]
    to: str  # the set that the labels go into: `gold`, or a new one where the answers are an answerer's
    judge: str | None = None
    drafts: dict[str, Label | None] | None = None


def find_source(
    name: str, workspace: Workspace, *, draft: bool, judge: str | None = None, labelling: bool = False
) -> LabelSource:
    """The set or the experiment of a name; a set goes first.

    With `draft` there must be verdicts to show: those of `judge`, or of the first one.
    """
    folders = [workspace.experiments / name, Path(name)]
    experiment = next((folder for folder in folders if (folder / "experiment.toml").is_file()), None)
    sets = list_gold(workspace)
    if name not in sets and experiment is not None:
        return _of_experiment(experiment, workspace, judge)
    if name not in sets and not Path(name).is_dir():
        made = sorted(path.parent.name for path in workspace.experiments.glob("*/experiment.toml"))
        raise unknown_name("gold set or experiment", name, [*sets, *made])
    gold = load_gold(name, workspace=workspace, labelling=labelling)
    if draft:
        raise InputError(f"--draft shows a judge's verdicts, and {name!r} is a gold set: name an experiment")
    return LabelSource(gold, gold.items, gold.name)


def _of_experiment(folder: Path, workspace: Workspace, judge: str | None) -> LabelSource:
    """The items that an experiment's judges were asked of, as they are in the set today."""
    config = read_config(folder)
    set_name, command = config.get("gold", {}).get("set"), config.get("command")
    if not isinstance(set_name, str):
        raise InputError(f"{folder}: its experiment.toml names no gold set, so it has no items for a sheet")
    gold = load_gold(set_name, workspace=workspace)
    rows = list(stored_rows(folder / "judgements.jsonl").latest.values())
    # The first judge asked for; of recorded judgements the first one recorded.
    judges = None if command == "agreement" else config.get("judges")
    if isinstance(judges, list) and judges and isinstance(judges[0], dict):
        first = str(judges[0].get("judge"))
    else:
        first = rows[0].judge if rows else ""
    if command in ("answer", "evaluate"):  # new items, which labels make a gold set of
        judge = str(config["judge"]["judge"]) if "judge" in config else first
        drafts = {row.item_id: row.verdict for row in rows if row.judge == judge}
        return LabelSource(gold, wing("answered items")(folder), folder.name, judge, drafts)
    judged = {(row.item_id, row.item_sha) for row in rows}
    items = tuple(item for item in gold.items if (item.item_id, item.sha) in judged)
    if not items:
        raise InputError(
            f"{folder}: its journal holds no judgement of an item of gold set {set_name!r} as it is today"
        )
    known = list(dict.fromkeys(row.judge for row in rows))
    if judge is not None and judge not in known:
        raise unknown_name("judge", judge, known)
    judge = judge or first
    drafts = {row.item_id: row.verdict for row in reversed(rows) if row.judge == judge}
    return LabelSource(gold, items, gold.name, judge, drafts)


def draw_of(
    source: str,
    gold: GoldSet,
    items: Sequence[Item],
    workspace: Workspace,
    *,
    n: int | None,
    name: str,
    seed: int,
) -> Drawing:
    """`n` of an experiment's items, mostly where its judges differ, as the set `name`."""
    if n is None:
        raise InputError("--strata draws: say how many items by -n")
    if source in list_gold(workspace):
        raise InputError(
            f"--strata draws where the judges of an experiment differ, and {source!r} is a gold set"
        )
    stored = read_experiment(workspace, source)
    verdicts = {
        column.judge: {row.item_id: row.verdict for row in column.rows if row.repeat == 0}
        for column in stored.columns[: stored.asked]
    }
    return draw_where_judges_differ(gold, items, verdicts, name=name, n=n, seed=seed, workspace=workspace)
