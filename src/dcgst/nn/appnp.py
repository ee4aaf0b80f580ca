"""Predict then propagate (Gasteiger et al., 2019)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from dcgst.engine.random import Streams, dropout
from dcgst.engine.sparse import SparseMatrix, spmm
from dcgst.nn.base import Backbone, Features, Output, drop_features, fan_in_uniform, project
from dcgst.nn.gcn import symmetric_normalised


class APPNP(Backbone):
    r"""An MLP whose logits take ten steps of :math:`H \leftarrow .9\,\hat A H + .1\,H_0`."""

    hops = 10
    teleport: ClassVar[float] = 0.1

    def build(self, streams: Streams) -> None:
        d, h, c = self.num_features, self.hidden, self.num_classes
        self.weight1 = fan_in_uniform(streams, d, d, h)
        self.bias1 = fan_in_uniform(streams, d, 1, h)
        self.weight2 = fan_in_uniform(streams, h, h, c)
        self.bias2 = fan_in_uniform(streams, h, 1, c)

    @staticmethod
    def operator(adjacency: SparseMatrix) -> SparseMatrix:
        return symmetric_normalised(adjacency)

    def forward(
        self,
        x: Features,
        operator: SparseMatrix,
        streams: Streams | None = None,
        rows: Tensor | None = None,
    ) -> Output:
        x = drop_features(x, self.dropout, streams)
        hidden = self.activation(project(x, self.weight1) + self.bias1)
        start = project(dropout(hidden, self.dropout, streams), self.weight2) + self.bias2
        logits = start
        for _ in range(self.hops - 1):
            logits = (1 - self.teleport) * spmm(operator, logits) + self.teleport * start
        if rows is not None:
            operator, start = operator.select_rows(rows), start.index_select(1, rows)
        return Output(hidden, (1 - self.teleport) * spmm(operator, logits) + self.teleport * start)
