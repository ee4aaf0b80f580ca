"""Multi-layer perceptron: each node for itself, whatever its neighbours."""

from __future__ import annotations

from torch import Tensor

from dcgst.engine.random import Streams, dropout
from dcgst.engine.sparse import SparseMatrix
from dcgst.nn.base import Backbone, Entered, Features, Output, fan_in_uniform, project


class MLP(Backbone):
    r"""Two layers on the features alone, :math:`\mathrm{ReLU}(X W_1 + b_1) W_2 + b_2`."""

    hops = 0

    def build(self, streams: Streams) -> None:
        d, h, c = self.num_features, self.hidden, self.num_classes
        self.weight1 = fan_in_uniform(streams, d, d, h)
        self.bias1 = fan_in_uniform(streams, d, 1, h)
        self.weight2 = fan_in_uniform(streams, h, h, c)
        self.bias2 = fan_in_uniform(streams, h, 1, c)

    @staticmethod
    def operator(adjacency: SparseMatrix) -> SparseMatrix:
        return adjacency

    def forward(
        self,
        x: Features | Entered,
        operator: SparseMatrix,
        streams: Streams | None = None,
        rows: Tensor | None = None,
    ) -> Output:
        hidden = self.activation(self.enter(x, streams).product + self.bias1)
        dropped = dropout(hidden, self.dropout, streams)
        if rows is not None:
            dropped = dropped.index_select(1, rows)
        return Output(hidden, project(dropped, self.weight2) + self.bias2)
