"""``dcgst reproduce`` and ``dcgst tune``."""

from __future__ import annotations

import json

import pytest

from tests.cli.helpers import dcgst


@pytest.fixture
def reproduce(tmp_path):
    """Return a function that calls ``dcgst reproduce`` with its files in ``tmp_path``."""

    def call(*arguments):
        return dcgst("reproduce", *arguments, "--device", "cpu",
                     "--results", tmp_path / "records.jsonl", "--figures", tmp_path)  # fmt: skip

    return call


def test_a_dry_run_lists_the_cells_with_their_time(reproduce):
    done = reproduce("table2", "--runs", 2, "--dry-run")
    assert done.code == 0, done.err
    assert "m3s on citeseer, released 0.5%: about" in done.out
    assert "36 of 36 cells to run, about" in done.out


def test_a_dry_run_prints_json(reproduce):
    done = reproduce("--only", "table2", "--runs", 2, "--dry-run", "--json")
    cells = [json.loads(line) for line in done.out.splitlines()]
    assert [cell["done"] for cell in cells] == [False] * 36
    assert all(cell["seconds"] > 0 for cell in cells)


def test_a_table_without_runs_is_shown_at_once(reproduce):
    done = reproduce("table4")
    assert done.code == 0, done.err
    assert "19,717" in done.out


def test_unknown_experiments_are_named(reproduce):
    done = reproduce("table9")
    assert (done.code, "unknown experiment 'table9'" in done.words) == (2, True), done.err
    empty = reproduce("table4", "--only", "fig1")
    assert (empty.code, "no experiment selected; choose from: all" in empty.words) == (2, True)


def test_files_that_cannot_be_written_are_reported_before_any_run(tmp_path):
    (tmp_path / "file").write_text("")
    done = dcgst("reproduce", "fig1", "--runs", 1, "--results", tmp_path / "file" / "r.jsonl")
    assert done.code == 2
    assert "cannot be written" in done.err


def test_an_interruption_says_how_to_continue(reproduce, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dcgst.cli.bench.run_grid", interrupt)
    done = reproduce("table2", "--runs", 1)
    assert done.code == 130
    assert "Interrupted. 0 of 36 cells are in" in done.words
    assert "run the same command to continue" in done.words


def test_failed_cells_exit_with_1(reproduce, monkeypatch):
    from dcgst.bench.grid import CellResult

    def fail(cells, *_, **__):
        return [CellResult(cells[0], None, "boom")]

    monkeypatch.setattr("dcgst.cli.bench.run_grid", fail)
    done = reproduce("table2", "--runs", 1, "--json")
    assert done.code == 1
    assert "1 of 36 cells failed; run again to retry:" in done.words
    assert "boom" in done.err


def test_tune_prints_the_best_settings_as_a_command(tmp_path):
    done = dcgst("tune", "--method", "lp", "--dataset", "synthetic/200", "--runs", 2,
                 "--trials", 2, "--studies", tmp_path)  # fmt: skip
    assert done.code == 0, done.err
    assert "2 trials of lp on synthetic/200, runs 10 to 11." in done.out
    assert "dcgst bench --dataset synthetic/200 --method lp" in done.out
    assert "--set alpha=" in done.out
    assert "Figure:" not in done.out
    name = "lp-default-ppr-s-5-per-class-runs-10-11.json"
    assert (tmp_path / "synthetic" / "200" / name).exists()


def test_tune_draws_what_mattered(tmp_path):
    done = dcgst("tune", "--method", "lp", "--dataset", "synthetic", "--runs", 4, "--per-class", 2,
                 "--trials", 6, "--studies", tmp_path, "--plot")  # fmt: skip
    assert done.code == 0, done.err
    drawn = tmp_path / "synthetic" / "lp-default-ppr-s-2-per-class-runs-10-13.png"
    assert drawn.stat().st_size > 10_000
    assert f"Figure: {drawn}" in done.words
    assert "Share of the variance that a setting explains:" in done.words


def test_tune_prints_json(tmp_path):
    done = dcgst("tune", "--method", "lp", "--dataset", "synthetic/200", "--runs", 1,
                 "--trials", 1, "--studies", tmp_path, "--json")  # fmt: skip
    found = json.loads(done.out)
    assert len(found["trials"]) == 1
    assert found["best"]["settings"]


def test_tune_on_several_rates(tmp_path):
    done = dcgst("tune", "--method", "lp", "--dataset", "synthetic/200", "--runs", 1, "--rate",
                 "0.05,0.1", "--trials", 1, "--studies", tmp_path, "--json")  # fmt: skip
    assert [labels["rate"] for labels in json.loads(done.out)["labels"]] == [0.05, 0.1]
    done = dcgst("tune", "--method", "lp", "--rate", "0.1,x", "--studies", tmp_path)
    assert (done.code, "--rate must be numbers like 0.01,0.02; got 'x'" in done.words) == (2, True)


def test_tune_refuses_reported_runs(tmp_path):
    done = dcgst("tune", "--method", "lp", "--first-run", 9, "--studies", tmp_path)
    assert done.code == 2
    assert list(tmp_path.iterdir()) == []
