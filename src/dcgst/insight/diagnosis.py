"""Diagnosis of labels: how many, how biased, how well connected, and what to expect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.stats import binomtest
from torch import Tensor

from dcgst.errors import InputError, option
from dcgst.evaluate.quality import Estimate, holm
from dcgst.features.components import smoothed_components
from dcgst.features.matrix import Neighbors
from dcgst.graph import UNKNOWN, FeatureMatrix, Graph
from dcgst.methods.result import AGREEMENT, LEFT_OUT
from dcgst.methods.sampling import is_large
from dcgst.shift.cmd import CMDFrom
from dcgst.shift.concentration import concentration
from dcgst.splits import Split
from dcgst.train.progress import counted
from dcgst.train.random import Purpose, derive

if TYPE_CHECKING:
    from dcgst.runs import Run
    from dcgst.runs.assessment import RunEvaluation


HOPS = 4
"""Smoothing steps of the representation."""

TELEPORT, STEPS = 0.1, 15
"""Of PageRank."""

SETS_AT_ONCE = 16
"""Node sets whose PageRank is computed at a time: few, so that they fit into the CPU's cache."""

MOST_ROWS = 1_000_000
"""Nodes from which the moments of all nodes are computed."""

SHIFT_NAMES = {
    "features": "features",
    "degree": "number of neighbors",
    "position": "position in the graph",
    "representation": "features averaged over neighbors",
    "concentration": "distance from each other",
}

STARTS = 50
"""Labeled nodes from which walks start that measure their concentration."""

NodeSets = Sequence[NDArray[np.int64]]


def distances(graph: Graph, sets: NodeSets) -> dict[str, NDArray[np.float64]]:
    """Distance of each node set from all nodes, by name: ``(len(sets),)`` each."""
    return {
        "features": cmd_distances(smoothed_components(graph, hops=0), sets),
        "degree": degree_distances(graph, sets),
        "position": position_distances(graph, sets),
        "representation": cmd_distances(smoothed_components(graph, hops=HOPS), sets),
        "concentration": concentration(sets, graph.adjacency, STARTS),
    }


def describe(name: str, significant: bool, graph: Graph, labeled_nodes: NDArray[np.int64]) -> str:
    """A difference between labeled nodes and all nodes in words."""
    if name == "concentration":
        often = "more often than" if significant else "about as often as"
        return f"labeled nodes reach each other {often} in a random sample"
    how = "more than" if significant else "about as much as"
    own, mean = graph.degrees[labeled_nodes].mean(), graph.degrees.mean()
    differ = {
        "features": "features differ",
        "degree": f"labeled nodes have {own:.1f} neighbors on average, all nodes {mean:.1f}; they "
        "differ",
        "position": "positions in the graph differ",
        "representation": "features averaged over neighbors differ",
    }[name]
    return f"{differ} {how} in a random sample"


def cmd_distances(z: Tensor, sets: NodeSets) -> NDArray[np.float64]:
    """CMD of each set from all nodes in a representation ``(n, d)``."""
    from_all = CMDFrom(z[:: -(-len(z) // MOST_ROWS)])
    return np.array([float(from_all(z[s])) for s in sets])


def column_distances(
    features: FeatureMatrix, widths: Sequence[int], sets: NodeSets
) -> NDArray[np.float64]:
    """``(columns, sets)`` distance of the mean of each set from that of all nodes.

    Args:
        features: ``(n, d)``.
        widths: number of features of each column; further features are left out.
        sets: the sets.
    """
    n = features.shape[0]
    rows = np.repeat(np.arange(len(sets)), [len(own) for own in sets])
    shares = np.repeat([1 / len(own) for own in sets], [len(own) for own in sets])
    shares = shares.astype(features.dtype)  # else all features would be copied
    means = sp.csr_array((shares, (rows, np.concatenate(sets))), shape=(len(sets), n)) @ features
    means = (means.toarray() if sp.issparse(means) else means)[:, : sum(widths)]
    center = features[:: -(-n // MOST_ROWS)].mean(axis=0)
    squares = (means - np.asarray(center).reshape(1, -1)[:, : sum(widths)]) ** 2
    starts = np.cumsum([0, *widths])[:-1]
    found: NDArray[np.float64] = np.sqrt(np.add.reduceat(squares, starts, axis=1)).T
    return found


def degree_distances(graph: Graph, sets: NodeSets) -> NDArray[np.float64]:
    """Absolute difference of the mean log-degree of each set and of all nodes."""
    size = np.log1p(graph.degrees)
    return np.array([abs(size[s].mean() - size.mean()) for s in sets])


def position_distances(graph: Graph, sets: NodeSets) -> NDArray[np.float64]:
    """Total variation between PageRank from each set and from all nodes: 0 equal, 1 disjoint.

    A walk that starts at an isolated node stays there.
    """
    neighbors, n = Neighbors(graph.adjacency, graph.weighted), graph.num_nodes
    from_all = _pagerank(neighbors, torch.full((n, 1), 1 / n))
    found = []
    for first in counted("diagnosis", range(0, len(sets), SETS_AT_ONCE)):
        some = sets[first : first + SETS_AT_ONCE]
        start = torch.zeros(n, len(some))
        for column, nodes in enumerate(some):
            start[torch.from_numpy(nodes), column] = 1 / len(nodes)
        mass = _pagerank(neighbors, start)
        found.append(mass.sub_(from_all).abs_().sum(0, dtype=torch.double) / 2)
    variation: NDArray[np.float64] = torch.cat(found).numpy()
    return variation


def _pagerank(neighbors: Neighbors, start: Tensor) -> Tensor:
    """``(n, k)`` PageRank from each distribution in the columns of ``start``."""
    degrees = neighbors.degrees
    inverse, stays = 1 / degrees.clamp_min(1e-12) * (degrees > 0), degrees == 0
    mass, out = start.clone(), torch.empty_like(start)

    def finish(nodes: slice, sums: Tensor) -> None:
        sums.add_(before[nodes] * stays[nodes]).mul_(1 - TELEPORT)
        sums.add_(start[nodes], alpha=TELEPORT)

    for _ in range(STEPS):
        before = mass
        mass = neighbors.sums(mass * inverse, out, finish)
        out = before
    return mass


DRAWS = 200
"""Random node sets to compare the labeled nodes with."""

MOST_BY_CHANCE = 0.6
"""If one class has most labels, the edges between them say little about other classes."""

ROUNDING = 1e-7
"""Distances that differ by less are equal."""

MOST_LABELED = 50_000
"""Labeled nodes that are compared with random sets."""

SIGNIFICANCE = 0.05
MOST_COLUMNS = 3
"""Columns to name."""

MIN_EDGES = 10
"""Edges between labeled nodes below which their homophily is not judged."""


@dataclass(frozen=True)
class Shift:
    """One respect in which labeled nodes may differ from the others.

    Attributes:
        name: ``features``, ``degree``, ``position``, ``representation`` or ``concentration``.
        value: distance between the labeled nodes and all nodes.
        expected: mean distance for random node sets of the same size.
        p: probability that a random set is at least as far away, corrected for the number of tests
            (Holm).
        description: text for users.
    """

    name: str
    value: float
    expected: float
    p: float
    description: str

    @property
    def significant(self) -> bool:
        return self.p < SIGNIFICANCE

    @property
    def ratio(self) -> float:
        return self.value / self.expected if self.expected > 0 else float("inf")


@dataclass(frozen=True)
class ColumnShift:
    """A column of the node table in which labeled nodes differ from the others.

    Attributes:
        name: of the column.
        ratio: distance of the mean of the labeled nodes from that of all nodes, divided by its mean
            for random node sets of the same size.
        p: probability that some column of a random set has at least this ratio.
    """

    name: str
    ratio: float
    p: float

    @property
    def significant(self) -> bool:
        return self.p < SIGNIFICANCE


@dataclass(frozen=True)
class Diagnosis:
    """Facts about a graph and its labels.

    Attributes:
        nodes: number of nodes.
        edges: number of edges.
        labels: number of labeled nodes.
        counts: labels per class, by class name.
        labeled_edges: edges between labeled nodes.
        homophily: the share of them that connect the same class; None without such edges.
        homophily_by_chance: the share that random edges with the same ends would have.
        homophilous: true if the share is significantly higher than by chance, false if it is not
            and is significantly below the middle between chance and one; else None (exact binomial
            tests; None also with few edges).
        concentration: how much more often labeled nodes reach each other than by chance; about one
            for a random sample.
        isolated: nodes without an edge.
        components: connected components, isolated nodes included.
        unreached: nodes in components without a label.
        shifts: differences between labeled and other nodes.
        columns: the same for each column of the node table, the largest difference first; empty
            if the columns are not known.
        warnings: possible problems.
        advice: what to do.
    """

    nodes: int
    edges: int
    labels: int
    counts: dict[str, int]
    labeled_edges: int
    homophily: float | None
    homophily_by_chance: float | None
    homophilous: bool | None
    concentration: float
    isolated: int
    components: int
    unreached: int
    shifts: list[Shift]
    columns: list[ColumnShift]
    warnings: list[str]
    advice: list[str]

    @property
    def rate(self) -> float:
        """Labeled nodes as a share of all nodes."""
        return self.labels / self.nodes

    @property
    def biased(self) -> list[Shift]:
        """The significant differences."""
        return [shift for shift in self.shifts if shift.significant]

    @property
    def biased_columns(self) -> str:
        """The columns in which labeled nodes differ from the others, in a sentence, or nothing."""
        found = [column for column in self.columns if column.significant][:MOST_COLUMNS]
        if not found:
            return ""
        listed = ", ".join(f"{c.name} ({c.ratio:.1f} times a random sample)" for c in found)
        return (
            f"Labeled nodes differ from all nodes most in the columns: {listed}. Leave out those "
            f"that have nothing to do with the classes ({option('ignore')})"
        )

    @property
    def headline(self) -> str:
        """The result in one or two sentences."""
        if not self.biased:
            return "The labels look like a random sample of the nodes."
        worst = max(self.biased, key=lambda shift: shift.ratio)
        others = [SHIFT_NAMES[shift.name] for shift in self.biased if shift is not worst]
        listed = " and ".join([", ".join(others[:-1]), others[-1]] if others[1:] else others)
        also = f" They also differ in {listed}." if others else ""
        finite = np.isfinite(worst.ratio)
        if worst.name == "concentration":
            return (
                "The labels are not representative: labeled nodes are close to each other in the "
                f"graph, and reach each other {worst.value:.1f} times as often as by chance.{also}"
            )
        factor = f"{worst.ratio:.1f} times as much as" if finite else "more than"
        return (
            f"The labels are not representative: in {SHIFT_NAMES[worst.name]}, labeled nodes "
            f"differ from all nodes {factor} a random sample.{also}"
        )


def diagnose(
    graph: Graph,
    labeled: NDArray[np.bool_] | None = None,
    seed: int = 0,
    columns: Mapping[str, int] | None = None,
) -> Diagnosis:
    """Compare the labeled nodes with random node sets of the same size.

    Args:
        graph: the graph.
        labeled: ``(n,)`` bool; default: the graph's ``train`` and ``val`` masks, or all nodes of
            known class.
        seed: seed of the random sets.
        columns: number of features of each column of the node table, by name, in the order of the
            features; default: columns are not compared.

    Example:
        >>> from dcgst import diagnose, load
        >>> [shift.name for shift in diagnose(load("synthetic")).biased]
        ['position', 'concentration']
    """
    if not (graph.labels != UNKNOWN).any():
        raise InputError("no node has a label, so there is nothing to diagnose")
    if labeled is None:
        labeled = Split.known_labels(graph).given[0]
    labeled_nodes = np.flatnonzero(labeled)
    if not labeled_nodes.size:
        raise InputError("no node is labeled, so there is nothing to diagnose")
    sets = _random_sets(graph, _some(labeled_nodes, seed), seed)
    # Strong components of a symmetric matrix are its components, and need no transposed copy.
    _, component = connected_components(graph.adjacency, connection="strong")
    reached = np.isin(component, component[labeled_nodes])
    codes = graph.labels[labeled_nodes]
    counts = np.bincount(codes[codes >= 0], minlength=graph.num_classes)
    shifts = _shifts(graph, sets)
    diagnosis = Diagnosis(
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        labels=labeled_nodes.size,
        counts={name: int(n) for name, n in zip(graph.class_names, counts, strict=True)},
        **_homophily(graph, labeled, _some(labeled_nodes, seed)),
        concentration=next(shift.value for shift in shifts if shift.name == "concentration"),
        isolated=int((graph.degrees == 0).sum()),
        components=int(component.max()) + 1,
        unreached=int((~reached).sum()),
        shifts=shifts,
        columns=_column_shifts(graph, sets, columns or {}),
        warnings=[],
        advice=[],
    )
    diagnosis.warnings.extend(_warnings(diagnosis))
    diagnosis.advice.extend(_advice(diagnosis))
    return diagnosis


def diagnose_run(run: Run) -> Diagnosis:
    """Diagnosis of the labels that were chosen by people, without randomly chosen ones."""
    columns = run.encoder.widths if run.encoder else None
    return diagnose(run.graph, run.chosen_labels, columns=columns)


def _some(nodes: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """At most :data:`MOST_LABELED` of the nodes, at random."""
    if nodes.size <= MOST_LABELED:
        return nodes
    rng = np.random.default_rng(derive(seed, Purpose.DIAGNOSIS, 1))
    return np.sort(rng.choice(nodes, MOST_LABELED, replace=False))


def _homophily(graph: Graph, labeled: NDArray[np.bool_], some: NDArray[np.int64]) -> dict[str, Any]:
    """Homophily of the edges between some labeled nodes and all, compared with chance."""
    known = labeled & (graph.labels != UNKNOWN)
    nodes = some[known[some]]
    ends = graph.adjacency[nodes].tocoo()
    between = known[ends.col] & (nodes[ends.row] < ends.col)
    left, right = graph.labels[nodes[ends.row[between]]], graph.labels[ends.col[between]]
    count, same = left.size, int((left == right).sum())
    if not count:
        return {
            "labeled_edges": 0,
            "homophily": None,
            "homophily_by_chance": None,
            "homophilous": None,
        }
    share = np.bincount(np.concatenate([left, right]), minlength=graph.num_classes) / (2 * count)
    chance = float((share**2).sum())
    judged = count >= MIN_EDGES and chance <= MOST_BY_CHANCE
    higher = binomtest(same, count, min(chance, 1.0), alternative="greater").pvalue
    far_higher = binomtest(same, count, (1 + chance) / 2, alternative="less").pvalue
    return {
        "labeled_edges": count,
        "homophily": same / count,
        "homophily_by_chance": chance,
        "homophilous": _decide(higher, far_higher) if judged else None,
    }


def _decide(higher: float, far_higher: float) -> bool | None:
    """Whether the share is higher than by chance, or far from half-way to one, or unclear."""
    if higher < SIGNIFICANCE:
        return True
    return False if far_higher < SIGNIFICANCE else None


def _random_sets(
    graph: Graph, labeled_nodes: NDArray[np.int64], seed: int
) -> list[NDArray[np.int64]]:
    """The labeled nodes, followed by random node sets of the same size."""
    rng = np.random.default_rng(derive(seed, Purpose.DIAGNOSIS))
    n, count, order = graph.num_nodes, labeled_nodes.size, graph.id_order
    return [labeled_nodes, *(order[rng.choice(n, count, replace=False)] for _ in range(DRAWS))]


def _p_values(found: Iterable[NDArray[np.float64]]) -> list[float]:
    """Share of the random sets that are as far away as the first set, corrected (Holm)."""
    return holm([float((1 + (v[1:] >= v[0] - ROUNDING).sum()) / len(v)) for v in found])


def _shifts(graph: Graph, sets: Sequence[NDArray[np.int64]]) -> list[Shift]:
    """Compare the labeled nodes with random sets in every respect."""
    found = distances(graph, sets)
    return [
        Shift(
            name,
            value=float(values[0]),
            expected=float(values[1:].mean()),
            p=p,
            description=describe(name, p < SIGNIFICANCE, graph, sets[0]),
        )
        for (name, values), p in zip(found.items(), _p_values(found.values()), strict=True)
    ]


def _column_shifts(
    graph: Graph, sets: Sequence[NDArray[np.int64]], columns: Mapping[str, int]
) -> list[ColumnShift]:
    """Compare the labeled nodes with random sets in each column."""
    if not columns:
        return []
    found = column_distances(graph.features, list(columns.values()), sets)
    ratios = found / np.maximum(found[:, 1:].mean(axis=1, keepdims=True), ROUNDING)
    largest = ratios[:, 1:].max(axis=0)  # of each random set: corrects for the number of columns
    shifts = [
        ColumnShift(name, round(float(own), 2), float((1 + (largest >= own).sum()) / len(sets)))
        for name, own in zip(columns, ratios[:, 0], strict=True)
    ]
    return sorted(shifts, key=lambda column: (-column.ratio, column.name))


def _warnings(found: Diagnosis) -> list[str]:
    warnings = []
    few = [f"{name} ({n})" for name, n in found.counts.items() if n < 2]
    if few:
        more = f" and {len(few) - 10} more" if len(few) > 10 else ""
        warnings.append(f"classes with fewer than two labels: {', '.join(few[:10])}{more}")
    if found.unreached:
        warnings.append(
            f"{found.unreached} nodes are in components without a label: their predictions depend "
            "on their features only"
        )
    if found.isolated:
        warnings.append(f"{found.isolated} nodes have no edge")
    if found.homophilous is False:
        warnings.append(
            f"{found.homophily:.0%} of the {found.labeled_edges} edges between labeled nodes "
            "connect nodes of the same class, by chance it would be "
            f"{found.homophily_by_chance:.0%}: methods that assume similar neighbors (gcn, appnp, "
            "lp) may not work"
        )
    most, least = max(found.counts.values()), min(found.counts.values())
    if most >= 5 * max(1, least):
        warnings.append(f"labels per class range from {least} to {most}")
    return warnings


def _advice(found: Diagnosis) -> list[str]:
    advice = []
    if found.homophilous is False:
        advice.append(
            "Use the default, or the method gp or mlp, which do not assume similar neighbors."
        )
    if found.biased:
        advice.append("The default counts biased labels less; compare it with the method gcn.")
        advice.append(
            "After a fit, label 20 or 30 randomly chosen nodes (dcgst audit): they measure the "
            "accuracy and help most. Choose further nodes with dcgst suggest."
        )
    elif not is_large(found.nodes):  # the default is fitted to a sample of larger graphs
        advice.append("The method gp is faster than the default, and usually less accurate.")
    if found.unreached > found.isolated:
        advice.append("Label a node in the larger components that have no label.")
    return advice


@dataclass(frozen=True)
class ShownAccuracy:
    """What outputs say about the accuracy of a run.

    Attributes:
        origin: ``true classes``, ``audit`` or ``not measured``.
        estimate: the accuracy with its interval; None if it was not measured.
        text: sentences.
    """

    origin: str
    estimate: Estimate | None
    text: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def shown_accuracy(
    run: Run, diagnosis: Diagnosis, evaluation: RunEvaluation | None = None
) -> ShownAccuracy:
    """The accuracy on true classes if they are known, else of the audit, else what to expect.

    Args:
        run: the run.
        diagnosis: of its labels.
        evaluation: comparison with true classes; default: with those that are known and that the
            fit did not use.
    """
    evaluation = evaluation or run.measured
    if evaluation is None:
        if run.estimate is not None:
            return ShownAccuracy("audit", run.estimate.accuracy, f"{run.estimate}.")
        return ShownAccuracy("not measured", None, _expectation(run, diagnosis))
    found, nodes = evaluation.quality.accuracy, evaluation.quality.nodes
    if evaluation.without_class:
        where = f"the true class{'es' if nodes > 1 else ''} of {nodes:,} node{'s' * (nodes > 1)}"
        text = f"{found} of the predictions are right, compared with {where}."
    else:  # nothing to infer
        found = replace(found, low=found.value, high=found.value)
        text = (
            f"{found.value:.1%} of the {nodes:,} predictions are right: all were compared with "
            "true classes."
        )
    return ShownAccuracy("true classes", found, text)


def _expectation(run: Run, diagnosis: Diagnosis) -> str:
    """Sentences on the expected accuracy: where it comes from, and what it is worth."""
    pool = run.split.pool[0]
    if not pool.any():
        return "All nodes have a given label."
    mean = float(run.result.confidence[pool].mean())
    found, sources = run.result.expectation, []
    if LEFT_OUT in found:
        sources.append(
            f"{found[LEFT_OUT]:.0%} of the given labels are predicted right in cross-validation"
        )
    if AGREEMENT in found:
        sources.append(f"two members agree on {found[AGREEMENT]:.0%} of the nodes")
    if sources:
        source = ", and ".join(sources)
    elif run.calibration.nodes:
        source = "the mean probability, calibrated on validation labels"
    else:
        source = "the mean probability, which is not calibrated"
    share = "More than 99%" if mean >= 0.995 else f"About {mean:.0%}"
    text = f"{share} may be right: {source}. This was not measured"
    if diagnosis.biased:
        text += ", and the labels are biased, so the accuracy may be much lower"
    return f"{text}. To measure it, label randomly chosen nodes (dcgst audit)."
