"""Which pseudo-labels to trust: candidates by confidence, then the subset that closes the shift.

All functions work on R runs side by side. Sets of nodes are masks ``(R, n)``, so that runs with
candidate sets of different sizes fit together.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dcgst.shift.cmd import WeightedCMD


def ranks(order_by: Tensor, members: Tensor, groups: Tensor | None = None) -> Tensor:
    """Place of each member within its group, the largest value first.

    Args:
        order_by: ``(R, n)`` what to sort by; equal values keep the order of the nodes.
        members: ``(R, n)`` bool, who takes part.
        groups: ``(R, n)`` codes from 0; by default all members are one group.

    Returns:
        ``(R, n)``, from 0; n for nodes that do not take part.
    """
    n = order_by.shape[1]
    if groups is None:
        groups = torch.zeros_like(order_by, dtype=torch.long)
    order = order_by.masked_fill(~members, float("-inf")).argsort(
        dim=1, descending=True, stable=True
    )
    # Sorting again by group, stably, puts each group's members side by side, the largest first.
    outside = int(groups.max()) + 1 if groups.numel() else 1
    group = torch.where(members, groups, outside).gather(1, order)
    group, by_group = group.sort(dim=1, stable=True)
    order = order.gather(1, by_group)
    place = torch.arange(n, device=order.device).expand_as(order)
    first = torch.searchsorted(group, group)  # where the group begins
    return torch.full_like(order, n).scatter(1, order, place - first).masked_fill(~members, n)


@dataclass(frozen=True)
class Objective:
    r"""What makes a subset good: :math:`D(Z_U, Z_{C' \cup V_L}) - \gamma\,NER(N(C'))`.

    Attributes:
        hidden: ``(R, n, d)`` the representation Z.
        labeled: ``(R, n)`` bool, the given labels :math:`V_L`.
        pool: ``(R, n)`` bool, the unlabeled nodes U.
        gain: ``(R, n)`` what each node brings, γ included; γ·NER in the paper.
        moments: of the CMD.
        support: :math:`|b - a|` of the CMD; None for the range of Z.
    """

    hidden: Tensor
    labeled: Tensor
    pool: Tensor
    gain: Tensor
    moments: int = 5
    support: float | None = None

    def over(self, nodes: Tensor) -> WeightedCMD:
        """The CMD as a function of weights on the given nodes ``(R, k)``."""
        return WeightedCMD(
            self.hidden,
            nodes,
            target=self.pool.to(self.hidden.dtype),
            fixed=self.labeled.to(self.hidden.dtype),
            moments=self.moments,
            support=self.support,
        )

    def value(self, subset: Tensor) -> Tensor:
        """``(R,)`` the objective of a subset, a mask ``(R, n)``, or of weights."""
        nodes = torch.arange(subset.shape[1], device=subset.device).expand_as(subset)
        chosen = subset.to(self.hidden.dtype)
        return self.over(nodes)(chosen) - (self.gain * chosen).sum(1)


def optimise(
    objective: Objective,
    candidates: Tensor,
    budget: Tensor,
    *,
    constraint: str = "projection",
    steps: int = 100,
    lr: float = 0.1,
) -> Tensor:
    r"""The relaxed choice :math:`q \in [0,1]^{|C|}` that minimises the objective.

    Args:
        objective: what to minimise.
        candidates: ``(R, n)`` bool.
        budget: ``(R,)`` δ, how many are to be chosen.
        constraint: ``penalty`` adds :math:`\max(0, \lVert q\rVert_1 - \delta)` and clips, as the
            paper does; it bounds the sum from above only. ``projection`` keeps
            :math:`\lVert q\rVert_1 = \delta` at every step.
        steps: gradient steps.
        lr: how far q moves in a step, at most.

    Returns:
        ``(R, n)``, zero outside of the candidates.
    """
    most = int(candidates.sum(1).max())
    result = torch.zeros_like(objective.gain)
    if most == 0:
        return result
    nodes = candidates.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :most]
    inside = candidates.gather(1, nodes)  # (R, k); runs with fewer candidates are padded
    count = inside.sum(1).clamp_min(1)
    share = (budget / count).clamp_max(1)[:, None]
    distance = objective.over(nodes)
    gain = objective.gain.gather(1, nodes)
    q = (share * inside).to(gain.dtype)
    speed = torch.zeros_like(q)
    for step in range(steps):
        q.requires_grad_(True)
        value = distance(q) - (gain * q).sum(1)
        if constraint == "penalty":
            value = value + (q.sum(1) - budget).clamp_min(0)
        (slope,) = torch.autograd.grad(value.sum(), q)
        with torch.no_grad():
            slope = slope.masked_fill(~inside, 0)
            if constraint == "projection":  # what all candidates share cannot change the choice
                slope = (slope - slope.sum(1, keepdim=True) / count[:, None]) * inside
            speed = 0.9 * speed + slope
            largest = speed.abs().amax(1, keepdim=True).clamp_min(1e-30)
            q = (q - lr * (1 - step / steps) * speed / largest).clamp(0, 1) * inside
            if constraint == "projection":
                q = project(q, inside, budget)
    return result.scatter(1, nodes, q.detach() * inside)


def project(q: Tensor, inside: Tensor, budget: Tensor, iterations: int = 24) -> Tensor:
    """The nearest point to ``q`` in [0, 1]^k whose sum is the budget, or as near it as can be."""
    low, high = -torch.ones_like(q[:, :1]), torch.ones_like(q[:, :1])
    for _ in range(iterations):
        middle = (low + high) / 2
        too_small = ((q - middle).clamp(0, 1) * inside).sum(1, keepdim=True) < budget[:, None]
        low, high = torch.where(too_small, low, middle), torch.where(too_small, middle, high)
    return (q - low).clamp(0, 1) * inside


def choose(
    q: Tensor,
    confidence: Tensor,
    candidates: Tensor,
    budget: Tensor,
    labels: Tensor | None = None,
) -> Tensor:
    """The candidates with the largest q; of equal ones the more confident.

    Args:
        q: ``(R, n)``.
        confidence: ``(R, n)``.
        candidates: ``(R, n)`` bool.
        budget: ``(R,)`` how many of all, or with labels ``(R, C)`` how many of each class.
        labels: ``(R, n)`` the predicted class.

    Returns:
        ``(R, n)`` bool.
    """
    # q in a thousand levels, so that what is equal but for rounding errors counts as equal
    score = (q * 1000).round().double() + ranks(-confidence, candidates) / (2 * q.shape[1])
    place = ranks(score, candidates, labels)
    limit = budget[:, None] if labels is None else budget.gather(1, labels)
    return candidates & (place < limit)
