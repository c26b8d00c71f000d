"""What models cost: the price file inside the installed litellm, read as a file, as importing litellm takes
seconds."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from judgecal.errors import InputError


def price_row(model_id: str) -> Mapping[str, Any]:
    """The price file's row of a litellm id; it lists some providers' models without the provider."""
    rows = _price_file()
    provider, _, model = model_id.partition("/")
    row = rows.get(model_id) or rows.get(model, {})
    same = row.get("litellm_provider", provider) == provider
    return row if same and "input_cost_per_token" in row else {}


@cache
def _price_file() -> Mapping[str, Any]:
    found = importlib.util.find_spec("litellm")
    if found is None or found.origin is None:
        raise InputError("litellm is not installed: reinstall judgecal")
    path = Path(found.origin).parent / "model_prices_and_context_window_backup.json"
    rows: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return rows
