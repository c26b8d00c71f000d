"""Gold sets: load, audit, split, import, blind sheets."""

from judgecal.goldset.audit import Problem, check_gold
from judgecal.goldset.card import Card, RaterCard
from judgecal.goldset.columns import Columns
from judgecal.goldset.gold_set import GOLD, GoldSet, common_label
from judgecal.goldset.imports import Imported, import_gold, read_mapping
from judgecal.goldset.load import list_gold, load_gold
from judgecal.goldset.rows import Document
from judgecal.goldset.sheet import Sheets, write_sheets
from judgecal.goldset.sheet_import import import_sheets
from judgecal.goldset.split import SPLIT_NAMES, SPLITS, Splits
from judgecal.goldset.summary import check_summary, require_splits, split_counts
from judgecal.goldset.write import item_row, write_gold

__all__ = [
    "GOLD",
    "SPLITS",
    "SPLIT_NAMES",
    "Card",
    "Columns",
    "Document",
    "GoldSet",
    "Imported",
    "Problem",
    "RaterCard",
    "Sheets",
    "Splits",
    "check_gold",
    "check_summary",
    "common_label",
    "import_gold",
    "import_sheets",
    "item_row",
    "list_gold",
    "load_gold",
    "read_mapping",
    "require_splits",
    "split_counts",
    "write_gold",
    "write_sheets",
]
