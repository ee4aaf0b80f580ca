"""A synthetic graph whose label bias, homophily, size and class balance can be dialled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.graph import Graph


def present(name: str) -> bool:
    return True


def load(name: str) -> Graph:
    """The synthetic graph as it is with nothing dialled."""
    return synthetic(name=name)


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
    """Classes as arcs of one circle, labeled mostly where each arc begins.

    A node has a class and a position from 0 to 1 on its class's arc. The end of one arc lies beside
    the beginning of the next, so whoever learns from beginnings only takes the ends for the next
    class; edges run along the arcs and can put that right.

    Args:
        nodes: number of nodes.
        classes: number of classes.
        features: columns; the circle is embedded in them and covered with noise.
        degree: mean number of neighbours.
        homophily: share of edges within a class.
        balance: size of each class relative to the one before; 1 makes them equal.
        shift: 0 labels each class evenly, 1 only at the beginning of its arc.
        labels_per_class: size of the mask ``train`` per class; ``test`` is the rest.
        noise: spread of the features around the circle.
        seed: decides everything random.
        name: the graph's name.
    """
    if not (0 <= shift <= 1 and 0 <= homophily <= 1 and 0 < balance <= 1):
        raise InputError(
            f"shift and homophily lie in 0 … 1, balance in (0, 1]; got shift={shift}, "
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
    """Class of each node, classes one after the other."""
    shares = balance ** np.arange(classes)
    ends = np.round(np.cumsum(shares / shares.sum()) * nodes).astype(int)
    sizes = np.diff(ends, prepend=0)
    if sizes.min() <= labels_per_class:
        raise InputError(
            f"the smallest class has {sizes.min()} nodes, too few for {labels_per_class} labels "
            "per class; raise nodes or balance, or lower classes"
        )
    return np.repeat(np.arange(classes), sizes)


def _positions(labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Position on the arc, rising within each class: neighbours in number are neighbours there."""
    draws = rng.random(labels.size)
    order = np.lexsort((draws, labels))
    return draws[order]


def _edges(
    labels: NDArray[np.int64], degree: float, homophily: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """About ``degree / 2`` edges begun by each node, within the class to one nearby on the arc."""
    n = labels.size
    begin = rng.integers(0, n, size=round(n * degree / 2))
    first = np.searchsorted(labels, labels[begin])
    last = np.searchsorted(labels, labels[begin], side="right") - 1
    step = np.ceil(np.abs(rng.normal(size=begin.size)) * 0.05 * (last - first))
    step = np.maximum(step, 1).astype(int) * rng.choice([-1, 1], size=begin.size)
    near = begin + step
    near = np.where((near < first) | (near > last), begin - step, near).clip(first, last)
    # Uniform among the nodes of other classes: skip the block of the own class.
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
    """Draw without replacement; the odds fall with the position, faster with a larger shift."""
    key = -30 * shift * position + rng.gumbel(size=labels.size)
    chosen = np.zeros(labels.size, dtype=bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        chosen[members[np.argsort(-key[members])[:per_class]]] = True
    return chosen
