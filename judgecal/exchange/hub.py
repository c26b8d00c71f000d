"""Data sets of the Hugging Face Hub as tables, at the address `hf:org/name[/config][:split]`."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from judgecal.errors import InputError, error_text
from judgecal.tables import NoRowsError, Table

if TYPE_CHECKING:
    import polars as pl

_FORM = "hf:org/name[/config][:split]"
_NAME = re.compile(r"([\w.-]+(?:/[\w.-]+)?)(?:/([\w.-]+))?", re.ASCII)
_ADVICE = (
    f"the form is {_FORM}; without a network import the split's Parquet file; for a private set log in with "
    "`hf auth login`"
)


def read_hub(text: str) -> Table:
    """Read one split of a data set at an address (text) as a Table; its rows are numbered from 1."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read by the Hub's client when it is loaded
    import datasets
    import yaml

    path, _, split = text.removeprefix("hf:").partition(":")
    failures = (datasets.exceptions.DatasetsError, OSError, ValueError, RuntimeError, yaml.YAMLError)
    if (parts := _NAME.fullmatch(path)) is None:
        raise InputError(f"{text}: cannot be read as {_FORM}")
    try:
        data = datasets.load_dataset(parts[1], name=parts[2], split=split or None)
    except failures as error:
        raise InputError(f"{text}: cannot be loaded: {error_text(error)} ({_ADVICE})") from None
    if not split:
        if len(data) > 1:
            named = ", ".join(f"{name} ({part.num_rows:,} rows)" for name, part in data.items())
            raise InputError(
                f"{text}: has {len(data)} splits, {named}: name one, as in {text}:{next(iter(data))} "
                "(several are joined by +)"
            )
        data = next(iter(data.values()))
    if not data.num_rows:
        raise NoRowsError(f"{text}: the split holds no rows")
    source = f"{text} ({data.num_rows:,} rows, fingerprint {data._fingerprint})"
    return Table.of_frame(text, _named_classes(data), name=text, source=source)


def _named_classes(data: Any) -> pl.DataFrame:
    """The split as a data frame, its class labels by their names; -1, the mark of a hidden label, as null."""
    import datasets
    import polars as pl

    frame: pl.DataFrame = data.to_polars()
    classes = {name: kind for name, kind in data.features.items() if isinstance(kind, datasets.ClassLabel)}
    return frame.with_columns(
        pl.col(name).replace_strict(dict(enumerate(kind.names)), default=None, return_dtype=pl.String)
        for name, kind in classes.items()
    )
