"""Features propagated over the graph, kept apart by the number of hops."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from dcgst.numerics.normalize import Features, unit_rows
from dcgst.numerics.products import spmm
from dcgst.numerics.smoothing import Filter, SmoothedFeatures, weight_columns
from dcgst.numerics.sparse import SparseMatrix

HOPS = 3
DIMENSIONS = 64
PAGERANK = Filter(0.1, 15)


def propagated_features(
    x: Features, adjacency: SparseMatrix, normalized: SparseMatrix
) -> dict[str, Tensor]:
    """Blocks of node features by name, each ``(n, d)`` with mean zero and rows of length one.

    The blocks are the features themselves, their means over the neighbors after 1, 2 and 3 steps of
    a random walk without self-loops, their personalized PageRank mean, and the degree. Kept apart,
    they allow a model to learn which of them tell the classes apart; a sum over hops, as in a GCN,
    assumes that neighbors are alike.

    Args:
        x: ``(n, d)`` features. They are weighted by information and reduced to 64 dimensions.
        adjacency: ``(n, n)``.
        normalized: ``(n, n)`` symmetrically normalized adjacency with self-loops.
    """
    weighted = unit_rows(weight_columns(x))
    reduced = SmoothedFeatures(weighted, normalized, Filter(0.0, 0), DIMENSIONS).view(
        DIMENSIONS, 0.0
    )
    degrees = spmm(adjacency, torch.ones_like(reduced[:, :1]))
    blocks = {"0 hops": reduced}
    hop = reduced
    for hops in range(1, HOPS + 1):
        hop = spmm(adjacency, hop) / degrees.clamp_min(1e-12)
        blocks[f"{hops} hops" if hops > 1 else "1 hop"] = hop
    row_sums = PAGERANK(normalized, torch.ones_like(degrees))
    blocks["PageRank"] = PAGERANK(normalized, reduced) / row_sums
    blocks = {name: F.normalize(block - block.mean(0), dim=-1) for name, block in blocks.items()}
    size = degrees.log1p()
    blocks["degree"] = (size - size.mean()) / size.std(correction=0).clamp_min(1e-12)
    return blocks
