"""Graph attention network (Veličković et al., ICLR 2018, https://arxiv.org/abs/1710.10903)."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from dcgst.engine.random import Streams, dropout
from dcgst.errors import InputError
from dcgst.nn.base import Backbone, Output, Projected
from dcgst.nn.layers import glorot, project, zeros
from dcgst.numerics.normalize import Features
from dcgst.numerics.products import spmm
from dcgst.numerics.sparse import Pattern, SparseMatrix


class GATBackbone(Backbone):
    """Two attention layers with ELU between them: eight concatenated heads, then one head.

    Edge weights multiply the attention before it is normalized.
    """

    hops = 2
    default_activation = "elu"
    heads: ClassVar[int] = 8

    def build(self, streams: Streams) -> None:
        if self.hidden % self.heads:
            raise InputError(
                f"hidden must be a multiple of {self.heads} for gat, got {self.hidden}"
            )
        d, h, c, heads = self.num_features, self.hidden, self.num_classes, self.heads
        self.weight1 = glorot(streams, d, h)
        # Attention vectors of source and target for every head: (R, 2, heads, width)
        self.attention1 = glorot(streams, heads, h // heads, 2, heads, h // heads)
        self.bias1 = zeros(streams, 1, h)
        self.weight2 = glorot(streams, h, c)
        self.attention2 = glorot(streams, 1, c, 2, 1, c)
        self.bias2 = zeros(streams, 1, c)

    @staticmethod
    def operator(adjacency: SparseMatrix) -> SparseMatrix:
        return adjacency.with_loops()

    def forward(
        self,
        x: Features | Projected,
        operator: SparseMatrix,
        streams: Streams | None = None,
        rows: Tensor | None = None,
    ) -> Output:
        product = self.project_features(x, streams).product
        first = self._attend(product, self.attention1, operator, streams)
        hidden = self.activation(first + self.bias1)
        dropped = dropout(hidden, self.dropout, streams)
        second = self._attend(project(dropped, self.weight2), self.attention2, operator, streams)
        if rows is not None:
            second = second.index_select(1, rows)
        return Output(hidden, second + self.bias2)

    def _attend(
        self, h: Tensor, attention: Tensor, operator: SparseMatrix, streams: Streams | None
    ) -> Tensor:
        replicas, n, _ = h.shape
        heads, width = attention.shape[2:]
        by_head = h.view(replicas, n, heads, width).transpose(1, 2)  # (R, heads, n, width)
        source, target = torch.einsum("rhnw,rshw->srhn", by_head, attention)
        pattern = operator.pattern
        scores = F.leaky_relu(source[..., pattern.indices] + target[..., pattern.rows], 0.2)
        edge_weights = operator.values if operator.values.dim() == 1 else operator.values[:, None]
        alpha = _softmax(pattern, scores, edge_weights)
        if operator.values.dim() == 1:
            # Not if each replica has its own edges: these vary anyway, and the number of draws
            # would depend on the edges of the other replicas.
            alpha = dropout(alpha, self.dropout, streams)
        mixed = spmm(
            SparseMatrix(pattern, alpha.flatten(0, 1)), by_head.reshape(replicas * heads, n, width)
        )
        return mixed.view(replicas, heads, n, width).transpose(1, 2).reshape(replicas, n, -1)


def _softmax(pattern: Pattern, scores: Tensor, edge_weights: Tensor) -> Tensor:
    """Softmax of ``(R, heads, E)`` over the entries of each row, weighted."""
    rows = pattern.rows.expand_as(scores)
    lowest = scores.new_full((*scores.shape[:-1], pattern.num_rows), float("-inf"))
    # An edge of weight zero must neither set the maximum nor overflow beyond it.
    present = scores.detach().masked_fill(edge_weights <= 0, float("-inf"))
    highest = lowest.scatter_reduce(-1, rows, present, "amax").gather(-1, rows)
    weighted = torch.exp((scores - highest).clamp_max(0)) * edge_weights
    return weighted / pattern.row_sums(weighted)[..., pattern.rows]
