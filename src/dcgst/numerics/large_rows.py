"""Some nodes of a large graph, as models read them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, cast

from torch import Tensor

from dcgst.numerics.graph_tensors import NodeTensors, OtherFeatures, Scale
from dcgst.numerics.matrix import Nodes
from dcgst.numerics.normalize import Features
from dcgst.numerics.propagation import Propagation
from dcgst.numerics.sparse import SparseMatrix
from dcgst.numerics.views import FILTERS, Views, views_of

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
        return self.features_by(self.graph.scale)

    def features_by(self, scale: Scale) -> Features:
        """Features, scaled by another method."""
        return self.graph.feature_rows(self.nodes, scale)

    def scaled_by(self, scale: Scale) -> NodeTensors:
        """The same nodes with features scaled by another method."""
        return cast("NodeTensors", OtherFeatures(self, scale))

    @property
    def adjacency(self) -> SparseMatrix:
        raise ValueError("networks that use edges need all nodes of a graph at once")

    @cached_property
    def propagated(self) -> dict[str, Tensor]:
        matrices = [self.graph.rows_of(matrix, self.nodes) for matrix in self.graph.hop_matrices]
        degrees = self.graph.neighbors.degrees[self.nodes]
        return self.graph.propagation.normalize(matrices, degrees)

    def propagated_by(self, propagation: Propagation) -> dict[str, Tensor]:
        """The same: models are fitted to a sample of the same graph, or the graph uses theirs."""
        return self.propagated

    @cached_property
    def views(self) -> Sequence[Views]:
        return [self.views_by(number) for number in range(len(FILTERS))]

    def views_by(self, number: int) -> Views:
        """Views of the features smoothed by one filter."""
        bases = self.graph.bases[number]
        scores = [
            basis.scores(self.graph.rows_of(matrix, self.nodes))
            for basis, matrix in zip(bases, self.graph.smoothed[number], strict=True)
        ]
        return views_of(bases, scores)
