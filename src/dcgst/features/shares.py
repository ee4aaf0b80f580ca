"""Softmax over few classes, and class shares: mean probabilities of a set of nodes."""

from __future__ import annotations

import torch
from torch import Tensor

FEW = 16


def softmax(logits: Tensor) -> Tensor:
    """``logits.softmax(-1)``; up to ten times as fast on a CPU if there are few classes.

    The kernel of PyTorch for a short last axis is not vectorized.

    Example:
        >>> import torch
        >>> softmax(torch.tensor([[0.0, 0.0]]))
        tensor([[0.5000, 0.5000]])
    """
    if logits.shape[-1] >= FEW or logits.is_cuda:
        return logits.softmax(-1)
    exponents = (logits - logits.amax(-1, keepdim=True)).exp_()
    return exponents.div_(exponents.sum(-1, keepdim=True))


SAMPLE = 20_000
"""Number of nodes that offsets are computed from."""

SMALLEST = 1e-6


def mean_probabilities(log_proba: Tensor, nodes: Tensor) -> Tensor:
    """``(R, C)`` mean probabilities of nodes ``(R, n)`` from ``(R, n, C)`` log-probabilities."""
    total = (log_proba.exp() * nodes[..., None]).sum(1)
    return total / nodes.sum(1, keepdim=True).clamp_min(1)


def share_offsets(log_proba: Tensor, nodes: Tensor, shares: Tensor, iterations: int = 50) -> Tensor:
    """``(R, C)`` constants that make ``shares`` the mean probabilities of some nodes.

    Args:
        log_proba: ``(R, n, C)``.
        nodes: ``(R, n)`` bool.
        shares: ``(R, C)``; each row sums to one.
        iterations: of the search. On large graphs it uses every k-th of the nodes.
    """
    rows = every_kth(nodes)
    sample, within = log_proba[:, rows], nodes[:, rows]
    offset = torch.zeros_like(shares)
    target = shares.clamp_min(SMALLEST).log()
    exists = within.any(1, keepdim=True)  # without nodes there is nothing to match
    for _ in range(iterations):
        mean = mean_probabilities((sample + offset[:, None]).log_softmax(-1), within)
        offset = offset + 0.7 * (target - mean.clamp_min(SMALLEST).log()) * exists
    return offset


def every_kth(nodes: Tensor, count: int | None = None) -> Tensor:
    """Positions of about ``count`` of the nodes ``(R, n)`` that are in the set of any fit.

    If the sets are empty, of all nodes. The default count is :data:`SAMPLE`.
    """
    count = count or SAMPLE
    rows = nodes.any(0).nonzero().squeeze(1)
    if not len(rows):
        rows = torch.arange(nodes.shape[1], device=nodes.device)
    return rows[:: max(1, len(rows) // count)]
