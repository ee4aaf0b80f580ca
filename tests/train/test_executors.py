"""Executors: processes of this machine, and a Ray cluster of several nodes with a killed worker."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import wait
from pathlib import Path

import numpy as np
import pytest
import torch

from dcgst import ST, Ensemble, fit, load, read
from dcgst.bench.cells import Cell, Records
from dcgst.bench.grid import run_grid
from dcgst.bench.protocol import Labels
from dcgst.bench.tuning import Search, tune
from dcgst.errors import InputError
from dcgst.features import matrix as arrays
from dcgst.methods import sampling as large_predictions
from dcgst.tables.importing import import_tables
from dcgst.train.executors import RayExecutor, open_executor

WAIT = 300
"""Seconds; the first task of a worker imports PyTorch, on a busy machine slowly."""

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'dcgst[ray]'")


@pytest.fixture(scope="module")
def cluster():
    """Two nodes with one CPU each."""
    from ray.cluster_utils import Cluster

    started = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    started.add_node(num_cpus=1)
    started.wait_for_nodes()
    yield started.address
    ray.shutdown()
    started.shutdown()


def process_and_threads() -> tuple[int, int]:
    return os.getpid(), torch.get_num_threads()


def die_once(marker: str) -> str:
    """End the process without any message in the first call."""
    if not Path(marker).exists():
        Path(marker).write_text("")
        os._exit(1)
    return "done"


def fail() -> None:
    raise InputError("wrong input")


def test_processes():
    with open_executor(2) as executor:
        found = {executor.submit(process_and_threads).result() for _ in range(4)}
    assert all(process != os.getpid() and threads == 1 for process, threads in found)


def test_ray_runs_tasks_repeats_lost_ones_and_reports_errors(cluster, tmp_path):
    with open_executor(2, cluster) as executor:
        process, threads = executor.submit(process_and_threads).result(WAIT)
        assert process != os.getpid()
        assert threads == 1
        futures = [executor.submit(die_once, str(tmp_path / f"{number}")) for number in range(2)]
        done, _ = wait(futures, timeout=WAIT)
        assert [future.result() for future in done] == ["done", "done"]
        error = executor.submit(fail).exception(WAIT)
        assert isinstance(error, InputError)
        assert "wrong input" in str(error)


def cells() -> list[Cell]:
    return [
        Cell("synthetic", "em", None, "uniform", per_class=5, runs=1, first_run=run)
        for run in range(3)
    ]


def test_a_grid_on_a_cluster_has_the_same_records(cluster, tmp_path):
    accuracies = []
    for name, where in (("local", None), ("ray", cluster)):
        records = Records(tmp_path / f"{name}.jsonl")
        results = run_grid(cells(), records, device="cpu", workers=1, ray=where)
        assert [result.error for result in results] == ["", "", ""]
        accuracies.append(sorted(record["accuracy"] for record in records.by_key.values()))
        assert not run_grid(cells(), Records(tmp_path / f"{name}.jsonl"), ray="nowhere:1")
    assert accuracies[0] == accuracies[1]


def test_a_search_on_a_cluster_has_the_same_scores(cluster, tmp_path):
    labels = (Labels("uniform", None, 5, 1, 10),)
    search = Search("synthetic", "gcn", labels, "default", "cpu")
    found = [
        tune(search, tmp_path / f"{where}.jsonl", 2, ray=where)["trials"]
        for where in (None, cluster)
    ]
    assert found[0] == found[1]


def test_a_fit_on_a_cluster_has_the_same_result(cluster, tmp_path, monkeypatch):
    """The folder is relative, and that of the workers is another one."""
    graph, before = load("synthetic"), Path.cwd()
    monkeypatch.chdir(tmp_path)
    runs = [
        fit(graph, name, ST(replicas=3, stages=2, epochs=5, hidden=8), ray=address)
        for name, address in (("here", None), ("on_cluster", cluster))
    ]
    np.testing.assert_allclose(runs[0].result.proba, runs[1].result.proba, atol=1e-5)
    assert len(runs[1].result.models) == 3
    assert not (before / "on_cluster").exists()
    assert not (tmp_path / "on_cluster" / "checkpoint").exists()


@pytest.fixture
def large_graph(tmp_path, monkeypatch, sample_sizes):
    """A graph in a store that counts as large, predicted in three ranges of nodes."""
    sample_sizes(large=100, pool=500)
    monkeypatch.setattr(arrays, "ROWS", 500)
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 1200)
    x = np.eye(3)[truth] + 0.5 * rng.normal(size=(1200, 3))
    labels = np.where(np.arange(1200) < 30, truth.astype(str), "")
    rows = [f"{i},{labels[i]}," + ",".join(map(str, x[i])) for i in range(1200)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,label,a,b,c", *rows]))
    ends = [(i, rng.choice(np.flatnonzero(truth == truth[i]))) for i in range(1200)]
    (tmp_path / "edges.csv").write_text("\n".join(["s,t", *(f"{i},{j}" for i, j in ends)]))
    import_tables(tmp_path / "nodes.csv", tmp_path / "edges.csv", tmp_path / "g.store")
    return read(tmp_path / "g.store")


def test_members_and_predictions_of_a_large_graph_are_tasks(
    cluster, large_graph, tmp_path, monkeypatch
):
    model = Ensemble(device="cpu")
    expected = fit(large_graph, tmp_path / "here", model)
    submitted, submit = [], RayExecutor.submit

    def record(self, function, /, *args):
        submitted.append(function.__name__)
        if submitted.count("_predict_shared") == 2 and function.__name__ == "_predict_shared":
            args = (*args, str(tmp_path / "marker"))
            return submit(self, die_once_then_predict, *args)
        return submit(self, function, *args)

    monkeypatch.setattr(RayExecutor, "submit", record)
    found = fit(large_graph, tmp_path / "there", model, ray=cluster)
    np.testing.assert_allclose(found.result.proba, expected.result.proba, atol=1e-4)
    assert (tmp_path / "marker").exists(), "a worker ended on the way"
    assert submitted.count("_fit_shared") == 4, "EM, Gaussian process, MLP and SIGN"
    assert submitted.count("_predict_shared") == 3
    assert "compute_files" in submitted


def die_once_then_predict(shared, nodes, marker: str):
    die_once(marker)
    return large_predictions._predict_shared(shared, nodes)


def test_without_a_cluster_the_message_says_how_to_start_one():
    code = (
        "from dcgst.train.executors import open_executor\n"
        "from dcgst.errors import InputError\n"
        "try:\n    open_executor(1, 'localhost:1')\n"
        "except InputError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT, check=False
    )
    assert "there is no Ray cluster at 'localhost:1'; start one with `ray start" in done.stdout


def test_without_a_cluster_an_interrupted_fit_is_kept(tmp_path, monkeypatch):
    graph, model = load("synthetic"), ST(replicas=2, stages=2, epochs=5, hidden=8)

    def interrupt(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(graph, tmp_path / "run", model, callbacks=[interrupt])
    files = sorted(path.name for path in (tmp_path / "run").iterdir())
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(InputError, match="no Ray cluster"):
        fit(graph, tmp_path / "run", model, resume=True, ray="localhost:1")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == files
