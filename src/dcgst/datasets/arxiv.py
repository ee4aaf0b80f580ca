"""ogbn-arxiv (Hu et al., NeurIPS 2020), from OGB's folder or from the graph without features.

https://arxiv.org/abs/2005.00687
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcgst.datasets.source import Source, cache_folder, data_folders, find, locate
from dcgst.errors import InputError
from dcgst.features.components import spectral_features
from dcgst.files import write_bytes
from dcgst.graph import Graph
from dcgst.tables.graph_files import read_npz_arrays

SOURCE = Source(
    "ogbn_arxiv",
    origin="the ogb package",
    remedy="let the ogb package download ogbn-arxiv (NodePropPredDataset('ogbn-arxiv')) and copy "
    "its folder ogbn_arxiv (with raw/ and split/) into the data folder, or for substitute features "
    "make graph.npz with the arrays edge_index, y, train, valid, test",
)
SPLITS = {"train": "train", "val": "valid", "test": "test"}
DIMENSIONS = 128


def available(name: str) -> bool:
    """Whether the graph is on this machine, with or without the official features."""
    return official_folder() is not None or find(SOURCE, "graph.npz") is not None


def load(name: str) -> Graph:
    """Load the graph with OGB's features if available, else with spectral ones (unofficial)."""
    folder = official_folder()
    return _load_official(folder, name) if folder else _load_bare(name)


def official_folder() -> Path | None:
    """OGB's folder with features and splits, if the user has it."""
    folders = (folder / SOURCE.folder for folder in data_folders())
    return next((p for p in folders if (p / "raw" / "node-feat.csv.gz").is_file()), None)


def _load_official(folder: Path, name: str) -> Graph:
    raw, split = folder / "raw", folder / "split" / "time"
    features = _read_csv(raw / "node-feat.csv.gz", np.float32)
    masks = {
        key: _mask(_read_csv(split / f"{file}.csv.gz", np.int64), features.shape[0])
        for key, file in SPLITS.items()
    }
    return Graph.from_edges(
        _read_csv(raw / "edge.csv.gz", np.int64).T,
        features,
        _read_csv(raw / "node-label.csv.gz", np.int64).reshape(-1),
        masks=masks,
        name=name,
    )


def _load_bare(name: str) -> Graph:
    arrays = read_npz_arrays(locate(SOURCE, "graph.npz"), ("edge_index", "y", *SPLITS.values()))
    n = arrays["y"].size
    blank = np.zeros((n, 1), np.float32)
    structure = Graph.from_edges(arrays["edge_index"], blank)
    digest = hashlib.sha256(np.ascontiguousarray(arrays["edge_index"]).tobytes()).hexdigest()[:12]
    features = _cached(
        cache_folder() / SOURCE.folder / f"spectral-{DIMENSIONS}-{digest}.npy",
        lambda: spectral_features(structure.adjacency, DIMENSIONS),
    )
    return Graph.from_edges(
        arrays["edge_index"],
        features,
        arrays["y"].astype(np.int64),
        masks={key: _mask(arrays[file], n) for key, file in SPLITS.items()},
        name=name,
        official=False,
        notes=["unofficial: OGB's features are missing and replaced by spectral features"],
    )


def _cached(path: Path, compute: Callable[[], NDArray[np.float32]]) -> NDArray[np.float32]:
    """Load an array from the cache, or compute and store it."""
    if path.is_file():
        stored: NDArray[np.float32] = np.load(path, allow_pickle=False)
        return stored
    array = compute()
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    write_bytes(path, buffer.getvalue())
    return array


def _mask(nodes: NDArray[np.int64], n: int) -> NDArray[np.bool_]:
    mask = np.zeros(n, dtype=bool)
    mask[nodes.reshape(-1)] = True
    return mask


def _read_csv(path: Path, dtype: type) -> NDArray[Any]:
    try:
        with gzip.open(path, "rt") as file:
            return np.loadtxt(file, delimiter=",", dtype=dtype)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} cannot be read as OGB's compressed table: {error}") from error
