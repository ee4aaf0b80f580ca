"""Clusters of nodes: k-means for all replicas at once."""

from __future__ import annotations

import torch
from torch import Tensor

from dcgst.engine.random import Streams

_BLOCK = 1 << 25
"""How many similarities are held at once."""


def k_means(z: Tensor, count: int, streams: Streams, steps: int = 30) -> Tensor:
    """``(R, n)`` the cluster of every row of ``z`` ``(R, n, d)``, from 0 to ``count`` - 1.

    Lloyd's algorithm from rows drawn at random; a cluster that loses all rows stays where it was.
    """
    n = z.shape[1]
    count = min(count, n)
    first = streams.uniform(n).argsort(dim=1)[:, :count]
    centres = z.gather(1, first[..., None].expand(-1, -1, z.shape[-1]))
    members = torch.zeros(z.shape[:2], dtype=torch.long, device=z.device)
    for _ in range(steps):
        nearest = _nearest(z, centres)
        if bool((nearest == members).all()):
            break
        members = nearest
        means, sizes = group_means(z, members, count)
        centres = torch.where(sizes[..., None] > 0, means, centres)
    return members


def group_means(z: Tensor, groups: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """``(R, count, d)`` means of the rows of each group, and their numbers ``(R, count)``.

    Rows of ``z`` ``(R, n, d)`` whose group ``(R, n)`` is -1 belong to none. An empty group has the
    mean zero.
    """
    replicas, n, width = z.shape
    place = groups + count * torch.arange(replicas, device=z.device)[:, None]
    inside = (groups >= 0).flatten()
    rows, place = z.reshape(replicas * n, width)[inside], place.flatten()[inside]
    sums = z.new_zeros(replicas * count, width).index_add(0, place, rows)
    sizes = torch.bincount(place, minlength=replicas * count)
    means = sums / sizes.clamp_min(1)[:, None]
    return means.view(replicas, count, width), sizes.view(replicas, count)


def _nearest(z: Tensor, centres: Tensor) -> Tensor:
    """``(R, n)`` the nearest centre of each row, block by block."""
    offset = centres.square().sum(-1)[:, None] / 2
    block = max(1, _BLOCK // (len(z) * centres.shape[1]))
    parts = [(part @ centres.mT - offset).argmax(-1) for part in torch.split(z, block, dim=1)]
    return torch.cat(parts, dim=1)
