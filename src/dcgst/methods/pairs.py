"""Which pairs of nodes the edge predictor may change: a short list, never all."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dcgst.engine.similarity import SimilarNodes
from dcgst.methods.outcome import Problem
from dcgst.shift.cmd import farthest

QUERIES = 20_000
"""Nodes whose similar nodes are looked up for pairs by features alone; on larger graphs a part."""


@dataclass(frozen=True)
class PairSettings:
    """How many pairs.

    Attributes:
        nodes: m, nodes around which edges may change.
        similar: how many similar nodes each of them may be joined to.
        pairs: e, pairs by features alone: similar but not joined, joined but not similar.
    """

    nodes: int
    similar: int
    pairs: int


def list_pairs(z: Tensor, labels: Tensor, problem: Problem, settings: PairSettings) -> Tensor:
    """``(R, m * similar + e, 2)`` pairs around the nodes that shift in z, and by features."""
    # 1. The paper lets every pair with one of the m nodes change. Here each has its most similar
    #    nodes to be joined to; its own edges may go if they are among the least similar of all.
    similar = problem.once("similar", lambda: SimilarNodes(problem.x, settings.similar))
    by_features = problem.once("pairs", lambda: similar_or_not(problem, similar, settings.pairs))
    nodes = farthest(z, labels >= 0, problem.pool, min(settings.nodes, labels.shape[1]))
    partners, _ = similar.of(nodes)  # (R, m, similar)
    around = torch.stack([nodes[..., None].expand_as(partners), partners], dim=-1)
    return torch.cat([around.flatten(1, 2), by_features.expand(len(labels), -1, -1)], dim=1)


def similar_or_not(problem: Problem, similar: SimilarNodes, count: int) -> Tensor:
    """``(1, count, 2)`` pairs: half similar but not joined, half joined but not similar."""
    pattern = problem.adjacency.pattern
    n = pattern.num_rows
    if count == 0:
        return torch.zeros(1, 0, 2, dtype=torch.long, device=pattern.indices.device)
    queries = torch.arange(0, n, max(1, -(-n // QUERIES)), device=pattern.indices.device)
    partners, cosines = similar.of(queries)
    pairs = torch.stack([queries[:, None].expand_as(partners), partners], dim=-1).flatten(0, 1)
    apart = ~torch.isin(pairs[:, 0] * n + pairs[:, 1], pattern.rows * n + pattern.indices)
    pairs, cosines = _once_each(pairs[apart], cosines.flatten()[apart], n)
    closest = pairs[cosines.topk(min(count // 2, len(cosines))).indices]

    upward = pattern.rows < pattern.indices
    edges = torch.stack([pattern.rows[upward], pattern.indices[upward]], dim=-1)
    along = similar.along(edges)
    weakest = along.topk(min(count // 2, len(along)), largest=False).indices
    return torch.cat([closest, edges[weakest]]).unsqueeze(0)


def _once_each(pairs: Tensor, cosines: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Each unordered pair once, with its cosine."""
    keys = pairs.min(1).values * n + pairs.max(1).values
    kept, inverse = torch.unique(keys, return_inverse=True)
    best = cosines.new_full((len(kept),), float("-inf"))
    best = best.scatter_reduce(0, inverse, cosines, "amax")
    return torch.stack([kept // n, kept % n], dim=-1), best
