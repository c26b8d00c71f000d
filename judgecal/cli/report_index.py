"""`experiments/index.html`: every experiment with its decision."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from judgecal.cli.report_kinds import report_of
from judgecal.errors import InputError
from judgecal.experiment.folder import read_config
from judgecal.report.page_index import Listed, index_html
from judgecal.report.rendered import Report
from judgecal.workspace import Workspace

__all__ = ["write_index"]


def write_index(workspace: Workspace, kinds: Mapping[str, str], *, margin: float) -> Path:
    """Write the index of a workspace's experiments; gives its path.

    An experiment that cannot be read stands in it with the reason: one broken folder does not hide the others.

    Raises:
        InputError: there is no experiment.
    """
    folders = sorted(path.parent for path in workspace.experiments.glob("*/experiment.toml"))
    if not folders:
        raise InputError(f"{workspace.experiments}: there is no experiment yet")
    path = workspace.experiments / "index.html"
    draft = path.with_name(f".{path.name}")
    listed = [_listed(workspace, folder, kinds, margin=margin) for folder in folders]
    draft.write_text(index_html(listed), encoding="utf-8")
    draft.replace(path)
    return path


def _listed(workspace: Workspace, folder: Path, kinds: Mapping[str, str], *, margin: float) -> Listed:
    page = f"{folder.name}/report.html" if (folder / "report.html").exists() else None
    try:
        command = str(read_config(folder).get("command"))
        if command not in kinds:
            return Listed(folder.name, command, "", "there is no report of this kind", page)
        found = report_of(workspace, folder.name, margin=margin)
    except InputError as error:
        return Listed(folder.name, "", "", str(error), page)
    if isinstance(found, Report):
        return Listed(folder.name, command, found.document.about, found.document.headline.sentence, page)
    return Listed(folder.name, command, found.about, found.decision.sentence, page)
