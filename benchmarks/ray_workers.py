"""Speed of one and of two Ray workers with one thread each: a grid of cells, propagation, a fit.

Both numbers of workers are measured in one run, in alternating order. Workers are started and have
imported everything before the clock starts. ``speedup`` is the time of one worker divided by that
of two.

    python benchmarks/ray_workers.py --json
"""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Executor, wait
from pathlib import Path

import numpy as np
import torch
from _common import show
from _tables import Tables

from dcgst.bench.cells import Cell
from dcgst.bench.grid import _run as run_cell
from dcgst.datasets import synthetic
from dcgst.features.matrix import Neighbors, Smoothing, Workspace
from dcgst.methods import method
from dcgst.tables.importing import import_tables
from dcgst.tables.store import open_store
from dcgst.train.executors import in_parallel, open_executor

COLUMNS, BLOCK, HOPS = 64, 8, 10


def grid(count: int) -> Callable[[Executor, Path], None]:
    """Cells of a grid: DC-GST on the synthetic dataset."""
    cells = [
        Cell("synthetic", "dcgst", None, "uniform", per_class=5, runs=1, first_run=run)
        for run in range(count)
    ]

    def run(executor: Executor, _folder: Path) -> None:
        for future in [executor.submit(run_cell, cell, "cpu") for cell in cells]:
            future.result()

    return run


def propagation(nodes: int) -> Callable[[Executor, Path], None]:
    """Smoothing of blocks of columns in files."""
    graph = synthetic(nodes, 5, features=4)
    arrays = Path(tempfile.mkdtemp(prefix="dcgst-ray-"))
    atexit.register(shutil.rmtree, arrays)
    matrix = graph.adjacency
    for name in ("data", "indices", "indptr"):
        array = getattr(matrix, name)
        array.tofile(arrays / name)
        setattr(matrix, name, np.memmap(arrays / name, array.dtype, "r", shape=array.shape))
    neighbors = Neighbors(matrix, weighted=False)
    values = torch.randn(nodes, COLUMNS, generator=torch.Generator().manual_seed(0))

    def run(executor: Executor, folder: Path) -> None:
        workspace = Workspace(folder, BLOCK)
        source = workspace.from_rows("x", (nodes, COLUMNS), lambda rows: values[rows])
        start = time.perf_counter()
        with in_parallel(executor):
            workspace.from_columns(["z"], source, Smoothing(0.1, (HOPS,)), neighbors, "")
        measured.append(time.perf_counter() - start)

    return run


def whole_fit(nodes: int) -> Callable[[Executor, Path], None]:
    """A fit of a store with one replica: propagation, experts and prediction are tasks."""
    tables = Path(tempfile.mkdtemp(prefix="dcgst-ray-"))
    atexit.register(shutil.rmtree, tables)
    node_table, edge_table, _ = Tables(nodes, edges_per_node=5, features=32, classes=10).write(
        tables
    )
    import_tables(node_table, edge_table, tables / "graph.store")
    graph = open_store(tables / "graph.store").graph

    def run(executor: Executor, folder: Path) -> None:
        with in_parallel(executor):
            method("dcgst", device="cpu").fit(graph, checkpoint=folder / "checkpoint")

    return run


measured: list[float] = []
"""Times that a task measured itself, because a part of it is not what is compared."""


def warm_up(_number: int) -> int:
    """Import everything in a worker."""
    time.sleep(0.5)
    return os.getpid()


def seconds(task: Callable[[Executor, Path], None], workers: int) -> float:
    """Time of a task with some workers."""
    with open_executor(workers, "local") as executor, tempfile.TemporaryDirectory() as folder:
        wait([executor.submit(warm_up, number) for number in range(2 * workers)])
        wait([executor.submit(run_cell, warm_cell(), "cpu") for _ in range(2 * workers)])
        measured.clear()
        start = time.perf_counter()
        task(executor, Path(folder))
        return measured[0] if measured else time.perf_counter() - start


def warm_cell() -> Cell:
    """A cell that takes little time."""
    return Cell("synthetic", "em", None, "uniform", per_class=5, runs=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cells", type=int, default=8)
    parser.add_argument("--nodes", type=int, default=2_000_000)
    parser.add_argument("--fit-nodes", type=int, default=500_000)
    parser.add_argument("--tasks", default="grid,propagation,fit", help="comma-separated")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    tasks = {
        "grid": lambda: grid(options.cells),
        "propagation": lambda: propagation(options.nodes),
        "fit": lambda: whole_fit(options.fit_nodes),
    }
    for name in options.tasks.split(","):
        task = tasks[name]()
        times: dict[int, list[float]] = {1: [], 2: []}
        for number in range(options.rounds):
            for workers in (1, 2) if number % 2 == 0 else (2, 1):
                times[workers].append(seconds(task, workers))
        one, two = min(times[1]), min(times[2])
        record = {"task": name, "one_s": round(one, 2), "two_s": round(two, 2)}
        show({**record, "speedup": round(one / two, 2)}, options.json)


if __name__ == "__main__":
    main()
