"""The edge predictor: samples graph variants on a short list of node pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dcgst.features.columns import Features
from dcgst.features.sparse import Pattern, SparseMatrix, normalize_adjacency
from dcgst.nn.backbones import GCNBackbone
from dcgst.train.random import Streams


class EdgePredictor(nn.Module):
    r"""Probabilities of edges, :math:`M_{ij} = \sigma(t_i^\top t_j)`, :math:`T = GCN(A, X)`.

    R replicas are computed together, each with its own pairs. Probabilities are computed for listed
    pairs only.

    Args:
        seeds: one per replica, for its initial parameters.
        num_features: number of feature columns.
        width: width of the node factors T and of the layer before it.
        dropout: dropout rate.
    """

    def __init__(
        self, seeds: Sequence[int], num_features: int, width: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.gcn = GCNBackbone(seeds, num_features, width, width, dropout)

    def forward(
        self, x: Features, operator: SparseMatrix, streams: Streams | None = None
    ) -> Tensor:
        """``(R, n, width)``: T. The operator is that of :func:`normalize_adjacency`."""
        factors: Tensor = self.gcn(x, operator, streams).logits
        return factors

    operator = staticmethod(normalize_adjacency)


def pair_logits(factors: Tensor, pairs: Tensor) -> Tensor:
    """``(R, P)`` log-odds of an edge between the ends of ``(R, P, 2)`` or ``(P, 2)`` pairs."""
    replicas, n, width = factors.shape
    pairs = pairs.expand(replicas, -1, 2)
    flat = factors.reshape(replicas * n, width)
    start = n * torch.arange(replicas, device=pairs.device)[:, None]
    ends = [flat.index_select(0, (pairs[..., end] + start).flatten()) for end in (0, 1)]
    return (ends[0] * ends[1]).sum(-1).view(replicas, -1)


def sample_edges(
    logits: Tensor, streams: Streams, temperature: float = 1.2, noise: str = "logistic"
) -> Tensor:
    r"""Sample each edge as 1 or 0, with the gradient of the relaxed sample (straight-through).

    .. math:: a = \lfloor \sigma((\ell + G) / \tau) + \tfrac12 \rfloor

    With logistic noise G, an edge is sampled with probability :math:`\sigma(\ell)`. The paper's
    formula as printed has :math:`\log \sigma(\ell)` in place of :math:`\ell` and one Gumbel
    variate G, which samples an edge with probability :math:`1 - e^{-\sigma(\ell)}`, at most .63.

    Args:
        logits: ``(R, P)`` log-odds ℓ.
        streams: random streams.
        temperature: τ.
        noise: ``logistic`` or ``gumbel``.
    """
    eps = torch.finfo(logits.dtype).eps
    uniform = streams.uniform(logits.shape[1]).clamp(eps, 1 - eps)
    if noise == "gumbel":
        noisy = F.logsigmoid(logits) - (-uniform.log()).log()
    else:
        noisy = logits + uniform.log() - (-uniform).log1p()
    relaxed = (noisy / temperature).sigmoid()
    return relaxed + ((relaxed > 0.5).to(relaxed.dtype) - relaxed).detach()


def reconstruction_loss(
    factors: Tensor, pattern: Pattern, streams: Streams, count: int = 4096
) -> Tensor:
    """``(R,)`` binary cross entropy of sampled edges and equally many random node pairs.

    Among all pairs, edges are a tiny share; here both halves have the same weight.
    """
    # Departure 3: sampled edges and equally many random pairs instead of all pairs.
    n = factors.shape[1]
    if pattern.num_entries == 0:
        return 0 * factors.flatten(1).sum(1)
    draws = streams.uniform(3, count)
    entries = _integers(draws[:, 0], pattern.num_entries)
    edges = torch.stack([pattern.rows[entries], pattern.indices[entries]], dim=-1)
    others = torch.stack([_integers(draws[:, 1], n), _integers(draws[:, 2], n)], dim=-1)
    logits = pair_logits(factors, torch.cat([edges, others], dim=1))
    positive, negative = logits[:, :count], logits[:, count:]
    return (F.softplus(-positive).mean(1) + F.softplus(negative).mean(1)) / 2


def _integers(uniform: Tensor, below: int) -> Tensor:
    """Integers from 0 to ``below`` - 1 from numbers in [0, 1)."""
    return (uniform.double() * below).long().clamp_max(below - 1)


@dataclass(frozen=True)
class Variants:
    """A graph in which listed node pairs may become edges or stop being edges.

    One pattern holds the edges and every pair of every replica. A pair that is not an edge has
    weight zero unless it is sampled. So replicas with different pairs share their products.
    """

    base: SparseMatrix
    """The graph extended by all listed pairs; values ``(R, E)`` are those of the graph."""
    pairs: Tensor
    """``(R, P, 2)`` node pairs"""
    valid: Tensor
    """``(R, P)`` bool: False for self-loops and repeated pairs, which are ignored"""
    positions: Tensor
    """``(R, 2P)`` indices of the pairs among the values, in both directions"""

    @classmethod
    def of(cls, adjacency: SparseMatrix, pairs: Tensor) -> Variants:
        """Create the variants of a graph on pairs ``(R, P, 2)``."""
        pattern = adjacency.pattern
        n, replicas = pattern.num_rows, pairs.shape[0]
        low, high = pairs.min(-1).values, pairs.max(-1).values
        keys = low * n + high  # (R, P)
        ordered, order = keys.sort(dim=1, stable=True)
        repeated = torch.zeros_like(ordered, dtype=torch.bool)
        repeated[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
        valid = ~torch.zeros_like(repeated).scatter(1, order, repeated) & (low != high)
        both_ways = torch.cat([keys, high * n + low], dim=1)  # (R, 2P)
        twice = torch.cat([valid, valid], dim=1)
        own = pattern.rows * n + pattern.indices
        union = torch.unique(torch.cat([own, both_ways[twice]]))
        indptr = torch.searchsorted(union, n * torch.arange(n + 1, device=union.device))
        values = adjacency.values.new_zeros(replicas, len(union))
        values[:, torch.searchsorted(union, own)] = adjacency.values
        positions = torch.searchsorted(union, both_ways).clamp_max(max(0, len(union) - 1))
        base = SparseMatrix(Pattern(indptr, union % n, n), values)
        return cls(base, pairs, valid, positions)

    def with_edges(self, sampled: Tensor) -> SparseMatrix:
        """Return the graph with the sampled edges; differentiable in ``sampled``.

        ``sampled`` ``(R, P)`` multiplies the weight of the edge, or the mean weight if it is new.
        """
        counted = torch.cat([sampled * self.valid, sampled * self.valid], dim=1) * self.weights
        return self.base.with_values(self.rest.scatter_add(1, self.positions, counted))

    @cached_property
    def weights(self) -> Tensor:
        """``(R, 2P)`` weight of each pair as an edge."""
        own = self.base.values.gather(1, self.positions)
        present = self.base.values[self.base.values > 0]
        return torch.where(own > 0, own, present.mean() if present.numel() else 1.0)

    @cached_property
    def rest(self) -> Tensor:
        """``(R, E)`` the values of the graph, zero for the listed pairs."""
        twice = torch.cat([self.valid, self.valid], dim=1)
        listed = torch.zeros_like(self.base.values).scatter_add(
            1, self.positions, twice.to(self.base.values.dtype)
        )
        return self.base.values * (listed == 0)
