"""Checkpoints: results of expensive steps, stored so that an interrupted fit can resume."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from dcgst.files import replacing

Tensors = dict[str, Tensor]


class Checkpoint:
    """Named steps of one computation, one file each.

    A step must depend on the graph, the settings and the seed only: a second attempt then finds
    the results of the first one under the same names. Cheap work between the steps is repeated.

    Args:
        folder: where the files are; ``None`` stores nothing.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._names: set[str] = set()

    def step(self, name: str, compute: Callable[[], Tensors]) -> Tensors:
        """Return the stored result of a step, or compute and store it.

        Args:
            name: unique within the computation; letters, digits and ``-``.
            compute: called if there is no readable file of that name.
        """
        if name in self._names:
            raise ValueError(f"two checkpoint steps are named {name!r}")
        self._names.add(name)
        if self.folder is None:
            return compute()
        path = self.folder / f"{name}.safetensors"
        if path.exists():
            try:
                return load_file(path)
            except (SafetensorError, OSError):
                path.unlink()  # damaged: compute it again
        result = compute()
        with replacing(path) as temporary:
            tensors = {key: tensor.detach().contiguous() for key, tensor in result.items()}
            save_file(tensors, temporary)
        return result
