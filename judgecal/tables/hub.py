"""Data sets of the Hugging Face Hub, or folders of the same form, through `datasets.load_dataset`.

The address is `hf:org/name[/config][:split]`, or `hf:./folder[:split]` for a folder.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgecal.errors import InputError
from judgecal.tables.formats import Format
from judgecal.tables.table import NoRowsError, Table

if TYPE_CHECKING:
    import polars as pl

_HUB = "hf:"
_FORM = "hf:org/name[/config][:split]"
_PART = re.compile(r"[\w.-]+", re.ASCII)


def _read(text: str) -> Table:
    """Read one split of a data set; its rows are numbered from 1.

    InputError: the address is none, the data set or the split cannot be had (the message lists the splits and
    says what to do without a network), or it holds no rows.
    """
    path, config, split = _parse(text)
    data = _load(text, path, config, split)
    if split is None:
        if len(data) > 1:
            named = ", ".join(f"{name} ({part.num_rows:,} rows)" for name, part in data.items())
            raise InputError(
                f"{text}: has {len(data)} splits, {named}: name one, as in {text}:{next(iter(data))} "
                "(several are joined by +)"
            )
        data = next(iter(data.values()))
    if not data.num_rows:
        raise NoRowsError(f"{text}: the split holds no rows")
    name = text
    if Path(path).is_absolute():  # without the way to a folder
        name = f"{_HUB}{Path(path).name}" + (f":{split}" if split else "")
    where = "a local folder" if Path(path).is_dir() else "Hugging Face Hub"
    source = f"{name} ({where}, {data.num_rows:,} rows, fingerprint {data._fingerprint})"
    return Table.of_frame(text, _named_classes(data), name=name, source=source)


def _parse(text: str) -> tuple[str, str | None, str | None]:
    """What `load_dataset` takes for an address: path, config and split, None where it does not say."""
    path, _, split = text.removeprefix(_HUB).partition(":")
    if path.startswith((".", "/")):
        if not Path(path).is_dir():
            raise InputError(f"{text}: there is no folder {path}")
        return path, None, split or None
    parts = path.split("/")
    if len(parts) > 3 or not all(_PART.fullmatch(part) for part in parts):
        raise InputError(f"{text}: cannot be read as {_FORM}; write ./ before a folder")
    return "/".join(parts[:2]), parts[2] if len(parts) == 3 else None, split or None


def _load(text: str, path: str, config: str | None, split: str | None) -> Any:
    """What `load_dataset` gives: a data set where a split is named, else all splits by name."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read by the Hub's client when it is loaded
    import datasets
    import yaml

    failures = (datasets.exceptions.DatasetsError, OSError, ValueError, RuntimeError, yaml.YAMLError)
    try:
        return datasets.load_dataset(path, name=config, split=split)
    except failures as error:
        advice = f"the form is {_FORM}; see the data set's own page and card"
        if isinstance(error, ConnectionError):
            advice = "connect, or fetch the split's Parquet file where there is a network and import that"
        elif isinstance(error, datasets.exceptions.DatasetNotFoundError):
            advice = "check the name; of a private set log in with `hf auth login` and accept its terms"
        elif "script" in str(error):
            advice = "code of a data set is not run: fetch its Parquet copy"
        raise InputError(f"{text}: cannot be loaded: {_first(error)} ({advice})") from None


def _first(error: BaseException) -> str:
    """The first two lines of what it says, and of what it was raised from."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines[:2]).rstrip(".:") or type(error).__name__
    return text if error.__cause__ is None else f"{text}: {_first(error.__cause__)}"


def _named_classes(data: Any) -> pl.DataFrame:
    """The split as a data frame, its class labels by their names; -1, the mark of a hidden label, as null."""
    import datasets
    import polars as pl

    def named(expression: pl.Expr, feature: Any) -> pl.Expr:
        names = dict(enumerate(feature.names))
        return expression.replace_strict(names, default=None, return_dtype=pl.String)

    frame: pl.DataFrame = data.to_polars()
    for column, feature in data.features.items():
        inner = getattr(feature, "feature", None)
        if isinstance(feature, datasets.ClassLabel):
            frame = frame.with_columns(named(pl.col(column), feature))
        elif isinstance(inner, datasets.ClassLabel):
            frame = frame.with_columns(pl.col(column).list.eval(named(pl.element(), inner)))
    return frame


FORMATS = (Format("a data set of the Hub, hf:org/name", address=(_HUB, _read)),)
