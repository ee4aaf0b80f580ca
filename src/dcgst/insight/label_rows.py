"""Tables of nodes for a person to label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dcgst.io.labels import CHOSEN, RANDOM
from dcgst.runs import Run

__all__ = ["CHOSEN", "RANDOM", "SUGGESTED", "id_and_label", "predictions_of", "rows_to_label"]

SUGGESTED = "suggested"
"""Value of the column ``chosen`` of suggested nodes."""

LABEL = "label"
"""Name of the column to fill in, if the fit had no label column."""


def rows_to_label(
    run: Run, nodes: Sequence[int], more: Sequence[dict[str, Any]] = ()
) -> list[dict[str, Any]]:
    """One record per node for a person to fill in: id, an empty label, the columns of the node.

    Args:
        run: the run.
        nodes: the nodes.
        more: further columns of each node, before those of the table.
    """
    id_column, label_column = id_and_label(run)
    table = {
        name: values for name, values in run.table.items() if name not in (id_column, label_column)
    }
    extra = more or [{}] * len(nodes)
    return [
        {
            id_column: run.graph.ids[node].item(),
            label_column: "",
            **own,
            **{name: values[node] for name, values in table.items() if name not in own},
        }
        for node, own in zip(nodes, extra, strict=True)
    ]


def predictions_of(run: Run, nodes: Sequence[int]) -> list[dict[str, Any]]:
    """Predicted class and its probability of each node."""
    proba = run.result.proba
    return [
        {
            "predicted": run.graph.class_names[int(proba[node].argmax())],
            "probability": round(float(proba[node].max()), 3),
        }
        for node in nodes
    ]


def id_and_label(run: Run) -> tuple[str, str]:
    """Names of the id and the label column in tables to fill in."""
    columns = run.info["columns"]
    return columns["id"] or "id", columns["label"] or LABEL
