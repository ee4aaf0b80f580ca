"""The protocol of IceBerg: its cells, splits and table, and the command."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from dcgst.bench.cells import Records, key_of
from dcgst.bench.iceberg import PUBLISHED, SETTINGS, iceberg_cells, iceberg_section, iceberg_table
from dcgst.bench.protocol import run_cell
from dcgst.datasets import load
from dcgst.errors import InputError
from dcgst.methods import METHODS
from tests.bench.conftest import make_record
from tests.cli.helpers import dcgst

ROOT = Path(__file__).parents[2]


def record_of(cell, accuracy, **fields):
    labels = {"per_class": cell.per_class, "validation_per_class": cell.validation_per_class}
    return make_record(cell, accuracy, **{**labels, "balanced_accuracy": 50.0, **fields})


def test_cells_are_the_published_settings():
    cells = iceberg_cells(["gcn", "lp", "gcn"])
    assert len(cells) == 2 * 10
    assert len({cell.key for cell in cells}) == len(cells)
    assert [c.per_class for c in cells if c.method == "gcn"] == [1, 2, 3, 5, 1, 2, 3, 5, 2, 5]
    assert {(c.sampler, c.validation, c.validation_per_class) for c in cells} == {
        ("uniform", None, 30)}  # fmt: skip


def test_no_method_trains_on_the_validation_labels():
    for name in METHODS:
        settings = iceberg_cells([name], ["cora"])[0].make_method().config()
        assert all(settings[key] is False for key in SETTINGS if key in settings)
    with pytest.raises(InputError, match="needs random_validation=False, got True"):
        iceberg_cells(["ensemble"], settings={"ensemble": {"random_validation": True}})
    with pytest.raises(InputError, match=r"has the datasets cora.*got 'digits'"):
        iceberg_cells(["gcn"], ["digits"])


def test_a_record_has_the_key_of_its_cell():
    (cell, *_) = iceberg_cells(["lp"], ["cora"], runs=2)
    cell = dataclasses.replace(cell, dataset="synthetic/400")
    graph = load("synthetic/400")
    split = cell.labels.sample(graph)
    for given, count in ((split.train, 1), (split.val, 30)):
        counts = [np.bincount(graph.labels[row], minlength=4).tolist() for row in given]
        assert counts == [[count] * 4] * 2
    record = dataclasses.asdict(run_cell(graph, cell.make_method(), cell.labels))
    record["dataset"] = cell.dataset
    (other, *_) = iceberg_cells(["lp"], ["cora"], runs=2)
    assert json.loads(json.dumps(record))["validation_per_class"] == 30
    assert key_of(record) == cell.key != other.key


def test_the_table_has_published_and_measured_values(tmp_path):
    records = Records(tmp_path / "iceberg.jsonl")
    cells = iceberg_cells(["gcn", "lp"], ["cora"], runs=2)
    assert iceberg_table(cells, records).rows[0] == ["cora", "1", "68.2"]
    for cell in cells:
        if cell.method == "gcn" and cell.per_class != 5:
            records.add(record_of(cell, [60.0 + cell.per_class, 62.0 + cell.per_class]))
    table = iceberg_table(cells, records)
    assert table.headers == ["dataset", "labels per class", "IceBerg, published", "gcn"]
    assert table.rows[1] == ["cora", "2", "75.1", "63.0 ± 1.0"]
    assert table.rows[3] == ["cora", "5", "78.3", "–"]
    assert "2 runs" in table.notes[0]
    assert "our own generator" in table.notes[0]


def test_published_values_cover_all_settings():
    assert sum(len(values) for values in PUBLISHED.values()) == 10


def test_the_committed_table_matches_the_records():
    section = iceberg_section(Records(ROOT / "results" / "iceberg.jsonl"))
    assert section in (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")


def test_the_command_shows_stored_records(tmp_path):
    path = tmp_path / "iceberg.jsonl"
    records = Records(path)
    for cell in iceberg_cells(["lp"], ["cora"], runs=3):
        records.add(record_of(cell, [60.0, 61.0, 62.0]))
    arguments = ["--protocol", "iceberg", "--dataset", "cora", "--method", "lp", "--runs", 3]
    done = dcgst("bench", *arguments, "--results", path)
    assert done.code == 0, done.err
    assert "Protocol of IceBerg" in done.out
    assert "61.0 ± 0.8" in done.out
    lines = dcgst("bench", *arguments, "--results", path, "--json").out.splitlines()
    assert [json.loads(line)["per_class"] for line in lines] == [1, 2, 3, 5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--protocol", "icberg"], "unknown protocol 'icberg'"),
        (["--protocol", "iceberg", "--suite"], "set --suite or --protocol, not both"),
        (["--protocol", "iceberg", "--per-class", 3], "--protocol has its own labels"),
    ],
)
def test_invalid_options_exit_with_2(arguments, message):
    done = dcgst("bench", *arguments)
    assert (done.code, message in done.words) == (2, True), done.err
