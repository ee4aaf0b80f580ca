"""Tensors of a graph, shared by all runs and replicas."""

from __future__ import annotations

from functools import cached_property

import scipy.sparse as sp
import torch
from torch import Tensor

from dcgst.graph import FeatureMatrix
from dcgst.numerics.normalize import Features, normalize_adjacency, to_features
from dcgst.numerics.propagation import Propagation
from dcgst.numerics.similarity import SimilarNodes
from dcgst.numerics.smoothing import Views, views_of
from dcgst.numerics.sparse import SparseMatrix


class GraphTensors:
    """Features and adjacency of a graph on a device, with everything computed from them once.

    All runs and replicas on the graph share one instance.

    Args:
        features: ``(n, d)``, scaled as the method needs them.
        adjacency: ``(n, n)``.
        device: where the tensors are.
        unscaled: ``(n, d)`` features as they are in the graph, for views and propagation, which
            weight columns first; default ``features``.
    """

    def __init__(
        self,
        features: FeatureMatrix,
        adjacency: sp.csr_array,
        device: torch.device | str = "cpu",
        unscaled: FeatureMatrix | None = None,
    ) -> None:
        self.x: Features = to_features(features, device)
        same = unscaled is None or unscaled is features
        self.unscaled = self.x if same else to_features(unscaled, device)
        self.adjacency = SparseMatrix.from_scipy(adjacency, device)
        self._similar: dict[int, SimilarNodes] = {}

    @property
    def device(self) -> torch.device:
        return self.adjacency.values.device

    @cached_property
    def normalized(self) -> SparseMatrix:
        """``D^-1/2 (A + I) D^-1/2``."""
        return normalize_adjacency(self.adjacency)

    @cached_property
    def views(self) -> list[Views]:
        """18 versions of the smoothed features for EM: ``views[i]`` holds those of filter i."""
        return views_of(self.unscaled, self.normalized)

    @cached_property
    def propagation(self) -> Propagation:
        """How features by number of hops are computed, learned on this graph."""
        return Propagation.fit(self.unscaled, self.adjacency, self.normalized)

    @cached_property
    def propagated(self) -> dict[str, Tensor]:
        """Blocks of features by number of hops."""
        return self.propagation(self.unscaled, self.adjacency, self.normalized)

    def similar_nodes(self, count: int) -> SimilarNodes:
        """The ``count`` most similar nodes of any node."""
        if count not in self._similar:
            self._similar[count] = SimilarNodes(self.x, count)
        return self._similar[count]
