"""Measure the suite, the protocol of IceBerg or the paper on another machine, as one with a GPU.

    python benchmarks/suite_elsewhere.py pack FOLDER
    python benchmarks/suite_elsewhere.py run FOLDER --results suite.jsonl --processes 13
    python benchmarks/suite_elsewhere.py run FOLDER --protocol paper --results reproduce.jsonl

``pack`` reads the graphs, draws all labels and stores both in FOLDER, one file per graph. Copy
FOLDER and the source code to the other machine, which needs only PyTorch, PyTorch Geometric, NumPy,
SciPy, scikit-learn and psutil. ``run`` runs the cells that are not in the file of records in
parallel processes that share the GPU, and appends each record as soon as it is measured. Repeat it
after an interruption or if cells failed. Outside a git repository, set DCGST_COMMIT to the commit.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, as_completed
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.bench.cells import Cell, Records, unique
from dcgst.bench.experiments import EXPERIMENTS, RATES, cells_of
from dcgst.bench.grid import estimate_seconds, missing_cells
from dcgst.bench.iceberg import PUBLISHED, iceberg_cells
from dcgst.bench.protocol import Labels, Record, run_cell
from dcgst.bench.suite import available_graphs, suite_cells
from dcgst.datasets import load
from dcgst.graph import Graph
from dcgst.methods import METHODS
from dcgst.methods.base import parse_setting
from dcgst.splits import Split
from dcgst.train.device import resolve_device
from dcgst.train.executors import open_executor

Arrays = dict[str, NDArray[Any]]
PARTS = ("data", "indices", "indptr", "shape")
ROLES = ("pool", "train", "val")
RUNS = {"suite": 5, "iceberg": 10, "paper": 10}
METHODS_BY_DEFAULT = {"suite": "ensemble,dcgst", "iceberg": "gcn,ensemble", "paper": "all"}


def make_cells(
    protocol: str,
    graphs: Sequence[str],
    methods: Sequence[str],
    runs: int,
    first_run: int,
    settings: dict[str, dict[str, Any]] | None = None,
) -> list[Cell]:
    """All cells of the suite, of the protocol of IceBerg, or of the paper on some graphs.

    Those of the paper that measure time are left out.
    """
    if protocol == "paper":
        cells = cells_of(list(EXPERIMENTS.values()), runs)
        return [
            dataclasses.replace(cell, first_run=first_run)
            for cell in cells
            if cell.dataset in graphs and not cell.timed and {"all", cell.method} & set(methods)
        ]
    if protocol == "suite":
        return suite_cells(graphs, methods, runs=runs, first_run=first_run, settings=settings)
    return iceberg_cells(methods, graphs, runs=runs, first_run=first_run, settings=settings)


# --- storing graphs and labels ----------------------------------------------------------------


def pack(folder: Path, protocol: str, graphs: Sequence[str], runs: int, first_run: int) -> None:
    """Store graphs and labels, one file per graph."""
    target = folder / protocol
    target.mkdir(parents=True, exist_ok=True)
    size = 0
    for name in graphs:
        start = time.perf_counter()
        graph = load(name)
        methods = ["all"] if protocol == "paper" else ["gcn"]
        cells = make_cells(protocol, [name], methods, runs, first_run)
        labels = list(dict.fromkeys(cell.labels for cell in cells))
        path = target / f"{name}.npz"
        write(path, graph, {each: each.sample(graph) for each in labels})
        size += path.stat().st_size
        print(f"{graph!r}: {time.perf_counter() - start:.1f} s", flush=True)
    print(f"{len(graphs)} graphs, {size / 2**20:.1f} MiB in {target}")


def write(path: Path, graph: Graph, splits: dict[Labels, Split]) -> None:
    """Store a graph and splits of it in an npz file."""
    arrays: Arrays = {}
    values: dict[str, Any] = {}
    for field in dataclasses.fields(graph):
        _store(field.name, getattr(graph, field.name), arrays, values)
    for number, split in enumerate(splits.values()):
        arrays[f"split/{number}"] = (split.train + 2 * split.val).astype(np.uint8)
    content = {"graph": values, "labels": [dataclasses.asdict(labels) for labels in splits]}
    np.savez_compressed(path, allow_pickle=False, **arrays, content=np.array(json.dumps(content)))


def _store(name: str, value: Any, arrays: Arrays, values: dict[str, Any]) -> None:
    """Add a field of a graph to the arrays, or to the values that are stored as JSON."""
    if isinstance(value, sp.csr_array):
        arrays |= {f"{name}/{part}": np.asarray(getattr(value, part)) for part in PARTS}
    elif isinstance(value, np.ndarray):
        arrays[name] = value.astype(str) if value.dtype == object else value
    elif isinstance(value, dict):
        arrays |= {f"{name}/{key}": np.asarray(item) for key, item in value.items()}
    elif isinstance(value, str | bool) or (
        isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    ):
        values[name] = value
    else:
        raise TypeError(f"the field {name} of a graph cannot be stored: {type(value).__name__}")


@cache
def read(path: Path) -> tuple[Graph, dict[Labels, Split]]:
    """Read a graph and its splits."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    content = json.loads(str(arrays.pop("content")))
    found = {field.name: _restore(field.name, arrays) for field in dataclasses.fields(Graph)}
    plain = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in content["graph"].items()
    }
    arrays_of_graph = {name: value for name, value in found.items() if value is not None}
    graph = Graph(**{**arrays_of_graph, **plain})
    splits = {}
    for number, stored in enumerate(content["labels"]):
        labels, roles = Labels(**stored), arrays[f"split/{number}"]
        pool, train, val = (roles == code for code in range(len(ROLES)))
        runs = range(labels.first_run, labels.first_run + labels.runs)
        splits[labels] = Split(train, val, pool, tuple(runs))
    return graph, splits


def _restore(name: str, arrays: Arrays) -> Any:
    """The field of a graph from its arrays; None if there are none."""
    if name in arrays:
        return arrays[name]
    own = {key.split("/")[1]: arrays[key] for key in arrays if key.startswith(f"{name}/")}
    if own.keys() == set(PARTS):
        parts = (own["data"], own["indices"], own["indptr"])
        return sp.csr_array(parts, shape=tuple(int(number) for number in own["shape"]))
    return own or None


# --- running the cells ------------------------------------------------------------------------


def check_labels(folder: Path, cells: Sequence[Cell]) -> None:
    """Exit unless the labels of all cells are stored."""
    for name in dict.fromkeys(cell.dataset for cell in cells):
        path = folder / f"{name}.npz"
        if not path.exists():
            raise SystemExit(f"{path} does not exist; run pack")
        with np.load(path, allow_pickle=False) as file:
            stored = {Labels(**each) for each in json.loads(str(file["content"]))["labels"]}
        if not {cell.labels for cell in cells if cell.dataset == name} <= stored:
            raise SystemExit(f"{path} does not have the labels of these runs; run pack with them")


def measure(path: Path, cell: Cell, device: str) -> Record:
    """Run one cell on the stored graph with the stored labels."""
    graph, splits = read(path)
    record = run_cell(
        graph,
        cell.make_method(device),
        cell.labels,
        stages=cell.stages,
        split=splits[cell.labels],
    )
    return cell.named(record)


def run(folder: Path, cells: Sequence[Cell], results: Path, device: str, processes: int) -> int:
    """Run the missing cells, longest first; returns how many failed."""
    records = Records(results)
    gpu = resolve_device(device).type == "cuda"
    todo = missing_cells(unique(cells), records)
    todo.sort(key=lambda cell: -estimate_seconds(cell, records, gpu))
    print(f"{len(todo)} of {len(cells)} cells to run, {processes} in parallel", flush=True)
    start, failed = time.perf_counter(), 0
    executor = open_executor(processes)
    pending: dict[Future[Record], Cell] = {
        executor.submit(measure, folder / f"{cell.dataset}.npz", cell, device): cell
        for cell in todo
    }
    try:
        for number, future in enumerate(as_completed(pending), 1):
            try:
                records.add(future.result())
            except Exception as error:
                failed += 1
                print(f"{pending[future]}: {type(error).__name__}: {error}", file=sys.stderr)
            if number % 50 == 0 or number == len(todo):
                seconds = time.perf_counter() - start
                print(f"{number} of {len(todo)} cells, {seconds:.0f} s", flush=True)
    finally:
        executor.shutdown(cancel_futures=True)
    return failed


def settings_of(methods: Sequence[str], pairs: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Settings NAME=VALUE, for the methods that have them."""
    found: dict[str, dict[str, Any]] = {name: {} for name in methods}
    for pair in pairs:
        key, _, text = pair.partition("=")
        owners = [
            name for name in methods if key in {f.name for f in dataclasses.fields(METHODS[name])}
        ]
        if not owners:
            raise SystemExit(f"no method has the setting {key!r}")
        for name in owners:
            found[name][key] = parse_setting(METHODS[name], key, text)
    return found


def names_in(folder: Path) -> Iterator[str]:
    """The stored graphs."""
    return (path.stem for path in sorted(folder.glob("*.npz")))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("pack", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--protocol", choices=tuple(RUNS), default="suite")
    parser.add_argument("--graphs", help="comma-separated; default all")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--first-run", type=int, default=0)
    parser.add_argument("--methods", help="run: comma-separated")
    parser.add_argument("--set", action="append", default=[], help="run: NAME=VALUE")
    parser.add_argument("--results", type=Path, default=Path("suite.jsonl"), help="run")
    parser.add_argument("--device", default="cuda", help="run")
    parser.add_argument("--processes", type=int, default=13, help="run")
    options = parser.parse_args()
    protocol, runs = options.protocol, options.runs or RUNS[options.protocol]
    graphs = options.graphs.split(",") if options.graphs else None
    if options.action == "pack":
        every = {"iceberg": tuple(PUBLISHED), "paper": tuple(RATES)}
        names = graphs or every.get(protocol) or available_graphs()
        pack(options.folder, protocol, names, runs, options.first_run)
        return
    folder = options.folder / protocol
    methods = (options.methods or METHODS_BY_DEFAULT[protocol]).split(",")
    settings = settings_of([] if protocol == "paper" else methods, options.set)
    names = graphs or list(names_in(folder))
    cells = make_cells(protocol, names, methods, runs, options.first_run, settings)
    check_labels(folder, cells)
    if run(folder, cells, options.results, options.device, options.processes):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
