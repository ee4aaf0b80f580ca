"""The loop of labeling: ``audit``, ``refit``, labels from tables."""

from __future__ import annotations

import json
import shlex
import shutil

import pytest

from tests.cli.helpers import dcgst, read_table, write_table


def fill_in(path, label="kind", rows=None):
    """Write true classes into a table: thirty nodes of each, in the order of the ids."""
    table = read_table(path.read_text())
    for row in table[:rows]:
        row[label] = "abc"[int(row["id"][1:]) // 30]
    write_table(path, list(table[0]), [list(row.values()) for row in table])
    return path


@pytest.fixture
def audit(run_folder, tmp_path):
    path = tmp_path / "audit.csv"
    assert dcgst("audit", run_folder, "-n", 24, "-o", path).code == 0
    return path


def test_audit_writes_the_columns_of_the_nodes_and_no_prediction(run_folder, tmp_path, tables):
    path = tmp_path / "audit.csv"
    done = dcgst("audit", run_folder, "-n", 5, "-o", path)
    assert done.code == 0, done.err
    assert f"5 randomly chosen nodes: {path}" in done.out
    assert "Fill in the column 'kind'" in done.words
    assert f"dcgst refit {run_folder} --audit {path} -o {run_folder}-2" in done.words
    rows = read_table(path.read_text())
    assert list(rows[0]) == ["id", "kind", "chosen", "w", "x1", "x2", "x3"]
    nodes = {row["id"]: row for row in read_table((tables / "nodes.csv").read_text())}
    for row in rows:
        assert row == {**nodes[row["id"]], "kind": "", "chosen": "random"}
        assert nodes[row["id"]]["kind"] == ""


def test_audit_shows_predictions_on_request(run_folder, tmp_path):
    path = tmp_path / "audit.csv"
    dcgst("audit", run_folder, "-n", 3, "-o", path, "--show-predictions", "--seed", 3)
    predictions = read_table((run_folder / "predictions.csv").read_text())
    class_of = {row["id"]: row["class"] for row in predictions}
    for row in read_table(path.read_text()):
        assert row["predicted"] == class_of[row["id"]]


def test_audit_does_not_replace_a_file(run_folder, audit):
    before = audit.read_text()
    done = dcgst("audit", run_folder, "-o", audit)
    assert done.code == 2
    assert "exists; choose another file with -o" in done.err
    assert audit.read_text() == before


@pytest.mark.parametrize("verb", ["audit", "suggest", "label"])
def test_tables_to_fill_in_are_csv_files(run_folder, tmp_path, verb):
    done = dcgst(verb, run_folder, "-o", tmp_path / "table.parquet")
    assert done.code == 2
    assert "choose a name that ends with .csv" in done.err
    assert not (tmp_path / "table.parquet").exists()


def test_the_next_command_is_quoted_and_names_a_new_folder(run_folder, tmp_path):
    folder = tmp_path / "my run"
    shutil.copytree(run_folder, folder)
    (tmp_path / "my run-2").mkdir()
    done = dcgst("audit", folder, "-n", 3, "-o", tmp_path / "my audit.csv")
    command = shlex.split(done.out.split("Next: ")[1])
    assert command == [
        "dcgst", "refit", str(folder), "--audit", str(tmp_path / "my audit.csv"),
        "-o", str(tmp_path / "my run-3"),
    ]  # fmt: skip


def test_refit_uses_an_audit_and_leads_with_the_estimate(run_folder, audit, tmp_path):
    fill_in(audit, rows=20)
    done = dcgst("refit", run_folder, "--audit", audit, "-o", tmp_path / "second")
    assert done.code == 0, done.err
    assert "of the predictions are right, estimated from 20 randomly chosen nodes." in done.words
    assert "share (95% interval)" in done.out
    assert f"dcgst compare {run_folder} {tmp_path / 'second'}" in done.words
    shown = json.loads(
        dcgst("refit", run_folder, "--audit", audit, "-o", tmp_path / "second", "--resume",
              "--json", "--no-report").out
    )  # fmt: skip
    assert shown["estimate"]["accuracy"]["labels"] == 20
    assert set(shown["estimate"]["shares"]) == {"a", "b", "c"}
    assert shown["given"] == 32


def test_refit_takes_method_and_settings_from_the_run(run_folder, tmp_path, tables):
    more = write_table(tmp_path / "more.csv", ["id", "kind"], [["n020", "a"], ["n080", "c"]])
    done = dcgst("refit", run_folder, "--labels", more, "--set", "hidden=16",
                 "-o", tmp_path / "second", "--no-report")  # fmt: skip
    assert done.code == 0, done.err
    info = json.loads((tmp_path / "second" / "run.json").read_text())
    before = json.loads((run_folder / "run.json").read_text())
    assert info["settings"] == {**before["settings"], "hidden": 16}
    rows = read_table((tmp_path / "second" / "predictions.csv").read_text())
    given = {row["id"]: row["class"] for row in rows if row["source"] == "given"}
    assert given.items() >= {"n020": "a", "n080": "c"}.items()
    assert len(given) == 14


def test_refit_without_anything_new_is_refused(run_folder, tmp_path):
    done = dcgst("refit", run_folder, "-o", tmp_path / "second")
    assert done.code == 2
    assert "nothing has changed" in done.err


def test_the_device_may_be_a_setting(run_folder, tmp_path):
    done = dcgst("refit", run_folder, "-o", tmp_path / "second", "--set", "device=cpu")
    assert done.code == 0, done.err
    info = json.loads((tmp_path / "second" / "run.json").read_text())
    assert info["settings"]["device"] == "cpu"


def test_refit_needs_another_folder(run_folder):
    done = dcgst("refit", run_folder, "-o", run_folder, "--overwrite")
    assert done.code == 2
    assert "needs another folder" in done.err


def test_fit_takes_labels_and_audits(tables, tmp_path):
    more = write_table(tmp_path / "more.csv", ["id", "kind"], [["n020", "b"]])
    rows = [[f"n{i:03d}", "abc"[i // 30]] for i in range(25, 85, 3)]
    audit = write_table(tmp_path / "audit.csv", ["id", "kind"], rows)
    done = dcgst("fit", tables / "nodes.csv", tables / "edges.csv", "--label", "kind",
                 "--method", "em", "--labels", more, "--audit", audit, "-o", tmp_path / "run",
                 "--json")  # fmt: skip
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["given"] == 31  # two nodes of the audit had a label already
    assert found["estimate"]["accuracy"]["labels"] == 20


def test_replaced_labels_are_printed(run_folder, tmp_path):
    more = write_table(tmp_path / "more.csv", ["id", "kind"], [["n000", "b"]])
    done = dcgst("refit", run_folder, "--labels", more, "-o", tmp_path / "second", "--no-report")
    assert "more.csv: 1 label; 1 replace another class (n000: a → b)" in done.err


def test_the_node_table_needs_no_label_column_if_labels_come_from_another(tables, tmp_path):
    rows = read_table((tables / "nodes.csv").read_text())
    nodes = write_table(
        tmp_path / "n.csv", ["id", "w", "x1"], [[r["id"], r["w"], r["x1"]] for r in rows]
    )
    labels = write_table(tmp_path / "l.csv", ["id", "class"], [["n001", "a"], ["n080", "c"]])
    done = dcgst("fit", nodes, tables / "edges.csv", "--method", "em", "--labels", labels,
                 "-o", tmp_path / "run", "--json")  # fmt: skip
    assert done.code == 0, done.err
    assert json.loads(done.out)["classes"] == ["a", "c"]


def test_labels_with_an_unknown_id_leave_no_folder(run_folder, tmp_path):
    more = write_table(tmp_path / "more.csv", ["id", "kind"], [["n020", "a"], ["nobody", "c"]])
    done = dcgst("refit", run_folder, "--labels", more, "-o", tmp_path / "second")
    assert done.code == 2
    assert "more.csv, line 3: no node of the graph has the id 'nobody'" in done.err
    assert not (tmp_path / "second").exists()


def test_suggest_writes_a_table_to_fill_in_with_random_nodes_in_turn(run_folder, tmp_path):
    path = tmp_path / "next.csv"
    done = dcgst("suggest", run_folder, "-n", 4, "--audit", 3, "-o", path)
    assert done.code == 0, done.err
    assert f"dcgst refit {run_folder} --labels {path} -o {run_folder}-2" in done.words
    rows = read_table(path.read_text())
    columns = ["id", "kind", "chosen", "predicted", "probability", "covers", "reason", "w"]
    assert list(rows[0])[:8] == columns
    chosen = [row["chosen"] for row in rows]
    assert chosen.count("random") == 3
    assert chosen[:4] == ["suggested", "random", "suggested", "random"]
    for row in rows:
        assert (row["predicted"] == "") == (row["chosen"] == "random")
        assert row["kind"] == ""
    assert dcgst("suggest", run_folder, "-o", path).code == 2, "a filled-in table is not replaced"


def test_a_filled_in_table_of_suggestions_is_labels_and_audit(run_folder, tmp_path):
    path = tmp_path / "next.csv"
    dcgst("suggest", run_folder, "-n", 4, "--audit", 5, "-o", path)
    fill_in(path)
    done = dcgst("refit", run_folder, "--labels", path, "-o", tmp_path / "second", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["estimate"]["accuracy"]["labels"] == 5
    assert found["given"] == 12 + len(read_table(path.read_text()))


def test_suggest_for_a_class(run_folder):
    found = json.loads(dcgst("suggest", run_folder, "-n", 3, "--class", "b", "--top", "--json").out)
    assert [node["predicted"] for node in found["nodes"]] == ["b"] * 3
    assert all(node["reason"] for node in found["nodes"])
    done = dcgst("suggest", run_folder, "--class", "z")
    assert done.code == 2
    assert "unknown class of the run 'z'" in done.err


def test_compare_prints_what_changed_and_whether_it_helped(run_folder, audit, tmp_path):
    fill_in(audit)
    second, page = tmp_path / "second", tmp_path / "page.html"
    assert dcgst("refit", run_folder, "--audit", audit, "-o", second, "--no-report").code == 0
    done = dcgst("compare", run_folder, second, "-o", page)
    assert done.code == 0, done.err
    assert "On 24 randomly chosen nodes" in done.words
    assert "given labels 12 36" in done.words
    assert "not measured" in done.out
    assert page.read_text().startswith("<!doctype html>")
    found = json.loads(dcgst("compare", run_folder, second, "--json").out)
    assert found["audit"]["nodes"] == 24
    assert found["compared"] == 54


def test_a_class_that_may_be_misspelled_is_a_warning_also_if_quiet(run_folder, tmp_path):
    labels = write_table(tmp_path / "more.csv", ["id", "kind"], [["n020", "apple"]])
    first = dcgst("refit", run_folder, "--labels", labels, "-o", tmp_path / "one", "--quiet")
    assert "Warning" not in first.err
    labels = write_table(tmp_path / "more.csv", ["id", "kind"], [["n021", "aple"]])
    done = dcgst("refit", tmp_path / "one", "--labels", labels, "-o", tmp_path / "two", "--quiet")
    assert "Warning: more.csv, line 2: 'aple' is a new class; did you mean 'apple'?" in done.err


def test_columns_of_a_label_table_are_those_of_the_node_table(run_folder, tmp_path):
    labels = write_table(tmp_path / "more.csv", ["who", "kind"], [["n020", "a"]])
    done = dcgst("refit", run_folder, "--labels", labels, "-o", tmp_path / "one")
    assert done.code == 2
    assert "cannot guess the id column" in done.words
    assert "call it 'id' as in the node table" in done.words


def test_refit_takes_known_class_shares(run_folder, tmp_path):
    done = dcgst("refit", run_folder, "--prior", "a=0.5", "-o", tmp_path / "one", "--no-report")
    assert done.code == 0, done.err
    info = json.loads((tmp_path / "one" / "run.json").read_text())
    assert info["settings"]["prior"] == {"a": 0.5}
