"""Nodes with similar features, computed in blocks: never n x n at once."""

from __future__ import annotations

import torch
from torch import Tensor

from dcgst.features.columns import Features, unit_rows
from dcgst.features.sparse import SparseMatrix, spmm

_BLOCK = 1 << 24
"""Maximum number of similarities held at once."""


class SimilarNodes:
    """The most similar nodes of any node, by cosine of the features; computed on request.

    (``sklearn.neighbors.NearestNeighbors`` has no GPU support and no lazy queries.)

    Args:
        x: ``(n, d)`` features.
        count: number of similar nodes per node.
    """

    def __init__(self, x: Features, count: int) -> None:
        n = x.shape[0]
        self.x = unit_rows(x)
        device = self.x.values.device if isinstance(self.x, SparseMatrix) else self.x.device
        self.count = max(0, min(count, n - 1))
        self.nodes = torch.zeros(n, self.count, dtype=torch.long, device=device)
        self.cosines = torch.zeros(n, self.count, device=device)
        self.known = torch.zeros(n, dtype=torch.bool, device=device)

    def of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """``(..., count)`` the nodes most similar to ``nodes`` ``(...)``, and their cosines."""
        missing = torch.unique(nodes[~self.known[nodes]])
        for part in torch.split(missing, max(1, _BLOCK // len(self.known))):
            cosines = _times_rows(self.x, part)  # (n, part)
            cosines[part, torch.arange(len(part), device=part.device)] = float("-inf")
            best = cosines.topk(self.count, dim=0)
            self.nodes[part], self.cosines[part] = best.indices.T, best.values.T
            self.known[part] = True
        return self.nodes[nodes], self.cosines[nodes]

    def pair_cosines(self, pairs: Tensor) -> Tensor:
        """``(P,)`` the cosine of the two ends of each of ``(P, 2)`` pairs."""
        parts = [
            (_rows(self.x, part[:, 0]) * _rows(self.x, part[:, 1])).sum(-1)
            for part in torch.split(pairs, max(1, _BLOCK // max(1, self.x.shape[1])))
        ]
        return torch.cat(parts)


def _rows(x: Features, nodes: Tensor) -> Tensor:
    """Rows as a dense ``(len, d)``."""
    if not isinstance(x, SparseMatrix):
        return x[nodes]
    pattern, entries = x.pattern.select_rows(nodes)
    dense = x.values.new_zeros(len(nodes), x.shape[1])
    dense[pattern.rows, pattern.indices] = x.values[entries]
    return dense


def _times_rows(x: Features, nodes: Tensor) -> Tensor:
    """``(n, len)``: inner products of all rows with the given ones."""
    rows = _rows(x, nodes).T
    return spmm(x, rows.contiguous()) if isinstance(x, SparseMatrix) else x @ rows
