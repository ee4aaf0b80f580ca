"""The report of a run: one HTML page."""

from dcgst.insight.report.page import render, write_report

__all__ = ["render", "write_report"]
