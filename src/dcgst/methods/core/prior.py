"""Known class shares: checks, and predictions that follow them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from dcgst.errors import InputError, unknown_name
from dcgst.numerics.shares import match_shares


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
    log_proba = torch.from_numpy(proba).clamp_min(1e-9).log()[None]
    nodes, target = torch.from_numpy(pool)[None], torch.from_numpy(shares)[None]
    matched: NDArray[np.float32] = match_shares(log_proba, nodes, target)[0].exp().numpy()
    return matched
