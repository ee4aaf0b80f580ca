"""Insight into labels and results: diagnosis, explanation, suggestions, report."""

from dcgst.insight.comparison import Comparison, compare
from dcgst.insight.diagnosis import Diagnosis, diagnose, diagnose_run
from dcgst.insight.explanation import Explanation, explain
from dcgst.insight.report import write_report
from dcgst.insight.suggestion import Suggestions, draw_audit, suggest

__all__ = [
    "Comparison",
    "Diagnosis",
    "Explanation",
    "Suggestions",
    "compare",
    "diagnose",
    "diagnose_run",
    "draw_audit",
    "explain",
    "suggest",
    "write_report",
]
