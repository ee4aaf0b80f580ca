"""Handwritten digits as a k-nearest-neighbour graph: comes with scikit-learn, needs no network."""

from __future__ import annotations

import numpy as np

from dcgst.graph import Graph

NEIGHBOURS = 5


def present(name: str) -> bool:
    return True


def load(name: str) -> Graph:
    """1,797 images of 8 x 8 pixels; each is joined to its five nearest."""
    from sklearn.datasets import load_digits
    from sklearn.neighbors import kneighbors_graph

    images, labels = load_digits(return_X_y=True)
    nearest = kneighbors_graph(images, NEIGHBOURS).tocoo()
    return Graph.from_edges(
        np.stack([nearest.row, nearest.col]).astype(np.int64),
        images / 16,
        labels.astype(np.int64),
        name=name,
    )
