"""Style shared by all figures: palette, panels, bands, and saving."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcgst.errors import InputError
from dcgst.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito is safe for color-blind readers. Its colors also differ in lightness.
BLUE, ORANGE, GRAY = "#0072B2", "#E69F00", "#7F7F7F"
CLASS_COLORS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "legend.frameon": False,
    "svg.hashsalt": "dcgst",
    "figure.dpi": 150,
}
"""Matplotlib settings."""


def import_matplotlib() -> None:
    """Import matplotlib with a backend that needs no display.

    Raises:
        InputError: If matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise InputError("figures need matplotlib: pip install 'dcgst[plot]'") from error
    mpl.use("agg")


def make_panels(
    rows: int,
    columns: int,
    *,
    width: float,
    height: float,
    share_x: bool = False,
    share_y: Literal["none", "row"] = "none",
) -> tuple[Figure, list[Axes]]:
    """Create a figure with a grid of axes, listed row by row. Sizes are in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=share_x, sharey=share_y)
    return figure, list(grid.flat)


def plot_band(
    ax: Axes, x: ArrayLike, values: ArrayLike, color: str, marker: str, label: str = ""
) -> None:
    """Plot the mean of ``values`` over the runs, with a band of one standard deviation.

    Args:
        ax: Axes to draw on.
        x: Positions, shape ``(points,)``.
        values: Values, shape ``(points, runs)``.
        color: Color of the line and the band.
        marker: Marker of the points.
        label: Text in the legend.
    """
    table = np.asarray(values, dtype=float)
    mean, std = table.mean(axis=1), table.std(axis=1)
    ax.plot(x, mean, color=color, marker=marker, markersize=3.5, linewidth=1.4, label=label)
    ax.fill_between(x, mean - std, mean + std, color=color, alpha=0.2, linewidth=0)


def pad_runs(runs: list[list[float]]) -> NDArray[np.float64]:
    """Stack runs of different lengths; a shorter run repeats its last value.

    Returns:
        Array of shape ``(runs, stages)``.
    """
    longest = max(len(run) for run in runs)
    return np.array([run + run[-1:] * (longest - len(run)) for run in runs])


def save(figure: Figure, path: Path) -> list[Path]:
    """Save a figure as SVG and PNG; each file is written atomically.

    Args:
        figure: Figure to save.
        path: Path of the files without a suffix.

    Returns:
        The files written.
    """
    written = []
    for kind in ("svg", "png"):
        target = path.with_suffix(f".{kind}")
        metadata = {"Date": None} if kind == "svg" else None
        with replacing(target) as part:
            figure.savefig(part, format=kind, dpi=200, metadata=metadata)
        written.append(target)
    return written
