"""Operations on blocks of columns, which may run in other processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from dcgst.files import TEMPORARY
from dcgst.numerics.neighbors import Neighbors

Step = Callable[[], object]
"""A function that is called after each step of an operation."""


class Operation(Protocol):
    """Computes new blocks of columns ``(n, k)`` from one block, which it may change.

    A result may be changed once the next is asked for.
    """

    @property
    def steps(self) -> int:
        """Number of steps."""

    def __call__(self, neighbors: Neighbors, block: Tensor, on_step: Step) -> Iterator[Tensor]:
        """Yield the new blocks."""


@dataclass(frozen=True)
class Smoothing:
    """Personalized PageRank smoothing.

    Attributes:
        teleport: probability to return to the start.
        hops: numbers of steps after which the result is needed, in ascending order.
        sums: ``(n, 1)`` for each result, which it is divided by; None for no division.
    """

    teleport: float
    hops: tuple[int, ...]
    sums: tuple[Tensor, ...] | None = None

    @property
    def steps(self) -> int:
        return max(self.hops)

    def __call__(self, neighbors: Neighbors, block: Tensor, on_step: Step) -> Iterator[Tensor]:
        smoothed = neighbors.smooth(block, self.teleport, self.hops, on_step)
        for number, z in enumerate(smoothed):
            yield z if self.sums is None else z.div_(self.sums[number])


@dataclass(frozen=True)
class Means:
    """Means over the neighbors, repeated.

    Attributes:
        steps: how often; each result is yielded.
    """

    steps: int

    def __call__(self, neighbors: Neighbors, block: Tensor, on_step: Step) -> Iterator[Tensor]:
        other = torch.empty_like(block)
        for _ in range(self.steps):
            block, other = neighbors.means(block, other), block
            on_step()
            yield block


def compute_files(
    operation: Operation,
    neighbors: Neighbors,
    source: Path,
    width: int,
    targets: Sequence[Path],
    on_step: Step = lambda: None,
) -> None:
    """Apply an operation to a block of columns in a file; the results are written atomically.

    Args:
        operation: the operation.
        neighbors: the edges.
        source: file of the block.
        width: number of columns of the block.
        targets: files of the results.
        on_step: called after each step.
    """
    block = torch.from_numpy(np.fromfile(source, dtype=np.float32).reshape(-1, width))
    results = operation(neighbors, block.to(neighbors.device), on_step)
    for target, result in zip(targets, results, strict=True):
        partial = target.with_suffix(TEMPORARY)
        result.numpy(force=True).tofile(partial)
        partial.replace(target)
