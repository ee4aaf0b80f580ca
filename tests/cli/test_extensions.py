"""Methods, samplers and graphs of users on the command line."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from dcgst import synthetic
from dcgst.methods import METHODS
from tests.cli.helpers import dcgst, read_table

MODULE = """
from dataclasses import dataclass
import numpy as np
from dcgst import register_method
from dcgst.methods import GCN

@dataclass(eq=False, kw_only=True)
class Mine(GCN):
    '''My own method.'''
    name = "mine"

class Other:
    pass

def first_nodes(request):
    nodes = [request.members(label)[: request.per_class] for label in range(3)]
    return [np.concatenate(nodes) for _ in request.runs]
"""
REGISTERED = "from user_code import *\nregister_method(Mine)\n"
QUICK = ["--set", "epochs=2", "--set", "hidden=4"]


@pytest.fixture
def user_folder(tmp_path, monkeypatch):
    """The current folder, with two modules and a graph; modules are forgotten afterwards."""
    (tmp_path / "user_code.py").write_text(MODULE)
    (tmp_path / "user_registers.py").write_text(REGISTERED)
    graph = synthetic(90, 3, features=4, seed=1)
    np.savez(
        tmp_path / "graph.npz",
        edge_index=np.stack(graph.adjacency.tocoo().coords),
        x=graph.features,
        y=graph.labels,
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(METHODS, "_items", dict(METHODS._items))
    yield tmp_path
    for name in ("user_code", "user_registers"):
        sys.modules.pop(name, None)


def test_bench_accepts_a_class_a_graph_file_and_a_function(user_folder):
    done = dcgst("bench", "--method", "user_code:Mine,lp", "--dataset", "graph.npz",
                 "--sampler", "user_code:first_nodes", "--per-class", 4, "--runs", 1, *QUICK,
                 "--json")  # fmt: skip
    assert done.code == 0, done.err
    mine, lp = (json.loads(line) for line in done.out.splitlines())
    assert (mine["method"], mine["dataset"], lp["method"]) == (
        "user_code:Mine",
        "graph",
        "lp",
    )
    assert mine["sampler"] == "user_code:first_nodes"
    assert mine["settings"]["epochs"] == 2


def test_bench_prints_a_table_of_a_class(user_folder):
    done = dcgst("bench", "--method", "user_code:Mine", "--dataset", "graph.npz", "--per-class", 4,
                 "--runs", 1, *QUICK)  # fmt: skip
    assert done.code == 0, done.err
    assert "user_code:Mine " in done.out
    assert "4/class" in done.out


def test_a_registered_method_is_known_by_its_name_after_the_import(user_folder):
    bench = ["bench", "--method", "mine", "--dataset", "graph.npz", "--per-class", 4, "--runs", 1,
             *QUICK, "--json"]  # fmt: skip
    assert "unknown method 'mine'" in dcgst(*bench).err
    done = dcgst("--import", "user_registers", *bench)
    assert done.code == 0, done.err
    assert json.loads(done.out)["method"] == "mine"
    assert "My own method." in dcgst("methods").words


def test_fit_accepts_a_class_and_predict_needs_its_module(user_folder):
    labels = synthetic(90, 3, features=4, seed=1).labels.copy()
    labels[np.arange(90) % 10 > 3] = -1
    with np.load("graph.npz") as archive:
        arrays = dict(archive)
    np.savez("few.npz", **{**arrays, "y": labels})
    done = dcgst("fit", "few.npz", "--method", "user_code:Mine", *QUICK, "--replicas", 1,
                 "--no-report")  # fmt: skip
    assert done.code == 0, done.err
    del sys.modules["user_code"]
    assert len(read_table(dcgst("predict", "run").out)) == 90
    refused = dcgst("predict", "run", "graph.npz")
    assert refused.code == 2
    assert "import user_code first (on the command line: dcgst --import user_code …)" in (
        refused.words
    )
    assert len(read_table(dcgst("--import", "user_code", "predict", "run", "graph.npz").out)) == 90


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "user_code:Missing"], "method 'user_code:Missing' cannot be imported"),
        (["--method", "user_cod:Mine"], "No module named 'user_cod'"),
        (["--method", "user_code:Other"], "is not a subclass of dcgst.methods.base.Method"),
        (["--dataset", "missing.npz"], "unknown dataset 'missing.npz'"),
        (["--method", "lp", "--sampler", "user_code:nothing"], "cannot be imported"),
    ],
)
def test_names_that_cannot_be_used_exit_with_2(user_folder, arguments, message):
    done = dcgst("bench", *arguments)
    assert done.code == 2
    assert message in done.words
