"""Label propagation, Correct and Smooth, and the majority class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from dcgst.errors import InputError
from dcgst.features.graph_tensors import GraphTensors, NodeFunction, NodeRows
from dcgst.features.smoothing import Filter
from dcgst.methods.base import Method, param
from dcgst.methods.networks import NeuralMethod
from dcgst.methods.problem import Problem
from dcgst.methods.result import Result, results_without_stages, with_row_model
from dcgst.methods.row_models import NetworkRows, OwnFeatures, ProbabilityRows, RowModel
from dcgst.nn.backbones import BACKBONES, Backbone


@dataclass(eq=False, kw_only=True)
class LabelPropagation(Method):
    r"""Propagate the given labels along the edges; no features, no training.

    .. math:: F \leftarrow \alpha\,\hat A F + (1 - \alpha)\,Y

    A node that no label reaches gets the class shares among the labels.

    Zhou et al., NIPS 2003, "Learning with Local and Global Consistency".

    Example:
        >>> from dcgst import LabelPropagation, load
        >>> graph = load("synthetic")
        >>> model = LabelPropagation().fit(graph)
        >>> model.score(graph) > 0.3, model.proba_.shape
        (True, (1200, 4))
    """

    name: ClassVar[str] = "lp"
    all_at_once: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True
    propagates_labels: ClassVar[bool] = True

    alpha: float = param(0.99, "share of the neighbors' labels", low=0, high=1, symbol="α")
    steps: int = param(50, "propagation steps", low=1)

    @property
    def by_rows(self) -> bool:
        return True

    def solve(self, problem: Problem) -> list[Result]:
        function = self.fit_rows(problem)
        proba = function(problem.graph)
        reasons = [f"maximum number of steps ({self.steps})"] * problem.num_fits
        results = results_without_stages(problem, proba, proba, reasons)
        return with_row_model(results, ProbabilityRows(function), problem)

    def model_on(self, model: RowModel | None, problem: Problem) -> RowModel | None:
        """On another graph: the labels that are known there are propagated."""
        if not bool((problem.train_labels >= 0).any()):
            raise InputError("label propagation needs labels in the other graph")
        return ProbabilityRows(self.fit_rows(problem))

    def fit_rows(self, problem: Problem) -> NodeFunction:
        """A function that returns ``(R, m, C)`` probabilities of nodes."""
        by = Filter(1 - self.alpha, self.steps)
        propagated = problem.smooth(problem.given_labels(), by, "labels")
        shares = problem.class_shares()[:, None]

        def proba(nodes: NodeRows) -> Tensor:
            found = propagated(nodes)
            total = found.sum(-1, keepdim=True)
            return torch.where(total > 0, found / total, shares)

        return proba


@dataclass(eq=False, kw_only=True)
class CorrectAndSmooth(NeuralMethod):
    r"""Train a model on the features, then propagate its errors and the labels along the edges.

    **Correct.** The errors of the model on the given labels, :math:`E = Y - P`, are propagated,
    :math:`\hat E \leftarrow \alpha_1 \hat A \hat E + (1-\alpha_1) E`, scaled to the mean error of
    the labeled nodes, and added to P.

    **Smooth.** The result, with the given labels in place, is propagated with :math:`\alpha_2`.

    Huang et al., ICLR 2021, https://arxiv.org/abs/2010.13993.

    Example:
        >>> from dcgst import CorrectAndSmooth, load
        >>> graph = load("synthetic")
        >>> model = CorrectAndSmooth(epochs=50).fit(graph)
        >>> model.score(graph) > 0.3, model.proba_.shape
        (True, (1200, 4))
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
        predicted = self.as_function(model, problem.graph)
        return self.smooth(problem, self.correct(problem, predicted))

    def as_function(self, model: RowModel, graph: GraphTensors) -> NodeFunction:
        """Probabilities of a model as function of nodes; computed once if all nodes are here."""
        own = OwnFeatures(model, self.scale_features)
        if not graph.complete:
            return lambda nodes: own(nodes).softmax(-1)
        proba = own(graph).softmax(-1)
        return lambda nodes: proba[:, nodes.nodes]

    def correct(self, problem: Problem, model: NodeFunction) -> NodeFunction:
        """Predictions plus the propagated errors."""
        graph, given = problem.graph, problem.given_labels()

        def error(nodes: NodeRows) -> Tensor:
            known = given(nodes)
            labeled = known.sum(-1, keepdim=True)
            return (known - model(nodes)) * labeled if bool(labeled.any()) else known

        propagated = problem.smooth(error, Filter(1 - self.correct_alpha, self.steps), "errors")
        count = given(graph).sum((1, 2))[:, None, None]
        mean = error(graph).abs().sum((1, 2), keepdim=True) / count

        def corrected(nodes: NodeRows) -> Tensor:
            found = propagated(nodes)
            size = found.abs().sum(-1, keepdim=True)
            # Tiny propagated errors are not scaled: the factor would be too large.
            scale = torch.where(size > mean / 1000, mean / size, 1.0)
            return model(nodes) + scale * found

        return corrected

    def smooth(self, problem: Problem, corrected: NodeFunction) -> NodeFunction:
        """Probabilities from predictions and given labels, smoothed together."""
        given = problem.given_labels()

        def start(nodes: NodeRows) -> Tensor:
            known = given(nodes)
            return torch.where(known.sum(-1, keepdim=True) > 0, known, corrected(nodes))

        smoothed = problem.smooth(start, Filter(1 - self.smooth_alpha, self.steps), "corrected")

        def proba(nodes: NodeRows) -> Tensor:
            found = smoothed(nodes).clamp_min(1e-9)
            return found / found.sum(-1, keepdim=True)

        return proba


@dataclass(eq=False, kw_only=True)
class Majority(Method):
    """Predict the most frequent training class for every node.

    The probabilities are the class shares among the given labels. Ties go to the first class.

    Example:
        >>> from dcgst import Majority, load
        >>> graph = load("synthetic")
        >>> model = Majority().fit(graph)
        >>> model.score(graph), model.proba_[-1].tolist()
        (0.25, [0.25, 0.25, 0.25, 0.25])
    """

    name: ClassVar[str] = "majority"
    all_at_once: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True

    def solve(self, problem: Problem) -> list[Result]:
        proba = problem.class_shares()[:, None].repeat(1, problem.train_labels.shape[1], 1)
        return results_without_stages(problem, proba, proba, ["no training"] * problem.num_fits)

    def apply(self, result: Result, problem: Problem) -> list[Tensor]:
        """On another graph: the class shares of the fit."""
        shares = torch.from_numpy(np.array(result.proba[:1]))
        return [shares.expand(1, problem.train_labels.shape[1], -1)]
