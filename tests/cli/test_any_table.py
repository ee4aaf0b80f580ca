"""No table, however malformed, ends in a traceback or an incomplete folder."""

from __future__ import annotations

import csv
import io
import os
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from dcgst import InputError
from dcgst.cli.app import app
from tests.cli.helpers import dcgst, write_table

EXAMPLES = int(os.environ.get("DCGST_EXAMPLES", "100"))
"""Number of malformed tables to try."""

FIT = ["--method", "gcn", "--set", "epochs=3", "--set", "hidden=4", "--replicas", "1", "--quiet",
       "--overwrite", "--no-report"]  # fmt: skip
NO_LIMIT = {"deadline": None, "suppress_health_check": list(HealthCheck)}

cells = st.one_of(
    st.sampled_from(
        ["a", "b", "c", "1", "2", "0.5", "", "nan", "inf", "-1", "x y z", "NA", "é", "007", "[/a]"]
    ),
    st.text(max_size=6),
)
names = st.lists(
    st.sampled_from(["id", "label", "size", "source", "target", "weight", "", "x", "y"]),
    min_size=1, max_size=5,
)  # fmt: skip


@st.composite
def any_table(draw):
    """A CSV file with any columns, delimiter and length of rows, sometimes random bytes."""
    header = draw(names)
    width = len(header) if draw(st.booleans()) else draw(st.integers(0, 6))
    rows = draw(st.lists(st.lists(cells, min_size=width, max_size=width), max_size=8))
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=draw(st.sampled_from([",", ";", "\t", "|"])))
    if draw(st.integers(0, 9)):
        writer.writerow(header)
    writer.writerows(rows)
    content = buffer.getvalue().encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        content = draw(st.binary(max_size=80))
    return content


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@settings(max_examples=EXAMPLES, **NO_LIMIT)
@given(nodes=any_table(), edges=any_table())
def test_any_table(place, nodes, edges):
    (place / "nodes.csv").write_bytes(nodes)
    (place / "edges.csv").write_bytes(edges)
    check(place, place / "nodes.csv", place / "edges.csv")


@settings(max_examples=EXAMPLES // 2, **NO_LIMIT)
@given(
    rows=st.lists(st.tuples(cells, cells, cells), min_size=2, max_size=12),
    pairs=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=12),
)
def test_a_table_with_the_right_columns(place, rows, pairs):
    header = ["id", "a", "b", "label"]
    nodes = write_table(place / "n.csv", header, [[i, *row] for i, row in enumerate(rows)])
    check(place, nodes, write_table(place / "e.csv", ["source", "target"], pairs))


def check(place, nodes, edges):
    """A fit succeeds, or raises an InputError and leaves no folder."""
    out = place / "run"
    result = CliRunner().invoke(app, ["fit", str(nodes), str(edges), "-o", str(out), *FIT])
    if result.exception is None:
        assert (out / "run.json").exists()
        assert not (out / "checkpoint").exists()
        assert not list(out.glob("*.part"))
        shutil.rmtree(out)
    else:
        assert isinstance(result.exception, InputError), repr(result.exception)
    assert not out.exists()


@pytest.mark.parametrize(
    ("start", "scheme"), [(b"SQLite format 3\0", "sqlite"), (8 * b"\1" + b"DUCK\0", "duckdb")]
)
def test_the_file_of_a_database_is_recognized(tmp_path, start, scheme):
    (tmp_path / "crm.db").write_bytes(start + bytes(200))
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    done = dcgst("fit", tmp_path / "crm.db", tmp_path / "edges.csv", "-o", tmp_path / "run")
    assert done.code == 2
    assert f"is a database; write {scheme}:///" in done.err
