"""Time of an epoch with several replicas, compared with one replica, on the CPU and the GPU.

``ratio`` is the time of an epoch with R replicas divided by the time with one. By default, replicas
are trained one after another on a CPU; this benchmark trains them together on both devices.

    python benchmarks/replicas.py --dataset cora --json
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import time
from typing import Any

import torch
from _common import load_or_generate, peak_mib, show

from dcgst.graph import Graph
from dcgst.methods import GCN
from dcgst.splits import Split, sample

REPLICAS = (1, 5, 10)


def epoch_ms(graph: Graph, split: Split, device: str, epochs: int, rounds: int) -> float:
    """Return the milliseconds of an epoch in the best of several rounds after a warm-up."""
    replicas = len(split)

    def train(count: int) -> float:
        method = GCN(epochs=count, chunk_size=replicas, device=device)
        start = time.perf_counter()
        method.fit_runs(graph, split)
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start

    train(3)
    # The difference between a long and a short training excludes the setup time.
    return min(1000 * (train(epochs + 3) - train(3)) / epochs for _ in range(rounds))


def measure(dataset: str, device: str, epochs: int, rounds: int) -> list[dict[str, Any]]:
    """Measure each number of replicas.

    The numbers ascend, so the peak memory of the process is that of the latest measurement.
    """
    graph, data = load_or_generate(dataset)
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
    parser.add_argument("--device", default="all", help="cpu, cuda or all (all available devices)")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    available = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    devices = available if options.device == "all" else [options.device]
    for dataset in options.dataset.split(","):
        for device in devices:
            # A separate process, so that its peak memory excludes other measurements.
            with mp.get_context("spawn").Pool(1) as pool:
                arguments = (dataset, device, options.epochs, options.rounds)
                for record in pool.apply(measure, arguments):
                    show(record, options.json)


if __name__ == "__main__":
    main()
