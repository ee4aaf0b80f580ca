"""Graphs from GraphML, NetworkX, ``.npz`` files, and files and objects of PyG."""

from __future__ import annotations

import io
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.lib.format as npy
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.features.components import spectral_features
from dcgst.graph import FeatureMatrix, Graph
from dcgst.graph.cleaning import checked_csr, clean_edges, clean_mask, features_from_tensor
from dcgst.memory import check_memory
from dcgst.tables.nodes import Input
from dcgst.tables.table import Table, cell_text, open_file, read_bytes, without_compression

if TYPE_CHECKING:
    from torch_geometric.data import HeteroData


DENSE_KEYS = ("edge_index", "y", "x")
SPARSE_KEYS = ("edge_index", "y", "x_data", "x_indices", "x_indptr", "x_shape")

Keys = Sequence[str] | Callable[[Sequence[str]], Sequence[str]]

READ_ERRORS = (
    EOFError,
    IndexError,
    NotImplementedError,
    OSError,
    OverflowError,
    SyntaxError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions that reading a damaged file can raise."""


def read_npz_graph(path: Path, name: str) -> Graph:
    """Read a graph from an npz file. Pickled objects are never loaded.

    Args:
        path: file with the arrays ``edge_index`` of shape ``(2, E)``, ``y`` of class codes (-1 for
            unknown), and the features: dense as ``x``, or in CSR format as ``x_data``,
            ``x_indices``, ``x_indptr`` and ``x_shape``.
        name: name of the graph.

    Raises:
        InputError: if the file is not an npz file, or its arrays are not a graph.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "pair.npz")
        >>> np.savez(path, edge_index=np.array([[0], [1]]), x=np.eye(2), y=np.array([0, -1]))
        >>> read_npz_graph(path, "pair")
        Graph('pair': 2 nodes, 1 edges, 2 features, 1 classes, 1 labels)
    """
    arrays = read_npz_arrays(path, lambda names: DENSE_KEYS if "x" in names else SPARSE_KEYS)
    try:
        features = arrays["x"] if "x" in arrays else _csr_features(arrays)
        return Graph.from_edges(arrays["edge_index"], features, arrays["y"], name=name)
    except (IndexError, TypeError, ValueError) as error:
        raise InputError(f"the arrays of {path} are not a graph: {error}") from error


def read_npz_arrays(path: Path, keys: Keys | None = None) -> dict[str, NDArray[Any]]:
    """Return the named arrays of an npz file, or all. Pickled objects are never loaded.

    Args:
        path: the file.
        keys: names of the arrays, or a function that selects them from the names of all.

    Raises:
        InputError: if the file is not an npz file of plain arrays, if it does not fit into memory,
            or if an array is missing.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "arrays.npz")
        >>> np.savez(path, a=np.arange(3), b=np.zeros(2))
        >>> read_npz_arrays(path, ["a"])
        {'a': array([0, 1, 2])}
    """
    with open_file(path) as file:
        if not zipfile.is_zipfile(file):
            raise InputError(f"{path} is not an npz file; write one with numpy.savez")
        file.seek(0)
        try:
            with zipfile.ZipFile(file) as archive:
                names = [name.removesuffix(".npy") for name in archive.namelist()]
                wanted = names if keys is None else keys(names) if callable(keys) else keys
                _check_sizes(path, archive, wanted)
            file.seek(0)
            with np.load(file, allow_pickle=False) as loaded:
                return {key: loaded[key] for key in wanted}
        except InputError:
            raise
        except READ_ERRORS as error:
            raise InputError(f"{path} is not an npz file of plain arrays: {error}") from error


def _check_sizes(path: Path, archive: zipfile.ZipFile, wanted: Sequence[str]) -> None:
    """Raise before anything is loaded if an array claims another size than its data has."""
    found = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
    missing = [name for name in wanted if name not in found]
    if missing:
        raise InputError(
            f"{path} does not have the arrays {', '.join(missing)}; it has {', '.join(found)}"
        )
    total = sum(found[name].file_size for name in wanted)
    check_memory(2 * total, f"{path} needs", "use a machine with more memory")
    for member in (found[name] for name in wanted):
        with archive.open(member) as data:
            version = npy.read_magic(data)
            read_header = (
                npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            )
            shape, _, dtype = read_header(data)
            if dtype.hasobject:
                raise ValueError("it contains Python objects, which are never loaded")
            if dtype.itemsize == 0 or dtype.kind not in "biufUM":
                raise ValueError(f"array {member.filename} has the type {dtype}")
            size = math.prod(shape) * dtype.itemsize
            if data.tell() + size != member.file_size:
                raise InputError(
                    f"{path} is damaged: array {member.filename.removesuffix('.npy')} of shape "
                    f"{shape} needs {size:,} bytes, but has {member.file_size - data.tell():,}"
                )


def _csr_features(arrays: Mapping[str, NDArray[Any]]) -> sp.csr_array:
    parts = (arrays["x_data"], arrays["x_indices"], arrays["x_indptr"])
    return checked_csr(parts, arrays["x_shape"], "x")


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


NUM_SPECTRAL_FEATURES = 64
MOST_SHARING = 100
"""A node of another type connects its neighbors if there are at most so many."""

REVERSE = "rev_"
"""Prefix of the types of edges that ``ToUndirected`` of PyG adds."""


def is_hetero(data: Any) -> bool:
    """Whether an object is PyG ``HeteroData``."""
    return hasattr(data, "node_types") and hasattr(data, "edge_types")


def read_hetero(data: HeteroData, target: str | None = None) -> Input:
    """A graph of the labeled nodes.

    Edges between labeled nodes are relations. Nodes of another type connect labeled nodes that
    share them: they are a relation, and the mean of their features is added to those of the
    labeled nodes.

    Args:
        data: exactly one of its node types has ``y``.
        target: the type to predict; default the one with ``y``.

    Example:
        >>> import torch
        >>> from torch_geometric.data import HeteroData
        >>> data = HeteroData()
        >>> data["paper"].x, data["paper"].y = torch.eye(3), torch.tensor([0, 1, -1])
        >>> data["author"].num_nodes = 2
        >>> data["paper", "cites", "paper"].edge_index = torch.tensor([[0], [1]])
        >>> data["author", "wrote", "paper"].edge_index = torch.tensor([[0, 0, 1], [1, 2, 2]])
        >>> found = read_hetero(data)
        >>> {name: matrix.nnz // 2 for name, matrix in found.relations.items()}
        {'cites': 1, 'wrote (author)': 1}
    """
    target = _labeled_type(data) if target is None else target
    if target not in data.node_types:
        raise InputError(f"the data has no nodes of type {target!r}, which the model predicts")
    try:
        return _read(data, target)
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the HeteroData cannot be read: {error}") from error


def _read(data: HeteroData, target: str) -> Input:
    count = int(data[target].num_nodes)
    within, between, notes = _edges_of(data, target)
    relations = {
        name: clean_edges(pairs, _weights(data[target, name, target]), count)[0]
        for name, pairs in within.items()
    }
    blocks = [] if data[target].get("x") is None else [features_from_tensor(data[target].x)]
    for (name, other), pairs in between.items():
        incidence = _incidence(pairs, count, int(data[other].num_nodes))
        relations[f"{name} ({other})"] = _sharing(incidence)
        if data[other].get("x") is not None:
            blocks.append(_means(incidence, features_from_tensor(data[other].x)))
            notes.append(f"features of {other}: means over {name}")
    relations = {name: matrix for name, matrix in relations.items() if matrix.nnz}
    if not relations:
        raise InputError(f"the data has no edge that connects two nodes of type {target!r}")
    return _to_input(data[target], target, blocks, relations, notes)


def _edges_of(
    data: HeteroData, target: str
) -> tuple[dict[str, NDArray[Any]], dict[tuple[str, str], NDArray[Any]], list[str]]:
    """Edges between nodes to predict by name; those to nodes of another type; and notes."""
    within: dict[str, NDArray[Any]] = {}
    between: dict[tuple[str, str], NDArray[Any]] = {}
    notes = [f"labeled nodes: {target}"]
    for source, name, end in sorted(data.edge_types, key=lambda kind: kind[1]):
        if (end, name.removeprefix(REVERSE), source) in data.edge_types and name.startswith(
            REVERSE
        ):
            continue
        if target not in (source, end):
            notes.append(f"edges {source} {name} {end}: not used")
            continue
        pairs = data[source, name, end].edge_index.numpy(force=True)
        if source == end:
            within[name] = pairs
            continue
        key = name, end if source == target else source
        pairs = pairs if source == target else pairs[::-1]
        between[key] = np.concatenate([between[key], pairs], axis=1) if key in between else pairs
    return within, between, notes


def _weights(edges: Any) -> NDArray[np.float64] | None:
    """``edge_weight`` of a type of edges, if it has any."""
    found = edges.get("edge_weight")
    return None if found is None else found.double().flatten().numpy(force=True)


def _to_input(
    store: Any,
    name: str,
    blocks: list[Any],
    relations: dict[str, sp.csr_array],
    notes: list[str],
) -> Input:
    total = sum(relations.values(), sp.csr_array(next(iter(relations.values())).shape))
    adjacency = sp.csr_array(total).tocoo()
    pairs = np.stack(adjacency.coords).astype(np.int64)
    if blocks:
        sparse = all(sp.issparse(block) for block in blocks)
        dense = [b.toarray() if sp.issparse(b) and not sparse else b for b in blocks]
        features = sp.csr_array(sp.hstack(dense)) if sparse else np.hstack(dense)
    else:
        matrix = sp.csr_array(adjacency)
        features = spectral_features(matrix.astype(np.float32), NUM_SPECTRAL_FEATURES)
        notes.append(f"no x: {features.shape[1]} spectral features are computed from the graph")
    labels = None if store.get("y") is None else store.y.numpy(force=True)
    masks = {
        key: clean_mask(mask if mask.dim() == 1 else mask[:, 0], f"{key}_mask")
        for key in ("train", "val", "test")
        if (mask := store.get(f"{key}_mask")) is not None
    }
    graph = Graph.from_edges(
        pairs,
        features.astype(np.float32),
        labels,
        weights=adjacency.data,
        masks=masks,
        name=name,
    )
    return Input(graph, spectral=not blocks, notes=tuple(notes), relations=relations)


def _labeled_type(data: HeteroData) -> str:
    labeled = [name for name in data.node_types if data[name].get("y") is not None]
    if len(labeled) != 1:
        found = ", ".join(labeled) or "none"
        raise InputError(
            f"exactly one node type must have labels (y), found {found}; the node types are: "
            f"{', '.join(data.node_types)}"
        )
    return str(labeled[0])


def _incidence(pairs: NDArray[np.int64], rows: int, columns: int) -> sp.csr_array:
    ones = np.ones(pairs.shape[1], dtype=np.float32)
    matrix = sp.csr_array(sp.coo_array((ones, (pairs[0], pairs[1])), shape=(rows, columns)))
    matrix.data[:] = 1  # repeated edges count once
    return matrix


def _means(incidence: sp.csr_array, x: FeatureMatrix) -> FeatureMatrix:
    """``(n, d)`` means of the features ``(m, d)`` of neighbors of another type."""
    degrees = np.maximum(np.asarray(incidence.sum(axis=1)), 1).astype(np.float32)
    scaled = sp.csr_array(incidence / degrees.reshape(-1, 1))
    return scaled @ x


def _sharing(incidence: sp.csr_array) -> sp.csr_array:
    """``(n, n)`` shared neighbors, each divided among those that share it; no self-loops."""
    sizes = np.asarray(incidence.sum(axis=0)).ravel()
    factor = np.where((sizes > 1) & (sizes <= MOST_SHARING), 1 / np.maximum(sizes - 1, 1), 0)
    shared = (incidence * factor[None].astype(np.float32)) @ incidence.T
    shared = sp.csr_array(shared)
    shared.setdiag(0)
    shared.eliminate_zeros()
    shared.sort_indices()
    return shared.astype(np.float32)


@dataclass(frozen=True)
class GraphFormat:
    """A format of files that contain both nodes and edges; one of :data:`GRAPH_FORMATS`.

    Attributes:
        extensions: of file names, in lower case, without that of a compression.
        read: a graph, HeteroData, or a node table and an edge table, from the path.
        named_columns: whether features are named columns, or else a matrix.
    """

    extensions: tuple[str, ...]
    read: Callable[[Path], Graph | HeteroData | tuple[Table, Table]]
    named_columns: bool = False


def graph_format(path: Path) -> GraphFormat | None:
    """The format of a file by its extension; None if it is no graph file."""
    extension = without_compression(path).suffix.lower()
    return next((form for form in GRAPH_FORMATS if extension in form.extensions), None)


GRAPH_FORMATS = (
    GraphFormat((".npz",), lambda path: read_npz_graph(path, path.stem)),
    GraphFormat((".pt", ".pth"), read_pt),
    GraphFormat((".graphml",), read_graphml, named_columns=True),
)
