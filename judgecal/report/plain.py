"""Results as the JSON that scripts read from stdout."""

from __future__ import annotations

import json
from typing import Any

from judgecal.records import as_plain


def json_text(value: Any) -> str:
    """One JSON object, indented; never NaN."""
    return json.dumps(as_plain(value), ensure_ascii=False, indent=2, allow_nan=False)
