"""Several replicas at once: what ten runs cost compared with one, on CPU and GPU.

``ratio`` is the time of an epoch with R replicas over the time with one. On a CPU the engine would
by default compute replicas one after the other; here they are computed together on both.

    python benchmarks/replicas.py --dataset cora --json
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import time
from typing import Any

import torch
from _common import graph_of, peak_mib, show

from dcgst.graph import Graph
from dcgst.methods import GCN
from dcgst.splits import Split, sample

REPLICAS = (1, 5, 10)


def epoch_ms(graph: Graph, split: Split, device: str, epochs: int, rounds: int) -> float:
    """Milliseconds of an epoch: the best of several trainings after a warm-up."""
    replicas = len(split)

    def train(count: int) -> float:
        method = GCN(epochs=count, chunk=replicas, device=device)
        start = time.perf_counter()
        method.fit_runs(graph, split)
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start

    train(3)
    # The difference of a long and a short training leaves set-up out.
    return min(1000 * (train(epochs + 3) - train(3)) / epochs for _ in range(rounds))


def measure(dataset: str, device: str, epochs: int, rounds: int) -> list[dict[str, Any]]:
    """All numbers of replicas, ascending: so the peak so far is that of the last."""
    graph, data = graph_of(dataset)
    records: list[dict[str, Any]] = []
    for replicas in REPLICAS:
        split = sample(graph, "uniform", per_class=8, runs=replicas)
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        ms = epoch_ms(graph, split, device, epochs, rounds)
        peak = torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else peak_mib()
        record = {"dataset": dataset, "data": data, "device": device, "replicas": replicas}
        first = records[0]["ms"] if records else ms
        records.append({**record, "ms": ms, "ratio": ms / first, "peak_mib": peak})
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--dataset", default="cora", help="comma-separated")
    parser.add_argument("--device", default="all", help="cpu, cuda or all that there are")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    every = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    devices = every if options.device == "all" else [options.device]
    for dataset in options.dataset.split(","):
        for device in devices:
            # A process of its own, so that no other cell's memory is counted.
            with mp.get_context("spawn").Pool(1) as pool:
                cell = (dataset, device, options.epochs, options.rounds)
                for record in pool.apply(measure, cell):
                    show(record, options.json)


if __name__ == "__main__":
    main()
