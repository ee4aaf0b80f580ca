"""Figures of the page: the estimated accuracy and the data of the map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dcgst.evaluate.estimate import Estimate, estimate_share
from dcgst.label.journal import LabelState
from dcgst.runs import Run

PREDICTED, GIVEN, LABELED = 0, 1, 2
"""Sources of a class on the map."""


def estimate_of(run: Run, base: Run, state: LabelState) -> Estimate | None:
    """Accuracy of a run, from random labels that its predictions do not know; None without any.

    It is about the nodes that nobody has chosen to label.

    Args:
        run: the run.
        base: the run before any label of the session.
        state: what was labeled in the session.
    """
    names, proba = run.graph.class_names, run.result.proba
    truth = {}
    if base.audited:
        audited = np.flatnonzero(base.split.val[0]).tolist()
        truth = {node: base.graph.class_names[base.graph.labels[node]] for node in audited}
    population = run.split.pool[0].copy()
    for node_id, name in state.classes.items():
        node = run.graph.node_of[node_id]
        if node in truth or (node_id in state.random and not run.split.train[0][node]):
            truth[node] = name
        else:
            population[node] = False
    if not truth:
        return None
    nodes = np.array(sorted(truth))
    confidence = proba.max(axis=1)
    predicted = proba[nodes].argmax(axis=1)
    right = np.array([names[c] == truth[n] for n, c in zip(nodes, predicted, strict=True)])
    return estimate_share(
        right,
        confidence[nodes],
        confidence[population],
        calibrated=run.audited and run.method.calibrated,
    )


def map_points(
    run: Run,
    positions: NDArray[np.float32],
    state: LabelState,
    node_of: Mapping[str, int],
    class_names: Sequence[str],
) -> bytes:
    """The number of nodes as int32; x, y and confidence as float32; class and source as int32."""
    number = {name: code for code, name in enumerate(class_names)}
    order = np.array([number[name] for name in run.graph.class_names], dtype=np.int32)
    codes = order[run.result.labels]
    source = np.where(run.split.given[0], GIVEN, PREDICTED).astype(np.int32)
    for node_id, name in state.classes.items():
        node = node_of[node_id]
        codes[node], source[node] = number[name], LABELED
    confidence = run.result.proba.max(axis=1).astype(np.float32)
    columns = (*positions.T, confidence, codes, source)
    content = [np.ascontiguousarray(column).tobytes() for column in columns]
    return np.int32(run.graph.num_nodes).tobytes() + b"".join(content)
