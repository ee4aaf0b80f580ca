"""Time of a full fit of DC-GST on the CPU, compared with 200 epochs of a standard PyG GCN.

``ratio`` is the time of the 200 PyG epochs, with a validation after each epoch, divided by the time
of a full fit: teacher, EM, all stages, student. Peak memory is that of each process, libraries
and data included.

    python benchmarks/fit.py --dataset cora --preset default --json
    python benchmarks/fit.py --dataset ogbn-arxiv --rounds 1 --memory 3GB
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from _common import load_or_generate, show, time_alternately
from epoch import Train, load_problem, pyg_gcn

from dcgst.memory import limit_memory, parse_size
from dcgst.methods import method

EPOCHS = 200


def dcgst_fit(dataset: str, preset: str, threads: int, memory: str) -> Train:
    """Set up a full fit. Calls with fewer than ``EPOCHS`` epochs are warm-up and fit nothing."""
    torch.set_num_threads(threads)
    graph, split = load_problem(dataset)
    if memory:
        limit_memory(parse_size(memory))

    def run(epochs: int) -> list[float]:
        if epochs < EPOCHS:
            return []
        fitted = method("dcgst", preset, device="cpu").fit(graph, split)
        return [fitted.score(graph)]

    return run


def pyg_fit(dataset: str, preset: str, threads: int, memory: str) -> Train:
    """Set up the training of a GCN of PyG; ``preset`` and ``memory`` have no effect."""
    return pyg_gcn(dataset, hidden=64, dropout=0.5, threads=threads, validate=True)


def measure(dataset: str, preset: str, threads: int, rounds: int, memory: str) -> dict[str, Any]:
    """Measure one dataset and preset."""
    results = time_alternately(
        {"ours": dcgst_fit, "pyg": pyg_fit},
        rounds,
        EPOCHS,
        dataset=dataset,
        preset=preset,
        threads=threads,
        memory=memory,
    )
    seconds = {name: result["ms"] * EPOCHS / 1000 for name, result in results.items()}
    return {
        "dataset": dataset,
        "data": load_or_generate(dataset)[1],
        "preset": preset,
        "threads": threads,
        "fit_s": seconds["ours"],
        "pyg_200_epochs_s": seconds["pyg"],
        "ratio": seconds["pyg"] / seconds["ours"],
        "ours_peak_mib": results["ours"]["peak_mib"],
        "pyg_peak_mib": results["pyg"]["peak_mib"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--dataset", default="cora", help="comma-separated")
    parser.add_argument("--preset", default="default", help="comma-separated")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--memory", default="", help="limit of our fit, such as 3GB")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for dataset in options.dataset.split(","):
        for preset in options.preset.split(","):
            found = measure(dataset, preset, options.threads, options.rounds, options.memory)
            show(found, options.json)


if __name__ == "__main__":
    main()
