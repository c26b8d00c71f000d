"""Data sets of the Hugging Face Hub, or folders of the same form, through `datasets.load_dataset`.

The address is `hf:org/name[/config][@revision][:split]`, or `hf:./folder[:split]` for a folder.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgecal.errors import InputError
from judgecal.tables.formats import Format
from judgecal.tables.table import NoRowsError, Table

if TYPE_CHECKING:
    import polars as pl

_HUB = "hf:"
_FORM = "hf:org/name[/config][@revision][:split]"
_PART = re.compile(r"[\w.-]+", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class _Address:
    """What an `hf:` address asks for; None where it does not say. `path` is what `load_dataset` takes."""

    text: str
    path: str
    config: str | None = None
    revision: str | None = None
    split: str | None = None

    @property
    def is_folder(self) -> bool:
        """`datasets` takes a folder of that name before it asks the Hub."""
        return Path(self.path).is_dir()

    @property
    def name(self) -> str:
        """The address, without the way to a folder that is named from the root."""
        if not Path(self.path).is_absolute():
            return self.text
        return f"{_HUB}{Path(self.path).name}" + (f":{self.split}" if self.split else "")


def _read(text: str) -> Table:
    """Read one split of a data set; its rows are numbered from 1.

    InputError: the address is none, the data set or the split cannot be had (the message lists the splits and
    says what to do without a network), or it holds no rows.
    """
    address = _parse(text)
    data = _load(address)
    if address.split is None:
        if len(data) > 1:
            named = ", ".join(f"{name} ({split.num_rows:,} rows)" for name, split in data.items())
            raise InputError(
                f"{text}: has {len(data)} splits, {named}: name one, as in {text}:{next(iter(data))} "
                "(several are joined by +)"
            )
        data = next(iter(data.values()))
    if not data.num_rows:
        raise NoRowsError(f"{text}: the split holds no rows")
    licence = _licence(address)
    folders = {part for file in data.cache_files for part in Path(file["filename"]).parts}
    commits = sorted(filter(_COMMIT.fullmatch, folders))  # where `datasets` keeps a revision
    facts = [
        "a local folder" if address.is_folder else "Hugging Face Hub",
        f"config {data.info.config_name}",
        f"split {data.split}",
        f"{data.num_rows:,} rows",
        *(f"revision {commit}" for commit in commits),
        f"fingerprint {data._fingerprint}",
        f"licence {licence or 'not stated'}",
    ]
    source = f"{address.name} ({', '.join(facts)})"
    return Table.of_frame(text, _named_classes(data), name=address.name, source=source, licence=licence)


def _parse(text: str) -> _Address:
    rest, _, split = text.removeprefix(_HUB).partition(":")
    if rest.startswith((".", "/")):
        if not Path(rest).is_dir():
            raise InputError(f"{text}: there is no folder {rest}")
        return _Address(text, rest, split=split or None)
    path, _, revision = rest.partition("@")
    parts = path.split("/")
    if len(parts) > 3 or not all(_PART.fullmatch(part) for part in parts):
        raise InputError(f"{text}: cannot be read as {_FORM}; write ./ before a folder")
    config = parts[2] if len(parts) == 3 else None
    return _Address(text, "/".join(parts[:2]), config, revision or None, split or None)


def _load(address: _Address) -> Any:
    """What `load_dataset` gives: a data set where a split is named, else all splits by name."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read by the Hub's client when it is loaded
    import datasets
    import yaml

    try:
        return datasets.load_dataset(
            address.path, name=address.config, revision=address.revision, split=address.split
        )
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
            advice = (
                "code of a data set is not run; its Parquet copy may be at hf:org/name@refs/convert/parquet"
            )
        elif (
            type(error) is ValueError
        ):  # how `datasets` refuses a config or a split, with those that it knows
            advice = f"the form is {_FORM}"
        what = f"cannot be loaded: {_first(error)} ({advice})"
    raise InputError(f"{address.text}: {what}")


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


def _licence(address: _Address) -> str:
    """Return the licence that the card of the data set states; "" where there is none."""
    import datasets
    import yaml

    try:
        readme: str | Path = Path(address.path) / "README.md"
        if not address.is_folder:
            readme = datasets.DownloadManager().download(f"hf://datasets/{address.path}/README.md")
        header = re.match(r"---\n(.*?)\n---", Path(readme).read_text(encoding="utf-8"), re.DOTALL)
        facts = yaml.safe_load(header[1]) if header else None
    except (OSError, ValueError, yaml.YAMLError):  # the set's own card then says that its licence is unknown
        return ""
    licence = facts.get("license") if isinstance(facts, dict) else None
    return ", ".join(map(str, licence)) if isinstance(licence, list) else str(licence or "")


FORMATS = (Format("a data set of the Hub, hf:org/name", address=(_HUB, _read)),)
