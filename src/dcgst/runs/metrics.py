"""Key figures of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcgst.evaluate.calibration import expected_calibration_error
from dcgst.runs.predictions import count_sources
from dcgst.runs.run import Run


def compute_metrics(run: Run) -> dict[str, Any]:
    """Counts, mean probability and shift; accuracy and ECE if there are evaluation nodes."""
    result, given = run.result, run.split.given[0]
    last = list({record["replica"]: record for record in result.history}.values())
    figures: dict[str, Any] = {
        "nodes": run.graph.num_nodes,
        "edges": run.graph.num_edges,
        "classes": run.graph.num_classes,
        **count_sources(result),
        "mean_probability": _mean(result.confidence[~given]),
        "mean_agreement": _mean(result.agreement[~given]),
        "shift_before": round(float(np.mean([r.get("cmd_before", r["cmd"]) for r in last])), 4),
        "shift_after": round(float(np.mean([r["cmd"] for r in last])), 4),
    }
    nodes = run.evaluation_nodes
    if nodes.any():
        proba, truth = result.proba[nodes], run.graph.labels[nodes]
        figures["evaluation_nodes"] = int(nodes.sum())
        figures["evaluated_on_validation"] = bool(run.split.val[0][nodes].any())
        figures["accuracy"] = round(float((proba.argmax(axis=1) == truth).mean()), 4)
        figures["ece"] = round(expected_calibration_error(proba, truth), 4)
    return figures


def _mean(values: NDArray[np.float32]) -> float | None:
    return round(float(values.mean()), 4) if values.size else None
