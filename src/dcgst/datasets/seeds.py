"""The biased training seeds released by SR-GNN (Zhu et al., NeurIPS 2021)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dcgst.datasets.files import Source, locate
from dcgst.datasets.pickles import read_pickle
from dcgst.errors import InputError

SOURCE = Source(
    "srgnn_seeds",
    origin="https://github.com/GentleZhu/Shift-Robust-GNNs (folder data)",
    url="https://github.com/GentleZhu/Shift-Robust-GNNs/raw/457ca2122ca73f3d204ca5b4922900b2952fcc8c/data",
)
BLOCK = 20
BLOCKS = ("cora", "citeseer", "pubmed")
WHOLE = {"ogbn-arxiv": ("0.01", "0.05")}


def released_blocks(dataset: str) -> NDArray[np.int64]:
    """``(runs, classes, 20)`` node ids: one block per class, sorted by distance from its root."""
    if dataset not in BLOCKS:
        known = ", ".join((*BLOCKS, *WHOLE))
        raise InputError(f"there are no released seeds for {dataset!r}, only for {known}")
    path = locate(SOURCE, f"localized_seeds_{dataset}.p")
    try:
        blocks = np.array(read_pickle(path), dtype=np.int64)
    except ValueError as error:
        raise InputError(f"{path} must contain runs of equally long blocks: {error}") from error
    if blocks.size % (BLOCK * max(1, len(blocks))):
        raise InputError(
            f"{path} must contain blocks of {BLOCK} node ids, got shape {blocks.shape}"
        )
    return blocks.reshape(len(blocks), -1, BLOCK)


def released_sets(dataset: str, rate: float | None) -> Sequence[NDArray[np.int64]]:
    """One set of training nodes per run; released for a few label rates only."""
    rates = WHOLE[dataset]
    name = f"{rate:g}" if rate is not None else ""
    if name not in rates:
        raise InputError(f"seeds of {dataset} were released for --rate {' and '.join(rates)} only")
    runs = read_pickle(locate(SOURCE, f"{dataset}_{name}.p"))
    return [np.sort(np.fromiter(run, dtype=np.int64)) for run in runs]
