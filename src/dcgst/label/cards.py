"""What the page shows of one node."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np

from dcgst.label.journal import LabelState
from dcgst.runs import Run

MOST_NEIGHBORS = 12
LIKELIEST = 3
MOST_TEXT = 2000
"""Characters of a value to show."""


def make_card(run: Run, node: int, state: LabelState, *, hidden: Set[int]) -> dict[str, Any]:
    """Id, columns, neighbors, and the likeliest classes of a node.

    Args:
        run: the run.
        node: position of the node.
        state: what was labeled since.
        hidden: nodes whose predictions are not shown, so that they do not bias the person. If
            this node is one of them, those of its neighbors are not shown either.
    """
    graph = run.graph
    node_id = str(graph.ids[node])
    neighbors = graph.adjacency.indices[slice(*graph.adjacency.indptr[node : node + 2])]
    order = np.argsort(-graph.degrees[neighbors], kind="stable")
    shown = neighbors[order][:MOST_NEIGHBORS].tolist()
    proba = run.result.proba[node]
    likeliest = [] if node in hidden else np.argsort(-proba, kind="stable")[:LIKELIEST].tolist()
    return {
        "node": node,
        "id": node_id,
        "label": state.classes.get(node_id, ""),
        "given": _given(run, node),
        "columns": {name: values[node][:MOST_TEXT] for name, values in run.table.items()},
        "degree": len(neighbors),
        "neighbors": [
            _neighbor(run, other, state, hide_prediction=node in hidden or other in hidden)
            for other in shown
        ],
        "edges": _edges_between(run, shown),
        "likeliest": [
            {"name": graph.class_names[code], "probability": round(float(proba[code]), 3)}
            for code in likeliest
        ],
    }


def _given(run: Run, node: int) -> str:
    if not run.split.given[0][node]:
        return ""
    return str(run.graph.class_names[run.graph.labels[node]])


def _neighbor(run: Run, node: int, state: LabelState, *, hide_prediction: bool) -> dict[str, Any]:
    node_id = str(run.graph.ids[node])
    label = state.classes.get(node_id) or _given(run, node)
    predicted = "" if hide_prediction else run.graph.class_names[run.result.proba[node].argmax()]
    return {"node": node, "id": node_id, "label": label, "predicted": predicted}


def _edges_between(run: Run, nodes: list[int]) -> list[tuple[int, int]]:
    """Pairs of positions in ``nodes`` that are connected."""
    within = run.graph.adjacency[nodes][:, nodes].tocoo()
    pairs = zip(within.row.tolist(), within.col.tolist(), strict=True)
    return [(a, b) for a, b in pairs if a < b]
