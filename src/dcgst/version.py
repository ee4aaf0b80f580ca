"""Which version this is, and of what else numbers depend on."""

from __future__ import annotations

import platform
from functools import cache

VERSION = "0.1.0"


@cache
def versions() -> dict[str, str]:
    """Of everything that numbers depend on."""
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
