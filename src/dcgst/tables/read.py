"""Read a graph from tables, files or objects of other libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import InputError, option
from dcgst.features.components import spectral_features
from dcgst.graph import UNKNOWN, FeatureMatrix, Graph, as_graph
from dcgst.graph.cleaning import clean_edges
from dcgst.memory import no_collection
from dcgst.tables.edges import (
    MOST_RELATIONS,
    Edges,
    EdgeTables,
    add_directions,
    open_edge_tables,
    read_edge_tables,
)
from dcgst.tables.encoders import FeatureEncoder, fit_encoder
from dcgst.tables.graph_files import (
    GraphFormat,
    graph_format,
    is_hetero,
    networkx_tables,
    read_hetero,
)
from dcgst.tables.nodes import (
    Columns,
    Input,
    describe_classes,
    describe_node_columns,
    feature_columns,
    natural_order,
    read_ids,
    read_labels,
    resolve_node_columns,
)
from dcgst.tables.sources import (
    NUM_SPECTRAL_FEATURES,
    STDIN,
    Query,
    has_no_features,
    open_table,
    pyg_without_features,
)
from dcgst.tables.store import SUFFIX, is_store, open_store
from dcgst.tables.table import Table, is_arrow

if TYPE_CHECKING:
    from torch_geometric.data import HeteroData


def read(
    nodes: Any,
    edges: Any = None,
    columns: Columns | None = None,
    *,
    delimiter: str | None = None,
    drop_unknown: bool = False,
    encoder: FeatureEncoder | None = None,
    class_names: Sequence[str] | None = None,
    labels_needed: bool = True,
) -> Input:
    r"""Read a graph. Roles of columns that are not given are guessed, and reported in the notes.

    Args:
        nodes: a node table, a store of ``dcgst import``, a graph file (GraphML, PyG data in
            ``.pt``, or arrays in ``.npz``), a NetworkX graph, PyG ``Data`` or
            ``HeteroData``, or a :class:`~dcgst.Graph`. A table is a CSV or Parquet file, a folder
            of Parquet files, ``-`` for standard input, a :class:`~dcgst.Query` of a database, or a
            table of pandas, Polars or Arrow.
        edges: edge table, required if ``nodes`` is a node table. Several tables, as a list or by
            name, are several relations.
        columns: role of each column.
        delimiter: delimiter of CSV files, one character or ``"tab"``; guessed by default.
        drop_unknown: drop edges with unknown node ids instead of raising an error.
        encoder: fitted encoder of the feature columns; by default, one is fitted.
        class_names: known classes; by default, all classes in the label column.
        labels_needed: whether a node table without a label column is an error.

    Returns:
        The graph, the encoder of its features and notes.

    Raises:
        InputError: if the input cannot be read. The message names the file and the line.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "nodes.csv").write_text("id,size,label\na,1,x\nb,2,y\nc,4,\n")
        >>> _ = (folder / "edges.csv").write_text("source,target\na,b\nb,c\n")
        >>> data = read(folder / "nodes.csv", folder / "edges.csv")
        >>> data.graph
        Graph('nodes': 3 nodes, 2 edges, 1 features, 2 classes, 2 labels)
        >>> data.notes[:3]
        ("id: column 'id'", "label: column 'label'", 'feature size: number, standardized')
    """
    if isinstance(nodes, Input):
        return nodes
    columns = columns or Columns()
    if isinstance(nodes, (str, Path)) and is_store(Path(nodes)):
        if encoder is not None:
            return _store_to_predict(Path(nodes), encoder)
        return _open_alone(Path(nodes), edges is None and columns == Columns())
    if is_hetero(nodes):
        return read_hetero(nodes)
    with no_collection():
        loaded = _load(nodes, edges, columns, delimiter)
        if isinstance(loaded, Graph):
            return Input(loaded, spectral=_is_without_features(nodes), notes=loaded.notes)
        if not isinstance(loaded, tuple):
            return read_hetero(loaded)
        node_table, edge_tables = loaded
        known = Known(encoder, class_names, labels_needed)
        return _from_tables(node_table, edge_tables, columns, known, drop_unknown=drop_unknown)


def _open_alone(path: Path, alone: bool) -> Input:
    """A store; raises unless it is given alone."""
    if not alone:
        raise InputError(
            f"{path} is a store: its edges and the roles of its columns were determined by "
            "`dcgst import`; remove the edge table and the column options"
        )
    return open_store(path)


def _store_to_predict(path: Path, encoder: FeatureEncoder) -> Input:
    """A store whose features were encoded in the same way as those of a fit."""
    data = open_store(path)
    if data.encoder is None or data.encoder.to_json() != encoder.to_json():
        raise InputError(
            f"{path} was imported with means, categories and words of its own; import its tables "
            "with `dcgst import --like RUN`, so that they are encoded like those of the fit"
        )
    return data


def _is_without_features(nodes: Any) -> bool:
    """Whether the features of a graph are computed from its structure."""
    is_file = isinstance(nodes, (str, Path, Query)) or is_arrow(nodes)
    return not is_file and has_no_features(nodes)


def _load_graph_file(
    path: Path, form: GraphFormat, edges: Any, columns: Columns
) -> Graph | HeteroData | tuple[Table, EdgeTables]:
    """Load a file that contains both nodes and edges."""
    if edges is not None:
        raise InputError(f"{path} already contains edges; remove the edge table {edges}")
    if not form.named_columns and columns != Columns():
        raise InputError(
            f"{path} has no named columns; remove {option('label')} and other column options, "
            "they apply to tables only"
        )
    found = form.read(path)
    return (found[0], EdgeTables({"edges": found[1]})) if isinstance(found, tuple) else found


def _load(
    nodes: Any, edges: Any, columns: Columns, delimiter: str | None
) -> Graph | HeteroData | tuple[Table, EdgeTables]:
    """Load the input as a graph, as HeteroData, or as a node table and edge tables."""
    if isinstance(nodes, Query) or is_arrow(nodes):
        if edges is None:
            raise InputError("a node table needs an edge table as second argument")
        return (
            open_table(nodes, delimiter, "nodes"),
            open_edge_tables(edges, delimiter),
        )
    if not isinstance(nodes, (str, Path)):
        is_networkx = hasattr(nodes, "nodes") and hasattr(nodes, "edges")
        if is_networkx:
            node_table, edge_table = networkx_tables(nodes, Path("graph"))
            return node_table, EdgeTables({"edges": edge_table})
        return pyg_without_features(nodes) if has_no_features(nodes) else as_graph(nodes)
    path = Path(nodes)
    form = graph_format(path)
    if form is not None:
        return _load_graph_file(path, form, edges, columns)
    if edges is None and path.name != STDIN and (path.suffix == SUFFIX or path.is_dir()):
        what = "is a folder, but not a store" if path.is_dir() else "does not exist"
        raise InputError(f"{path} {what}; make a store with dcgst import")
    if edges is None and path.name != STDIN and not path.exists():
        raise InputError(f"{path} does not exist; check the path")
    if edges is None:
        raise InputError(f"{path} is a node table: an edge table is required after it")
    inputs = [nodes, *(edges if isinstance(edges, list | tuple) else [edges])]
    if sum(str(own) == STDIN for own in inputs) > 1:
        raise InputError("only one of the tables can be read from standard input")
    return (
        open_table(nodes, delimiter, "nodes"),
        open_edge_tables(edges, delimiter),
    )


@dataclass(frozen=True)
class Known:
    """What an earlier fit knows; arguments of :func:`read`."""

    encoder: FeatureEncoder | None
    class_names: Sequence[str] | None
    labels_needed: bool


def _from_tables(
    nodes: Table, edges: EdgeTables, columns: Columns, known: Known, *, drop_unknown: bool
) -> Input:
    """Build a graph from a node table and edge tables."""
    encoder = known.encoder
    node_columns = resolve_node_columns(
        columns, nodes, edges.first, labels_needed=known.labels_needed
    )
    notes = describe_node_columns(columns, node_columns)
    ids = read_ids(nodes, node_columns.id)
    links, roles, edge_notes = read_edge_tables(edges, ids, columns, drop_unknown=drop_unknown)
    notes += edge_notes
    if links.num_dropped:
        notes.append(f"edges with unknown node ids dropped: {links.num_dropped}")
    labels = read_labels(nodes, node_columns.label, known.class_names)
    notes += describe_classes(labels.class_names)
    if encoder is None:
        names = feature_columns(columns, node_columns, nodes)
        encoder = fit_encoder(nodes, names, columns.kinds)
        notes += encoder.notes
    spectral = not encoder.columns
    features = _spectral_features(links, ids) if spectral else encoder.transform(nodes)
    if spectral:
        notes.append(
            f"no usable feature columns: {features.shape[1]} spectral features are computed from "
            "the graph"
        )
    if columns.directed:
        features = add_directions(features, links.pairs, links.weights)
        notes.append("directed edges: means of the features over targets and sources are added")
    graph = Graph.from_edges(
        links.pairs,
        features,
        labels.codes,
        weights=links.weights,
        ids=np.array(ids),
        class_names=labels.class_names,
        name=nodes.path.stem,
    )
    graph = replace(graph, columns_weighted=not spectral)
    return Input(
        graph,
        None if spectral else encoder,
        spectral,
        replace(
            columns,
            **asdict(node_columns),
            **roles,
        ),
        {name: values for name, values in nodes.columns.items() if name != node_columns.label},
        (*notes, *graph.notes),
        relations=_relations(links, graph.num_nodes),
    )


def _relations(edges: Edges, num_nodes: int) -> dict[str, sp.csr_array]:
    """The adjacency of each relation; empty if there is one."""
    names = [] if edges.types is None else sorted(set(edges.types.tolist()), key=natural_order)
    by_case: dict[str, str] = {}
    for name in names:
        other = by_case.setdefault(name.casefold(), name)
        if other != name:
            raise InputError(
                f"the relations {other!r} and {name!r} differ in letter case only; use one spelling"
            )
    if len(names) > MOST_RELATIONS:
        raise InputError(
            f"there are {len(names):,} relations, at most {MOST_RELATIONS} are possible; name "
            f"another column with {option('edge_type')}, or none"
        )
    found = {}
    for name in names:
        own = edges.types == name
        weights = None if edges.weights is None else edges.weights[own]
        matrix = clean_edges(edges.pairs[:, own], weights, num_nodes)[0]
        if matrix.nnz:
            found[name] = matrix
    return found


def _spectral_features(edges: Edges, ids: Sequence[str]) -> NDArray[np.float32]:
    """Return ``(n, d)`` leading eigenvectors of the normalized adjacency matrix.

    They are computed in the order of the ids, so that the order of the rows does not matter.
    """
    ones = np.ones((len(ids), 1))
    graph = Graph.from_edges(edges.pairs, ones, weights=edges.weights, ids=np.array(ids))
    order = graph.id_order
    in_order = spectral_features(graph.reorder(order).adjacency, NUM_SPECTRAL_FEATURES)
    features = np.empty_like(in_order)
    features[order] = in_order
    return features


def read_batch(
    known: Graph,
    nodes: Any,
    edges: Any,
    columns: Columns,
    encoder: FeatureEncoder,
    *,
    factors: Mapping[str, float] | None = None,
    delimiter: str | None = None,
    drop_unknown: bool = False,
) -> Input:
    """The known graph with new nodes appended; ``table`` has the new nodes only.

    Args:
        known: the graph.
        nodes: table of the new nodes; their ids are not in the graph.
        edges: table of edges between new nodes, and between new and known nodes.
        columns: role of each column, as in the fit.
        encoder: of the columns.
        factors: of the edges of each kind in the known graph; None: all edges count alike.
        delimiter: of CSV files.
        drop_unknown: drop edges with unknown node ids instead of raising an error.
    """
    table, edge_tables = open_table(nodes, delimiter, "nodes"), open_edge_tables(edges, delimiter)
    roles = resolve_node_columns(columns, table, edge_tables.first, labels_needed=False)
    new = read_ids(table, roles.id)
    found = np.flatnonzero(known.find(new) >= 0)
    if found.size:
        row = int(found[0])
        raise InputError(
            f"{table.where(row)}: the node {new[row]!r} is in the graph already; a batch has new "
            "nodes only"
        )
    ids = [*(str(node_id) for node_id in known.ids), *new]
    links, _, notes = read_edge_tables(edge_tables, ids, columns, drop_unknown=drop_unknown)
    labels = read_labels(table, roles.label, None)
    added = _adjacency(links, factors, len(ids))
    before = sp.csr_array(known.adjacency, copy=True)
    before.resize(added.shape)
    adjacency = sp.csr_array(before.maximum(added))
    adjacency.sort_indices()
    graph = Graph(
        adjacency,
        _stack(known.features, encoder.transform(table)),
        np.concatenate([np.full(known.num_nodes, UNKNOWN), labels.codes]),
        labels.class_names,
        np.array(ids),
        name=known.name,
        columns_weighted=known.columns_weighted,
    )
    rows = {name: values for name, values in table.columns.items() if name != roles.label}
    return Input(graph, encoder, False, columns, rows, tuple(notes))


def _adjacency(links: Edges, factors: Mapping[str, float] | None, num_nodes: int) -> sp.csr_array:
    """Edges of a batch; kinds that have no factor are left out."""
    if factors is None or links.types is None:
        return clean_edges(links.pairs, links.weights, num_nodes)[0]
    total = sp.csr_array((num_nodes, num_nodes), dtype=np.float32)
    for name, factor in factors.items():
        own = links.types == name
        if factor and own.any():
            weights = None if links.weights is None else links.weights[own]
            total = total + factor * clean_edges(links.pairs[:, own], weights, num_nodes)[0]
    return sp.csr_array(total).astype(np.float32)


def _stack(known: FeatureMatrix, new: FeatureMatrix) -> FeatureMatrix:
    if sp.issparse(known):
        return sp.csr_array(sp.vstack([known, sp.csr_array(new)]))
    return np.vstack([known, new.toarray() if sp.issparse(new) else new])
