"""How few, how biased, how connected: what can be said of labels before any training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from dcgst.engine.random import derive
from dcgst.engine.smoothing import Filter, SmoothedFeatures
from dcgst.engine.sparse import SparseMatrix
from dcgst.errors import InputError
from dcgst.evaluate.metrics import holm
from dcgst.graph import UNKNOWN, Graph
from dcgst.nn.base import features_on
from dcgst.nn.gcn import symmetric_normalised
from dcgst.shift.cmd import cmd
from dcgst.splits import Split

DRAWS = 200
"""Random label sets that the given one is compared with."""

DIMENSIONS = 32
TELEPORT, STEPS = 0.1, 40
UNUSUAL = 0.05
PHRASES = {
    "features": "their features",
    "degree": "how many neighbours they have",
    "position": "where they lie in the graph",
    "representation": "what they and their neighbours are like",
}


@dataclass(frozen=True)
class Shift:
    """One way in which labeled nodes may differ from the others.

    Attributes:
        name: ``features``, ``degree``, ``position`` or ``representation``.
        value: how far the labeled nodes are from all nodes.
        usual: the same for random sets of as many nodes, on average.
        p: how likely a random set is as far, corrected for the number of ways (Holm).
        words: the same for people.
    """

    name: str
    value: float
    usual: float
    p: float
    words: str

    @property
    def unusual(self) -> bool:
        return self.p < UNUSUAL

    @property
    def ratio(self) -> float:
        return self.value / self.usual if self.usual > 0 else float("inf")


@dataclass(frozen=True)
class Diagnosis:
    """What there is to know of a graph and its labels.

    Attributes:
        nodes: how many.
        edges: how many.
        labels: how many nodes have one.
        counts: labels of each class, by name.
        homophily: share of edges between labeled nodes that join the same class; None if there are
            no such edges.
        isolated: nodes without an edge.
        components: connected parts, isolated nodes included.
        unreached: nodes in parts without a label.
        shifts: in what the labeled nodes differ from the others.
        warnings: what to be careful about.
        advice: what to do.
    """

    nodes: int
    edges: int
    labels: int
    counts: dict[str, int]
    homophily: float | None
    isolated: int
    components: int
    unreached: int
    shifts: list[Shift]
    warnings: list[str]
    advice: list[str]

    @property
    def rate(self) -> float:
        return self.labels / self.nodes

    @property
    def biased(self) -> list[Shift]:
        """The ways in which the labels are not like random ones."""
        return [shift for shift in self.shifts if shift.unusual]

    @property
    def headline(self) -> str:
        """The verdict in a sentence."""
        if not self.biased:
            return "The labels look like a random choice of nodes."
        worst = max(self.biased, key=lambda shift: shift.ratio)
        others = [PHRASES[shift.name] for shift in self.biased if shift is not worst]
        also = f" They differ in {' and '.join(others)} as well." if others else ""
        times = f"{worst.ratio:.1f} times as far" if np.isfinite(worst.ratio) else "further"
        return (
            f"The labels are not representative: in {PHRASES[worst.name]} they are {times} from "
            f"the other nodes as a random choice would be.{also}"
        )


def diagnose(graph: Graph, labeled: NDArray[np.bool_] | None = None, seed: int = 0) -> Diagnosis:
    """Compare the labeled nodes with random sets of as many nodes.

    Args:
        graph: the graph.
        labeled: ``(n,)`` bool; by default the graph's own ``train`` and ``val`` masks, or all whose
            class is known.
        seed: decides the random sets.
    """
    if not (graph.labels != UNKNOWN).any():
        raise InputError("no node has a label: there is nothing to diagnose")
    if labeled is None:
        split = Split.known_labels(graph)
        labeled = split.train[0] | split.val[0]
    chosen = np.flatnonzero(labeled)
    rng = np.random.default_rng(derive(seed, 4))
    draws = [rng.choice(graph.num_nodes, chosen.size, replace=False) for _ in range(DRAWS)]
    sets = [chosen, *draws]
    distances = {
        "features": _distances_in(components_of(graph, hops=0), sets),
        "degree": _degree_distances(graph, sets),
        "position": _position_distances(graph, sets),
        "representation": _distances_in(components_of(graph, hops=4), sets),
    }
    p_values = holm([float((1 + (v[1:] >= v[0]).sum()) / len(v)) for v in distances.values()])
    shifts = [
        _compare(name, values, p, graph, chosen)
        for (name, values), p in zip(distances.items(), p_values, strict=True)
    ]
    _, part = connected_components(graph.adjacency, directed=False)
    reached = np.isin(part, part[chosen])
    codes = graph.labels[chosen]
    counts = np.bincount(codes[codes >= 0], minlength=graph.num_classes)
    by_name = {name: int(n) for name, n in zip(graph.class_names, counts, strict=True)}
    known = graph.with_labels(np.where(labeled, graph.labels, UNKNOWN)).homophily()
    found = Diagnosis(
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        labels=chosen.size,
        counts=by_name,
        homophily=None if np.isnan(known) else known,
        isolated=int((graph.degrees == 0).sum()),
        components=int(part.max()) + 1,
        unreached=int((~reached).sum()),
        shifts=shifts,
        warnings=[],
        advice=[],
    )
    found.warnings.extend(_warnings(found))
    found.advice.extend(_advice(found))
    return found


def components_of(graph: Graph, hops: int) -> Tensor:
    """``(n, d)`` leading directions of the features, as they are or averaged over some hops."""
    x: Any = features_on(graph.features)
    operator = symmetric_normalised(SparseMatrix.from_scipy(graph.adjacency))
    smooth = Filter(0.1, hops)
    return SmoothedFeatures(x, operator, smooth, DIMENSIONS).view(DIMENSIONS, 0.0)


def _distances_in(z: Tensor, sets: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """CMD of each set from all nodes."""
    support = (z.amax() - z.amin()).clamp_min(1e-12)
    return np.array([float(cmd(z[s], z, support=support)) for s in sets])


def _degree_distances(graph: Graph, sets: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """How far the mean logarithm of the degree is from that of all nodes."""
    size = np.log1p(graph.degrees)
    return np.array([abs(size[s].mean() - size.mean()) for s in sets])


def _position_distances(graph: Graph, sets: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """How unlike PageRank from each set is to PageRank from everywhere: 0 alike, 1 apart."""
    degree = np.asarray(graph.adjacency.sum(axis=0)).reshape(-1)
    inverse = np.divide(1, degree, out=np.zeros_like(degree), where=degree > 0)
    walk = sp.csr_array(graph.adjacency @ sp.diags_array(inverse)).astype(np.float32)
    start = np.zeros((graph.num_nodes, len(sets) + 1), dtype=np.float32)
    for column, nodes in enumerate(sets):
        start[nodes, column] = 1 / len(nodes)
    start[:, -1] = 1 / graph.num_nodes
    mass = start
    for _ in range(STEPS):
        mass = (1 - TELEPORT) * (walk @ mass) + TELEPORT * start
    distances: NDArray[np.float64] = abs(mass[:, :-1] - mass[:, -1:]).sum(axis=0) / 2
    return distances


def _compare(
    name: str, values: NDArray[np.float64], p: float, graph: Graph, chosen: NDArray[np.int64]
) -> Shift:
    value, usual = float(values[0]), float(values[1:].mean())
    verdict = "more than" if p < UNUSUAL else "about as much as"
    words = {
        "features": f"their features differ {verdict} those of a random choice would",
        "degree": f"they have {graph.degrees[chosen].mean():.1f} neighbours on average, all nodes "
        f"{graph.degrees.mean():.1f}: that differs {verdict} chance would have it",
        "position": f"they leave parts of the graph out of reach {verdict} a random choice would",
        "representation": f"together with their neighbours they differ {verdict} a random choice "
        "would",
    }[name]
    return Shift(name, value, usual, p, words)


def _warnings(found: Diagnosis) -> list[str]:
    warnings = []
    few = [f"{name} ({n})" for name, n in found.counts.items() if n < 2]
    if few:
        more = f" and {len(few) - 10} more" if len(few) > 10 else ""
        warnings.append(f"fewer than two labels: {', '.join(few[:10])}{more}")
    if found.unreached:
        warnings.append(
            f"{found.unreached} nodes lie in parts of the graph without a label: what is said of "
            "them rests on their features alone"
        )
    if found.isolated:
        warnings.append(f"{found.isolated} nodes have no edge")
    if found.homophily is not None and found.homophily < 0.5:
        warnings.append(
            f"only {found.homophily:.0%} of the edges between labeled nodes join the same class: "
            "methods that trust neighbours will err"
        )
    most, least = max(found.counts.values()), max(1, min(found.counts.values()))
    if most >= 5 * least:
        warnings.append(f"one class has {most} labels, another {min(found.counts.values())}")
    return warnings


def _advice(found: Diagnosis) -> list[str]:
    advice = []
    if found.homophily is not None and found.homophily < 0.5:
        advice.append("Compare with --method mlp, which looks at features alone.")
    if found.biased:
        advice.append("Use the default, DC-GST: it is made for labels like these.")
        advice.append("If you can label more nodes, let dcgst suggest choose them.")
    else:
        advice.append("DC-GST does no harm here; --method em is faster and nearly as good.")
    if found.unreached > found.isolated:
        advice.append("Label a node in the larger parts that have none.")
    return advice
