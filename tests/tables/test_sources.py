"""Tables from other libraries, compressed files, folders and standard input; files to write."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from torch_geometric.data import Data

from dcgst import EM, InputError, fit, open_run, read
from tests.cli.helpers import dcgst

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

NODES = "id,size,label\n" + "".join(
    f"{i},{i % 2 + i / 100},{'ab'[i % 2] if i < 8 else ''}\n" for i in range(40)
)
EDGES = "source,target\n" + "".join(f"{i},{(i + 2) % 40}\n" for i in range(40))


@pytest.fixture
def files(tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    return tmp_path


def arrow_tables():
    from pyarrow import csv

    return [csv.read_csv(io.BytesIO(text.encode())) for text in (NODES, EDGES)]


def same(found, files) -> None:
    expected = read(files / "nodes.csv", files / "edges.csv").graph
    np.testing.assert_array_equal(found.graph.features, expected.features)
    np.testing.assert_array_equal(found.graph.labels, expected.labels)
    assert (found.graph.adjacency != expected.adjacency).nnz == 0


class Frame:
    """A table of a library that pyarrow does not know, with the standard interface."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_arrow_tables_and_those_of_other_libraries(files):
    nodes, edges = arrow_tables()
    same(read(nodes, edges), files)
    same(read(Frame(nodes), Frame(edges)), files)
    with pytest.raises(InputError, match="a node table needs an edge table"):
        read(nodes)


def test_tables_of_pandas_and_polars(files):
    """Tables of the libraries themselves, also with types of their own."""
    nodes, edges = arrow_tables()
    same(read(nodes.to_pandas(), edges.to_pandas()), files)
    same(read(pl.from_arrow(nodes), pl.from_arrow(edges)), files)
    frame = pd.read_csv(files / "nodes.csv").convert_dtypes()
    same(read(frame, pd.read_csv(files / "edges.csv")), files)
    same(read(pl.read_csv(files / "nodes.csv"), pl.read_csv(files / "edges.csv")), files)


def test_zstd_files(files):
    for name in ("nodes", "edges"):
        content = (files / f"{name}.csv").read_bytes()
        target = str(files / f"{name}.csv.zst")
        with pa.OSFile(target, "wb") as file, pa.CompressedOutputStream(file, "zstd") as stream:
            stream.write(content)
    same(read(files / "nodes.csv.zst", files / "edges.csv.zst"), files)
    (files / "nodes.csv.zst").write_bytes((files / "nodes.csv.zst").read_bytes()[:20])
    with pytest.raises(InputError, match=r"nodes.csv.zst is not a valid zstd file"):
        read(files / "nodes.csv.zst", files / "edges.csv")


def test_a_parquet_data_set_in_several_files(files):
    nodes, edges = arrow_tables()
    for name, table in (("nodes", nodes), ("edges", edges)):
        (files / name).mkdir()
        parquet.write_table(table[:15], files / name / "part-0.parquet")
        parquet.write_table(table[15:], files / name / "part-1.parquet")
    same(read(files / "nodes", files / "edges"), files)
    (files / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty is a folder; .*, or a folder of Parquet files"):
        read(files / "empty", files / "edges.csv")


def test_standard_input(files):
    command = [sys.executable, "-m", "dcgst", "diagnose", "-", str(files / "edges.csv"), "--json"]
    done = subprocess.run(
        command, input=NODES, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["nodes"] == 40
    assert "only one of the tables" in dcgst("diagnose", "-", "-").err


def test_lists_in_parquet_files_are_lists(files):
    nodes, edges = arrow_tables()
    tags = [["red", "blue"], ["blue"], ["green", "red"], []] * 10
    data = read(nodes.append_column("tags", pa.array(tags)), edges)
    (column,) = [column for column in data.encoder.columns if column.name == "tags"]
    assert column.kind == "list"
    assert column.values == ("blue", "green", "red")


def test_pyg_data_without_features():
    ring = torch.arange(30)
    edge_index = torch.stack([ring, (ring + 1) % 30])
    y = torch.full((30,), -1)
    y[:4] = torch.tensor([0, 1, 0, 1])
    found = read(Data(edge_index=edge_index, y=y, num_nodes=30))
    assert found.graph.num_features > 1
    assert any("spectral features" in note for note in found.notes)
    assert EM().fit(found.graph).proba_.shape == (30, 2)


@pytest.fixture
def run(files):
    return fit(read(files / "nodes.csv", files / "edges.csv"), files / "run", EM())


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.jsonl"])
def test_files_have_the_type_of_their_name(run, files, name):
    done = dcgst("predict", run.folder, "-o", files / name, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["predictions"] == 40
    content = (files / name).read_bytes()
    if name == "out.parquet":
        assert parquet.read_table(files / name).num_rows == 40
    elif name == "out.jsonl":
        assert json.loads(content.splitlines()[0])["id"] == "0"
    else:
        assert content.startswith(b"id,class,probability")


def test_other_names_are_refused_before_anything_is_computed(run, files):
    done = dcgst("predict", run.folder, "-o", files / "out.xlsx")
    assert done.code == 2
    assert "choose a name that ends with .csv, .parquet or .jsonl" in done.err
    assert not (files / "out.xlsx").exists()
    assert "one of fail, append, replace" in dcgst("predict", run.folder, "--if-exists", "x").err


def test_embeddings(files):
    tables = files / "nodes.csv", files / "edges.csv"
    settings = "--method", "gcn", "--set", "epochs=3", "--set", "hidden=4", "--replicas", 2
    assert dcgst("fit", *tables, "-o", files / "gcn", *settings).code == 0
    out = files / "embeddings.parquet"
    done = dcgst("predict", files / "gcn", "--embeddings", out)
    assert done.code == 0, done.err
    table = parquet.read_table(out)
    assert table.column_names == ["id", *(f"e{i}" for i in range(8))]
    assert table.num_rows == 40
    expected = open_run(files / "gcn").embeddings()
    np.testing.assert_array_equal(np.stack(table.columns[1:], axis=1), expected)
    done = dcgst("predict", files / "gcn", "--embeddings", "e.csv")
    assert "choose a name with .parquet" in done.err
