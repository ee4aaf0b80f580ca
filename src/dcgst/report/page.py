"""The page: what is told, in which order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from dcgst.diagnosis import diagnose
from dcgst.evaluate.calibration import expected_calibration_error, reliability
from dcgst.report.charts import BLUE, GREY, ORANGE, Line, colour_of, line_chart
from dcgst.report.layout import positions, shown_nodes
from dcgst.runs import GIVEN_LABEL, PREDICTED, PSEUDO_LABEL, Run
from dcgst.runs.files import write_text
from dcgst.runs.writing import checkable

UNCERTAIN = 15
SOURCES = (GIVEN_LABEL, PSEUDO_LABEL, PREDICTED)


def write_report(run: Run, path: Path | None = None) -> Path:
    """Write the page, by default into the run's folder."""
    path = path or run.folder / "report.html"
    write_text(path, render(run))
    return path


def render(run: Run) -> str:
    """The page as text: no other file and no network is needed to show it."""
    from jinja2 import Environment

    template = resources.files("dcgst.report").joinpath("page.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(**_content(run))


def _content(run: Run) -> dict[str, Any]:
    graph = run.graph
    labeled = run.split.train[0] | run.split.val[0]
    diagnosis = diagnose(graph, labeled)
    rows = run.predictions
    sources = [row["source"] for row in rows]
    pool = [row for row in rows if row["source"] != GIVEN_LABEL]
    return {
        "title": graph.name,
        "run": run,
        "info": run.info,
        "diagnosis": diagnosis,
        "counts": {source: sources.count(source) for source in SOURCES},
        "confidence": float(np.mean([r["probability"] for r in pool])) if pool else 1.0,
        "classes": _classes(run, sources),
        "uncertain": sorted(pool, key=lambda row: row["margin"])[:UNCERTAIN],
        "shift_chart": _shift_chart(run),
        "label_chart": _label_chart(run),
        "reliability": _reliability(run),
        "map": _map(run, labeled, sources),
        "settings": {k: v for k, v in run.info["settings"].items() if k not in ("device", "chunk")},
    }


def _classes(run: Run, sources: Sequence[str]) -> list[dict[str, Any]]:
    """How many of each class, where from, and how sure."""
    graph, found = run.graph, []
    where = np.array(sources)
    for code, name in enumerate(graph.class_names):
        own = run.labels == code
        open_ = own & (where != GIVEN_LABEL)
        found.append(
            {
                "name": name,
                "colour": colour_of(code, graph.num_classes),
                "nodes": int(own.sum()),
                **{source: int((own & (where == source)).sum()) for source in SOURCES},
                "sure": float(run.proba[open_, code].mean()) if open_.any() else None,
            }
        )
    return found


def _stages(run: Run, key: str) -> tuple[list[int], list[float]]:
    """A quantity of the history, averaged over the replicas that reached each stage."""
    by_stage: dict[int, list[float]] = {}
    for record in run.history:
        if key in record:
            by_stage.setdefault(int(record["stage"]), []).append(record[key])
    stages = sorted(by_stage)
    return stages, [float(np.mean(by_stage[stage])) for stage in stages]


def _shift_chart(run: Run) -> str:
    lines = [Line("all labels of the stage", *_stages(run, "cmd"))]
    stages, before = _stages(run, "cmd_before")
    if stages:
        lines.append(Line("given labels alone", stages, before, GREY, dashed=True, dots=False))
    return line_chart(lines, "stage", "shift (CMD)") if len(lines[0].x) > 1 else ""


def _label_chart(run: Run) -> str:
    if not run.audit.size:
        return ""
    stages = np.unique(run.audit["stage"])
    chosen = run.audit[run.audit["chosen"]]
    means = [(s, chosen["confidence"][chosen["stage"] == s]) for s in stages]
    known = [(int(s), float(values.mean())) for s, values in means if values.size]
    x, y = zip(*known, strict=True) if known else ((), ())
    lines = [Line("confidence of the pseudo-labels chosen", x, y, ORANGE)]
    labeled_x, labeled_y = _stages(run, "labeled")
    share = [count / run.graph.num_nodes for count in labeled_y]
    lines.append(Line("share of nodes labeled", labeled_x, share, BLUE))
    return line_chart(lines, "stage", "share", top=1.0)


def _reliability(run: Run) -> dict[str, Any]:
    """Whether probabilities are honest, on nodes of known class that did not train."""
    known = checkable(run)
    count = int(known.sum())
    if count < 10:
        return {"nodes": count}
    proba, truth = run.proba[known], run.graph.labels[known]
    bins = reliability(proba, truth)
    lines = [
        Line("honest", (0, 1), (0, 1), GREY, dashed=True, dots=False),
        Line("here", [b.confidence for b in bins], [b.accuracy for b in bins]),
    ]
    return {
        "nodes": count,
        "validated": bool(run.split.val[0][known].any()),
        "ece": expected_calibration_error(proba, truth),
        "accuracy": float((proba.argmax(axis=1) == truth).mean()),
        "chart": line_chart(lines, "told probability", "share that is right", top=1.0),
    }


def _map(run: Run, labeled: np.ndarray[Any, Any], sources: Sequence[str]) -> dict[str, Any]:
    """Points for the script of the page."""
    graph = run.graph
    nodes = shown_nodes(graph, labeled)
    places = np.round(1000 * positions(graph, nodes)).astype(int)
    points = {
        "x": places[:, 0].tolist(),
        "y": places[:, 1].tolist(),
        "id": [str(graph.ids[node]) for node in nodes],
        "class": run.labels[nodes].tolist(),
        "probability": [round(float(run.proba[n, run.labels[n]]), 3) for n in nodes],
        "source": [SOURCES.index(sources[node]) for node in nodes],
        "names": list(graph.class_names),
        "colours": [colour_of(code, graph.num_classes) for code in range(graph.num_classes)],
        "sources": SOURCES,
    }
    text = json.dumps(points, separators=(",", ":"))
    return {"points": text.replace("<", "\\u003c"), "shown": len(nodes)}
