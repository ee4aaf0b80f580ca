"""Are probabilities honest? ECE of the default, as `dcgst fit` gives it, beside plain GCN's."""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from dcgst import load, method, sample
from dcgst.evaluate import calibrate, expected_calibration_error

CELLS = (("cora", 0.02), ("citeseer", 0.02), ("pubmed", 0.001))

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first-run", type=int, default=0)
    parser.add_argument("--replicas", type=int, default=5)
    options = parser.parse_args()
    for dataset, rate in CELLS:
        graph = load(dataset)
        full = sample(graph, "released", rate=rate, runs=options.runs, first_run=options.first_run)
        for words, split in (
            ("", full),
            (" without validation", replace(full, val=full.val & False)),
        ):
            for name, replicas in (("gcn", 1), ("dcgst", options.replicas)):
                model = method(name, replicas=replicas)
                raw, told = [], []
                for run, result in enumerate(model.fit_runs(graph, split)):
                    known = np.where(split.val[run], graph.labels, -1)
                    fitted = calibrate(result.proba, known, model.usual_temperature)
                    test = split.pool[run] & (graph.labels >= 0)
                    truth = graph.labels[test]
                    raw.append(expected_calibration_error(result.proba[test], truth))
                    calibrated = fitted.apply(result.proba[test])
                    told.append(expected_calibration_error(calibrated, truth))
                print(
                    f"{dataset}{words} {name}: ECE {np.mean(told):.3f} calibrated, "
                    f"{np.mean(raw):.3f} as it is",
                    flush=True,
                )
