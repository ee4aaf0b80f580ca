"""One page that shows what was found and how far to trust it."""

from dcgst.report.page import render, write_report

__all__ = ["render", "write_report"]
