"""Cora, CiteSeer and PubMed (Yang et al., ICML 2016), and their biased training seeds."""

from __future__ import annotations

import collections
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.datasets.source import Source, find, locate
from dcgst.errors import InputError, option
from dcgst.graph import UNKNOWN, Graph


class _StoredCSR:
    """Replacement for old SciPy matrices: stores their state and runs no code."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state

    def to_scipy(self) -> sp.csr_array:
        parts = tuple(self.state[key] for key in ("data", "indices", "indptr"))
        shape = self.state.get("_shape", self.state.get("shape"))
        return sp.csr_array(parts, shape=shape)


_RECONSTRUCT = np.zeros(0).__reduce__()[0]
_ALLOWED: dict[tuple[str, str], Any] = {
    ("scipy.sparse.csr", "csr_matrix"): _StoredCSR,
    ("scipy.sparse._csr", "csr_matrix"): _StoredCSR,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("__builtin__", "set"): set,
    ("builtins", "set"): set,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}, which is not allowed")
        return _ALLOWED[module, name]


def read_pickle(path: Path) -> Any:
    """Read a pickle of plain containers, arrays and CSR matrices."""
    try:
        with path.open("rb") as file:
            content = _Unpickler(file, encoding="latin1").load()
    except (pickle.UnpicklingError, EOFError, ValueError, KeyError, AttributeError, TypeError) as e:
        raise InputError(f"{path} is not a file of the expected type: {e}") from e
    return content.to_scipy() if isinstance(content, _StoredCSR) else content


SOURCE = Source(
    "planetoid",
    origin="https://github.com/kimiyoung/planetoid",
    url="https://github.com/kimiyoung/planetoid/raw/master/data",
)
PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
CLASS_NAMES = {
    "cora": (
        "Theory",
        "Reinforcement_Learning",
        "Genetic_Algorithms",
        "Neural_Networks",
        "Probabilistic_Methods",
        "Case_Based",
        "Rule_Learning",
    ),
    "citeseer": ("AI", "ML", "IR", "DB", "Agents", "HCI"),
    "pubmed": ("Experimental", "Type_1", "Type_2"),
}


def available(name: str) -> bool:
    """Whether all files of a dataset are on this machine."""
    return all(find(SOURCE, f"ind.{name}.{part}") for part in PARTS)


def load(name: str) -> Graph:
    """Load a dataset; see :func:`_load`. Raises an error that names the files if they are wrong."""
    try:
        return _load(name)
    except InputError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        folder = locate(SOURCE, f"ind.{name}.graph").parent
        raise InputError(
            f"the files ind.{name}.* in {folder} are not the dataset ({error}); get them from "
            f"{SOURCE.origin}"
        ) from error


def _load(name: str) -> Graph:
    """Load the graph with all labels and the public split as masks.

    15 test nodes of CiteSeer have no label upstream (an all-zero label row) and no features. They
    stay in the graph with label -1: they are never used for training, validation or evaluation.
    """
    path = {part: locate(SOURCE, f"ind.{name}.{part}") for part in PARTS}
    allx, tx = sp.csr_array(read_pickle(path["allx"])), sp.csr_array(read_pickle(path["tx"]))
    ally, ty = np.asarray(read_pickle(path["ally"])), np.asarray(read_pickle(path["ty"]))
    test = _test_index(path["test.index"])
    n, before = int(test.max()) + 1, allx.shape[0]

    # The rows of tx describe the nodes listed in test.index, in that order. Nodes missing from the
    # list have edges but neither features nor labels.
    position = sp.csr_array(
        (np.ones(test.size), (test, np.arange(test.size))), shape=(n, test.size)
    )
    features = sp.vstack([allx, sp.csr_array((n - before, allx.shape[1]))]) + position @ tx
    one_hot = np.zeros((n, ally.shape[1]))
    one_hot[:before], one_hot[test] = ally, ty
    labels = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), UNKNOWN)

    neighbors = read_pickle(path["graph"])
    source = np.repeat(list(neighbors), [len(v) for v in neighbors.values()])
    edges = np.stack([source, np.concatenate([np.asarray(v, int) for v in neighbors.values()])])

    num_train = read_pickle(path["y"]).shape[0]
    ids = np.arange(n)
    masks = {"train": ids < num_train, "val": (ids >= num_train) & (ids < num_train + 500)}
    masks["test"] = np.isin(ids, test) & (labels != UNKNOWN)
    unknown = int((labels == UNKNOWN).sum())
    return Graph.from_edges(
        edges,
        features,
        labels,
        class_names=CLASS_NAMES[name],
        masks=masks,
        name=name,
        notes=[f"{unknown} nodes have no label upstream"] if unknown else [],
    )


def _test_index(path: Path) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    try:
        return np.loadtxt(path, dtype=np.int64)
    except ValueError as error:
        raise InputError(f"{path} must contain one node number per line: {error}") from error


SEEDS = Source(
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
    path = locate(SEEDS, f"localized_seeds_{dataset}.p")
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
        raise InputError(
            f"seeds of {dataset} were released for {option('rate')} {' and '.join(rates)} only"
        )
    runs = read_pickle(locate(SEEDS, f"{dataset}_{name}.p"))
    return [np.sort(np.fromiter(run, dtype=np.int64)) for run in runs]
