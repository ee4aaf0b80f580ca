"""The order of rows and columns in the files does not change the results."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from tests.cli.helpers import dcgst, read_table, write_table


@pytest.fixture
def shuffled(tables, tmp_path, rng):
    """The same tables with rows, columns and edges in another order."""
    for name in ("nodes.csv", "edges.csv"):
        with open(tables / name, newline="") as file:
            header, *rows = csv.reader(file)
        columns = rng.permutation(len(header)) if name == "nodes.csv" else np.arange(2)
        rows = [rows[i] for i in rng.permutation(len(rows))]
        write_table(
            tmp_path / name,
            [header[c] for c in columns],
            [[row[c] for c in columns] for row in rows],
        )
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        ("--method", "gcn", "--set", "epochs=20"),
        ("--method", "em"),
        ("--method", "dcgst", "--replicas", 1, "--set", "epochs=10", "--set", "max_stages=2"),
        ("--method", "gcn", "--set", "epochs=20", "--validate", "0.3"),
        ("--method", "m3s", "--set", "epochs=10"),
    ],
    ids=["gcn", "em", "dcgst", "validate", "m3s"],
)
def test_predictions_do_not_depend_on_the_order(tables, shuffled, tmp_path, options):
    found = []
    for folder in (tables, shuffled):
        out = tmp_path / f"run{len(found)}"
        done = dcgst("fit", folder / "nodes.csv", folder / "edges.csv", "--label", "kind",
                     "-o", out, *options)  # fmt: skip
        assert done.code == 0, done.err
        rows = read_table((out / "predictions.csv").read_text())
        found.append(sorted(rows, key=lambda row: row["id"]))
    assert found[0] == found[1]


def test_the_diagnosis_does_not_depend_on_the_order(tables, shuffled):
    shown = [
        dcgst("diagnose", folder / "nodes.csv", folder / "edges.csv", "--label", "kind", "--json")
        for folder in (tables, shuffled)
    ]
    assert shown[0].code == 0
    import json

    first, second = (json.loads(done.out)["shifts"] for done in shown)
    for one, other in zip(first, second, strict=True):
        assert one["value"] == pytest.approx(other["value"], rel=1e-4)
        assert one["expected"] == pytest.approx(other["expected"], rel=1e-3)
        assert one["p"] == pytest.approx(other["p"], abs=1e-9)


def test_spectral_features_do_not_depend_on_the_order(tables, shuffled, tmp_path):
    found = []
    for folder in (tables, shuffled):
        out = tmp_path / f"spectral{len(found)}"
        done = dcgst("fit", folder / "nodes.csv", folder / "edges.csv", "--label", "kind",
                     "--ignore", "w,x1,x2,x3", "-o", out, "--method", "gcn",
                     "--set", "epochs=5")  # fmt: skip
        assert done.code == 0, done.err
        rows = read_table((out / "predictions.csv").read_text())
        found.append(sorted(rows, key=lambda row: row["id"]))
    assert found[0] == found[1]
