"""What the labeling page shows: a node, the map, the estimated accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.evaluate.quality import Estimate, estimate_share
from dcgst.label.journal import LabelState
from dcgst.runs import Run
from dcgst.train.random import Purpose, derive

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
    confidence = run.result.confidence.astype(np.float32)
    columns = (*positions.T, confidence, codes, source)
    content = [np.ascontiguousarray(column).tobytes() for column in columns]
    return np.int32(run.graph.num_nodes).tobytes() + b"".join(content)


LANDMARKS = 1500
"""Nodes that t-SNE places; the others are placed between their nearest landmarks."""

NEAREST = 3
BLOCK = 4096


def quick_positions(z: Tensor) -> NDArray[np.float32]:
    """``(n, 2)`` the first two principal components of rows ``(n, d)``, scaled to 0 … 1."""
    if z.shape[1] < 2 or len(z) < 3:
        line = torch.arange(len(z), dtype=torch.float32)
        return _scaled(torch.stack([line, torch.zeros_like(line)], 1).numpy())
    centered = z - z.mean(0)
    _, vectors = torch.linalg.eigh(centered.T @ centered)
    return _scaled((centered @ vectors[:, -2:]).numpy())


def landmark_positions(z: Tensor, seed: int = 0) -> NDArray[np.float32]:
    """``(n, 2)`` from 0 to 1: t-SNE of some nodes, the others between their nearest landmarks."""
    from sklearn.manifold import TSNE

    if len(z) < 10:
        return quick_positions(z)
    rng = np.random.default_rng(derive(seed, Purpose.MAP))
    chosen = np.sort(rng.permutation(len(z))[:LANDMARKS])
    marks = z[chosen]
    perplexity = min(30.0, (len(chosen) - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init="random", random_state=0, max_iter=500)
    places = torch.from_numpy(tsne.fit_transform(marks.numpy().astype(np.float64))).float()
    found = torch.empty(len(z), 2)
    for start in range(0, len(z), BLOCK):
        similar = z[start : start + BLOCK] @ marks.T
        values, nearest = similar.topk(min(NEAREST, len(chosen)), dim=1)
        weights = (20 * values).softmax(1)
        found[start : start + BLOCK] = (weights[..., None] * places[nearest]).sum(1)
    spread = places.std() * 0.01
    jitter = torch.from_numpy(rng.normal(size=(len(z), 2)).astype(np.float32)) * spread
    found = found + jitter
    found[torch.from_numpy(chosen)] = places
    return _scaled(found.numpy())


def _scaled(positions: NDArray[np.float32]) -> NDArray[np.float32]:
    low, high = positions.min(axis=0), positions.max(axis=0)
    scaled: NDArray[np.float32] = ((positions - low) / np.maximum(high - low, 1e-9)).astype("f4")
    return scaled


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
