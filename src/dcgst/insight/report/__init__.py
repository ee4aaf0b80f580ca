"""Pages: the report of a run, and the comparison of two runs."""

from dcgst.insight.report.comparison_page import summary_rows, write_comparison
from dcgst.insight.report.page import render, write_report

__all__ = ["render", "summary_rows", "write_comparison", "write_report"]
