"""Tables from and to databases; PostgreSQL is a real server, started for the tests."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from dcgst import EM, InputError, Query, fit, read
from dcgst.tables.sources import write_table
from dcgst.text import without_passwords
from tests.cli.helpers import dcgst

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
NODES, EDGES = "select * from people", "select * from links order by source, target"
PEOPLE = "create table people (id text, size float, joined date, active boolean, label text)"
COUNT = 60


def rows() -> tuple[list[tuple], list[tuple]]:
    """Nodes in two classes, with a number, a date and a flag; some values are missing."""
    rng = np.random.default_rng(0)
    truth = np.arange(COUNT) % 2
    nodes = [
        (
            f"p{i:02d}",
            None if i == 7 else float(truth[i] * 3 + rng.normal()),
            f"2024-0{1 + truth[i] * 5}-{1 + i % 28:02d}",
            bool(i % 3),
            "ab"[truth[i]] if i < 12 else None,
        )
        for i in range(COUNT)
    ]
    edges = [
        (f"p{i:02d}", f"p{(i + 2 * step) % COUNT:02d}") for i in range(COUNT) for step in (1, 2)
    ]
    return nodes, edges


def fill(execute, many) -> None:
    """Create both tables with a function that runs a statement, and one that runs it many times."""
    nodes, edges = rows()
    execute(PEOPLE)
    execute("create table links (source text, target text)")
    many("insert into people values (?, ?, ?, ?, ?)", nodes)
    many("insert into links values (?, ?)", edges)


@pytest.fixture(scope="module")
def sqlite_url(tmp_path_factory):
    path = tmp_path_factory.mktemp("sqlite") / "bank.db"
    with sqlite3.connect(path) as connection:
        fill(connection.execute, connection.executemany)
    return f"sqlite:///{path}"


@pytest.fixture(scope="module")
def duckdb_url(tmp_path_factory):
    path = tmp_path_factory.mktemp("duckdb") / "bank.duckdb"
    with duckdb.connect(str(path)) as connection:
        fill(connection.execute, connection.executemany)
    return f"duckdb:///{path}"


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory):
    """A PostgreSQL server of its own, on a free port of this machine."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin")) if os.name == "posix" else []
    if not programs and not shutil.which("initdb"):
        pytest.skip("PostgreSQL is not installed: apt install postgresql")
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="pip install 'dcgst[sql]'")
    folder = Path("/tmp") / f"dcgst-postgres-{os.getpid()}"  # paths of sockets must be short
    folder.mkdir()
    owner = [] if os.getuid() else ["runuser", "-u", "postgres", "--"]
    if owner:
        shutil.chown(folder, "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(program: str, *arguments: str) -> subprocess.Popen[bytes]:
        path = programs[-1] / program if programs else program
        command = [*owner, str(path), *arguments]
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/tmp"
        )

    data = str(folder / "data")
    assert run("initdb", "-D", data, "-A", "trust", "-U", "ann").wait(120) == 0
    server = run("postgres", "-D", data, "-p", str(port), "-k", str(folder), "-h", "127.0.0.1")
    url = f"postgresql://ann:secret@127.0.0.1:{port}/postgres"
    for _ in range(100):
        try:
            with dbapi.connect(url) as connection, connection.cursor() as cursor:
                nodes, edges = rows()
                cursor.execute(PEOPLE)
                cursor.execute("create table links (source text, target text)")
                for node in nodes:
                    texts = ["null" if v is None else f"'{v}'" for v in node]
                    cursor.execute(f"insert into people values ({', '.join(texts)})")
                for source, target in edges:
                    cursor.execute(f"insert into links values ('{source}', '{target}')")
                connection.commit()
            break
        except Exception:  # the server is not ready yet
            time.sleep(0.2)
    yield url
    server.terminate()
    server.wait(60)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite_url", "duckdb_url", "postgres_url"])
def url(request):
    return request.getfixturevalue(request.param)


def test_a_graph_from_two_queries(url):
    data = read(Query(url, NODES), Query(url, EDGES))
    assert data.graph.num_nodes == COUNT
    assert data.graph.num_edges == 2 * COUNT
    assert data.graph.class_names == ("a", "b")
    kinds = {column.name: column.kind for column in data.encoder.columns}
    assert kinds == {"active": "flag", "joined": "date", "size": "number"}
    assert data.graph.labels[:4].tolist() == [0, 1, 0, 1]


def test_round_trip_of_the_command_line(url, tmp_path):
    run = tmp_path / "run"
    source = (url, "--nodes", NODES, "--edges", EDGES)
    done = dcgst("fit", *source, "-o", run, "--method", "gcn", "--set", "epochs=20")
    assert done.code == 0, done.err
    assert "secret" not in done.out + done.err + (run / "run.json").read_text()
    write = ("predict", run, "-o", url, "--table", "found")
    done = dcgst(*write)
    assert done.code == 0, done.err
    assert f"{COUNT} predictions: " in done.out
    assert "secret" not in done.out
    again = dcgst(*write)
    assert again.code == 2
    assert "table 'found' exists; use --if-exists append or replace" in again.err
    assert dcgst(*write, "--if-exists", "append").code == 0
    count = Query(url, "select count(*) as n, min(id) as first from found").read()
    assert count.columns == {"n": [str(2 * COUNT)], "first": ["p00"]}
    assert dcgst(*write, "--if-exists", "replace").code == 0
    stored = Query(url, "select * from found order by id").read()
    assert len(stored) == COUNT
    assert set(stored.column("class")) == {"a", "b"}
    assert float(stored.column("probability")[0]) > 0.4
    # The stored model on the nodes of the database, which has more of them now.
    new = f"{NODES} union all select 'new', 3.1, date('2024-06-05'), true, null"
    if url.startswith(("postgresql", "duckdb")):
        new = f"{NODES} union all select 'new', 3.1, date '2024-06-05', true, null"
    done = dcgst(
        "predict", run, url, "--nodes", new, "--edges", EDGES, "-o", tmp_path / "new.jsonl"
    )
    assert done.code == 0, done.err
    assert len((tmp_path / "new.jsonl").read_text().splitlines()) == COUNT + 1
    assert "drift" not in done.err
    check_drift(url, run, tmp_path / "moved.csv")


def check_drift(url, run, out):
    """The numbers in the database change: the model says so, and a pipeline can stop."""
    moved = "select id, size + 50 as size, joined, active, label from people"
    query = ("predict", run, url, "--nodes", moved, "--edges", EDGES, "-o", out)
    done = dcgst(*query)
    assert done.code == 0, done.err
    assert "Warning: drift in size: differs by" in done.err
    assert "Warning: drift in representation" in done.err
    out.unlink()
    done = dcgst(*query, "--fail-on-drift")
    assert done.code == 3
    assert not out.exists()


def test_mistakes_are_named(url, tmp_path):
    with pytest.raises(InputError, match=r"the query query failed: .*nowhere"):
        read(Query(url, "select * from nowhere"), Query(url, EDGES))
    with pytest.raises(InputError, match=r"\(query\) has no rows"):
        read(Query(url, f"{NODES} where id = 'x'"), Query(url, EDGES))
    with pytest.raises(InputError, match=r"\(query\) has 1 columns; at least two are required"):
        read(Query(url, "select id from people"), Query(url, EDGES))
    done = dcgst("fit", url, "--nodes", NODES)
    assert done.code == 2
    assert 'a database needs two queries: --nodes "select …" and --edges' in done.err


def test_reading_changes_nothing(url):
    with pytest.raises(InputError):
        Query(url, "drop table links").read()
    assert len(Query(url, "select * from links").read()) == 2 * COUNT


def test_a_failed_write_leaves_the_old_table(url):
    def blocks():
        yield {"id": np.array(["a"]), "x": np.array([1.0])}
        raise RuntimeError("in the middle")

    write_table(url, "kept", [{"id": np.array(["old"]), "x": np.array([0.0])}], "replace")
    with pytest.raises(Exception, match="in the middle"):
        write_table(url, "kept", blocks(), "replace")
    assert Query(url, "select * from kept").read().column("id") == ["old"]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("sqlite:///no_such_file.db", "no_such_file.db does not exist; check the path"),
        ("sqlite://bank.db", r"names no file; write sqlite:///FILE, with three slashes"),
        ("mysql://host/db", "is not a database that can be read; write sqlite:///FILE"),
        (
            "postgresql://ann:secret@127.0.0.1:1/x",
            "postgresql://ann@127.0.0.1:1/x: the nodes query",
        ),
    ],
)
def test_wrong_addresses(address, message, tmp_path):
    done = dcgst("fit", address, "--nodes", NODES, "--edges", EDGES, "-o", tmp_path / "run")
    assert done.code == 2
    assert message in done.err
    assert "secret" not in done.err


def test_queries_belong_to_databases(tmp_path):
    done = dcgst("fit", "nodes.csv", "--nodes", NODES, "-o", tmp_path / "run")
    assert done.code == 2
    assert "--nodes and --edges are queries of a database, but nodes.csv is none" in done.err


def test_a_fit_in_python(sqlite_url, tmp_path):
    run = fit(read(Query(sqlite_url, NODES), Query(sqlite_url, EDGES)), tmp_path / "run", EM())
    run.prediction_table.write_database(sqlite_url, "by_python")
    assert len(Query(sqlite_url, "select * from by_python").read()) == COUNT


def test_rows_are_appended_by_the_names_of_columns(url):
    first = {"id": np.array(["a"]), "p(x)": np.array([0.1]), "p(y)": np.array([0.9])}
    write_table(url, "scores", [first], "replace")
    second = {"id": np.array(["b"]), "p(y)": np.array([0.8]), "p(x)": np.array([0.2])}
    write_table(url, "scores", [second], "append")
    found = Query(url, "select * from scores order by id").read()
    assert [float(text) for text in found.column("p(x)")] == [0.1, 0.2]


ADDRESSES = [
    "postgresql://db/bank?user=a&password=secret",
    "postgresql://a:sec/ret#1@db:5432/bank",
    "postgresql://a:secret@db/bank?sslmode=require",
    "postgresql://db/bank?application_name=a@b&password=secret",
    "postgresql://a:sec%ret@db/bank",
    "postgresql://a:sec@ret@db/bank",
    "POSTGRESQL://a:secret@db/bank",
    "postgresql+psycopg://a:secret@db/bank",
    "mysql://a:secret@db/bank",
    "postgres://:secret@db/bank",
    " postgresql://a:secret@db/bank",
    "postgresql://a:secret@[::1]:5432/bank",
    "postgresql://db/bank?sslpassword=secret",
    "postgresql://a:secret@",
    "postgresql://[a:secret@db",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_passwords_are_not_printed(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "sec" not in without_passwords(f"cannot read {address!r}: it failed at {address}")
    queries = ("--nodes", "select 1", "--edges", "select 1")
    for command in (
        ("fit", address, *queries, "-o", "run"),
        ("--json-logs", "fit", address, *queries, "-o", "run"),
        ("diagnose", address, *queries),
        ("config", "fit", address, *queries),
        ("config", "--save", "run.toml", "fit", address, *queries),
    ):
        done = dcgst(*command)
        assert "sec" not in done.words, command
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"sec" not in path.read_bytes(), path


def test_queries_need_an_address(sqlite_url, tmp_path):
    fit(read(Query(sqlite_url, NODES), Query(sqlite_url, EDGES)), tmp_path / "run", EM())
    done = dcgst("predict", tmp_path / "run", "--nodes", NODES, "--edges", EDGES)
    assert done.code == 2
    assert "name it after the run" in done.err
