"""Runs a method: builds problems from graph and split, computes replicas, averages results."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.engine.device import resolve_device, usable_memory
from dcgst.engine.executors import current_pool
from dcgst.engine.locality import LARGE, locality_order
from dcgst.engine.progress import Task
from dcgst.engine.training import Callback
from dcgst.errors import InputError
from dcgst.graph import UNKNOWN, Graph
from dcgst.methods.core.averaging import average, restore_confidence
from dcgst.methods.core.jobs import Chunk, Jobs, checkpoint_of, chunks_of
from dcgst.methods.core.large_predictions import predict_all
from dcgst.methods.core.prior import follow_shares, shares_of
from dcgst.methods.core.result import Result
from dcgst.methods.core.sampling import LARGE as LARGE_GRAPH
from dcgst.methods.core.sampling import restrict, sample_of
from dcgst.numerics.graph_tensors import GraphTensors
from dcgst.splits import Split

if TYPE_CHECKING:
    from dcgst.methods.core.base import Method


def fit_runs(
    method: Method,
    graph: Graph,
    split: Split,
    callbacks: Sequence[Callback] = (),
    checkpoint: Path | None = None,
) -> list[Result]:
    """Fit every run and replica of a split; one result per run, in the user's node order.

    Args:
        method: the method.
        graph: the graph.
        split: one or several runs.
        callbacks: called with an event after each epoch and stage.
        checkpoint: folder for expensive steps. The caller ensures that graph, split and settings
            are the same when it is used again.
    """
    check_split(graph, split)
    order = _internal_order(method, graph, len(split))
    if order is None:
        return _fit_in_chunks(method, graph, split, callbacks, checkpoint)
    results = _fit_in_chunks(
        method, graph.reorder(order), split.reorder(order), callbacks, checkpoint
    )
    return [result.reorder(np.argsort(order)) for result in results]


def fits_sample(method: Method, graph: Graph, runs: int = 1) -> bool:
    """Whether a method is fitted to a sample of the nodes.

    It is, if the graph is large: on a CPU because it is faster, on a GPU if there is not enough
    memory for all nodes in all runs that are computed together.
    """
    if graph.num_nodes < LARGE_GRAPH or not method.fits_sample:
        return False
    device = resolve_device(method.device)
    return device.type == "cpu" or gpu_memory_needed(method, graph, runs) > usable_memory(device)


def gpu_memory_needed(method: Method, graph: Graph, runs: int = 1) -> int:
    """Approximate GPU memory of a fit of all nodes, in bytes; more than was measured."""
    stored = graph.features.nnz if sp.issparse(graph.features) else graph.features.size
    together = method.chunk_size or runs * method.replicas
    per_node = 16_000 + 160 * graph.num_classes * together
    return int(graph.num_nodes * per_node + 24 * stored + 100 * graph.num_edges)


def _internal_order(method: Method, graph: Graph, runs: int) -> NDArray[np.int64] | None:
    """The order of nodes to compute in; None: as it is.

    It is the order of the ids. Where products with the whole graph are computed in every epoch,
    neighbors are placed close together.
    """
    order = graph.id_order
    sorted_already = bool((order == np.arange(graph.num_nodes)).all())
    if graph.num_nodes < LARGE or fits_sample(method, graph, runs):
        return None if sorted_already else order
    adjacency = graph.adjacency if sorted_already else graph.adjacency[order][:, order]
    locality = locality_order(adjacency)
    if locality is not None:
        return order[locality]
    return None if sorted_already else order


def _fit_in_chunks(
    method: Method,
    graph: Graph,
    split: Split,
    callbacks: Sequence[Callback],
    checkpoint: Path | None,
) -> list[Result]:
    """Fit all nodes, or a sample of them if the graph is large and the method allows it."""
    device = resolve_device(method.device)
    if checkpoint is not None:
        # Coordinates of components depend on both; steps of one are of no use to the other.
        mode = "sample" if fits_sample(method, graph, len(split)) else "all"
        checkpoint = checkpoint / f"{mode}-{device.type}"
    chunks = chunks_of(method, split, gpu=device.type == "cuda")
    processes = current_pool()
    if processes is None or len(chunks) == 1:
        results = fit_chunks(method, graph, split, chunks, callbacks, checkpoint)
    else:
        results = _fit_in_pool(processes, method, graph, split, chunks, checkpoint)
    count = method.replicas
    shares = shares_of(method.prior, graph.class_names)
    combined = []
    for run, pool in enumerate(split.pool):
        replicas = results[count * run : count * (run + 1)]
        mean = average(replicas)
        if method.calibrated and count > 1:
            each = [replica.proba for replica in replicas]
            proba = restore_confidence(mean.proba, each, pool)
            mean = replace(mean, proba=follow_shares(proba, pool, shares))
        combined.append(mean)
    return combined


def fit_chunks(
    method: Method,
    graph: Graph,
    split: Split,
    chunks: Sequence[Chunk],
    callbacks: Sequence[Callback] = (),
    checkpoint: Path | None = None,
    *,
    prepared: bool = False,
) -> list[Result]:
    """Results of some of the fits, on all nodes or a sample of them.

    ``prepared`` says that the matrices of a sample are in the checkpoint already.
    """
    if not fits_sample(method, graph, len(split)):
        device = resolve_device(method.device)
        features = method.scale_features(graph.features)
        tensors = GraphTensors(
            features,
            graph.adjacency,
            device,
            graph.features,
            columns_weighted=graph.columns_weighted,
        )
        jobs = Jobs(method, tensors, graph.labels, graph.class_names, split)
        return [result for chunk in chunks for result in jobs.run(chunk, callbacks, checkpoint)]
    with sample_of(method, graph, split, checkpoint, prepared=prepared) as sample:
        nodes = sample.positions
        labels, inside = graph.labels[nodes], restrict(split, sample)
        jobs = Jobs(method, sample, labels, graph.class_names, inside)
        results = []
        for chunk in chunks:
            runs = [split[number // method.replicas] for number in chunk]
            state = checkpoint_of(chunk, checkpoint)
            fit = partial(jobs.fit, chunk, callbacks, state)
            results += predict_all(sample, fit, runs, graph, state)
        return results


def _fit_in_pool(
    pool: Executor,
    method: Method,
    graph: Graph,
    split: Split,
    chunks: Sequence[Chunk],
    checkpoint: Path | None,
) -> list[Result]:
    """The same, each chunk in a process of a pool; what all need is computed before."""
    if fits_sample(method, graph, len(split)) and checkpoint is not None:
        with sample_of(method, graph, split, checkpoint) as sample:
            sample.prepare()
    task = Task("fits", len(chunks))
    futures = [pool.submit(_fit_chunk, method, graph, split, chunk, checkpoint) for chunk in chunks]
    for future in as_completed(futures):
        future.result()  # raises at once if it failed
        task.advance()
    return [result for future in futures for result in future.result()]


def _fit_chunk(
    method: Method,
    graph: Graph,
    split: Split,
    chunk: Chunk,
    checkpoint: Path | None,
) -> list[Result]:
    if checkpoint is not None and not checkpoint.parents[1].exists():
        raise InputError(
            f"{checkpoint.parents[1]} does not exist on a machine of the cluster; choose a folder "
            "on a file system that all machines share"
        )
    return fit_chunks(method, graph, split, [chunk], (), checkpoint, prepared=True)


def check_split(graph: Graph, split: Split) -> None:
    """Raise if the split does not fit the graph or cannot be learned from."""
    if not isinstance(split, Split):
        raise InputError(
            f"the split must be a Split, got {type(split).__name__}; use Split.of(mask)"
        )
    if split.train.shape[1] != graph.num_nodes:
        raise InputError(
            f"the split is for {split.train.shape[1]} nodes, the graph has {graph.num_nodes}"
        )
    unlabeled = split.given & (graph.labels == UNKNOWN)
    if unlabeled.any():
        node = int(np.argwhere(unlabeled)[0][1])
        raise InputError(
            f"node {str(graph.ids[node])!r} is in the training or validation set, but its label is "
            "unknown; does the graph have labels (y)?"
        )
    for number, train in zip(split.runs, split.train, strict=True):
        present = np.unique(graph.labels[train])
        if present.size < 2:
            only = ", ".join(graph.class_names[code] for code in present)
            which = f" of run {number}" if len(split) > 1 else ""
            raise InputError(
                f"all training labels{which} are of one class ({only}); label at least one node of "
                "another class"
            )
