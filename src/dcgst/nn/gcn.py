"""Graph convolutional network (Kipf & Welling, ICLR 2017, https://arxiv.org/abs/1609.02907)."""

from __future__ import annotations

import torch
from torch import Tensor

from dcgst.engine.random import Streams, dropout
from dcgst.nn.base import Backbone, Output, Projected
from dcgst.nn.layers import drop_features, glorot, project, zeros
from dcgst.numerics.normalize import Features, normalize_adjacency
from dcgst.numerics.products import spmm
from dcgst.numerics.sparse import SparseMatrix


class GCNBackbone(Backbone):
    r"""Two layers, :math:`\hat A\,\mathrm{ReLU}(\hat A X W_1 + b_1) W_2 + b_2`."""

    hops = 2

    def build(self, streams: Streams) -> None:
        self.weight1 = glorot(streams, self.num_features, self.hidden)
        self.bias1 = zeros(streams, 1, self.hidden)
        self.weight2 = glorot(streams, self.hidden, self.num_classes)
        self.bias2 = zeros(streams, 1, self.num_classes)

    @staticmethod
    def operator(adjacency: SparseMatrix) -> SparseMatrix:
        return normalize_adjacency(adjacency)

    def forward(
        self,
        x: Features | Projected,
        operator: SparseMatrix,
        streams: Streams | None = None,
        rows: Tensor | None = None,
    ) -> Output:
        if isinstance(x, torch.Tensor) and x.shape[-1] <= 2 * self.hidden:
            # Â(XW) = (ÂX)W, and X needs no gradient: the backward pass needs no sparse product.
            mixed = spmm(operator, drop_features(x, self.dropout, streams))
            first = project(mixed, self.weight1)
        else:
            first = spmm(operator, self.project_features(x, streams).product)
        hidden = self.activation(first + self.bias1)
        dropped = dropout(hidden, self.dropout, streams)
        last = operator if rows is None else operator.select_rows(rows)
        return Output(hidden, spmm(last, project(dropped, self.weight2)) + self.bias2)
