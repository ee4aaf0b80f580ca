r"""Personalized PageRank, :math:`\Pi = a\,(I - (1-a)\hat A)^{-1}`, without forming the matrix.

:math:`\hat A` is symmetrically normalized with self-loops, so :math:`\Pi` is symmetric.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log, sqrt

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.errors import InputError
from dcgst.features.sparse import SparseMatrix, normalize_scipy, spmm

_COLUMNS = 32
"""Rows solved together: few enough to stay in the CPU cache."""


def ppr_rows(
    adjacency: sp.csr_array, nodes: NDArray[np.int64], teleport: float
) -> NDArray[np.float64]:
    """``(len(nodes), n)`` PageRank rows of the given nodes, accurate to about 1e-8."""
    solver = _Solver(adjacency, teleport)
    return np.concatenate([block.T.numpy() for block in solver.columns(nodes)])


def ppr_distances(
    adjacency: sp.csr_array,
    roots: NDArray[np.int64],
    nodes: NDArray[np.int64],
    teleport: float,
) -> NDArray[np.float64]:
    r"""``(len(roots), len(nodes))`` Euclidean distances between PageRank rows, in blocks.

    :math:`\lVert\Pi_i-\Pi_j\rVert^2 = (\Pi^2)_{ii} + (\Pi^2)_{jj} - 2(\Pi^2)_{ij}`, so each
    root needs two solves and each node one.
    """
    solver = _Solver(adjacency, teleport)
    lengths = torch.cat([block.square().sum(0) for block in solver.columns(nodes)])
    rows = []
    for block in solver.columns(roots):
        inner = solver.solve(block)[torch.from_numpy(nodes)].T  # (roots, nodes)
        own = block.square().sum(0)
        rows.append((own[:, None] + lengths - 2 * inner).clamp_min(0).sqrt())
    distances: NDArray[np.float64] = torch.cat(rows).numpy()
    return distances


class _Solver:
    """Solves for blocks of columns of the PageRank matrix by Chebyshev iteration.

    The spectrum of ``I - (1-a)Â`` lies in ``[a, 2-a]``; it determines the number of steps.
    """

    def __init__(self, adjacency: sp.csr_array, teleport: float, tolerance: float = 1e-8) -> None:
        self.matrix = SparseMatrix.from_scipy(
            normalize_scipy(adjacency.astype(np.float64), loops=True), dtype=torch.float64
        )
        if not 0 < teleport < 1:
            raise InputError(f"teleport must lie between 0 and 1, got {teleport}")
        self.teleport = teleport
        damping = 1 - teleport
        rate = damping / (1 + sqrt(1 - damping**2))
        self.steps = ceil(log(tolerance) / log(rate))

    def solve(self, right: Tensor) -> Tensor:
        """``Π @ right`` for ``(n, k)``."""
        damping, source = 1 - self.teleport, self.teleport * right
        previous = source
        current = damping * spmm(self.matrix, source) + source
        omega = 2.0
        for _ in range(self.steps):
            omega = 1 / (1 - damping**2 * omega / 4)
            step = damping * spmm(self.matrix, current) + source - previous
            previous, current = current, step.mul_(omega).add_(previous)
        return current

    def columns(self, nodes: NDArray[np.int64]) -> Iterator[Tensor]:
        """Blocks ``(n, k)`` of the columns of the given nodes."""
        n = self.matrix.pattern.num_rows
        for start in range(0, len(nodes), _COLUMNS):
            block = torch.from_numpy(nodes[start : start + _COLUMNS])
            unit = torch.zeros(n, len(block), dtype=torch.float64)
            unit[block, torch.arange(len(block))] = 1
            yield self.solve(unit)


def ppr_push(
    adjacency: sp.csr_array, root: int, teleport: float, epsilon: float = 1e-5
) -> NDArray[np.float64]:
    """``(n,)`` approximate PageRank of a random walk from ``root``, by pushing residuals.

    Every node keeps the share ``teleport`` of its residual and passes on the rest, until no
    residual exceeds ``epsilon`` times the node's degree (Andersen et al., FOCS 2006). The walk has
    self-loops. Each result is below the true value by at most ``epsilon`` times the degree.
    """
    return _push(adjacency, _degrees(adjacency), root, teleport, epsilon)


def sparse_ppr_rows(
    adjacency: sp.csr_array, nodes: NDArray[np.int64], teleport: float, epsilon: float = 1e-4
) -> sp.csr_array:
    """``(len(nodes), n)`` approximate PageRank rows by :func:`ppr_push`, as a sparse matrix."""
    degrees = _degrees(adjacency)
    reached, values = [], []
    for node in nodes:
        row = _push(adjacency, degrees, node, teleport, epsilon)
        reached.append(np.flatnonzero(row))
        values.append(row[reached[-1]])
    ends = np.cumsum([0, *(len(columns) for columns in reached)])
    parts = (np.concatenate(values), np.concatenate(reached), ends)
    return sp.csr_array(parts, shape=(len(nodes), len(degrees)))


def _degrees(adjacency: sp.csr_array) -> NDArray[np.float64]:
    """``(n,)`` weighted degrees with self-loops."""
    return np.asarray(adjacency.sum(axis=1)).ravel().astype(np.float64) + 1


def _push(
    adjacency: sp.csr_array,
    degree: NDArray[np.float64],
    root: int,
    teleport: float,
    epsilon: float,
) -> NDArray[np.float64]:
    indptr, indices, weights = adjacency.indptr, adjacency.indices, adjacency.data
    settled, residual = np.zeros_like(degree), np.zeros_like(degree)
    residual[root] = 1.0
    active = np.array([root])
    while active.size:
        moving = residual[active]
        residual[active] = 0
        settled[active] += teleport * moving
        spread = (1 - teleport) * moving / degree[active]
        residual[active] += spread  # the self-loop
        counts = indptr[active + 1] - indptr[active]
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        entries = np.repeat(indptr[active], counts) + offsets
        np.add.at(residual, indices[entries], np.repeat(spread, counts) * weights[entries])
        touched = np.unique(np.concatenate([active, indices[entries]]))
        active = touched[residual[touched] > epsilon * degree[touched]]
    return settled
