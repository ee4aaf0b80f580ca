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


@storable
@dataclass(frozen=True, eq=False)
class PoolModel:
    """The calibrated mean of several members, in R fits.

    Attributes:
        members: by name.
        scales: of each member.
        weights: ``(R,)`` of each member; if members are missing, the others count more.
        calibration: of the weighted mean.
    """

    members: Mapping[str, RowModel]
    scales: Mapping[str, Affine]
    weights: Mapping[str, Tensor]
    calibration: Affine

    def __call__(self, nodes: NodeTensors) -> Tensor:
        """``(R, m, C)`` log-probabilities."""
        total = torch.stack([self.weights[name] for name in self.members]).sum(0)
        scaled = [ScaledRows(model, self.scales[name]) for name, model in self.members.items()]
        weights = [self.weights[name] / total for name in self.members]
        return self.calibration.apply(MeanRows(scaled, weights)(nodes))

    def select(self, fit: int) -> PoolModel:
        """The model of one fit."""
        return PoolModel(
            {name: model.select(fit) for name, model in self.members.items()},
            {name: scale.select(fit) for name, scale in self.scales.items()},
            {name: weight[fit : fit + 1] for name, weight in self.weights.items()},
            self.calibration.select(fit),
        )

    def without_labels(self) -> PoolModel:
        """The members that predict nodes of any graph, also without labels."""
        kept = {name: own for name, own in self.members.items() if name not in FROM_LABELS}
        return replace(self, members=kept)

    def on(self, problem: Problem) -> PoolModel:
        """The model for a graph with some labels: label propagation and Correct and Smooth too."""
        if not bool((problem.train_labels >= 0).any()):
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
