"""What the wings add to the core, in one table: the core imports none of them and asks here by name.

A wing is `rag`, `exchange`, `bulk` or `desk`; it imports the core and no other wing.
"""

from __future__ import annotations

import importlib
from typing import Any

GIVES = {
    "answered items": "rag.evaluation.judging:answered_items",
    "guess export": "exchange.exports:guess",
    "import export": "exchange.export_import:import_export",
    "export labels": "exchange.export_import:LabelOptions",
    "holds rules": "exchange.rag_ifeval:holds_rules",
    "import rules": "exchange.rag_ifeval:import_rules",
    "mosaic rows": "exchange.mosaic_rows:MosaicReader",
    "files": "bulk.files:FilesRun",
    "ray": "bulk.ray_engine:judge_on_ray",
    "needs ray": "bulk.ray_engine:require_ray",
}
"""Name -> `module:attribute` below `judgecal`."""


def wing(name: str) -> Any:
    """What a wing gives under a name of the table; its module is loaded now."""
    module, _, attribute = GIVES[name].partition(":")
    return getattr(importlib.import_module(f"judgecal.{module}"), attribute)
