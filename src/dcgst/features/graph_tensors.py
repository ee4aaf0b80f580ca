"""Tensors of a graph, shared by all runs and replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

import scipy.sparse as sp
import torch
from torch import Tensor

from dcgst.features.matrix import Nodes
from dcgst.features.normalize import Features, normalize_adjacency, to_features
from dcgst.features.propagation import Propagation
from dcgst.features.similarity import SimilarNodes
from dcgst.features.smoothing import Filter, ViewBases, Views, learn_views
from dcgst.features.sparse import SparseMatrix
from dcgst.graph import FeatureMatrix

Scale = Callable[[FeatureMatrix], FeatureMatrix]
"""A function that scales rows of features."""


class NodeTensors(Protocol):
    """What fitted models read of some nodes of a graph."""

    @property
    def nodes(self) -> Nodes:
        """Their positions in the graph."""

    @property
    def x(self) -> Features:
        """``(m, d)`` features, scaled as the method needs them."""

    @property
    def adjacency(self) -> SparseMatrix:
        """Their edges."""

    @property
    def propagated(self) -> dict[str, Tensor]:
        """Blocks of features by number of hops, ``(m, k)`` each."""

    def propagated_by(self, propagation: Propagation) -> dict[str, Tensor]:
        """Blocks of features by number of hops, computed as on another graph."""

    @property
    def views(self) -> Sequence[Views]:
        """18 versions of the smoothed features for EM: ``views[i]`` holds those of filter i."""

    def scaled_by(self, scale: Scale) -> NodeTensors:
        """The same nodes with features scaled by another method; the rest is shared."""


NodeFunction = Callable[[NodeTensors], Tensor]
"""A function that returns ``(R, m, C)`` values of m nodes."""


@dataclass(frozen=True)
class Learned:
    """What is learned from the features of a graph, so that those of others mean the same.

    Attributes:
        propagation: how features by number of hops are computed.
        views: how views for EM are computed; None if no model reads them.
    """

    propagation: Propagation
    views: ViewBases | None = None


class GraphTensors:
    """Features and adjacency of a graph on a device, with everything computed from them once.

    All runs and replicas on the graph share one instance.

    Args:
        features: ``(n, d)``, scaled as the method needs them.
        adjacency: ``(n, n)``.
        device: where the tensors are.
        unscaled: ``(n, d)`` features as they are in the graph, for views and propagation, which
            weight columns first; default ``features``.
        learned: from another graph; default: learned from this graph.
        columns_weighted: whether the columns of ``unscaled`` have weights already.
    """

    nodes: Nodes = slice(None)
    """The positions of the nodes of this object in the whole graph."""

    complete = True
    """Whether all nodes of the graph are here; else a sample."""

    def __init__(
        self,
        features: FeatureMatrix,
        adjacency: sp.csr_array,
        device: torch.device | str = "cpu",
        unscaled: FeatureMatrix | None = None,
        learned: Learned | None = None,
        columns_weighted: bool = False,
    ) -> None:
        self._learned, self._columns_weighted = learned, columns_weighted
        self.features = features if unscaled is None else unscaled
        self.x: Features = to_features(features, device)
        same = unscaled is None or unscaled is features
        self.unscaled = self.x if same else to_features(unscaled, device)
        self.matrix = adjacency
        self.adjacency = SparseMatrix.from_scipy(adjacency, device)
        self._similar: dict[int, SimilarNodes] = {}

    @property
    def device(self) -> torch.device:
        return self.adjacency.values.device

    def features_by(self, scale: Scale) -> Features:
        """``(n, d)`` features, scaled by another method."""
        return to_features(scale(self.features), self.device)

    def scaled_by(self, scale: Scale) -> GraphTensors:
        """The same nodes with features scaled by another method; the rest is shared."""
        return cast(GraphTensors, OtherFeatures(self, scale))

    @cached_property
    def normalized(self) -> SparseMatrix:
        """``D^-1/2 (A + I) D^-1/2``."""
        return normalize_adjacency(self.adjacency)

    @cached_property
    def views(self) -> Sequence[Views]:
        """18 versions of the smoothed features for EM: ``views[i]`` holds those of filter i."""
        return self._viewed[1]

    @cached_property
    def _viewed(self) -> tuple[ViewBases, Sequence[Views]]:
        learned = self._learned.views if self._learned else None
        if learned is None:
            return learn_views(self.unscaled, self.normalized, self._columns_weighted)
        return learned, learned(self.unscaled, self.normalized)

    @cached_property
    def propagation(self) -> Propagation:
        """How features by number of hops are computed."""
        if self._learned is not None:
            return self._learned.propagation
        return Propagation.fit(
            self.unscaled, self.adjacency, self.normalized, self._columns_weighted
        )

    @property
    def learned(self) -> Learned:
        """What other graphs need so that their features mean the same."""
        return Learned(self.propagation, self._viewed[0])

    @cached_property
    def propagated(self) -> dict[str, Tensor]:
        """Blocks of features by number of hops."""
        return self.propagation(self.unscaled, self.adjacency, self.normalized)

    def propagated_by(self, propagation: Propagation) -> dict[str, Tensor]:
        """Blocks of features by number of hops, computed as on another graph."""
        if propagation.equals(self.propagation):
            return self.propagated
        return propagation(self.unscaled, self.adjacency, self.normalized)

    def similar_nodes(self, count: int) -> SimilarNodes:
        """The ``count`` most similar nodes of any node."""
        if count not in self._similar:
            self._similar[count] = SimilarNodes(self.x, count)
        return self._similar[count]

    def in_graph(self, labels: Tensor) -> Tensor:
        """Labels ``(R, m)`` of the nodes of this object as ``(R, n)`` labels of the graph."""
        return labels

    @property
    def neighbor_factor(self) -> Tensor | float:
        """``(m,)`` number of neighbors of each node divided by those that are here."""
        return 1.0

    def smooth(self, values: NodeFunction, by: Filter, name: str) -> NodeFunction:
        """Smooth values over the graph.

        Args:
            values: function of nodes.
            by: the filter.
            name: of the files of a large graph; the same name stands for the same values.

        Returns:
            function that returns the smoothed values of nodes.
        """
        smoothed = by(self.normalized, values(self))
        return lambda nodes: smoothed[:, nodes.nodes]


class OtherFeatures:
    """Nodes whose features are scaled by another method; everything else is that of ``base``.

    Args:
        base: the nodes.
        scale: scales rows of features.
    """

    def __init__(self, base: Any, scale: Scale) -> None:
        self.base, self.scale = base, scale
        self._similar: dict[int, SimilarNodes] = {}

    @cached_property
    def x(self) -> Features:
        found: Features = self.base.features_by(self.scale)
        return found

    def scaled_by(self, scale: Scale) -> OtherFeatures:
        """Nodes with features scaled by a third method."""
        return OtherFeatures(self.base, scale)

    def similar_nodes(self, count: int) -> SimilarNodes:
        """As in :class:`GraphTensors`, by these features."""
        if count not in self._similar:
            self._similar[count] = SimilarNodes(self.x, count)
        return self._similar[count]

    def __getattr__(self, name: str) -> Any:
        if name == "base" or name.startswith("__"):  # not there while an object is unpickled
            raise AttributeError(name)
        return getattr(self.base, name)


def known_labels(labels: Tensor, num_classes: int) -> NodeFunction:
    """Labels ``(R, n)`` as function of nodes: one-hot rows, zero for -1."""

    def rows(nodes: NodeTensors) -> Tensor:
        own = labels[:, nodes.nodes]
        known = (own >= 0)[..., None].float()
        coded = torch.zeros(*own.shape, num_classes, device=own.device)
        return coded.scatter_(-1, own.clamp_min(0)[..., None], known)

    return rows
