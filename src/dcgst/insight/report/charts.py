"""Small SVG charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BLUE, ORANGE, GREEN, GRAY = "#0072B2", "#D55E00", "#009E73", "#6b7280"
PALETTE = (BLUE, "#E69F00", GREEN, "#CC79A7", "#56B4E9", ORANGE, "#F0E442", "#444444")
"""The colors of Okabe and Ito, which people with color blindness can distinguish."""

WIDTH, HEIGHT = 360, 200
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 36


@dataclass(frozen=True)
class Line:
    """A line of a chart."""

    title: str
    x: Sequence[float]
    y: Sequence[float]
    color: str = BLUE
    dashed: bool = False
    dots: bool = True


def color_of(code: int, classes: int) -> str:
    """The color of a class; many classes get hues around the color circle."""
    if classes <= len(PALETTE):
        return PALETTE[code]
    return f"hsl({360 * code / classes:.0f} {60 + 20 * (code % 2)}% {42 + 12 * (code % 3)}%)"


def line_chart(lines: Sequence[Line], x_title: str, y_title: str, top: float | None = None) -> str:
    """Lines in one chart whose y-axis starts at zero."""
    xs = [x for line in lines for x in line.x]
    ys = [y for line in lines for y in line.y]
    if not xs:
        return ""
    x_low, x_high = min(xs), max(max(xs), min(xs) + 1)
    y_high = top if top is not None else max(*ys, 1e-9) * 1.05

    def at(x: float, y: float) -> tuple[float, float]:
        horizontal = LEFT + (WIDTH - LEFT - RIGHT) * (x - x_low) / (x_high - x_low)
        return horizontal, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(y, y_high) / y_high

    parts = [_axes(x_low, x_high, y_high, x_title, y_title)]
    for line in lines:
        points = [at(x, y) for x, y in zip(line.x, line.y, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{line.color}" stroke-width="2"{dash}/>'
        )
        if line.dots:
            parts += [
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{line.color}"/>' for x, y in points
            ]
    styles = [f"line{' dashed' if line.dashed else ''}" for line in lines]
    legend = "".join(
        f'<span><i class="{style}" style="border-color:{line.color}"></i>{line.title}</span>'
        for line, style in zip(lines, styles, strict=True)
    )
    drawing = "".join(parts)
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{y_title}">'
        f'{drawing}</svg><figcaption class="legend">{legend}</figcaption></figure>'
    )


def _axes(x_low: float, x_high: float, y_high: float, x_title: str, y_title: str) -> str:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for step in range(5):
        value = y_high * step / 4
        y = bottom - (bottom - TOP) * step / 4
        parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.2g}</text>')
    for x in _ticks(x_low, x_high):
        horizontal = LEFT + (right - LEFT) * (x - x_low) / (x_high - x_low)
        parts.append(
            f'<text x="{horizontal:.1f}" y="{bottom + 16}" text-anchor="middle">{x:g}</text>'
        )
    middle = (LEFT + right) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">{x_title}</text>')
    parts.append(
        f'<text x="12" y="{(TOP + bottom) / 2}" text-anchor="middle" '
        f'transform="rotate(-90 12 {(TOP + bottom) / 2})">{y_title}</text>'
    )
    return "".join(parts)


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers from low to high."""
    span = high - low
    step = next(s for s in (0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 1e9) if span / s <= 6)
    first = -(-low // step) * step
    return [round(first + i * step, 6) for i in range(int((high - first) / step + 1e-9) + 1)]
