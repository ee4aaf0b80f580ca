"""The few-label suite: its cells, gaps and tables, and the command."""

from __future__ import annotations

import dataclasses
import json

import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from dcgst.bench.cells import Cell, Records
from dcgst.bench.grid import missing_cells
from dcgst.bench.suite import (
    DEVELOPMENT,
    FLOORS,
    GRAPHS,
    SECOND_FLOORS,
    TABLES,
    available_graphs,
    gap_table,
    group_table,
    regimes_of,
    suite_cells,
    summary_table,
)
from dcgst.cli.app import app
from dcgst.datasets import DATASETS
from dcgst.errors import InputError
from dcgst.testing import small_graph
from tests.bench.conftest import make_record

ACCURACY = {
    "majority": 40.0, "gcn": 70.0, "appnp": 72.0, "mlp": 50.0, "lp": 60.0, "em": 65.0, "dcgst": 73.5
}  # fmt: skip
NUM_CELLS = 3 * (2 * 7 + 5)
"""Cells of one graph and one method that is neither a floor nor the majority class."""


def record_of(cell: Cell, accuracy: float, **fields):
    quality = {"balanced_accuracy": 62.0, "macro_f1": 61.0, "ece": 0.1, "share_error": 0.2,
               "seconds": 4.0}  # fmt: skip
    same = {"validation": cell.validation, "train_on_validation": cell.train_on_validation}
    return dataclasses.replace(
        make_record(cell, [accuracy] * cell.runs), **{**same, **quality, **fields}
    )


@pytest.fixture
def records(tmp_path) -> tuple[list[Cell], Records]:
    """DC-GST is 1.5 above the best floor, and .5 below it on actor; floors gain 1 with +val."""
    cells = suite_cells(["digits", "actor"], ["dcgst"], runs=2)
    records = Records(tmp_path / "suite.jsonl")
    for cell in cells:
        worse = 2.0 if cell.dataset == "actor" and cell.method == "dcgst" else 0.0
        more = 1.0 if cell.train_on_validation else 0.0
        f1 = {"macro_f1": 58.0 if cell.method == "dcgst" else 61.0 + more}
        records.add(record_of(cell, ACCURACY[cell.method] - worse + more, **f1))
    return cells, records


def test_all_graphs_are_registered():
    assert all(name in DATASETS for name in GRAPHS)
    assert "digits" in available_graphs()


def test_cells_are_all_combinations_with_different_keys():
    cells = suite_cells(["digits", "actor"], ["dcgst", "gcn"], runs=3, first_run=10)
    assert len(cells) == 2 * NUM_CELLS
    assert len({cell.key for cell in cells}) == len(cells)
    assert {cell.validation for cell in cells} == {0, 20}
    twice = {(cell.method, cell.validation) for cell in cells if cell.train_on_validation}
    assert twice == {(floor, 20) for floor in FLOORS}
    split_labels = cells[0].labels
    assert (split_labels.per_class, split_labels.runs, split_labels.first_run) == (10, 3, 10)


def test_settings_belong_to_one_method():
    cells = suite_cells(["digits"], ["dcgst"], settings={"dcgst": {"experts": False}})
    assert {cell.method for cell in cells if cell.settings} == {"dcgst"}


def test_gaps_are_differences_to_the_best_floor(records):
    regimes = regimes_of(*records)
    assert [(r.sampler, r.validation) for r in regimes][:3] == [
        ("uniform", 0), ("uniform", 20), ("degree", 0)]  # fmt: skip
    assert regimes[0].gaps("dcgst") == {"digits": 1.5, "actor": -0.5}
    assert regimes[0].gaps("appnp") == {"digits": 0.0, "actor": 0.0}


def test_second_gaps_are_differences_to_floors_that_train_on_validation_labels(records):
    without, with_labels = regimes_of(*records)[:2]
    assert with_labels.second_gaps("dcgst") == {"digits": 0.5, "actor": -1.5}
    assert with_labels.f1_gaps("dcgst") == {"digits": -4.0, "actor": -4.0}
    assert with_labels.gaps("appnp+val") == {"digits": 1.0, "actor": 1.0}
    assert without.second_gaps("dcgst") == without.gaps("dcgst")
    assert without.f1_gaps("dcgst") == {"digits": -3.0, "actor": -3.0}


def test_graphs_with_missing_records_are_left_out(tmp_path):
    cells = suite_cells(["digits", "actor"], ["dcgst"], runs=1)
    records = Records(tmp_path / "suite.jsonl")
    for cell in cells:
        if cell.dataset == "digits" or cell.method != "em":
            records.add(record_of(cell, 50.0))
    assert {tuple(regime.by_graph) for regime in regimes_of(cells, records)} == {("digits",)}
    assert regimes_of(cells, Records(tmp_path / "none.jsonl")) == []


@pytest.mark.parametrize("absent", ["majority", "dcgst", "em+val"])
def test_rows_that_were_never_measured_are_left_out(absent, tmp_path):
    cells = suite_cells(["digits", "actor"], ["dcgst"], runs=1)
    records = Records(tmp_path / "suite.jsonl")
    for cell in cells:
        if absent not in (cell.method, f"{cell.method}+val" * cell.train_on_validation):
            records.add(record_of(cell, 50.0))
    regime = regimes_of(cells, records)[1]
    assert list(regime.by_graph) == ["digits", "actor"]
    expected = {"majority", *FLOORS, "dcgst", *SECOND_FLOORS} - {absent}
    if absent == "em+val":  # the best of four methods would be another comparison
        expected -= set(SECOND_FLOORS)
        assert regime.second_gaps("dcgst") == regime.f1_gaps("dcgst") == {}
    assert set(regime.rows) == expected


def test_records_of_earlier_versions_are_shown_but_measured_again(tmp_path):
    cells = suite_cells(["digits"], ["dcgst"], runs=1)
    records = Records(tmp_path / "suite.jsonl")
    for cell in cells:
        records.add(record_of(cell, 50.0, balanced_accuracy=None))
    table = summary_table(regimes_of(cells, records), ["dcgst"])
    row = dict(zip(table.headers, table.rows[0], strict=True))
    assert (row["acc"], row["bal"]) == ("50.0", "–")
    assert missing_cells(cells, records) == cells
    records.add(record_of(cells[0], 50.0))
    assert missing_cells(cells, records) == cells[1:]


def test_tables(records):
    regimes = regimes_of(*records)
    table = summary_table(regimes, ["dcgst"])
    assert len(table.rows) == NUM_CELLS
    row = dict(zip(table.headers, table.rows[6], strict=True))
    assert row == {"labels": "uniform", "val": "0", "method": "dcgst", "acc": "72.5",
                   "bal": "62.0", "F1": "58.0", "gap": "+0.5", "worst": "-0.5", "2nd": "+0.5",
                   "F1 gap": "-3.0", "ECE": "0.100", "shares": "0.200", "s": "2.0"}  # fmt: skip
    with_labels = dict(zip(table.headers, table.rows[18], strict=True))
    assert [with_labels[name] for name in ("method", "val", "gap", "2nd", "F1 gap")] == [
        "dcgst", "20", "+0.5", "-0.5", "-4.0"]  # fmt: skip
    assert table.rows[0][2:4] == ["majority", "40.0"]
    by_graph = gap_table(regimes, "dcgst")
    assert by_graph.headers[:3] == ["graph", "uniform, 0", "uniform, 20"]
    assert by_graph.rows == [["digits", *["+1.5"] * 6], ["actor", *["-0.5"] * 6]]


def test_groups_of_graphs_have_their_own_means(tmp_path):
    assert set(TABLES) | set(DEVELOPMENT) == set(GRAPHS)
    assert not set(TABLES) & set(DEVELOPMENT)
    cells = suite_cells(["digits", "cora", "german"], ["dcgst"], runs=1)
    records = Records(tmp_path / "suite.jsonl")
    for cell in cells:
        own = {"digits": 75.0, "cora": 73.0, "german": 70.0}[cell.dataset]
        records.add(record_of(cell, own if cell.method == "dcgst" else 72.0))
    table = group_table(regimes_of(cells, records), ["dcgst", "gcn"])
    assert len(table.rows) == 2 * 6 * 2
    assert table.rows[0][:7] == ["development", "2", "uniform", "0", "dcgst", "+2.0", "+1.0"]
    assert table.rows[12][:7] == ["tables", "1", "uniform", "0", "dcgst", "-2.0", "-2.0"]


def run(*arguments: str):
    return CliRunner().invoke(app, ["bench", "--suite", *arguments])


def test_the_command_shows_stored_records(records):
    path = str(records[1].path)
    result = run("--dataset", "digits,actor", "--method", "dcgst", "--runs", "2", "--results", path)
    assert result.exit_code == 0, result.output
    assert "Few-label suite" in result.output
    assert "Gap of dcgst by graph" in result.output
    assert "Gap by group of graphs" in result.output
    assert all(len(line) <= 80 for line in result.output.splitlines() if "uniform" in line)
    lines = run(
        "--dataset", "digits", "--method", "dcgst", "--runs", "2", "--results", path, "--json"
    ).stdout.splitlines()
    assert {json.loads(line)["dataset"] for line in lines} == {"digits"}
    assert len(lines) == NUM_CELLS


def test_unknown_methods_and_settings_are_errors(tmp_path):
    results = ("--results", str(tmp_path / "suite.jsonl"))
    for arguments in (("--method", "gnc"), ("--set", "hiden=3"), ("--rate", "0.1")):
        error = run("--dataset", "digits", *arguments, *results).exception
        assert isinstance(error, InputError)
    assert not (tmp_path / "suite.jsonl").exists()


def test_the_suite_of_an_own_file_shows_its_table_and_is_not_run_again(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    graph = small_graph()
    ids = [f"n{number}" for number in range(graph.num_nodes)]
    rows = [f"{i},{','.join(map(str, x))}" for i, x in zip(ids, graph.features, strict=True)]
    names = ",".join(f"f{column}" for column in range(graph.num_features))
    (folder / "nodes.csv").write_text("\n".join([f"id,{names}", *rows]))
    ends = sp.triu(graph.adjacency).tocoo()
    edges = [f"{ids[a]},{ids[b]}" for a, b in zip(ends.row, ends.col, strict=True)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]))
    truth = [f"{i},class {label}" for i, label in zip(ids, graph.labels, strict=True)]
    (folder / "truth.csv").write_text("\n".join(["id,class", *truth]))
    results = tmp_path / "suite.jsonl"
    arguments = ("--dataset", str(folder), "--method", "majority", "--runs", "1")
    first = run(*arguments, "--results", str(results), "--workers", "1")
    assert first.exit_code == 0, first.output
    assert "Gap of majority by graph" in first.output
    stored = results.read_text()
    assert len(stored.splitlines()) == NUM_CELLS - 6
    again = run(*arguments, "--results", str(results))
    assert "Gap of majority by graph" in again.output
    assert results.read_text() == stored


def test_a_misspelled_graph_is_an_error_before_any_cell_runs(tmp_path):
    results = tmp_path / "suite.jsonl"
    error = run("--dataset", "digits,croa", "--results", str(results)).exception
    assert isinstance(error, InputError)
    assert "croa" in str(error)
    assert not results.exists()
