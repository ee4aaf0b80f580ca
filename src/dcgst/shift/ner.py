"""Neighbourhood entropy reduction: what a node's label would tell its neighbours."""

from __future__ import annotations

import torch
from torch import Tensor

from dcgst.engine.sparse import SparseMatrix

_BLOCK = 1 << 22
"""How many logits of edges are held at once."""


def neighbourhood_entropy_reduction(logits: Tensor, weights: SparseMatrix) -> Tensor:
    r"""How much certainty each node's logits bring to its neighbours.

    .. math:: NER(c) = \sum_{n \in N(c)} H(\sigma(r_n)) - H(\sigma(r_n + w_{cn} r_c))

    Args:
        logits: ``(R, n, C)`` the logits r.
        weights: ``(n, n)`` edge weights w with values ``(E,)``, row c and column n; the diagonal
            does not count, nor does an edge of weight zero.

    Returns:
        ``(R, n)``; zero for a node without neighbours.
    """
    pattern = weights.pattern
    edges = ((pattern.rows != pattern.indices) & (weights.values != 0)).nonzero().squeeze(-1)
    before = entropy(logits)  # (R, n)
    total = torch.zeros_like(before)
    block = max(1, _BLOCK // (logits.shape[0] * logits.shape[2]))
    for part in torch.split(edges, block):
        centre, neighbour = pattern.rows[part], pattern.indices[part]
        weight = weights.values[part].unsqueeze(-1)
        after = entropy(logits[:, neighbour] + weight * logits[:, centre])
        total.index_add_(1, centre, before[:, neighbour] - after)
    return total


def entropy(logits: Tensor) -> Tensor:
    """Entropy of the softmax over the last axis, in nats."""
    log_proba = logits.log_softmax(-1)
    return -(log_proba.exp() * log_proba).sum(-1)
