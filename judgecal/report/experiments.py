"""The report of any experiment, the list of all with the page of each, and a result in a notebook."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from judgecal.commands import COMMANDS, document_of, load
from judgecal.engine.run import Progress
from judgecal.errors import InputError
from judgecal.experiment.agreement import AgreementResult
from judgecal.experiment.folder import read_config
from judgecal.experiment.in_python import Judgements
from judgecal.experiment.stored import find_experiment
from judgecal.records import Headline, Result
from judgecal.report.charts import in_percent
from judgecal.report.document import Document, Grid, Picture
from judgecal.report.html import Report, index_page, rendered
from judgecal.report.terminal import terminal
from judgecal.report.wording import difference, estimate, sentence
from judgecal.stats import Agreement, AltTest, Estimates, PairComparison
from judgecal.stats.significance import MARGIN
from judgecal.workspace import Workspace, find_workspace, write_text

REPORTS = {command.word: command.report for command in COMMANDS.values() if command.report}
"""Command, as an experiment's configuration names it -> how its document is made anew."""

PAGE = "report.html"
"""The page of an experiment, in its folder."""

_ROWS = 20  # of a table in a notebook


def report_of(workspace: Workspace, name: str, *, margin: float = MARGIN) -> Report:
    """Rebuild a Report from a Workspace and the name of an experiment, lock or suite; calls no model."""
    if not margin > 0.0:
        raise InputError(f"--margin must be above 0, found {margin:g}")
    if name.endswith((".json", ".toml")) and Path(name).is_file():
        from judgecal.report.card import card_report

        return card_report(Path(name), workspace)
    experiment = find_experiment(workspace, name)
    command = str(experiment.config.get("command"))
    if command not in REPORTS:
        kinds = ", ".join(REPORTS)
        what = f"an experiment of {command!r} has no report; those of {kinds} do"
        raise InputError(f"{experiment.folder}: {what}")
    maker, day = load(REPORTS[command]), experiment.last_written
    stored = isinstance(maker, type)
    document = document_of(experiment.read_summary(maker)) if stored else maker(workspace, experiment, margin)
    return Report(document, f"{day.day} {day:%B %Y}")


def load_report(
    experiment: str | Path, *, workspace: str | Path | None = None, margin: float = MARGIN
) -> Report:
    """Return a Report, given an experiment's name or path; in a notebook it displays itself.

    Args:
        experiment: its slug, or the path of its folder.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
        margin: the loss against the best judge that is allowed, in units of the metric.
    """
    where = find_workspace(None if workspace is None else Path(workspace))
    return report_of(where, str(experiment), margin=margin)


# --- the list of all experiments


@dataclass(frozen=True, slots=True)
class IndexLine:
    """A line of the index."""

    slug: str
    command: str
    at: str = ""  # when its result was made, by which the list is sorted
    made: str = ""  # that day in words
    kind: str = ""
    chip: str = ""
    headline: str = ""  # what it came to, or why it cannot be read
    about: str = ""  # what was measured on what
    state: str = "done"  # or `unfinished` (the command did not come to its end), `not readable`
    page: str | None = None  # where its page lies, beside the index; None where it has none


def write_index(workspace: Workspace, *, margin: float = MARGIN) -> Path:
    """Write `experiments/index.html` and each experiment's page in a Workspace; return the index's Path.

    An experiment that cannot be read stands in it with the reason: one broken folder hides no other.
    """
    folders = sorted(path.parent for path in workspace.experiments.glob("*/experiment.toml"))
    if not folders:
        raise InputError(f"{workspace.experiments}: there is no experiment yet")
    path = workspace.experiments / "index.html"
    if not path.exists():
        write_text(path, "")  # so that the pages made now link to it
    progress, listed = Progress("Drawing pages", len(folders)), list[IndexLine]()
    for folder in folders:
        listed.append(_listed(workspace, folder, margin))
        progress.add(scored=True, cost_usd=0.0)
    progress.close()
    listed.sort(key=lambda line: line.at, reverse=True)
    write_text(path, index_page(listed))
    return path


def _listed(workspace: Workspace, folder: Path, margin: float) -> IndexLine:
    """A line of the index; the page of the experiment is made anew."""
    slug, command, at, finished = folder.name, "", "", (folder / "summary.json").exists()
    try:
        command = str(read_config(folder).get("command"))
        experiment = find_experiment(workspace, slug)  # journals tell time to the second, files better
        last = experiment.summary if finished else folder / "experiment.toml"
        at = f"{experiment.last_written:%F %T} {last.stat().st_mtime_ns:020}"
        report = report_of(workspace, slug, margin=margin)
    except InputError as error:
        state = "unfinished" if command in REPORTS and not finished else "not readable"
        return IndexLine(slug, command, at, headline=str(error), state=state)
    report.write(folder / PAGE)
    headline, state = report.document.headline, "done" if finished else "unfinished"
    return IndexLine(
        slug,
        command,
        at,
        report.made,
        headline.kind,
        headline.chip,
        " ".join([headline.sentence, *headline.because]),
        report.document.about,
        state,
        f"{slug}/{PAGE}",
    )


# --- in a notebook


def block_of(result: Result) -> str:
    """Return the HTML text of a Result: its headline and first short table; of a part its table alone."""
    document = _document(result)
    first = next(_short_tables(document), None) if document else None
    if first is None:
        frame = result.frame()
        if isinstance(result, Judgements):
            frame = frame.select("item_id", "judge", "verdict", "reasoning")
        rows = [
            ["" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row]
            for row in frame.head(_ROWS).iter_rows()
        ]
        first = Grid(list(frame.columns), rows)
    headline, facts = (document.headline, document.facts) if document else (_headline(result), ())
    return rendered("notebook.html", headline=headline, facts=facts, table=first)


def text_of(result: Result) -> str:
    """Return the headline of a Result as text for a terminal; of a part without a headline its fields."""
    document = _document(result)
    headline = document.headline if document else _headline(result)
    if headline is not None:
        return terminal(Document("", "", headline, ()))
    fields = (f"{field.name}={getattr(result, field.name)!r}" for field in dataclasses.fields(result))  # type: ignore[arg-type]
    return f"{type(result).__name__}({', '.join(fields)})"


def _headline(result: Result) -> Headline | None:
    """The sentence of a part of a result; None where it has none."""
    match result:
        case Agreement(metric=metric, decides=decides):
            counts = f"{decides.n - decides.n_unscored:,} of {decides.n_expected:,} have a verdict"
            what = f"It reaches {in_percent(decides)} agreement with the labels."
            return Headline("agreement", what, (f"{metric}; {counts}.", decides.reason or ""))
        case Estimates():
            name, first = next(iter(result.items()))
            return Headline("raters", f"{name} is {estimate(first)}.", (first.reason or "",))
        case PairComparison(decision=decision):
            what = "We cannot tell which judge agrees better."
            what = what if decision == "cannot tell" else f"{decision} agrees better with the labels."
            change = f"A - B in {result.metric}: {difference(result.difference)}."
            return Headline(decision, what, (change, sentence(result.why)))
        case AltTest(passed=passed, epsilon=epsilon):
            does = "passes" if passed else "does not pass"
            what = f"The judge {does} the alternative annotator test at {epsilon:g}."
            return Headline("alt_test", what, (sentence(result.reason),) if result.reason else ())
        case Judgements():
            n = len(result) - len(result.unscored)
            return Headline("judged", f"{n:,} of {len(result):,} verdicts could be had.")
    return None


def _document(result: Result) -> Document | None:
    """What the table of commands names, but for results whose documents need more than themselves."""
    if isinstance(result, Report):
        return result.document
    if isinstance(result, AgreementResult):  # whose headline rests on the judgements of its experiment
        try:
            return load_report(result.experiment).document
        except InputError:
            return None
    document: Document | None = document_of(result)
    return document


def _short_tables(document: Document) -> Iterator[Grid]:
    """Those that stand behind a picture too."""
    for block in (block for section in document.sections for block in section.blocks if block.short):
        if isinstance(block, Grid):
            yield block
        elif isinstance(block, Picture) and block.numbers is not None:
            yield block.numbers
