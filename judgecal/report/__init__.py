"""Results as text and JSON."""

from judgecal.report.agreement_text import agreement_text
from judgecal.report.layout import text_table
from judgecal.report.plain import json_text

__all__ = ["agreement_text", "json_text", "text_table"]
