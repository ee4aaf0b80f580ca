"""A synthetic graph with adjustable label bias, homophily, size and class balance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.graph import Graph


def synthetic(
    nodes: int = 1200,
    classes: int = 4,
    *,
    features: int = 32,
    degree: float = 6.0,
    homophily: float = 0.85,
    balance: float = 1.0,
    shift: float = 0.8,
    labels_per_class: int = 5,
    noise: float = 0.3,
    seed: int = 0,
    name: str = "synthetic",
) -> Graph:
    """Generate a graph whose classes are arcs of a circle, labeled mostly at the start of each arc.

    A node has a class and a position from 0 to 1 on its class's arc. The end of one arc is close to
    the start of the next. A model that learns from the starts only assigns the ends to the next
    class; edges along the arcs can correct that.

    Args:
        nodes: number of nodes.
        classes: number of classes.
        features: number of columns, in which the noisy circle is embedded.
        degree: mean number of neighbors.
        homophily: share of edges within a class.
        balance: size of each class relative to the one before; 1 makes them equal.
        shift: 0 labels each class evenly, 1 only at the start of its arc.
        labels_per_class: training labels per class in the mask ``train``; ``test`` is the rest.
        noise: standard deviation of the features around the circle.
        seed: seed of everything random.
        name: name of the graph.

    Example:
        >>> synthetic(300, classes=3)
        Graph('synthetic': 300 nodes, 796 edges, 32 features, 3 classes, 300 labels)
    """
    if not (0 <= shift <= 1 and 0 <= homophily <= 1 and 0 < balance <= 1):
        raise InputError(
            f"shift and homophily must be in [0, 1], balance in (0, 1]; got shift={shift}, "
            f"homophily={homophily}, balance={balance}"
        )
    rng = np.random.default_rng(seed)
    labels = _classes(nodes, classes, balance, labels_per_class)
    position = _positions(labels, rng)
    angle = 2 * np.pi * (labels + 0.9 * position) / classes
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    axes = np.linalg.qr(rng.normal(size=(features, 2)))[0].T
    x = circle @ axes + noise * rng.normal(size=(nodes, features)) / np.sqrt(features)
    train = _biased_choice(labels, position, shift, labels_per_class, rng)
    return Graph.from_edges(
        _edges(labels, degree, homophily, rng),
        x,
        labels,
        masks={"train": train, "test": ~train},
        name=name,
    )


def _classes(nodes: int, classes: int, balance: float, labels_per_class: int) -> NDArray[np.int64]:
    """Class of each node, sorted."""
    shares = balance ** np.arange(classes)
    ends = np.round(np.cumsum(shares / shares.sum()) * nodes).astype(int)
    sizes = np.diff(ends, prepend=0)
    if sizes.min() <= labels_per_class:
        raise InputError(
            f"the smallest class has {sizes.min()} nodes, too few for {labels_per_class} labels "
            "per class; increase nodes or balance, or reduce classes"
        )
    return np.repeat(np.arange(classes), sizes)


def _positions(labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Position on the arc, increasing with the node number within each class."""
    draws = rng.random(labels.size)
    order = np.lexsort((draws, labels))
    return draws[order]


def _edges(
    labels: NDArray[np.int64], degree: float, homophily: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """About ``degree / 2`` edges per node: to a nearby node of its class, or to another class."""
    n = labels.size
    begin = rng.integers(0, n, size=round(n * degree / 2))
    first = np.searchsorted(labels, labels[begin])
    last = np.searchsorted(labels, labels[begin], side="right") - 1
    step = np.ceil(np.abs(rng.normal(size=begin.size)) * 0.05 * (last - first))
    step = np.maximum(step, 1).astype(int) * rng.choice([-1, 1], size=begin.size)
    near = begin + step
    near = np.where((near < first) | (near > last), begin - step, near).clip(first, last)
    # Uniform among the nodes of other classes: skip the block of the same class.
    outside = rng.integers(0, n - (last - first + 1))
    outside = np.where(outside < first, outside, outside + (last - first + 1))
    return np.stack([begin, np.where(rng.random(begin.size) < homophily, near, outside)])


def _biased_choice(
    labels: NDArray[np.int64],
    position: NDArray[np.float64],
    shift: float,
    per_class: int,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Draw without replacement; the probability decreases with the position, faster by shift."""
    key = -30 * shift * position + rng.gumbel(size=labels.size)
    chosen = np.zeros(labels.size, dtype=bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        chosen[members[np.argsort(-key[members])[:per_class]]] = True
    return chosen
