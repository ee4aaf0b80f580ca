"""Verbs that open a run folder: ``predict``, ``evaluate``, ``explain``, ``suggest``, ``report``."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from tests.cli.conftest import METHOD
from tests.cli.helpers import dcgst, read_table, write_table


def test_predict_without_tables_prints_the_stored_predictions(run_folder):
    assert dcgst("predict", run_folder).out == (run_folder / "predictions.csv").read_text()


def test_predict_prints_json(run_folder):
    lines = dcgst("predict", run_folder, "--json").out.splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["id"] for row in rows] == [f"n{i:03d}" for i in range(90)]
    assert rows[0].keys() >= {"class", "probability", "margin", "source", "stage", "agreement"}


def test_predict_uses_labels_of_a_grown_graph(run_folder, tables, tmp_path):
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text((tables / "nodes.csv").read_text() + "new,0.1,0.2,0.3,0.4,b\n")
    edges.write_text((tables / "edges.csv").read_text() + "new,n003\n")
    unused = dcgst("predict", run_folder, nodes, edges, "-o", tmp_path / "out.csv")
    assert "12 known labels used. 1 labels in the input are not used" in unused.words
    done = dcgst("predict", run_folder, nodes, edges, "-o", tmp_path / "out.csv", "--use-labels")
    assert done.code == 0, done.err
    assert "91 nodes, 90 of them also in the run (same id); 13 known labels used." in done.words
    assert f"91 predictions: {tmp_path / 'out.csv'}" in done.words
    last = read_table((tmp_path / "out.csv").read_text())[-1]
    assert (last["id"], last["class"], last["source"]) == ("new", "b", "given")


def test_predict_on_the_tables_of_the_fit_refers_to_its_predictions(run_folder, tables):
    done = dcgst("predict", run_folder, tables / "nodes.csv", tables / "edges.csv")
    assert (done.code, len(read_table(done.out))) == (0, 90)
    assert f"its predictions are also in {run_folder}" in done.words


def test_predict_names_a_missing_column(run_folder, tables, tmp_path):
    nodes = tmp_path / "nodes.csv"
    nodes.write_text((tables / "nodes.csv").read_text().replace("id,w,", "id,v,"))
    done = dcgst("predict", run_folder, nodes, tables / "edges.csv")
    assert done.code == 2
    assert "'w'" in done.err


def test_predict_drops_unknown_edges_on_request(run_folder, tables, tmp_path):
    edges = tmp_path / "edges.csv"
    edges.write_text((tables / "edges.csv").read_text() + "ghost,n003\n")
    assert dcgst("predict", run_folder, tables / "nodes.csv", edges).code == 2
    done = dcgst("predict", run_folder, tables / "nodes.csv", edges, "--drop-unknown")
    assert len(read_table(done.out)) == 90


def test_explain_prints_the_summary_and_tables(run_folder):
    done = dcgst("explain", run_folder, "n050")
    assert done.code == 0, done.err
    assert done.out.startswith("n050\nIt is ")
    assert "Neighbors" in done.out
    assert "Labels nearby" in done.out


def test_explain_prints_candidacies(run_folder):
    pseudo = next(
        row["id"]
        for row in read_table((run_folder / "predictions.csv").read_text())
        if row["source"] == "pseudo"
    )
    found = json.loads(dcgst("explain", run_folder, pseudo, "--json").out)
    assert (found["id"], found["source"]) == (pseudo, "pseudo")
    assert any(candidacy["selected"] for candidacy in found["candidacies"])
    shown = dcgst("explain", run_folder, pseudo)
    assert "replica stage" in shown.words
    assert "It first got a pseudo-label" in shown.out


def test_explain_names_an_unknown_id(run_folder):
    done = dcgst("explain", run_folder, "n999")
    assert (done.code, done.out) == (2, "")
    assert "no node has the id 'n999'" in done.err


def test_suggest_prints_json(run_folder):
    found = json.loads(dcgst("suggest", run_folder, "-n", 4, "--json").out)
    assert len({node["id"] for node in found["nodes"]}) == 4
    assert found["nodes"][0].keys() == {"id", "predicted", "probability", "covers", "reason"}
    assert found["covered_after"] > found["covered_before"]


def test_suggest_prints_a_table_and_the_effect(run_folder):
    done = dcgst("suggest", run_folder, "-n", 3)
    assert "predicted class" in done.out
    assert "of the uncertainty is covered by similar labeled nodes" in done.words
    assert sum(line.strip().startswith("n0") for line in done.out.splitlines()) == 3


def test_suggest_writes_a_file(run_folder, tmp_path):
    done = dcgst("suggest", run_folder, "-n", 3, "-o", tmp_path / "next.csv")
    assert f"3 nodes: {tmp_path / 'next.csv'}" in done.words
    rows = read_table((tmp_path / "next.csv").read_text())
    printed = json.loads(dcgst("suggest", run_folder, "-n", 3, "--json").out)
    assert [row["id"] for row in rows] == [node["id"] for node in printed["nodes"]]


def test_suggest_names_an_impossible_number(run_folder):
    done = dcgst("suggest", run_folder, "-n", 79)
    assert done.code == 2
    assert "between 1 and 78 nodes can be suggested, got 79" in done.err


def test_report_writes_the_page_where_requested(run_folder, tmp_path):
    page = tmp_path / "new" / "page.html"
    done = dcgst("report", run_folder, "-o", page)
    assert (done.code, done.words) == (0, str(page))
    assert page.read_text() == (run_folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "-o", "."], "it is a folder, not a file"),
        (["predict", "-o", "file"], "choose a name that ends with .csv, .parquet or .jsonl"),
        (["suggest", "--json", "-o", "file"], "choose one"),
        (["report", "-o", "."], "it is a folder, not a file"),
        (["report", "-o", "taken/page.html"], "taken is not a writable folder"),
    ],
)
def test_output_that_cannot_be_written_exits_with_2(
    run_folder, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    verb, *options = arguments
    done = dcgst(verb, run_folder, *options)
    assert done.code == 2, done.err
    assert message in done.words
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize("verb", ["predict", "report", "suggest", "explain"])
def test_a_folder_without_a_run_exits_with_2(verb, tmp_path):
    done = dcgst(verb, tmp_path, *(["x"] if verb == "explain" else []))
    assert done.code == 2
    assert "is not a run folder" in done.err


@pytest.mark.parametrize("verb", ["predict", "suggest", "report"])
@pytest.mark.parametrize("name", ["run.json", "graph.npz", "predictions.csv"])
def test_files_of_the_run_are_not_replaced(run_folder, verb, name):
    before = (run_folder / name).read_bytes()
    done = dcgst(verb, run_folder, "-o", run_folder / name)
    assert (done.code, "which is a run folder or a store" in done.words) == (2, True)
    assert (run_folder / name).read_bytes() == before


def test_inputs_are_not_replaced(run_folder, tables):
    nodes, edges = tables / "nodes.csv", tables / "edges.csv"
    done = dcgst("predict", run_folder, nodes, edges, "-o", nodes)
    assert (done.code, "is an input of this command" in done.err) == (2, True)


def test_devices_are_not_replaced_and_links_are_followed(run_folder, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert dcgst("predict", run_folder, "-o", tmp_path / "pipe").code == 2
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    assert dcgst("predict", run_folder, "-o", tmp_path / "link.csv").code == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("id,class")


def test_a_complete_run_is_not_resumed_with_other_quoting(run_folder, tables):
    options = ("--replicas", 2, *METHOD, "--resume")
    fit = ("fit", tables / "nodes.csv", tables / "edges.csv", "--label", "kind", "-o", run_folder)
    assert dcgst(*fit, *options).code == 0
    done = dcgst(*fit, *options, "--spreadsheet")
    assert (done.code, "was written without --spreadsheet" in done.words) == (2, True)


@pytest.fixture
def truth(tables):
    """Classes of all nodes: thirty of each, in the order of the ids."""
    rows = [[f"n{i:03d}", "abc"[i // 30]] for i in range(90)]
    return write_table(tables / "truth.csv", ["id", "kind"], [*rows, ["ghost", "a"]])


def test_evaluate_prints_intervals_classes_and_errors(run_folder, truth):
    done = dcgst("evaluate", run_folder, truth)
    assert done.code == 0, done.err
    assert "78 nodes evaluated. 12 were given to the fit and are left out." in done.words
    assert "1 id of the table is not in the run: ghost." in done.words
    for text in ("accuracy", "balanced accuracy", "macro F1", "calibration error (ECE)"):
        assert text in done.out
    assert "Most frequent errors:" in done.out


def test_evaluate_prints_json(run_folder, truth):
    found = json.loads(dcgst("evaluate", run_folder, truth, "--json").out)
    assert found["nodes"] == 78
    assert found["accuracy"]["low"] <= found["accuracy"]["value"] <= found["accuracy"]["high"]
    assert np.sum(found["confusion"]) == 78
    assert found["unknown"] == ["ghost"]


def test_evaluate_warns_of_unknown_classes(run_folder, tmp_path):
    path = write_table(tmp_path / "t.csv", ["id", "label"], [["n050", "a"], ["n051", "other"]])
    done = dcgst("evaluate", run_folder, path)
    assert "the run does not know the class 'other'; its node counts as wrong" in done.words
    done = dcgst("evaluate", run_folder, path, "--label", "kind")
    assert (done.code, done.out) == (2, "")
    assert "no column 'kind'" in done.err
