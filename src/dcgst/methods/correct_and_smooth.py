"""Correct and Smooth (Huang et al., 2021): a plain model, then two propagations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dcgst.engine.smoothing import Filter
from dcgst.engine.sparse import SparseMatrix
from dcgst.methods.labels import one_hot
from dcgst.methods.neural import NeuralMethod
from dcgst.methods.outcome import Outcome, Problem
from dcgst.methods.params import param
from dcgst.nn import BACKBONES
from dcgst.nn.gcn import symmetric_normalised


@dataclass(eq=False, kw_only=True)
class CorrectAndSmooth(NeuralMethod):
    r"""Train a model on the features, then let its errors and the labels flow along the edges.

    **Correct.** What the model got wrong on the given labels, :math:`E = Y - P`, flows to the other
    nodes, :math:`\hat E \leftarrow \alpha_1 \hat A \hat E + (1-\alpha_1) E`, and is added to P,
    scaled to the mean error of the labeled nodes.

    **Smooth.** The result, with the given labels in place, flows likewise with :math:`\alpha_2`.
    """

    name: ClassVar[str] = "cs"

    backbone: str = param("mlp", "the network", choices=tuple(BACKBONES))
    correct_alpha: float = param(0.9, "share of the neighbours' errors", low=0, high=1, symbol="α₁")
    smooth_alpha: float = param(
        0.9, "share of the neighbours' predictions", low=0, high=1, symbol="α₂"
    )
    steps: int = param(50, "steps of both propagations", low=1)

    def solve(self, problem: Problem) -> Outcome:
        network = self.network(problem)
        training = network.train(problem.labels, problem, self.schedule)
        output = network.outputs()
        operator = symmetric_normalised(problem.adjacency)
        given = one_hot(problem)
        corrected = self.correct(output.logits.softmax(-1), given, operator)
        proba = self.smooth(corrected, given, operator)
        stages = self.book(output, training, problem)
        # No model: on another graph the network alone would be another method.
        return Outcome(proba, stages)

    def correct(self, proba: Tensor, given: Tensor, operator: SparseMatrix) -> Tensor:
        """``(R, n, C)`` predictions plus the errors that flowed there."""
        labeled = given.sum(-1, keepdim=True)
        error = (given - proba) * labeled
        flowed = Filter(1 - self.correct_alpha, self.steps)(operator, error)
        mean = error.abs().sum((1, 2), keepdim=True) / labeled.sum(1, keepdim=True)
        size = flowed.abs().sum(-1, keepdim=True)
        # Where hardly anything arrived, it would be blown up beyond all measure.
        scale = torch.where(size > mean / 1000, mean / size.clamp_min(1e-30), 1.0)
        return proba + scale * flowed

    def smooth(self, corrected: Tensor, given: Tensor, operator: SparseMatrix) -> Tensor:
        """``(R, n, C)`` probabilities from predictions and given labels smoothed together."""
        labeled = given.sum(-1, keepdim=True) > 0
        start = torch.where(labeled, given, corrected)
        smoothed = Filter(1 - self.smooth_alpha, self.steps)(operator, start).clamp_min(1e-9)
        return smoothed / smoothed.sum(-1, keepdim=True)
