"""Files that are not what they seem: each ends in an error that names the file."""

from __future__ import annotations

import datetime
import gzip
import io
import os
import zipfile

import numpy as np
import numpy.lib.format as npy
import pytest
import torch

from dcgst import InputError, read
from dcgst.tables import table as files
from tests.tables.conftest import EDGES, NODES

EDGE_INDEX, LABELS = np.array([[0, 1, 2], [1, 2, 3]]), np.array([0, 1, -1, -1])
SPARSE = {
    "x_data": np.ones(4),
    "x_indices": np.arange(4),
    "x_indptr": np.arange(5),
    "x_shape": np.array([4, 4]),
}


def write_npz(path, **arrays):
    np.savez(path, **{"edge_index": EDGE_INDEX, "y": LABELS, **arrays})
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x_indptr": np.array([0, 1, 10**6, 3, 4])}, "indptr must increase"),
        ({"x_indices": np.array([0, 10**6, 2, 3])}, "entry 1 is in column 1000000"),
        ({"x_shape": np.array([4, 10**9])}, "4 rows of 1,000,000,000 columns"),
        ({"x_shape": np.array([10**12, 4])}, "1,000,000,000,000 rows"),
        ({"x_shape": np.array(4)}, "the shape must be two integers"),
        ({"y": np.array([0, 10**9, -1, -1])}, "node 1 has class code 1000000000"),
        ({"y": np.array([0.0, 1e300, -1, -1])}, "labels must be integer class codes"),
        ({"x_data": np.array([1, np.nan, 1, 1])}, "NaN, infinite or beyond"),
        ({"edge_index": np.array([[0, 9], [1, 2]])}, "edge 1 connects nodes 9 and 2"),
    ],
)
def test_invalid_arrays_of_npz_files(tmp_path, changes, message):
    path = write_npz(tmp_path / "g.npz", **{**SPARSE, **changes})
    with pytest.raises(InputError, match=rf"the arrays of .*g.npz are not a graph: .*{message}"):
        read(path)


def claim(path, name: str, shape: tuple[int, ...]) -> None:
    """Write an npz file in which the header of one array claims another shape than its data."""
    write_npz(path, x=np.eye(4))
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    header = io.BytesIO()
    npy.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    members[f"{name}.npy"] = header.getvalue() + bytes(128)
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)


@pytest.mark.parametrize("shape", [(10**13,), (10**6, 10**6), (2**62, 2**62), (4, 5)])
def test_headers_that_claim_more_than_there_is(tmp_path, shape):
    claim(tmp_path / "g.npz", "x", shape)
    with pytest.raises(InputError, match=r"g.npz is damaged: array x of shape .* but has 128"):
        read(tmp_path / "g.npz")


def test_archives_that_expand_beyond_the_memory(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "g.npz", edge_index=EDGE_INDEX, y=LABELS, x=np.zeros((4, 10**6)))
    monkeypatch.setattr("dcgst.memory.available_memory", lambda: 2**20)
    with pytest.raises(InputError, match=r"g.npz needs about .* [GM]iB of memory"):
        read(tmp_path / "g.npz")


def save(path, **tensors):
    torch.save({"edge_index": torch.tensor(EDGE_INDEX), "y": torch.tensor(LABELS), **tensors}, path)
    return path


def coo(indices, values, shape) -> torch.Tensor:
    return torch.sparse_coo_tensor(
        indices, values, shape, check_invariants=False, is_coalesced=True
    )


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(1, 1).expand(4, 10**12), "tensor x .* needs .* bytes, but has 4"),
        (coo([[0], [0]], [1.0], (4, 10**9)), "1,000,000,000 columns"),
        (coo([[0], [0]], [1.0], (10**12, 4)), "1,000,000,000,000 rows"),
        (torch.full((4, 2), float("nan")), "NaN, infinite or beyond"),
    ],
)
def test_invalid_tensors_of_pt_files(tmp_path, x, message):
    path = save(tmp_path / "g.pt", x=x)
    with pytest.raises(InputError, match=rf"the tensors of .*g.pt are not a graph: .*{message}"):
        read(path)


def test_sparse_tensors_with_indices_out_of_bounds(tmp_path):
    path = save(tmp_path / "g.pt", x=coo([[0, 1], [0, 9]], [1.0, 1.0], (4, 4)))
    with pytest.raises(InputError, match=r"g.pt"):
        read(path)


def test_the_advice_of_torch_to_load_unsafely_is_not_shown(tmp_path):
    torch.save({"when": datetime.timedelta(1)}, tmp_path / "g.pt")
    with pytest.raises(InputError, match=r"contains an object of type datetime.timedelta") as error:
        read(tmp_path / "g.pt")
    assert "weights_only" not in str(error.value)
    (tmp_path / "g.pt").write_bytes(b"no")
    with pytest.raises(InputError, match=r"it is damaged, or not a file that torch.save wrote"):
        read(tmp_path / "g.pt")


def test_compressed_tables_are_read(write_tables):
    plain = read(*write_tables())
    zipped = read(*write_tables(gzip.compress(NODES.encode()), gzip.compress(EDGES.encode())))
    np.testing.assert_array_equal(plain.graph.features, zipped.graph.features)


def test_damaged_compression_is_named(write_tables):
    damaged = gzip.compress(NODES.encode())[:-20]
    with pytest.raises(InputError, match=r"nodes.csv is not a valid gzip file"):
        read(*write_tables(damaged))


def test_compressed_tables_that_expand_beyond_the_memory(write_tables, monkeypatch):
    monkeypatch.setattr(files, "available_memory", lambda: 15 * 2**20)
    bomb = gzip.compress(bytes(2**24))
    assert len(bomb) < 2**15
    with pytest.raises(InputError, match=r"nodes.csv has more than .* of content"):
        read(*write_tables(bomb))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_with_a_mark_and_named_without(write_tables, encoding):
    paths = write_tables(NODES.encode(encoding))
    if encoding == "utf-16":
        assert read(*paths).graph.num_nodes == 4
    else:
        with pytest.raises(InputError, match=r"nodes.csv looks like UTF-16 without"):
            read(*paths)


def test_binary_files_are_named(write_tables):
    with pytest.raises(InputError, match=r"nodes.csv has a byte of value zero in line 2 and is"):
        read(*write_tables(b"id,label\n" + bytes(3) + b"a,b\n"))


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/full"])
def test_devices_are_refused(write_tables, name):
    _, edges = write_tables()
    with pytest.raises(InputError, match=f"{name} is a device or socket"):
        read(name, edges)


def test_a_named_pipe_without_a_writer_does_not_block(write_tables, tmp_path):
    _, edges = write_tables()
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match=r"pipe.csv is a named pipe"):
        read(tmp_path / "pipe.csv", edges)


def test_a_file_larger_than_the_memory_is_refused_before_it_is_read(write_tables, monkeypatch):
    nodes, edges = write_tables()
    os.truncate(nodes, 2**34)  # 16 GiB that take no space
    monkeypatch.setattr("dcgst.memory.available_memory", lambda: 2**34)
    with pytest.raises(InputError, match=r"nodes.csv needs about 240.0 GiB of memory"):
        read(nodes, edges)


def test_names_that_are_no_file_names(write_tables):
    _, edges = write_tables()
    with pytest.raises(InputError, match="is not a file name"):
        read("a\0b.csv", edges)
    with pytest.raises(InputError, match="File name too long"):
        read("x" * 300 + ".csv", edges)


@pytest.mark.parametrize(
    "column",
    [
        ("ns", lambda pa: pa.array([1, 2, 3, 4], pa.timestamp("ns"))),
        ("zone", lambda pa: pa.array([1, 2, 3, 4], pa.timestamp("s", "Mars/Olympus"))),
        ("long", lambda pa: pa.array([2**62, 2, 3, 4], pa.duration("s"))),
        ("old", lambda pa: pa.array([-(2**50), 2, 3, 4], pa.timestamp("ms"))),
    ],
    ids=lambda column: column[0],
)
def test_parquet_types_without_a_python_type(tmp_path, write_tables, column):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    _, edges = write_tables()
    table = pa.table(
        {
            "id": ["007", "8", "9", "10"],
            "label": ["a", "b", "", ""],
            "size": [1.0, 2.0, 3.0, 4.0],
            "time": column[1](pa),
        }
    )
    parquet.write_table(table, tmp_path / "nodes.parquet")
    try:
        found = read(tmp_path / "nodes.parquet", edges)
    except InputError as error:
        assert "column 'time' of" in str(error)  # noqa: PT017
    else:
        assert found.graph.num_nodes == 4


def test_thousands_of_columns_are_read_in_linear_time(write_tables):
    """60,000 columns took 44 seconds when each was searched in a list of all."""
    names = ",".join(f"c{i}" for i in range(20_000))
    rows = "".join(
        f"{node},{label},{','.join(str((i * k) % 7) for i in range(20_000))}\n"
        for k, (node, label) in enumerate((("a", "x"), ("b", "y"), ("c", "")))
    )
    found = read(*write_tables(f"id,label,{names}\n{rows}", "source,target\na,b\nb,c\n"))
    assert found.graph.num_features > 10_000


def test_zero_bytes_anywhere_are_named(write_tables):
    rows = "".join(f"n{i},{i},x\n" for i in range(300))
    content = f"id,size,label\n{rows}last,1,x\0\n".encode()
    with pytest.raises(InputError, match=r"nodes.csv has a byte of value zero in line 302"):
        read(*write_tables(content, "source,target\nn1,n2\n"))


def test_an_id_that_is_too_long_is_named(write_tables):
    nodes = f"id,size,label\na,1,x\n{'b' * 2000},2,y\nc,3,\n"
    with pytest.raises(InputError, match=r"nodes.csv, line 3: the id 'b+'… has 2,000 characters"):
        read(*write_tables(nodes, "source,target\na,c\n"))


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-560, 2.0**90])
def test_numbers_of_any_scale_are_the_same_features(write_tables, scale):
    def features(factor):
        rows = "".join(f"n{i},{(i % 5) * factor!r},{'xy'[i % 2]}\n" for i in range(8))
        edges = "source,target\nn1,n2\nn3,n4\n"
        return read(*write_tables(f"id,size,label\n{rows}", edges)).graph.features

    np.testing.assert_array_equal(features(scale), features(1.0))


def test_masks_of_other_numbers_are_refused(tmp_path):
    path = save(tmp_path / "g.pt", x=torch.eye(4), train_mask=torch.arange(4))
    with pytest.raises(InputError, match="train_mask must contain booleans, got int64"):
        read(path)


def test_entries_that_are_no_tensors_are_refused(tmp_path):
    path = save(tmp_path / "g.pt", x=["a"])
    with pytest.raises(InputError, match="x is list; a tensor is required"):
        read(path)


def test_other_members_of_an_npz_file_are_ignored(tmp_path):
    path = write_npz(tmp_path / "g.npz", x=np.eye(4), names=np.array([{}, {}]))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("readme.txt", "hello")
    assert read(path).graph.num_nodes == 4


def test_compressed_graph_files_are_recognized(tmp_path):
    nx = pytest.importorskip("networkx")
    graph = nx.cycle_graph(4)
    nx.set_node_attributes(graph, {0: "x", 1: "y", 2: "", 3: ""}, "label")
    content = "\n".join(nx.generate_graphml(graph)).encode()
    (tmp_path / "g.graphml.gz").write_bytes(gzip.compress(content))
    assert read(tmp_path / "g.graphml.gz").graph.num_nodes == 4
