"""Time and peak memory of import and default fit against the size of a graph.

Synthetic tables with 64 features, 50 classes, 500 biased labels and ten edges per node are imported
into a store and fitted (one replica) with a limit on memory, each in a process of its own. A plain
GCN of PyG is timed for some epochs of the whole graph, if it fits into memory, and its time for 200
epochs is extrapolated. ``exponent`` is the slope of the logarithm of time against that of size.

    python benchmarks/scale.py --nodes 100000,300000,1000000 --memory 8GB --json
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
import torch.nn.functional as F
from _common import show
from _tables import Tables

from dcgst.memory import limit_memory, parse_size
from dcgst.methods import method
from dcgst.splits import Split
from dcgst.tables.importing import import_tables
from dcgst.tables.store import open_store

GCN_EPOCHS, MEASURED_EPOCHS = 200, 3
TRUTH, STORE = "truth.npy", "graph.store"


def run_import(folder: Path, memory: str) -> dict[str, Any]:
    """Import the tables of a folder."""
    limit_memory(parse_size(memory))
    store = folder / STORE
    import_tables(folder / "nodes.csv", folder / "edges.csv", store, overwrite=True)
    return {}


def run_fit(folder: Path, memory: str) -> dict[str, Any]:
    """Fit the default to the store of a folder; the accuracy is that of all unlabeled nodes."""
    limit_memory(parse_size(memory))
    graph = open_store(folder / STORE).graph
    truth = np.load(folder / TRUTH)[graph.ids.astype(np.int64)]
    names = np.array([int(name.removeprefix("class")) for name in graph.class_names])
    split = Split.known_labels(graph)
    fitted = method("dcgst", device="cpu").fit(graph, split)
    right = total = 0
    for start in range(0, graph.num_nodes, 1_000_000):
        own = slice(start, start + 1_000_000)
        pool = split.pool[0, own]
        predicted = names[fitted.proba_[own].argmax(axis=1)]
        right += int((predicted == truth[own])[pool].sum())
        total += int(pool.sum())
    return {"accuracy": round(100 * right / total, 2)}


def run_gcn(folder: Path, memory: str) -> dict[str, Any]:
    """Time epochs of a GCN of PyG on the whole graph."""
    from torch_geometric.nn import GCNConv

    limit_memory(parse_size(memory))
    graph = open_store(folder / STORE).graph
    x = torch.from_numpy(np.array(graph.features))
    edges = torch.from_numpy(np.stack(graph.adjacency.tocoo().coords).astype(np.int64))
    train = torch.from_numpy(np.flatnonzero(graph.labels >= 0))
    labels = torch.from_numpy(np.array(graph.labels))[train]
    layers = torch.nn.ModuleList([GCNConv(x.shape[1], 64), GCNConv(64, graph.num_classes)])
    optimizer = torch.optim.Adam(layers.parameters(), lr=0.01, weight_decay=5e-4)
    start = 0.0
    for epoch in range(MEASURED_EPOCHS + 1):
        if epoch == 1:  # the first epoch is a warm-up
            start = time.perf_counter()
        optimizer.zero_grad()
        hidden = F.dropout(layers[0](F.dropout(x), edges).relu())
        loss = F.cross_entropy(layers[1](hidden, edges)[train], labels)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    seconds = (time.perf_counter() - start) / MEASURED_EPOCHS * GCN_EPOCHS
    return {"extrapolated_s": round(seconds, 1)}


def measure(task: Callable[[Path, str], dict[str, Any]], folder: Path, memory: str) -> Any:
    """Seconds, peak resident memory and the result of a task; None if it needs more memory."""
    context = mp.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(task, folder, memory, sender))
    start = time.perf_counter()
    process.start()
    sender.close()
    peak = _watch(process.pid or 0)
    try:
        seconds, result = receiver.recv()
    except EOFError:
        process.join()
        return None
    process.join()
    return {
        "s": round(seconds, 1),
        "with_start_s": round(time.perf_counter() - start, 1),
        "peak_mib": round(peak[0] / 2**20),
        **result,
    }


def _serve(
    task: Callable[[Path, str], dict[str, Any]], folder: Path, memory: str, sender: Any
) -> None:
    torch.set_num_threads(psutil.cpu_count() or 1)
    start = time.perf_counter()
    result = task(folder, memory)
    sender.send((time.perf_counter() - start, result))


def _watch(pid: int) -> list[int]:
    """A list with the largest resident memory of a process, updated until it ends."""
    peak = [0]

    def look() -> None:
        try:
            process = psutil.Process(pid)
            while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                peak[0] = max(peak[0], process.memory_info().rss)
                time.sleep(0.2)
        except psutil.Error:
            return

    threading.Thread(target=look, daemon=True).start()
    return peak


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Slope of the logarithm of time against the logarithm of size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", default="100000,300000,1000000", help="comma-separated")
    parser.add_argument("--memory", default="8GB")
    parser.add_argument("--folder", type=Path, default=Path("scale"), help="for tables and stores")
    parser.add_argument("--no-gcn", action="store_true", help="leave out the GCN of PyG")
    parser.add_argument("--out", type=Path, help="append the results as JSON lines")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sizes, fits, imports = [], [], []
    for count in (int(text) for text in options.nodes.split(",")):
        folder = options.folder / str(count)
        if not (folder / TRUTH).exists():
            *_, truth = Tables(count).write(folder)
            np.save(folder / TRUTH, truth)
        tasks = {"import": run_import, "fit": run_fit}
        if not options.no_gcn:
            tasks["gcn"] = run_gcn
        found = {name: measure(task, folder, options.memory) for name, task in tasks.items()}
        record: dict[str, Any] = {"nodes": count, "memory": options.memory}
        for name, own in found.items():
            record |= {f"{name}_{key}": value for key, value in (own or {"s": None}).items()}
        show(record, options.json)
        if options.out:
            with options.out.open("a") as file:
                file.write(json.dumps(record) + "\n")
        sizes.append(count)
        imports.append(found["import"]["s"] if found["import"] else float("nan"))
        fits.append(found["fit"]["s"] if found["fit"] else float("nan"))
    if len(sizes) > 1:
        slopes = {"import": exponent(sizes, imports), "fit": exponent(sizes, fits)}
        show({f"{name}_exponent": round(slope, 3) for name, slope in slopes.items()}, options.json)


if __name__ == "__main__":
    main()
