"""``dcgst import``: a store that other commands take, messages, JSON, exit codes."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.cli.helpers import dcgst


@pytest.fixture
def files(tables, tmp_path):
    """Copies of the node table and the edge table, and the name of a store."""
    copies = []
    for name in ("nodes.csv", "edges.csv"):
        copies.append(tmp_path / name)
        copies[-1].write_text((tables / name).read_text())
    return *copies, tmp_path / "g.store"


def test_a_store_can_be_fitted_and_diagnosed(files, tmp_path):
    nodes, edges, store = files
    done = dcgst("import", nodes, edges, "-o", store, "--label", "kind")
    assert done.code == 0, done.err
    assert "90 nodes, " in done.err
    assert f"Written: {store}" in done.out
    assert f"Next: dcgst fit {store}" in done.out
    options = ["--method", "em", "--no-report"]
    own = dcgst("fit", store, *options, "-o", tmp_path / "a")
    assert own.code == 0, own.err
    dcgst("fit", nodes, edges, "--label", "kind", *options, "-o", tmp_path / "b")
    expected = (tmp_path / "b" / "predictions.csv").read_text().splitlines()
    assert sorted(dcgst("predict", tmp_path / "a").out.splitlines()) == sorted(expected)
    assert dcgst("diagnose", store).code == 0


def test_json(files):
    nodes, edges, store = files
    done = dcgst("import", nodes, edges, "-o", store, "--label", "kind", "--json")
    record = json.loads(done.out)
    assert record["store"] == str(store)
    assert (record["nodes"], record["features"], record["labels"]) == (90, 4, 12)
    assert record["classes"] == ["a", "b", "c"]
    assert done.err == ""


def test_options_of_columns(files):
    nodes, edges, store = files
    dcgst("import", nodes, edges, "-o", store, "--label", "kind", "--ignore", "w,x1")
    description = json.loads((store / "store.json").read_text())
    assert description["columns"]["label"] == "kind"
    assert [column["name"] for column in description["encoder"]] == ["x2", "x3"]


def test_bad_input_has_exit_code_2(files):
    nodes, edges, store = files
    edges.write_text("source,target\nn001,n002\nn001,nobody\n")
    command = ["import", nodes, edges, "-o", store, "--label", "kind"]
    done = dcgst(*command)
    assert done.code == 2
    assert f"{edges}, row 2: no node has the id 'nobody'" in done.err
    again = dcgst("fit", store)
    assert again.code == 2
    assert f"{store} is not complete; run the same `dcgst import` again" in again.err
    assert dcgst(*command, "--drop-unknown").code == 0
    assert dcgst(*command, "--drop-unknown").code == 2, "the store exists"
    assert dcgst(*command, "--drop-unknown", "--overwrite").code == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("Query interrupted")])
def test_after_an_interruption_the_same_command_continues(files, monkeypatch, error):
    def stop(*_arguments, **_options):
        raise error

    nodes, edges, store = files
    monkeypatch.setattr("dcgst.cli.import_.import_tables", stop)
    done = dcgst("import", nodes, edges, "-o", store)
    assert done.code == 130
    assert "Run the same command again to continue" in done.err


@pytest.mark.parametrize("make", [False, True])
def test_a_missing_store_is_named(tmp_path, make):
    store = tmp_path / ("folder" if make else "no.store")
    if make:
        store.mkdir()
    done = dcgst("diagnose", store)
    assert done.code == 2
    what = "is a folder, but not a store" if make else "does not exist"
    assert f"{what}; make a store with dcgst import" in " ".join(done.err.split())


def test_a_failed_overwrite_keeps_the_old_store(files, tmp_path):
    nodes, edges, store = files
    command = ("import", nodes, edges, "-o", store, "--label", "kind")
    assert dcgst(*command).code == 0
    before = (store / "store.json").read_text()
    complete = edges.read_text()
    edges.write_text(complete + "nobody,nothing\n")
    done = dcgst(*command, "--overwrite")
    assert done.code == 2
    assert "nobody" in done.err
    assert (store / "store.json").read_text() == before
    assert dcgst("diagnose", store).code == 0
    edges.write_text("\n".join(complete.splitlines()[:-5]) + "\n")
    assert dcgst(*command, "--overwrite").code == 0
    assert (store / "store.json").read_text() != before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "g.store", "nodes.csv"]


def test_without_a_label_column_the_next_step_needs_labels(files, tmp_path):
    nodes, edges, store = files
    done = dcgst("import", nodes, edges, "-o", store, "--quiet")
    assert done.code == 0, done.err
    assert "Warning: no label column was found" in done.err
    assert f"Next: dcgst fit {store} --labels FILE" in done.out


def test_a_missing_file_is_named():
    done = dcgst("fit", "g.stroe")
    assert done.code == 2
    assert "g.stroe does not exist; check the path" in done.err


def test_an_overwrite_that_was_interrupted_at_the_end(files, tmp_path):
    """Between the renames, the old store is set aside; the next import finds it."""
    nodes, edges, store = files
    command = ("import", nodes, edges, "-o", store, "--label", "kind")
    assert dcgst(*command).code == 0
    store.rename(tmp_path / ".g.store.old")
    done = dcgst(*command)
    assert "exists already; use --overwrite" in done.err
    shutil.copytree(store, tmp_path / ".g.store.new")
    assert dcgst(*command, "--overwrite").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "g.store", "nodes.csv"]


def test_like_a_run(files, tmp_path):
    nodes, edges, store = files
    fitted = dcgst("fit", nodes, edges, "--label", "kind", "--method", "em", "-o", tmp_path / "run")
    assert fitted.code == 0, fitted.err
    refused = dcgst("import", nodes, edges, "--like", tmp_path / "run", "--label", "kind")
    assert refused.code == 2
    assert "remove the other column options" in refused.err
    lines = nodes.read_text().splitlines()
    nodes.write_text("\n".join(lines[:60]))
    options = ("--like", tmp_path / "run", "--drop-unknown", "-o", store)
    done = dcgst("import", nodes, edges, *options)
    assert done.code == 0, done.err
    assert f"Next: dcgst predict {tmp_path / 'run'} {store}" in done.out
    found = dcgst("predict", tmp_path / "run", store, "-o", tmp_path / "a.csv")
    assert found.code == 0, found.err
    expected = dcgst("predict", tmp_path / "run", nodes, edges, "--drop-unknown")
    assert sorted((tmp_path / "a.csv").read_text().splitlines()) == sorted(
        expected.out.splitlines()
    )


def test_rows_of_messages_are_those_of_the_file(tmp_path):
    """Also if the column is learned from a sample of the rows."""
    rows = [f"{i},{i % 5}" for i in range(300)]
    rows[136] = "136,many"
    (tmp_path / "nodes.csv").write_text("\n".join(["id,size", *rows]))
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n")
    paths = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    wrong = dcgst("import", *paths, "-o", tmp_path / "g.store", "--kind", "size=date")
    assert wrong.code == 2, wrong.err
    done = dcgst("import", *paths, "-o", tmp_path / "g.store", "--kind", "size=number")
    assert "in row 137" in done.err + done.out, "the refused import is replaced"


def test_a_batch_without_add_is_recognized(files, tmp_path):
    nodes, edges, _ = files
    dcgst("fit", nodes, edges, "--label", "kind", "--method", "em", "-o", tmp_path / "run")
    header, first, *_ = nodes.read_text().splitlines()
    (tmp_path / "new.csv").write_text(f"{header}\nnew{first[first.index(',') :]}\n")
    ends = edges.read_text().splitlines()[0]
    known = first.split(",")[0]
    (tmp_path / "links.csv").write_text(f"{ends}\nnew,{known}{',1' * (ends.count(',') - 1)}\n")
    done = dcgst("predict", tmp_path / "run", tmp_path / "new.csv", tmp_path / "links.csv")
    assert done.code == 2
    assert "if the tables have new nodes only, use --add" in done.err


def test_a_delimiter_of_two_characters_is_an_error(tmp_path):
    (tmp_path / "n.csv").write_text("id,label,x\na,p,1\nb,q,2\n")
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    tables = tmp_path / "n.csv", tmp_path / "e.csv"
    done = dcgst("import", *tables, "--delimiter", "ab", "-o", tmp_path / "s.store")
    assert (done.code, "the delimiter must be one character" in done.words) == (2, True)
