"""How concentrated labeled nodes are in a graph: a measure of bias that needs no model."""

from __future__ import annotations

import torch
from torch import Tensor

from dcgst.numerics.products import spmm
from dcgst.numerics.sparse import SparseMatrix

STEPS = 3
"""Length of the random walks."""

MOST_STARTS = 256
"""Labeled nodes from which walks start, if there are more."""


def concentration(labeled: Tensor, adjacency: SparseMatrix) -> Tensor:
    r"""``(R,)`` how much more often labeled nodes reach each other than by chance.

    A random walk of one to three steps from a labeled node ends at another labeled node with
    probability o on average. By chance, it would be e: the share of edge ends at the other labeled
    nodes. With L labeled nodes, the result is :math:`(L o + 1) / (L e + 1)`; the added ones keep it
    near one if few visits are expected. Labels drawn uniformly or by degree have values around one.
    Labels from one part of the graph have values of two and more.

    Args:
        labeled: ``(R, n)`` bool.
        adjacency: ``(n, n)``.
    """
    degrees = spmm(adjacency, torch.ones(adjacency.shape[0], 1, device=labeled.device)).squeeze(1)
    return torch.stack([_concentration(row, adjacency, degrees) for row in labeled])


def _concentration(labeled: Tensor, adjacency: SparseMatrix, degrees: Tensor) -> Tensor:
    nodes = labeled.nonzero().squeeze(1)
    starts = nodes[:: max(1, -(-len(nodes) // MOST_STARTS))]
    own = torch.zeros(len(labeled), len(starts), device=labeled.device)
    own[starts, torch.arange(len(starts), device=labeled.device)] = 1
    reached = torch.cat([own, labeled[:, None].to(own.dtype)], dim=1)
    visits = torch.zeros(len(starts), device=labeled.device)
    for _ in range(STEPS):
        reached = spmm(adjacency, reached) / degrees.clamp_min(1e-12)[:, None]
        at_starts = reached[starts]
        # Walks that end at any labeled node, without those that return to their start.
        visits = visits + (at_starts[:, -1] - at_starts[:, :-1].diagonal()) / STEPS
    observed = visits.sum() * len(nodes) / max(1, len(starts))
    share = degrees[nodes] / degrees.sum().clamp_min(1e-12)
    expected = (share.sum() - share).sum()
    return (observed + 1) / (expected + 1)


def representativeness(concentration: Tensor) -> Tensor:
    """Map concentration to a trust in the labels: one up to 1.25, zero from 2.25 on."""
    return (2.25 - concentration).clamp(0, 1)
