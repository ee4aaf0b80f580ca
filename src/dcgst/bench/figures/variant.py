"""Figure 2: a subgraph of Cora, and its most likely variant according to the edge predictor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dcgst.bench.figures.style import BLUE, CLASS_COLORS, GRAY, ORANGE, make_panels
from dcgst.bench.records import Records
from dcgst.datasets import load
from dcgst.graph import Graph
from dcgst.methods import DCGST
from dcgst.methods.core.trace import TRAINING_LABEL
from dcgst.splits import sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    first = np.union1d(graph.adjacency[[center]].indices, new)
    second = np.setdiff1d(graph.adjacency[first].indices, first)
    first = first[:MAX_DIRECT_NEIGHBORS]
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
