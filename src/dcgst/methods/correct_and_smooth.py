"""Correct and Smooth (Huang et al., ICLR 2021, https://arxiv.org/abs/2010.13993)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dcgst.methods.core.network import NeuralMethod
from dcgst.methods.core.params import param
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.result import Result
from dcgst.nn.base import BACKBONES, Backbone
from dcgst.numerics.smoothing import Filter
from dcgst.numerics.sparse import SparseMatrix


@dataclass(eq=False, kw_only=True)
class CorrectAndSmooth(NeuralMethod):
    r"""Train a model on the features, then propagate its errors and the labels along the edges.

    **Correct.** The errors of the model on the given labels, :math:`E = Y - P`, are propagated,
    :math:`\hat E \leftarrow \alpha_1 \hat A \hat E + (1-\alpha_1) E`, scaled to the mean error of
    the labeled nodes, and added to P.

    **Smooth.** The result, with the given labels in place, is propagated with :math:`\alpha_2`.
    """

    name: ClassVar[str] = "cs"

    backbone: str | type[Backbone] = param(
        "mlp", "the network: a name, or a subclass of Backbone", registry=BACKBONES
    )
    correct_alpha: float = param(0.9, "share of the neighbors' errors", low=0, high=1, symbol="α₁")
    smooth_alpha: float = param(
        0.9, "share of the neighbors' predictions", low=0, high=1, symbol="α₂"
    )
    steps: int = param(50, "steps of both propagations", low=1)

    def solve(self, problem: Problem) -> list[Result]:
        network = self.create_network(problem)
        training = network.train("training", problem.train_labels, problem, self.training_options)
        output = network.predict()
        proba = self.propagate(problem, output.logits.softmax(-1))
        # Without model: on another graph the network alone would be another method.
        return self.results(problem, training, output, proba=proba)

    def propagate(self, problem: Problem, proba: Tensor) -> Tensor:
        """``(R, n, C)`` probabilities of a model, corrected and smoothed."""
        operator, given = problem.graph.normalized, problem.one_hot()
        return self.smooth(self.correct(proba, given, operator), given, operator)

    def correct(self, proba: Tensor, given: Tensor, operator: SparseMatrix) -> Tensor:
        """``(R, n, C)`` predictions plus the propagated errors."""
        labeled = given.sum(-1, keepdim=True)
        error = (given - proba) * labeled
        propagated = Filter(1 - self.correct_alpha, self.steps)(operator, error)
        mean = error.abs().sum((1, 2), keepdim=True) / labeled.sum(1, keepdim=True)
        size = propagated.abs().sum(-1, keepdim=True)
        # Tiny propagated errors are not scaled: the factor would be too large.
        scale = torch.where(size > mean / 1000, mean / size, 1.0)
        return proba + scale * propagated

    def smooth(self, corrected: Tensor, given: Tensor, operator: SparseMatrix) -> Tensor:
        """``(R, n, C)`` probabilities from predictions and given labels, smoothed together."""
        labeled = given.sum(-1, keepdim=True) > 0
        start = torch.where(labeled, given, corrected)
        smoothed = Filter(1 - self.smooth_alpha, self.steps)(operator, start).clamp_min(1e-9)
        return smoothed / smoothed.sum(-1, keepdim=True)
