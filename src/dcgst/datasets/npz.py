"""Datasets stored as plain arrays in one ``.npz`` file each."""

from __future__ import annotations

from dcgst.datasets.source import Source, find, locate
from dcgst.graph import Graph
from dcgst.tables.graph_files import read_npz_graph

SOURCE = Source(
    "npz",
    origin="https://github.com/EdisonLeeeee/GraphData and "
    "https://github.com/yandex-research/heterophilous-graphs",
    remedy="convert the original (https://github.com/EdisonLeeeee/GraphData, or "
    "https://github.com/yandex-research/heterophilous-graphs for actor and chameleon_filtered) to "
    "an npz with the arrays edge_index, y, x_data, x_indices, x_indptr, x_shape (features as CSR)",
)


def available(name: str) -> bool:
    """Whether the file of a dataset is on this machine."""
    return find(SOURCE, f"{name}.npz") is not None


def load(name: str) -> Graph:
    """Load a dataset by name."""
    return read_npz_graph(locate(SOURCE, f"{name}.npz"), name)
