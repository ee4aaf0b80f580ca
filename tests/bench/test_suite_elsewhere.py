"""The script that measures the suite on another machine: graphs and labels are stored unchanged."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from dcgst.bench.cells import Records
from dcgst.bench.grid import missing_cells
from dcgst.bench.protocol import Labels, run_cell
from dcgst.bench.suite import suite_cells
from dcgst.datasets import load
from tests.bench.conftest import make_record

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "suite_elsewhere.py"
BLOCK = """
import sys
from importlib.abc import MetaPathFinder

class Block(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyarrow", "typer", "rich", "jinja2"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Block())
"""


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("suite_elsewhere", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["suite_elsewhere"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("dense", [True, False])
def test_a_stored_graph_and_its_labels_are_the_same(script, dense, tmp_path):
    graph = load("digits")
    mask = np.arange(graph.num_nodes) < 5
    if not dense:
        graph = dataclasses.replace(graph, features=sp.csr_array(graph.features))
    graph = dataclasses.replace(graph, masks={"train": mask}, notes=("a", "b"))
    labels = Labels("uniform", per_class=3, runs=2, first_run=4, validation=9)
    splits = {
        each: each.sample(graph)
        for each in (labels, dataclasses.replace(labels, train_on_validation=True))
    }
    script.write(tmp_path / "digits.npz", graph, splits)
    read, again = script.read(tmp_path / "digits.npz")
    assert (read.adjacency != graph.adjacency).nnz == 0
    assert read.adjacency.dtype == read.features.dtype == np.float32
    assert sp.issparse(read.features) is not dense
    assert not (read.features != graph.features).sum()
    assert (read.labels == graph.labels).all()
    assert (read.ids == graph.ids).all()
    assert (read.masks["train"] == mask).all()
    for name in ("class_names", "name", "official", "notes"):
        assert getattr(read, name) == getattr(graph, name)
    assert list(again) == list(splits)
    for own, other in zip(splits.values(), again.values(), strict=True):
        assert own.runs == other.runs == (4, 5)
        for part in ("train", "val", "pool"):
            assert (getattr(own, part) == getattr(other, part)).all()


@pytest.mark.parametrize("value", [{1, 2}, (("a", 1),), 3.5])
def test_unknown_fields_are_errors(script, value):
    with pytest.raises(TypeError, match="the field notes of a graph cannot be stored"):
        script._store("notes", value, {}, {})


def test_the_suite_runs_without_packages_for_input_and_output(script, tmp_path):
    script.pack(tmp_path, "suite", ["digits"], runs=1, first_run=0)
    (tmp_path / "sitecustomize.py").write_text(BLOCK)
    paths = os.pathsep.join([str(tmp_path), str(SCRIPT.parents[1] / "src")])
    environment = {**os.environ, "PYTHONPATH": paths, "DCGST_DATA": "/nowhere"}
    results = tmp_path / "suite.jsonl"
    arguments = [sys.executable, str(SCRIPT), "run", str(tmp_path), "--device", "cpu",
                 "--processes", "1", "--results", str(results), "--methods", "lp"]  # fmt: skip

    def run(*more: str):
        return subprocess.run(
            [*arguments, *more], capture_output=True, text=True, check=False, env=environment
        )

    missing = run("--runs", "2")
    assert (missing.returncode, "does not have the labels of these runs" in missing.stderr) == (
        1, True)  # fmt: skip
    cells = suite_cells(["digits"], ["lp"], runs=1)
    chosen = [cell for cell in cells if cell.method in ("lp", "majority")]
    records = Records(results)
    for cell in cells:
        if cell not in chosen:
            records.add(make_record(cell, [50.0], validation=cell.validation,
                                    train_on_validation=cell.train_on_validation,
                                    balanced_accuracy=50.0))  # fmt: skip
    done = run("--runs", "1")
    assert done.returncode == 0, done.stderr
    assert f"{len(chosen)} of {len(cells)} cells to run" in done.stdout
    records = Records(results)
    assert missing_cells(cells, records) == []
    direct = run_cell(load("digits"), chosen[-1].make_method("cpu"), chosen[-1].labels)
    assert records.find(chosen[-1])["accuracy"] == direct.accuracy
