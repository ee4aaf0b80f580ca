"""Datasets in tables: nodes, edges, and the true classes apart."""

from __future__ import annotations

import pytest

from dcgst.datasets import load, tables
from dcgst.errors import InputError

NODES = "id,size,words\nb,1,x y\na,2,y\nc,3,z\n"
EDGES = "source,target\na,b\nb,c\n"
TRUTH = "id,kind\na,small\nb,large\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "tables" / "shop"
    folder.mkdir(parents=True)
    for name, text in (("nodes", NODES), ("edges", EDGES), ("truth", TRUTH)):
        (folder / f"{name}.csv").write_text(text)
    monkeypatch.setenv("DCGST_DATA", str(tmp_path))
    return folder


def test_classes_are_read_from_their_own_table(folder):
    assert tables.available("shop")
    graph = tables.load("shop")
    assert graph.name == "shop"
    assert graph.class_names == ("large", "small")
    labels = dict(zip(map(str, graph.ids), graph.labels.tolist(), strict=True))
    assert labels == {"a": 1, "b": 0, "c": -1}
    assert graph.num_edges == 2


def test_a_missing_file_makes_it_unavailable(folder):
    (folder / "truth.csv").unlink()
    assert not tables.available("shop")
    with pytest.raises(InputError, match="MUSAE"):
        tables.load("shop")


def test_a_third_column_is_an_error(folder):
    (folder / "truth.csv").write_text("id,kind,more\na,small,1\n")
    with pytest.raises(InputError, match="must have two columns, id and class; it has 3"):
        tables.load("shop")


def test_a_folder_with_the_three_tables_is_loaded_by_its_path(folder):
    graph = load(str(folder))
    assert graph.name == "shop"
    assert sorted(graph.labels.tolist()) == [-1, 0, 1]
