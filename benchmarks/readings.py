"""Measure options of DC-GST: one line of JSON per variant, dataset and kind of labels.

    python benchmarks/suite_elsewhere.py pack FOLDER --protocol paper --first-run 10 --runs 20
    python benchmarks/readings.py FOLDER --runs pubmed=10 --out readings.jsonl --processes 13

    python benchmarks/suite_elsewhere.py pack FOLDER --first-run 10 --graphs cora_ml,uai
    python benchmarks/readings.py FOLDER --protocol suite --out readings.jsonl

The variants in readings.json map names to settings that change the preset: ``paper/…`` on the
graphs of the paper, ``default`` on those of the suite. The rule of ``paper/…`` was chosen by the
accuracy on validation nodes of runs 10 to 29. Of each stage, a line has the number of labels, the
accuracy of the pseudo-labels, and the shift in the space of the method and in a fixed one, means
over the runs.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

import numpy as np
import torch
from suite_elsewhere import read

from dcgst.bench.protocol import Labels, stage_histories
from dcgst.methods import DCGST
from dcgst.splits import Split
from dcgst.train.executors import open_executor

RATES = {"cora": 0.02, "citeseer": 0.02, "pubmed": 0.0005}
VARIANTS = Path(__file__).with_suffix(".json")


def measure(
    path: Path, name: str, labels: Labels, settings: dict[str, Any], device: str, runs: int | None
) -> str:
    """Fit one variant to the first runs."""
    torch.set_num_threads(1)
    graph, splits = read(path)
    split = splits[labels]
    split = Split(split.train[:runs], split.val[:runs], split.pool[:runs], split.runs[:runs])
    paper = labels.sampler == "released"
    preset = f"{settings.get('preset', 'paper')}/{path.stem}" if paper else "default"
    changed = {key: value for key, value in settings.items() if key != "preset"}
    start = time.perf_counter()
    method = DCGST.from_preset(preset, **changed, device=device)
    results = method.fit_runs(graph, split)
    seconds = time.perf_counter() - start
    truth, test = graph.labels, split.test(graph)
    right = [result.proba.argmax(1) == truth for result in results]
    found = {
        "variant": name,
        "dataset": path.stem,
        "sampler": labels.sampler,
        "rate": labels.rate,
        "preset": preset,
        "settings": changed,
        "first_run": labels.first_run,
        "accuracy": [round(100 * float(r[m].mean()), 2) for r, m in zip(right, test, strict=True)],
        "val_accuracy": [
            round(100 * float(r[m].mean()), 2)
            for r, m in zip(right, split.val, strict=True)
            if m.any()
        ],
        "stages": by_stage(stage_histories(graph, split, results)),
        "seconds": round(seconds, 1),
    }
    return json.dumps(found)


def labels_of(path: Path, protocol: str) -> list[Labels]:
    """Biased labels of one rate; in the suite, biased and random labels without validation."""
    stored = list(read(path)[1])
    if protocol == "suite":
        return [own for own in stored if own.sampler in ("ppr-s", "uniform") and not own.validation]
    rate = RATES.get(path.stem)
    return [own for own in stored if own.sampler == "released" and own.rate == rate]


def by_stage(histories: list[list[dict[str, float]]]) -> dict[str, list[float]]:
    """Means over the runs that have not stopped before."""
    names = ("labeled", "right", "cmd", "fixed_cmd")
    longest = max(len(history) for history in histories)
    stages = [[own[k] for own in histories if k < len(own)] for k in range(longest)]
    found = {
        name: [
            round(float(np.mean([r[name] for r in rows if name in r] or [np.nan])), 4)
            for rows in stages
        ]
        for name in names
    }
    return {**found, "runs": [len(rows) for rows in stages]}


def main() -> None:
    """Measure all variants in parallel; each is written when it is done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="of packed graphs and labels")
    parser.add_argument("--protocol", choices=("paper", "suite"), default="paper")
    parser.add_argument("--runs", default="", help="DATASET=NUMBER, comma-separated; default all")
    parser.add_argument("--out", type=Path, default=Path("readings.jsonl"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--processes", type=int, default=13)
    options = parser.parse_args()
    runs = dict(pair.split("=") for pair in options.runs.split(",") if pair)
    variants = json.loads(VARIANTS.read_text(encoding="utf-8"))[options.protocol]
    paths = sorted((options.folder / options.protocol).glob("*.npz"))
    paths.sort(key=lambda path: -path.stat().st_size)  # the longest first
    executor = open_executor(options.processes)
    start = time.perf_counter()
    jobs = []
    for path in paths:
        count = int(runs[path.stem]) if path.stem in runs else None
        jobs += [
            executor.submit(measure, path, name, labels, settings, options.device, count)
            for labels in labels_of(path, options.protocol)
            for name, settings in variants.items()
        ]
    with options.out.open("a") as out:
        for number, job in enumerate(as_completed(jobs), 1):
            try:
                out.write(job.result() + "\n")
                out.flush()
            except Exception as error:
                print(f"{type(error).__name__}: {error}", flush=True)
            print(f"{number} of {len(jobs)}, {time.perf_counter() - start:.0f} s", flush=True)
    executor.shutdown()


if __name__ == "__main__":
    main()
