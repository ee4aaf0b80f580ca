"""``fit``: which labels it accepts, and what it leaves behind if it fails."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dcgst import EM, GCN, Ensemble, Graph, InputError, Majority, fit, memory, synthetic
from dcgst.runs import fitting as checks
from dcgst.runs.fitting import memory_needed
from dcgst.runs.folder import Stored, write
from tests.runs.helpers import with_few_labels


def test_a_graph_without_labels_is_refused(graph, tmp_path):
    unlabeled = graph.with_labels(np.full(120, -1))
    with pytest.raises(InputError, match="no node has a label; fill the label column"):
        fit(unlabeled, tmp_path / "run", GCN(epochs=2))
    assert not (tmp_path / "run").exists()


def test_a_graph_without_unlabeled_nodes_is_refused_unless_it_has_masks(graph, tmp_path):
    labeled = graph.with_labels(np.arange(120) % 3)
    with pytest.raises(InputError, match=r"every node has a label: there is nothing to predict$"):
        fit(labeled, tmp_path / "run", GCN(epochs=2))
    fit(replace(labeled, masks={"train": np.arange(120) < 9}), tmp_path / "run", GCN(epochs=2))


def test_a_placeholder_class_is_named_if_every_node_has_a_label(graph, tmp_path):
    names = ("Unknown", "b", "c")
    labeled = replace(graph, class_names=names, labels=np.arange(120) // 100)
    with pytest.raises(InputError, match="100 are 'Unknown': if these are unknown, leave the"):
        fit(labeled, tmp_path / "run", GCN(epochs=2))


def test_labels_of_a_single_class_are_refused(graph, tmp_path):
    single = graph.with_labels(np.where(np.arange(120) < 3, 1, -1))
    with pytest.raises(InputError, match=r"all training labels are of one class \(1\)"):
        fit(single, tmp_path / "run", GCN(epochs=2))
    assert not (tmp_path / "run").exists()


def test_a_label_column_of_ids_is_recognized(tmp_path):
    labels = np.where(np.arange(60) < 50, np.arange(60), -1)
    graph = Graph.from_edges([[0, 1], [1, 2]], np.ones((60, 1)), labels)
    with pytest.raises(InputError, match="each of the 50 classes has a single label; does the"):
        fit(graph, tmp_path / "run", GCN(epochs=2))


def test_one_label_per_class_is_enough(tmp_path):
    whole = synthetic(240, 3, features=12, shift=0, labels_per_class=1, seed=2)
    single = whole.with_labels(np.where(whole.masks["train"], whole.labels, -1))
    run = fit(replace(single, masks={}), tmp_path / "run", Ensemble())
    assert run.split.train.sum() == 3
    assert (run.result.labels == whole.labels).mean() > 0.6


def test_a_share_of_the_labels_is_held_out_for_validation(graph, tmp_path):
    run = fit(graph, tmp_path / "run", GCN(epochs=5), validate=0.5)
    assert run.split.train.sum() == run.split.val.sum() == 6
    assert (run.split.given[0] == (graph.labels >= 0)).all()
    assert run.info["validate"] == 0.5
    for share in (1, -0.1):
        with pytest.raises(InputError, match="validation share must be at least 0 and below 1"):
            fit(graph, tmp_path / "other", GCN(epochs=2), validate=share)
    assert not (tmp_path / "other").exists()


def test_the_default_method_is_the_ensemble_with_five_replicas(graph, tmp_path, monkeypatch):
    used = []

    def record(self, *_, **__):
        used.append(self)
        raise InputError("not now")

    monkeypatch.setattr(Ensemble, "fit", record)
    with pytest.raises(InputError, match="not now"):
        fit(graph, tmp_path / "run")
    assert used[0].replicas == 5


@pytest.mark.parametrize("model", [GCN(lr=1e30, epochs=20), GCN(device="elsewhere"), GCN(lr=0)])
def test_a_fit_that_cannot_work_leaves_no_folder(graph, tmp_path, model):
    with pytest.raises(InputError):
        fit(graph, tmp_path / "run", model)
    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_created_is_named(graph, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/run cannot be written"):
        fit(graph, tmp_path / "file" / "run", GCN(epochs=2))


def test_a_fit_that_needs_more_memory_than_available_is_refused(graph, monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "available_memory", lambda: 2**20)
    with pytest.raises(InputError, match=r"120 nodes with 3 classes need about 287 MiB of memory"):
        fit(graph, tmp_path / "run", GCN(epochs=2))
    assert not (tmp_path / "run").exists()


def test_more_classes_need_more_memory(graph):
    many = replace(graph, class_names=tuple(str(code) for code in range(10_000)))
    assert memory_needed(many, GCN()) > memory_needed(graph, GCN())


def test_memory_of_a_fit_is_the_sum_of_its_parts():
    """A base, values per node (embeddings and classes), features and edges."""
    edges = np.array([[0, 1], [1, 2]])
    graph = Graph.from_edges(edges, np.ones((10, 4)), np.array([0, 1] + [-1] * 8))
    per_node = 6000 + 80 * 2 + 24 * 7
    per_column = 2000 + 16 * 7
    expected = 3e8 + 10 * per_node + 4 * per_column + 12 * 40 + 100 * graph.num_edges
    assert memory_needed(graph, GCN(hidden=7)) == expected


def test_a_method_without_a_network_needs_the_memory_of_64_hidden_units():
    graph = Graph.from_edges([[0, 1], [1, 2]], np.ones((10, 4)), np.array([0, 1] + [-1] * 8))
    assert memory_needed(graph, EM()) == memory_needed(graph, GCN(hidden=64))


def test_twenty_classes_with_one_label_each_are_allowed():
    labels = np.array([*range(20), *[-1] * 5])
    checks.check_graph(Graph.from_edges([[0], [1]], np.eye(25), labels))


@pytest.mark.parametrize("masks", [False, True])
def test_validation_labels_taken_from_biased_ones_are_called_biased(masks, tmp_path):
    """With masks, the validation nodes are not taken from the given labels."""
    graph = with_few_labels(synthetic(120, 3, features=8, seed=1), per_class=20)
    if masks:
        known, number = graph.labels >= 0, np.arange(120)
        parts = {"train": known & (number % 2 == 0), "val": known & (number % 2 == 1)}
        graph = replace(graph, masks=parts)
    run = fit(graph, tmp_path / "run", GCN(epochs=2), validate=0.0 if masks else 0.5)
    assert run.calibration.nodes == 30
    assert run.calibration.description.endswith("which are as biased as the labels they were "
                                                "taken from") != masks  # fmt: skip


def test_seconds_have_one_digit(graph, tmp_path, monkeypatch):
    clock = iter([2.0, 14.345])
    fake = SimpleNamespace(
        perf_counter=lambda: next(clock), strftime=time.strftime, gmtime=time.gmtime
    )
    monkeypatch.setattr("dcgst.runs.fitting.time", fake)
    assert fit(graph, tmp_path / "run", Majority()).info["seconds"] == 12.3


@pytest.mark.parametrize(
    ("more", "metrics"), [({}, {"accuracy": math.nan}), ({"seconds": math.inf}, {"accuracy": 0.5})]
)
def test_numbers_that_are_not_finite_are_never_written(run, tmp_path, more, metrics):
    stored = Stored({**run.info, **more}, run.graph, run.split, run.result)
    with pytest.raises(ValueError, match="Out of range float"):
        write(tmp_path, stored, run.prediction_table, metrics, spreadsheet=False)
    assert not (tmp_path / "run.json").exists()


@pytest.mark.parametrize("name", ["run.json", "metrics.json"])
def test_json_files_have_one_entry_per_line(run, name):
    text = (run.folder / name).read_text()
    assert text == json.dumps(json.loads(text), indent=1) + "\n"
