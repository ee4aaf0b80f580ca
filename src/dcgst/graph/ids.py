"""Node ids: unique strings or integers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def find_ids(
    ids: NDArray[Any], order: NDArray[np.int64], wanted: Sequence[str]
) -> NDArray[np.int64]:
    """Positions of ids that are written as text; -1 where there is no such id.

    Args:
        ids: ``(n,)`` unique strings or integers.
        order: ``(n,)`` positions in ascending order of the ids.
        wanted: the ids to find.

    Example:
        >>> find_ids(np.array([7, 5]), np.array([1, 0]), ["5", "05", "x", "7"]).tolist()
        [1, -1, -1, 0]
    """
    if not len(wanted):
        return np.zeros(0, dtype=np.int64)
    keys: NDArray[Any]
    if ids.dtype.kind in "iu":
        keys = _to_integers(wanted, ids.dtype)
    else:
        ids = ids.astype(str) if ids.dtype == object else ids
        keys = np.array(wanted, dtype=str).astype(ids.dtype)  # longer texts are cut off
    places = order[np.searchsorted(ids, keys, sorter=order).clip(max=len(ids) - 1)]
    same = [str(found) == text for found, text in zip(ids[places].tolist(), wanted, strict=True)]
    return np.where(same, places, -1)


def _to_integers(texts: Sequence[str], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Integers; other texts become the smallest integer."""
    bounds = np.iinfo(dtype)
    values = (int(text) if re.fullmatch(r"-?[0-9]{1,20}", text) else bounds.min for text in texts)
    return np.array([v if bounds.min <= v <= bounds.max else bounds.min for v in values], dtype)
