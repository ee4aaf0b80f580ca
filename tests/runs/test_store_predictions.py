"""Stores that the model of a run predicts, in blocks of columns and rows."""

from __future__ import annotations

import numpy as np
import pytest

from dcgst import Ensemble, fit, open_run, read
from dcgst.features import matrix as arrays
from dcgst.methods import other_graphs
from dcgst.runs.apply import roles_of
from dcgst.tables.importing import import_tables
from tests.runs.helpers import write_store_tables

pytest.importorskip("duckdb", reason="DuckDB is not installed")

QUICK = {"epochs": 5, "stage_epochs": 2, "max_stages": 1, "student_epochs": 2, "device": "cpu"}


@pytest.fixture
def tables(tmp_path):
    return write_store_tables(tmp_path)


@pytest.fixture
def large(sample_sizes):
    """The graph of the fit counts as large."""
    sample_sizes(large=100, pool=150)


@pytest.mark.parametrize("memory", [20_000, 2**40])
def test_a_store_is_predicted_in_blocks(tables, tmp_path, large, monkeypatch, memory, sample_sizes):
    """The same as at once, whether the matrices are in files or in memory."""
    run = fit(read(tables / "g.store"), tmp_path / "run", Ensemble(replicas=2))
    lines = (tables / "nodes.csv").read_text().splitlines()
    (tmp_path / "nodes.csv").write_text("\n".join(lines[:281]))
    roles, encoder = roles_of(run)
    store = tmp_path / "other.store"
    source = tmp_path / "nodes.csv", tables / "edges.csv", store
    import_tables(*source, roles, encoder=encoder, drop_unknown=True)
    assert read(store).encoder.to_json() == encoder.to_json()
    expected = run.predict_other(store).predictions.result.proba
    without_labels = run.method.predict_proba(read(store).graph)
    assert np.abs(expected - without_labels).max() > 0.001
    sample_sizes(large=100)
    monkeypatch.setattr(arrays, "ROWS", 64)
    monkeypatch.setattr("dcgst.features.matrix.available_memory", lambda: memory)
    assert other_graphs.predicts_in_blocks(run.method, run.result, read(store).graph)
    found = open_run(run.folder).predict_other(store).predictions.result.proba
    assert isinstance(found, np.memmap) == (memory < 10**6)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    found = run.method.predict_proba(read(store).graph)
    np.testing.assert_allclose(found, without_labels, atol=1e-4)
