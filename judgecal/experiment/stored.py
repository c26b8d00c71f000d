"""What an experiment left on disk, read back: its judges with their judgements, the items, and the result.

No model is called, no key is needed and no signature is run: what is shown of judges was written down when
they were made. Where it was not, their scale is taken from the journal, or refused where the journal does not
tell it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.artefacts import read_json
from judgecal.errors import InputError, unknown_name
from judgecal.experiment.agreement import Column, StoredExperiment, cell_of
from judgecal.experiment.chunks import mean_scale, whole_items
from judgecal.experiment.floor import FLOOR_JUDGE, prompt_signatures
from judgecal.experiment.folder import Experiment, read_config
from judgecal.experiment.kept_judges import KeptJudge, kept_judges
from judgecal.experiment.people import tied_items
from judgecal.experiment.recorded import recorded_fingerprint
from judgecal.experiment.score import asked_items
from judgecal.experiment.trials import stored_rows
from judgecal.goldset import GoldSet, load_gold
from judgecal.judges import JudgeKind, JudgeName
from judgecal.models import EMBEDDED
from judgecal.records import Item, Judgement
from judgecal.scale import Scale, common_scale
from judgecal.workspace import Workspace

_READ = ("score", "agreement", "optimize")


def find_experiment(workspace: Workspace, name: str) -> Experiment:
    """An experiment by its slug, or by the path of its folder.

    Raises:
        InputError: there is none; the message names the nearest. Or its configuration cannot be read.
    """
    by_name = {path.parent.name: path.parent for path in workspace.experiments.glob("*/experiment.toml")}
    folder = by_name.get(name, Path(name))
    if not (folder / "experiment.toml").exists():
        raise unknown_name("experiment", name, sorted(by_name))
    return Experiment(folder, read_config(folder))


def read_experiment(workspace: Workspace, name: str) -> StoredExperiment:
    """Read an experiment of `score`, `agreement` or `optimize` back.

    Items are those that a judge asked for has judged; of recorded judgements, all that were asked. Of an
    optimisation they are the test items alone: the others trained the compiled judge or chose it. In the
    same way the questions that a compiled judge was trained on are left out.

    Raises:
        InputError: as `find_experiment`; or the gold set has changed since, the experiment is of another
            kind, nothing has been judged, or a judge's scale cannot be known.
    """
    experiment = find_experiment(workspace, name)
    config, where = experiment.config, experiment.folder / "experiment.toml"
    command = config.get("command")
    if command not in _READ:
        raise InputError(
            f"{where}: an experiment of {command!r}; only those of {', '.join(_READ)} hold judges"
        )
    _check(config, str(where))
    gold = _gold(config, workspace)
    rows = _Rows(experiment, list(stored_rows(experiment.journal).latest.values()))
    asked = {"score": _scored, "agreement": _recorded, "optimize": _optimized}[command](rows, gold)
    if not any(asked.values()):
        raise InputError(f"{experiment.folder}: its journal holds no judgement: run the same command again")
    prints = {row.judge_fingerprint for own in asked.values() for row in own}
    floor = {name: own for name in _floor_names(command, asked) if (own := rows.named(name, without=prints))}
    called = set(asked) if command == "optimize" else {str(one["judge"]) for one in rows.configs}
    kinds: dict[str, JudgeKind] = {
        one: JudgeName.parse(one).kind if one in called else "recorded" for one in asked
    }
    trained, notes = _trained_on([judge for judge in asked if kinds[judge] == "prompt"], workspace)
    items = _items(rows, asked, gold)
    left_out = {item.group for item in items} & trained
    if left_out:
        items = tuple(item for item in items if item.group not in trained)
        notes.append(f"{len(left_out)} questions that a compiled judge was trained on are left out")
    if not items:
        raise InputError(f"{experiment.folder}: it has no labelled item that no judge of it was trained on")
    scales = _Scales(gold, config, kept_judges(experiment))
    columns = [_column(judge, kinds[judge], scales, own) for judge, own in asked.items()]
    columns += [_floor_column(name, scales, own) for name, own in floor.items()]
    return StoredExperiment(
        experiment=experiment,
        gold=gold,
        items=items,
        tied=tied_items(gold, _split(config), items, without_groups=trained),
        split=_split(config),
        columns=tuple(columns),
        asked=len(asked),
        seed=int(config.get("seed", 0)),
        notes=(*notes, *scales.notes),
    )


def stored_prompts(stored: StoredExperiment) -> dict[str, str]:
    """Judge -> the messages that it is sent, with the names of the item's fields in their places."""
    kept, names = kept_judges(stored.experiment), [one.judge for one in stored.columns[: stored.asked]]
    return {name: kept[name].messages or "" for name in names if name in kept and kept[name].messages}


def _split(config: Mapping[str, Any]) -> str:
    return "test" if config["command"] == "optimize" else str(config.get("split", "all"))


def _column(judge: str, kind: JudgeKind, scales: _Scales, rows: Sequence[Judgement]) -> Column:
    scale = scales.of_recorded(judge) if kind == "recorded" else scales.of(judge, rows)
    whole = whole_items(rows)
    scale = scale if whole is rows else mean_scale(scale)
    return Column(judge, scale, whole, kind=kind, cell=cell_of(judge, kind), calls=rows)


def _floor_names(command: str, asked: Iterable[str]) -> list[str]:
    """The judges of the floor that a journal may hold: `floor_judges` ran those that fit."""
    own = [f"{signature}@{EMBEDDED}" for signature in prompt_signatures(asked) if command != "optimize"]
    return list(dict.fromkeys([FLOOR_JUDGE, *own]))


def _floor_column(judge: str, scales: _Scales, rows: Sequence[Judgement]) -> Column:
    if judge == FLOOR_JUDGE:
        return Column(FLOOR_JUDGE, Scale.parse("percentage"), rows, kind="prompt")
    return _column(judge, "prompt", scales, rows)


def _check(config: Mapping[str, Any], where: str) -> None:
    """Refuse a configuration that judgecal did not write so."""
    gold = config.get("gold")
    if not isinstance(gold, Mapping) or not {"set", "sha256"} <= gold.keys():
        raise InputError(f"{where}: [gold] must name set and sha256, as judgecal wrote them")


def _gold(config: Mapping[str, Any], workspace: Workspace) -> GoldSet:
    """The gold set of the experiment, if it still is what it was."""
    told = config["gold"]
    gold = load_gold(str(told["set"]), workspace=workspace)
    if gold.sha256 != told["sha256"]:
        raise InputError(
            f"gold set {gold.name} has changed since this experiment: it had sha256 {str(told['sha256'])[:12]} and "
            f"has {gold.sha256[:12]} now; bring the old set back, or run the experiment's command again"
        )
    return gold


@dataclass(frozen=True, slots=True)
class _Rows:
    """The journal of an experiment, the last line of each key."""

    experiment: Experiment
    rows: list[Judgement]

    @property
    def configs(self) -> list[Mapping[str, Any]]:
        """What the configuration says of each judge."""
        return list(self.experiment.config.get("judges", ()))

    def by(self, fingerprint: object) -> list[Judgement]:
        """The rows of one prompt and model: two names of one fingerprint are one judge and one call."""
        return [row for row in self.rows if row.judge_fingerprint == fingerprint]

    def named(self, judge: str, *, without: Collection[str]) -> list[Judgement]:
        """The rows of a judge's string, but for those of some fingerprints."""
        return [row for row in self.rows if row.judge == judge and row.judge_fingerprint not in without]


def _scored(rows: _Rows, _: GoldSet) -> dict[str, list[Judgement]]:
    return {str(one["judge"]): rows.by(one["fingerprint"]) for one in rows.configs}


def _recorded(rows: _Rows, gold: GoldSet) -> dict[str, list[Judgement]]:
    """The judges of the file, then those that were asked for beside them; the floor is neither."""
    sha256 = str(rows.experiment.config["recorded"]["sha256"])
    found: dict[str, list[Judgement]] = {}
    for row in rows.rows:
        if row.judge_fingerprint == recorded_fingerprint(sha256, row.judge):
            found.setdefault(row.judge, []).append(row)
    return found | _scored(rows, gold)


def _optimized(rows: _Rows, gold: GoldSet) -> dict[str, list[Judgement]]:
    """The judge before, and after: of the candidates only the one that was taken has judged test items.

    Where none was taken, the judge as it was stands under both names.
    """
    test = {item.item_id for item in gold.select("test")}
    before = rows.configs[0]
    ours = [row for row in rows.by(before["fingerprint"]) if row.item_id in test]
    if not ours:
        raise InputError(
            f"{rows.experiment.folder}: the optimisation judged no test item, and the others trained the compiled "
            "judge or chose it: run judgecal optimize to its end, without --no-final; where dev "
            "promises nothing, test stays sealed and there is nothing to compare"
        )
    after = f"{before['judge']}#{rows.experiment.slug}"
    taken = [row for row in rows.rows if row.judge == after and row.item_id in test]
    return {str(before["judge"]): ours, after: taken or ours}


def _items(rows: _Rows, asked: Mapping[str, Sequence[Judgement]], gold: GoldSet) -> tuple[Item, ...]:
    """The labelled items asked for; of judges that were called, those that any of them was asked about."""
    config = rows.experiment.config
    if config["command"] == "agreement":
        return asked_items(gold, str(config.get("split", "all")), limit=_limit(rows.experiment))
    judged = {row.item_id for own in asked.values() for row in own}
    return tuple(item for item in gold.items if item.item_id in judged and item.item_id in gold.labels)


def _limit(experiment: Experiment) -> int | None:
    """How many items were asked for; all of the split where no result says it."""
    if not experiment.summary.exists():
        return None
    try:
        summary = read_json(experiment.summary, absent="gone since")
        return int(summary["gold"]["n_items"])
    except (InputError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{experiment.folder / 'summary.json'}: does not say how many items were asked for ({error}); delete it "
            "and run the same command again"
        ) from error


def _trained_on(asked: Iterable[str], workspace: Workspace) -> tuple[frozenset[str], list[str]]:
    """The questions that a compiled judge has seen the labels of, from its program file."""
    trained: set[str] = set()
    notes = []
    for judge in asked:
        program = JudgeName.parse(judge).program
        if program is None:
            continue
        path = workspace.experiments / program / "program.json"
        try:
            groups = read_json(path, absent="gone")["judgecal"]["trained_on"]
            if not isinstance(groups, list) or not all(isinstance(one, str) for one in groups):
                raise TypeError("trained_on must be a list of texts")
            trained.update(groups)
        except (OSError, InputError, KeyError, TypeError):
            notes.append(
                f"{path} cannot be read: if {judge} was trained on some of the items, they flatter it"
            )
    return frozenset(trained), notes


def _numbers(rows: Sequence[Judgement]) -> list[float]:
    return [float(row.verdict) for row in rows if isinstance(row.verdict, int | float)]


class _Scales:
    """The scale of each judge's verdicts."""

    def __init__(self, gold: GoldSet, config: Mapping[str, Any], kept: Mapping[str, KeptJudge]) -> None:
        self._people, self._kept = gold.scale, kept
        self._read_as: Mapping[str, Any] = config.get("recorded", {}).get("scales", {})
        # The floor's judges have signatures of judges that were asked for.
        self._of_signature = {name.partition("@")[0]: one for name, one in kept.items()}
        self._stated = {str(one["judge"]): one["scale"] for one in config.get("judges", ()) if "scale" in one}
        self.notes: list[str] = []

    def of_recorded(self, judge: str) -> Scale:
        """As `agreement` read its verdicts."""
        return Scale.parse(str(self._read_as[judge])) if judge in self._read_as else self._people

    def of(self, judge: str, rows: Sequence[Judgement]) -> Scale:
        """The scale of a judge that was called: its own as it was, or what its verdicts tell."""
        if judge in self._stated:
            return Scale.parse(str(self._stated[judge]))
        signature = JudgeName.parse(judge).signature
        kept = self._kept.get(judge) or self._of_signature.get(signature)
        return kept.verdicts() if kept else self._told(judge, _numbers(rows))

    def _told(self, judge: str, numbers: Sequence[float]) -> Scale:
        """The scale that verdicts themselves tell: all lie on it, and some in its upper half."""
        if not self._people.numeric:
            return self._people
        for scale in (self._people, Scale.parse("binary"), Scale.parse("percentage")):
            on_it = all(scale.low <= number <= scale.high for number in numbers)
            if (
                numbers
                and on_it
                and all(map(scale.on_step, numbers))
                and max(numbers) > scale.low + scale.span / 2.0
            ):
                common_scale(self._people, scale)
                self.notes.append(
                    f"judges.json of the experiment does not tell {judge}: its verdicts are read as {scale}"
                )
                return scale
        raise InputError(
            f"judges.json of the experiment does not tell {judge}, and its verdicts do not tell their scale: run the "
            "same command again"
        )
