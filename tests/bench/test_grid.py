"""Experiments, cells, records and the grid."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from dcgst.bench import protocol as provenance
from dcgst.bench.cells import Cell, Records, key_of, unique
from dcgst.bench.experiments import BASELINES, EXPERIMENTS, RATES, cells_of, select_experiments
from dcgst.bench.grid import estimate_seconds, missing_cells, run_grid
from dcgst.datasets import load
from dcgst.errors import InputError, NumericalError
from dcgst.methods import GCN
from tests.bench.conftest import make_record

# --- experiments -------------------------------------------------------------------------------


def test_all_cells_are_valid_and_unique():
    cells = cells_of(select_experiments(["all"]))
    assert len({cell.key for cell in cells}) == len(cells)
    for cell in cells:
        assert cell.make_method().name == cell.method
    table1 = EXPERIMENTS["table1"].cells()
    assert len(table1) == (len(BASELINES) + 2) * (len(RATES["cora"]) + len(RATES["pubmed"]))


def test_scaling_experiment_always_has_one_run():
    assert {cell.runs for cell in cells_of(select_experiments(["fig7"]), 10)} == {1}
    assert load("synthetic/300").num_nodes == 300


def test_unknown_experiment_raises():
    with pytest.raises(InputError, match="unknown experiment 'table9'"):
        select_experiments(["table9"])


# --- cells and keys ----------------------------------------------------------------------------


def test_key_depends_on_settings_and_runs_but_not_on_device():
    cell = Cell("cora", "st", 0.02)
    fields = dataclasses.asdict(make_record(cell, [50.0]))
    assert key_of(fields) == cell.key
    other_device = {**fields, "settings": {**fields["settings"], "device": "cuda", "chunk_size": 3}}
    assert key_of(other_device) == cell.key
    other_setting = {**fields, "settings": {**fields["settings"], "stages": 2}}
    assert key_of(other_setting) != cell.key
    assert cell.with_runs(2).key != cell.key
    default_lr = Cell("cora", "st", 0.02, settings={"lr": 0.01})
    assert len(unique([cell, cell.with_runs(10), default_lr])) == 1


def test_missing_setting_counts_as_its_default():
    cell = Cell("cora", "gcn", 0.02)
    fields = dataclasses.asdict(make_record(cell, [50.0]))
    del fields["settings"]["keep_epoch"]
    assert key_of({**fields, "runs": cell.runs}) == cell.key


def test_every_cell_of_the_paper_has_a_committed_record():
    records = Records(Path(__file__).parents[2] / "results" / "reproduce.jsonl")
    assert not missing_cells(cells_of(select_experiments(["all"])), records)


# --- records -----------------------------------------------------------------------------------


def test_records_are_read_back_and_the_last_one_is_used(tmp_path):
    path = tmp_path / "folder" / "records.jsonl"
    records = Records(path)
    cell = Cell("cora", "gcn", 0.02)
    records.add(make_record(cell, [50.0, 60.0]))
    records.add(make_record(cell, [70.0, 80.0]))
    reopened = Records(path)
    assert list(reopened.by_key) == [cell.key]
    assert reopened.find(cell)["accuracy"] == [70.0, 80.0]
    assert len(path.read_text().splitlines()) == 2


def test_find_all_returns_none_if_a_record_is_missing(records):
    first, second = Cell("cora", "gcn", 0.02), Cell("cora", "gcn", 0.03)
    records.add(make_record(first, [50.0]))
    assert records.find(second) is None
    assert records.find_all([first, second]) is None
    records.add(make_record(second, [60.0]))
    assert [record["mean"] for record in records.find_all([second, first])] == [60.0, 50.0]


def test_incomplete_line_is_ignored_and_later_records_are_kept(tmp_path):
    path = tmp_path / "records.jsonl"
    first, second = Cell("cora", "gcn", 0.02), Cell("cora", "gcn", 0.03)
    Records(path).add(make_record(first, [50.0]))
    content = path.read_bytes()
    path.write_bytes(content + content[:40])
    Records(path).add(make_record(second, [60.0]))
    assert set(Records(path).by_key) == {first.key, second.key}


def test_invalid_file_raises_with_the_line_number(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text("\nnot json\n")
    with pytest.raises(InputError, match=r"records.jsonl, line 2: not JSON"):
        Records(path)
    for line in ("[1, 2]", '{"dataset": "cora"}'):
        path.write_text(line)
        with pytest.raises(InputError, match=r"records.jsonl, line 1: not a record"):
            Records(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not a file of records"):
        Records(path)
    with pytest.raises(InputError, match="not a file of records"):
        Records(tmp_path)


def test_substitute_features_never_replace_official_ones(records, monkeypatch):
    cell = Cell("ogbn-arxiv", "gcn", 0.01)
    records.add(make_record(cell, [40.0] * 10, official=False))
    monkeypatch.setattr("dcgst.bench.cells.official_available", lambda _: False)
    assert missing_cells([cell], records) == []
    monkeypatch.setattr("dcgst.bench.cells.official_available", lambda _: True)
    assert missing_cells([cell], records) == [cell]
    records.add(make_record(cell, [60.0] * 10))
    records.add(make_record(cell, [41.0] * 10, official=False))
    assert Records(records.path).find(cell)["mean"] == 60.0


def test_record_with_history_also_satisfies_a_cell_without(records):
    cell = Cell("cora", "gcn", 0.02)
    with_history = dataclasses.replace(cell, stages=True)
    assert unique([cell, with_history]) == [with_history]
    records.add(make_record(cell, [50.0] * 10))
    assert missing_cells([with_history], records) == [with_history]
    records.add(make_record(with_history, [51.0] * 10, stages=[[]] * 10))
    assert missing_cells([cell, with_history], records) == []


# --- the grid ----------------------------------------------------------------------------------


@pytest.fixture
def quick_cells():
    settings = {"epochs": 3, "hidden": 8}
    return [
        Cell("synthetic", "gcn", 0.02, "uniform", settings=settings, runs=2),
        Cell("synthetic", "st", 0.02, "uniform", settings=settings, runs=2, stages=True),
    ]


def test_grid_runs_missing_cells_and_continues_after_a_failure(records, quick_cells):
    invalid = Cell("synthetic", "gcn", 0.02, "invalid sampler", settings={"epochs": 1})
    reported = []
    cells = [*quick_cells, invalid]
    results = run_grid(cells, records, device="cpu", workers=2, report=reported.append)
    assert len(reported) == len(results) == 3
    (failed,) = (result for result in results if result.record is None)
    assert failed.cell == invalid
    assert "InputError" in failed.error
    assert not missing_cells(quick_cells, records)
    assert missing_cells(cells, Records(records.path)) == [invalid]
    gcn, self_training = records.find_all(quick_cells)
    assert gcn["stages"] is None
    assert [len(run) for run in self_training["stages"]] == [2, 2]
    assert gcn["device"].startswith("CPU")
    assert gcn["peak_mib"] > 50
    assert gcn["versions"].keys() >= {"dcgst", "torch", "python"}
    assert not run_grid(quick_cells, records, device="cpu", report=reported.append)


def test_interrupted_grid_keeps_finished_cells(records, quick_cells):
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_grid(quick_cells, records, device="cpu", workers=1, report=interrupt)
    assert len(missing_cells(quick_cells, Records(records.path))) < len(quick_cells)


def test_time_estimate_uses_measured_times(records):
    cell = Cell("cora", "gcn", 0.02, runs=4)
    assert estimate_seconds(cell, records, gpu=False) == 4
    records.add(make_record(Cell("cora", "gcn", 0.05, runs=10), [50.0] * 10, seconds=100.0))
    assert estimate_seconds(cell, records, gpu=False) == pytest.approx(40)
    assert estimate_seconds(cell, records, gpu=True) == 1


def test_environment_variable_overrides_the_commit(monkeypatch):
    monkeypatch.setenv("DCGST_COMMIT", "abc")
    assert provenance.current_commit.__wrapped__() == "abc"


class FailsOnce(GCN):
    """Fails in its first attempt, as linear algebra on a shared GPU may."""

    name = "fails_once"

    def solve(self, problem):
        marker = Path(os.environ["DCGST_MARKER"])
        if not marker.exists():
            marker.write_text("")
            raise NumericalError("QR decomposition failed")
        return super().solve(problem)


class FailsAlways(GCN):
    name = "fails_always"

    def solve(self, problem):
        raise NumericalError("QR decomposition failed")


@pytest.mark.parametrize(("method", "succeeds"), [("FailsOnce", True), ("FailsAlways", False)])
def test_a_cell_whose_computation_failed_is_run_again_once(tmp_path, monkeypatch, method, succeeds):
    monkeypatch.setenv("DCGST_MARKER", str(tmp_path / "marker"))
    name = f"tests.bench.test_grid:{method}"
    settings = {"epochs": 3, "hidden": 8}
    cell = Cell("synthetic", name, 0.02, "uniform", settings=settings, runs=1)
    (result,) = run_grid([cell], Records(tmp_path / "r.jsonl"), device="cpu", workers=1)
    assert (result.record is not None) == succeeds
    assert result.first_error == "NumericalError: QR decomposition failed"
    assert result.error == ("" if succeeds else "NumericalError: QR decomposition failed")
