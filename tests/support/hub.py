"""Folders of the form of a data set on the Hub, and a process that cannot reach the Hub nor the home folder.

`datasets.load_dataset("org/name")` takes a folder of that name below the current one before it asks the Hub,
so these tests go through the very call that a user's command makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
import pytest

Rows = Sequence[Mapping[str, Any]]


def keep_off_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No request leaves, and what `datasets` stores goes to a temporary folder."""
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets-cache")


def hub_folder(
    folder: Path,
    configs: Mapping[str, Mapping[str, Rows]],
    features: Mapping[str, Any],
    *,
    licence: str | None = None,
) -> Path:
    """Parquet files and a card, as the Hub keeps them: configs[name][split] are the rows."""
    card = ["---", *([f"license: {licence}"] if licence else []), "configs:"]
    for config, splits in configs.items():
        card += [f"- config_name: {config}", "  data_files:"]
        for split, rows in splits.items():
            path = folder / config / f"{split}-00000-of-00001.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            columns = {name: [row.get(name) for row in rows] for name in features}
            typed = datasets.Features(dict(features))
            datasets.Dataset.from_dict(columns, features=typed).to_parquet(str(path))
            card += [f"  - split: {split}", f"    path: {config}/{split}-*"]
    (folder / "README.md").write_text("\n".join([*card, "---", ""]), encoding="utf-8")
    return folder
