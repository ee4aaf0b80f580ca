"""GraphSAGE with mean aggregation (Hamilton et al., 2017)."""

from __future__ import annotations

import torch
from torch import Tensor

from dcgst.engine.random import Streams, dropout
from dcgst.engine.sparse import SparseMatrix, spmm
from dcgst.nn.base import Backbone, Entered, Features, Output, fan_in_uniform, project


class GraphSAGE(Backbone):
    r"""Two layers of :math:`\bar A H W_{nbr} + H W_{self} + b`, ReLU between.

    :math:`\bar A` averages over neighbours; with edge weights, the average is weighted.
    """

    hops = 2

    def build(self, streams: Streams) -> None:
        # Neighbour and self weights side by side: one product serves both.
        d, h, c = self.num_features, self.hidden, self.num_classes
        self.weight1 = fan_in_uniform(streams, d, d, 2 * h)
        self.bias1 = fan_in_uniform(streams, d, 1, h)
        self.weight2 = fan_in_uniform(streams, h, h, 2 * c)
        self.bias2 = fan_in_uniform(streams, h, 1, c)

    @staticmethod
    def operator(adjacency: SparseMatrix) -> SparseMatrix:
        """Rows that sum to one, or to zero for a node without neighbours."""
        sums = adjacency.pattern.row_sums(adjacency.values)
        inverse = torch.where(sums > 0, 1 / sums.clamp_min(torch.finfo(sums.dtype).tiny), 0.0)
        return adjacency.with_values(adjacency.values * inverse[..., adjacency.pattern.rows])

    def forward(
        self,
        x: Features | Entered,
        operator: SparseMatrix,
        streams: Streams | None = None,
        rows: Tensor | None = None,
    ) -> Output:
        hidden = self.activation(_mix(self.enter(x, streams).product, operator) + self.bias1)
        dropped = dropout(hidden, self.dropout, streams)
        last = _mix(project(dropped, self.weight2), operator, rows)
        return Output(hidden, last + self.bias2)


def _mix(both: Tensor, operator: SparseMatrix, rows: Tensor | None = None) -> Tensor:
    """What comes from a node's neighbours and what from itself, given side by side."""
    from_neighbours, from_self = both.chunk(2, dim=-1)
    if rows is not None:
        operator, from_self = operator.select_rows(rows), from_self.index_select(1, rows)
    return spmm(operator, from_neighbours) + from_self
