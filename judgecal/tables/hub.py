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
    licence, name = _licence(path), text
    if Path(path).is_absolute():  # without the way to a folder
        name = f"{_HUB}{Path(path).name}" + (f":{split}" if split else "")
    facts = [
        "a local folder" if Path(path).is_dir() else "Hugging Face Hub",
        f"config {data.info.config_name}",
        f"split {data.split}",
        f"{data.num_rows:,} rows",
        f"fingerprint {data._fingerprint}",
        f"licence {licence or 'not stated'}",
    ]
    source = f"{name} ({', '.join(facts)})"
    return Table.of_frame(text, _named_classes(data), name=name, source=source, licence=licence)


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

    try:
        return datasets.load_dataset(path, name=config, split=split)
    except ConnectionError as error:
        what = f"the Hub cannot be reached ({_first(error)}): {_OFFLINE}"
    except datasets.exceptions.DatasetNotFoundError:
        what = (
            "the Hub has no such data set, or it is private or gated: check the name, or "
            "log in with `hf auth login` and accept its terms on its page"
        )
    except (datasets.exceptions.DatasetsError, OSError, ValueError, RuntimeError, yaml.YAMLError) as error:
        advice = "see the data set's own files and card"
        if "script" in str(error):
            advice = "code of a data set is not run: fetch its Parquet copy"
        elif (
            type(error) is ValueError
        ):  # how `datasets` refuses a config or a split, with those that it knows
            advice = f"the form is {_FORM}"
        what = f"cannot be loaded: {_first(error)} ({advice})"
    raise InputError(f"{text}: {what}")


_OFFLINE = (
    "connect and run the command again, without HF_HUB_OFFLINE in the environment; or fetch the split's "
    "Parquet file where there is a network and import that file"
)


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


def _licence(path: str) -> str:
    """Return the licence that the card of the data set states; "" where there is none."""
    import datasets
    import yaml

    try:
        readme: str | Path = Path(path) / "README.md"
        if not Path(path).is_dir():
            readme = datasets.DownloadManager().download(f"hf://datasets/{path}/README.md")
        header = re.match(r"---\n(.*?)\n---", Path(readme).read_text(encoding="utf-8"), re.DOTALL)
        facts = yaml.safe_load(header[1]) if header else None
    except (OSError, ValueError, yaml.YAMLError):  # the set's own card then says that its licence is unknown
        return ""
    licence = facts.get("license") if isinstance(facts, dict) else None
    return ", ".join(map(str, licence)) if isinstance(licence, list) else str(licence or "")


FORMATS = (Format("a data set of the Hub, hf:org/name", address=(_HUB, _read)),)
