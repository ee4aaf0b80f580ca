"""Fixtures shared by the tests of the benchmarks."""

from __future__ import annotations

import numpy as np
import pytest

from dcgst.bench.cells import Cell, Records
from dcgst.bench.experiments import BASELINES, RATES, protocol_cell
from dcgst.bench.protocol import Record


def make_record(cell: Cell, accuracy: list[float], **fields) -> Record:
    """Make a record of a cell with the given accuracies; ``fields`` override other fields."""
    defaults = {
        "dataset": cell.dataset,
        "method": cell.method,
        "backbone": "gcn",
        "sampler": cell.sampler,
        "rate": cell.rate,
        "per_class": 8,
        "runs": cell.runs,
        "first_run": 0,
        "preset": cell.preset,
        "accuracy": accuracy,
        "mean": float(np.mean(accuracy)),
        "std": float(np.std(accuracy)),
        "cmd_before": 0.2,
        "cmd_after": 0.1,
        "seconds": 3.0,
        "official": True,
        "settings": cell.make_method().get_params(),
        "device": "CPU (test)",
        "peak_mib": 100.0,
        "commit": None,
        "versions": {},
    }
    return Record(**{**defaults, **fields})


@pytest.fixture
def records(tmp_path):
    """Records of a file that does not exist yet."""
    return Records(tmp_path / "records.jsonl")


@pytest.fixture
def citeseer_records(records):
    """Records of every method on CiteSeer; DC-GST is the best except at 3 %, where GCN is."""
    for rate in RATES["citeseer"]:
        for i, name in enumerate((*BASELINES, "dcgst")):
            level = 90.0 if name == "gcn" and rate == 0.03 else 50.0 + i
            accuracy = [level + run / 5 for run in range(10)]
            preset = "paper" if name == "dcgst" else "default"
            cell = protocol_cell("citeseer", name, rate, preset=preset)
            records.add(make_record(cell, accuracy))
    return records
