"""Leading components of the smoothed features of a graph."""

from __future__ import annotations

import torch
from torch import Tensor

from dcgst.graph import Graph
from dcgst.numerics.columns import MOST_COLUMNS
from dcgst.numerics.large_graph import LargeGraph, product_with
from dcgst.numerics.matrix import Nodes, open_workspace
from dcgst.numerics.normalize import (
    Features,
    largest_magnitude,
    normalize_adjacency,
    scale_features,
    scale_to_one,
    to_features,
)
from dcgst.numerics.scale import inverse_power_of_two
from dcgst.numerics.smoothing import Basis, Filter, Smoother
from dcgst.numerics.sparse import SparseMatrix

LARGE = 50_000
"""Number of nodes from which components are computed in blocks."""

TELEPORT = 0.1


def smoothed_components(
    graph: Graph, hops: int, dimensions: int = 32, whitening: float = 0.0
) -> Tensor:
    """``(n, d)`` leading components of a graph's features after ``hops`` steps of smoothing.

    The features are scaled so that the largest magnitude is between 1/2 and 1.

    Args:
        graph: the graph.
        hops: 0 for the features themselves.
        dimensions: maximum number of components.
        whitening: 0 for plain components, 1 for components of equal variance.
    """
    by = Filter(TELEPORT, hops)
    if graph.num_nodes >= LARGE:
        return _components_in_blocks(graph, by, dimensions, whitening)
    smoother = Smoother(normalize_adjacency(SparseMatrix.from_scipy(graph.adjacency)))
    x = smoother.reduce(scale_to_one(to_features(graph.features)), by)
    z = smoother.smooth(x, by)
    basis = Basis.fit([(z, smoother.connected)], dimensions)
    return basis.view(basis.scores(z), dimensions, whitening)


def _components_in_blocks(graph: Graph, by: Filter, dimensions: int, whitening: float) -> Tensor:
    """The same for a graph that may not fit into the memory."""
    columns = min(MOST_COLUMNS, graph.num_features)
    with open_workspace(graph.num_nodes, 2 * columns + dimensions) as workspace:
        large = LargeGraph(
            graph.features, graph.adjacency, lambda rows: rows, workspace, graph.weighted
        )
        magnitudes = [largest_magnitude(large.feature_rows(part)) for part in large.ranges()]
        factor = inverse_power_of_two(torch.stack(magnitudes).amax())

        def scaled(nodes: Nodes) -> Features:
            return scale_features(large.feature_rows(nodes), factor)

        rows = product_with(scaled, large.directions(scaled))
        if by.hops:
            shape = graph.num_nodes, columns
            rows = large.smooth_by([by], "components", shape, rows, means=True)[by].rows
        basis = large.basis(rows, dimensions)
        parts = (basis.view(basis.scores(rows(p)), dimensions, whitening) for p in large.ranges())
        components = torch.empty(graph.num_nodes, len(basis.values))
        for part, own in zip(large.ranges(), parts, strict=True):
            components[part] = own
    return components
