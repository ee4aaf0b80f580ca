"""Some nodes of a large graph, as models read them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from torch import Tensor

from dcgst.numerics.matrix import Nodes
from dcgst.numerics.normalize import Features
from dcgst.numerics.propagation import Propagation
from dcgst.numerics.smoothing import Views, views_of

if TYPE_CHECKING:
    from dcgst.numerics.large_graph import LargeGraph


class LargeRows:
    """What models read of some nodes of a large graph, read when it is needed.

    Args:
        graph: the graph.
        nodes: the nodes.
    """

    def __init__(self, graph: LargeGraph, nodes: Nodes) -> None:
        self.graph, self.nodes = graph, nodes

    @cached_property
    def x(self) -> Features:
        return self.graph.feature_rows(self.nodes, self.graph.scale)

    @cached_property
    def propagated(self) -> dict[str, Tensor]:
        matrices = [matrix.rows(self.nodes) for matrix in self.graph.hop_matrices]
        degrees = self.graph.neighbors.degrees[self.nodes]
        return self.graph.propagation.normalize(matrices, degrees)

    def propagated_by(self, propagation: Propagation) -> dict[str, Tensor]:
        """The same: models are fitted to a sample of the same graph."""
        return self.propagated

    @cached_property
    def views(self) -> list[Views]:
        return [
            views_of(
                bases,
                [
                    basis.scores(matrix.rows(self.nodes))
                    for basis, matrix in zip(bases, matrices, strict=True)
                ],
            )
            for bases, matrices in zip(self.graph.bases, self.graph.smoothed, strict=True)
        ]
