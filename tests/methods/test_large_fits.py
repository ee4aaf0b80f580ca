"""Fits of large graphs: a sample of the nodes, all nodes in blocks, in memory and in files."""

from __future__ import annotations

from dataclasses import replace
from functools import partialmethod

import numpy as np
import pytest

from dcgst.datasets import synthetic
from dcgst.methods import DCGST, EM, GCN, MLP, Ensemble, GaussianProcess, sampling
from dcgst.methods.result import NOT_LABELED
from dcgst.splits import Split, sample


@pytest.fixture(scope="module")
def graph():
    return synthetic(500, 3, features=8, seed=2)


@pytest.fixture(scope="module")
def split(graph) -> Split:
    """Six labels per class, and 20 validation nodes."""
    drawn = sample(graph, "ppr-s", per_class=6, runs=1)
    val = np.zeros_like(drawn.train)
    val[0, np.flatnonzero(~drawn.train[0])[:20]] = True
    return Split(drawn.train, val, ~drawn.train & ~val, (0,))


@pytest.fixture
def large(sample_sizes):
    """Graphs with more than 100 nodes are large; a sample has at most 200 pool nodes."""
    sample_sizes(large=100, pool=200)


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr("dcgst.features.matrix.available_memory", lambda: 100_000)


def fitted(graph, split, **settings):
    return Ensemble(**settings).fit(graph, split)


def test_nearly_as_accurate_as_with_all_nodes(graph, split, sample_sizes):
    everything = fitted(graph, split).score(graph)
    sample_sizes(large=100, pool=200)
    found = fitted(graph, split)
    assert found.proba_.shape == (500, 3)
    np.testing.assert_allclose(found.proba_.sum(axis=1), 1, atol=1e-5)
    assert found.score(graph) > everything - 0.06
    assert "gcn" not in found.result_.member_weights


def test_files_and_memory_give_the_same(graph, split, large, monkeypatch):
    in_memory = fitted(graph, split).proba_
    monkeypatch.setattr("dcgst.features.matrix.available_memory", lambda: 100_000)
    np.testing.assert_allclose(fitted(graph, split).proba_, in_memory, atol=1e-4)


def test_the_whole_result_refers_to_the_graph(graph, split, large):
    result = fitted(graph, split).result_
    given = split.train[0] | split.val[0]
    np.testing.assert_array_equal(result.given[given], graph.labels[given])
    assert (result.given[~given] == -1).all()
    np.testing.assert_array_equal(
        np.flatnonzero(result.labeled_stage == 0), split.train[0].nonzero()[0]
    )
    assert (result.labeled_stage[~split.train[0]] == NOT_LABELED).all()


def test_validation_nodes_keep_predictions_that_did_not_see_them(graph, split, large):
    node = int(np.flatnonzero(split.val[0])[0])
    wrong = graph.labels.copy()
    wrong[node] = (wrong[node] + 1) % 3
    found = fitted(replace(graph, labels=wrong), split)
    assert found.proba_[node].argmax() == graph.labels[node]


def test_the_order_of_the_rows_does_not_matter(graph, split, large):
    expected = fitted(graph, split).proba_
    order = np.random.default_rng(0).permutation(500)
    found = fitted(graph.reorder(order), split.reorder(order)).proba_
    np.testing.assert_allclose(found, expected[order], atol=1e-5)


def test_several_replicas(graph, split, large, little_memory):
    found = fitted(graph, split, replicas=2)
    assert not np.allclose(found.proba_, fitted(graph, split).proba_, atol=1e-4)
    assert found.score(graph) > 0.6


def test_several_runs_together(graph, large):
    split = sample(graph, "uniform", per_class=6, runs=2)
    together = Ensemble(chunk_size=2).fit_runs(graph, split)
    alone = Ensemble().fit_runs(graph, split)
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one.proba, other.proba, atol=1e-4)


def test_an_interrupted_fit_is_resumed(graph, split, large, little_memory, tmp_path, monkeypatch):
    expected = fitted(graph, split).proba_

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MLP, "solve", stop)  # after the members before it
        with pytest.raises(KeyboardInterrupt):
            Ensemble().fit(graph, split, checkpoint=tmp_path)
    matrices = [path for path in tmp_path.rglob("*.f32") if "probabilities" not in path.name]
    files = {path: path.stat().st_mtime_ns for path in matrices}
    assert files
    calls = []
    for kind in (EM, GaussianProcess, MLP):
        counted = partialmethod(
            lambda own, solve, *args: (calls.append(own), solve(own, *args))[1], kind.solve
        )
        monkeypatch.setattr(kind, "solve", counted)
    found = Ensemble().fit(graph, split, checkpoint=tmp_path).proba_
    assert [own.name for own in calls] == ["mlp", "mlp"], "all but it and the student are stored"
    calls.clear()
    again = Ensemble().fit(graph, split, checkpoint=tmp_path).proba_
    assert not calls
    np.testing.assert_array_equal(again, found)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    kept = [
        path for path, time in files.items() if path.exists() and path.stat().st_mtime_ns == time
    ]
    assert len(kept) == len(files), "no matrix is computed again"


def test_other_methods_use_all_nodes(graph, split, large):
    assert not GCN().fits_sample
    assert not DCGST().fits_sample
    assert not Ensemble(members="em,gcn").fits_sample, "own members are not left out"
    assert Ensemble().fits_sample
    GCN(epochs=2).fit(graph, split)


def test_many_labels_are_sampled(graph, sample_sizes):
    train = np.zeros(500, dtype=bool)
    train[::2] = True
    sample_sizes(given=30, pool=40)
    nodes = sampling.choose_nodes(graph, Split.of(train), seed=1)
    assert train[nodes].sum() == 30
    assert len(nodes) == 70
    assert nodes.tolist() == sorted(set(nodes.tolist()))
