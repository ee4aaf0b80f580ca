"""Sums over neighbors, computed for blocks of rows of an adjacency matrix that may be in files."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from dcgst.graph.references import ByReference
from dcgst.memory import forget
from dcgst.train.device import free_memory

ENTRIES = 1 << 22
"""Entries of the adjacency matrix that are read at a time."""

SHARE_FOR_EDGES = 0.4
"""Largest share of the memory of a GPU that edges may keep."""

Finish = Callable[[slice, Tensor], object]
"""A function that changes the sums ``(m, k)`` of a range of nodes in place."""


@dataclass(frozen=True)
class EdgeTensors:
    """Edges of a range of nodes: neighbors, the first entry of each node, weights if they differ.

    ``offsets`` has one more entry, the number of edges.
    """

    indices: Tensor
    offsets: Tensor
    weights: Tensor | None


class Neighbors(ByReference):
    """The edges of a large graph.

    Sums are computed by a kernel that, on a CPU, prefetches rows. The symmetrically normalized
    adjacency with self-loops is never formed: its two diagonal factors are applied to the sums.

    Args:
        adjacency: ``(n, n)`` symmetric, without self-loops; its arrays may be memory-mapped.
        weighted: whether any weight differs from one; default: found by reading all weights.
        device: where sums are computed. On a GPU, the edges stay there if memory suffices.
    """

    def __init__(
        self,
        adjacency: sp.csr_array,
        weighted: bool | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.adjacency, self.device = adjacency, torch.device(device)
        self.weighted = bool((adjacency.data != 1).any()) if weighted is None else weighted
        n, indptr = adjacency.shape[0], adjacency.indptr
        steps = np.arange(ENTRIES, int(indptr[-1]) + ENTRIES, ENTRIES)
        ends = np.unique(np.concatenate([np.searchsorted(indptr, steps, "right") - 1, [n]]))
        starts = np.concatenate([[0], ends])
        self.ranges = [slice(int(a), int(b)) for a, b in itertools.pairwise(starts) if a < b]

    def __getstate__(self) -> dict[str, Any]:
        """Without what is computed from the edges."""
        state = super().__getstate__()
        return {name: state[name] for name in ("adjacency", "weighted", "device", "ranges")}

    @property
    def num_nodes(self) -> int:
        return int(self.adjacency.shape[0])

    def sums(self, z: Tensor, out: Tensor, finish: Finish) -> Tensor:
        """Sum the rows of ``z`` ``(n, k)`` over the neighbors of each node into ``out``."""
        for nodes, edges in self._edges_by_range():
            out[nodes] = F.embedding_bag(
                edges.indices,
                z,
                edges.offsets,
                mode="sum",
                per_sample_weights=edges.weights,
                include_last_offset=True,
            )
            finish(nodes, out[nodes])
        forget(self.adjacency.indices, self.adjacency.data)
        return out

    def _edges_by_range(self) -> Iterable[tuple[slice, EdgeTensors]]:
        stored = self._stored_edges
        return stored if stored else ((nodes, self._read_edges(nodes)) for nodes in self.ranges)

    @cached_property
    def _stored_edges(self) -> list[tuple[slice, EdgeTensors]]:
        """The edges of a small graph, and those on a GPU with enough memory.

        It is empty if they are read again in every step.
        """
        if len(self.ranges) == 1:
            return [(nodes, self._read_edges(nodes)) for nodes in self.ranges]
        needed = self.adjacency.indices.nbytes + self.weighted * self.adjacency.data.nbytes
        if self.device.type == "cpu" or needed > SHARE_FOR_EDGES * free_memory(self.device):
            return []
        return [(nodes, self._read_edges(nodes)) for nodes in self.ranges]

    def _read_edges(self, nodes: slice) -> EdgeTensors:
        matrix = self.adjacency
        pointers = matrix.indptr[nodes.start : nodes.stop + 1]
        entries = slice(int(pointers[0]), int(pointers[-1]))
        indices = torch.from_numpy(np.array(matrix.indices[entries]))
        offsets = torch.from_numpy(np.asarray(pointers - pointers[0])).to(indices.dtype)
        weights = torch.from_numpy(np.array(matrix.data[entries])) if self.weighted else None
        return EdgeTensors(
            indices.to(self.device),
            offsets.to(self.device),
            None if weights is None else weights.to(self.device),
        )

    @cached_property
    def degrees(self) -> Tensor:
        """``(n, 1)`` sum of the weights of each node's edges."""
        if not self.weighted:
            counts = torch.from_numpy(np.diff(self.adjacency.indptr).astype(np.float32))
            return counts[:, None].to(self.device)
        ones = torch.ones(self.num_nodes, 1, device=self.device)
        return self.sums(ones, torch.empty_like(ones), lambda _nodes, _sums: None)

    @cached_property
    def scale(self) -> Tensor:
        """``(n, 1)`` :math:`(d + 1)^{-1/2}`."""
        return (self.degrees + 1).rsqrt()

    def means(self, z: Tensor, out: Tensor) -> Tensor:
        """Means over the neighbors; zero for a node without neighbors."""
        degrees = self.degrees.clamp_min(1e-12)
        return self.sums(z, out, lambda nodes, sums: sums.div_(degrees[nodes]))

    def smooth(
        self,
        x: Tensor,
        teleport: float,
        hops: Collection[int],
        on_step: Callable[[], object] = lambda: None,
    ) -> Iterator[Tensor]:
        r"""Personalized PageRank smoothing, :math:`Z_{k+1} = (1-a)\,\hat A Z_k + a\,X`.

        It is computed for :math:`U = S Z` with the scale S, so that two further copies are enough.

        Args:
            x: ``(n, k)``; it is changed.
            teleport: a.
            hops: numbers of steps after which the result is needed.
            on_step: called after each step.

        Yields:
            ``(n, k)`` for each of them, in ascending order; valid until the next is asked for.
        """
        scale = self.scale
        factor = (1 - teleport) * scale.square()
        x *= scale
        u, other = x.clone(), torch.empty_like(x)
        x *= teleport

        def finish(nodes: slice, sums: Tensor) -> None:
            sums.add_(u[nodes]).mul_(factor[nodes]).add_(x[nodes])

        for step in range(1, max(hops) + 1):
            self.sums(u, other, finish)
            u, other = other, u
            on_step()
            if step in hops:
                yield torch.div(u, scale, out=other)
