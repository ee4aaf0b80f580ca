"""Graph convolutional network (Kipf & Welling, 2017)."""

from __future__ import annotations

import torch
from torch import Tensor

from dcgst.engine.random import Streams, dropout
from dcgst.engine.sparse import SparseMatrix, spmm
from dcgst.nn.base import Backbone, Entered, Features, Output, drop_features, glorot, project, zeros


def symmetric_normalised(adjacency: SparseMatrix) -> SparseMatrix:
    """``D^-1/2 (A + I) D^-1/2``, differentiable in the values."""
    looped = adjacency.with_loops()
    scale = looped.pattern.row_sums(looped.values).rsqrt()
    pattern = looped.pattern
    ends = scale[..., pattern.rows] * scale[..., pattern.indices]
    return looped.with_values(looped.values * ends)


class GCN(Backbone):
    r"""Two layers, :math:`\hat A\,\mathrm{ReLU}(\hat A X W_1 + b_1) W_2 + b_2`."""

    hops = 2

    def build(self, streams: Streams) -> None:
        self.weight1 = glorot(streams, self.num_features, self.hidden)
        self.bias1 = zeros(streams, 1, self.hidden)
        self.weight2 = glorot(streams, self.hidden, self.num_classes)
        self.bias2 = zeros(streams, 1, self.num_classes)

    @staticmethod
    def operator(adjacency: SparseMatrix) -> SparseMatrix:
        return symmetric_normalised(adjacency)

    def forward(
        self,
        x: Features | Entered,
        operator: SparseMatrix,
        streams: Streams | None = None,
        rows: Tensor | None = None,
    ) -> Output:
        if isinstance(x, torch.Tensor) and x.shape[-1] <= 2 * self.hidden:
            # Â(XW) = (ÂX)W, and X asks for no gradient: the way back needs no sparse product.
            mixed = spmm(operator, drop_features(x, self.dropout, streams))
            first = project(mixed, self.weight1)
        else:
            first = spmm(operator, self.enter(x, streams).product)
        hidden = self.activation(first + self.bias1)
        dropped = dropout(hidden, self.dropout, streams)
        last = operator if rows is None else operator.select_rows(rows)
        return Output(hidden, spmm(last, project(dropped, self.weight2)) + self.bias2)
