"""Random streams: one per replica, seeded by purpose, independent of all others."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_BLOCK = 1 << 18
"""Numbers per block; a block fits into the CPU cache."""


class Purpose(IntEnum):
    """What random numbers are used for: the first element of the path given to :func:`derive`.

    The values are part of every result. Never change one.
    """

    TRAINING = 0
    """Training number k of a method uses ``TRAINING + k``, for k up to 40.

    Purposes with a number in that range belong to methods with fewer trainings, or derive from
    another seed.
    """
    VALIDATION_SPLIT = 3
    DIAGNOSIS = 4
    SUGGESTION = 5
    MAP = 6
    EDGE_PREDICTOR = 7
    EDGE_SAMPLING = 8
    CLUSTERING = 50
    INFORMATION_GAIN = 60
    UNLABELED_SAMPLE = 70
    EDGE_EDITING = 80
    TUNING = 90
    BOOTSTRAP = 91
    AUDIT = 92
    FOLDS = 93
    BATCHES = 94
    SAMPLE = 95
    MEMBER = 96


def derive(seed: int, *path: int) -> int:
    """Return the seed of one part of a run, independent of the seeds of all other parts.

    Example:
        >>> derive(0, Purpose.TRAINING) == derive(0, Purpose.MAP)
        False
    """
    return int(np.random.SeedSequence(seed, spawn_key=path).generate_state(1, np.uint64)[0] >> 1)


class Streams:
    """One random generator per replica on one device.

    A replica draws the same numbers whether it is computed alone or with others.

    Args:
        seeds: one per replica.
        device: where the numbers are drawn.
        rows: number of rows of each replica if they differ. :meth:`bits8` draws so many and fills
            the other rows with zeros.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        device: torch.device | str = "cpu",
        rows: Sequence[int] | None = None,
    ) -> None:
        self.device, self.rows = torch.device(device), rows
        self.generators = [torch.Generator(self.device).manual_seed(seed) for seed in seeds]

    def __len__(self) -> int:
        return len(self.generators)

    def of(self, replica: int) -> Streams:
        """The stream of one replica; what is drawn from it is not drawn again."""
        own = copy.copy(self)
        own.generators, own.rows = [self.generators[replica]], None
        return own

    def bits8(self, *shape: int) -> Tensor:
        """``(R, *shape)`` random bytes. Eight bytes per draw are ten times as fast as one."""
        count = int(np.prod(shape))
        words = torch.zeros(len(self), -(-count // 8), dtype=torch.int64, device=self.device)
        needed = self.rows or [shape[0]] * len(self)
        for row, generator, own in zip(words, self.generators, needed, strict=True):
            drawn = row[: -(-own * count // shape[0] // 8)]
            drawn.random_(-(2**63), None, generator=generator)
        return words.view(torch.uint8)[:, :count].view(len(self), *shape)

    def uniform(self, *shape: int) -> Tensor:
        """``(R, *shape)`` numbers in [0, 1)."""
        draws = torch.empty(len(self), *shape, device=self.device)
        for row, generator in zip(draws, self.generators, strict=True):
            row.uniform_(generator=generator)
        return draws


def dropout(x: Tensor, rate: float, streams: Streams | None) -> Tensor:
    """Apply dropout to ``(R, ...)`` values; without streams, return them unchanged.

    The rate is rounded to a multiple of 1/256, and kept values are scaled by the rounded rate.
    """
    threshold = min(round(rate * 256), 255)
    if streams is None or threshold == 0 or x.numel() == 0:
        return x
    if len(streams) != x.shape[0]:
        raise ValueError(f"{x.shape[0]} replicas but {len(streams)} random streams")
    bits, scale = streams.bits8(*x.shape[1:]), 256 / (256 - threshold)
    if not x.is_cuda and x.numel() <= _BLOCK:
        # On a CPU, products with a mask of numbers are faster than with a mask of booleans.
        mask = torch.ge(bits, threshold, out=torch.empty(bits.shape, dtype=x.dtype)).mul_(scale)
        return x * mask
    dropped: Tensor = _Mask.apply(x, bits >= threshold, scale)  # type: ignore[no-untyped-call]
    return dropped


class _Mask(torch.autograd.Function):
    """Scaled masking that stores one byte per number for the backward pass."""

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
    """``x * keep * scale``; on a CPU in blocks, so that intermediate values stay in the cache."""
    if x.is_cuda:
        return torch.mul(x, keep).mul_(scale)
    product = torch.empty(x.shape, dtype=x.dtype)
    blocks = (torch.split(t.reshape(-1), _BLOCK) for t in (x, keep, product))
    for part, mask, out in zip(*blocks, strict=True):
        torch.mul(part, mask, out=out).mul_(scale)
    return product
