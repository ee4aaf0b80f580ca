"""Correct and Smooth (Huang et al., ICLR 2021, https://arxiv.org/abs/2010.13993)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dcgst.methods.core.network import NeuralMethod
from dcgst.methods.core.params import param
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.result import Result, with_row_model
from dcgst.methods.core.row_models import NetworkRows, OwnFeatures, ProbabilityRows, RowModel
from dcgst.nn.base import BACKBONES, Backbone
from dcgst.numerics.graph_tensors import GraphTensors, NodeFunction, NodeTensors
from dcgst.numerics.smoothing import Filter


@dataclass(eq=False, kw_only=True)
class CorrectAndSmooth(NeuralMethod):
    r"""Train a model on the features, then propagate its errors and the labels along the edges.

    **Correct.** The errors of the model on the given labels, :math:`E = Y - P`, are propagated,
    :math:`\hat E \leftarrow \alpha_1 \hat A \hat E + (1-\alpha_1) E`, scaled to the mean error of
    the labeled nodes, and added to P.

    **Smooth.** The result, with the given labels in place, is propagated with :math:`\alpha_2`.
    """

    name: ClassVar[str] = "cs"
    propagates_labels: ClassVar[bool] = True

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
        function = self.propagate(problem, NetworkRows(network.model))
        proba = function(problem.graph)
        results = self.results(problem, training, output, proba=proba, model=network.model)
        return (
            with_row_model(results, ProbabilityRows(function), problem) if self.by_rows else results
        )

    def model_on(self, model: RowModel | None, problem: Problem) -> RowModel | None:
        """On another graph: corrected and smoothed by the labels that are known there, if any."""
        if model is None or not bool((problem.train_labels >= 0).any()):
            return model
        return ProbabilityRows(self.propagate(problem, model))

    def propagate(self, problem: Problem, model: RowModel) -> NodeFunction:
        """Probabilities ``(R, m, C)`` of a model, corrected and smoothed, as function of nodes."""
        graph, given, name = problem.graph, problem.given_labels(), problem.checkpoint.prefix
        predicted = self.as_function(model, graph)
        corrected = self.correct(graph, predicted, given, name + "errors")
        return self.smooth(graph, corrected, given, name + "corrected")

    def as_function(self, model: RowModel, graph: GraphTensors) -> NodeFunction:
        """Probabilities of a model as function of nodes; computed once if all nodes are here."""
        own = OwnFeatures(model, self.scale_features)
        if not graph.complete:
            return lambda nodes: own(nodes).softmax(-1)
        proba = own(graph).softmax(-1)
        return lambda _: proba

    def correct(
        self, graph: GraphTensors, model: NodeFunction, given: NodeFunction, name: str = ""
    ) -> NodeFunction:
        """Predictions plus the propagated errors."""

        def error(nodes: NodeTensors) -> Tensor:
            known = given(nodes)
            labeled = known.sum(-1, keepdim=True)
            return (known - model(nodes)) * labeled if bool(labeled.any()) else known

        propagated = graph.smooth(error, Filter(1 - self.correct_alpha, self.steps), name)
        count = given(graph).sum((1, 2))[:, None, None]
        mean = error(graph).abs().sum((1, 2), keepdim=True) / count

        def corrected(nodes: NodeTensors) -> Tensor:
            found = propagated(nodes)
            size = found.abs().sum(-1, keepdim=True)
            # Tiny propagated errors are not scaled: the factor would be too large.
            scale = torch.where(size > mean / 1000, mean / size, 1.0)
            return model(nodes) + scale * found

        return corrected

    def smooth(
        self, graph: GraphTensors, corrected: NodeFunction, given: NodeFunction, name: str = ""
    ) -> NodeFunction:
        """Probabilities from predictions and given labels, smoothed together."""

        def start(nodes: NodeTensors) -> Tensor:
            known = given(nodes)
            return torch.where(known.sum(-1, keepdim=True) > 0, known, corrected(nodes))

        smoothed = graph.smooth(start, Filter(1 - self.smooth_alpha, self.steps), name)

        def proba(nodes: NodeTensors) -> Tensor:
            found = smoothed(nodes).clamp_min(1e-9)
            return found / found.sum(-1, keepdim=True)

        return proba
