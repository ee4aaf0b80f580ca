"""What a table or a graph can be read from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from dcgst.graph import Graph
from dcgst.io.arrow import is_arrow, table_from_arrow, to_arrow
from dcgst.io.databases import Query
from dcgst.io.table import Table
from dcgst.io.table_files import read_table
from dcgst.numerics.spectral import spectral_features

STDIN = "-"
"""Stands for standard input."""

NUM_SPECTRAL_FEATURES = 64
"""Number of features computed from the graph structure if there are no feature columns."""


def open_table(
    source: Any, delimiter: str | None, what: str, *, header_required: bool = True
) -> Table:
    """Read a table.

    Args:
        source: a file, ``-`` for standard input, a folder of Parquet files, a :class:`Query`, or a
            table of pandas, Polars or Arrow.
        delimiter: of a CSV file.
        what: ``nodes`` or ``edges``, for messages.
        header_required: as in :func:`read_table`.
    """
    if isinstance(source, Query):
        return source.read()
    if is_arrow(source):
        return table_from_arrow(to_arrow(source), Path(what))
    path = Path("/dev/stdin") if str(source) == STDIN else Path(source)
    return read_table(path, delimiter, header_required=header_required)


def has_no_features(data: Any) -> bool:
    """Whether an object is PyG data without ``x``."""
    return hasattr(data, "edge_index") and getattr(data, "x", None) is None


def pyg_without_features(data: Any) -> Graph:
    """PyG data without ``x``: features are computed from the graph structure."""
    count = int(data.num_nodes)
    placeholder = data.clone()
    placeholder.x = torch.ones(count, 1)
    graph = Graph.from_pyg(placeholder)
    features = spectral_features(graph.adjacency, NUM_SPECTRAL_FEATURES)
    note = f"no x: {features.shape[1]} spectral features are computed from the graph"
    return replace(graph, features=features, notes=(*graph.notes, note))
