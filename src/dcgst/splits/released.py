"""The training seeds released by SR-GNN (Zhu et al., 2021) as a sampler."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dcgst.datasets.seeds import WHOLE, released_blocks, released_sets
from dcgst.errors import InputError
from dcgst.splits.sample import Request


def sample_released(request: Request) -> list[NDArray[np.int64]]:
    """The released seeds; of each block of one class, the first ``per_class``."""
    name = request.graph.name
    if name in WHOLE:
        sets = released_sets(name, request.rate)
        _check_runs(request, len(sets))
        return [sets[run] for run in request.runs]
    blocks = released_blocks(name)
    _check_runs(request, len(blocks))
    if request.per_class > blocks.shape[2]:
        raise InputError(
            f"the released seeds have {blocks.shape[2]} labels per class, {request.per_class} were "
            "requested; use sampler ppr-s"
        )
    return [blocks[run, :, : request.per_class].ravel() for run in request.runs]


def _check_runs(request: Request, available: int) -> None:
    if request.runs[-1] >= available:
        raise InputError(
            f"the released seeds have runs 0 … {available - 1}, run {request.runs[-1]} was "
            "requested; use sampler ppr-s for more"
        )
