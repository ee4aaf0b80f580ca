"""Which nodes to label next, so that the labels become representative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from dcgst.engine.random import derive
from dcgst.engine.smoothing import Filter, SmoothedFeatures
from dcgst.engine.sparse import SparseMatrix
from dcgst.errors import InputError
from dcgst.graph import Graph
from dcgst.methods.stages import shift
from dcgst.nn.base import features_on
from dcgst.nn.gcn import symmetric_normalised
from dcgst.shift.ner import entropy

CANDIDATES, WITNESSES = 2000, 5000
"""The most nodes that are weighed against each other, and for how many others' sake."""

DIMENSIONS = 32
SHARPNESS = 4
"""Power of the cosine: only what is quite alike counts as near."""


@dataclass(frozen=True)
class Suggestion:
    """A node to label, and what that would do.

    Attributes:
        node: its place.
        predicted: the class it is believed to have.
        probability: how likely that is.
        entropy: how uncertain the node is, in nats.
        covers: how much uncertainty lies near it that no label is near to, as a share of all.
    """

    node: int
    predicted: int
    probability: float
    entropy: float
    covers: float


@dataclass(frozen=True)
class Suggestions:
    """Nodes to label, the most useful first, and what they would do together.

    Attributes:
        nodes: the nodes.
        shift_before: CMD of the labeled nodes against the others in the smoothed features.
        shift_after: the same if these were labeled.
        covered_before: share of the uncertainty that lies near a label.
        covered_after: the same if these were labeled.
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
    r"""Choose nodes that lie near much uncertainty and far from all labels.

    .. math:: \max_S \sum_v H(p_v) \max_{s \in S \cup L} \mathrm{sim}(v, s)

    one after the other, each the best given those before; sim is the fourth power of the cosine of
    features smoothed over the graph. In large graphs this is done on a random part of the nodes.

    Args:
        graph: the graph.
        proba: ``(n, C)`` what is believed.
        labeled: ``(n,)`` bool, whose class is known.
        count: how many.
        seed: decides that part.
    """
    pool = np.flatnonzero(~labeled)
    most = min(pool.size, CANDIDATES)
    if not 1 <= count <= most:
        raise InputError(f"from 1 to {most} nodes can be suggested, got {count}")
    z = smoothed(graph)
    doubt = entropy(torch.from_numpy(np.log(np.clip(proba, 1e-12, 1)))).clamp_min(1e-6)
    rng = np.random.default_rng(derive(seed, 5))
    candidates = torch.from_numpy(np.sort(rng.permutation(pool)[:CANDIDATES]))
    witnesses = torch.from_numpy(np.sort(rng.permutation(pool)[:WITNESSES]))
    weight = doubt[witnesses] / doubt[witnesses].sum()
    near = nearest(z[witnesses], z[np.flatnonzero(labeled)])
    before = float((weight * near).sum())
    chosen, gains = cover(z[candidates], z[witnesses], weight, near, count)
    nodes = candidates[chosen].tolist()
    found = [
        Suggestion(
            node,
            int(proba[node].argmax()),
            float(proba[node].max()),
            float(doubt[node]),
            gain,
        )
        for node, gain in zip(nodes, gains, strict=True)
    ]
    after = labeled.copy()
    after[nodes] = True
    shifts = [_shift(z, mask) for mask in (labeled, after)]
    return Suggestions(found, shifts[0], shifts[1], before, before + sum(gains))


def cover(
    candidates: Tensor, witnesses: Tensor, weight: Tensor, near: Tensor, count: int
) -> tuple[list[int], list[float]]:
    """Candidates, best first, by how much nearer they bring the witnesses to a label.

    Args:
        candidates: ``(m, d)`` unit rows.
        witnesses: ``(w, d)`` unit rows.
        weight: ``(w,)`` what each witness counts.
        near: ``(w,)`` how near the nearest label is.
        count: how many to choose.

    Returns:
        their places, and what each adds to those before.
    """
    similar = likeness(candidates, witnesses)  # (m, w)
    chosen: list[int] = []
    gains: list[float] = []
    for _ in range(count):
        gain = (similar - near).clamp_min(0) @ weight
        gain[chosen] = -1.0
        best = int(gain.argmax())
        chosen.append(best)
        gains.append(float(gain[best]))
        near = torch.maximum(near, similar[best])
    return chosen, gains


def nearest(z: Tensor, others: Tensor) -> Tensor:
    """``(w,)`` how like each row is to the likest among others; 0 if there are none."""
    found = z.new_zeros(len(z))
    for block in torch.split(others, CANDIDATES):
        found = torch.maximum(found, likeness(z, block).amax(1))
    return found


def likeness(one: Tensor, other: Tensor) -> Tensor:
    """``(m, w)`` from 0 to 1, of unit rows."""
    return (one @ other.T).clamp_min_(0) ** SHARPNESS


def smoothed(graph: Graph, dimensions: int = DIMENSIONS) -> Tensor:
    """``(n, d)`` features averaged over two hops, their leading directions, rows of unit length."""
    x: Any = features_on(graph.features)
    operator = symmetric_normalised(SparseMatrix.from_scipy(graph.adjacency))
    view = SmoothedFeatures(x, operator, Filter(0.1, 4), dimensions).view(dimensions, 0.5)
    return F.normalize(view, dim=-1)


def _shift(z: Tensor, labeled: NDArray[np.bool_]) -> float:
    mask = torch.from_numpy(labeled)[None]
    return float(shift(z[None], torch.where(mask, 0, -1), ~mask)[0])
