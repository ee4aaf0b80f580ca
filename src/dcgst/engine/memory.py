"""Steps that are kept: what was computed once is not computed again after an interruption."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

Tensors = dict[str, Tensor]


class Memory:
    """What the steps of a computation gave, in the order in which they were taken.

    The steps of a computation that depends on its seed alone come in the same order every time: the
    n-th step of a second attempt is the n-th of the first. Steps that are kept must be the costly
    ones; what lies between them is computed again.

    Args:
        folder: where the steps are kept, a file each; without one nothing is kept.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.taken = 0

    def step(self, compute: Callable[[], Tensors]) -> Tensors:
        """What the next step gives: as it was kept, or computed now and kept."""
        if self.folder is None:
            return compute()
        path = self.folder / f"{self.taken:05d}.safetensors"
        self.taken += 1
        if path.exists():
            try:
                return load_file(path)
            except (SafetensorError, OSError):
                path.unlink()  # damaged: computed again
        found = compute()
        self.folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        save_file({name: tensor.detach().contiguous() for name, tensor in found.items()}, part)
        os.replace(part, path)
        return found
