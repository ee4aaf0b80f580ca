"""Checkpoints: results of expensive steps, stored so that an interrupted fit can resume."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from dcgst.files import write_bytes

Tensors = dict[str, Tensor]
_DIGEST_SIZE = hashlib.sha256().digest_size


class Checkpoint:
    """Named steps of one computation, one file each.

    A step must depend on the graph, the settings and the seed only: a second attempt then finds
    the results of the first one under the same names. Cheap work between the steps is repeated.
    Each file starts with the SHA-256 digest of the rest. A damaged file is computed again.

    Args:
        folder: where the files are; ``None`` stores nothing.
        prefix: of names of matrices that belong to the computation, which are stored elsewhere.
    """

    def __init__(self, folder: Path | None = None, prefix: str = "") -> None:
        self.folder, self.prefix = folder, prefix
        self._names: set[str] = set()

    def within(self, name: str) -> Checkpoint:
        """A checkpoint in a subfolder, for a computation that uses the same names of steps."""
        folder = None if self.folder is None else self.folder / name
        return Checkpoint(folder, f"{self.prefix}{name}-")

    def step(self, name: str, compute: Callable[[], Tensors], *, reuse: bool = True) -> Tensors:
        """Return the stored result of a step, or compute and store it.

        Args:
            name: unique within the computation; letters, digits and ``-``.
            compute: called if there is no readable file of that name.
            reuse: whether a stored result is valid.
        """
        if name in self._names:
            raise ValueError(f"two checkpoint steps are named {name!r}")
        self._names.add(name)
        if self.folder is None:
            return compute()
        path = self.folder / f"{name}.step"
        stored = _read(path) if reuse else None
        if stored is not None:
            return stored
        result = compute()
        content = save({key: tensor.detach().contiguous() for key, tensor in result.items()})
        write_bytes(path, hashlib.sha256(content).digest() + content)
        return result


def _read(path: Path) -> Tensors | None:
    """The tensors of a step; None if the file is missing or damaged."""
    try:
        if not path.is_file():
            return None
        stored = path.read_bytes()
        digest, content = stored[:_DIGEST_SIZE], stored[_DIGEST_SIZE:]
        return load(content) if hashlib.sha256(content).digest() == digest else None
    except (SafetensorError, OSError):
        return None
