"""Pages: the report of a run, and the comparison of two runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import UnregisteredError
from dcgst.evaluate.quality import evaluate
from dcgst.files import write_text
from dcgst.graph import Graph
from dcgst.insight.comparison import Comparison
from dcgst.insight.diagnosis import DRAWS, Diagnosis, diagnose_run, shown_accuracy
from dcgst.insight.suggestion import similarity_space
from dcgst.methods.relations import verdict
from dcgst.runs import Run
from dcgst.runs import predictions as columns
from dcgst.runs.assessment import RunEvaluation, prediction_warnings
from dcgst.runs.folder import REPORT
from dcgst.runs.predictions import SOURCES, count_classes, count_sources, source_codes
from dcgst.text import printable
from dcgst.train.random import Purpose, derive


def render_template(name: str, **content: Any) -> str:
    """Render a template of ``templates/`` with autoescaping."""
    from jinja2 import Environment, FunctionLoader

    folder = resources.files("dcgst.insight").joinpath("templates")
    environment = Environment(
        loader=FunctionLoader(lambda file: folder.joinpath(file).read_text(encoding="utf-8")),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    return environment.get_template(name).render(**content)


def to_script(value: Any) -> str:
    """JSON that is safe inside a ``script`` element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


BLUE, ORANGE, GREEN, GRAY = "#0072B2", "#D55E00", "#009E73", "#6b7280"
PALETTE = (BLUE, "#E69F00", GREEN, "#CC79A7", "#56B4E9", ORANGE, "#F0E442", "#444444")
"""The colors of Okabe and Ito, which people with color blindness can distinguish."""

WIDTH, HEIGHT = 360, 200
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 36


@dataclass(frozen=True)
class Line:
    """A line of a chart."""

    title: str
    x: Sequence[float]
    y: Sequence[float]
    color: str = BLUE
    dashed: bool = False
    dots: bool = True


def color_of(code: int, classes: int) -> str:
    """The color of a class; many classes get hues around the color circle."""
    if classes <= len(PALETTE):
        return PALETTE[code]
    return f"hsl({360 * code / classes:.0f} {60 + 20 * (code % 2)}% {42 + 12 * (code % 3)}%)"


def line_chart(lines: Sequence[Line], x_title: str, y_title: str, top: float | None = None) -> str:
    """Lines in one chart whose y-axis starts at zero."""
    xs = [x for line in lines for x in line.x]
    ys = [y for line in lines for y in line.y]
    if not xs:
        return ""
    x_low, x_high = min(xs), max(max(xs), min(xs) + 1)
    y_high = top if top is not None else max(*ys, 1e-9) * 1.05

    def at(x: float, y: float) -> tuple[float, float]:
        horizontal = LEFT + (WIDTH - LEFT - RIGHT) * (x - x_low) / (x_high - x_low)
        return horizontal, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(y, y_high) / y_high

    parts = [_axes(x_low, x_high, y_high, x_title, y_title)]
    for line in lines:
        points = [at(x, y) for x, y in zip(line.x, line.y, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{line.color}" stroke-width="2"{dash}/>'
        )
        if line.dots:
            parts += [
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{line.color}"/>' for x, y in points
            ]
    styles = [f"line{' dashed' if line.dashed else ''}" for line in lines]
    legend = "".join(
        f'<span><i class="{style}" style="border-color:{line.color}"></i>{line.title}</span>'
        for line, style in zip(lines, styles, strict=True)
    )
    drawing = "".join(parts)
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{y_title}">'
        f'{drawing}</svg><figcaption class="legend">{legend}</figcaption></figure>'
    )


def _axes(x_low: float, x_high: float, y_high: float, x_title: str, y_title: str) -> str:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for step in range(5):
        value = y_high * step / 4
        y = bottom - (bottom - TOP) * step / 4
        parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.2g}</text>')
    for x in _ticks(x_low, x_high):
        horizontal = LEFT + (right - LEFT) * (x - x_low) / (x_high - x_low)
        parts.append(
            f'<text x="{horizontal:.1f}" y="{bottom + 16}" text-anchor="middle">{x:g}</text>'
        )
    middle = (LEFT + right) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">{x_title}</text>')
    parts.append(
        f'<text x="12" y="{(TOP + bottom) / 2}" text-anchor="middle" '
        f'transform="rotate(-90 12 {(TOP + bottom) / 2})">{y_title}</text>'
    )
    return "".join(parts)


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers from low to high."""
    span = high - low
    step = next(s for s in (0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 1e9) if span / s <= 6)
    first = -(-low // step) * step
    return [round(first + i * step, 6) for i in range(int((high - first) / step + 1e-9) + 1)]


SHOWN = 3000
"""Maximum number of nodes on a map."""


def shown_nodes(graph: Graph, labeled: NDArray[np.bool_], seed: int = 0) -> NDArray[np.int64]:
    """All nodes; on a large graph, labeled nodes and a random sample of the others."""
    if graph.num_nodes <= SHOWN:
        return np.arange(graph.num_nodes)
    rng = np.random.default_rng(derive(seed, Purpose.MAP))
    own = rng.permutation(np.flatnonzero(labeled))[: SHOWN // 2]
    rest = rng.permutation(np.flatnonzero(~labeled))[: SHOWN - own.size]
    return np.sort(np.concatenate([own, rest]))


def positions(graph: Graph, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """``(len(nodes), 2)`` from 0 to 1: t-SNE of the smoothed features."""
    from sklearn.manifold import TSNE

    z = similarity_space(graph)[nodes].numpy().astype(np.float64)
    if len(nodes) < 5:
        flat = np.column_stack([np.arange(len(nodes)), np.zeros(len(nodes))])
    else:
        perplexity = min(30.0, (len(nodes) - 1) / 3)
        varied = (z != z[0]).any(axis=0).sum() > 1  # else there are no two principal components
        start = "pca" if varied else "random"
        flat = TSNE(perplexity=perplexity, init=start, random_state=0, max_iter=300).fit_transform(
            z
        )
    low, high = flat.min(axis=0), flat.max(axis=0)
    placed: NDArray[np.float64] = (flat - low) / np.maximum(high - low, 1e-9)
    return placed


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
        evaluation: result of ``run.evaluate``, to be shown; default: with the true classes that
            are known and that the fit did not use.
        diagnosis: of the labels, if it is known already.

    Returns:
        the path.

    Example:
        >>> import tempfile
        >>> from dcgst import EM, fit, load
        >>> run = fit(load("synthetic"), tempfile.mkdtemp() + "/run", EM())
        >>> write_report(run).name
        'report.html'
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
    evaluation = evaluation or run.measured
    return {
        "title": run.graph.name,
        "run": run,
        "info": run.info,
        "diagnosis": diagnosis,
        "accuracy": shown_accuracy(run, diagnosis, evaluation).text,
        "evaluation": evaluation.quality if evaluation else None,
        "unused": [note for note in run.info["notes"] if "not used" in note],
        "draws": DRAWS,
        "counts": count_sources(run.result),
        "confidence": float(pool.mean()) if pool.size else 1.0,
        "classes": _classes(run),
        "warnings": prediction_warnings(run),
        "members": _members(run),
        "relations": verdict(run.relations) if run.relations else "",
        "columns_used": columns.verdict(run.columns_used),
        "nodes": to_script(_nodes(run, codes)),
        "shift_chart": _shift_chart(run),
        "label_chart": _label_chart(run),
        "reliability": _reliability(run, evaluation),
        "map": _map(run, codes),
        "settings": {
            k: v for k, v in run.info["settings"].items() if k not in ("device", "chunk_size")
        },
    }


def _classes(run: Run) -> list[dict[str, Any]]:
    """Number of nodes, sources and mean probability of each class."""
    names = run.graph.class_names
    return [
        {
            "name": name,
            "color": color_of(code, len(names)),
            "nodes": own.nodes,
            **own.sources,
            "mean_probability": own.mean_probability,
        }
        for code, (name, own) in enumerate(zip(names, count_classes(run.result), strict=True))
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


def _reliability(run: Run, evaluation: RunEvaluation | None) -> dict[str, Any]:
    """Accuracy and calibration on nodes of known class, else on the validation nodes."""
    nodes = run.evaluation_nodes
    count = evaluation.quality.nodes if evaluation else int(nodes.sum())
    if count < MIN_EVALUATION_NODES:
        return {"nodes": count}
    if evaluation is not None:
        quality = evaluation.quality
    else:
        proba, truth = run.result.proba[nodes], run.graph.labels[nodes]
        quality = evaluate(proba, truth, run.graph.class_names)
    bins = quality.bins
    lines = [
        Line("perfect calibration", (0, 1), (0, 1), GRAY, dashed=True, dots=False),
        Line("this run", [b.confidence for b in bins], [b.accuracy for b in bins]),
    ]
    return {
        "nodes": quality.nodes,
        "validation": evaluation is None,
        "ece": quality.ece,
        "accuracy": quality.accuracy.value,
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


ROW, NAME_WIDTH, CHART_WIDTH = 26, 130, 620
MOST_COMPARED_CLASSES = 40
"""Maximum number of classes in the chart."""


def write_comparison(found: Comparison, path: Path, before: str, after: str) -> Path:
    """Write a comparison as one HTML file.

    Args:
        found: the comparison.
        path: the file.
        before: name of the first run.
        after: name of the second run.
    """
    content = {
        "title": f"{before} and {after}",
        "before": before,
        "after": after,
        "found": found,
        "rows": summary_rows(found),
        "chart": _share_chart(found),
    }
    write_text(path, render_template("comparison.html", **content))
    return path


def summary_rows(found: Comparison) -> list[tuple[str, str, str]]:
    """Name and values before and after of each figure, as text."""
    pairs = {
        "given labels": (f"{found.labels_before:,}", f"{found.labels_after:,}"),
        f"accuracy ({found.accuracy_on})": tuple(
            estimate.text if estimate else "not measured"
            for estimate in (found.estimate_before, found.estimate_after)
        ),
        "mean probability": (f"{found.confidence_before:.0%}", f"{found.confidence_after:.0%}"),
        "shift of the labels (smoothed features)": (
            f"{found.shift_before:.3f}",
            f"{found.shift_after:.3f}",
        ),
    }
    return [(name, before, after) for name, (before, after) in pairs.items()]


def _share_chart(found: Comparison) -> str:
    """A row per class with its share before (circle) and after (dot)."""
    from markupsafe import escape

    names = sorted(found.shares_after, key=lambda name: -found.shares_after[name])
    names = names[:MOST_COMPARED_CLASSES]
    highest = max([*found.shares_before.values(), *found.shares_after.values(), 1e-9])
    codes = {name: code for code, name in enumerate(sorted(found.shares_after))}

    def x(share: float) -> float:
        return NAME_WIDTH + (CHART_WIDTH - NAME_WIDTH - 110) * share / highest

    parts = []
    for row, name in enumerate(names):
        y = ROW * row + ROW / 2
        before, after = found.shares_before[name], found.shares_after[name]
        color = color_of(codes[name], len(codes))
        parts.append(
            f'<text x="{NAME_WIDTH - 8}" y="{y + 4}" text-anchor="end">{escape(name[:20])}</text>'
            f'<line x1="{x(before):.1f}" x2="{x(after):.1f}" y1="{y}" y2="{y}" '
            f'stroke="{color}" stroke-width="2"/>'
            f'<circle cx="{x(before):.1f}" cy="{y}" r="5" fill="none" stroke="{color}" '
            f'stroke-width="2"/><circle cx="{x(after):.1f}" cy="{y}" r="5" fill="{color}"/>'
            f'<text x="{max(x(before), x(after)) + 12:.1f}" y="{y + 4}">'
            f"{before:.0%} → {after:.0%}</text>"
        )
    height = ROW * len(names)
    return (
        f'<figure style="max-width:{CHART_WIDTH}px"><svg viewBox="0 0 {CHART_WIDTH} {height}" '
        f'role="img" aria-label="class shares before and after">{"".join(parts)}</svg>'
        '<figcaption class="legend"><span>circle: before</span><span>dot: after</span>'
        "</figcaption></figure>"
    )
