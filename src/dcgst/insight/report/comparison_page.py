"""The page of a comparison of two runs."""

from __future__ import annotations

from pathlib import Path

from dcgst.files import write_text
from dcgst.insight.comparison import Comparison
from dcgst.insight.report.charts import color_of
from dcgst.insight.report.rendering import render_template

ROW, NAME_WIDTH, CHART_WIDTH = 26, 130, 620
MOST_CLASSES = 40
"""Maximum number of classes in the chart."""


def write_comparison(found: Comparison, path: Path, before: str, after: str) -> Path:
    """Write a comparison as one HTML file.

    Args:
        found: the comparison.
        path: the file.
        before: name of the first run.
        after: name of the second run.
    """
    content = {
        "title": f"{before} and {after}",
        "before": before,
        "after": after,
        "found": found,
        "rows": summary_rows(found),
        "chart": _share_chart(found),
    }
    write_text(path, render_template("comparison.html", **content))
    return path


def summary_rows(found: Comparison) -> list[tuple[str, str, str]]:
    """Name and values before and after of each figure, as text."""
    pairs = {
        "given labels": (f"{found.labels_before:,}", f"{found.labels_after:,}"),
        "estimated accuracy": tuple(
            estimate.text if estimate else "not measured"
            for estimate in (found.estimate_before, found.estimate_after)
        ),
        "mean probability": (f"{found.confidence_before:.0%}", f"{found.confidence_after:.0%}"),
        "shift of the labels": (f"{found.shift_before:.3f}", f"{found.shift_after:.3f}"),
    }
    return [(name, before, after) for name, (before, after) in pairs.items()]


def _share_chart(found: Comparison) -> str:
    """A row per class with its share before (circle) and after (dot)."""
    from markupsafe import escape

    names = sorted(found.shares_after, key=lambda name: -found.shares_after[name])[:MOST_CLASSES]
    highest = max([*found.shares_before.values(), *found.shares_after.values(), 1e-9])
    codes = {name: code for code, name in enumerate(sorted(found.shares_after))}

    def x(share: float) -> float:
        return NAME_WIDTH + (CHART_WIDTH - NAME_WIDTH - 110) * share / highest

    parts = []
    for row, name in enumerate(names):
        y = ROW * row + ROW / 2
        before, after = found.shares_before[name], found.shares_after[name]
        color = color_of(codes[name], len(codes))
        parts.append(
            f'<text x="{NAME_WIDTH - 8}" y="{y + 4}" text-anchor="end">{escape(name[:20])}</text>'
            f'<line x1="{x(before):.1f}" x2="{x(after):.1f}" y1="{y}" y2="{y}" '
            f'stroke="{color}" stroke-width="2"/>'
            f'<circle cx="{x(before):.1f}" cy="{y}" r="5" fill="none" stroke="{color}" '
            f'stroke-width="2"/><circle cx="{x(after):.1f}" cy="{y}" r="5" fill="{color}"/>'
            f'<text x="{max(x(before), x(after)) + 12:.1f}" y="{y + 4}">'
            f"{before:.0%} → {after:.0%}</text>"
        )
    height = ROW * len(names)
    return (
        f'<figure style="max-width:{CHART_WIDTH}px"><svg viewBox="0 0 {CHART_WIDTH} {height}" '
        f'role="img" aria-label="class shares before and after">{"".join(parts)}</svg>'
        '<figcaption class="legend"><span>circle: before</span><span>dot: after</span>'
        "</figcaption></figure>"
    )
