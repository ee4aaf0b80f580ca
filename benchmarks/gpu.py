"""Fits of the default on a GPU: all nodes at once, and in blocks if there is too little memory.

Synthetic graphs with 64 features, 50 classes, 500 biased labels and ten edges per node are made in
memory and fitted twice, with all GPU memory and with a part of it. ``--runs`` is the number of fits
of a dataset that are computed together. ``--compare-capture`` also measures a fit whose steps are
launched kernel by kernel instead of as CUDA graphs.

    python benchmarks/gpu.py --nodes 300000,3000000 --limit 8GB
    python benchmarks/gpu.py --dataset ogbn-arxiv --runs 10
    python benchmarks/gpu.py --dataset cora --rate 0.02 --runs 10 --compare-capture
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch
from _common import show
from numpy.typing import NDArray

from dcgst import Graph, load, sample
from dcgst.memory import parse_size
from dcgst.methods import method
from dcgst.methods.running import fit_runs, fits_sample
from dcgst.splits import Split
from dcgst.train.training import Repeated

CLASSES, FEATURES, EDGES, LABELS = 50, 64, 10, 500
HOMOPHILY, NOISE = 0.4, 4.0


def make_graph(count: int) -> tuple[Graph, NDArray[np.int64]]:
    """A graph whose labels are those of one end of a planted shift, and the true classes."""
    rng = np.random.default_rng(0)
    truth = np.sort(rng.integers(0, CLASSES, count))
    amount = rng.random(count, dtype=np.float32)
    means, shifts = rng.normal(size=(2, CLASSES, FEATURES)).astype(np.float32)
    x = rng.standard_normal((count, FEATURES), dtype=np.float32) * np.float32(NOISE)
    x += means[truth] + amount[:, None] * shifts[truth]
    source, target = rng.integers(0, count, (2, count * EDGES), dtype=np.int32)
    first, size = np.searchsorted(truth, np.arange(CLASSES)), np.bincount(truth)
    same = rng.random(source.size) < HOMOPHILY
    code = truth[source[same]]
    target[same] = first[code] + (rng.random(code.size) * size[code]).astype(np.int64)
    labels = np.full(count, -1)
    labeled = rng.choice(np.flatnonzero(amount < 0.2), LABELS, replace=False)
    labels[labeled] = truth[labeled]
    return Graph.from_edges(np.stack([source, target]), x, labels), truth


def measure(graph: Graph, truth: NDArray[np.int64], split: Split, limit: float) -> dict[str, Any]:
    """Fit with a part of the GPU memory."""
    torch.cuda.set_per_process_memory_fraction(limit)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model = method("dcgst", device="cuda")
    blocks = fits_sample(model, graph, len(split))
    start = time.perf_counter()
    results = fit_runs(model, graph, split)
    seconds = time.perf_counter() - start
    accuracy = [
        float((result.labels == truth)[pool].mean())
        for result, pool in zip(results, split.pool, strict=True)
    ]
    return {
        "nodes": graph.num_nodes,
        "runs": len(split),
        "in_blocks": blocks,
        "seconds": seconds,
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30,
        "accuracy": float(np.mean(accuracy)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", default="", help="comma-separated")
    parser.add_argument("--limit", default="8GB", help="GPU memory of the second fit")
    parser.add_argument("--dataset", default="", help="a dataset instead, with labels by PPR-S")
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--compare-capture", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    _, total = torch.cuda.mem_get_info()
    torch.ones(1, device="cuda")  # the start of CUDA is not measured
    if options.dataset:
        graph = load(options.dataset)
        split = sample(graph, "released", rate=options.rate, runs=options.runs)
        if options.compare_capture:
            measure(graph, graph.labels, split, 1.0)  # libraries are loaded when first used
        for captured in (True, False) if options.compare_capture else (True,):
            Repeated.enabled = captured
            found = measure(graph, graph.labels, split, 1.0)
            show({"captured": captured, **found}, options.json)
        Repeated.enabled = True
    for count in filter(None, options.nodes.split(",")):
        graph, truth = make_graph(int(count))
        for limit in (1.0, parse_size(options.limit) / total):
            show(measure(graph, truth, Split.known_labels(graph), limit), options.json)


if __name__ == "__main__":
    main()
