"""Candidates for pseudo-labels, and the representation Z in which the shift is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dcgst.features.columns import Features, leading_directions, times, unit_rows
from dcgst.features.sparse import SparseMatrix, spmm
from dcgst.methods.problem import Problem
from dcgst.methods.result import Selection
from dcgst.nn.backbones import Output
from dcgst.shift.ner import neighborhood_entropy_reduction
from dcgst.shift.selection import ranks, select_top

REPRESENTATIONS = ("hidden", "tanh", "softmax", "propagated")
DIMENSIONS = 32


def representation(name: str, problem: Problem) -> Callable[[Output], Tensor]:
    """A function from the output of the network to Z, ``(R, n, d)``.

    Args:
        name: one of :data:`REPRESENTATIONS`.
        problem: the input.
    """
    if name == "propagated":
        fixed = propagated_features(problem.x, problem.graph.normalized)
        fixed = fixed.expand(problem.num_fits, -1, -1)
        return lambda output: fixed
    if name == "softmax":
        return lambda output: output.logits.softmax(-1)
    return lambda output: output.embedding.tanh() if name == "tanh" else output.embedding


def propagated_features(x: Features, operator: SparseMatrix) -> Tensor:
    r"""``(n, 32)`` leading principal components of :math:`\hat A^2 X`, rows of X of length one.

    They are divided by the largest absolute value. The space is the same for all methods, stages
    and networks.

    Args:
        x: X.
        operator: :math:`\hat A`.
    """
    x, count = unit_rows(x), min(DIMENSIONS, *x.shape)

    def smooth(z: Tensor) -> Tensor:
        return spmm(operator, spmm(operator, z))

    z = smooth(times(x, leading_directions(x, count, smooth, smooth)))
    left, values, _ = torch.linalg.svd(z.double(), full_matrices=False)
    scores = (left * values).to(z.dtype)
    result: Tensor = scores / scores.abs().max().clamp_min(torch.finfo(scores.dtype).tiny)
    return result


CLASS_BALANCE = ("none", "uniform", "balanced")


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The candidates of one stage in R fits, C of the paper; tensors ``(R, n)`` unless noted.

    Attributes:
        mask: bool, the candidates.
        predicted: predicted class of each node.
        confidence: its probability.
        rank: rank by confidence among the pool nodes of the same predicted class, from 0.
        ner: neighborhood entropy reduction of each node.
        budget: ``(R,)`` δ, the number of candidates to select.
        quotas: ``(R, C)`` the number to select of each predicted class; None: no limit by class.
        exhausted: ``(R,)`` bool, a larger K would not select more nodes.
    """

    mask: Tensor
    predicted: Tensor
    confidence: Tensor
    rank: Tensor
    ner: Tensor
    budget: Tensor
    quotas: Tensor | None
    exhausted: Tensor

    def equal_weights(self) -> Tensor:
        """``(R, n)`` q of a random subset of δ candidates, in expectation: δ/|C| everywhere."""
        share = self.budget / self.mask.sum(1).clamp_min(1)
        return share.clamp_max(1)[:, None] * self.mask

    def select(self, score: Tensor) -> Selection:
        """Select the candidates with the largest score ``(R, n)``."""
        limit, groups = (
            (self.budget, None) if self.quotas is None else (self.quotas, self.predicted)
        )
        selected = select_top(score, self.confidence, self.mask, limit, groups)
        return Selection(
            predicted=self.predicted,
            confidence=self.confidence,
            candidates=self.mask,
            rank=self.rank,
            selected=selected,
            selection_score=score,
            ner=self.ner,
        )


def find_candidates(
    problem: Problem,
    log_proba: Tensor,
    num_candidates: Tensor,
    class_balance: str,
    budget_of: str = "class",
) -> Candidates:
    """Find the K most confident pool nodes of each class.

    Args:
        problem: the input.
        log_proba: ``(R, n, C)``, up to a constant per node.
        num_candidates: ``(R,)`` K, a mean over classes.
        class_balance: one of :data:`CLASS_BALANCE`.
        budget_of: δ = K/2 for each ``class``, or in ``total``.
    """
    confidence, predicted = log_proba.softmax(-1).max(-1)
    per_class = candidates_per_class(problem, log_proba, num_candidates, class_balance)  # (R, C)
    rank = ranks(confidence, problem.pool, predicted)
    mask = problem.pool & (rank < per_class.gather(1, predicted))
    if class_balance == "none":
        quotas, most = None, (mask.sum(1) / 2).ceil()
        budget = most
        if budget_of == "total":
            budget = torch.minimum(most, (num_candidates / 2).ceil())
    else:  # departure 6: half of the candidates of each class
        available = torch.zeros_like(per_class).scatter_add(1, predicted, mask.to(per_class.dtype))
        share = problem.num_classes if budget_of == "total" else 1
        half = (available / 2).ceil()
        quotas = torch.minimum((per_class / 2 / share).ceil(), half)
        budget, most = quotas.sum(1), half.sum(1)
    return Candidates(
        mask=mask,
        predicted=predicted,
        confidence=confidence,
        rank=rank,
        ner=neighborhood_entropy_reduction(log_proba, problem.graph.normalized)
        * problem.graph.neighbor_factor,
        budget=budget,
        quotas=quotas,
        exhausted=~(problem.pool & ~mask).any(1) & (budget >= most),
    )


def candidates_per_class(
    problem: Problem, log_proba: Tensor, num_candidates: Tensor, class_balance: str
) -> Tensor:
    """``(R, C)`` K of each class: equal, or shared by how often each class is predicted."""
    count = problem.num_classes
    if class_balance != "balanced":
        return num_candidates.floor().clamp_min(1)[:, None].expand(-1, count)
    share = (log_proba.softmax(-1) * problem.pool[..., None]).sum(1).sqrt()
    share = share / share.sum(1, keepdim=True).clamp_min(1e-12)
    return (num_candidates[:, None] * count * share).ceil()
