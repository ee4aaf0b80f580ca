"""``Run.predict``: predictions on the fitted graph and on other graphs."""

from __future__ import annotations

import dataclasses
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from dcgst import (
    EM,
    GCN,
    METHODS,
    Columns,
    Ensemble,
    Graph,
    InputError,
    fit,
    open_run,
    read,
    synthetic,
)
from dcgst.evaluate.calibration import Calibration


@pytest.fixture(scope="module")
def gcn_run(graph, tmp_path_factory):
    return fit(graph, tmp_path_factory.mktemp("gcn") / "run", GCN(epochs=20, hidden=8))


def test_without_a_graph_the_stored_predictions_are_returned(run):
    assert run.predict() == run.predictions


def test_probabilities_on_another_graph_are_calibrated(run):
    other = synthetic(60, 3, features=8, seed=5)
    unlabeled = replace(other, labels=np.full(60, -1), masks={}, ids=np.arange(1000, 1060))
    run = replace(run, info={**run.info, "calibration": asdict(Calibration(2.0, 50, ""))})
    expected = run.calibration.apply(run.method.predict_proba(unlabeled))
    assert not np.allclose(expected, run.method.predict_proba(unlabeled), atol=0.01)
    rows = run.predict(unlabeled)
    found = np.array([[row[f"p({name})"] for name in run.graph.class_names] for row in rows])
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert {row["source"] for row in rows} == {"predicted"}
    assert {row["stage"] for row in rows} == {""}
    assert "agreement" not in rows[0], "there are no replicas to compare"


def test_labels_of_the_run_are_used_for_nodes_with_the_same_id(run, graph):
    old = np.arange(120) < 100
    ids = np.where(old, graph.ids, graph.ids + 1000)
    grown = replace(graph, ids=ids, labels=np.full(120, -1))
    rows = run.predict(grown)
    given = old & (graph.labels >= 0)
    assert [row["source"] == "given" for row in rows] == given.tolist()
    assert [row["class"] for row in rows if row["source"] == "given"] == [
        graph.class_names[code] for code in graph.labels[given]
    ]
    assert [row["stage"] for row in rows] == [0 if known else "" for known in given]


def test_known_labels_improve_predictions_on_another_graph(tmp_path):
    truth = synthetic(240, 3, features=12, seed=2)
    run = fit(truth, tmp_path / "run", Ensemble())
    other = synthetic(240, 3, features=12, shift=0, labels_per_class=30, noise=1.5, seed=7)
    other = replace(other, ids=np.arange(1000, 1240))
    unlabeled = replace(other, labels=np.full(240, -1), masks={})

    def accuracy(graph):
        rows = run.predict(graph, use_labels=True)
        predicted = np.array([int(row["class"]) for row in rows])
        return (predicted == other.labels)[~other.masks["train"]].mean()

    assert accuracy(other) > accuracy(unlabeled) + 0.02


def test_labels_outside_the_masks_are_not_used(gcn_run):
    other = synthetic(90, 3, features=8, seed=4)
    masks = {"train": np.arange(90) < 5, "val": (np.arange(90) > 60) & (np.arange(90) < 64)}
    new = replace(other, masks=masks, ids=np.arange(1000, 1090))
    rows = gcn_run.predict(new, use_labels=True)
    used = masks["train"] | masks["val"]
    assert [row["source"] == "given" for row in rows] == used.tolist()
    without_val = replace(other, masks={"train": masks["train"]}, ids=np.arange(1000, 1090))
    rows = gcn_run.predict(without_val, use_labels=True)
    assert [row["source"] for row in rows].count("given") == 5


def test_labels_of_another_graph_are_not_used_by_accident(gcn_run):
    other = replace(synthetic(90, 3, features=8, seed=4), ids=np.arange(1000, 1090), masks={})
    found = gcn_run.predict_other(other)
    assert found.unused_labels == 90
    unlabeled = gcn_run.predict_other(other.with_labels(np.full(90, -1)))
    assert unlabeled.unused_labels == 0
    np.testing.assert_array_equal(
        found.predictions.result.proba, unlabeled.predictions.result.proba
    )


def test_classes_of_another_graph_are_matched_by_name(gcn_run, graph):
    reversed_codes = np.where(graph.labels >= 0, 2 - graph.labels, -1)
    other = replace(graph, class_names=("2", "1", "0"), labels=reversed_codes)
    rows = gcn_run.predict(replace(other, ids=np.arange(1000, 1120)), use_labels=True)
    assert [row["class"] for row in rows if row["source"] == "given"] == [
        graph.class_names[code] for code in graph.labels[graph.labels >= 0]
    ]


def test_a_graph_without_class_names_is_accepted(gcn_run, graph):
    assert len(gcn_run.predict(replace(graph, labels=np.full(120, -1), class_names=()))) == 120


def test_a_class_that_the_model_does_not_know_is_refused(gcn_run, graph):
    with pytest.raises(InputError, match="the class 'new' is not a class of the model; its"):
        gcn_run.predict(replace(graph, class_names=("0", "1", "new")), use_labels=True)
    gcn_run.predict(replace(graph, class_names=("0", "1", "new")))


@pytest.mark.parametrize("name", METHODS)
def test_every_stored_method_predicts_on_another_graph(name, graph, tmp_path):
    """On the same nodes under other ids, with their labels, a pool gives the same answer."""
    fields = {field.name for field in dataclasses.fields(METHODS[name])}
    few = {"epochs": 3, "max_stages": 1, "stages": 1, "replicas": 2, "passes": 2}
    model = METHODS[name](**{key: value for key, value in few.items() if key in fields})
    fit(graph, tmp_path / "run", model)
    run = open_run(tmp_path / "run")
    found = run.predict_other(graph).predictions.result.proba
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-4)
    if run.result.predictors:
        pool = run.split.pool[0]
        np.testing.assert_allclose(found[pool], run.result.proba[pool], atol=1e-4)
    assert len(run.predict(synthetic(60, 3, features=8, seed=5), use_labels=True)) == 60


def test_another_number_of_features_is_refused(gcn_run):
    with pytest.raises(InputError, match="fitted on 8 features, this graph has 5"):
        gcn_run.predict(synthetic(60, 3, features=5, seed=5))


def test_a_graph_file_is_read(gcn_run, tmp_path):
    torch.save(synthetic(40, 3, features=8, seed=6).to_pyg(), tmp_path / "other.pt")
    assert len(gcn_run.predict(tmp_path / "other.pt")) == 40


def test_a_run_fitted_on_a_graph_file_predicts_on_another(graph, tmp_path):
    torch.save(graph.to_pyg(), tmp_path / "one.pt")
    run = fit(read(tmp_path / "one.pt"), tmp_path / "run", GCN(epochs=2))
    torch.save(synthetic(40, 3, features=8, seed=6).to_pyg(), tmp_path / "other.pt")
    assert len(open_run(run.folder).predict(tmp_path / "other.pt")) == 40


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "n.csv").write_text("id,a,b,label\n1,1,2,x\n2,2,1,y\n3,3,3,\n")
    (tmp_path / "e.csv").write_text("source,target\n1,2\n2,3\n")
    return tmp_path / "n.csv", tmp_path / "e.csv"


READY = Graph.from_edges([[0, 1], [1, 2]], [[1, 2], [2, 1], [3, 3]], [0, 1, -1])


def test_tables_and_feature_matrices_are_not_mixed(tables, tmp_path):
    from_tables = fit(read(*tables), tmp_path / "one", GCN(epochs=2))
    with pytest.raises(InputError, match="was fitted on node and edge tables; the new graph must"):
        from_tables.predict(READY)
    from_graph = fit(READY, tmp_path / "two", GCN(epochs=2))
    with pytest.raises(InputError, match="was fitted on a graph with a feature matrix"):
        from_graph.predict(*tables)


def test_tables_are_encoded_as_those_of_the_fit(tables, tmp_path):
    run = open_run(fit(read(*tables), tmp_path / "run", GCN(epochs=2)).folder)
    tables[0].write_text("id,b,a\n3,3,3\n1,2,1\n7,1,2\n")  # other order of rows and columns
    tables[1].write_text("source,target\n1,7\n7,3\n")
    rows = {row["id"]: row for row in run.predict(*tables)}
    assert {name: row["source"] for name, row in rows.items()} == {
        "1": "given", "7": "predicted", "3": "predicted",
    }  # fmt: skip
    expected = {str(row["id"]): row for row in run.predictions}
    assert rows["3"]["p(x)"] == pytest.approx(expected["3"]["p(x)"], abs=1e-3)


def test_edges_with_unknown_nodes_are_dropped_on_request(tables, tmp_path):
    run = fit(read(*tables), tmp_path / "run", GCN(epochs=2))
    tables[1].write_text("source,target\n1,3\n9,3\n")
    with pytest.raises(InputError, match="drop_unknown=True"):
        run.predict(*tables)
    assert len(run.predict(*tables, drop_unknown=True)) == 3


def test_a_run_with_features_of_its_graph_cannot_predict_on_another(tmp_path):
    (tmp_path / "n.csv").write_text("id,label\n1,x\n2,y\n3,\n4,\n")
    (tmp_path / "e.csv").write_text("source,target\n1,2\n2,3\n3,4\n")
    paths = tmp_path / "n.csv", tmp_path / "e.csv"
    run = fit(read(*paths), tmp_path / "run", GCN(epochs=2))
    with pytest.raises(InputError, match="features of this run were computed from its graph"):
        run.predict(*paths)


def test_positions_in_another_graph_are_not_ids(graph, tmp_path):
    """Labels of the run must not be given to nodes of an unrelated graph."""
    run = fit(graph, tmp_path / "run", GCN(epochs=2))
    other = replace(synthetic(120, 3, features=8, seed=9), masks={})
    rows = run.predict(replace(other, labels=np.full(120, -1)))
    assert {row["source"] for row in rows} == {"predicted"}
    same = run.predict(replace(graph, labels=np.full(120, -1)))
    assert sum(row["source"] == "given" for row in same) == int(run.split.given[0].sum())


def test_pyg_data_without_features_cannot_predict_on_another_graph(tmp_path):
    data = synthetic(80, 2, features=4, seed=1).to_pyg()
    del data.x
    data.num_nodes = 80
    run = fit(read(data), tmp_path / "run", GCN(epochs=2))
    with pytest.raises(InputError, match="features of this run were computed from its graph"):
        run.predict(data)


def test_row_numbers_as_ids_do_not_name_nodes(tmp_path):
    """Both tables are numbered from 0; their nodes have nothing to do with each other."""

    def tables(seed):
        graph = synthetic(80, 2, features=4, seed=seed)
        nodes, edges = tmp_path / f"n{seed}.csv", tmp_path / f"e{seed}.csv"
        known = graph.masks["train"]
        rows = [
            f"{node},{f'c{graph.labels[node]}' if known[node] else ''},{','.join(map(str, x))}"
            for node, x in enumerate(np.asarray(graph.features).round(3))
        ]
        nodes.write_text("\n".join(["id,label,a,b,c,d", *rows]))
        ends = [f"{a},{b}" for a, b in zip(*graph.adjacency.nonzero(), strict=True)]
        edges.write_text("\n".join(["source,target", *ends]))
        return nodes, edges

    run = fit(read(*tables(0), Columns(label="label")), tmp_path / "run", EM())
    again, other = (run.predict(*tables(seed)) for seed in (0, 1))
    assert sum(own["source"] == "given" for own in again) == int(run.split.given.sum())
    assert not any(own["source"] == "given" for own in other)


def test_settings_are_checked_before_anything_is_drawn(tmp_path):
    with pytest.raises(InputError, match="seed must be"):
        fit(synthetic(60, 2, features=4), tmp_path / "run", EM(seed=-1), validate=0.2)
