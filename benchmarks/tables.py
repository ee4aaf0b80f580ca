"""Time and memory of reading tables and making features of their columns.

A node table with dates, money, codes, e-mail addresses, texts, flags, categories and numbers, and
an edge table of integer ids, are written to a folder and read, each in a process of its own.

    python benchmarks/tables.py --nodes 100000,1000000 --edges-per-node 5
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from datetime import date, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from _common import show

from dcgst import read

WORDS = ["coffee", "rent", "salary", "gift", "insurance", "train", "books", "music", "refund"]


def write(folder: Path, count: int, edges: int) -> None:
    """Write ``nodes.csv`` and ``edges.csv``."""
    rng = np.random.default_rng(0)
    days, balance = rng.integers(0, 3000, count), rng.lognormal(7, 1, count)
    numbers = rng.integers(10_000, 99_999, count)
    words = rng.integers(0, len(WORDS), (count, 5))
    with (folder / "nodes.csv").open("w") as file:
        file.write("id,opened,balance,zip,email,note,verified,city,age,label\n")
        for i in range(count):
            cells = (
                i,
                date(2016, 1, 1) + timedelta(int(days[i])),
                f'"${balance[i]:,.2f}"',
                numbers[i],
                f"user{i}@host{numbers[i] % 40}.example",
                " ".join(WORDS[word] for word in words[i]),
                ("yes", "no")[numbers[i] % 2],
                f"city{numbers[i] % 300}",
                18 + numbers[i] % 70,
                "ab"[i % 2] if i < 100 else "",
            )
            file.write(",".join(map(str, cells)) + "\n")
    with (folder / "edges.csv").open("w") as file:
        file.write("source,target\n")
        np.savetxt(file, rng.integers(0, count, (edges, 2)), fmt="%d", delimiter=",")


def measure(folder: str) -> dict[str, Any]:
    """Read the tables of a folder."""
    start = time.perf_counter()
    graph = read(Path(folder) / "nodes.csv", Path(folder) / "edges.csv").graph
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "seconds": time.perf_counter() - start,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", default="100000", help="comma-separated")
    parser.add_argument("--edges-per-node", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for count in map(int, options.nodes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), count, count * options.edges_per_node)
            with get_context("spawn").Pool(1) as pool:
                show(pool.apply(measure, (folder,)), options.json)


if __name__ == "__main__":
    main()
