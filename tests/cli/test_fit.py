"""``dcgst fit`` and ``dcgst diagnose`` on a user's own tables."""

from __future__ import annotations

import json

import pytest

from tests.cli.helpers import dcgst, read_table, write_table

FAST = ["--method", "gcn", "--set", "epochs=5", "--set", "hidden=8", "--replicas", "1"]


def test_fit_describes_the_input_and_the_result(fitted, tables):
    assert fitted.code == 0, fitted.err
    assert "90 nodes, " in fitted.err
    assert "12 labels." in fitted.err
    assert "id: column 'id'" in fitted.err
    assert "mean probability" in fitted.out
    assert "Calibration: " in fitted.out
    assert f"Predictions: {tables / 'run' / 'predictions.csv'}" in fitted.out
    assert f"Report: {tables / 'run' / 'report.html'}" in fitted.out


def test_fit_writes_predictions_and_a_report(run_folder):
    rows = read_table((run_folder / "predictions.csv").read_text())
    assert [row["id"] for row in rows] == [f"n{i:03d}" for i in range(90)]
    assert {row["class"] for row in rows} <= set("abc")
    assert "<title>nodes" in (run_folder / "report.html").read_text()


def test_fit_prints_json(tables, tmp_path):
    done = dcgst("fit", tables / "nodes.csv", tables / "edges.csv", "--label", "kind", *FAST,
                 "-o", tmp_path / "run", "--json", "--no-report")  # fmt: skip
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["method"], found["nodes"], found["classes"]) == ("gcn", 90, ["a", "b", "c"])
    assert (found["given"], found["pseudo"], found["predicted"]) == (12, 0, 78)
    assert done.err == ""
    assert not (tmp_path / "run" / "report.html").exists()


def test_a_quiet_fit_prints_no_notes(tables, tmp_path):
    done = dcgst("fit", tables / "nodes.csv", tables / "edges.csv", "--label", "kind", *FAST,
                 "-o", tmp_path / "run", "--quiet", "--no-report")  # fmt: skip
    assert done.err == ""
    assert "Predictions:" in done.out


def test_settings_replicas_seed_and_preset_reach_the_method(tables, tmp_path):
    done = dcgst("fit", tables / "nodes.csv", tables / "edges.csv", "--label", "kind",
                 "--method", "gcn", "--preset", "paper/pubmed", "--set", "epochs=3",
                 "--replicas", 2, "--seed", 5, "-o", tmp_path / "run", "--no-report")  # fmt: skip
    assert done.code == 0, done.err
    settings = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert (settings["lr"], settings["epochs"]) == (0.001, 3)
    assert (settings["replicas"], settings["seed"]) == (2, 5)


@pytest.mark.parametrize(("method", "replicas"), [("lp", 1), ("gcn", 5)])
def test_only_random_methods_have_five_replicas_by_default(tables, tmp_path, method, replicas):
    epochs = ["--set", "epochs=1"] if method == "gcn" else []
    dcgst("fit", tables / "nodes.csv", tables / "edges.csv", "--label", "kind", "--method", method,
          *epochs, "-o", tmp_path / "run", "--no-report")  # fmt: skip
    settings = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert settings["replicas"] == replicas


def test_an_interrupted_fit_says_how_to_resume(tables, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dcgst.cli.fit.fit", interrupt)
    done = dcgst("fit", tables / "nodes.csv", tables / "edges.csv", "--label", "kind", *FAST,
                 "-o", tmp_path / "run", "--quiet")  # fmt: skip
    assert done.code == 130
    assert f"Repeat the command with --resume to continue in {tmp_path / 'run'}" in done.words


def test_resume_and_overwrite_are_passed_on(tables, tmp_path):
    fit = ["fit", tables / "nodes.csv", tables / "edges.csv", "--label", "kind", *FAST,
           "-o", tmp_path / "run", "--no-report"]  # fmt: skip
    assert dcgst(*fit).code == 0
    assert "use --resume to continue it" in dcgst(*fit).err
    assert dcgst(*fit, "--resume").code == 0
    assert "was started with another graph" in dcgst(*fit, "--resume", "--seed", 1).err
    assert dcgst(*fit, "--overwrite", "--seed", 1).code == 0
    assert "choose one" in dcgst(*fit, "--overwrite", "--resume").err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv", "edges.csv"], "does not exist"),
        (["nodes.csv"], "an edge table is required"),
        (["nodes.csv", "edges.csv", "--label", "size"], "has no column 'size'"),
        (["nodes.csv", "edges.csv"], "--label"),
        (["nodes.csv", "edges.csv", "--label", "kind", "--delimiter", ";"], "single column"),
        (
            ["nodes.csv", "edges.csv", "--label", "kind", "--kind", "id=number"],
            "cannot be a feature",
        ),
        (["nodes.csv", "edges.csv", "--label", "id"], "'id'"),
        (["nodes.csv", "edges.csv", "--label", "kind", "--set", "epochs"], "needs name=value"),
        (["nodes.csv", "edges.csv", "--label", "kind", "--set", "epoch=1"], "unknown setting"),
        (["nodes.csv", "edges.csv", "--label", "kind", "--set", "epochs=0"], "at least 1, got 0"),
        (
            ["nodes.csv", "edges.csv", "--label", "kind", "--set", "epochs=x"],
            "must be a whole number",
        ),
        (["nodes.csv", "edges.csv", "--label", "kind", "--preset", "x"], "unknown preset of gcn"),
        (["nodes.csv", "edges.csv", "--label", "kind", "--device", "x"], "device"),
        (["nodes.csv", "edges.csv", "--label", "kind", "-o", "nodes.csv"], "cannot be written"),
        (["nodes.csv", "edges.csv", "--label", "kind", "--validate", "2"], "validation share"),
    ],
)
def test_mistakes_exit_with_2_and_leave_no_folder(tables, tmp_path, arguments, message):
    files = [tables / a if a.endswith(".csv") else a for a in arguments]
    out = [] if "-o" in arguments else ["-o", tmp_path / "run"]
    done = dcgst("fit", *FAST, *files, *out, "--quiet")
    assert done.code == 2
    assert message in done.words
    assert "Traceback" not in done.err
    assert not (tmp_path / "run").exists()


def test_the_last_of_two_equal_settings_counts(tables, tmp_path):
    done = dcgst("fit", tables / "nodes.csv", tables / "edges.csv", "--label", "kind", *FAST,
                 "--set", "epochs=2", "-o", tmp_path / "run", "--no-report")  # fmt: skip
    assert done.code == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["epochs"] == 2


def test_names_that_look_like_markup_are_printed_as_they_are(tmp_path):
    rows = [[f"[{i}]", i % 3, ["[/a]", "[red]"][i % 2] if i < 8 else ""] for i in range(20)]
    nodes = write_table(tmp_path / "n.csv", ["id", "size", "label"], rows)
    pairs = [[f"[{i}]", f"[{i + 1}]"] for i in range(19)]
    edges = write_table(tmp_path / "e.csv", ["source", "target"], pairs)
    done = dcgst("fit", nodes, edges, *FAST, "-o", tmp_path / "run", "--no-report")
    assert done.code == 0, done.err
    for verb in (["suggest", tmp_path / "run"], ["explain", tmp_path / "run", "[9]"]):
        shown = dcgst(*verb)
        assert shown.code == 0, shown.err
        assert "[red]" in shown.out or "[/a]" in shown.out
    assert "[/a]" in done.out
    assert "[red]" in done.out


def test_diagnose_prints_shifts_warnings_and_advice(tables):
    done = dcgst("diagnose", tables / "nodes.csv", tables / "edges.csv", "--label", "kind")
    assert done.code == 0, done.err
    assert "12 of 90 nodes are labeled (13.33%). Labels per class: a 4, b 4, c 4." in done.out
    for name in ("features", "degree", "position", "representation"):
        assert f"\n {name} " in done.out
    assert "biased" in done.out
    assert "\nAdvice: " in done.out


def test_diagnose_prints_warnings(tmp_path):
    nodes = write_table(tmp_path / "n.csv", ["id", "a", "label"],
                        [[1, 1, "x"], [2, 5, "y"], [3, 2, ""]])  # fmt: skip
    edges = write_table(tmp_path / "e.csv", ["source", "target"], [[1, 2], [2, 3]])
    done = dcgst("diagnose", nodes, edges, "--quiet")
    assert "Warning: classes with fewer than two labels: x (1), y (1)." in done.words


def test_diagnose_prints_json(tables):
    done = dcgst("diagnose", tables / "nodes.csv", tables / "edges.csv", "--label", "kind",
                 "--json")  # fmt: skip
    found = json.loads(done.out)
    assert (found["labels"], found["nodes"]) == (12, 90)
    assert found["shifts"][0]["name"] == "features"
    assert found["headline"]
    assert done.err == ""


def test_diagnose_refuses_a_graph_without_unlabeled_nodes(tmp_path):
    nodes = write_table(tmp_path / "n.csv", ["id", "a", "label"], [[1, 1, "x"], [2, 5, "y"]])
    edges = write_table(tmp_path / "e.csv", ["source", "target"], [[1, 2]])
    done = dcgst("diagnose", nodes, edges)
    assert (done.code, "every node has a label" in done.err) == (2, True)


def test_a_label_column_that_does_not_exist_is_refused(tables, tmp_path):
    """Its labels would become a feature."""
    labels = write_table(tmp_path / "l.csv", ["id", "topic"], [["n000", "a"]])
    both = tables / "nodes.csv", tables / "edges.csv"
    for command in (
        ["fit", *both, "--label", "typo", "--labels", labels, "-o", tmp_path / "run"],
        ["import", *both, "--label", "typo", "-o", tmp_path / "s.store"],
    ):
        done = dcgst(*command)
        assert (done.code, "column 'typo'" in done.words) == (2, True)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] in "rs") == []
