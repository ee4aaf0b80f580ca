"""A batch of new nodes, whose edges may lead to nodes of a known graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from dcgst.errors import InputError
from dcgst.graph import UNKNOWN, FeatureMatrix, Graph
from dcgst.graph.cleaning import clean_edges
from dcgst.io.columns import Columns, resolve_node_columns
from dcgst.io.edge_tables import open_edge_tables, read_edge_tables
from dcgst.io.edges import Edges
from dcgst.io.encoders import FeatureEncoder
from dcgst.io.input import Input
from dcgst.io.nodes import read_ids, read_labels
from dcgst.io.sources import open_table


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
