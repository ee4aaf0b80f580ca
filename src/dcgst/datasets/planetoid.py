"""Cora, CiteSeer and PubMed from the original ``ind.*`` files (Yang et al., ICML 2016).

https://arxiv.org/abs/1603.08861
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from dcgst.datasets.files import Source, find, locate
from dcgst.datasets.pickles import read_pickle
from dcgst.errors import InputError
from dcgst.graph import UNKNOWN, Graph

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
