"""The node pairs that the edge predictor may change: a short list, never all pairs."""

from __future__ import annotations

import torch
from torch import Tensor

from dcgst.methods.core.problem import Problem
from dcgst.numerics.similarity import SimilarNodes
from dcgst.shift.cmd import weighted_mean

SIMILAR = 20
"""Similar nodes to which each shifted node may be connected."""

QUERIES = 20_000
"""Maximum number of nodes whose similar nodes are searched for pairs by feature similarity."""


def list_pairs(
    z: Tensor, labeled: Tensor, problem: Problem, num_nodes: int, num_pairs: int
) -> Tensor:
    """``(R, P, 2)`` pairs around shifted nodes and by similarity; P is at most m * SIMILAR + e.

    Args:
        z: ``(R, n, d)`` the representation in which shift is measured.
        labeled: ``(R, n)`` bool.
        problem: the input.
        num_nodes: m.
        num_pairs: e.
    """
    # Departure 1 (docs/methods/dcgst.md): the paper lets every pair with one of the m nodes change.
    # Here, each of them may gain or lose an edge to its most similar nodes.
    similar = problem.graph.similar_nodes(SIMILAR)
    by_features = pairs_by_similarity(problem, similar, num_pairs)
    nodes = most_shifted(z, labeled, problem.pool, min(num_nodes, labeled.shape[1]))
    partners, _ = similar.of(nodes)  # (R, m, SIMILAR)
    around = torch.stack([nodes[..., None].expand_as(partners), partners], dim=-1)
    return torch.cat([around.flatten(1, 2), by_features.expand(len(labeled), -1, -1)], dim=1)


def most_shifted(z: Tensor, labeled: Tensor, pool: Tensor, count: int) -> Tensor:
    """``(R, count)`` the nodes that contribute most to the shift between labeled and pool nodes.

    The central moments of a single node are zero, so only the first term of its CMD depends on it:
    the distance to the mean of the other sample. Half of the nodes are the labeled ones farthest
    from the pool, if there are that many; the others are the pool nodes farthest from the labeled
    ones.

    Args:
        z: ``(R, n, d)``.
        labeled: ``(R, n)`` bool.
        pool: ``(R, n)`` bool.
        count: number of nodes.
    """
    # Priority: labeled nodes 0 … count // 2 - 1, pool nodes from count // 2 on, others 2n.
    n = z.shape[1]
    places = []
    for members, others in ((labeled, pool), (pool, labeled)):
        mean = weighted_mean(z, others.to(z.dtype))
        distance = (z - mean.unsqueeze(-2)).square().sum(-1).masked_fill(~members, -1)
        order = distance.argsort(dim=1, descending=True, stable=True)
        place = torch.arange(n, device=z.device).expand_as(order)
        ranked = torch.empty_like(order).scatter(1, order, place)
        places.append(ranked.masked_fill(~members, 2 * n))
    first = torch.where(places[0] < count // 2, places[0], 2 * n)
    return torch.minimum(first, places[1] + count // 2).argsort(dim=1, stable=True)[:, :count]


def pairs_by_similarity(problem: Problem, similar: SimilarNodes, count: int) -> Tensor:
    """``(1, P, 2)``, P ≤ count: half similar but not connected, half connected but dissimilar."""
    pattern = problem.adjacency.pattern
    n = pattern.num_rows
    if count == 0:
        return torch.zeros(1, 0, 2, dtype=torch.long, device=pattern.indices.device)
    queries = torch.arange(0, n, max(1, -(-n // QUERIES)), device=pattern.indices.device)
    partners, cosines = similar.of(queries)
    pairs = torch.stack([queries[:, None].expand_as(partners), partners], dim=-1).flatten(0, 1)
    apart = ~torch.isin(pairs[:, 0] * n + pairs[:, 1], pattern.rows * n + pattern.indices)
    pairs, cosines = _unique_pairs(pairs[apart], cosines.flatten()[apart], n)
    closest = pairs[cosines.topk(min(count // 2, len(cosines))).indices]

    upward = pattern.rows < pattern.indices
    edges = torch.stack([pattern.rows[upward], pattern.indices[upward]], dim=-1)
    along = similar.along(edges)
    weakest = along.topk(min(count // 2, len(along)), largest=False).indices
    return torch.cat([closest, edges[weakest]]).unsqueeze(0)


def _unique_pairs(pairs: Tensor, cosines: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Each unordered pair once, with its cosine."""
    keys = pairs.min(1).values * n + pairs.max(1).values
    unique, inverse = torch.unique(keys, return_inverse=True)
    best = cosines.new_full((len(unique),), float("-inf"))
    best = best.scatter_reduce(0, inverse, cosines, "amax")
    return torch.stack([unique // n, unique % n], dim=-1), best
