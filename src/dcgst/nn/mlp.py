"""Multi-layer perceptron: features only, no edges."""

from __future__ import annotations

from torch import Tensor

from dcgst.engine.random import Streams, dropout
from dcgst.nn.base import Backbone, Output, Projected
from dcgst.nn.layers import fan_in_uniform, project
from dcgst.numerics.normalize import Features
from dcgst.numerics.sparse import SparseMatrix


class MLPBackbone(Backbone):
    r"""Two layers on the features, :math:`\mathrm{ReLU}(X W_1 + b_1) W_2 + b_2`."""

    hops = 0

    @property
    def num_inputs(self) -> int:
        """Number of columns of the inputs."""
        return self.num_features

    def build(self, streams: Streams) -> None:
        d, h, c = self.num_inputs, self.hidden, self.num_classes
        self.weight1 = fan_in_uniform(streams, d, d, h)
        self.bias1 = fan_in_uniform(streams, d, 1, h)
        self.weight2 = fan_in_uniform(streams, h, h, c)
        self.bias2 = fan_in_uniform(streams, h, 1, c)

    @staticmethod
    def operator(adjacency: SparseMatrix) -> SparseMatrix:
        return adjacency

    def forward(
        self,
        x: Features | Projected,
        operator: SparseMatrix,
        streams: Streams | None = None,
        rows: Tensor | None = None,
    ) -> Output:
        hidden = self.activation(self.project_features(x, streams).product + self.bias1)
        dropped = dropout(hidden, self.dropout, streams)
        if rows is not None:
            dropped = dropped.index_select(1, rows)
        return Output(hidden, project(dropped, self.weight2) + self.bias2)
