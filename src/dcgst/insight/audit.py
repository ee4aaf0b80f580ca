"""Audit: a random sample of nodes for a person to label."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dcgst.engine.random import Purpose, derive
from dcgst.errors import InputError
from dcgst.runs import Run


def draw_audit(run: Run, count: int, *, seed: int = 0) -> NDArray[np.int64]:
    """Draw nodes without a given label, uniformly at random, in random order.

    More nodes with the same seed start with the same ones.

    Args:
        run: the run.
        count: number of nodes.
        seed: seed of the sample.
    """
    order = run.graph.id_order
    pool = order[run.split.pool[0][order]]
    if not 1 <= count <= pool.size:
        raise InputError(f"between 1 and {pool.size} nodes can be audited, got {count}")
    rng = np.random.default_rng(derive(seed, Purpose.AUDIT))
    return np.asarray(rng.permutation(pool)[:count])
