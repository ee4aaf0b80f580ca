"""Safe reading of old pickle files.

A pickle can run code. This unpickler allows only the few types that the Planetoid and seed files
consist of and refuses all others.
"""

from __future__ import annotations

import collections
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dcgst.errors import InputError


class _StoredCSR:
    """Replacement for old SciPy matrices: stores their state and runs no code."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state

    def to_scipy(self) -> sp.csr_array:
        parts = tuple(self.state[key] for key in ("data", "indices", "indptr"))
        shape = self.state.get("_shape", self.state.get("shape"))
        return sp.csr_array(parts, shape=shape)


_RECONSTRUCT = np.zeros(0).__reduce__()[0]
_ALLOWED: dict[tuple[str, str], Any] = {
    ("scipy.sparse.csr", "csr_matrix"): _StoredCSR,
    ("scipy.sparse._csr", "csr_matrix"): _StoredCSR,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("__builtin__", "set"): set,
    ("builtins", "set"): set,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}, which is not allowed")
        return _ALLOWED[module, name]


def read_pickle(path: Path) -> Any:
    """Read a pickle of plain containers, arrays and CSR matrices."""
    try:
        with path.open("rb") as file:
            content = _Unpickler(file, encoding="latin1").load()
    except (pickle.UnpicklingError, EOFError, ValueError, KeyError, AttributeError, TypeError) as e:
        raise InputError(f"{path} is not a file of the expected type: {e}") from e
    return content.to_scipy() if isinstance(content, _StoredCSR) else content
