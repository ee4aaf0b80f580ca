"""Whole graphs in one file or object: GraphML, NetworkX, PyG, npz."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dcgst.datasets import npz
from dcgst.errors import InputError
from dcgst.graph import Graph
from dcgst.io.table import Table, read_bytes, text_of


def read_graphml(path: Path) -> tuple[Table, Table]:
    content = read_bytes(path)
    try:
        import networkx as nx
    except ImportError as error:
        raise InputError(f"{path} needs networkx to be read: pip install 'dcgst[io]'") from error
    try:
        graph = nx.parse_graphml(content)
    except Exception as error:  # whatever its XML parser and its own code raise
        raise InputError(f"{path} is not GraphML that can be read: {error}") from error
    return tables_of_networkx(graph, path)


def tables_of_networkx(graph: Any, path: Path) -> tuple[Table, Table]:
    """Nodes and edges with their attributes as tables."""
    if graph.number_of_nodes() == 0 or graph.number_of_edges() == 0:
        raise InputError(f"{path} has no nodes or no edges")
    # The graph's own ids and ends go before attributes of the same name.
    nodes = [{"id": node, **about} | {"id": node} for node, about in graph.nodes(data=True)]
    edges = []
    for first, second, about in graph.edges(data=True):
        pairs = [(first, second)] if graph.is_directed() else [(first, second), (second, first)]
        for source, target in pairs:
            ends = {"source": source, "target": target}
            edges.append({**ends, **about, **ends})
    return _table(path, nodes), _table(path, edges)


def _table(path: Path, rows: list[dict[str, Any]]) -> Table:
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    columns = {name: [text_of(path, name, row.get(name)) for row in rows] for name in names}
    return Table(path, columns, range(1, len(rows) + 1))


def read_pt(path: Path) -> Graph:
    """PyG data saved by ``torch.save``; only tensors and PyG's own classes are admitted."""
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import EdgeStorage, GlobalStorage, NodeStorage

    content = io.BytesIO(read_bytes(path))
    admitted = [Data, DataEdgeAttr, DataTensorAttr, EdgeStorage, GlobalStorage, NodeStorage]
    try:
        with torch.serialization.safe_globals(admitted):
            found = torch.load(content, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path} is not PyG data that can be read safely: {reason}") from error
    if isinstance(found, (tuple, list)) and found:
        found = found[0]
    if isinstance(found, dict):
        try:
            found = Data.from_dict(found)
        except (TypeError, ValueError) as error:
            raise InputError(f"{path} does not hold a graph: {error}") from error
    if not isinstance(found, Data):
        raise InputError(f"{path} holds {type(found).__name__}, not PyG Data")
    try:
        return Graph.from_pyg(found, name=path.stem)
    except InputError:
        raise
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"{path} does not hold a graph as PyG has it: {error}") from error


def read_npz(path: Path) -> Graph:
    """Arrays ``edge_index``, ``y`` and features, dense as ``x`` or sparse as its CSR parts."""
    read_bytes(path)
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path} is not an npz file")
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            dense = "x" in archive.files
        if not dense:
            return npz.read(path, path.stem)
        arrays = npz.read_arrays(path, ("edge_index", "x", "y"))
        return Graph.from_edges(arrays["edge_index"], arrays["x"], arrays["y"], name=path.stem)
    except InputError:
        raise
    except (*npz.DAMAGE, IndexError, TypeError) as error:
        raise InputError(f"{path} does not hold a graph: {error}") from error
