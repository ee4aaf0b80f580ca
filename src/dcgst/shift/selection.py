"""Selection of pseudo-labels: the subset of candidates that minimizes the shift.

All functions work on R fits together. Sets of nodes are masks ``(R, n)``, so that fits with
candidate sets of different sizes can be computed together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from dcgst.shift.cmd import WeightedCMD
from dcgst.train.training import Repeated

STEPS = 50
"""Steps of the selection; the paper gives no number."""


def ranks(order_by: Tensor, members: Tensor, groups: Tensor | None = None) -> Tensor:
    """Rank of each member within its group, largest value first.

    Args:
        order_by: ``(R, n)`` values to sort by; ties keep the node order.
        members: ``(R, n)`` bool, nodes to rank.
        groups: ``(R, n)`` codes from 0; default: one group.

    Returns:
        ``(R, n)``, from 0; n for other nodes.

    Example:
        >>> members = torch.tensor([[True, True, False, True]])
        >>> ranks(torch.tensor([[0.1, 0.9, 0.5, 0.3]]), members)
        tensor([[2, 0, 4, 1]])
    """
    n = order_by.shape[1]
    if groups is None:
        groups = torch.zeros_like(order_by, dtype=torch.long)
    order = order_by.masked_fill(~members, float("-inf")).argsort(
        dim=1, descending=True, stable=True
    )
    # A second stable sort by group places the members of each group together, largest first.
    outside = torch.iinfo(groups.dtype).max
    group = torch.where(members, groups, outside).gather(1, order)
    group, by_group = group.sort(dim=1, stable=True)
    order = order.gather(1, by_group)
    position = torch.arange(n, device=order.device).expand_as(order)
    start = torch.searchsorted(group, group)  # position of the first member of the group
    return torch.full_like(order, n).scatter(1, order, position - start).masked_fill(~members, n)


@dataclass(frozen=True)
class SelectionObjective:
    r"""The objective of a subset, :math:`D(Z_U, Z_{C' \cup V_L}) - \gamma\,NER(N(C'))`.

    Attributes:
        z: ``(R, n, d)`` the embedding Z.
        labeled: ``(R, n)`` bool, the training labels :math:`V_L`.
        pool: ``(R, n)`` bool, the nodes to predict U, candidates included.
        ner_term: ``(R, n)`` γ·NER of each node, in the unit of the CMD.
        support: :math:`|b-a|` of the CMD; None for the range of Z.
    """

    z: Tensor
    labeled: Tensor
    pool: Tensor
    ner_term: Tensor
    support: float | None = None

    def cmd_of(self, nodes: Tensor) -> WeightedCMD:
        """The CMD as a function of weights on the given nodes ``(R, k)``."""
        pool, labeled = self.pool.to(self.z.dtype), self.labeled.to(self.z.dtype)
        return WeightedCMD(self.z, nodes, target=pool, fixed=labeled, support=self.support)

    def value(self, subset: Tensor) -> Tensor:
        """``(R,)`` the objective of a subset, a mask or weights ``(R, n)``."""
        nodes = torch.arange(subset.shape[1], device=subset.device).expand_as(subset)
        weights = subset.to(self.z.dtype)
        return self.cmd_of(nodes)(weights) - (self.ner_term * weights).sum(1)


@dataclass(frozen=True)
class CandidateObjective:
    """The objective as a function of weights of the candidates alone; tensors ``(R, k)``.

    Attributes:
        nodes: the candidates; fits with fewer than k of them are padded.
        inside: bool, false where padded.
        distance: the CMD.
        ner_term: γ·NER.
    """

    nodes: Tensor
    inside: Tensor
    distance: WeightedCMD
    ner_term: Tensor

    @classmethod
    def of(cls, objective: SelectionObjective, candidates: Tensor) -> Self:
        """Restrict an objective to candidates ``(R, n)`` bool."""
        most = int(candidates.sum(1).max())
        nodes = candidates.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :most]
        inside = candidates.gather(1, nodes)
        return cls(nodes, inside, objective.cmd_of(nodes), objective.ner_term.gather(1, nodes))

    def value(self, weights: Tensor) -> Tensor:
        """``(R,)``; differentiable."""
        return self.distance(weights) - (self.ner_term * weights).sum(1)

    def scatter(self, weights: Tensor, size: int) -> Tensor:
        """``(R, size)`` the weights by node, zero for nodes that are not candidates."""
        result = weights.new_zeros(len(weights), size)
        return result.scatter(1, self.nodes, weights * self.inside)


def exchange(
    objective: SelectionObjective,
    candidates: Tensor,
    start: Tensor,
    groups: Tensor | None = None,
    *,
    steps: int = STEPS,
) -> Tensor:
    r"""Minimize the objective over subsets of the candidates, from a given subset.

    Each step exchanges selected candidates with the largest gradients for as many unselected ones
    with the smallest, as far as that decreases the linear approximation of the objective. If the
    objective itself does not decrease, nothing is exchanged, and the number that a step may
    exchange is halved.

    Args:
        objective: what to minimize.
        candidates: ``(R, n)`` bool.
        start: ``(R, n)`` bool, candidates that are selected at first. Their number stays the same.
        groups: ``(R, n)`` codes from 0; only candidates of one group are exchanged. Default: one
            group.
        steps: number of steps.

    Returns:
        ``(R, n)`` 1 for selected nodes, else 0.
    """
    if not candidates.any():
        return torch.zeros_like(objective.ner_term)
    of_candidates = CandidateObjective.of(objective, candidates)
    nodes, inside = of_candidates.nodes, of_candidates.inside
    group = torch.zeros_like(nodes) if groups is None else groups.gather(1, nodes)
    selected = start.gather(1, nodes) & inside
    count = nodes.new_zeros(len(nodes), int(group.max()) + 1)  # selected in each group
    limit = count.scatter_add(1, group, selected.long()).gather(1, group)
    weights = selected.to(objective.ner_term.dtype)
    most = weights.sum(1, keepdim=True)  # exchanges in each group in one step

    def step() -> Tensor:
        point = weights.detach().clone().requires_grad_(True)
        value = of_candidates.value(point)
        (gradient,) = torch.autograd.grad(value.sum(), point)
        with torch.no_grad():
            # The subset that minimizes the linear approximation: the lowest gradients.
            best = ranks(-gradient, inside, group) < limit
            remove, add = (weights == 1) & ~best, (weights == 0) & best
            remove &= ranks(gradient, remove, group) < most
            add &= ranks(-gradient, add, group) < most
            changed = weights - remove.to(weights.dtype) + add
            better = (of_candidates.value(changed) < value.detach())[:, None]
            weights.copy_(torch.where(better, changed, weights))
            most.copy_(torch.where(better, most, most / 2).clamp_min(1))
        return weights

    descend = Repeated(step, weights.device)
    for _ in range(steps):
        descend()
    return of_candidates.scatter(weights, candidates.shape[1])


def relaxed_selection(
    objective: SelectionObjective,
    candidates: Tensor,
    budget: Tensor,
    *,
    penalty: bool = False,
    steps: int = STEPS,
    lr: float = 0.1,
) -> Tensor:
    r"""Minimize the objective over :math:`q \in [0,1]^{|C|}, \lVert q\rVert_1 = \delta`.

    Projected gradient descent with momentum, from equal weights.

    Args:
        objective: what to minimize.
        candidates: ``(R, n)`` bool.
        budget: ``(R,)`` δ, the number of nodes to select.
        penalty: add :math:`\max(0, \lVert q\rVert_1 - \delta)` and clip q, as printed in the paper,
            which bounds the sum from above only. Else the sum is fixed by a projection.
        steps: gradient steps.
        lr: largest change of q in the first step; it decreases linearly.

    Returns:
        ``(R, n)`` q, zero for nodes that are not candidates.
    """
    if not candidates.any():
        return torch.zeros_like(objective.ner_term)
    of_candidates = CandidateObjective.of(objective, candidates)
    inside = of_candidates.inside
    count = inside.sum(1).clamp_min(1)
    q = ((budget / count).clamp_max(1)[:, None] * inside).to(objective.ner_term.dtype)
    velocity, done = torch.zeros_like(q), q.new_zeros(())  # done: steps

    def step() -> Tensor:
        point = q.detach().clone().requires_grad_(True)
        value = of_candidates.value(point)
        if penalty:
            value = value + (point.sum(1) - budget).clamp_min(0)
        (gradient,) = torch.autograd.grad(value.sum(), point)
        with torch.no_grad():
            gradient = gradient.masked_fill(~inside, 0)
            if not penalty:  # the sum of q is fixed, so a common offset changes nothing
                gradient = (gradient - gradient.sum(1, keepdim=True) / count[:, None]) * inside
            velocity.mul_(0.9).add_(gradient)
            largest = velocity.abs().amax(1, keepdim=True).clamp_min(torch.finfo(q.dtype).tiny)
            moved = (q - lr * (1 - done / steps) * velocity / largest).clamp(0, 1) * inside
            q.copy_(moved if penalty else project_to_budget(moved, inside, budget))
            done.add_(1)
        return q

    descend = Repeated(step, q.device)
    for _ in range(steps):
        descend()
    return of_candidates.scatter(q, candidates.shape[1])


def project_to_budget(q: Tensor, inside: Tensor, budget: Tensor) -> Tensor:
    r"""The nearest point to ``q`` in [0, 1]^k whose sum is the budget.

    It is :math:`\min(1, \max(0, q_i - t))`. Its sum is piecewise linear in t: as t decreases, entry
    i begins to grow at :math:`q_i` and is one at :math:`q_i - 1`. If the budget exceeds the number
    of entries inside, all of them are one.

    Args:
        q: ``(R, k)`` from 0 to 1.
        inside: ``(R, k)`` bool, entries that count; the others become zero.
        budget: ``(R,)``.

    Example:
        >>> q = torch.tensor([[0.9, 0.5, 0.1]])
        >>> project_to_budget(q, torch.ones(1, 3, dtype=torch.bool), torch.tensor([2.0]))
        tensor([[1.0000, 0.7000, 0.3000]])
    """
    grows = inside.to(q.dtype)
    points, order = torch.cat([q, q - 1], dim=1).sort(dim=1, descending=True)  # (R, 2k) values of t
    slopes = torch.cat([grows, -grows], dim=1).gather(1, order).cumsum(1)  # below each point
    sums = (slopes[:, :-1] * -points.diff(dim=1)).cumsum(1)  # at each point but the first, zero
    sums = F.pad(sums, (1, 0))
    last = torch.searchsorted(sums, budget[:, None].to(sums.dtype)).sub_(1).clamp_min_(0)
    missing = budget[:, None] - sums.gather(1, last)
    t = points.gather(1, last) - missing / slopes.gather(1, last).clamp_min(1)
    return (q - t).clamp(0, 1) * grows


def select_top(
    score: Tensor,
    confidence: Tensor,
    candidates: Tensor,
    budget: Tensor,
    labels: Tensor | None = None,
) -> Tensor:
    """Select the candidates with the largest score; ties by confidence.

    Args:
        score: ``(R, n)`` from 0 to 1. Differences below 1/1000 count as ties.
        confidence: ``(R, n)``.
        candidates: ``(R, n)`` bool.
        budget: ``(R,)`` number to select; with labels ``(R, C)``, number for each class.
        labels: ``(R, n)`` the predicted class.

    Returns:
        ``(R, n)`` bool.
    """
    rounded = (score * 1000).round().double()
    ordered = rounded + ranks(-confidence, candidates) / score.shape[1]
    place = ranks(ordered, candidates, labels)
    limit = budget[:, None] if labels is None else budget.gather(1, labels)
    return candidates & (place < limit)
