"""The paper's figures, made from records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcgst.bench.cells import Records, StoredRecord
from dcgst.bench.experiments import (
    BACKBONES,
    EXPERIMENTS,
    SENSITIVITY,
    SENSITIVITY_RATES,
    SIZES,
    WITH_BACKBONES,
    cells_of,
    protocol_cell,
    scaling_cells,
    sensitivity_cell,
    stage_cell,
)
from dcgst.bench.results import BACKBONE_TITLES, DATASET_TITLES, TITLES
from dcgst.datasets import load
from dcgst.errors import InputError
from dcgst.files import replacing
from dcgst.graph import Graph
from dcgst.methods import DCGST, METHODS
from dcgst.methods.result import TRAINING_LABEL
from dcgst.splits import sample

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


WEIGHT_TITLES = {
    "cmd_weight": "α, weight of CMD",
    "predictor_weight": "β, weight of EP",
    "ner_weight": "γ, weight of NER",
}


def plot_shift(records: Records, runs: int) -> Figure | None:
    """Figure 1: distribution shift on Cora after each method."""
    cells = cells_of([EXPERIMENTS["fig1"]], runs)
    found = records.find_all(cells)
    if found is None:
        return None
    titles = [TITLES[cell.method] for cell in cells]
    shift = np.array([[run[-1]["fixed_cmd"] for run in record["stages"]] for record in found])
    figure, (ax,) = make_panels(1, 1, width=4.2, height=2.6)
    colors = [GRAY] * 4 + [BLUE]
    bars = ax.bar(titles, shift.mean(1), yerr=shift.std(1), color=colors, width=0.65)
    ax.margins(y=0.12)
    ax.bar_label(bars, fmt="%.3f", padding=2, fontsize=8)
    ax.set_ylabel("shift (CMD) between labeled\nand unlabeled nodes")
    ax.set_title("Cora, 2% biased labels: remaining shift", loc="left")
    return figure


def plot_sensitivity(records: Records, runs: int) -> Figure | None:
    """Figure 4: accuracy as a function of each of the paper's three weights."""
    figure, panels = make_panels(2, 3, width=7.2, height=4.2, share_y="row")
    for ax, ((dataset, setting), values) in zip(panels, SENSITIVITY.items(), strict=True):
        for rate, color, marker in zip(SENSITIVITY_RATES, (ORANGE, BLUE), "so", strict=True):
            cells = [sensitivity_cell(dataset, rate, setting, value) for value in values]
            found = records.find_all([cell.with_runs(runs) for cell in cells])
            if found is None:
                return None
            accuracy = [record["accuracy"] for record in found]
            plot_band(ax, values, accuracy, color, marker, f"{100 * rate:g}% labels")
        published = METHODS["dcgst"].presets[f"paper/{dataset}"][setting]
        ax.axvline(published, color=GRAY, linewidth=0.8, linestyle=":")
        ax.set_title(DATASET_TITLES[dataset], loc="left")
        ax.set_xlabel(WEIGHT_TITLES[setting])
    for ax in panels[::3]:
        ax.set_ylabel("accuracy %")
    panels[0].legend(fontsize=7)
    return figure


STAGE_STYLES = {
    "dcgst": ("DC-GST", BLUE, "o"),
    "confidence": ("DC-GST by confidence", GRAY, "^"),
    "m3s": ("M3S", ORANGE, "s"),
}


def plot_by_stage(records: Records, runs: int) -> Figure | None:
    """Figure 5: shift and accuracy on CiteSeer, by stage and by number of labels."""
    samplers = {"uniform": "random", "released": "biased"}
    figure, panels = make_panels(3, 2, width=6.6, height=6.2, share_y="row")
    for column, (sampler, word) in enumerate(samplers.items()):
        top, middle, bottom = panels[column::2]
        for name, style in STAGE_STYLES.items():
            record = records.find(stage_cell(name, sampler).with_runs(runs))
            if record is None:
                return None
            _plot_history(top, record, "cmd", 1.0, style)
            _plot_by_labels(middle, record, *style[1:])
            _plot_history(bottom, record, "accuracy", 100.0, style)
        top.set_title(f"CiteSeer, 2% {word} labels", loc="left")
        middle.set_xscale("log")
        middle.set_xlabel("labels and pseudo-labels")
        for ax in (top, bottom):
            ax.set_xlabel("stage whose labels are used")
            ax.locator_params(axis="x", integer=True)
    panels[0].set_ylabel("shift in the\nspace of the method")
    panels[2].set_ylabel("shift in the\nfixed space")
    panels[4].set_ylabel("accuracy of the\npredictions, %")
    panels[1].legend()
    return figure


def _plot_by_labels(ax: Axes, record: StoredRecord, color: str, marker: str) -> None:
    """Plot the mean shift in the fixed space by the mean number of labels of each stage."""
    labeled = pad_runs([[entry["labeled"] for entry in run] for run in record["stages"]])
    shift = pad_runs([[entry["fixed_cmd"] for entry in run] for run in record["stages"]])
    ax.plot(labeled.mean(0), shift.mean(0), color=color, marker=marker, markersize=3.5)


def _plot_history(
    ax: Axes, record: StoredRecord, key: str, scale: float, style: tuple[str, str, str]
) -> None:
    """Plot one value of the history of all runs by stage; the style is title, color, marker."""
    title, color, marker = style
    runs = [[scale * entry[key] for entry in run if key in entry] for run in record["stages"]]
    values = pad_runs(runs)  # (runs, stages)
    # The accuracy of a stage is that of a teacher trained on the labels of the stage before.
    plot_band(ax, np.arange(values.shape[1]), values.T, color, marker, title)


def plot_backbones(records: Records, runs: int) -> Figure | None:
    """Figure 6: accuracy of all methods with GAT and GraphSAGE."""
    figure, panels = make_panels(2, 2, width=6.6, height=4.6)
    names = [name for name, _ in WITH_BACKBONES]
    pairs = [(dataset, backbone) for dataset in ("cora", "citeseer") for backbone in BACKBONES]
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
    """Label the graph sizes on the x axis, and 1, 2 and 5 of each power of ten on the y axis."""
    ax.set_xticks(SIZES, [f"{num_nodes:,}" for num_nodes in SIZES])
    low, high = ax.get_ylim()
    ticks = [
        t for k in range(-3, 7) for t in (10.0**k, 2 * 10.0**k, 5 * 10.0**k) if low <= t <= high
    ]
    ax.set_yticks(ticks, [f"{tick:,g}" for tick in ticks])
    ax.minorticks_off()


Edge = tuple[int, int]

MAX_DIRECT_NEIGHBORS = 25
MAX_NEIGHBORS = 40
"""Maximum number of neighbors of the center in the subgraph, second-order neighbors included."""


def plot_variant(records: Records, runs: int) -> Figure | None:
    """Figure 2: a subgraph of Cora and its variant, from a new fit.

    ``records`` and ``runs`` have no effect.
    """
    graph = load("cora")
    model = DCGST.from_preset("paper/cora").fit(graph, sample(graph, "released", rate=0.02, runs=1))
    return compare_graphs(graph, model)


def compare_graphs(graph: Graph, model: DCGST) -> Figure:
    """Draw the subgraph around the node whose edges a fitted DC-GST changes the most.

    Args:
        graph: Graph on which the model was fitted.
        model: Fitted model with an edge predictor.

    Returns:
        A figure with the original subgraph on the left and its variant on the right.
    """
    edges = model.edge_probabilities_[model.edge_probabilities_["replica"] == 0]
    changed = edges[(edges["probability"] > 0.5) != edges["present"]]
    nodes = _subgraph_nodes(graph, changed)
    inside = np.isin(changed["source"], nodes) & np.isin(changed["target"], nodes)
    pairs = {(int(e["source"]), int(e["target"])): bool(e["present"]) for e in changed[inside]}
    removed = [pair for pair, present in pairs.items() if present]
    added = [pair for pair, present in pairs.items() if not present]
    rows, columns = graph.adjacency[nodes][:, nodes].nonzero()
    original = set(zip(*np.sort([nodes[rows], nodes[columns]], axis=0).tolist(), strict=True))
    positions = _layout(nodes, [*original, *pairs])

    figure, (left, right) = make_panels(1, 2, width=7.2, height=3.6)
    kept = (original - set(removed), GRAY, "-")
    _draw_graph(left, graph, model, positions, [kept, (removed, ORANGE, "--")])
    _draw_graph(right, graph, model, positions, [kept, (added, BLUE, "-")])
    dashed = " (dashed: removed edges)" if removed else ""
    left.set_title(f"original graph{dashed}", loc="left")
    right.set_title("most likely variant (blue: added edges)", loc="left")
    left.text(0, -0.02, "color: class; ring: given label", transform=left.transAxes)
    return figure


def _subgraph_nodes(graph: Graph, changed: NDArray[np.void]) -> NDArray[np.int64]:
    """Select the node with the most changed edges, its old and new neighbors, and theirs."""
    source, target = changed["source"], changed["target"]
    counts = np.bincount(np.concatenate([source, target]), minlength=graph.num_nodes)
    center = int(counts.argmax())
    new = np.concatenate([target[source == center], source[target == center]])
    first = np.union1d(graph.adjacency[[center]].indices, new)[:MAX_DIRECT_NEIGHBORS]
    second = np.setdiff1d(graph.adjacency[first].indices, first)
    return np.unique(np.concatenate([[center], first, second[: MAX_NEIGHBORS - first.size]]))


def _layout(nodes: NDArray[np.int64], edges: list[Edge]) -> dict[int, Any]:
    """Compute node positions from the edges of both graphs, so that they can be compared."""
    import networkx as nx

    union = nx.Graph(edges)
    union.add_nodes_from(nodes.tolist())
    positions: dict[int, Any] = nx.spring_layout(union, seed=0, iterations=200)
    return positions


def _draw_graph(
    ax: Axes,
    graph: Graph,
    model: DCGST,
    positions: dict[int, Any],
    edges: list[tuple[Iterable[Edge], str, str]],
) -> None:
    """Draw nodes in the colors of their classes, and groups of edges.

    Args:
        ax: Axes to draw on.
        graph: Graph with labels.
        model: Fitted model. Nodes with given labels get a ring.
        positions: Position of each node to draw.
        edges: Edges, color and line style of each group.
    """
    for pairs, color, line_style in edges:
        for source, target in pairs:
            ends = np.array([positions[source], positions[target]])
            ax.plot(*ends.T, color=color, linestyle=line_style, linewidth=1, zorder=1)
    nodes = np.array(list(positions))
    x, y = np.array([positions[node] for node in nodes]).T
    given = model.labeled_stage_[nodes] == TRAINING_LABEL
    colors = [CLASS_COLORS[code % len(CLASS_COLORS)] for code in graph.labels[nodes]]
    ax.scatter(x, y, c=colors, s=28, zorder=2, linewidths=0)
    ax.scatter(x[given], y[given], s=70, facecolors="none", edgecolors="black", zorder=3)
    ax.set_axis_off()


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
    "fig1": "Last labels and pseudo-labels of each method, mean and standard deviation over the "
    "runs, in one fixed space (propagated features).",
    "fig2": "DC-GST with preset `paper/cora`, fitted on run 0 when the figure is drawn. The "
    "subgraph surrounds the node with the most changed edges.",
    "fig4": "`paper/…` presets. The line is the mean over the runs, the band is one standard "
    "deviation, and the dotted line is the published value.",
    "fig5": "`paper/citeseer`, the same with selection by confidence alone, and M3S. The first "
    "point is the training labels alone. The fixed space is that of DC-GST, propagated features. "
    "The line is the mean over the runs, and the band is one standard deviation; a run that stops "
    "keeps its last value.",
    "fig6": "Mean and standard deviation over the runs. DC-GST has its `paper/…` "
    "preset with the other backbone.",
    "fig7": "Synthetic graphs with 20 labels for each of four classes, one run each, on the device "
    "in the title, after a first fit that is not timed. On a GPU, small graphs take nearly as long "
    "as large ones.",
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
