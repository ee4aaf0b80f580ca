"""Content of the report."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import UnregisteredError
from dcgst.evaluate.calibration import expected_calibration_error, reliability
from dcgst.files import write_text
from dcgst.insight.diagnosis import DRAWS, Diagnosis, diagnose_run
from dcgst.insight.expectation import expectation
from dcgst.insight.report.charts import BLUE, GRAY, ORANGE, Line, color_of, line_chart
from dcgst.insight.report.layout import positions, shown_nodes
from dcgst.insight.report.rendering import render_template, to_script
from dcgst.methods.relations import verdict
from dcgst.runs import Run, columns
from dcgst.runs.evaluation import RunEvaluation
from dcgst.runs.format import REPORT
from dcgst.runs.predictions import SOURCES, count_sources, source_codes
from dcgst.runs.warnings import prediction_warnings

MOST_UNCERTAIN, MOST_OF_CLASS, MOST_CLASSES = 2000, 100, 200
"""Numbers of uncertain nodes, of nodes of each class, and of classes to list."""

MIN_EVALUATION_NODES = 10
"""Evaluation nodes below which no accuracy is shown."""


def write_report(
    run: Run,
    path: Path | None = None,
    *,
    evaluation: RunEvaluation | None = None,
    diagnosis: Diagnosis | None = None,
) -> Path:
    """Write the report of a run as one HTML file.

    Args:
        run: the run.
        path: the file; default ``report.html`` in the run folder.
        evaluation: result of ``run.evaluate``, to be shown; default: of the classes in the graph
            that the fit did not use.
        diagnosis: of the labels, if it is known already.

    Returns:
        the path.
    """
    path = path or run.folder / REPORT
    write_text(path, render(run, evaluation, diagnosis))
    return path


def render(
    run: Run, evaluation: RunEvaluation | None = None, diagnosis: Diagnosis | None = None
) -> str:
    """The HTML page; it needs no other file and no network."""
    if diagnosis is None:
        diagnosis = diagnose_run(run)
    return render_template("report.html", **_content(run, evaluation, diagnosis))


def _content(run: Run, evaluation: RunEvaluation | None, diagnosis: Diagnosis) -> dict[str, Any]:
    codes = source_codes(run.result)
    pool = run.result.confidence[run.result.given < 0]
    if evaluation is None and (run.evaluation_nodes & run.split.pool[0]).any():
        evaluation = run.evaluate()
    return {
        "title": run.graph.name,
        "run": run,
        "info": run.info,
        "diagnosis": diagnosis,
        "no_estimate": expectation(run, diagnosis),
        "evaluation": evaluation.quality if evaluation else None,
        "unused": [note for note in run.info["notes"] if "not used" in note],
        "draws": DRAWS,
        "counts": count_sources(run.result),
        "confidence": float(pool.mean()) if pool.size else 1.0,
        "classes": _classes(run, codes),
        "warnings": prediction_warnings(run),
        "members": _members(run),
        "relations": verdict(run.relations) if run.relations else "",
        "columns_used": columns.verdict(run.columns_used),
        "nodes": to_script(_nodes(run, codes)),
        "shift_chart": _shift_chart(run),
        "label_chart": _label_chart(run),
        "reliability": _reliability(run),
        "map": _map(run, codes),
        "settings": {
            k: v for k, v in run.info["settings"].items() if k not in ("device", "chunk_size")
        },
    }


def _classes(run: Run, sources: NDArray[np.int8]) -> list[dict[str, Any]]:
    """Number of nodes, sources and mean probability of each class."""
    graph, result = run.graph, run.result
    classes, new = graph.num_classes, result.given < 0
    pairs = len(SOURCES) * result.labels + sources
    counts = np.bincount(pairs, minlength=len(SOURCES) * classes).reshape(classes, len(SOURCES))
    totals = np.bincount(result.labels[new], result.confidence[new], minlength=classes)
    predicted = counts[:, 1:].sum(axis=1)
    return [
        {
            "name": name,
            "color": color_of(code, classes),
            "nodes": int(counts[code].sum()),
            **dict(zip(SOURCES, counts[code].tolist(), strict=True)),
            "mean_probability": totals[code] / predicted[code] if predicted[code] else None,
        }
        for code, name in enumerate(graph.class_names)
    ]


def _members(run: Run) -> list[dict[str, Any]]:
    """Weights of the members of an ensemble, the largest first; empty for other methods."""
    weights = sorted(run.result.member_weights.items(), key=lambda item: -item[1])
    descriptions: Mapping[str, str] = {}
    with suppress(UnregisteredError):  # a member of another package that is not imported
        descriptions = run.method.describe_members() if weights else {}
    return [
        {"name": name, "weight": weight, "description": descriptions.get(name, "")}
        for name, weight in weights
    ]


def _by_stage(run: Run, key: str) -> tuple[list[int], list[float]]:
    """A quantity of the history, averaged over the replicas that reached each stage."""
    values: dict[int, list[float]] = {}
    for record in run.result.history:
        if key in record:
            values.setdefault(int(record["stage"]), []).append(record[key])
    stages = sorted(values)
    return stages, [float(np.mean(values[stage])) for stage in stages]


def _shift_chart(run: Run) -> str:
    lines = [Line("all labels of the stage", *_by_stage(run, "cmd"))]
    stages, before = _by_stage(run, "cmd_before")
    if stages:
        lines.append(Line("given labels alone", stages, before, GRAY, dashed=True, dots=False))
    return line_chart(lines, "stage", "shift (CMD)") if len(lines[0].x) > 1 else ""


def _label_chart(run: Run) -> str:
    candidates = run.result.candidates
    if not candidates.size:
        return ""
    selected = candidates[candidates["selected"]]
    by_stage = [
        (s, selected["confidence"][selected["stage"] == s]) for s in np.unique(candidates["stage"])
    ]
    means = [(int(s), float(values.mean())) for s, values in by_stage if values.size]
    x, y = zip(*means, strict=True) if means else ((), ())
    lines = [Line("confidence of selected pseudo-labels", x, y, ORANGE)]
    labeled_x, labeled_y = _by_stage(run, "labeled")
    share = [count / run.graph.num_nodes for count in labeled_y]
    lines.append(Line("share of labeled nodes", labeled_x, share, BLUE))
    return line_chart(lines, "stage", "share", top=1.0)


def _reliability(run: Run) -> dict[str, Any]:
    """Accuracy and calibration on the evaluation nodes."""
    nodes = run.evaluation_nodes
    count = int(nodes.sum())
    if count < MIN_EVALUATION_NODES:
        return {"nodes": count}
    proba, truth = run.result.proba[nodes], run.graph.labels[nodes]
    bins = reliability(proba, truth)
    lines = [
        Line("perfect calibration", (0, 1), (0, 1), GRAY, dashed=True, dots=False),
        Line("this run", [b.confidence for b in bins], [b.accuracy for b in bins]),
    ]
    return {
        "nodes": count,
        "validation": bool(run.split.val[0][nodes].any()),
        "ece": expected_calibration_error(proba, truth),
        "accuracy": float((proba.argmax(axis=1) == truth).mean()),
        "chart": line_chart(lines, "predicted probability", "accuracy", top=1.0),
    }


def _map(run: Run, sources: NDArray[np.int8]) -> dict[str, Any]:
    """Points of the map, as JSON for the script of the page."""
    graph, result = run.graph, run.result
    nodes = shown_nodes(graph, run.split.given[0])
    places = np.round(1000 * positions(graph, nodes)).astype(int)
    points = {
        "x": places[:, 0].tolist(),
        "y": places[:, 1].tolist(),
        "id": [str(graph.ids[node]) for node in nodes],
        "class": result.labels[nodes].tolist(),
        "probability": [round(float(result.proba[n, result.labels[n]]), 3) for n in nodes],
        "source": sources[nodes].tolist(),
        "names": list(graph.class_names),
        "colors": [color_of(code, graph.num_classes) for code in range(graph.num_classes)],
        "sources": SOURCES,
    }
    return {"points": to_script(points), "shown": len(nodes)}


def _nodes(run: Run, sources: NDArray[np.int8]) -> dict[str, Any]:
    """The most uncertain nodes and the likeliest nodes of each class, for the script of the page.

    An entry of a list is a position in the columns and a probability.
    """
    graph, result, proba = run.graph, run.result, run.result.proba
    pool = np.flatnonzero(result.given < 0)
    uncertain = pool[smallest(result.margin[pool], MOST_UNCERTAIN)]
    lists = {"uncertain": (uncertain, result.confidence[uncertain])}
    for code in range(min(graph.num_classes, MOST_CLASSES)):
        likeliest = pool[smallest(-proba[pool, code], MOST_OF_CLASS)]
        lists[str(code)] = (likeliest, proba[likeliest, code])
    shown = np.unique(np.concatenate([nodes for nodes, _ in lists.values()]))
    place = {node: row for row, node in enumerate(shown.tolist())}
    return {
        "id": [str(graph.ids[node]) for node in shown],
        "class": proba[shown].argmax(axis=1).tolist(),
        "margin": np.round(result.margin[shown].astype(float), 3).tolist(),
        "source": sources[shown].tolist(),
        "names": list(graph.class_names),
        "sources": SOURCES,
        "lists": {
            key: [
                (place[node], round(p, 3))
                for node, p in zip(nodes.tolist(), values.tolist(), strict=True)
            ]
            for key, (nodes, values) in lists.items()
        },
    }


def smallest(values: NDArray[np.floating], count: int) -> NDArray[np.int64]:
    """Positions of the smallest values in ascending order; of equal values, the first ones."""
    if values.size > count:
        bound = np.partition(values, count - 1)[count - 1]
        positions = np.flatnonzero(values <= bound)
    else:
        positions = np.arange(values.size)
    return positions[np.argsort(values[positions], kind="stable")][:count]
