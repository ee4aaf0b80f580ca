"""Leading components of a graph: of smoothed features, spectral ones, and clusters."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.features.columns import (
    MOST_COLUMNS,
    Features,
    inverse_power_of_two,
    largest_magnitude,
    scale_features,
)
from dcgst.features.graph_features import GraphFeatures, product_with
from dcgst.features.linalg import eigh, orthonormalize
from dcgst.features.matrix import Neighbors, Nodes, open_workspace
from dcgst.features.smoothing import Filter
from dcgst.features.sparse import SparseMatrix, normalize_scipy, spmm
from dcgst.graph import Graph
from dcgst.train.random import Streams, derive

TELEPORT = 0.1


def smoothed_components(
    graph: Graph, hops: int, dimensions: int = 32, whitening: float = 0.0
) -> Tensor:
    """``(n, d)`` leading components of a graph's features after ``hops`` steps of smoothing.

    The features are scaled so that the largest magnitude is between 1/2 and 1.

    Args:
        graph: the graph.
        hops: 0 for the features themselves.
        dimensions: maximum number of components.
        whitening: 0 for plain components, 1 for components of equal variance.
    """
    by = Filter(TELEPORT, hops)
    columns = min(MOST_COLUMNS, graph.num_features)
    with open_workspace(graph.num_nodes, 2 * columns + dimensions) as workspace:
        source = GraphFeatures(
            graph.features, Neighbors(graph.adjacency, graph.weighted), workspace
        )
        magnitudes = [largest_magnitude(source.feature_rows(part)) for part in source.ranges()]
        factor = inverse_power_of_two(torch.stack(magnitudes).amax())

        def scaled(nodes: Nodes) -> Features:
            return scale_features(source.feature_rows(nodes), factor)

        rows = product_with(scaled, source.directions(scaled, by))
        if by.hops:
            shape = graph.num_nodes, columns
            rows = source.smooth_by([by], "components", shape, rows, means=True)[by].rows
        basis = source.basis(rows, dimensions)
        components = torch.empty(graph.num_nodes, len(basis.values))
        for part in source.ranges():
            components[part] = basis.view(basis.scores(rows(part)), dimensions, whitening)
    return components


def spectral_features(
    adjacency: sp.csr_array, dimensions: int, *, iterations: int = 12, seed: int = 0
) -> NDArray[np.float32]:
    """``(n, dimensions)`` leading eigenvectors of the normalized adjacency, rows of unit length.

    Computed by block power iteration with 16 extra vectors and a final Rayleigh–Ritz step, on
    ``(Â + I) / 2`` so that negative eigenvalues are never leading. Isolated nodes have zeros.
    """
    n = adjacency.shape[0]
    dimensions = min(dimensions, n)
    width = min(n, dimensions + 16)
    matrix = SparseMatrix.from_scipy(normalize_scipy(adjacency))
    basis = Streams([derive(seed, 0)]).uniform(n, width)[0] - 0.5
    for _ in range(iterations):
        basis = orthonormalize((spmm(matrix, basis) + basis) / 2)
    small = basis.T @ spmm(matrix, basis)
    values, vectors = eigh((small + small.T) / 2)
    leading = (basis @ vectors.flip(1)[:, :dimensions]) * values.flip(0)[:dimensions].clamp_min(0)
    leading[torch.from_numpy(np.diff(adjacency.indptr) == 0)] = 0
    norms = leading.norm(dim=1, keepdim=True)
    features: NDArray[np.float32] = (leading / norms.clamp_min(1e-12)).numpy()
    return features


_BLOCK = 1 << 25
"""Maximum number of similarities held at once."""


def k_means(z: Tensor, count: int, streams: Streams, steps: int = 30) -> Tensor:
    """``(R, n)`` cluster of every row of ``z`` ``(R, n, d)``, from 0 to ``count`` - 1.

    Lloyd's algorithm, started from random rows. An empty cluster keeps its center.
    (``sklearn.cluster.KMeans`` computes one replica at a time and on a CPU only.)
    """
    n = z.shape[1]
    count = min(count, n)
    first = streams.uniform(n).argsort(dim=1)[:, :count]
    centers = z.gather(1, first[..., None].expand(-1, -1, z.shape[-1]))
    members = torch.full(z.shape[:2], -1, device=z.device)
    for _ in range(steps):
        nearest = _nearest(z, centers)
        if bool((nearest == members).all()):
            break
        members = nearest
        means, sizes = group_means(z, members, count)
        centers = torch.where(sizes[..., None] > 0, means, centers)
    return members


def group_means(z: Tensor, groups: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Mean of the rows of each group ``(R, count, d)``, and group sizes ``(R, count)``.

    Rows of ``z`` ``(R, n, d)`` with group -1 are ignored; ``groups`` is ``(R, n)``. The mean of an
    empty group is zero.
    """
    replicas, n, width = z.shape
    index = groups + count * torch.arange(replicas, device=z.device)[:, None]
    inside = (groups >= 0).flatten()
    rows, index = z.reshape(replicas * n, width)[inside], index.flatten()[inside]
    sums = z.new_zeros(replicas * count, width).index_add(0, index, rows)
    sizes = torch.bincount(index, minlength=replicas * count)
    means = sums / sizes.clamp_min(1)[:, None]
    return means.view(replicas, count, width), sizes.view(replicas, count)


def _nearest(z: Tensor, centers: Tensor) -> Tensor:
    """``(R, n)`` the nearest center of each row, computed in blocks."""
    offset = centers.square().sum(-1)[:, None] / 2
    block = max(1, _BLOCK // (len(z) * centers.shape[1]))
    parts = [(part @ centers.mT - offset).argmax(-1) for part in torch.split(z, block, dim=1)]
    return torch.cat(parts, dim=1)
