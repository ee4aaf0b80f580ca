"""Samplers of labeled nodes, from representative to biased."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dcgst.shift.ppr import ppr_distances, ppr_push
from dcgst.splits.sample import Request

Nodes = NDArray[np.int64]

EXACT_UP_TO = 20_000
"""Number of nodes up to which ppr-s compares exact PageRank rows; larger graphs use push."""

TELEPORT = 0.1
PROTOCOL = {
    ("cora", 2708): (1500, 0.01),
    ("citeseer", 3327): (1000, 0.1),
    ("pubmed", 19717): (10_000, 0.1),
}
"""Settings of PPR-S for the released seeds: labels come from the first nodes only; teleport."""

PUSH_TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


def sample_uniform(request: Request) -> list[Nodes]:
    """Draw uniformly within each class."""
    return _draw_weighted(request, np.ones(request.graph.num_nodes))


def sample_by_degree(request: Request) -> list[Nodes]:
    """Draw with probability proportional to the degree: popular nodes are labeled first."""
    return _draw_weighted(request, request.graph.degrees + 1e-3)


def _draw_weighted(request: Request, weights: NDArray[np.floating]) -> list[Nodes]:
    """Draw without replacement within each class, by the Gumbel-top-k method."""
    draws = []
    for run in request.runs:
        key = np.log(weights) + request.rng(run).gumbel(size=weights.size)
        per_class = [request.members(label) for label in range(request.graph.num_classes)]
        chosen = [m[smallest(-key[m], request.count(m))] for m in per_class]
        draws.append(np.concatenate(chosen))
    return draws


def sample_by_ppr(request: Request) -> list[Nodes]:
    """PPR-S: the nodes of each class closest to one random root in personalized PageRank.

    (Zhu et al., NeurIPS 2021, https://arxiv.org/abs/2108.01099.) Small graphs compare PageRank
    rows, as for the released seeds. Large graphs use the PageRank of a walk from the root.
    """
    graph = request.graph
    first, teleport = PROTOCOL.get((graph.name, graph.num_nodes), (None, TELEPORT))
    members = [request.members(label, first) for label in range(graph.num_classes)]
    generators = [request.rng(run) for run in request.runs]
    roots = np.array([[rng.choice(nodes) for nodes in members] for rng in generators])
    if graph.num_nodes <= EXACT_UP_TO:
        return _closest_exact(request, roots, members, teleport)
    return [
        np.concatenate(
            [closest_by_push(request, r, m, teleport) for r, m in zip(row, members, strict=True)]
        )
        for row in roots
    ]


def _closest_exact(
    request: Request, roots: Nodes, members: list[Nodes], teleport: float
) -> list[Nodes]:
    chosen: list[list[Nodes]] = [[] for _ in roots]
    for label, nodes in enumerate(members):
        distances = ppr_distances(request.graph.adjacency, roots[:, label], nodes, teleport)
        for run, row in enumerate(distances):
            chosen[run].append(nodes[smallest(row, request.count(nodes))])
    return [np.concatenate(blocks) for blocks in chosen]


def closest_by_push(request: Request, root: int, members: Nodes, teleport: float) -> Nodes:
    """The members with the largest PageRank from the root.

    The tolerance decreases until enough members are reached. If the smallest tolerance reaches too
    few, for example in a small component, the rest is drawn at random from the other members.
    """
    count = request.count(members)
    for tolerance in PUSH_TOLERANCES:
        score = ppr_push(request.graph.adjacency, root, teleport, tolerance)[members]
        reached = members[smallest(-score, count)][: int((score > 0).sum())]
        if reached.size == count:
            return reached
    others = np.setdiff1d(members, reached)
    rng = np.random.default_rng([request.seed, root])
    return np.concatenate([reached, rng.choice(others, count - reached.size, False)])


def smallest(values: NDArray[np.float64], count: int) -> Nodes:
    """Positions of the smallest values, in order; ties by position."""
    return np.argsort(values, kind="stable")[:count]
