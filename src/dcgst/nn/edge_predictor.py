"""The edge predictor: graph variants on a short list of node pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dcgst.engine.random import Streams
from dcgst.engine.sparse import Pattern, SparseMatrix
from dcgst.nn.base import Features
from dcgst.nn.gcn import GCN, symmetric_normalised


class EdgePredictor(nn.Module):
    r"""Probabilities of edges, :math:`M_{ij} = \sigma(t_i^\top t_j)`, :math:`T = GCN(A, X)`.

    R replicas side by side, each with its own pairs. Probabilities are computed for pairs that are
    asked for, never for all.

    Args:
        seeds: one per replica.
        num_features: columns of the features.
        width: of the representation T and of the layer before it.
        dropout: while training.
    """

    def __init__(
        self, seeds: Sequence[int], num_features: int, width: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.gcn = GCN(seeds, num_features, width, width, dropout)

    def forward(
        self, x: Features, operator: SparseMatrix, streams: Streams | None = None
    ) -> Tensor:
        """``(R, n, width)``: T. The operator is that of :func:`symmetric_normalised`."""
        representation: Tensor = self.gcn(x, operator, streams).logits
        return representation

    operator = staticmethod(symmetric_normalised)


def pair_logits(representation: Tensor, pairs: Tensor) -> Tensor:
    """``(R, P)`` log-odds of an edge between the ends of ``(R, P, 2)`` or ``(P, 2)`` pairs."""
    replicas, n, width = representation.shape
    pairs = pairs.expand(replicas, -1, 2)
    flat = representation.reshape(replicas * n, width)
    start = n * torch.arange(replicas, device=pairs.device)[:, None]
    ends = [flat.index_select(0, (pairs[..., end] + start).flatten()) for end in (0, 1)]
    return (ends[0] * ends[1]).sum(-1).view(replicas, -1)


def sample_edges(
    logits: Tensor, streams: Streams, *, temperature: float = 1.2, noise: str = "logistic"
) -> Tensor:
    r"""Draw each edge or not, 1 or 0, with the gradient of the relaxed draw.

    .. math:: a = \lfloor \sigma((\ell + G) / \tau) + \tfrac12 \rfloor

    Args:
        logits: ``(R, P)`` log-odds ℓ.
        streams: randomness.
        temperature: τ.
        noise: ``logistic`` draws an edge with probability σ(ℓ). ``gumbel`` is what the paper's
            formula says, :math:`\log \sigma(\ell)` plus one Gumbel variate, by which an edge is
            drawn with probability :math:`1 - e^{-\sigma(\ell)}`, at most .63.
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
    representation: Tensor, pattern: Pattern, streams: Streams, count: int = 4096
) -> Tensor:
    """``(R,)`` binary cross entropy of sampled edges and as many sampled pairs of any nodes.

    Over all pairs edges are a vanishing share; here both kinds weigh the same.
    """
    n = representation.shape[1]
    if pattern.num_entries == 0:
        return 0 * representation.flatten(1).sum(1)
    draws = streams.uniform(3, count)
    entries = _whole(draws[:, 0], pattern.num_entries)
    edges = torch.stack([pattern.rows[entries], pattern.indices[entries]], dim=-1)
    others = torch.stack([_whole(draws[:, 1], n), _whole(draws[:, 2], n)], dim=-1)
    logits = pair_logits(representation, torch.cat([edges, others], dim=1))
    positive, negative = logits[:, :count], logits[:, count:]
    return (F.softplus(-positive).mean(1) + F.softplus(negative).mean(1)) / 2


def _whole(uniform: Tensor, below: int) -> Tensor:
    """Whole numbers from 0 to ``below`` - 1 from numbers in [0, 1)."""
    return (uniform.double() * below).long().clamp_max(below - 1)


@dataclass(frozen=True)
class Variants:
    """A graph whose listed pairs may change, replica by replica.

    One pattern holds the edges and every pair of every replica; a pair that is not in the graph
    has weight zero unless it is drawn. So replicas with different pairs share their products.
    """

    base: SparseMatrix
    """The graph with all listed pairs; values ``(R, E)``, those of the graph itself."""
    pairs: Tensor
    """``(R, P, 2)`` node pairs, each at most once"""
    valid: Tensor
    """``(R, P)`` bool: pairs that count; the others fill up."""
    places: Tensor
    """``(R, 2P)`` where the pairs stand among the values, there and back"""

    @classmethod
    def of(cls, adjacency: SparseMatrix, pairs: Tensor) -> Variants:
        """The variants of a graph on pairs ``(R, P, 2)``; loops and repetitions do not count."""
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
        places = torch.searchsorted(union, both_ways).clamp_max(max(0, len(union) - 1))
        base = SparseMatrix(Pattern(indptr, union % n, n), values)
        return cls(base, pairs, valid, places)

    def with_edges(self, drawn: Tensor) -> SparseMatrix:
        """The graph where each listed pair is there or not as ``drawn`` says; differentiable.

        ``drawn`` ``(R, P)`` multiplies the edge's own weight, or the mean weight if it is new.
        """
        counted = torch.cat([drawn * self.valid, drawn * self.valid], dim=1) * self.weights
        return self.base.with_values(self.rest.scatter_add(1, self.places, counted))

    @cached_property
    def weights(self) -> Tensor:
        """``(R, 2P)`` what a pair weighs if it is drawn."""
        own = self.base.values.gather(1, self.places)
        there = self.base.values[self.base.values > 0]
        return torch.where(own > 0, own, there.mean() if there.numel() else 1.0)

    @cached_property
    def rest(self) -> Tensor:
        """``(R, E)`` the values without those of the listed pairs."""
        twice = torch.cat([self.valid, self.valid], dim=1)
        listed = torch.zeros_like(self.base.values).scatter_add(
            1, self.places, twice.to(self.base.values.dtype)
        )
        return self.base.values * (listed == 0)
