"""GraphSAGE, mean aggregation (Hamilton et al., NeurIPS 2017, https://arxiv.org/abs/1706.02216)."""

from __future__ import annotations

import torch
from torch import Tensor

from dcgst.engine.random import Streams, dropout
from dcgst.nn.base import Backbone, Output, Projected
from dcgst.nn.layers import fan_in_uniform, project
from dcgst.numerics.normalize import Features
from dcgst.numerics.products import spmm
from dcgst.numerics.sparse import SparseMatrix


class SAGEBackbone(Backbone):
    r"""Two layers of :math:`\bar A H W_{nbr} + H W_{self} + b` with ReLU between them.

    :math:`\bar A` averages over the neighbors, weighted by the edge weights.
    """

    hops = 2

    def build(self, streams: Streams) -> None:
        # Neighbor and self weights in one matrix: one product computes both.
        d, h, c = self.num_features, self.hidden, self.num_classes
        self.weight1 = fan_in_uniform(streams, d, d, 2 * h)
        self.bias1 = fan_in_uniform(streams, d, 1, h)
        self.weight2 = fan_in_uniform(streams, h, h, 2 * c)
        self.bias2 = fan_in_uniform(streams, h, 1, c)

    @staticmethod
    def operator(adjacency: SparseMatrix) -> SparseMatrix:
        """Rows that sum to one, or to zero for a node without neighbors."""
        sums = adjacency.pattern.row_sums(adjacency.values)
        inverse = torch.where(sums > 0, 1 / sums.clamp_min(torch.finfo(sums.dtype).tiny), 0.0)
        return adjacency.with_values(adjacency.values * inverse[..., adjacency.pattern.rows])

    def forward(
        self,
        x: Features | Projected,
        operator: SparseMatrix,
        streams: Streams | None = None,
        rows: Tensor | None = None,
    ) -> Output:
        hidden = self.activation(
            _mix(self.project_features(x, streams).product, operator) + self.bias1
        )
        dropped = dropout(hidden, self.dropout, streams)
        last = _mix(project(dropped, self.weight2), operator, rows)
        return Output(hidden, last + self.bias2)


def _mix(both: Tensor, operator: SparseMatrix, rows: Tensor | None = None) -> Tensor:
    """Add the neighbor average of the first half of the columns and the second half."""
    from_neighbors, from_self = both.chunk(2, dim=-1)
    if rows is not None:
        operator, from_self = operator.select_rows(rows), from_self.index_select(1, rows)
    return spmm(operator, from_neighbors) + from_self
