"""Runs a method: chunks of runs and replicas, and the mean of replicas."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.features.graph_tensors import GraphTensors
from dcgst.features.matrix import empty_like, row_ranges
from dcgst.features.shares import every_kth
from dcgst.graph import UNKNOWN, Graph
from dcgst.memory import forget
from dcgst.methods.problem import Problem, follow_shares, shares_of
from dcgst.methods.result import NOT_LABELED, Result
from dcgst.methods.row_models import SAMPLE, confidence_scale, mean_confidence
from dcgst.methods.sampling import is_large, predict_all, restrict, sample_of
from dcgst.methods.storage import RESULTS, stored
from dcgst.splits import Split
from dcgst.train.checkpoint import Checkpoint
from dcgst.train.device import LARGE, locality_order, resolve_device, threads_for, usable_memory
from dcgst.train.executors import current_executor
from dcgst.train.progress import Task
from dcgst.train.random import derive
from dcgst.train.training import Callback

if TYPE_CHECKING:
    from dcgst.methods.base import Method


Chunk = range
"""Numbers of fits that are computed together; fit k is replica k % R of run k // R."""


def chunks_of(method: Method, split: Split, *, gpu: bool) -> list[Chunk]:
    """All fits in one chunk on a GPU or with ``all_at_once``, else one at a time."""
    count = len(split) * method.replicas
    size = method.chunk_size or (count if gpu or method.all_at_once else 1)
    return [range(start, min(count, start + size)) for start in range(0, count, size)]


def checkpoint_of(chunk: Chunk, folder: Path | None) -> Checkpoint:
    """Where the steps of a chunk are stored."""
    name = f"replica-{chunk.start:03d}-{len(chunk)}"
    return Checkpoint(folder and folder / name, f"{name}-")


@dataclass(frozen=True)
class Jobs:
    """The fits of all runs and replicas on the nodes of ``tensors``.

    Attributes:
        method: the method.
        tensors: features and adjacency.
        labels: ``(n,)`` known class codes, -1 elsewhere.
        class_names: the classes.
        split: the runs.
    """

    method: Method
    tensors: GraphTensors
    labels: NDArray[np.int64]
    class_names: Sequence[str]
    split: Split

    def run(
        self, chunk: Chunk, callbacks: Sequence[Callback], checkpoint: Path | None
    ) -> list[Result]:
        """Results of a chunk of fits of all nodes, computed together or loaded."""
        state = checkpoint_of(chunk, checkpoint)
        return stored(
            state, RESULTS, lambda: self.fit(chunk, callbacks, state), self.tensors.device
        )

    def fit(
        self, chunk: Chunk, callbacks: Sequence[Callback], checkpoint: Checkpoint
    ) -> list[Result]:
        """Fit a chunk; ``row_model`` of the results is for nodes outside a sample only."""
        method, split = self.method, self.split
        pairs = [divmod(number, method.replicas) for number in chunk]
        runs = [run for run, _ in pairs]
        shares = shares_of(method.prior, self.class_names)
        problem = Problem.build(
            self.tensors,
            np.where(split.train[runs], self.labels, UNKNOWN),
            len(self.class_names),
            val_labels=np.where(split.val[runs], self.labels, UNKNOWN),
            pool=split.pool[runs],
            seeds=[derive(method.seed, split.runs[run], replica) for run, replica in pairs],
        )
        problem = replace(
            problem,
            shares=None if shares is None else torch.tensor(shares, device=problem.device),
            callbacks=tuple(callbacks),
            checkpoint=checkpoint,
        )
        results = []
        with threads_for(len(self.labels)):
            solved = method.solve(problem)
        for result, run in zip(solved, runs, strict=True):
            pool = split.pool[run]
            proba = follow_shares(result.proba, pool, shares)
            model = None if self.tensors.complete else result.row_model
            own = replace(result, proba=proba, row_model=model)
            results.append(own.with_truth(self.labels, pool))
        return results


def average(replicas: Sequence[Result]) -> Result:
    """Combine replicas of a run: mean probabilities, median labeled stages, joined tables."""
    first, *others = replicas
    if not others:
        return first
    given = np.max([r.given for r in replicas], axis=0)
    mean = dataclasses.replace(
        first,
        proba=_mean_proba(replicas),
        given=given,
        labeled_stage=majority_stage(np.stack([r.labeled_stage for r in replicas])),
        history=[{**record, "replica": i} for i, r in enumerate(replicas) for record in r.history],
        stop_reason="; ".join(sorted({r.stop_reason for r in replicas})),
        candidates=np.concatenate([_number(r.candidates, i) for i, r in enumerate(replicas)]),
        edge_probabilities=np.concatenate(
            [_number(r.edge_probabilities, i) for i, r in enumerate(replicas)]
        ),
        member_weights=_mean_by_name([r.member_weights for r in replicas]),
        expectation=_mean_by_name([r.expectation for r in replicas]),
        models=tuple(model for r in replicas for model in r.models),
        predictors=tuple(model for r in replicas for model in r.predictors),
        stage_predictions=(),
    )
    equal = sum(((r.labels == mean.labels) | (given >= 0)).astype(np.float32) for r in replicas)
    agreement: NDArray[np.float32] = np.divide(equal, len(replicas), dtype=np.float32)
    return dataclasses.replace(mean, agreement=agreement)


def _mean_proba(replicas: Sequence[Result]) -> NDArray[np.float32]:
    proba = empty_like(replicas[0].proba)
    for nodes in row_ranges(len(proba)):
        proba[nodes] = np.mean([r.proba[nodes] for r in replicas], axis=0)
        forget(proba, *(r.proba for r in replicas))
    return proba


def restore_confidence(
    mean: NDArray[np.float32],
    replicas: Sequence[NDArray[np.float32]],
    pool: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """Scale mean probabilities ``(n, C)`` to the mean confidence of the replicas.

    The mean of calibrated predictions is less confident than each of them, although it is right
    more often.

    Args:
        mean: ``(n, C)`` mean probabilities.
        replicas: ``(n, C)`` probabilities, of which they are the mean.
        pool: ``(n,)`` bool, the nodes whose mean confidence is scaled.
    """
    rows = confidence_rows(pool)
    return scale_confidence(mean, [np.array(own[rows]) for own in replicas], pool)


def confidence_rows(pool: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Nodes of a pool ``(n,)`` bool whose mean confidence stands for that of all."""
    rows: NDArray[np.int64] = every_kth(torch.from_numpy(pool)[None], SAMPLE).numpy()
    return rows


def scale_confidence(
    mean: NDArray[np.float32],
    replicas: Sequence[NDArray[np.float32]],
    pool: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """See :func:`restore_confidence`; ``replicas`` have the nodes of :func:`confidence_rows`."""
    if not pool.any():
        return mean
    rows = confidence_rows(pool)
    within = torch.from_numpy(pool[rows])[None]
    log_proba, *each = (
        torch.from_numpy(proba).clamp_min(1e-9).log()[None]
        for proba in (np.array(mean[rows]), *replicas)
    )
    target = torch.stack([mean_confidence(own, within) for own in each]).mean(0)
    scale = confidence_scale(log_proba, target, within)
    scaled = empty_like(mean)
    for nodes in row_ranges(len(mean)):
        logits = torch.from_numpy(np.array(mean[nodes])).clamp_min(1e-9).log() * scale
        scaled[nodes] = logits.softmax(-1).numpy()
        forget(mean, scaled)
    return scaled


def majority_stage(stages: NDArray[np.int64]) -> NDArray[np.int64]:
    """Combine ``(replicas, n)`` labeled stages.

    If most replicas labeled a node, return the lower median of their stages, else ``NOT_LABELED``.
    """
    labeled = stages != NOT_LABELED
    count = labeled.sum(axis=0)
    by_stage = np.sort(np.where(labeled, stages, np.iinfo(np.int64).max), axis=0)
    middle = np.take_along_axis(by_stage, np.maximum(count - 1, 0)[None] // 2, axis=0)[0]
    return np.where(count > len(stages) / 2, middle, NOT_LABELED)


def _mean_by_name(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([own[name] for own in values])) for name in values[0]}


def _number(table: NDArray[np.void], replica: int) -> NDArray[np.void]:
    table = table.copy()
    table["replica"] = replica
    return table


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
    if not is_large(graph.num_nodes) or not method.fits_sample:
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
    processes = current_executor()
    if processes is None or len(chunks) == 1:
        results = fit_chunks(method, graph, split, chunks, callbacks, checkpoint)
    else:
        results = _fit_in_processes(processes, method, graph, split, chunks, checkpoint)
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
        tensors = GraphTensors.of(
            graph.features,
            graph.adjacency,
            device,
            method.scale_features,
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


def _fit_in_processes(
    executor: Executor,
    method: Method,
    graph: Graph,
    split: Split,
    chunks: Sequence[Chunk],
    checkpoint: Path | None,
) -> list[Result]:
    """The same, each chunk in a process; what all need is computed before."""
    if fits_sample(method, graph, len(split)) and checkpoint is not None:
        with sample_of(method, graph, split, checkpoint) as sample:
            sample.prepare()
    task = Task("fits", len(chunks))
    futures = [
        executor.submit(_fit_chunk, method, graph, split, chunk, checkpoint) for chunk in chunks
    ]
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
