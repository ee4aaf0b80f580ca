"""Randomness as an argument: one stream per replica, so that a replica never hears the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_BLOCK = 1 << 18
"""How many numbers fit into a processor's cache with room to spare."""


def derive(seed: int, *path: int) -> int:
    """A seed for one part of a run, independent of every other part's."""
    return int(np.random.SeedSequence(seed, spawn_key=path).generate_state(1, np.uint64)[0] >> 1)


class Streams:
    """One random generator per replica on one device.

    A replica draws the same numbers whether it runs alone or among others.
    """

    def __init__(self, seeds: Sequence[int], device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        self.generators = [torch.Generator(self.device).manual_seed(seed) for seed in seeds]

    def __len__(self) -> int:
        return len(self.generators)

    def bits8(self, *shape: int) -> Tensor:
        """``(R, *shape)`` random bytes; eight per draw, an order faster than one draw each."""
        count = int(np.prod(shape))
        words = torch.empty(len(self), -(-count // 8), dtype=torch.int64, device=self.device)
        for row, generator in zip(words, self.generators, strict=True):
            row.random_(-(2**63), None, generator=generator)
        return words.view(torch.uint8)[:, :count].view(len(self), *shape)

    def uniform(self, *shape: int) -> Tensor:
        """``(R, *shape)`` numbers in [0, 1)."""
        draws = torch.empty(len(self), *shape, device=self.device)
        for row, generator in zip(draws, self.generators, strict=True):
            row.uniform_(generator=generator)
        return draws


def dropout(x: Tensor, rate: float, streams: Streams | None) -> Tensor:
    """Drop each number of ``(R, ...)`` with probability ``rate``; without streams, drop nothing.

    The rate is rounded to 1/256, and what is kept is scaled by the rounded rate.
    """
    threshold = min(round(rate * 256), 255)
    if streams is None or threshold == 0:
        return x
    if len(streams) != x.shape[0]:
        raise ValueError(f"{x.shape[0]} replicas but {len(streams)} random streams")
    keep = streams.bits8(*x.shape[1:]) >= threshold
    dropped: Tensor = _Mask.apply(x, keep, 256 / (256 - threshold))  # type: ignore[no-untyped-call]
    return dropped


class _Mask(torch.autograd.Function):
    """Scaled masking that remembers one byte per number for the way back."""

    @staticmethod
    def forward(ctx: object, x: Tensor, keep: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(keep)  # type: ignore[attr-defined]
        ctx.scale = scale  # type: ignore[attr-defined]
        return _masked(x, keep, scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: object, grad: Tensor) -> tuple[Tensor, None, None]:
        (keep,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return _masked(grad, keep, ctx.scale), None, None  # type: ignore[attr-defined]


def _masked(x: Tensor, keep: Tensor, scale: float) -> Tensor:
    """``x * keep * scale``; on a CPU in blocks, so that what lies between stays in its cache."""
    if x.is_cuda or x.numel() <= _BLOCK:
        return torch.mul(x, keep).mul_(scale)
    product = torch.empty(x.shape, dtype=x.dtype)
    blocks = (torch.split(t.reshape(-1), _BLOCK) for t in (x, keep, product))
    for part, mask, out in zip(*blocks, strict=True):
        torch.mul(part, mask, out=out).mul_(scale)
    return product
