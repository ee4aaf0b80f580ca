"""Run folders: what goes in comes out, nothing is lost, and damage is named."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from dcgst import DCGST, EM, GCN, Graph, InputError, fit, load, open_run, read, synthetic
from dcgst.runs import checks
from dcgst.runs.checks import available_memory, check_memory, memory_needed, set_aside

QUICK = {"epochs": 10, "stage_epochs": 4, "student_epochs": 4, "max_stages": 3, "hidden": 16}


def hidden_labels(graph: Graph, per_class: int = 4) -> Graph:
    """The graph with few labels known."""
    labels = np.full(graph.num_nodes, -1)
    for code in range(graph.num_classes):
        own = np.flatnonzero(graph.labels == code)[:per_class]
        labels[own] = code
    return replace(graph.with_labels(labels), masks={})


@pytest.fixture(scope="module")
def graph() -> Graph:
    return hidden_labels(synthetic(120, 3, features=8, seed=1, name="small"))


@pytest.fixture(scope="module")
def run(graph, tmp_path_factory):
    return fit(graph, tmp_path_factory.mktemp("runs") / "run", DCGST(replicas=2, **QUICK))


def test_a_run_read_again_is_the_same(run):
    again = open_run(run.folder)
    np.testing.assert_array_equal(again.proba, run.proba)
    np.testing.assert_array_equal(again.labels, run.labels)
    np.testing.assert_array_equal(again.stage, run.stage)
    np.testing.assert_array_equal(again.agreement, run.agreement)
    np.testing.assert_array_equal(again.graph.adjacency.toarray(), run.graph.adjacency.toarray())
    np.testing.assert_array_equal(again.graph.features, run.graph.features)
    assert again.predictions == run.predictions
    assert again.history == run.history
    assert again.info == json.loads(json.dumps(run.info))


def test_predictions_have_ids_classes_and_where_they_come_from(run, graph):
    with open(run.folder / "predictions.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [str(i) for i in graph.ids]
    known = graph.labels >= 0
    assert [row["source"] == "given" for row in rows] == known.tolist()
    given = [row["class"] for row, k in zip(rows, known, strict=True) if k]
    assert given == [graph.class_names[code] for code in graph.labels[known]]
    for row in rows:
        parts = [float(row[f"p({name})"]) for name in graph.class_names]
        assert sum(parts) == pytest.approx(1, abs=1e-3)
        assert 0 <= float(row["margin"]) <= 1
        assert 0.5 <= float(row["agreement"]) <= 1
        assert row["source"] == "given" or (row["stage"] == "") == (row["source"] == "predicted")


def test_metrics_tell_the_run_in_figures(run, graph):
    found = json.loads((run.folder / "metrics.json").read_text())
    assert found["given"] + found["pseudo"] + found["predicted"] == found["nodes"] == 120
    assert found["given"] == 12
    assert 0 < found["mean_probability"] <= 1
    ends = list({r["replica"]: r["cmd"] for r in run.history}.values())
    assert len(ends) == 2
    assert found["shift_in_the_end"] == pytest.approx(np.mean(ends), abs=1e-4)
    assert "accuracy" not in found, "nothing is known that did not train"


def test_the_audit_comes_back(run, graph):
    audit = run.audit
    assert audit.size
    assert set(audit["replica"]) == {0, 1}
    assert (graph.labels[audit["node"]] < 0).all(), "given labels are no candidates"
    chosen = audit[audit["chosen"]]
    last = chosen[chosen["stage"] == chosen["stage"].max()]
    assert np.isfinite(last["confidence"]).all()


def test_the_saved_model_predicts_as_the_fitted_one(graph, tmp_path):
    model = GCN(epochs=15, hidden=16, replicas=2)
    run = fit(graph, tmp_path / "run", model)
    moved = synthetic(60, 3, features=8, seed=5)
    saved = open_run(run.folder)
    np.testing.assert_allclose(
        saved.method.predict_proba(moved), model.predict_proba(moved), rtol=1e-5, atol=1e-6
    )
    rows = saved.predict(moved)
    assert len(rows) == 60
    assert "agreement" not in rows[0]


def test_on_a_grown_graph_labels_and_prior_go_along(tmp_path):
    whole = load("digits")
    few = hidden_labels(whole, 3)
    run = fit(few, tmp_path / "run", DCGST(max_stages=3))
    fresh = np.arange(whole.num_nodes) < 1700  # what was there before
    ids = np.where(fresh, whole.ids, whole.ids + 10_000)
    grown = replace(few, ids=ids, labels=np.full(whole.num_nodes, -1))
    rows = run.predict(grown)
    sources = [row["source"] for row in rows]
    kept = fresh & (few.labels >= 0)
    assert [source == "given" for source in sources] == kept.tolist()
    right = np.mean([row["class"] == str(c) for row, c in zip(rows, whole.labels, strict=True)])
    alone = (run.method.predict(replace(grown, name="other")) == whole.labels).mean()
    assert right > 0.7
    assert alone > 0.3


def test_what_has_no_model_or_another_width_says_so(graph, tmp_path):
    run = fit(graph, tmp_path / "run", EM())
    with pytest.raises(InputError, match="em learns no model"):
        run.predict(synthetic(60, 3, features=8, seed=5))
    gcn = fit(graph, tmp_path / "gcn", GCN(epochs=3))
    with pytest.raises(InputError, match="fitted on 8 features, this graph has 5"):
        gcn.predict(synthetic(60, 3, features=5, seed=5))


def test_folders_are_never_overwritten_by_accident(graph, run, tmp_path):
    with pytest.raises(InputError, match="holds a run already"):
        fit(graph, run.folder, DCGST(replicas=2, **QUICK))
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(InputError, match=r"holds other files \(thesis.txt\)"):
            fit(graph, other, GCN(epochs=2), overwrite=overwrite)
    assert (other / "thesis.txt").read_text() == "precious"
    again = fit(graph, run.folder, DCGST(replicas=2, **QUICK), resume=True)
    np.testing.assert_array_equal(again.proba, run.proba)
    with pytest.raises(InputError, match="begun with another graph, labels or settings"):
        fit(graph, run.folder, DCGST(replicas=2, seed=1, **QUICK), resume=True)


def test_resuming_is_refused_for_anything_else(graph, run):
    renamed = replace(graph, class_names=("za", "b", "c"))
    with pytest.raises(InputError, match="begun with another graph, labels or settings"):
        fit(renamed, run.folder, DCGST(replicas=2, **QUICK), resume=True)
    with pytest.raises(InputError, match="choose one"):
        fit(graph, run.folder, DCGST(replicas=2, **QUICK), resume=True, overwrite=True)


def test_with_another_chunk_the_steps_are_taken_again(graph, tmp_path):
    model = DCGST(replicas=2, device="cpu", **QUICK)

    class Interruption(Exception):  # noqa: N818
        pass

    left = 30

    def stop(event):
        nonlocal left
        left -= 1
        if left == 0:
            raise Interruption

    with pytest.raises(Interruption):
        fit(graph, tmp_path / "run", model, callbacks=[stop])
    fit(graph, tmp_path / "run", DCGST(replicas=2, device="cpu", chunk=2, **QUICK), resume=True)


def test_what_cannot_work_leaves_nothing(graph, tmp_path):
    for model in (GCN(lr=1e30, epochs=20), GCN(device="elsewhere")):
        with pytest.raises(InputError):
            fit(graph, tmp_path / "run", model)
        assert not (tmp_path / "run").exists()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "begun.json.part").write_text("{")
    fit(graph, tmp_path / "run", GCN(epochs=2))


def test_ids_and_names_of_any_kind(graph, tmp_path):
    named = replace(graph, ids=np.array([f"n{i}" for i in range(120)], dtype=object))
    run = fit(named, tmp_path / "run", GCN(epochs=2))
    assert run.predictions[7]["id"] == "n7"
    assert open_run(run.folder).predictions == run.predictions


def test_many_classes_have_no_column_each(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(400) < 240, np.arange(400) % 60, -1)
    edges = rng.integers(0, 400, (2, 900))
    wide = Graph.from_edges(edges, rng.normal(size=(400, 5)), labels)
    row = fit(wide, tmp_path / "run", GCN(epochs=2)).predictions[0]
    assert list(row) == ["id", "class", "probability", "margin", "source", "stage", "agreement"]


def test_classes_on_another_graph_go_by_their_names(graph, tmp_path):
    run = fit(graph, tmp_path / "run", GCN(epochs=20, hidden=16))
    turned = replace(
        graph, class_names=("2", "1", "0"), labels=np.where(graph.labels >= 0, 2 - graph.labels, -1)
    )
    rows = run.predict(turned)
    assert [r["class"] for r in rows if r["source"] == "given"] == [
        graph.class_names[code] for code in graph.labels[graph.labels >= 0]
    ]
    assert len(run.predict(replace(graph, labels=np.full(120, -1), class_names=()))) == 120
    other = replace(graph, class_names=("0", "1", "new"))
    with pytest.raises(InputError, match="the class 'new' is not one of the model's"):
        run.predict(other)


def test_a_run_of_a_file_without_columns_predicts_on_another(graph, tmp_path):
    torch.save(graph.to_pyg(), tmp_path / "one.pt")
    run = fit(read(tmp_path / "one.pt"), tmp_path / "run", GCN(epochs=2))
    torch.save(synthetic(40, 3, features=8, seed=6).to_pyg(), tmp_path / "other.pt")
    assert len(open_run(run.folder).predict(tmp_path / "other.pt")) == 40


def test_truth_beside_the_masks_is_not_taken_for_labels(graph, tmp_path):
    run = fit(graph, tmp_path / "run", GCN(epochs=2))
    whole = synthetic(90, 3, features=8, seed=4)
    other = replace(whole, masks={"train": np.arange(90) < 5}, ids=np.arange(1000, 1090))
    assert [row["source"] for row in run.predict(other)].count("given") == 5


def test_a_model_of_tables_and_one_of_ready_features_are_not_mixed_up(graph, tmp_path):
    (tmp_path / "n.csv").write_text("id,a,b,label\n1,1,2,x\n2,2,1,y\n3,3,3,\n")
    (tmp_path / "e.csv").write_text("source,target\n1,2\n2,3\n")
    paths = tmp_path / "n.csv", tmp_path / "e.csv"
    ready = Graph.from_edges([[0, 1], [1, 2]], [[1, 2], [2, 1], [3, 3]], [0, 1, -1])
    from_tables = fit(read(*paths), tmp_path / "one", GCN(epochs=2))
    from_graph = fit(ready, tmp_path / "two", GCN(epochs=2))
    with pytest.raises(InputError, match="the model knows the columns of tables"):
        from_tables.predict(ready)
    with pytest.raises(InputError, match="the model knows ready features"):
        from_graph.predict(*paths)
    (tmp_path / "n.csv").write_text("id,a,b\n1,1,2\n7,2,1\n3,3,3\n")
    (tmp_path / "e.csv").write_text("source,target\n1,3\n2,3\n")
    with pytest.raises(InputError, match="drop-unknown"):
        from_tables.predict(*paths)
    rows = from_tables.predict(*paths, drop_unknown=True)
    assert [row["source"] for row in rows] == ["given", "predicted", "predicted"]


def test_overwriting_begins_anew(graph, tmp_path):
    first = fit(graph, tmp_path / "run", GCN(epochs=3))
    (tmp_path / "run" / "notes.txt").write_text("mine")
    second = fit(graph, tmp_path / "run", GCN(epochs=4, seed=1), overwrite=True)
    assert (second.proba != first.proba).any()
    assert (tmp_path / "run" / "notes.txt").exists(), "only what a fit leaves is removed"


def test_where_nothing_can_be_written(graph, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        fit(graph, tmp_path / "file" / "run", GCN(epochs=2))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("run.json", b"{", "run.json is damaged"),
        ("run.json", b"[]", "run.json is damaged"),
        ("run.json", b'{"format": 99, "dcgst": "7.0"}', r"has format 99 \(dcgst 7.0\)"),
        ("run.json", b'{"format": 1}', "is damaged"),
        ("graph.npz", b"PK", "is damaged"),
        ("graph.npz", b"", "is damaged"),
        ("history.csv", b"\xff\xfe", "is damaged"),
    ],
)
def test_damaged_folders_and_other_versions_are_named(graph, tmp_path, name, content, message):
    fit(graph, tmp_path / "run", GCN(epochs=2))
    (tmp_path / "run" / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        open_run(tmp_path / "run")


def test_damage_that_shows_later_is_named_as_well(graph, tmp_path):
    run = fit(graph, tmp_path / "run", GCN(epochs=2))
    for name in ("model.safetensors", "audit.csv.gz"):
        (run.folder / name).write_bytes(b"no")
    opened = open_run(run.folder)
    with pytest.raises(InputError, match=r"audit.csv.gz is damaged"):
        _ = opened.audit
    with pytest.raises(InputError, match=r"model.safetensors is damaged"):
        _ = opened.method


def test_no_folder_and_an_unfinished_one(tmp_path):
    with pytest.raises(InputError, match="is no run folder"):
        open_run(tmp_path)
    (tmp_path / "begun.json").write_text("{}")
    with pytest.raises(InputError, match="an interrupted run"):
        open_run(tmp_path)


def test_labels_that_cannot_work(graph, tmp_path):
    def refused(labels, message, **more):
        with pytest.raises(InputError, match=message):
            fit(graph.with_labels(labels), tmp_path / "run", GCN(epochs=2), **more)

    refused(np.full(120, -1), "no node has a label")
    refused(np.zeros(120, dtype=int), "nothing to predict$")
    vague = replace(graph, class_names=("unknown", "b", "c"), labels=np.arange(120) // 100)
    with pytest.raises(InputError, match="100 are 'unknown': if that means none, leave those"):
        fit(vague, tmp_path / "run", GCN(epochs=2))
    refused(np.where(np.arange(120) < 3, 1, -1), "all of one class")
    refused(graph.labels, "share to validate with", validate=1.5)
    many = Graph.from_edges(
        np.array([[0, 1], [1, 2]]),
        np.ones((60, 1)),
        np.where(np.arange(60) < 50, np.arange(60), -1),
    )
    with pytest.raises(InputError, match="each of the 50 classes has a single label"):
        fit(many, tmp_path / "run", GCN(epochs=2))
    assert not (tmp_path / "run").exists(), "nothing was begun"


def test_two_labels_per_class_and_one_are_enough(tmp_path):
    whole = load("digits")
    for count, least in ((1, 0.4), (2, 0.55)):
        run = fit(hidden_labels(whole, count), tmp_path / str(count), DCGST(max_stages=4))
        assert set(run.labels) == set(range(10))
        assert (run.labels == whole.labels).mean() > least


def test_a_share_of_the_labels_validates(graph, tmp_path):
    split = set_aside(graph, 0.5)
    assert split.val.sum() == 6
    assert split.train.sum() == 6
    assert set(graph.labels[split.train[0]]) == {0, 1, 2}
    lonely = graph.with_labels(np.where(np.arange(120) < 3, np.arange(120) % 3, -1))
    assert not set_aside(lonely, 0.9).val.any(), "the only label of a class trains"
    run = fit(graph, tmp_path / "run", GCN(epochs=5), validate=0.5)
    assert [row["source"] for row in run.predictions].count("given") == 12


def test_memory_is_estimated_before_the_start(graph, monkeypatch, tmp_path):
    assert (available_memory() or 1) > 0
    wide = Graph.from_edges(
        np.array([[0], [1]]), np.ones((20, 1)), class_names=[str(i) for i in range(10_000)]
    )
    assert memory_needed(wide, GCN()) > memory_needed(graph, GCN())
    monkeypatch.setattr(checks, "available_memory", lambda: 1000)
    with pytest.raises(InputError, match=r"need about .* GiB"):
        check_memory(graph, GCN())
    with pytest.raises(InputError, match="GiB"):
        fit(graph, tmp_path / "run", GCN(epochs=2))


SCRIPT = """
import sys
from dcgst import DCGST, fit
sys.path.insert(0, {tests!r})
from tests.test_runs import QUICK, hidden_labels, synthetic
graph = hidden_labels(synthetic(120, 3, features=8, seed=1, name="small"))
settings = {{**QUICK, "epochs": 60, "max_stages": 6}}
fit(graph, sys.argv[1], DCGST(replicas=4, **settings), resume=True)
"""


def test_killed_at_random_moments_it_ends_the_same(graph, tmp_path):
    settings = {**QUICK, "epochs": 60, "max_stages": 6}
    whole = fit(graph, tmp_path / "whole", DCGST(replicas=4, **settings))
    code = SCRIPT.format(tests=os.getcwd())
    folder = tmp_path / "killed"
    steps = 4 * (1 + 2 * 6 + 1)  # of each replica: a training, six stages of two steps, the student
    moments = np.sort(np.random.default_rng(3).choice(np.arange(1, steps - 4), 10, replace=False))
    for moment in moments:
        process = subprocess.Popen([sys.executable, "-c", code, str(folder)])
        waited = time.monotonic() + 60
        while _steps_kept(folder) < moment and time.monotonic() < waited:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it was still at work"
        assert _steps_kept(folder) >= moment, "what was done is kept"
    last = fit(graph, folder, DCGST(replicas=4, **settings), resume=True)
    np.testing.assert_array_equal(last.proba, whole.proba)
    assert last.predictions == whole.predictions
    assert not (folder / "checkpoint").exists()


def _steps_kept(folder):
    return len(list((folder / "checkpoint").glob("*/*.safetensors")))
