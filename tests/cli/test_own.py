"""One's own tables on the command line: from CSV to predictions, and every mistake on the way."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from dcgst import InputError, synthetic
from dcgst.cli.app import app
from tests.cli.test_cli import dcgst
from tests.test_runs import hidden_labels

QUICK = ["--set", "epochs=5", "--set", "hidden=8", "--replicas", "1", "--quiet"]
EXAMPLES = int(os.environ.get("DCGST_EXAMPLES", "120"))
"""Malformed tables to try; once in a while try thousands."""

FAST = ["--method", "gcn", *QUICK]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A graph as people have it: nodes.csv and edges.csv."""
    folder = tmp_path_factory.mktemp("tables")
    whole = synthetic(90, 3, features=4, seed=1)
    graph = hidden_labels(whole)
    rows = [
        [f"n{i:03d}", *np.round(whole.features[i], 3), "" if label < 0 else "abc"[label]]
        for i, label in enumerate(graph.labels)
    ]
    write(folder / "nodes.csv", ["id", "w", "x1", "x2", "x3", "kind"], rows)
    coo = graph.adjacency.tocoo()
    ends = [[f"n{a:03d}", f"n{b:03d}"] for a, b in zip(coo.row, coo.col, strict=True) if a < b]
    write(folder / "edges.csv", ["source", "target"], ends)
    return folder


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


@pytest.fixture(scope="module")
def run(tables):
    done = dcgst("fit", str(tables / "nodes.csv"), str(tables / "edges.csv"), "--label", "kind",
                 "-o", str(tables / "run"), "--replicas", "2", "--set", "epochs=10",
                 "--set", "max_stages=3", "--set", "hidden=16")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "id: column 'id'" in done.stderr
    assert "90 nodes" in done.stderr
    assert "Report:" in done.stdout
    return tables / "run"


def test_fit_leaves_predictions_and_a_report(run):
    rows = list(csv.DictReader(io.StringIO((run / "predictions.csv").read_text())))
    assert len(rows) == 90
    assert rows[0]["id"] == "n000"
    assert {row["class"] for row in rows} <= set("abc")
    assert (run / "report.html").stat().st_size > 5000


def test_predict_on_the_same_on_a_grown_graph_and_with_new_labels(run, tables, tmp_path):
    same = dcgst("predict", str(run))
    assert same.stdout == (run / "predictions.csv").read_text()
    nodes = (tables / "nodes.csv").read_text() + "new,0.1,0.2,0.3,0.4,b\n"
    (tmp_path / "nodes.csv").write_text(nodes)
    (tmp_path / "edges.csv").write_text((tables / "edges.csv").read_text() + "new,n003\n")
    grown = dcgst("predict", str(run), str(tmp_path / "nodes.csv"), str(tmp_path / "edges.csv"),
                  "-o", str(tmp_path / "out.csv"))  # fmt: skip
    assert grown.returncode == 0, grown.stderr
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert (rows[-1]["id"], rows[-1]["class"], rows[-1]["source"]) == ("new", "b", "given")
    (tmp_path / "nodes.csv").write_text(nodes.replace("id,w,", "id,v,"))
    other = dcgst("predict", str(run), str(tmp_path / "nodes.csv"), str(tmp_path / "edges.csv"))
    assert other.returncode == 2
    assert "lacks the column 'w'" in other.stderr


def test_explain_suggest_report_and_diagnose(run, tables, tmp_path):
    told = dcgst("explain", str(run), "n050")
    assert told.returncode == 0, told.stderr
    assert "with probability" in told.stdout
    known = json.loads(dcgst("explain", str(run), "n050", "--json").stdout)
    assert known["id"] == "n050"
    nobody = dcgst("explain", str(run), "n999")
    assert (nobody.returncode, "no node has the id" in nobody.stderr) == (2, True)
    found = json.loads(dcgst("suggest", str(run), "-n", "4", "--json").stdout)
    assert len({node["id"] for node in found["nodes"]}) == 4
    assert found["covered_after"] > found["covered_before"]
    assert "lies near a label" in dcgst("suggest", str(run), "-n", "3").stdout
    page = dcgst("report", str(run), "-o", str(tmp_path / "page.html"))
    assert page.returncode == 0
    assert (tmp_path / "page.html").exists()
    healthy = dcgst("diagnose", str(tables / "nodes.csv"), str(tables / "edges.csv"),
                    "--label", "kind", "--json")  # fmt: skip
    assert json.loads(healthy.stdout)["labels"] == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv", "edges.csv"], "is not there"),
        (["nodes.csv"], "the table of edges is needed"),
        (["nodes.csv", "edges.csv", "--label", "size"], "unknown column"),
        (["nodes.csv", "edges.csv"], "which column"),
        (["nodes.csv", "edges.csv", "--label", "kind", "--delimiter", ";"], "single column"),
        (
            ["nodes.csv", "edges.csv", "--label", "kind", "--number", "id"],
            "column of ids or labels",
        ),
        (["nodes.csv", "edges.csv", "--label", "id"], "cannot be the label as well"),
        (["nodes.csv", "edges.csv", "--label", "kind", "--set", "epochs"], "name=value"),
        (["nodes.csv", "edges.csv", "--label", "kind", "--set", "epoch=1"], "unknown setting"),
        (["nodes.csv", "edges.csv", "--label", "kind", "-o", "nodes.csv"], "cannot be written"),
        (["nodes.csv", "edges.csv", "--label", "kind", "--validate", "2"], "share to validate"),
    ],
)
def test_mistakes_exit_2_and_leave_nothing(tables, tmp_path, arguments, message):
    files = [str(tables / a) if a.endswith(".csv") else a for a in arguments]
    out = [] if "-o" in arguments else ["-o", str(tmp_path / "run")]
    done = dcgst("fit", *files, *FAST, *out)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_output_that_cannot_be_written_exits_2(run, tmp_path):
    for arguments, message in (
        (["predict", str(run), "-o", str(tmp_path)], "it is a folder"),
        (["predict", str(run), "--json", "-o", str(tmp_path / "x")], "choose one"),
        (["report", str(run), "-o", str(tmp_path)], "it is a folder"),
    ):
        done = dcgst(*arguments)
        assert done.returncode == 2, done.stderr
        assert message in done.stderr
    assert list(tmp_path.iterdir()) == []
    deep = dcgst("report", str(run), "-o", str(tmp_path / "a" / "b.html"))
    assert deep.returncode == 0, deep.stderr


def test_names_that_look_like_markup(tmp_path):
    rows = [[f"[{i}]", i % 3, ["[/a]", "[red]"][i % 2] if i < 8 else ""] for i in range(20)]
    write(tmp_path / "n.csv", ["id", "size", "label"], rows)
    write(tmp_path / "e.csv", ["source", "target"], [[f"[{i}]", f"[{i + 1}]"] for i in range(19)])
    done = dcgst("fit", str(tmp_path / "n.csv"), str(tmp_path / "e.csv"), *FAST[:-1],
                 "-o", str(tmp_path / "run"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "[/a]" in done.stdout
    assert "[red]" in done.stdout
    for verb in (["suggest", str(tmp_path / "run")], ["explain", str(tmp_path / "run"), "[9]"]):
        told = dcgst(*verb)
        assert told.returncode == 0, told.stderr
        assert "[red]" in told.stdout or "[/a]" in told.stdout


def test_other_folders_are_refused(tmp_path):
    for verb in (["predict"], ["report"], ["suggest"], ["explain"]):
        done = dcgst(*verb, str(tmp_path), *(["x"] if verb == ["explain"] else []))
        assert done.returncode == 2
        assert "is no run folder" in done.stderr


# --- anything at all ---------------------------------------------------------------------------

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


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(nodes=any_table(), edges=any_table())
def test_no_table_ends_in_a_traceback_or_half_a_folder(place, nodes, edges):
    (place / "nodes.csv").write_bytes(nodes)
    (place / "edges.csv").write_bytes(edges)
    check_any(place, place / "nodes.csv", place / "edges.csv")


@settings(max_examples=EXAMPLES // 2, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=st.lists(st.tuples(cells, cells, cells), min_size=2, max_size=12),
    pairs=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=12),
)
def test_nor_does_one_that_is_nearly_right(place, rows, pairs):
    write(place / "n.csv", ["id", "a", "b", "label"], [[i, *row] for i, row in enumerate(rows)])
    write(place / "e.csv", ["source", "target"], pairs)
    check_any(place, place / "n.csv", place / "e.csv")


def check_any(place, nodes, edges):
    """Fit in this process: it works, or says why not and leaves nothing."""
    out = place / "run"
    result = CliRunner().invoke(
        app, ["fit", str(nodes), str(edges), "-o", str(out), *FAST, "--overwrite", "--no-report"]
    )
    if result.exception is None:
        assert (out / "run.json").exists()
        assert not (out / "checkpoint").exists()
        assert not list(out.glob("*.part"))
        shutil.rmtree(out)
    else:
        assert isinstance(result.exception, InputError), repr(result.exception)
    assert not out.exists(), "nothing, or all of it"
