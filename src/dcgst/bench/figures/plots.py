"""The figures that are drawn from records alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dcgst.bench.cells import Cell
from dcgst.bench.experiments import (
    BACKBONES,
    EXPERIMENTS,
    SENSITIVITY,
    SIZES,
    WITH_BACKBONES,
    cells_of,
    protocol_cell,
    scaling_cells,
)
from dcgst.bench.figures.style import BLUE, GRAY, ORANGE, make_panels, pad_runs, plot_band
from dcgst.bench.records import Records, StoredRecord
from dcgst.bench.tables import TITLES
from dcgst.methods import METHODS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WEIGHT_TITLES = {
    "cmd_weight": "α, weight of CMD",
    "predictor_weight": "β, weight of EP",
    "ner_weight": "γ, weight of NER",
}
DATASET_TITLES = {"cora": "Cora", "citeseer": "CiteSeer"}
BACKBONE_TITLES = {"gat": "GAT", "sage": "GraphSAGE"}


def plot_shift(records: Records, runs: int) -> Figure | None:
    """Figure 1: distribution shift on Cora after each method."""
    cells = cells_of([EXPERIMENTS["fig1"]], runs)
    found = records.find_all(cells)
    if found is None:
        return None
    titles = [TITLES[cell.method] for cell in cells]
    figure, (ax,) = make_panels(1, 1, width=4.2, height=2.6)
    colors = [GRAY] * 4 + [BLUE]
    bars = ax.bar(titles, [record["cmd_after"] for record in found], color=colors, width=0.65)
    ax.margins(y=0.12)
    ax.bar_label(bars, fmt="%.3f", padding=2, fontsize=8)
    ax.set_ylabel("shift (CMD) between labeled\nand unlabeled nodes")
    ax.set_title("Cora, 2% biased labels: remaining shift", loc="left")
    return figure


def plot_sensitivity(records: Records, runs: int) -> Figure | None:
    """Figure 4: accuracy as a function of each of the paper's three weights."""
    figure, panels = make_panels(2, 3, width=7.2, height=4.0, share_y="row")
    for ax, ((dataset, setting), values) in zip(panels, SENSITIVITY.items(), strict=True):
        preset = f"paper/{dataset}"
        found = records.find_all(
            [
                Cell(dataset, "dcgst", 0.02, preset=preset, settings={setting: value}, runs=runs)
                for value in values
            ]
        )
        if found is None:
            return None
        plot_band(ax, values, [record["accuracy"] for record in found], BLUE, "o")
        published = METHODS["dcgst"].presets[preset][setting]
        ax.axvline(published, color=GRAY, linewidth=0.8, linestyle=":")
        ax.set_title(DATASET_TITLES[dataset], loc="left")
        ax.set_xlabel(WEIGHT_TITLES[setting])
    for ax in panels[::3]:
        ax.set_ylabel("accuracy %")
    return figure


def plot_by_stage(records: Records, runs: int) -> Figure | None:
    """Figure 5: distribution shift and accuracy after each stage on CiteSeer."""
    figure, panels = make_panels(2, 2, width=6.2, height=4.2, share_x=True)
    methods = (
        ("dcgst", "paper/citeseer", "DC-GST", BLUE, "o"),
        ("m3s", "default", "M3S", ORANGE, "s"),
    )
    for column, (sampler, word) in enumerate((("uniform", "random"), ("released", "biased"))):
        top, bottom = panels[column], panels[2 + column]
        for name, preset, title, color, marker in methods:
            cell = Cell("citeseer", name, 0.02, sampler, preset, runs=runs, stages=True)
            record = records.find(cell)
            if record is None:
                return None
            _plot_history(top, record, "cmd", 1.0, color, marker, title)
            _plot_history(bottom, record, "accuracy", 100.0, color, marker, title)
        top.set_title(f"CiteSeer, 2% {word} labels", loc="left")
        bottom.set_xlabel("stage")
        bottom.locator_params(axis="x", integer=True)
    panels[0].set_ylabel("shift (CMD)")
    panels[2].set_ylabel("accuracy of the\npredictions, %")
    panels[1].legend()
    return figure


def _plot_history(
    ax: Axes,
    record: StoredRecord,
    key: str,
    scale: float,
    color: str,
    marker: str,
    title: str,
) -> None:
    """Plot one value of the history of all runs by stage."""
    runs = [[scale * entry[key] for entry in run if key in entry] for run in record["stages"]]
    values = pad_runs(runs)  # (runs, stages)
    first = 0 if key == "cmd" else 1  # stage 0 has no predictions yet
    plot_band(ax, np.arange(first, first + values.shape[1]), values.T, color, marker, title)


def plot_backbones(records: Records, runs: int) -> Figure | None:
    """Figure 6: accuracy of all methods with GAT and GraphSAGE."""
    figure, panels = make_panels(2, 2, width=6.6, height=4.6)
    names = [name for name, _ in WITH_BACKBONES]
    pairs = [(dataset, backbone) for dataset in DATASET_TITLES for backbone in BACKBONES]
    for ax, (dataset, backbone) in zip(panels, pairs, strict=True):
        found = records.find_all(
            [
                protocol_cell(dataset, name, 0.02, preset=preset, backbone=backbone, runs=runs)
                for name, preset in WITH_BACKBONES
            ]
        )
        if found is None:
            return None
        for row, (name, record) in enumerate(zip(names, found, strict=True)):
            color = BLUE if name == "dcgst" else GRAY
            ax.errorbar(record["mean"], row, xerr=record["std"], fmt="o", color=color, markersize=4)
        backbone_title = BACKBONE_TITLES[backbone]
        titles = [backbone_title if name == "gcn" else TITLES[name] for name in names]
        ax.set_yticks(range(len(names)), titles)
        ax.invert_yaxis()
        ax.grid(axis="x", linewidth=0.4)
        ax.set_title(f"{DATASET_TITLES[dataset]}, {backbone_title}", loc="left")
    for ax in panels[2:]:
        ax.set_xlabel("accuracy %, 2% biased labels")
    return figure


def plot_scaling(records: Records, runs: int) -> Figure | None:
    """Figure 7: fit time and peak memory by graph size; not in the paper.

    ``runs`` has no effect, because each cell has one run.
    """
    figure, panels = make_panels(1, 2, width=6.2, height=2.7)
    cells = [cell for num_nodes in SIZES for cell in scaling_cells(num_nodes)]
    found = records.find_all(cells)
    if found is None:
        return None
    methods = (("GCN", GRAY, "^"), ("DC-GST", BLUE, "o"))
    for i, (title, color, marker) in enumerate(methods):
        for ax, key in zip(panels, ("seconds", "peak_mib"), strict=True):
            values = [record[key] for record in found[i :: len(methods)]]
            ax.loglog(SIZES, values, label=title, color=color, marker=marker, markersize=4)
    for ax, label in zip(panels, ("fit time, seconds", "peak memory, MiB"), strict=True):
        ax.set_xlabel("nodes")
        ax.set_ylabel(label)
        _set_log_ticks(ax)
    panels[0].set_title(found[0]["device"], loc="left")
    panels[1].legend(fontsize=7, loc="upper left")
    return figure


def plot_study(summary: Mapping[str, Any]) -> Figure:
    """The trials of a search, and which settings mattered.

    Args:
        summary: of :func:`dcgst.bench.tuning.tune`.
    """
    figure, (left, right) = make_panels(1, 2, width=7.2, height=2.8)
    scores = [trial["score"] for trial in summary["trials"]]
    left.plot(scores, "o", color=GRAY, markersize=3.5, label="trial")
    left.plot(np.maximum.accumulate(scores), color=BLUE, label="best so far")
    left.axhline(summary["preset_score"], color=ORANGE, linewidth=1, label="preset")
    left.set_xlabel("trial")
    left.set_ylabel("validation accuracy %")
    left.set_title(f"{summary['method']} on {summary['dataset']}", loc="left")
    left.legend(fontsize=7)
    shares = dict(reversed(summary["importances"].items()))
    right.barh(list(shares), list(shares.values()), color=BLUE, height=0.6)
    right.set_xlim(0, 1)
    right.set_xlabel("share of the variance of the score")
    right.set_title("what mattered (fANOVA)", loc="left")
    return figure


def _set_log_ticks(ax: Axes) -> None:
    """Label the graph sizes on the x axis, and 1 and 3 of each power of ten on the y axis."""
    ax.set_xticks(SIZES, [f"{num_nodes:,}" for num_nodes in SIZES])
    low, high = ax.get_ylim()
    ticks = [t for k in range(-3, 7) for t in (10.0**k, 3 * 10.0**k) if low <= t <= high]
    ax.set_yticks(ticks, [f"{tick:,g}" for tick in ticks])
    ax.minorticks_off()
