"""Cora, CiteSeer and PubMed from the original ``ind.*`` files (Yang et al., 2016)."""

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


def present(name: str) -> bool:
    return all(find(SOURCE, f"ind.{name}.{part}") for part in PARTS)


def load(name: str) -> Graph:
    """The whole graph with all labels, and the public split as masks.

    CiteSeer's 15 test nodes without a label upstream (an all-zero label row, zero features) stay in
    the graph with label -1: they can receive a prediction, but never train, validate or count.
    """
    path = {part: locate(SOURCE, f"ind.{name}.{part}") for part in PARTS}
    allx, tx = sp.csr_array(read_pickle(path["allx"])), sp.csr_array(read_pickle(path["tx"]))
    ally, ty = np.asarray(read_pickle(path["ally"])), np.asarray(read_pickle(path["ty"]))
    test = _test_index(path["test.index"])
    n, before = int(test.max()) + 1, allx.shape[0]

    # The rows of tx describe the nodes listed in test.index, in that order; ids that the list
    # skips are nodes of which nothing is known but their edges.
    place = sp.csr_array((np.ones(test.size), (test, np.arange(test.size))), shape=(n, test.size))
    features = sp.vstack([allx, sp.csr_array((n - before, allx.shape[1]))]) + place @ tx
    one_hot = np.zeros((n, ally.shape[1]))
    one_hot[:before], one_hot[test] = ally, ty
    labels = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), UNKNOWN)

    neighbours = read_pickle(path["graph"])
    source = np.repeat(list(neighbours), [len(v) for v in neighbours.values()])
    edges = np.stack([source, np.concatenate([np.asarray(v, int) for v in neighbours.values()])])

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
        raise InputError(f"{path} must hold one node number a line: {error}") from error
