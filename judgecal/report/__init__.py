"""Results as documents, and their three renderers."""

from judgecal.report.layout import text_table

__all__ = ["text_table"]
