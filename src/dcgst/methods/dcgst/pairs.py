"""The node pairs that the edge predictor may change: a short list, never all pairs."""

from __future__ import annotations

import torch
from torch import Tensor

from dcgst.methods.core.problem import Problem
from dcgst.numerics.similarity import SimilarNodes
from dcgst.shift.cmd import weighted_mean
from dcgst.shift.selection import ranks

NUM_SIMILAR = 20
"""Similar nodes to which each shifted node may be connected."""

MAX_QUERIES = 20_000
"""Maximum number of nodes whose similar nodes are searched for pairs by feature similarity."""


def list_pairs(
    problem: Problem, z: Tensor, labeled: Tensor, num_nodes: int, num_pairs: int
) -> Tensor:
    """``(R, P, 2)`` pairs around shifted nodes and by similarity; P is at most m * NUM_SIMILAR + e.

    Args:
        problem: the input.
        z: ``(R, n, d)`` the embedding in which the shift is measured.
        labeled: ``(R, n)`` bool.
        num_nodes: m.
        num_pairs: e.
    """
    # Departure 1 (docs/methods/dcgst.md): the paper lets every pair with one of the m nodes change.
    # Here, each of them may gain or lose an edge to its most similar nodes.
    # Departure 2: similar nodes are searched in blocks, and only for the nodes needed.
    similar = problem.graph.similar_nodes(NUM_SIMILAR)
    by_features = pairs_by_similarity(problem, similar, num_pairs)
    nodes = most_shifted(z, labeled, problem.pool, min(num_nodes, labeled.shape[1]))
    partners, _ = similar.of(nodes)  # (R, m, NUM_SIMILAR)
    of_shifted = torch.stack([nodes[..., None].expand_as(partners), partners], dim=-1)
    return torch.cat([of_shifted.flatten(1, 2), by_features.expand(len(labeled), -1, -1)], dim=1)


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
    # Departure 4: a node is ranked by this distance instead of its own CMD.
    rank = [
        ranks(_squared_distance(z, others), members)
        for members, others in ((labeled, pool), (pool, labeled))
    ]
    # Priority: labeled nodes 0 … count // 2 - 1, pool nodes from count // 2 on, others last.
    last = torch.iinfo(torch.long).max
    of_labeled = torch.where(rank[0] < count // 2, rank[0], last)
    of_pool = torch.where(pool, rank[1] + count // 2, last)
    return torch.minimum(of_labeled, of_pool).argsort(dim=1, stable=True)[:, :count]


def _squared_distance(z: Tensor, sample: Tensor) -> Tensor:
    """``(R, n)`` squared distance of each node to the mean of a sample ``(R, n)``."""
    mean = weighted_mean(z, sample.to(z.dtype))
    return (z - mean.unsqueeze(-2)).square().sum(-1)


def pairs_by_similarity(problem: Problem, similar: SimilarNodes, count: int) -> Tensor:
    """``(1, P, 2)``, P ≤ count: half similar but not connected, half connected but dissimilar."""
    pattern = problem.adjacency.pattern
    n = pattern.num_rows
    if count == 0:
        return torch.zeros(1, 0, 2, dtype=torch.long, device=pattern.indices.device)
    queries = torch.arange(0, n, max(1, -(-n // MAX_QUERIES)), device=pattern.indices.device)
    partners, cosines = similar.of(queries)
    pairs = torch.stack([queries[:, None].expand_as(partners), partners], dim=-1).flatten(0, 1)
    not_connected = ~torch.isin(pairs[:, 0] * n + pairs[:, 1], pattern.rows * n + pattern.indices)
    pairs, cosines = _unique_pairs(pairs[not_connected], cosines.flatten()[not_connected], n)
    most_similar = pairs[cosines.topk(min(count // 2, len(cosines))).indices]

    upper_triangle = pattern.rows < pattern.indices
    edges = torch.stack([pattern.rows[upper_triangle], pattern.indices[upper_triangle]], dim=-1)
    edge_cosines = similar.pair_cosines(edges)
    least_similar = edge_cosines.topk(min(count // 2, len(edge_cosines)), largest=False).indices
    return torch.cat([most_similar, edges[least_similar]]).unsqueeze(0)


def _unique_pairs(pairs: Tensor, cosines: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Each unordered pair once, with its cosine."""
    keys = pairs.min(1).values * n + pairs.max(1).values
    unique, inverse = torch.unique(keys, return_inverse=True)
    best = cosines.new_full((len(unique),), float("-inf"))
    best = best.scatter_reduce(0, inverse, cosines, "amax")
    return torch.stack([unique // n, unique % n], dim=-1), best
