"""Runs whose graph is in a store: the folder refers to it and holds no copy of the graph."""

from __future__ import annotations

import json
import pickle
import shutil

import numpy as np
import pytest

from dcgst import (
    EM,
    MLP,
    Ensemble,
    InputError,
    diagnose,
    draw_audit,
    explain,
    fit,
    open_run,
    read,
    suggest,
)
from dcgst.features import matrix as arrays
from dcgst.insight import write_report
from dcgst.methods import running as runner
from dcgst.methods import sampling
from dcgst.methods import sampling as large_predictions
from dcgst.splits import Split
from dcgst.tables.importing import import_tables
from dcgst.tables.store import _digest
from dcgst.train.executors import in_parallel, open_executor
from tests.runs.helpers import write_store_tables

parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

QUICK = {"epochs": 5, "stage_epochs": 2, "max_stages": 1, "student_epochs": 2, "device": "cpu"}

MEMBERS = "lp,em,gp,mlp,cs"


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return write_store_tables(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def run(tables):
    return fit(read(tables / "g.store"), tables / "run", EM())


@pytest.fixture(scope="module")
def of_tables(tables):
    return fit(read(tables / "nodes.csv", tables / "edges.csv"), tables / "of_tables", EM())


def by_id(run) -> dict[str, np.ndarray]:
    return dict(zip(run.graph.ids.tolist(), run.result.proba, strict=True))


def test_the_same_predictions_as_of_tables(run, of_tables):
    found, expected = by_id(run), by_id(of_tables)
    assert found.keys() == expected.keys()
    for node_id, proba in expected.items():
        np.testing.assert_allclose(found[node_id], proba, atol=1e-4)


def test_the_folder_has_no_copy_of_the_graph(run):
    names = {path.name for path in run.folder.iterdir()}
    assert {"predictions.parquet", "probabilities.npy", "run.json"} <= names
    assert "predictions.csv" not in names
    with np.load(run.folder / "graph.npz") as arrays:
        assert not {"proba", "ids", "features_data", "adjacency_data"} & set(arrays.files)
    stored = json.loads((run.folder / "run.json").read_text())["store"]
    assert stored["relative_path"] == "../g.store"


def test_predictions_in_parquet(run):
    rows = parquet.read_table(run.folder / "predictions.parquet").to_pylist()
    assert [row["id"] for row in rows] == run.graph.ids.tolist()
    for row, expected in zip(rows, run.predictions, strict=True):
        assert row["class"] == expected["class"]
        assert row["source"] == expected["source"]
        assert (row["stage"] is None) == (expected["stage"] == "")
        assert row["p(red)"] == pytest.approx(expected["p(red)"], abs=1e-4)


def test_an_opened_run_is_the_same(run):
    found = open_run(run.folder)
    np.testing.assert_array_equal(found.result.proba, run.result.proba)
    assert isinstance(found.result.proba, np.memmap)
    np.testing.assert_array_equal(found.graph.labels, run.graph.labels)
    assert found.predictions == run.predictions
    assert found.node("n7") == run.graph.ids.tolist().index("n7")


def test_every_question_about_a_run(run, tables):
    found = open_run(run.folder)
    assert found.evaluate(tables / "truth.csv").quality.accuracy.value > 0.9
    assert len(suggest(found.graph, found.result.proba, found.split.given[0], 5).nodes) == 5
    assert explain(found, "n50").neighbors
    assert diagnose(found.graph, found.chosen_labels).labels == 24
    assert len(draw_audit(found, 10)) == 10
    assert "n50" in write_report(found, tables / "report.html").read_text()


def test_labels_can_be_added(run, tables):
    audit, lines = tables / "audit.csv", (tables / "truth.csv").read_text().splitlines()
    audit.write_text("\n".join([lines[0], *lines[30:60]]))
    second = fit(open_run(run.folder), tables / "second", audit=[audit])
    assert second.audited
    assert second.info["store"]["digest"] == run.info["store"]["digest"]
    assert open_run(second.folder).estimate.accuracy.labels == 30


def test_run_and_store_can_be_moved_together(run, tables, tmp_path):
    for name in ("run", "g.store"):
        shutil.copytree(tables / name, tmp_path / name)
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    shutil.move(tables / "g.store", tables / "elsewhere")
    try:
        assert info["store"]["path"] == str(tables / "g.store")
        assert open_run(tmp_path / "run").graph.num_nodes == 300
        with pytest.raises(InputError, match=r"is in the store .*g.store, which does not exist"):
            open_run(run.folder)
    finally:
        shutil.move(tables / "elsewhere", tables / "g.store")


def test_a_moved_run_can_be_refitted(run, tables, tmp_path):
    for name in ("run", "g.store"):
        shutil.copytree(tables / name, tmp_path / "new" / name)
    shutil.move(tables / "g.store", tables / "elsewhere")
    try:
        fit(open_run(tmp_path / "new" / "run"), tmp_path / "again")
        found = open_run(tmp_path / "again")
        assert found.store.path == tmp_path / "new" / "g.store"
    finally:
        shutil.move(tables / "elsewhere", tables / "g.store")


def of_other_content(description: str) -> str:
    """The description of a store with another digest."""
    content = {**json.loads(description), "digest": "other"}
    del content["seal"]
    return json.dumps({**content, "seal": _digest(content)})


def test_of_two_stores_the_one_with_the_same_content_is_opened(run, tables, tmp_path):
    for name in ("run", "g.store"):
        shutil.copytree(tables / name, tmp_path / name)
    path = tables / "g.store" / "store.json"
    content = path.read_text()
    path.write_text(of_other_content(content))
    try:
        assert open_run(tmp_path / "run").store.path == tmp_path / "g.store"
    finally:
        path.write_text(content)


def test_another_store_in_its_place_is_an_error(run, tables, tmp_path):
    for name in ("run", "g.store"):
        shutil.copytree(tables / name, tmp_path / name)
    path = tmp_path / "g.store" / "store.json"
    path.write_text(of_other_content(path.read_text()))
    shutil.move(tables / "g.store", tables / "elsewhere")
    try:
        with pytest.raises(InputError, match=r"is not the store that .* was fitted on"):
            open_run(tmp_path / "run")
    finally:
        shutil.move(tables / "elsewhere", tables / "g.store")


def test_damaged_probabilities_are_an_error(run, tables, tmp_path):
    shutil.copytree(run.folder, tmp_path / "run")
    path = tmp_path / "run" / "probabilities.npy"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"probabilities.npy was changed or damaged"):
        open_run(tmp_path / "run")


def test_without_pyarrow_the_fit_does_not_begin(tables, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="Parquet files require pyarrow"):
        fit(read(tables / "g.store"), tmp_path / "run", EM())
    assert not (tmp_path / "run").exists()


def test_predict_takes_tables_or_the_same_store(tables, tmp_path):
    run = fit(read(tables / "g.store"), tmp_path / "run", MLP(epochs=2))
    assert len(run.predict(tables / "nodes.csv", tables / "edges.csv")) == 300
    assert len(run.predict(tables / "g.store")) == 300
    lines = (tables / "nodes.csv").read_text().splitlines()[:200]
    (tmp_path / "nodes.csv").write_text("\n".join(lines))
    store = tmp_path / "other.store"
    import_tables(tmp_path / "nodes.csv", tables / "edges.csv", store, drop_unknown=True)
    with pytest.raises(InputError, match="dcgst import --like RUN"):
        run.predict(store)


@pytest.fixture
def large(monkeypatch, sample_sizes):
    """The graph counts as large, and there is no room for its matrices."""
    sample_sizes(large=100, pool=150)
    monkeypatch.setattr("dcgst.features.matrix.available_memory", lambda: 20_000)


def test_large_fits_in_files(tables, tmp_path, large):
    found = fit(read(tables / "g.store"), tmp_path / "run", Ensemble(members=MEMBERS, replicas=2))
    assert not (found.folder / "checkpoint").exists()
    again = open_run(found.folder)
    np.testing.assert_allclose(again.result.proba.sum(axis=1), 1, atol=1e-4)
    assert again.evaluate(tables / "truth.csv").quality.accuracy.value > 0.8


def test_an_interrupted_prediction_continues(tables, tmp_path, large, monkeypatch):
    """Ranges of nodes that were predicted before are not predicted again."""
    monkeypatch.setattr(arrays, "ROWS", 100)
    data, model = read(tables / "g.store"), Ensemble(members=MEMBERS)
    expected = fit(data, tmp_path / "expected", model)
    calls, predict = [], large_predictions._predict_range

    def interrupted(graph, rows, nodes):
        calls.append(nodes.start)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return predict(graph, rows, nodes)

    monkeypatch.setattr(large_predictions, "_predict_range", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit(data, tmp_path / "run", model)
    found = fit(data, tmp_path / "run", model, resume=True)
    assert calls == [0, 100, 200, 200]
    np.testing.assert_array_equal(found.result.proba, expected.result.proba)


def test_replicas_in_other_processes(tables, tmp_path, large, monkeypatch):
    """Matrices are computed once, in files that all processes read."""
    graph = read(tables / "g.store").graph
    split, model = Split.known_labels(graph), Ensemble(members=MEMBERS, replicas=2)
    expected = runner.fit_runs(model, graph, split, checkpoint=tmp_path / "a")[0]
    monkeypatch.setattr(runner, "_fit_chunk", patched_fit)
    with open_executor(2) as executor, in_parallel(executor):
        found = runner.fit_runs(model, graph, split, checkpoint=tmp_path / "b")[0]
    np.testing.assert_allclose(found.proba, expected.proba, atol=1e-3)
    assert (tmp_path / "b" / "sample-cpu" / "matrices" / "columns.txt").exists()


def patched_fit(*arguments):
    """In a process of its own: the settings of the fixture ``large``."""
    sampling.SIZES = sampling.SampleSizes(large=100, pool=150)
    return runner.fit_chunks(*arguments[:3], [arguments[3]], (), arguments[4], prepared=True)


def test_all_given_labels_are_given_although_some_are_sampled(
    tables, tmp_path, large, sample_sizes
):
    sample_sizes(given=12)
    found = fit(read(tables / "g.store"), tmp_path / "run", Ensemble(members=MEMBERS))
    again = open_run(found.folder)
    for run in (found, again):
        given = run.result.given >= 0
        assert given.sum() == 24
        np.testing.assert_array_equal(run.result.given[given], run.graph.labels[given])
        assert (run.result.labeled_stage[given] == 0).all()
    assert json.loads((found.folder / "metrics.json").read_text())["given"] == 24


def test_validation_labels_and_rare_classes_stay_in_a_sample(tables, sample_sizes):
    sample_sizes(given=30, pool=10)
    graph = read(tables / "g.store").graph
    codes = np.zeros(300, dtype=np.int64)
    codes[5:8], codes[8] = 1, 2
    train, val = np.arange(300) < 200, (np.arange(300) >= 200) & (np.arange(300) < 225)
    nodes = sampling.choose_nodes(graph.with_labels(codes), Split.of(train, val), seed=0)
    chosen = np.isin(np.arange(300), nodes)
    assert chosen[5:9].all(), "all nodes of the rare classes"
    assert (chosen & train).sum() == 30
    assert chosen[val].all()
    assert chosen[225:].sum() == 10


def test_a_fitted_method_can_be_copied_after_its_files_are_gone(tables, tmp_path, large):
    model = Ensemble(members=MEMBERS)
    fit(read(tables / "g.store"), tmp_path / "run", model)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.proba_, model.proba_)
