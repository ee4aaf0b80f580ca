"""Neighborhood entropy reduction: information that a node's label gives about its neighbors."""

from __future__ import annotations

import torch
from torch import Tensor

from dcgst.features.sparse import SparseMatrix

_BLOCK = 1 << 22
"""Maximum number of edge logits held at once."""


def neighborhood_entropy_reduction(logits: Tensor, weights: SparseMatrix) -> Tensor:
    r"""Reduction of the neighbors' entropy by adding a node's logits to theirs (NER).

    .. math:: NER(c) = \sum_{n \in N(c)} H(\sigma(r_n)) - H(\sigma(r_n + w_{cn} r_c))

    Args:
        logits: ``(R, n, C)`` the logits r.
        weights: ``(n, n)`` edge weights w with values ``(E,)``, row c and column n. The diagonal
            and edges of weight zero are ignored.

    Returns:
        ``(R, n)``; zero for a node without neighbors.
    """
    pattern = weights.pattern
    edges = ((pattern.rows != pattern.indices) & (weights.values != 0)).nonzero().flatten()
    before = entropy(logits)  # (R, n)
    total = torch.zeros_like(before)
    block = max(1, _BLOCK // (logits.shape[0] * logits.shape[2]))
    for part in torch.split(edges, block):
        center, neighbor = pattern.rows[part], pattern.indices[part]
        weight = weights.values[part].unsqueeze(-1)
        after = entropy(logits[:, neighbor] + weight * logits[:, center])
        total.index_add_(1, center, before[:, neighbor] - after)
    return total


def entropy(logits: Tensor) -> Tensor:
    """Entropy of the softmax over the last axis, in nats.

    Example:
        >>> entropy(torch.zeros(4))  # log(4)
        tensor(1.3863)
    """
    log_proba = logits.log_softmax(-1)
    return -(log_proba.exp() * log_proba).sum(-1)
