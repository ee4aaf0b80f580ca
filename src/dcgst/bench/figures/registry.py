"""All figures with their captions, and the function that draws them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcgst.bench.figures.plots import (
    plot_backbones,
    plot_by_stage,
    plot_scaling,
    plot_sensitivity,
    plot_shift,
    plot_study,
)
from dcgst.bench.figures.style import STYLE, import_matplotlib, save
from dcgst.bench.figures.variant import plot_variant
from dcgst.bench.records import Records

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES: dict[str, Callable[[Records, int], Figure | None]] = {
    "fig1": plot_shift,
    "fig2": plot_variant,
    "fig4": plot_sensitivity,
    "fig5": plot_by_stage,
    "fig6": plot_backbones,
    "fig7": plot_scaling,
}
"""Function of each figure. It returns None if a record is missing."""

CAPTIONS = {
    "fig1": "Mean over the runs. DC-GST ends near zero because nearly all nodes are labeled after "
    "its last stage. Selection by confidence alone would also end near zero.",
    "fig2": "DC-GST with preset `paper/cora`, fitted on run 0 when the figure is drawn. The "
    "subgraph surrounds the node with the most changed edges.",
    "fig4": "`paper/…` presets. The line is the mean over the runs, the band is one standard "
    "deviation, and the dotted line is the published value.",
    "fig5": "`paper/citeseer` and M3S. The line is the mean over the runs, and the band is one "
    "standard deviation.",
    "fig6": "Mean and standard deviation over the runs. DC-GST has its `paper/…` "
    "preset with the other backbone.",
    "fig7": "Synthetic graphs with 20 labels for each of four classes, one run each, on the device "
    "in the title. On a GPU, small graphs take nearly as long as large ones.",
}


def draw_study(summary: Mapping[str, Any], path: Path) -> list[Path]:
    """Draw a search for settings and save it as SVG and PNG.

    Args:
        summary: of :func:`dcgst.bench.tuning.tune`.
        path: of the files without a suffix.

    Returns:
        The files written.
    """
    import_matplotlib()
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        return save(plot_study(summary), path)


def draw(name: str, records: Records, folder: Path, runs: int = 10) -> list[Path]:
    """Draw a figure and save it as SVG and PNG.

    Args:
        name: Name of the figure, a key of ``FIGURES``.
        records: Records to use.
        folder: Folder to write to.
        runs: Number of runs per cell.

    Returns:
        The files written; empty if a record is missing.
    """
    import_matplotlib()
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        figure = FIGURES[name](records, runs)
        return [] if figure is None else save(figure, folder / name)
