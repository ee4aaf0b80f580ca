"""Graphs whose parts need not be validated."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.graph.checks import FeatureMatrix
from dcgst.graph.graph import Graph


def trusted_graph(
    *,
    adjacency: sp.csr_array,
    features: FeatureMatrix,
    labels: NDArray[np.int64],
    class_names: tuple[str, ...],
    ids: NDArray[Any],
    name: str,
    notes: tuple[str, ...],
    weighted: bool,
    columns_weighted: bool,
) -> Graph:
    """A graph whose parts were validated when they were stored, with its nodes sorted by id.

    Nothing is read, so that memory-mapped arrays can be larger than the memory. Arguments as in
    :class:`Graph`; ``weighted`` says whether any edge weight differs from one.
    """
    graph = object.__new__(Graph)
    fields = {
        "adjacency": adjacency,
        "features": features,
        "labels": labels,
        "class_names": class_names,
        "ids": ids,
        "masks": {},
        "name": name,
        "official": True,
        "notes": notes,
        "columns_weighted": columns_weighted,
    }
    known = {"weighted": weighted, "id_order": np.arange(len(ids))}
    graph.__dict__.update(fields, **known)
    return graph
