"""Predictions of a stored model on another graph than that of the fit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import InputError, UnknownNodeError
from dcgst.graph import UNKNOWN, Graph
from dcgst.io import Columns, FeatureEncoder, Input, read
from dcgst.io.batch import read_batch
from dcgst.io.edge_columns import NO_COLUMN
from dcgst.io.hetero import is_hetero, read_hetero
from dcgst.memory import check_memory
from dcgst.methods import Result
from dcgst.methods.core.other_graphs import predicts_in_blocks
from dcgst.methods.core.trace import NOT_LABELED, TRAINING_LABEL
from dcgst.methods.relation_features import factors_of, use_relations
from dcgst.numerics.arrays import row_ranges
from dcgst.runs.drift import Drift, find_drift, representation_drift
from dcgst.runs.predictions import Predictions

if TYPE_CHECKING:
    from dcgst.runs.run import Run


PREDICT_BYTES = 6000
"""Memory of a prediction for each node, measured with 64 features."""


@dataclass(frozen=True, eq=False)
class OtherGraph:
    """What a stored model says about another graph.

    Attributes:
        predictions: of all its nodes.
        drift: how it differs from the graph of the fit.
        unused_labels: number of labels in it that were not used.
    """

    predictions: Predictions
    drift: list[Drift]
    unused_labels: int


def predict_other(
    run: Run,
    nodes: Any,
    edges: Any = None,
    *,
    delimiter: str | None = None,
    drop_unknown: bool = False,
    use_labels: bool = False,
    add: bool = False,
) -> OtherGraph:
    """Predictions on another graph, and how it differs from that of the fit.

    Arguments as in :meth:`Run.predict`.
    """
    read_graph = read_added if add else read_other
    data = read_graph(run, nodes, edges, delimiter, drop_unknown)
    graph, new = data.graph, slice(run.graph.num_nodes if add else 0, None)
    if not predicts_in_blocks(run.method, run.result, graph):
        check_memory(
            graph.num_nodes * (PREDICT_BYTES + 40 * len(run.graph.class_names)),
            f"{graph.num_nodes:,} nodes need",
            "use a machine with more memory, or predict a part of the nodes",
        )
    known = known_labels(run, graph, use_labels)
    proba = run.calibration.apply(run.method.predict_proba(graph, known))
    if not all(np.isfinite(proba[part]).all() for part in row_ranges(len(proba))):
        raise InputError(
            "the network gives probabilities that are not finite on this graph; are its "
            "features much larger than those of the fit?"
        )
    given = known[new]
    result = Result(
        proba=proba[new],
        given=given,
        labeled_stage=np.where(given != UNKNOWN, TRAINING_LABEL, NOT_LABELED),
        agreement=np.ones(len(given), dtype=np.float32),
        history=[],
        stop_reason="",
    )
    unused = 0 if use_labels else int(((graph.labels != UNKNOWN) & (known == UNKNOWN)).sum())
    drift = find_drift(run.graph, graph, data.encoder, run.table, data.table, new)
    if run.result.models and run.store is None:
        drift += representation_drift(run.method.embed(), run.method.embed(graph)[new])
    return OtherGraph(
        Predictions(graph.ids[new], run.graph.class_names, result, agreement=False), drift, unused
    )


def read_added(
    run: Run, nodes: Any, edges: Any, delimiter: str | None, drop_unknown: bool
) -> Input:
    """The graph of the run with a batch of new nodes."""
    stored = run.info["encoder"]
    columns = Columns.from_json(run.info["columns"])
    weighed = any(relation.weight != 1 for relation in run.relations)
    factors = factors_of(run.relations) if weighed else None
    separate = any(relation.own_features for relation in run.relations)
    if edges is None:
        raise InputError("new nodes need a table of their edges")
    timed = columns.edge_time is not None
    known = stored is not None and run.store is None and (not weighed or factors is not None)
    if not known or separate or columns.directed or timed:
        raise InputError(
            "new nodes can be added to a run that was fitted on a node table in memory, without "
            "--directed, --edge-time and separate features of kinds of edges; else give tables of "
            "all nodes"
        )
    return read_batch(
        run.graph,
        nodes,
        edges,
        columns,
        FeatureEncoder.from_json(stored),
        factors=factors,
        delimiter=delimiter,
        drop_unknown=drop_unknown,
    )


def read_other(
    run: Run, nodes: Any, edges: Any, delimiter: str | None, drop_unknown: bool
) -> Input:
    """Read another graph with the feature encoder of this run."""
    if run.info["spectral"]:
        raise InputError(
            "the features of this run were computed from its graph and have no meaning on "
            "another graph; fit again on the new graph"
        )
    stored = run.info["encoder"]
    encoder = FeatureEncoder.from_json(stored) if stored else None
    if is_hetero(nodes):
        found = read_hetero(nodes, run.graph.name)
    else:
        try:
            found = read(
                nodes,
                edges,
                Columns.from_json(run.info["columns"]) if encoder else None,
                delimiter=delimiter,
                drop_unknown=drop_unknown,
                encoder=encoder,
                labels_needed=False,
            )
        except UnknownNodeError as error:
            if run.graph.find([error.node_id])[0] < 0:
                raise
            raise InputError(
                f"{error}; it is a node of the run: if the tables have new nodes only, use --add"
            ) from error
    if (found.encoder is None) != (encoder is None):
        expected = "node and edge tables" if encoder else "a graph with a feature matrix"
        raise InputError(f"this run was fitted on {expected}; the new graph must be the same")
    if found.relations and run.relations:
        weights = {relation.name: relation.weight for relation in run.relations}
        unknown = [name for name in found.relations if name not in weights]
        if unknown:
            warnings.warn(
                f"the edges of kind {', '.join(unknown)} are not used: the fit had none of them",
                stacklevel=2,
            )
        graph = use_relations(found.graph, found.relations, run.relations)
        return replace(found, graph=graph, relations={})
    return found


def roles_of(run: Run) -> tuple[Columns, FeatureEncoder]:
    """Role of each column and the encoder of the features, for stores that a run can predict."""
    columns, stored = Columns.from_json(run.info["columns"]), run.info["encoder"]
    weighed = any(relation.weight != 1 or relation.own_features for relation in run.relations)
    if stored is None or weighed or columns.directed or columns.edge_time is not None:
        raise InputError(
            f"the run {run.folder} has no node table, or weighs edges by kind, time or direction, "
            "which a store cannot do; predict the tables themselves"
        )
    return replace(columns, edge_type=NO_COLUMN), FeatureEncoder.from_json(stored)


def known_labels(run: Run, graph: Graph, use_labels: bool) -> NDArray[np.int64]:
    """Labels of the run for the same nodes, and those of another graph if asked for."""
    codes = {name: code for code, name in enumerate(run.graph.class_names)}
    labels = graph.labels if use_labels else np.full_like(graph.labels, UNKNOWN)
    if "train" in graph.masks:  # labels outside these masks are for evaluation
        used = graph.masks["train"] | graph.masks.get("val", False)
        labels = np.where(used, labels, UNKNOWN)
    for code in np.unique(labels[labels != UNKNOWN]):
        if graph.class_names[code] not in codes:
            raise InputError(
                f"the class {graph.class_names[code]!r} is not a class of the model; its "
                f"classes are {', '.join(run.graph.class_names[:20])}"
            )
    own_codes = np.array([codes.get(name, UNKNOWN) for name in graph.class_names] or [UNKNOWN])
    known = np.where(labels == UNKNOWN, UNKNOWN, own_codes[labels]).astype(np.int64)
    given = np.flatnonzero(run.split.given[0])
    if not ids_name_nodes(run.graph, graph, given):
        return known
    places = graph.find([str(node_id) for node_id in run.graph.ids[given].tolist()])
    free = (places >= 0) & (known[places] == UNKNOWN)
    known[places[free]] = run.graph.labels[given[free]]
    return known


def ids_name_nodes(fitted: Graph, other: Graph, given: NDArray[np.int64]) -> bool:
    """Whether nodes with the same id are the same nodes.

    Ids of tables name nodes. Those of PyG data and npz files are positions: they mean the same only
    if the graph of the fit has grown, so that the labeled nodes have the features that they had.

    Args:
        fitted: the graph of the fit.
        other: another graph.
        given: the labeled nodes of the fit.
    """
    positions = fitted.ids.dtype.kind in "iu" and np.array_equal(
        fitted.ids, np.arange(fitted.num_nodes)
    )
    if not positions:
        return True
    if other.num_nodes <= given.max(initial=-1) or other.num_features != fitted.num_features:
        return False
    difference = fitted.features[given] - other.features[given]
    return not bool(abs(difference).max() if difference.shape[0] else 0)
