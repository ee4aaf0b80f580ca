"""Several edge tables: each is a relation."""

from __future__ import annotations

import contextlib
import sqlite3

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dcgst import EM, InputError, Query, fit, open_run, read
from dcgst.tables import Columns
from tests.cli.helpers import dcgst

NODES = "id,size,label\n1,2,x\n2,1,y\n3,4,x\n4,3,\n"
FOLLOWS = "source,target\n1,2\n3,4\n"
PAYS = "from,to,weight\n2,3,$4.00\n1,2,$2.00\n"


@pytest.fixture
def tables(tmp_path):
    for name, text in (("nodes", NODES), ("follows", FOLLOWS), ("pays", PAYS)):
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


def test_the_name_of_a_file_is_the_kind_of_its_edges(tables):
    data = read(tables / "nodes.csv", [tables / "follows.csv", tables / "pays.csv"])
    assert {name: matrix.nnz // 2 for name, matrix in data.relations.items()} == {
        "follows": 2,
        "pays": 2,
    }
    # Weights of 4 and 2 dollars are divided by their mean; of two edges, the largest counts.
    np.testing.assert_allclose(data.graph.adjacency.toarray()[0], [0, 1, 0, 0])
    np.testing.assert_allclose(data.graph.adjacency[1, 2], 4 / 3)
    assert "relations: the tables follows, pays" in data.notes


def test_tables_may_be_named_and_have_kinds_of_their_own(tables):
    typed = pa.table({"source": [1, 2], "target": [3, 4], "how": ["a", "b"]})
    edges = {"follows": tables / "follows.csv", "calls": typed}
    data = read(tables / "nodes.csv", edges, Columns(edge_type="how"))
    assert list(data.relations) == ["calls a", "calls b", "follows"]


def test_one_table_in_a_list_is_one_table(tables):
    data = read(tables / "nodes.csv", [tables / "follows.csv"])
    assert not data.relations
    assert data.columns.source == "source"


def test_mistakes_are_named(tables):
    with pytest.raises(InputError, match="two edge tables are named 'follows'"):
        read(tables / "nodes.csv", [tables / "follows.csv", tables / "follows.csv"])
    with pytest.raises(InputError, match="needs at least one edge table"):
        read(tables / "nodes.csv", {})
    (tables / "pays.csv").write_text("from,to\n2,9\n")
    with pytest.raises(InputError, match=r"pays.csv, line 2: no node has the id '9'"):
        read(tables / "nodes.csv", [tables / "follows.csv", tables / "pays.csv"])


def test_fit_and_predict_take_several_tables(tables):
    files = [tables / name for name in ("nodes.csv", "follows.csv", "pays.csv")]
    done = dcgst("fit", *files, "-o", tables / "run", "--method", "em", "--no-report")
    assert done.code == 0, done.err
    assert [r.name for r in open_run(tables / "run").relations] == ["follows", "pays"]
    done = dcgst("predict", tables / "run", *files, "-o", tables / "out.csv")
    assert done.code == 0, done.err
    assert "not used" not in done.err


def test_roles_are_those_of_the_fit(tables):
    """A later table without outliers has the same scale; one relation keeps its name."""
    rows = [f"{1 + k % 3},4,{5 if k else 10**6}" for k in range(30)]
    (tables / "pays.csv").write_text("\n".join(["a,b,weight", *rows]))
    files = tables / "nodes.csv", [tables / "follows.csv", tables / "pays.csv"]
    data = read(*files)
    assert data.columns.tables["pays"]["weight_scale"] == 5
    (tables / "later.csv").write_text("a,b,weight\n1,4,5\n2,4,5\n")
    later = read(tables / "nodes.csv", [tables / "follows.csv", tables / "later.csv"], data.columns)
    assert list(later.relations) == ["follows", "pays"], "matched by their order"
    expected = 1 / data.columns.tables["pays"]["weight_mean"]
    np.testing.assert_allclose(later.relations["pays"].data, expected, rtol=1e-6)
    alone = read(tables / "nodes.csv", tables / "pays.csv", data.columns)
    assert list(alone.relations) == ["pays"]
    with pytest.raises(InputError, match="the fit had the edge tables follows, pays; give tables"):
        read(tables / "nodes.csv", tables / "later.csv", data.columns)


def test_a_mistyped_column_is_an_error(tables):
    files = tables / "nodes.csv", [tables / "follows.csv", tables / "pays.csv"]
    with pytest.raises(InputError, match="none of the edge tables has a column 'amuont'"):
        read(*files, Columns(weight="amuont"))
    assert not read(*files, Columns(edge_type="none")).relations


def test_tables_of_pandas_with_a_column_name(tables):
    frame = pd.DataFrame({"source": [1, 2], "target": [2, 3], "name": ["x", "y"]})
    data = read(tables / "nodes.csv", [frame, tables / "pays.csv"])
    assert list(data.relations) == ["edges 1", "pays"]


def test_predictions_of_the_same_tables_are_the_same(tables):
    files = tables / "nodes.csv", [tables / "follows.csv", tables / "pays.csv"]
    run = fit(read(*files), tables / "run", EM())
    found = run.predict_other(*files).predictions.result.proba
    np.testing.assert_allclose(found[3], run.result.proba[3], atol=1e-4)


def test_units_of_weights_do_not_matter_between_tables(tables):
    (tables / "cents.csv").write_text("from,to,weight\n2,3,400\n1,2,200\n")
    found = [
        read(tables / "nodes.csv", [tables / "follows.csv", tables / name]).graph.adjacency
        for name in ("pays.csv", "cents.csv")
    ]
    np.testing.assert_allclose(found[0].toarray(), found[1].toarray(), rtol=1e-6)


def test_roles_of_one_table_are_not_guessed_again(tables, tmp_path):
    """A column that is new in the tables to predict has no effect."""
    run = fit(read(tables / "nodes.csv", tables / "follows.csv"), tmp_path / "run", EM())
    (tables / "later.csv").write_text("source,target,weight\n1,2,1\n3,4,900\n")
    expected = run.predict(tables / "nodes.csv", tables / "follows.csv")
    assert run.predict(tables / "nodes.csv", tables / "later.csv") == expected


def test_two_queries_are_two_kinds_of_edges(tmp_path):
    path = tmp_path / "bank.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "create table n (id, size, label); create table a (s, t); create table b (s, t);"
            "insert into n values ('1', 2, 'x'), ('2', 1, 'y'), ('3', 4, 'x'), ('4', 3, null);"
            "insert into a values ('1', '2'); insert into b values ('3', '4');"
        )
    queries = [Query(f"sqlite:///{path}", f"select * from {name}") for name in "abn"]
    assert list(read(queries[2], queries[:2]).relations) == ["edges 1", "edges 2"]


def test_one_of_several_tables_may_be_empty(tables, tmp_path):
    """A night without payments."""
    both = [tables / "follows.csv", tables / "pays.csv"]
    run = fit(read(tables / "nodes.csv", both), tmp_path / "run", EM())
    (tables / "none.csv").write_text("from,to,weight\n")
    found = read(tables / "nodes.csv", [tables / "follows.csv", tables / "none.csv"])
    assert "the edge table none has no rows" in found.notes
    assert list(found.relations) == ["follows"]
    assert (
        len(run.predict(tables / "nodes.csv", [tables / "follows.csv", tables / "none.csv"])) == 4
    )
    with pytest.raises(InputError, match="has a header but no rows"):
        read(tables / "nodes.csv", [tables / "none.csv"])
