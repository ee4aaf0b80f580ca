"""Expected calibration error of the default method, as calibrated by `dcgst fit`, and of GCN."""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from dcgst import Split, load, method, sample
from dcgst.evaluate.calibration import calibrate, calibrated_in_fit, expected_calibration_error
from dcgst.graph import Graph

CELLS = (("cora", 0.02), ("citeseer", 0.02), ("pubmed", 0.001))


def measure(graph: Graph, split: Split, name: str, replicas: int) -> tuple[float, float]:
    """Return the mean calibration error over the runs, calibrated and uncalibrated."""
    model = method(name, replicas=replicas)
    calibrated, uncalibrated = [], []
    for run, result in enumerate(model.fit_runs(graph, split)):
        val_labels = np.where(split.val[run], graph.labels, -1)
        calibration = calibrate(result.proba, val_labels)
        if model.calibrated:
            calibration = calibrated_in_fit(int(split.val[run].sum()), agreement=True)
        test = split.pool[run] & (graph.labels >= 0)
        labels, proba = graph.labels[test], result.proba[test]
        uncalibrated.append(expected_calibration_error(proba, labels))
        calibrated.append(expected_calibration_error(calibration.apply(proba), labels))
    return float(np.mean(calibrated)), float(np.mean(uncalibrated))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first-run", type=int, default=0)
    parser.add_argument("--replicas", type=int, default=5)
    options = parser.parse_args()
    for dataset, rate in CELLS:
        graph = load(dataset)
        full = sample(graph, "released", rate=rate, runs=options.runs, first_run=options.first_run)
        without_val = replace(full, val=full.val & False)
        for suffix, split in (("", full), (" without validation", without_val)):
            for name, replicas in (("gcn", 1), ("dcgst", options.replicas)):
                calibrated, uncalibrated = measure(graph, split, name, replicas)
                print(
                    f"{dataset}{suffix} {name}: ECE {calibrated:.3f} calibrated, "
                    f"{uncalibrated:.3f} uncalibrated",
                    flush=True,
                )


if __name__ == "__main__":
    main()
