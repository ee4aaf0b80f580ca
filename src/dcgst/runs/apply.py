"""A stored model on another graph: its predictions, and how the graph differs."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import InputError, UnknownNodeError, option
from dcgst.features.matrix import row_ranges
from dcgst.graph import UNKNOWN, FeatureMatrix, Graph
from dcgst.memory import check_memory
from dcgst.methods import Result
from dcgst.methods.other_graphs import predicts_in_blocks
from dcgst.methods.relations import factors_of, use_relations
from dcgst.methods.result import NOT_LABELED, TRAINING_LABEL
from dcgst.runs.predictions import Predictions
from dcgst.tables import Columns, Input, read
from dcgst.tables.edges import NO_COLUMN
from dcgst.tables.encoders import FeatureEncoder
from dcgst.tables.graph_files import is_hetero, read_hetero
from dcgst.tables.kinds import Cells
from dcgst.tables.read import read_batch

if TYPE_CHECKING:
    from dcgst.runs.run import Run


MOST_UNSEEN = 0.05
"""Increase of the share of unseen or missing values that counts as drift."""

SMALLEST_EFFECT = 0.25
"""Difference of means, in standard deviations, that counts as drift."""

NOISE = 3.0
"""A difference of means is drift if it is so many times as large as by chance."""

DEGREE_FACTOR = 2.0
"""Factor between the mean numbers of neighbors that counts as drift."""

SPREAD_FACTOR = 2.0
"""Factor between standard deviations that counts as drift."""

FEW_ROWS = 30
"""With fewer rows, standard deviations are not compared."""

MOST_ROWS = 100_000
"""Rows that are compared, evenly spaced."""


@dataclass(frozen=True)
class Drift:
    """One difference between a graph and that of the fit.

    Attributes:
        what: a column, ``edges``, ``features of neighbors`` or ``representation``.
        text: the difference, for the user.
    """

    what: str
    text: str

    def __str__(self) -> str:
        return f"{self.what}: {self.text}"


def find_drift(
    fitted: Graph,
    new: Graph,
    encoder: FeatureEncoder | None,
    fitted_table: Mapping[str, Sequence[str]],
    new_table: Mapping[str, Sequence[str]],
    rows: slice = slice(None),
) -> list[Drift]:
    """Compare a graph with the one that a model was fitted on.

    Args:
        fitted: the graph of the fit.
        new: the other graph, with the same features.
        encoder: of the columns; None if the graphs have a feature matrix.
        fitted_table: columns of the node table of the fit; may be empty.
        new_table: columns of the other node table; may be empty.
        rows: the nodes of the other graph that are compared.
    """
    found = []
    start = 0
    features = _some_rows(fitted.features), _some_rows(new.features[rows])
    for column in encoder.columns if encoder else ():
        own = slice(start, start + column.width)
        start = own.stop
        if column.name in fitted_table and column.name in new_table:
            cells = [Cells.of(column.name, t[column.name]) for t in (fitted_table, new_table)]
            unseen = [float(column.unknown(part).mean()) for part in cells]
            unseen[0] = max(unseen[0], share_of_single_values(fitted_table[column.name]))
            missing = [part.num_missing / max(1, len(part)) for part in cells]
            sizes = [len(part) for part in cells]
            for (before, now), what in ((unseen, "unseen or unreadable"), (missing, "missing")):
                if now > before + max(MOST_UNSEEN, NOISE * standard_error(before, now, *sizes)):
                    text = f"{now:.0%} of the values are {what}, {before:.0%} in the fit"
                    found.append(Drift(column.name, text))
        parts = features[0][:, own], features[1][:, own]
        effect, spread = mean_difference(*parts), spread_ratio(*parts)
        if effect:
            found.append(Drift(column.name, f"differs by {effect:.1f} standard deviations"))
        if spread is not None:
            found.append(Drift(column.name, f"{spread:.3g} times the spread of the fit"))
    if encoder is None:
        effect = mean_difference(*features)
        if effect:
            found.append(Drift("features", f"differ by {effect:.1f} standard deviations"))
        spread = spread_ratio(*features)
        if spread is not None:
            found.append(Drift("features", f"{spread:.3g} times the spread of the fit"))
    return [*found, *_edge_drift(fitted, new, rows)]


def share_of_single_values(texts: Sequence[str]) -> float:
    """Share of the values of a column that occur once: about as many new values are unseen.

    The estimate of Good and Turing (Good, Biometrika 1953).

    Example:
        >>> share_of_single_values(["a", "a", "b", ""])
        0.25
    """
    counts = Counter(text for text in texts if text)
    return sum(count == 1 for count in counts.values()) / max(1, len(texts))


def standard_error(left: float, right: float, count: int, other: int) -> float:
    """Of the difference between two shares of ``count`` and of ``other`` rows."""
    share = (left * count + right * other) / max(1, count + other)
    return float((share * (1 - share) * (1 / max(1, count) + 1 / max(1, other))) ** 0.5)


def _edge_drift(fitted: Graph, new: Graph, rows: slice) -> list[Drift]:
    degrees = fitted.degrees, new.degrees[rows]
    before, now = (float(own.mean()) for own in degrees)
    error = float(degrees[0].var()) * sum(1 / max(1, len(own)) for own in degrees)
    by_chance = abs(now - before) <= NOISE * error**0.5
    found = []
    if max(before, now) > DEGREE_FACTOR * min(before, now) and not by_chance:
        text = f"{now:.1f} neighbors on average, {before:.1f} in the fit"
        found.append(Drift("edges", text))
    effect = mean_difference(neighbor_means(fitted), neighbor_means(new, rows))
    if effect:
        text = f"differ by {effect:.1f} standard deviations"
        found.append(Drift("features of neighbors", text))
    return found


def representation_drift(fitted: NDArray[np.float32], new: NDArray[np.float32]) -> list[Drift]:
    """Compare node embeddings of a stored network: what the model itself sees of two graphs.

    Args:
        fitted: ``(n, d)`` on the graph of the fit.
        new: ``(m, d)`` on the other graph.
    """
    effect = mean_difference(fitted, new)
    text = f"the embeddings of the network differ by {effect:.1f} standard deviations"
    return [Drift("representation", text)] if effect else []


def neighbor_means(graph: Graph, rows: slice = slice(None)) -> Any:
    """``(m, d)`` means of the features over the neighbors of some of the nodes in a range."""
    edges = _some_rows(graph.adjacency[rows])
    total = np.asarray(edges.sum(axis=1)).reshape(-1)
    factor = sp.diags_array(1 / np.where(total > 0, total, 1), dtype=np.float32)
    return (factor @ edges) @ graph.features


def mean_difference(fitted: FeatureMatrix, new: FeatureMatrix) -> float:
    """Distance between two means, in standard deviations; zero if it may be chance.

    Args:
        fitted: ``(n, d)`` features.
        new: ``(m, d)`` features.
    """
    parts = [_some_rows(matrix) for matrix in (fitted, new)]
    if min(part.shape[0] for part in parts) < 2:
        return 0.0
    means = [_mean(part) for part in parts]
    variance = float(_squares(parts[0], means[0]).mean())
    distance = float(np.linalg.norm(means[0] - means[1]))
    # The variance of few new rows may be small by chance, that of the fit is known.
    chance = (variance * sum(1 / part.shape[0] for part in parts)) ** 0.5
    spread = variance**0.5
    if spread == 0:
        return distance if distance > 1e-6 else 0.0
    effect = distance / spread
    return effect if distance > NOISE * chance and effect > SMALLEST_EFFECT else 0.0


def spread_ratio(fitted: FeatureMatrix, new: FeatureMatrix) -> float | None:
    """Standard deviation of new features divided by that of the fit; None if about the same.

    Arguments as in :func:`mean_difference`.
    """
    parts = [_some_rows(matrix) for matrix in (fitted, new)]
    if min(part.shape[0] for part in parts) < FEW_ROWS:
        return None
    before, now = (_squares(part, _mean(part)) for part in parts)
    variance, new_variance = float(before.mean()), float(now.mean())
    if variance <= 1e-12:
        return None
    chance = float(before.std()) * sum(1 / len(own) for own in (before, now)) ** 0.5
    ratio = round((new_variance / variance) ** 0.5, 6)
    differs = ratio > SPREAD_FACTOR or ratio * SPREAD_FACTOR < 1
    return ratio if differs and abs(new_variance - variance) > NOISE * chance else None


def _some_rows(matrix: FeatureMatrix) -> Any:
    step = -(-matrix.shape[0] // MOST_ROWS) or 1
    return matrix[::step]


def _mean(matrix: Any) -> NDArray[np.float64]:
    """``(d,)`` in double precision."""
    return np.asarray(matrix.astype(np.float64).mean(axis=0)).reshape(-1)


def _squares(matrix: Any, mean: NDArray[Any]) -> NDArray[np.float64]:
    """``(m,)`` squared distance of each row from the mean."""
    if not sp.issparse(matrix):
        dense: NDArray[np.float64] = np.square(np.asarray(matrix, np.float64) - mean).sum(axis=1)
        return dense
    wide = matrix.astype(np.float64)
    own = np.asarray(wide.multiply(wide).sum(axis=1)).reshape(-1)
    sparse: NDArray[np.float64] = np.maximum(own - 2 * (wide @ mean) + np.square(mean).sum(), 0.0)
    return sparse


PREDICT_BYTES = 6000
"""Memory of a prediction for each node, measured with 64 features."""


@dataclass(frozen=True, eq=False)
class OtherGraph:
    """What a stored model says about another graph.

    Attributes:
        predictions: of all its nodes.
        drift: how it differs from the graph of the fit.
        unused_labels: number of labels in it that were not used.
        same_ids: whether nodes with the same id as in the fit are the same nodes.
        absent: members of an ensemble that do not take part.
    """

    predictions: Predictions
    drift: list[Drift]
    unused_labels: int
    same_ids: bool
    absent: list[str]


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
    same_ids = ids_name_nodes(run.graph, graph, np.flatnonzero(run.split.given[0]))
    predictions = Predictions(graph.ids[new], run.graph.class_names, result, agreement=False)
    absent = run.method.members_without_model(run.result, known)
    return OtherGraph(predictions, drift, unused, same_ids, absent)


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
            f"{option('directed', True)}, {option('edge_time')} and separate features of kinds "
            "of edges; else give tables of all nodes"
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
                f"{error}; it is a node of the run: if the tables have new nodes only, use "
                f"{option('add', True)}"
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

    Ids usually name nodes. Those of PyG data and npz files, and ids of a table from 0 to n - 1, are
    positions: they mean the same only if the graph of the fit has grown, so that the labeled nodes
    have the features that they had.

    Args:
        fitted: the graph of the fit.
        other: another graph.
        given: the labeled nodes of the fit.
    """
    if not are_positions(fitted.ids):
        return True
    places = other.find([str(node_id) for node_id in fitted.ids[given].tolist()])
    if (places < 0).any() or other.num_features != fitted.num_features:
        return False
    difference = fitted.features[given] - other.features[places]
    return not bool(abs(difference).max() if difference.shape[0] else 0)


def are_positions(ids: NDArray[Any]) -> bool:
    """Whether ids are the numbers from 0 to n - 1, in any order."""
    texts = ids.astype(str)
    if not np.char.isdecimal(texts).all() or np.char.str_len(texts).max() > len(str(len(texts))):
        return False
    return np.array_equal(np.sort(texts.astype(np.int64)), np.arange(len(texts)))
