"""Features propagated over the graph, one block for each number of hops."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor

from dcgst.features.columns import ColumnWeights, times
from dcgst.features.normalize import Features, unit_rows
from dcgst.features.smoothing import Filter

HOPS = ("0 hops", "1 hop", "2 hops", "3 hops")
PAGERANK = "PageRank"
DEGREE = "degree"
DIMENSIONS = 64
SMOOTH = Filter(0.1, 15)
NO_SMOOTHING = Filter(0.0, 0)


@dataclass(frozen=True)
class Propagation:
    """Blocks of node features by number of hops, learned on one graph and applicable to others.

    The blocks are the features themselves, their means over the neighbors after 1, 2 and 3 steps of
    a random walk without self-loops, their personalized PageRank mean, and the degree. Kept apart,
    they allow a model to learn which of them separate the classes; a sum over hops, as in a GCN,
    assumes that neighbors are alike.

    Attributes:
        factor: ``(d,)`` of :class:`ColumnWeights`.
        center: ``(d,)`` of :class:`ColumnWeights`.
        projection: ``(d, k)`` to at most 64 dimensions.
        offset: ``(k,)`` mean of the projected features.
        means: ``(5, k)`` means of the blocks.
        degree: ``(2,)`` mean and standard deviation of the logarithm of degrees.
    """

    factor: Tensor
    center: Tensor
    projection: Tensor
    offset: Tensor
    means: Tensor
    degree: Tensor

    @classmethod
    def empty(cls, num_features: int) -> Propagation:
        """All tensors in their shapes, to be replaced by those of another."""
        k = min(DIMENSIONS, num_features)
        return cls(
            factor=torch.ones(num_features),
            center=torch.zeros(num_features),
            projection=torch.zeros(num_features, k),
            offset=torch.zeros(k),
            means=torch.zeros(len(HOPS) + 1, k),
            degree=torch.tensor([0.0, 1.0]),
        )

    def equals(self, other: Propagation) -> bool:
        """Whether another graph's blocks would be computed in the same way."""
        return all(
            torch.equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
        )

    def digest(self) -> str:
        """A short text that differs if blocks are computed in another way."""
        found = hashlib.sha256()
        for field in fields(self):
            found.update(getattr(self, field.name).numpy(force=True).tobytes())
        return found.hexdigest()[:16]

    def project(self, x: Features) -> Tensor:
        """``(m, k)`` weighted and projected rows of features."""
        weighted = unit_rows(ColumnWeights(self.factor, self.center)(x))
        return times(weighted, self.projection) - self.offset

    def normalize(self, propagated: Sequence[Tensor], degrees: Tensor) -> dict[str, Tensor]:
        """Blocks by name: ``(m, k)`` rows of length one after centering, and the degree.

        Args:
            propagated: of 0 to 3 hops, and the PageRank means, ``(m, k)`` each.
            degrees: ``(m, 1)``.
        """
        blocks = {
            name: F.normalize(block - mean, dim=-1)
            for name, block, mean in zip((*HOPS, PAGERANK), propagated, self.means, strict=True)
        }
        mean, std = self.degree
        return {**blocks, DEGREE: (degrees.log1p() - mean) / std}
