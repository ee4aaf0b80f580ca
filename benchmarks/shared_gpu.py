"""Repeated factorizations on a GPU that several processes share: how often each one fails.

    python benchmarks/shared_gpu.py --processes 12 --calls 2000

Start the CUDA MPS daemon first (nvidia-cuda-mps-control -d). Each process orthonormalizes matrices
of the size of PubMed's smoothed features and decomposes their small Gram matrices, with PyTorch
alone and with `dcgst.features.linalg`. Only results that are not finite or not orthonormal, and
exceptions, count as failures.
"""

from __future__ import annotations

import argparse
import json
import time
from multiprocessing import get_context
from typing import Any

import torch


def work(process: int, calls: int, device: str) -> dict[str, Any]:
    from dcgst.features.linalg import eigh, orthonormalize

    generator = torch.Generator(device).manual_seed(process)
    counts = {"torch failures": 0, "dcgst failures": 0, "calls": 0}
    while counts["calls"] < calls:
        matrix = torch.randn(19717, 144, generator=generator, device=device)
        matrix = matrix * torch.logspace(0, -6, 144, device=device)
        # Other work on the device, as in a grid.
        torch.randn(4096, 4096, generator=generator, device=device) @ matrix[:4096]
        counts["torch failures"] += _fails(lambda m: torch.linalg.qr(m).Q, matrix)
        counts["dcgst failures"] += _fails(orthonormalize, matrix)
        gram = (matrix.T @ matrix).double()
        counts["torch failures"] += _fails(lambda m: torch.linalg.eigh(m)[1], gram)
        counts["dcgst failures"] += _fails(lambda m: eigh(m)[1], gram)
        counts["calls"] += 2
    return counts


def _fails(function: Any, matrix: torch.Tensor) -> bool:
    try:
        q = function(matrix)
        error = (q.T @ q - torch.eye(q.shape[1], device=q.device, dtype=q.dtype)).abs().max()
        return not bool(error < 1e-3)
    except Exception:
        return True


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--calls", type=int, default=2000, help="factorizations in all")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    start = time.perf_counter()
    each = -(-options.calls // options.processes)
    with get_context("spawn").Pool(options.processes) as pool:
        jobs = [(number, each, options.device) for number in range(options.processes)]
        results = pool.starmap(work, jobs)
    total = {key: sum(result[key] for result in results) for key in results[0]}
    seconds = round(time.perf_counter() - start, 1)
    print(json.dumps({**total, "processes": options.processes, "seconds": seconds}))


if __name__ == "__main__":
    main()
