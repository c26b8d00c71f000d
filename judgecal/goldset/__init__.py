"""Gold sets: load, audit, split, import, blind sheets."""

from judgecal.goldset.card import Card, RaterCard, Splits
from judgecal.goldset.check import GoldCheck, GoldList, Problem, check_gold, check_set, list_sets, split_notes
from judgecal.goldset.gold_set import JUDGEMENTS, GoldDocument, GoldSet, require_splits, split_counts
from judgecal.goldset.imports import Imported, import_gold, read_mapping
from judgecal.goldset.load import load_gold, read_items
from judgecal.goldset.sheet import Sheets, import_sheets, write_sheets
from judgecal.goldset.write import item_row, write_gold
from judgecal.tables.columns import GOLD, Columns

__all__ = [
    "GOLD", "JUDGEMENTS", "Card", "Columns", "GoldCheck", "GoldDocument", "GoldList", "GoldSet", "Imported",
    "Problem", "RaterCard", "Sheets", "Splits", "check_gold", "check_set", "import_gold", "import_sheets",
    "item_row", "list_sets", "load_gold", "read_items", "read_mapping", "require_splits", "split_counts",
    "split_notes", "write_gold", "write_sheets",
]  # fmt: skip
