"""Read graphs from GraphML files, NetworkX graphs and files of PyG data."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from dcgst.errors import InputError
from dcgst.graph import Graph
from dcgst.io.files import read_bytes
from dcgst.io.table import Table, cell_text
from dcgst.memory import check_memory

if TYPE_CHECKING:
    from torch_geometric.data import HeteroData

MEMORY_FACTOR = 30.0
"""Memory of a parsed GraphML file as a multiple of its size."""

USED_TENSORS = ("x", "edge_index", "y", "edge_weight", "train_mask", "val_mask", "test_mask")
"""Entries of PyG data that a graph is made of."""


def read_graphml(path: Path) -> tuple[Table, Table]:
    """Read a GraphML file; returns as :func:`networkx_tables`."""
    content = read_bytes(path, MEMORY_FACTOR)
    try:
        import networkx as nx
    except ImportError as error:
        raise InputError(f"reading {path} requires networkx: pip install 'dcgst[io]'") from error
    try:
        graph = nx.parse_graphml(content)
    except MemoryError:
        raise
    except Exception as error:  # NetworkX and its XML parser raise many types
        raise InputError(f"{path} is not valid GraphML: {error}") from error
    return networkx_tables(graph, path)


def networkx_tables(graph: Any, path: Path) -> tuple[Table, Table]:
    """Convert a NetworkX graph to a node table and an edge table.

    Args:
        graph: NetworkX graph of any type.
        path: name of the graph in messages.

    Returns:
        The node table, with the node ids in column ``id``, and the edge table, with the node ids in
        columns ``source`` and ``target``. Attributes are the other columns.

    Example:
        >>> import networkx as nx
        >>> nodes, edges = networkx_tables(nx.DiGraph([("a", "b")]), Path("graph"))
        >>> nodes.columns, edges.columns
        ({'id': ['a', 'b']}, {'source': ['a'], 'target': ['b']})
    """
    if graph.number_of_edges() == 0:
        raise InputError(f"{path} has no nodes or no edges; at least one edge is required")
    # Node ids come first, and replace attributes that are also named id, source or target.
    nodes = [{"id": node} | data | {"id": node} for node, data in graph.nodes(data=True)]
    edges = []
    for first, second, data in graph.edges(data=True):
        directions = [(first, second)]
        if not graph.is_directed():
            directions.append((second, first))
        for source, target in directions:
            ends = {"source": source, "target": target}
            edges.append(ends | data | ends)
    return _to_table(path, nodes), _to_table(path, edges)


def read_pt(path: Path) -> Graph | HeteroData:
    """Read PyG data that ``torch.save`` wrote.

    Only tensors and classes of PyG are loaded, so the file cannot run code.

    Args:
        path: file with PyG ``Data``, a dictionary of its tensors, or a tuple that starts with
            either; or with ``HeteroData``, which is returned as it is.

    Raises:
        InputError: if the file contains anything else.
    """
    from torch_geometric.data import Data, HeteroData
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import BaseStorage, EdgeStorage, GlobalStorage, NodeStorage

    content = io.BytesIO(read_bytes(path))
    try:
        with zipfile.ZipFile(content) as archive:
            total = sum(member.file_size for member in archive.infolist())
    except Exception:  # damaged, or an older file that is no archive: torch.load decides
        total = 0
    check_memory(2 * total, f"{path} needs", "use a machine with more memory")
    content.seek(0)
    storages = [BaseStorage, EdgeStorage, GlobalStorage, NodeStorage]
    allowed = [Data, HeteroData, DataEdgeAttr, DataTensorAttr, *storages]
    try:
        with torch.serialization.safe_globals(allowed):
            data = torch.load(content, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # torch.load raises many types for damaged files
        raise InputError(f"{path} cannot be loaded: {_load_failure(error)}") from error
    if isinstance(data, (tuple, list)) and data:
        data = data[0]
    try:
        if isinstance(data, HeteroData):
            return data
        if isinstance(data, dict):
            data = Data.from_dict(data)
        if isinstance(data, Data):
            _check_tensors(data.to_dict())
            return Graph.from_pyg(data, name=path.stem)
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"the tensors of {path} are not a graph: {error}") from error
    raise InputError(f"{path} contains {type(data).__name__}; PyG Data is required")


def _load_failure(error: Exception) -> str:
    """Why ``torch.load`` failed, without its advice to load unsafely."""
    forbidden = re.search(r"Unsupported (?:global|class)[^\w]*(?:GLOBAL )?([\w.]+)", str(error))
    if forbidden:
        return (
            f"it contains an object of type {forbidden[1]}; only tensors and PyG Data are loaded, "
            "because other objects could run code"
        )
    return "it is damaged, or not a file that torch.save wrote"


def _check_tensors(values: Mapping[str, Any]) -> None:
    """Raise if a tensor is larger than its data: it would fill the memory when it is used."""
    for name in USED_TENSORS:
        value = values.get(name)
        if value is None:
            continue
        if not isinstance(value, torch.Tensor):
            raise InputError(f"{name} is {type(value).__name__}; a tensor is required")
        for part in _parts(value):
            size, stored = part.numel() * part.element_size(), part.untyped_storage().nbytes()
            if size > stored:
                raise InputError(
                    f"tensor {name} of shape {tuple(value.shape)} needs {size:,} bytes, but has "
                    f"{stored:,}; store a contiguous tensor"
                )


def _parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The dense tensors that a tensor consists of."""
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout == torch.sparse_csr:
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout == torch.sparse_csc:
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return [tensor] if tensor.layout == torch.strided else []


def _to_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> Table:
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    columns = {name: [cell_text(path, name, row.get(name)) for row in rows] for name in names}
    return Table(path, columns, range(1, len(rows) + 1), unit="row")
