"""The result of reading a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from dcgst.graph import Graph
from dcgst.io.columns import Columns
from dcgst.io.encoders import FeatureEncoder


@dataclass(frozen=True)
class StoreReference:
    """The store that a graph is in.

    Attributes:
        path: the folder.
        digest: SHA-256 digest of its arrays.
    """

    path: Path
    digest: str


@dataclass(frozen=True)
class Input:
    """A graph and how it was read.

    Args:
        graph: the graph.
        encoder: encoder that converted columns to features. None if the input had a feature
            matrix, or if the features were computed from the graph structure.
        spectral: whether the features were computed from the graph structure.
        columns: role of each column, given or guessed.
        table: columns of the node table by name, as text, except for the label column; empty if
            the input was no table.
        notes: what was guessed, changed or dropped, for the user.
        audited: whether validation labels are those of randomly chosen nodes.
        store: the store that the graph is in; None if it is in memory.
        weighed: facts about kinds of edges that were weighed in an earlier fit.
        relations: ``(n, n)`` adjacency of each kind of edges by name; empty if there are no kinds.
    """

    graph: Graph
    encoder: FeatureEncoder | None = None
    spectral: bool = False
    columns: Columns = field(default_factory=Columns)
    table: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    audited: bool = False
    store: StoreReference | None = None
    relations: Mapping[str, sp.csr_array] = field(default_factory=dict)
    weighed: tuple[Mapping[str, Any], ...] = ()
