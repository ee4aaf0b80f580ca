"""Checks before a fit: labels and memory."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dcgst.errors import InputError
from dcgst.graph import UNKNOWN, Graph
from dcgst.memory import available_memory, check_memory
from dcgst.methods import Method
from dcgst.methods.core.runner import fits_sample

PLACEHOLDERS = ("unknown", "-1", "?", "-", "unlabeled", "unlabelled", "other", "missing", "tbd")
"""Texts that often stand for an unknown class; an error message mentions them."""


def check_graph(graph: Graph) -> None:
    """Raise if there is nothing to learn from or nothing to predict."""
    known = graph.labels != UNKNOWN
    if not known.any():
        raise InputError(
            "no node has a label; fill the label column for at least one node of each of two "
            "classes"
        )
    if known.all() and "train" not in graph.masks:
        codes, counts = np.unique(graph.labels, return_counts=True)
        most = graph.class_names[codes[counts.argmax()]]
        hint = ""
        if most.lower() in PLACEHOLDERS:
            hint = f"; {counts.max()} are {most!r}: if these are unknown, leave the cells empty"
        raise InputError(f"every node has a label: there is nothing to predict{hint}")
    counts = np.bincount(graph.labels[known], minlength=graph.num_classes)
    if graph.num_classes > 20 and counts.max() == 1:
        raise InputError(
            f"each of the {graph.num_classes} classes has a single label; does the label column "
            "contain names or ids? Set the right column with --label"
        )


def memory_needed(graph: Graph, model: Method, *, in_store: bool = False) -> int:
    """Approximate peak memory of a fit on a CPU, in bytes; measured on graphs of known size.

    Args:
        graph: the graph.
        model: the method.
        in_store: whether the graph is in a store.
    """
    stored = graph.features.nnz if sp.issparse(graph.features) else graph.features.size
    if fits_sample(model, graph):
        if in_store:
            return int(2e9 + (200 + 40 * (model.replicas - 1)) * graph.num_nodes)
        # The fit itself needs little; the files of a run folder are made in memory.
        per_node = 1500 + 40 * graph.num_classes
        return int(1.5e9 + graph.num_nodes * per_node + 12 * stored + 30 * graph.num_edges)
    hidden = getattr(model, "hidden", 64)
    per_node = 6000 + 80 * graph.num_classes + 24 * hidden
    per_column = 2000 + 16 * hidden  # start of the smoothed views; weights, gradients, Adam
    return int(
        3e8
        + graph.num_nodes * per_node
        + graph.num_features * per_column
        + 12 * stored
        + 100 * graph.num_edges
    )


def check_fit_memory(graph: Graph, model: Method, *, in_store: bool = False) -> None:
    """Raise if a fit needs more memory than is available; arguments of :func:`memory_needed`."""
    small = memory_needed(graph, model, in_store=True) < available_memory()
    remedy = "use a machine with more memory, or a part of the graph"
    if not in_store and small:
        remedy = "import the tables into a store (dcgst import): a fit of a store needs less"
    check_memory(
        memory_needed(graph, model, in_store=in_store),
        f"{graph.num_nodes:,} nodes with {graph.num_classes:,} classes need",
        remedy,
    )
