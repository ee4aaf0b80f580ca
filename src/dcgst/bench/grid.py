"""Many cells, side by side in processes, where it stopped the last time."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import active_children, get_context

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
    "dcgst": 6.0,
}
"""A run on Cora on one core; on other graphs in proportion to edges and width."""

WORK = {"cora": 1.0, "citeseer": 1.3, "pubmed": 8.0, "ogbn-arxiv": 80.0}


@dataclass(frozen=True)
class Finished:
    """A cell that is done, or the error that ended it."""

    cell: Cell
    record: Record | None
    error: str = ""


def missing(cells: Sequence[Cell], records: Records) -> list[Cell]:
    """The cells that no record answers yet."""

    def answered(cell: Cell) -> bool:
        record = records.by_key.get(cell.key)
        return record is not None and cell.answered_by(record)

    return [cell for cell in cells if not answered(cell)]


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
    size = int(nodes) / 2500 if nodes else WORK.get(kind, 1.0)
    one = SECONDS.get(cell.method, 1.0) * size
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
    go on, also when its process dies. Interrupted, it loses no finished cell.
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
    retry: bool = True,
) -> list[Finished]:
    """Run cells in processes, so many at once."""
    done: list[Finished] = []
    if not todo:
        return done
    others = set(active_children())
    pool = ProcessPoolExecutor(
        min(workers, len(todo)), mp_context=get_context("spawn"), initializer=_one_thread
    )
    waiting: dict[Future[Record], Cell] = {}
    lost: list[Cell] = []
    try:
        for cell in todo:
            waiting[pool.submit(_run, cell, device)] = cell
        while waiting:
            ready, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ready:
                cell = waiting.pop(future)
                if retry and isinstance(future.exception(), BrokenProcessPool):
                    lost.append(cell)
                    continue
                done.append(_finish(cell, future, records))
                report(done[-1])
    except BaseException:
        for future in [future for future in waiting if future.done()]:
            _finish(waiting.pop(future), future, records)
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(active_children()) - others:
            process.terminate()
        raise
    pool.shutdown()
    for cell in lost:  # a process died, and took along those that were not to blame
        done += _run_pool([cell], 1, device, records, report, retry=False)
    return done


def _one_thread() -> None:
    """In a process of its own: one thread, since others run beside it; the parent ends it."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(cell: Cell, device: str) -> Record:
    method = cell.make(device)
    return run_cell(load(cell.dataset), method, cell.labels, cell.preset, stages=cell.stages)


def _finish(cell: Cell, future: Future[Record], records: Records) -> Finished:
    """Keep what a cell gave, or say why there is nothing to keep."""
    try:
        record = future.result()
        records.add(record)
    except (Exception, CancelledError) as error:
        return Finished(cell, None, f"{type(error).__name__}: {error}")
    return Finished(cell, record)
