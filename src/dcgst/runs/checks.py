"""What can be known to fail before the work begins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from dcgst.engine.random import derive
from dcgst.errors import InputError
from dcgst.graph import UNKNOWN, Graph
from dcgst.methods import Method
from dcgst.splits import Split

NO_CLASS = ("unknown", "-1", "?", "-", "unlabeled", "unlabelled", "other", "missing", "tbd")
"""What people write where a class is not known; taken for a class, since it may be one."""


def check_graph(graph: Graph) -> None:
    """Raise if there is nothing to learn from, or nothing to predict."""
    known = graph.labels != UNKNOWN
    if not known.any():
        raise InputError(
            "no node has a label: fill the label column for at least one node of each of two "
            "classes"
        )
    if known.all() and "train" not in graph.masks:
        names, counts = np.unique(graph.labels, return_counts=True)
        most = graph.class_names[names[counts.argmax()]]
        hint = ""
        if most.lower() in NO_CLASS:
            hint = f"; {counts.max()} are {most!r}: if that means none, leave those cells empty"
        raise InputError(f"every node has a label already: there is nothing to predict{hint}")
    counts = np.bincount(graph.labels[known], minlength=graph.num_classes)
    if graph.num_classes > 20 and counts.max() == 1:
        raise InputError(
            f"each of the {graph.num_classes} classes has a single label: is the label column one "
            "of names or ids? Name the right one with --label"
        )


def set_aside(graph: Graph, share: float, seed: int = 0) -> Split:
    """Known labels train, but for a share of each class that validates; one of each always trains.

    The graph's own masks come first.
    """
    if not 0 <= share < 1:
        raise InputError(f"the share to validate with must be from 0 to below 1, got {share}")
    split = Split.known_labels(graph)
    if share == 0 or split.val.any():
        return split
    rng = np.random.default_rng(derive(seed, 3))
    train, val = split.train[0].copy(), np.zeros(graph.num_nodes, dtype=bool)
    for code in np.unique(graph.labels[train]):
        nodes = rng.permutation(np.flatnonzero(train & (graph.labels == code)))
        val[nodes[: min(round(share * nodes.size), nodes.size - 1)]] = True
    return Split.of(train & ~val, val)


def memory_needed(graph: Graph, model: Method) -> int:
    """Bytes that a fit takes at most on a CPU, roughly: measured on graphs of known size."""
    per_node = 6000 + 80 * graph.num_classes + 24 * getattr(model, "hidden", 64)
    stored = graph.features.nnz if sp.issparse(graph.features) else graph.features.size
    return int(3e8 + graph.num_nodes * per_node + 12 * stored + 100 * graph.num_edges)


def available_memory() -> int | None:
    """Bytes that are free, where the system tells."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def check_memory(graph: Graph, model: Method) -> None:
    """Raise if a fit would not fit."""
    needed, free = memory_needed(graph, model), available_memory()
    if free is not None and needed > free:
        raise InputError(
            f"{graph.num_nodes:,} nodes with {graph.num_classes:,} classes need about "
            f"{needed / 2**30:.1f} GiB, {free / 2**30:.1f} are free; use a machine with more, or a "
            "part of the graph"
        )
