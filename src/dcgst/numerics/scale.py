"""Exact scaling by powers of two, so that squares and higher powers neither overflow nor vanish.

Multiplying a floating-point number by a power of two is exact. So a computation that does not
depend on the scale gives the same result, to the last bit, with and without it.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def inverse_power_of_two(magnitudes: Tensor) -> Tensor:
    """The powers of two that scale positive magnitudes to [0.5, 1); one for zero.

    Example:
        >>> inverse_power_of_two(torch.tensor([0.0, 1.0, 6.0, 1e-30])) * 1e-30
        tensor([1.0000e-30, 5.0000e-31, 1.2500e-31, 6.3383e-01])
    """
    exponent = torch.frexp(magnitudes).exponent.clamp(-125, 125)
    return torch.ldexp(torch.ones_like(magnitudes), -exponent)


def inverse_power_of_two_array(magnitudes: NDArray[np.float32]) -> NDArray[np.float32]:
    """:func:`inverse_power_of_two` for arrays.

    Example:
        >>> inverse_power_of_two_array(np.array([0, 6], dtype=np.float32))
        array([1.   , 0.125], dtype=float32)
    """
    _, exponent = np.frexp(magnitudes)
    scale: NDArray[np.float32] = np.ldexp(np.float32(1), -np.clip(exponent, -125, 125))
    return scale
