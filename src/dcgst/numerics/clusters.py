"""k-means for all replicas together."""

from __future__ import annotations

import torch
from torch import Tensor

from dcgst.engine.random import Streams

_BLOCK = 1 << 25
"""Maximum number of similarities held at once."""


def k_means(z: Tensor, count: int, streams: Streams, steps: int = 30) -> Tensor:
    """``(R, n)`` cluster of every row of ``z`` ``(R, n, d)``, from 0 to ``count`` - 1.

    Lloyd's algorithm, started from random rows. An empty cluster keeps its center.
    (``sklearn.cluster.KMeans`` computes one replica at a time and on a CPU only.)
    """
    n = z.shape[1]
    count = min(count, n)
    first = streams.uniform(n).argsort(dim=1)[:, :count]
    centers = z.gather(1, first[..., None].expand(-1, -1, z.shape[-1]))
    members = torch.full(z.shape[:2], -1, device=z.device)
    for _ in range(steps):
        nearest = _nearest(z, centers)
        if bool((nearest == members).all()):
            break
        members = nearest
        means, sizes = group_means(z, members, count)
        centers = torch.where(sizes[..., None] > 0, means, centers)
    return members


def group_means(z: Tensor, groups: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Mean of the rows of each group ``(R, count, d)``, and group sizes ``(R, count)``.

    Rows of ``z`` ``(R, n, d)`` with group -1 are ignored; ``groups`` is ``(R, n)``. The mean of an
    empty group is zero.
    """
    replicas, n, width = z.shape
    index = groups + count * torch.arange(replicas, device=z.device)[:, None]
    inside = (groups >= 0).flatten()
    rows, index = z.reshape(replicas * n, width)[inside], index.flatten()[inside]
    sums = z.new_zeros(replicas * count, width).index_add(0, index, rows)
    sizes = torch.bincount(index, minlength=replicas * count)
    means = sums / sizes.clamp_min(1)[:, None]
    return means.view(replicas, count, width), sizes.view(replicas, count)


def _nearest(z: Tensor, centers: Tensor) -> Tensor:
    """``(R, n)`` the nearest center of each row, computed in blocks."""
    offset = centers.square().sum(-1)[:, None] / 2
    block = max(1, _BLOCK // (len(z) * centers.shape[1]))
    parts = [(part @ centers.mT - offset).argmax(-1) for part in torch.split(z, block, dim=1)]
    return torch.cat(parts, dim=1)
