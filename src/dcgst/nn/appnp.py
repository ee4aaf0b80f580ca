"""Predict then propagate (Gasteiger et al., ICLR 2019, https://arxiv.org/abs/1810.05997)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from dcgst.engine.random import Streams
from dcgst.nn.base import Output, Projected
from dcgst.nn.mlp import MLPBackbone
from dcgst.numerics.normalize import Features, normalize_adjacency
from dcgst.numerics.smoothing import Filter
from dcgst.numerics.sparse import SparseMatrix


class APPNPBackbone(MLPBackbone):
    r"""An MLP, then ten steps :math:`H \leftarrow .9\,\hat A H + .1\,H_0` on its logits."""

    hops = 10
    propagate: ClassVar[Filter] = Filter(teleport=0.1, hops=9)
    """All steps but the last, which is computed for the requested rows only."""

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
        mlp = super().forward(x, operator, streams)
        start = mlp.logits
        logits = self.propagate(operator, start)
        if rows is not None:
            operator, start = operator.select_rows(rows), start.index_select(1, rows)
        return Output(mlp.embedding, self.propagate.step(operator, logits, start))
