"""Results as text and JSON."""

from judgecal.report.layout import text_table
from judgecal.report.plain import json_text

__all__ = ["json_text", "text_table"]
