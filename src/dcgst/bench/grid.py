"""Many cells, side by side in processes, where it stopped the last time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context

import torch

from dcgst.bench.cells import Cell
from dcgst.bench.protocol import Record, run_cell
from dcgst.bench.records import Records
from dcgst.datasets import load
from dcgst.methods.base import device_of

SECONDS = {
    "gcn": 1.0,
    "st": 2.0,
    "m3s": 6.5,
    "drgst": 2.5,
    "srgnn": 1.5,
    "eerm": 14.0,
    "srgnn_st": 9.0,
}
"""A run on Cora on one core; DC-GST takes 6. On other graphs in proportion to edges and width."""

SIZES = {"cora": 1.0, "citeseer": 1.3, "pubmed": 8.0, "ogbn-arxiv": 80.0}


@dataclass(frozen=True)
class Finished:
    """A cell that is done, or the error that ended it."""

    cell: Cell
    record: Record | None
    error: str = ""


def missing(cells: Sequence[Cell], records: Records) -> list[Cell]:
    """The cells that no record answers yet."""
    return [cell for cell in cells if cell.key not in records.by_key]


def estimate(cell: Cell, records: Records, gpu: bool) -> float:
    """Seconds that a cell will take alone: as long as its like took, or a guess."""
    alike: list[float] = [
        record["seconds"] / record["runs"]
        for record in records.by_key.values()
        if record["method"] == cell.method
        and record["dataset"] == cell.dataset
        and str(record.get("device", "CPU")).startswith("CPU") != gpu
    ]
    if alike:
        return cell.runs * sum(alike) / len(alike)
    kind, _, nodes = cell.dataset.partition("/")
    size = int(nodes) / 2500 if nodes else SIZES.get(kind, 1.0)
    one = SECONDS.get(cell.method, 6.0) * size
    return max(1.0, one) if gpu else cell.runs * one


def workers_for(device: torch.device) -> int:
    """How many cells at once: one per core; on a GPU, which they share, at most 16."""
    cores = os.cpu_count() or 1
    return min(16, cores) if device.type == "cuda" else cores


def run_grid(
    cells: Sequence[Cell],
    records: Records,
    *,
    device: str = "auto",
    workers: int | None = None,
    report: Callable[[Finished], None] = lambda _: None,
) -> list[Finished]:
    """Run the cells that are missing, the longest first, and add their records one by one.

    Those whose time is wanted come last, one by one. A cell that fails is reported, and the others
    go on. Interrupted, it loses no finished cell.
    """
    target = device_of(device)
    todo = missing(cells, records)
    todo.sort(key=lambda cell: -estimate(cell, records, target.type == "cuda"))
    together = [cell for cell in todo if not cell.timed]
    alone = [cell for cell in todo if cell.timed]
    count = workers or workers_for(target)
    done = _run_pool(together, count, device, records, report)
    return done + _run_pool(alone, 1, device, records, report)


def _run_pool(
    todo: Sequence[Cell],
    workers: int,
    device: str,
    records: Records,
    report: Callable[[Finished], None],
) -> list[Finished]:
    """Run cells in processes, so many at once."""
    done: list[Finished] = []
    if not todo:
        return done
    count = min(workers, len(todo))
    with ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_alone) as pool:
        waiting = {pool.submit(_run, cell, device): cell for cell in todo}
        try:
            while waiting:
                ready, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in ready:
                    done.append(_finish(waiting.pop(future), future))
                    if (record := done[-1].record) is not None:
                        records.add(record)
                    report(done[-1])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return done


def _alone() -> None:
    """In a process of its own: one thread, since others run beside it."""
    torch.set_num_threads(1)


def _run(cell: Cell, device: str) -> Record:
    method = cell.make(device)
    return run_cell(load(cell.dataset), method, cell.labels, cell.preset, stages=cell.stages)


def _finish(cell: Cell, future: Future[Record]) -> Finished:
    error = future.exception()
    if error is not None:
        return Finished(cell, None, f"{type(error).__name__}: {error}")
    return Finished(cell, future.result())
