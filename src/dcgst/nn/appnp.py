"""Predict then propagate (Gasteiger et al., 2019)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from dcgst.engine.random import Streams
from dcgst.engine.sparse import SparseMatrix, spmm
from dcgst.nn.base import Entered, Features, Output
from dcgst.nn.gcn import symmetric_normalised
from dcgst.nn.mlp import MLP


class APPNP(MLP):
    r"""An MLP whose logits take ten steps of :math:`H \leftarrow .9\,\hat A H + .1\,H_0`."""

    hops = 10
    teleport: ClassVar[float] = 0.1

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
        alone = super().forward(x, operator, streams)
        start = logits = alone.logits
        for _ in range(self.hops - 1):
            logits = (1 - self.teleport) * spmm(operator, logits) + self.teleport * start
        if rows is not None:
            operator, start = operator.select_rows(rows), start.index_select(1, rows)
        last = (1 - self.teleport) * spmm(operator, logits) + self.teleport * start
        return Output(alone.hidden, last)
