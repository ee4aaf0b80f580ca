"""Suggestion of nodes to label next, so that the labels become representative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from dcgst.engine.random import Purpose, derive
from dcgst.errors import InputError
from dcgst.graph import Graph
from dcgst.numerics.smoothing import smoothed_components
from dcgst.shift.cmd import labeled_shift
from dcgst.shift.ner import entropy

CANDIDATES, TARGETS = 2000, 5000
"""Maximum number of nodes to choose from, and of nodes whose uncertainty is to be covered."""

HOPS = 4
"""Smoothing steps of the features that similarity is computed from."""

SHARPNESS = 4
"""Power of the cosine: only very similar nodes count as similar."""


@dataclass(frozen=True)
class Suggestion:
    """A node to label.

    Attributes:
        node: its position.
        predicted: its predicted class.
        probability: the probability of that class.
        entropy: entropy of its prediction, in nats.
        covers: share of all uncertainty that its label would cover, in addition to the labels and
            suggestions before it.
    """

    node: int
    predicted: int
    probability: float
    entropy: float
    covers: float


@dataclass(frozen=True)
class Suggestions:
    """Nodes to label, most useful first, and their joint effect.

    Attributes:
        nodes: the nodes.
        shift_before: CMD between labeled and other nodes, in smoothed features.
        shift_after: the same if the suggested nodes were labeled.
        covered_before: share of the uncertainty that is covered by labels.
        covered_after: the same if the suggested nodes were labeled.
    """

    nodes: list[Suggestion]
    shift_before: float
    shift_after: float
    covered_before: float
    covered_after: float


def suggest(
    graph: Graph,
    proba: NDArray[np.float32],
    labeled: NDArray[np.bool_],
    count: int,
    *,
    seed: int = 0,
) -> Suggestions:
    r"""Choose nodes that are similar to many uncertain nodes and dissimilar to labeled ones.

    .. math:: \max_S \sum_v H(p_v) \max_{s \in S \cup L} \mathrm{sim}(v, s)

    solved greedily; sim is the fourth power of the cosine of features smoothed over four hops. On
    large graphs, random subsets of the nodes are used.

    Args:
        graph: the graph.
        proba: ``(n, C)`` predicted probabilities.
        labeled: ``(n,)`` bool, nodes of known class.
        count: number of nodes to suggest.
        seed: seed of the random subsets.

    Example:
        >>> from dcgst import EM, load, suggest
        >>> graph = load("synthetic")
        >>> found = suggest(graph, EM().fit(graph).proba_, graph.masks["train"], count=5)
        >>> len(found.nodes), found.covered_after > found.covered_before
        (5, True)
    """
    pool = np.flatnonzero(~labeled)
    most = min(pool.size, CANDIDATES)
    if not 1 <= count <= most:
        raise InputError(f"between 1 and {most} nodes can be suggested, got {count}")
    z = similarity_space(graph)
    uncertainty = entropy(torch.from_numpy(np.log(np.clip(proba, 1e-12, 1)))).clamp_min(1e-6)
    rng = np.random.default_rng(derive(seed, Purpose.SUGGESTION))
    candidates = torch.from_numpy(np.sort(rng.permutation(pool)[:CANDIDATES]))
    targets = torch.from_numpy(np.sort(rng.permutation(pool)[:TARGETS]))
    weight = uncertainty[targets] / uncertainty[targets].sum()
    covered = max_similarity(z[targets], z[np.flatnonzero(labeled)])
    before = float((weight * covered).sum())
    selected, gains = greedy_cover(z[candidates], z[targets], weight, covered, count)
    nodes = candidates[selected].tolist()
    suggestions = [
        Suggestion(
            node,
            predicted=int(proba[node].argmax()),
            probability=float(proba[node].max()),
            entropy=float(uncertainty[node]),
            covers=gain,
        )
        for node, gain in zip(nodes, gains, strict=True)
    ]
    after = labeled.copy()
    after[nodes] = True
    shifts = [_shift(z, mask) for mask in (labeled, after)]
    return Suggestions(suggestions, shifts[0], shifts[1], before, before + sum(gains))


def greedy_cover(
    candidates: Tensor, targets: Tensor, weight: Tensor, covered: Tensor, count: int
) -> tuple[list[int], list[float]]:
    """Choose candidates greedily by the increase of the weighted maximum similarity.

    Args:
        candidates: ``(m, d)`` unit rows.
        targets: ``(w, d)`` unit rows.
        weight: ``(w,)`` weight of each target.
        covered: ``(w,)`` similarity of each target to the most similar label.
        count: number to choose.

    Returns:
        positions of the selected candidates, and the increase by each.
    """
    similar = similarity(candidates, targets)  # (m, w)
    selected: list[int] = []
    gains: list[float] = []
    for _ in range(count):
        gain = (similar - covered).clamp_min(0) @ weight
        gain[selected] = -1.0
        best = int(gain.argmax())
        selected.append(best)
        gains.append(float(gain[best]))
        covered = torch.maximum(covered, similar[best])
    return selected, gains


def max_similarity(z: Tensor, others: Tensor) -> Tensor:
    """``(w,)`` similarity of each row to the most similar row of ``others``; 0 without others."""
    found = z.new_zeros(len(z))
    for block in torch.split(others, CANDIDATES) if len(others) else ():
        found = torch.maximum(found, similarity(z, block).amax(1))
    return found


def similarity(left: Tensor, right: Tensor) -> Tensor:
    """``(m, w)`` from 0 to 1, of unit rows."""
    return (left @ right.T).clamp_min_(0) ** SHARPNESS


def similarity_space(graph: Graph) -> Tensor:
    """``(n, d)`` leading components of the smoothed features, rows of unit length."""
    return F.normalize(smoothed_components(graph, HOPS, whitening=0.5), dim=-1)


def _shift(z: Tensor, labeled: NDArray[np.bool_]) -> float:
    mask = torch.tensor(labeled)[None]
    return float(labeled_shift(z[None], mask, ~mask)[0])
