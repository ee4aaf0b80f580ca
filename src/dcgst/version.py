"""The version of this package and of the libraries that results depend on."""

from __future__ import annotations

import platform
from functools import cache

VERSION = "0.2.0.dev0"


@cache
def versions() -> dict[str, str]:
    """Versions of dcgst, Python, PyTorch, NumPy and SciPy."""
    import numpy
    import scipy
    import torch

    return {
        "dcgst": VERSION,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": str(numpy.__version__),
        "scipy": str(scipy.__version__),
    }
