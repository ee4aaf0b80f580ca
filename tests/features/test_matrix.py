"""Matrices in memory and in files: rows, columns, what is complete is not computed again."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from dcgst.datasets import synthetic
from dcgst.features import matrix as arrays
from dcgst.features import matrix as module
from dcgst.features.matrix import Means, Neighbors, Smoothing, Workspace, open_workspace
from dcgst.train.executors import in_parallel, open_executor
from dcgst.train.progress import reporting_to

NEIGHBORS = Neighbors(synthetic(23, 2).adjacency, weighted=False)


@dataclass
class Function:
    """A function of a block as an operation."""

    compute: Callable
    steps: int = 1

    def __call__(self, neighbors, block, on_step):
        yield from self.compute(block)
        on_step()


@pytest.fixture
def values(rng) -> torch.Tensor:
    return torch.tensor(rng.normal(size=(23, 7)), dtype=torch.float32)


@pytest.fixture(params=["memory", "files"])
def workspace(request, tmp_path, monkeypatch) -> Workspace:
    monkeypatch.setattr(arrays, "ROWS", 5)
    return Workspace(None if request.param == "memory" else tmp_path / "new", columns=3)


def test_rows_and_columns(workspace, values):
    matrix = workspace.from_rows("m", (23, 7), lambda nodes: values[nodes])
    assert matrix.widths == [3, 3, 1]
    assert torch.equal(torch.cat(list(matrix.columns()), 1), values)
    assert torch.equal(matrix.rows(slice(4, 11)), values[4:11])
    assert torch.equal(matrix.rows(slice(20, 99)), values[20:])
    some = torch.tensor([22, 0, 7, 7])
    assert torch.equal(matrix.rows(some), values[some])


def test_new_matrices_from_columns(workspace, values):
    source = workspace.from_rows("m", (23, 7), lambda nodes: values[nodes])

    def compute(block):
        block *= 2
        yield block
        block += 1
        yield block

    names = ["twice", "more"]
    twice, more = workspace.from_columns(names, source, Function(compute), NEIGHBORS, "")
    assert torch.equal(twice.rows(slice(None)), 2 * values)
    assert torch.equal(more.rows(slice(None)), 2 * values + 1)
    assert torch.equal(source.rows(slice(None)), values), "the source does not change"


def test_complete_files_are_not_computed_again(tmp_path, values):
    def rows(nodes):
        calls.append("rows")
        return values[nodes]

    def columns(block):
        calls.append("columns")
        if len(calls) == 4:
            raise KeyboardInterrupt
        yield block + 1

    calls: list[str] = []
    first = Workspace(tmp_path, columns=3)
    source = first.from_rows("m", (23, 7), rows)
    with pytest.raises(KeyboardInterrupt):
        first.from_columns(["next"], source, Function(columns), NEIGHBORS, "")
    assert first.find(["next"], (23, 7)) is None
    again = Workspace(tmp_path, columns=3)
    source = again.from_rows("m", (23, 7), rows)
    (found,) = again.from_columns(["next"], source, Function(columns), NEIGHBORS, "")
    assert calls == ["rows", "columns", "columns", "columns", "columns"], "one block is lost"
    assert torch.equal(found.rows(slice(None)), values + 1)
    assert again.find(["next"], (23, 7)) is not None
    source.delete()
    assert again.find(["m"], (23, 7)) is None


def test_files_of_another_size_are_not_complete(tmp_path, values):
    workspace = Workspace(tmp_path, columns=3)
    matrix = workspace.from_rows("m", (23, 7), lambda nodes: values[nodes])
    matrix.blocks[1].write_bytes(b"")
    assert workspace.find(["m"], (23, 7)) is None


def test_other_widths_are_other_files(tmp_path, values):
    for columns in (3, 4):
        workspace = Workspace(tmp_path, columns)
        matrix = workspace.from_rows("m", (23, 7), lambda nodes: values[nodes])
        assert torch.equal(matrix.rows(slice(None)), values)


def test_an_interrupted_matrix_is_not_complete(tmp_path, values, monkeypatch):
    def fails(nodes):
        if nodes.start:
            raise OSError("disk full")
        return values[nodes]

    workspace = Workspace(tmp_path, columns=3)
    monkeypatch.setattr(arrays, "ROWS", 5)
    with pytest.raises(OSError, match="disk full"):
        workspace.from_rows("m", (23, 7), fails)
    assert workspace.find(["m"], (23, 7)) is None
    assert np.array_equal(
        workspace.from_rows("m", (23, 7), lambda nodes: values[nodes]).rows(slice(None)), values
    )


@pytest.mark.parametrize("operation", [Smoothing(0.1, (2, 5)), Means(2)])
def test_blocks_in_other_processes(tmp_path, values, operation):
    def compute(folder):
        workspace = Workspace(folder, columns=3)
        source = workspace.from_rows("m", (23, 7), lambda nodes: values[nodes])
        found = workspace.from_columns(["a", "b"], source, operation, NEIGHBORS, "title")
        return [matrix.rows(slice(None)) for matrix in found]

    told = []
    with reporting_to(lambda *event: told.append(event)):
        here = compute(tmp_path / "here")
        assert told[-1] == ("title", 1.0)
        with open_executor(2) as executor, in_parallel(executor):
            there = compute(tmp_path / "there")
    assert told[-1] == ("title", 1.0)
    assert all(torch.equal(*pair) for pair in zip(here, there, strict=True))


def test_operations_can_be_sent(values):
    again = pickle.loads(pickle.dumps((Smoothing(0.1, (2,)), NEIGHBORS)))
    (found,) = again[0](again[1], values.clone(), lambda: None)
    (expected,) = Smoothing(0.1, (2,))(NEIGHBORS, values.clone(), lambda: None)
    assert torch.equal(found.clone(), expected)


def test_a_workspace_keeps_its_number_of_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "available_memory", lambda: 10_000)
    with open_workspace(100, 60, tmp_path) as first:
        assert 1 <= first.columns < 60
    monkeypatch.setattr(module, "available_memory", lambda: 1 << 30)
    with open_workspace(100, 60, tmp_path) as again:
        assert (again.folder, again.columns) == (tmp_path, first.columns)
    with open_workspace(100, 60, tmp_path / "other") as other:
        assert other.folder == tmp_path / "other", "a fit that is resumed needs the files"
    with open_workspace(100, 60) as in_memory:
        assert in_memory.folder is None
    monkeypatch.setattr(module, "available_memory", lambda: 2_000)
    with open_workspace(100, 60, tmp_path, prepared=True) as worker:
        assert worker.columns == first.columns
    with open_workspace(100, 60, tmp_path) as smaller:
        assert smaller.columns < first.columns
