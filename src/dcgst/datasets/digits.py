"""Handwritten digits as a k-nearest-neighbor graph; part of scikit-learn, no download."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dcgst.graph import Graph

NEIGHBORS = 5
_ROWS = 256


def available(name: str) -> bool:
    """Always true."""
    return True


def load(name: str) -> Graph:
    """1,797 images of 8 x 8 pixels; each is connected to its five nearest neighbors."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    edges = nearest_neighbors(images, NEIGHBORS)
    return Graph.from_edges(edges, images / 16, labels.astype(np.int64), name=name)


def nearest_neighbors(points: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """``(2, n * count)`` edges from each point to its nearest neighbors; ties by node number.

    The coordinates are integers, so distances and ties are exact on every machine.
    (``sklearn.neighbors`` does not define the order of ties.)
    """
    lengths = (points**2).sum(axis=1)
    nearest = []
    for start in range(0, len(points), _ROWS):
        block = points[start : start + _ROWS]
        distances = lengths - 2 * block @ points.T
        distances[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        nearest.append(np.argsort(distances, axis=1, kind="stable")[:, :count])
    ends = np.concatenate(nearest).reshape(-1)
    return np.stack([np.repeat(np.arange(len(points)), count), ends])
