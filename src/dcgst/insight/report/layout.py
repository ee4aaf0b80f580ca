"""Positions of nodes on a two-dimensional map."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dcgst.engine.random import Purpose, derive
from dcgst.graph import Graph
from dcgst.insight.suggestion import similarity_space

SHOWN = 3000
"""Maximum number of nodes on a map."""


def shown_nodes(graph: Graph, labeled: NDArray[np.bool_], seed: int = 0) -> NDArray[np.int64]:
    """All nodes; on a large graph, labeled nodes and a random sample of the others."""
    if graph.num_nodes <= SHOWN:
        return np.arange(graph.num_nodes)
    rng = np.random.default_rng(derive(seed, Purpose.MAP))
    own = rng.permutation(np.flatnonzero(labeled))[: SHOWN // 2]
    rest = rng.permutation(np.flatnonzero(~labeled))[: SHOWN - own.size]
    return np.sort(np.concatenate([own, rest]))


def positions(graph: Graph, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """``(len(nodes), 2)`` from 0 to 1: t-SNE of the smoothed features."""
    from sklearn.manifold import TSNE

    z = similarity_space(graph)[nodes].numpy().astype(np.float64)
    if len(nodes) < 5:
        flat = np.column_stack([np.arange(len(nodes)), np.zeros(len(nodes))])
    else:
        perplexity = min(30.0, (len(nodes) - 1) / 3)
        varied = (z != z[0]).any(axis=0).sum() > 1  # else there are no two principal components
        start = "pca" if varied else "random"
        flat = TSNE(perplexity=perplexity, init=start, random_state=0, max_iter=300).fit_transform(
            z
        )
    low, high = flat.min(axis=0), flat.max(axis=0)
    placed: NDArray[np.float64] = (flat - low) / np.maximum(high - low, 1e-9)
    return placed
