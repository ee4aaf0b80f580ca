"""Known class shares: checks, and predictions that follow them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.errors import InputError, unknown_name
from dcgst.memory import forget
from dcgst.numerics.arrays import empty_like, row_ranges
from dcgst.numerics.shares import every_kth, share_offsets


def shares_of(
    prior: Mapping[str, float] | None, class_names: Sequence[str]
) -> NDArray[np.float32] | None:
    """``(C,)`` class shares from shares by name; None without a prior.

    Classes that are not named divide the rest equally.

    Example:
        >>> shares_of({"fraud": 0.1}, ("fraud", "ok")).tolist()
        [0.10000000149011612, 0.8999999761581421]
    """
    if prior is None:
        return None
    for name, share in prior.items():
        if name not in class_names:
            raise unknown_name("class in prior", name, class_names)
        try:
            valid = 0 < share < 1
        except TypeError:
            valid = False
        if not valid:
            raise InputError(f"prior: the share of {name} must be between 0 and 1, got {share}")
    total, missing = math.fsum(prior.values()), len(class_names) - len(prior)
    if missing and total >= 1:
        others = ", ".join(name for name in class_names if name not in prior)
        raise InputError(f"prior: the shares sum to {total:g}, which leaves nothing for {others}")
    if not missing and abs(total - 1) > 0.01:
        raise InputError(f"prior: the shares must sum to 1, got {total:g}")
    rest = (1 - total) / max(1, missing)
    shares = np.array([prior.get(name, rest) for name in class_names])
    normalized: NDArray[np.float32] = (shares / shares.sum()).astype(np.float32)
    return normalized


def follow_shares(
    proba: NDArray[np.float32], pool: NDArray[np.bool_], shares: NDArray[np.float32] | None
) -> NDArray[np.float32]:
    """``(n, C)`` probabilities whose mean over the pool is ``shares``; None: no change."""
    if shares is None:
        return proba
    rows = every_kth(torch.from_numpy(pool)[None]).numpy()
    some, target = torch.from_numpy(np.array(proba[rows])), torch.from_numpy(shares)[None]
    offset = share_offsets(_log(some)[None], torch.from_numpy(pool[rows])[None], target)[0]
    matched = empty_like(proba)
    for nodes in row_ranges(len(proba)):
        own = _log(torch.from_numpy(np.array(proba[nodes])))
        matched[nodes] = (own + offset).softmax(-1).numpy()
        forget(proba, matched)
    return matched


def _log(proba: Tensor) -> Tensor:
    return proba.clamp_min(1e-9).log()
