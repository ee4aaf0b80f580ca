"""The combined prediction of all experts and students as a model of the nodes of any graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dcgst.methods.core.problem import Problem
from dcgst.methods.core.row_models import (
    Affine,
    BoundedRows,
    MeanRows,
    ProbabilityRows,
    RowModel,
    ScaledRows,
)
from dcgst.methods.core.storage import storable
from dcgst.methods.correct_and_smooth import CorrectAndSmooth
from dcgst.methods.label_propagation import LabelPropagation
from dcgst.methods.mlp import MLP
from dcgst.numerics.graph_tensors import NodeTensors

FROM_LABELS = (LabelPropagation.name, CorrectAndSmooth.name)
"""Members that need the labels of the graph whose nodes they predict."""


ENOUGH_LABELS = 0.5
"""Share of the labels of each class of the fit that another graph must have."""


@storable
@dataclass(frozen=True, eq=False)
class PoolModel:
    """The calibrated mean of several members, in R fits.

    Attributes:
        members: by name.
        scales: of each member.
        log_weights: ``(R,)`` of each member, up to a constant; the weights of the members that are
            present sum to one.
        calibration: of the weighted mean.
        label_counts: ``(R, C)`` number of labels of each class in the fit.
    """

    members: Mapping[str, RowModel]
    scales: Mapping[str, Affine]
    log_weights: Mapping[str, Tensor]
    calibration: Affine
    label_counts: Tensor

    def __call__(self, nodes: NodeTensors) -> Tensor:
        """``(R, m, C)`` log-probabilities."""
        weights = torch.stack([self.log_weights[name] for name in self.members]).softmax(0)
        scaled = [ScaledRows(model, self.scales[name]) for name, model in self.members.items()]
        return self.calibration.apply(MeanRows(scaled, list(weights))(nodes))

    def select(self, fit: int) -> PoolModel:
        """The model of one fit."""
        return PoolModel(
            {name: model.select(fit) for name, model in self.members.items()},
            {name: scale.select(fit) for name, scale in self.scales.items()},
            {name: weight[fit : fit + 1] for name, weight in self.log_weights.items()},
            self.calibration.select(fit),
            self.label_counts[fit : fit + 1],
        )

    def without_labels(self) -> PoolModel:
        """The members that predict nodes of any graph, also without labels."""
        kept = {name: own for name, own in self.members.items() if name not in FROM_LABELS}
        return replace(self, members=kept)

    def on(self, problem: Problem) -> PoolModel:
        """The model for a graph with labels: label propagation and Correct and Smooth too.

        Their weights were learned with the labels of the fit. If a class has less than half as many
        labels in the other graph, they would predict the other classes, and are left out.
        """
        if bool((problem.label_counts() < self.label_counts * ENOUGH_LABELS).any()):
            return self
        network = self.members[MLP.name]
        assert isinstance(network, BoundedRows)
        proba = {
            LabelPropagation.name: LabelPropagation().fit_rows(problem),
            CorrectAndSmooth.name: CorrectAndSmooth().propagate(
                problem, lambda nodes: network.model(nodes).softmax(-1)
            ),
        }
        added = {
            name: BoundedRows(ProbabilityRows(own), network.smallest) for name, own in proba.items()
        }
        return replace(self, members={**self.members, **added})
