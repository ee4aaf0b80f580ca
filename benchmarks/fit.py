"""A full fit of DC-GST against 200 epochs of the usual PyG GCN, in turns in one run on the CPU.

``ratio`` is the time of the 200 epochs, with validation after each as is usual, over that of a
whole fit: teacher, prior, all stages, student. Peak memory is of each side's process, libraries
and data included.

    python benchmarks/fit.py --dataset cora --preset default --json
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from _common import alternate, graph_of, show
from epoch import problem, pyg

from dcgst.methods import method

EPOCHS = 200


def ours(dataset: str, preset: str, threads: int) -> Callable[[int], list[float]]:
    """Fits once per call with all epochs; the first call, which warms up, fits nothing."""
    torch.set_num_threads(threads)
    graph, split = problem(dataset)

    def run(epochs: int) -> list[float]:
        if epochs < EPOCHS:
            return []
        fitted = method("dcgst", preset, device="cpu").fit(graph, split)
        return [fitted.score(graph)]

    return run


def usual(dataset: str, preset: str, threads: int) -> Callable[[int], list[float]]:
    return pyg(dataset, hidden=64, dropout=0.5, threads=threads, validate=True)


def measure(dataset: str, preset: str, threads: int, rounds: int) -> dict[str, Any]:
    results = alternate(
        {"ours": ours, "pyg": usual},
        rounds,
        EPOCHS,
        dataset=dataset,
        preset=preset,
        threads=threads,
    )
    seconds = {name: result["ms"] * EPOCHS / 1000 for name, result in results.items()}
    return {
        "dataset": dataset,
        "data": graph_of(dataset)[1],
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
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for dataset in options.dataset.split(","):
        for preset in options.preset.split(","):
            show(measure(dataset, preset, options.threads, options.rounds), options.json)


if __name__ == "__main__":
    main()
