"""Handwritten digits as a k-nearest-neighbour graph: comes with scikit-learn, needs no network."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dcgst.graph import Graph

NEIGHBOURS = 5
_ROWS = 256


def present(name: str) -> bool:
    return True


def load(name: str) -> Graph:
    """1,797 images of 8 x 8 pixels; each is joined to its five nearest."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    edges = nearest_neighbours(images, NEIGHBOURS)
    return Graph.from_edges(edges, images / 16, labels.astype(np.int64), name=name)


def nearest_neighbours(points: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """``(2, n * count)`` edges from each point to its nearest; ties go to the lower number.

    The points are whole numbers, so distances, and with them ties, are exact on every machine.
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
