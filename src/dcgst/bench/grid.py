"""Run many cells in parallel processes, and continue where an earlier call stopped."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import lru_cache
from multiprocessing import active_children
from typing import Any

import torch

from dcgst.bench.cells import Cell, Records
from dcgst.bench.protocol import Labels, Record, run_cell
from dcgst.datasets import load
from dcgst.errors import NumericalError
from dcgst.graph import Graph
from dcgst.splits import Split
from dcgst.train.device import resolve_device
from dcgst.train.executors import open_executor

SECONDS_PER_RUN = {
    "gcn": 1.0,
    "st": 2.0,
    "m3s": 6.5,
    "drgst": 2.5,
    "srgnn": 1.5,
    "eerm": 14.0,
    "srgnn_st": 9.0,
    "dcgst": 6.0,
    "ensemble": 15.0,
    "appnp": 1.4,
    "mlp": 0.4,
    "sign": 0.5,
    "em": 1.0,
    "gp": 0.4,
    "lp": 0.1,
    "majority": 0.1,
}
"""Approximate seconds of one run on Cora on one CPU core."""

RELATIVE_COST = {"cora": 1.0, "citeseer": 1.3, "pubmed": 8.0, "ogbn-arxiv": 80.0}
"""Approximate cost of a run relative to Cora; proportional to edges and feature width."""


@dataclass(frozen=True)
class CellResult:
    """Result of running one cell.

    Attributes:
        cell: The cell.
        record: Its record; None if the cell failed.
        error: Error message of a failed cell.
        first_error: Error message of the first attempt, if the cell was run again.
    """

    cell: Cell
    record: Record | None
    error: str = ""
    first_error: str = ""


def missing_cells(cells: Sequence[Cell], records: Records) -> list[Cell]:
    """Return the cells that no record satisfies."""

    def satisfied(cell: Cell) -> bool:
        record = records.find(cell)
        return record is not None and cell.satisfied_by(record)

    return [cell for cell in cells if not satisfied(cell)]


def estimate_seconds(cell: Cell, records: Records, gpu: bool) -> float:
    """Estimate the run time of a cell if no other cell runs at the same time.

    The estimate is the mean time of records with the same method, dataset and device type. Without
    such records, it is ``SECONDS_PER_RUN`` scaled to the size of the dataset.
    """
    measured: list[float] = [
        record["seconds"] / record["runs"]
        for record in records.by_key.values()
        if record["method"] == cell.method
        and record["dataset"] == cell.dataset
        and str(record.get("device", "CPU")).startswith("CPU") != gpu
    ]
    if measured:
        return cell.runs * sum(measured) / len(measured)
    dataset, _, num_nodes = cell.dataset.partition("/")
    generated = dataset == "synthetic" and num_nodes.isdecimal()
    cost = int(num_nodes) / 2500 if generated else RELATIVE_COST.get(cell.dataset, 1.0)
    per_run = SECONDS_PER_RUN.get(cell.method, 1.0) * cost
    return max(1.0, per_run) if gpu else cell.runs * per_run


def default_num_workers(device: torch.device) -> int:
    """Return the default number of parallel processes: one per core, at most 16 per GPU."""
    cores = os.cpu_count() or 1
    return min(16, cores) if device.type == "cuda" else cores


def run_grid(
    cells: Sequence[Cell],
    records: Records,
    *,
    device: str = "auto",
    workers: int | None = None,
    ray: str | None = None,
    report: Callable[[CellResult], None] = lambda _: None,
) -> list[CellResult]:
    """Run the missing cells, longest first, and append each record as soon as its cell finishes.

    Timed cells run last, one at a time. If a cell fails or its process dies, the other cells
    continue. If the call is interrupted, the records of all finished cells are kept.

    Args:
        cells: Cells to run. Cells that a record satisfies are skipped.
        records: File of records to read from and append to.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        workers: Number of parallel processes; None for ``default_num_workers``.
        ray: Ray cluster to run on, as in :func:`open_executor`; timed cells run on this machine.
        report: Called with the result of each cell.

    Returns:
        The results of the cells that were run, failed ones included.
    """
    target = resolve_device(device)
    todo = missing_cells(cells, records)
    todo.sort(key=lambda cell: -estimate_seconds(cell, records, target.type == "cuda"))
    parallel = [cell for cell in todo if not cell.timed]
    timed = [cell for cell in todo if cell.timed]
    count = workers or default_num_workers(target)
    results = Grid(records, device, report, ray).run(parallel, count)
    return results + Grid(records, device, report).run(timed, 1)


@dataclass
class Grid:
    """Cells that run in an executor.

    Attributes:
        records: where to store the records.
        device: where to compute.
        report: called with each result.
        ray: Ray cluster to run on.
        pending: submitted cells that have not finished.
    """

    records: Records
    device: str
    report: Callable[[CellResult], None]
    ray: str | None = None
    pending: dict[Future[Record], Cell] = field(default_factory=dict)

    def run(self, todo: Sequence[Cell], workers: int, first_error: str = "") -> list[CellResult]:
        """Run cells; those that fail for a passing reason run again.

        Args:
            todo: the cells.
            workers: number of processes.
            first_error: of the first attempt, if this is the second one. There is no third one.
        """
        if not todo:
            return []
        other_processes = set(active_children())
        gpu = self.ray is not None and self.device.startswith("cuda")
        executor = open_executor(min(workers, len(todo)), self.ray, gpu=gpu)
        try:
            results, lost = self.collect(executor, todo, first_error)
        except BaseException:
            for future in [future for future in self.pending if future.done()]:
                _finish(self.pending.pop(future), future, self.records)
            executor.shutdown(wait=False, cancel_futures=True)
            for process in set(active_children()) - other_processes:
                process.terminate()
            raise
        executor.shutdown()
        # A process that dies breaks the whole executor, so run each affected cell again in its own.
        for cell, error in lost:
            results += self.run([cell], 1, error)
        return results

    def submit(self, executor: Executor, todo: Sequence[Cell]) -> dict[Future[Any], list[Cell]]:
        """Submit cells; labels that several cells share are sampled once, before these cells.

        Returns:
            The cells that wait for each sampling.
        """
        sampling: dict[Future[Any], list[Cell]] = {}
        for cells in _by_labeled_nodes(todo):
            if len(cells) > 1:
                labels = list(dict.fromkeys(cell.labels for cell in cells))
                sampling[executor.submit(_sample, cells[0].dataset, labels)] = cells
            else:
                self.pending[executor.submit(_run, cells[0], self.device)] = cells[0]
        return sampling

    def collect(
        self, executor: Executor, todo: Sequence[Cell], first_error: str
    ) -> tuple[list[CellResult], list[tuple[Cell, str]]]:
        """Save and report cells as they finish.

        Returns:
            The results, and, in a first attempt, the cells that failed because the executor broke
            or a computation failed, with the error.
        """
        results: list[CellResult] = []
        lost: list[tuple[Cell, str]] = []
        sampling = self.submit(executor, todo)
        while self.pending or sampling:
            waiting: list[Future[Any]] = [*self.pending, *sampling]
            ready, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ready:
                if future in sampling:
                    cells, error = sampling.pop(future), future.exception()
                    if isinstance(error, BrokenProcessPool):
                        lost += [(cell, f"{type(error).__name__}: {error}") for cell in cells]
                        continue
                    splits = {} if error else future.result()
                    for cell in cells:
                        # Without a split, the cell samples its own and reports the error.
                        split = splits.get(cell.labels)
                        self.pending[executor.submit(_run, cell, self.device, split)] = cell
                    continue
                cell = self.pending.pop(future)
                error = None if future.cancelled() else future.exception()
                if not first_error and isinstance(error, (BrokenProcessPool, NumericalError)):
                    lost.append((cell, f"{type(error).__name__}: {error}"))
                    continue
                found = _finish(cell, future, self.records)
                results.append(replace(found, first_error=first_error))
                self.report(results[-1])
        return results, lost


def _by_labeled_nodes(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Group cells with the same training nodes, in the order of the first cell of each group."""
    groups: dict[tuple[str, Labels], list[Cell]] = {}
    for cell in cells:
        labels = replace(
            cell.labels, validation=None, validation_per_class=None, train_on_validation=False
        )
        groups.setdefault((cell.dataset, labels), []).append(cell)
    return list(groups.values())


@lru_cache(maxsize=1)
def _load(dataset: str) -> Graph:
    """The dataset of the last cell stays in memory."""
    return load(dataset)


def _sample(dataset: str, labels: Sequence[Labels]) -> dict[Labels, Split]:
    graph = _load(dataset)
    return {each: each.sample(graph) for each in labels}


WARM_UP = "synthetic/1000"
"""The graph on which a timed cell runs before it is timed: the first fit loads kernels."""


def _run(cell: Cell, device: str, split: Split | None = None) -> Record:
    method = cell.make_method(device)
    if cell.timed:
        labels = Labels("uniform", per_class=20, runs=1)
        run_cell(load(WARM_UP), cell.make_method(device), labels)
    graph = _load(cell.dataset)
    record = run_cell(graph, method, cell.labels, stages=cell.stages, split=split)
    return cell.named(record)


def _finish(cell: Cell, future: Future[Record], records: Records) -> CellResult:
    """Save the record of a finished cell, or return its error."""
    try:
        record = future.result()
        records.add(record)
    except (Exception, CancelledError) as error:
        return CellResult(cell, None, f"{type(error).__name__}: {error}")
    return CellResult(cell, record)
