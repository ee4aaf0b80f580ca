"""Insight into labels and results: diagnosis, explanation, suggestions, report."""

from dcgst.insight.comparison import Comparison, compare
from dcgst.insight.diagnosis import Diagnosis, ShownAccuracy, diagnose, diagnose_run, shown_accuracy
from dcgst.insight.explanation import Explanation, explain
from dcgst.insight.report import write_report
from dcgst.insight.suggestion import Suggestions, draw_audit, suggest

__all__ = [
    "Comparison",
    "Diagnosis",
    "Explanation",
    "ShownAccuracy",
    "Suggestions",
    "compare",
    "diagnose",
    "diagnose_run",
    "draw_audit",
    "explain",
    "shown_accuracy",
    "suggest",
    "write_report",
]
