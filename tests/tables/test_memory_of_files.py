"""How much memory reading a file may need: exact limits, for every kind of file."""

from __future__ import annotations

import gzip
import os
import zipfile

import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest
import torch

from dcgst import InputError, read
from dcgst.tables import table as files
from dcgst.tables.graph_files import read_npz_arrays
from dcgst.tables.table import read_table


@pytest.fixture
def have_memory(monkeypatch):
    """Set the number of bytes that are available."""

    def set_memory(size: float) -> None:
        monkeypatch.setattr("dcgst.memory.available_memory", lambda: size)
        monkeypatch.setattr(files, "available_memory", lambda: size)

    return set_memory


def test_bytes_need_twice_their_size_by_default(tmp_path, have_memory):
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(1000))
    have_memory(2000)
    assert files.read_bytes(path) == bytes(1000)
    have_memory(1999)
    with pytest.raises(InputError, match=r"a.bin needs about .* of memory"):
        files.read_bytes(path)


def test_compressed_bytes_need_twice_their_full_size(tmp_path, have_memory):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(1000)))
    have_memory(2000)
    assert files.read_bytes(path) == bytes(1000)
    have_memory(1999)
    with pytest.raises(InputError, match=r"a.gz has more than .* of content"):
        files.read_bytes(path)


def test_graphml_needs_thirty_times_its_size(tmp_path, have_memory):
    path = tmp_path / "g.graphml"
    path.touch()
    os.truncate(path, 2**30)  # takes no space
    have_memory(2**30)
    with pytest.raises(InputError, match=r"g.graphml needs about 30.0 GiB of memory"):
        read(path)


def test_arrays_need_twice_their_size(tmp_path, have_memory):
    path = tmp_path / "g.npz"
    np.savez_compressed(path, a=np.zeros(1000), b=np.zeros(10**6))
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("a.npy").file_size
    have_memory(2 * size)
    assert read_npz_arrays(path, ["a"])["a"].shape == (1000,)
    have_memory(2 * size - 1)
    with pytest.raises(InputError, match=r"g.npz needs about"):
        read_npz_arrays(path, ["a"])


def test_tensors_need_twice_their_size(tmp_path, have_memory):
    path = tmp_path / "g.pt"
    edges = torch.tensor([[0, 1], [1, 2]])
    torch.save({"x": torch.ones(3, 1000), "edge_index": edges, "y": torch.tensor([0, 1, -1])}, path)
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    size = sum(len(content) for content in contents.values())
    assert path.stat().st_size < size
    have_memory(2 * size)
    assert read(path).graph.num_nodes == 3
    have_memory(2 * size - 1)
    with pytest.raises(InputError, match=r"g.pt needs about"):
        read(path)


def test_a_cell_of_a_parquet_file_needs_80_bytes(tmp_path, have_memory):
    path = tmp_path / "nodes.parquet"
    zeros = np.zeros(10_000)
    parquet.write_table(arrow.table({"a": zeros, "b": zeros, "c": zeros}), path)
    have_memory(80 * 30_000)
    assert len(read_table(path)) == 10_000
    have_memory(80 * 30_000 - 1)
    with pytest.raises(InputError, match=r"nodes.parquet needs about"):
        read_table(path)


@pytest.mark.parametrize(
    ("zeros", "message"),
    [(250, "looks like UTF-16 without"), (249, "has a byte of value zero in line 2")],
)
def test_utf_16_is_recognized_by_a_quarter_of_zeros_in_the_first_1000_bytes(
    tmp_path, zeros, message
):
    start = b"a,b\n" + bytes(zeros)
    (tmp_path / "nodes.csv").write_bytes(start.ljust(1000, b"x") + 1000 * b"y")
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / "nodes.csv")
