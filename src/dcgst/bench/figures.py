"""The paper's figures from records, for screen and print, in colours that all can tell apart."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dcgst.bench.cells import Cell
from dcgst.bench.experiments import (
    BACKBONES,
    EXPERIMENTS,
    RIVALS,
    SENSITIVITY,
    SIZES,
    cells_of,
    scaling_cells,
)
from dcgst.bench.records import Records
from dcgst.bench.tables import TITLES
from dcgst.datasets import load
from dcgst.errors import InputError
from dcgst.graph import Graph
from dcgst.methods import DCGST, METHODS
from dcgst.methods.stages import GIVEN
from dcgst.splits import sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart by people who do not see all colours, and by lightness.
BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#7F7F7F"
CLASSES = (BLUE, ORANGE, "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "legend.frameon": False,
    "svg.hashsalt": "dcgst",
    "figure.dpi": 150,
}
WORDS = {
    "cmd_weight": "α, weight of CMD",
    "predictor_weight": "β, weight of EP",
    "ner_weight": "γ, weight of NER",
}
DATASETS = {"cora": "Cora", "citeseer": "CiteSeer"}

Answer = dict[str, Any]


def shift(records: Records, runs: int) -> Figure | None:
    """Figure 1: the shift that each method leaves on Cora."""
    cells = cells_of([EXPERIMENTS["fig1"]], runs)
    answers = _answers(cells, records)
    if answers is None:
        return None
    titles = [TITLES[cell.method] for cell in cells[:-1]] + ["DC-GST,\npaper's\nsettings"]
    figure, (axes,) = _panels(1, 1, width=4.2, height=2.6)
    colours = [GREY] * 4 + [BLUE, BLUE]
    bars = axes.bar(titles, [a["cmd_after"] for a in answers], color=colours, width=0.65)
    axes.margins(y=0.12)
    axes.bar_label(bars, fmt="%.3f", padding=2, fontsize=8)
    axes.set_ylabel("shift (CMD) of all labels\nagainst the other nodes")
    axes.set_title("Cora, 2 % biased labels: what shift is left", loc="left")
    return figure


def variant(records: Records, runs: int) -> Figure | None:
    """Figure 2: a region of Cora as it is, and as the edge predictor would have it."""
    graph = load("cora")
    model = DCGST.from_preset("paper/cora").fit(graph, sample(graph, "released", rate=0.02, runs=1))
    return compare_graphs(graph, model)


def compare_graphs(graph: Graph, model: DCGST) -> Figure:
    """The surroundings of the node whose edges a fitted DC-GST would change the most."""
    import networkx as nx

    edges = model.edges_[model.edges_["replica"] == 0]
    changed = edges[(edges["probability"] > 0.5) != edges["present"]]
    ends = np.concatenate([changed["source"], changed["target"]])
    centre = int(np.bincount(ends, minlength=graph.num_nodes).argmax())
    nodes = _surroundings(graph, changed, centre)
    inside = np.isin(changed["source"], nodes) & np.isin(changed["target"], nodes)
    pairs = {(int(e["source"]), int(e["target"])): bool(e["present"]) for e in changed[inside]}
    rows, columns = graph.adjacency[nodes][:, nodes].nonzero()
    own = set(zip(*np.sort([nodes[rows], nodes[columns]], axis=0).tolist(), strict=True))
    both = nx.Graph([*own, *pairs])
    both.add_nodes_from(nodes.tolist())
    places = nx.spring_layout(both, seed=0, iterations=200)
    figure, panels = _panels(1, 2, width=7.2, height=3.6)
    going = [pair for pair, present in pairs.items() if present]
    coming = [pair for pair, present in pairs.items() if not present]
    kept = (own - set(going), GREY, "-")
    _network(panels[0], graph, model, places, [kept, (going, ORANGE, "--")])
    _network(panels[1], graph, model, places, [kept, (coming, BLUE, "-")])
    dashed = " (dashed: edges that would go)" if going else ""
    panels[0].set_title(f"the graph as it is{dashed}", loc="left")
    panels[1].set_title("the likeliest variant (blue: edges that come)", loc="left")
    panels[0].text(0, -0.02, "colour: class; ring: label given", transform=panels[0].transAxes)
    return figure


def sensitivity(records: Records, runs: int) -> Figure | None:
    """Figure 4: accuracy over each of the paper's three weights."""
    figure, panels = _panels(2, 3, width=7.2, height=4.0, share_y="row")
    for axes, ((dataset, setting), values) in zip(panels, SENSITIVITY.items(), strict=True):
        preset = f"paper/{dataset}"
        cells = [
            Cell(dataset, "dcgst", 0.02, preset=preset, settings={setting: v}, runs=runs)
            for v in values
        ]
        answers = _answers(cells, records)
        if answers is None:
            return None
        _band(axes, values, [a["accuracy"] for a in answers], BLUE, "o", "")
        published = METHODS["dcgst"].presets[preset][setting]
        axes.axvline(published, color=GREY, linewidth=0.8, linestyle=":")
        axes.set_title(DATASETS[dataset], loc="left")
        axes.set_xlabel(WORDS[setting])
    for axes in panels[::3]:
        axes.set_ylabel("accuracy %")
    return figure


def by_stage(records: Records, runs: int) -> Figure | None:
    """Figure 5: shift and accuracy after each stage, on CiteSeer."""
    figure, panels = _panels(2, 2, width=6.2, height=4.2, share_x=True)
    kinds = (("dcgst", "paper/citeseer", BLUE, "o"), ("m3s", "default", ORANGE, "s"))
    for column, (sampler, words) in enumerate((("uniform", "random"), ("released", "biased"))):
        for name, preset, colour, marker in kinds:
            cell = Cell("citeseer", name, 0.02, sampler, preset, runs=runs, stages=True)
            answers = _answers([cell], records)
            if answers is None:
                return None
            stages = answers[0]["stages"]
            for row, (key, scale) in enumerate((("cmd", 1.0), ("accuracy", 100.0))):
                values = _padded([[scale * r[key] for r in run if key in r] for run in stages])
                first = 0 if key == "cmd" else 1
                numbers = np.arange(first, first + values.shape[1])
                axes = panels[2 * row + column]
                title = TITLES[name] + (", paper's settings" if name == "dcgst" else "")
                _band(axes, numbers, values.T, colour, marker, title)
        panels[column].set_title(f"CiteSeer, 2 % {words} labels", loc="left")
        panels[2 + column].set_xlabel("stage")
        panels[2 + column].locator_params(axis="x", integer=True)
    panels[0].set_ylabel("shift (CMD)")
    panels[2].set_ylabel("accuracy of what\nis believed, %")
    panels[1].legend()
    return figure


def backbones(records: Records, runs: int) -> Figure | None:
    """Figure 6: all methods with GAT and GraphSAGE."""
    figure, panels = _panels(2, 2, width=6.6, height=4.6)
    names = (*RIVALS, "dcgst")
    pairs = [(dataset, backbone) for dataset in DATASETS for backbone in BACKBONES]
    for axes, (dataset, backbone) in zip(panels, pairs, strict=True):
        cells = [
            Cell(dataset, name, 0.02, settings={"backbone": backbone}, runs=runs) for name in names
        ]
        answers = _answers(cells, records)
        if answers is None:
            return None
        words = {"gat": "GAT", "sage": "GraphSAGE"}[backbone]
        for place, (name, answer) in enumerate(zip(names, answers, strict=True)):
            colour = BLUE if name == "dcgst" else GREY
            spread = answer["std"]
            axes.errorbar(answer["mean"], place, xerr=spread, fmt="o", color=colour, markersize=4)
        titles = [words if name == "gcn" else TITLES[name] for name in names]
        axes.set_yticks(range(len(names)), titles)
        axes.invert_yaxis()
        axes.grid(axis="x", linewidth=0.4)
        axes.set_title(f"{DATASETS[dataset]}, {words}", loc="left")
    for axes in panels[2:]:
        axes.set_xlabel("accuracy %, 2 % biased labels")
    return figure


def scaling(records: Records, runs: int) -> Figure | None:
    """Figure 7: time and memory of a fit against the size of the graph; not in the paper."""
    figure, panels = _panels(1, 2, width=6.2, height=2.7)
    answers = [_answers(scaling_cells(nodes), records) for nodes in SIZES]
    known = [by_method for by_method in answers if by_method is not None]
    if len(known) < len(answers):
        return None
    kinds = (("GCN", GREY, "^"), ("DC-GST", BLUE, "o"), ("DC-GST, paper's settings", ORANGE, "s"))
    for place, (title, colour, marker) in enumerate(kinds):
        for axes, key in zip(panels, ("seconds", "peak_mib"), strict=True):
            values = [by_method[place][key] for by_method in known]
            style = {"color": colour, "marker": marker, "markersize": 4}
            axes.loglog(SIZES, values, label=title, **style)
    for axes, words in zip(panels, ("seconds of a fit", "peak memory, MiB"), strict=True):
        axes.set_xlabel("nodes")
        axes.set_ylabel(words)
        axes.set_xticks(SIZES, [f"{nodes:,}" for nodes in SIZES])
        low, high = axes.get_ylim()
        ticks = [t for k in range(-3, 7) for t in (10.0**k, 3 * 10.0**k) if low <= t <= high]
        axes.set_yticks(ticks, [f"{tick:,g}" for tick in ticks])
        axes.minorticks_off()
    panels[0].set_title(known[0][0]["device"], loc="left")
    panels[0].legend(fontsize=7)
    return figure


FIGURES: dict[str, Callable[[Records, int], Figure | None]] = {
    "fig1": shift,
    "fig2": variant,
    "fig4": sensitivity,
    "fig5": by_stage,
    "fig6": backbones,
    "fig7": scaling,
}


CAPTIONS = {
    "fig1": "Mean over the runs. DC-GST ends near zero because it has labeled nearly all nodes by "
    "then; by confidence alone it would as well.",
    "fig2": "Fitted when it is drawn: `paper/cora`, run 0, around the node most of whose edges "
    "change.",
    "fig4": "`paper/…` presets; the line is the mean over the runs, the band one standard "
    "deviation, the dotted line the published value.",
    "fig5": "`paper/citeseer` and M3S; bands are one standard deviation.",
    "fig6": "Mean and standard deviation; DC-GST is our `default`.",
    "fig7": "Synthetic graphs, 20 labels for each of four classes, a single run of each, on the "
    "device named; on a GPU small graphs take as long as large ones.",
}


def draw(name: str, records: Records, folder: Path, runs: int = 10) -> list[Path]:
    """Draw a figure as SVG and PNG; nothing if records are missing."""
    import_matplotlib()
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        figure = FIGURES[name](records, runs)
        return [] if figure is None else save(figure, folder / name)


def save(figure: Figure, path: Path) -> list[Path]:
    """Write a figure beside ``path`` in both formats, each whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = []
    for kind in ("svg", "png"):
        target, part = path.with_suffix(f".{kind}"), path.with_suffix(f".part.{kind}")
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(part, dpi=200, metadata=metadata)
        os.replace(part, target)
        written.append(target)
    return written


def import_matplotlib() -> None:
    """Raise an error with advice where it is missing; draw without a screen."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise InputError("figures need matplotlib: pip install 'dcgst[plot]'") from error
    mpl.use("agg")


def _surroundings(graph: Graph, changed: NDArray[np.void], centre: int) -> NDArray[np.int64]:
    """The nodes beside ``centre``, before and after, and those beside them: forty at most."""
    source, target = changed["source"], changed["target"]
    after = np.concatenate([target[source == centre], source[target == centre]])
    first = np.union1d(graph.adjacency[[centre]].indices, after)
    second = np.setdiff1d(graph.adjacency[first].indices, first)
    return np.unique(np.concatenate([[centre], first[:25], second[: 40 - min(25, first.size)]]))


def _network(
    axes: Axes,
    graph: Graph,
    model: DCGST,
    places: dict[int, Any],
    edges: list[tuple[Any, str, str]],
) -> None:
    """Nodes in the colours of their classes, and edges of several kinds."""
    for pairs, colour, line in edges:
        for a, b in pairs:
            ends = np.array([places[a], places[b]])
            axes.plot(*ends.T, color=colour, linestyle=line, linewidth=1, zorder=1)
    nodes = np.array(list(places))
    where = np.array([places[node] for node in nodes])
    given = model.labeled_stage_[nodes] == GIVEN
    colours = [CLASSES[code % len(CLASSES)] for code in graph.labels[nodes]]
    x, y = where.T
    axes.scatter(x, y, c=colours, s=28, zorder=2, linewidths=0)
    axes.scatter(x[given], y[given], s=70, facecolors="none", edgecolors="black", zorder=3)
    axes.set_axis_off()


def _panels(
    rows: int,
    columns: int,
    *,
    width: float,
    height: float,
    share_x: bool = False,
    share_y: Literal["none", "row"] = "none",
) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=share_x, sharey=share_y)
    return figure, list(grid.flat)


def _answers(cells: Sequence[Cell], records: Records) -> list[Answer] | None:
    found = [records.by_key.get(cell.key) for cell in cells]
    known = [answer for answer in found if answer is not None]
    return known if len(known) == len(found) else None


def _band(axes: Axes, x: Any, values: Any, colour: str, marker: str, label: str) -> None:
    """Means over the runs of ``values`` ``(x, runs)``, with a band of one standard deviation."""
    table = np.asarray(values, dtype=float)
    mean, spread = table.mean(axis=1), table.std(axis=1)
    axes.plot(x, mean, color=colour, marker=marker, markersize=3.5, linewidth=1.4, label=label)
    axes.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)


def _padded(runs: list[list[float]]) -> NDArray[np.float64]:
    """``(runs, stages)``; a run that stopped early stays where it was."""
    longest = max(len(run) for run in runs)
    return np.array([run + run[-1:] * (longest - len(run)) for run in runs])
