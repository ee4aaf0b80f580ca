"""Training of networks without edges: batches of labeled rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.datasets import synthetic
from dcgst.features.graph_tensors import GraphTensors
from dcgst.methods import MLP, SIGN, networks
from dcgst.methods.problem import Problem
from dcgst.splits import sample


def problem_adjacency() -> sp.csr_array:
    return synthetic(300, 4, features=8, seed=1).adjacency


@pytest.fixture(scope="module")
def problem():
    """Two fits: 20 and 80 labels."""
    graph = synthetic(300, 4, features=8, seed=1)
    splits = [sample(graph, "uniform", per_class=count, runs=1) for count in (5, 20)]
    labels = np.concatenate([np.where(split.train, graph.labels, -1) for split in splits])
    tensors = GraphTensors.of(graph.features, graph.adjacency)
    return Problem.build(tensors, labels, graph.num_classes, seeds=(3, 4))


def losses(problem, rows, monkeypatch):
    """The first losses of each fit, with at most so many rows per epoch."""
    monkeypatch.setattr(networks, "ROWS_PER_EPOCH", rows)
    net = SIGN().create_network(problem)
    compute = net.training_loss(problem.train_labels, (5, 6))
    return torch.stack([compute().detach() for _ in range(4)])


def test_few_rows_are_all_used_whatever_other_fits_have(problem, monkeypatch):
    both = losses(problem, 32, monkeypatch)
    alone = replace(problem, train_labels=problem.train_labels[:1], seeds=problem.seeds[:1],
                    val_labels=problem.val_labels[:1], pool=problem.pool[:1])  # fmt: skip
    monkeypatch.setattr(networks, "ROWS_PER_EPOCH", 32)
    compute = SIGN().create_network(alone).training_loss(alone.train_labels, (5,))
    expected = torch.stack([compute().detach() for _ in range(4)])
    torch.testing.assert_close(both[:, :1], expected)


def test_many_rows_are_drawn_again_in_each_epoch(problem, monkeypatch):
    everything = losses(problem, 100, monkeypatch)
    batches = losses(problem, 32, monkeypatch)
    assert (batches[:, 1] != everything[:, 1]).all()
    assert len(set(batches[:, 1].tolist())) == 4
    torch.testing.assert_close(batches, losses(problem, 32, monkeypatch))


def test_labeled_rows_of_sparse_features_are_made_dense(problem, monkeypatch):
    x = np.random.default_rng(0).random((300, 40)) * (
        np.random.default_rng(1).random((300, 40)) < 0.1
    )
    features = sp.csr_array(x.astype(np.float32))
    tensors = GraphTensors.of(features, problem_adjacency())
    own = replace(problem, graph=tensors)
    dense = replace(problem, graph=GraphTensors.of(features.toarray(), problem_adjacency()))
    found, expected = (
        MLP().create_network(each).training_loss(each.train_labels, (5, 6))()
        for each in (own, dense)
    )
    torch.testing.assert_close(found, expected)
    monkeypatch.setattr(networks, "MOST_DENSE", 10)
    fallback = MLP().create_network(own).training_loss(own.train_labels, (5, 6))()
    assert fallback.shape == (2,)
    assert not torch.equal(fallback, found), "dropout is drawn for all nodes"


@pytest.mark.parametrize("most", [1000, 32])
def test_sparse_rows_are_the_same_for_one_fit_and_for_several(problem, monkeypatch, most):
    """Also if one of them has more labels than rows per epoch."""
    monkeypatch.setattr(networks, "ROWS_PER_EPOCH", most)
    rng = np.random.default_rng(0)
    features = sp.csr_array(rng.random((300, 40)) * (rng.random((300, 40)) < 0.05))
    graph = GraphTensors.of(features.astype(np.float32), problem_adjacency())
    both = replace(problem, graph=graph)
    compute = MLP().create_network(both).training_loss(both.train_labels, (5, 6))
    together = torch.stack([compute().detach() for _ in range(4)])
    for fit in range(2):
        own = slice(fit, fit + 1)
        alone = replace(both, train_labels=both.train_labels[own], seeds=both.seeds[own],
                        val_labels=both.val_labels[own], pool=both.pool[own])  # fmt: skip
        compute = MLP().create_network(alone).training_loss(alone.train_labels, (5 + fit,))
        expected = torch.stack([compute().detach() for _ in range(4)])
        torch.testing.assert_close(together[:, own], expected)


def test_batches_learn_as_well_as_all_rows(monkeypatch):
    graph = synthetic(600, 4, features=8, seed=1)
    split = sample(graph, "uniform", per_class=60, runs=1)
    accuracy = []
    for rows in (1000, 48):
        monkeypatch.setattr(networks, "ROWS_PER_EPOCH", rows)
        accuracy.append(SIGN(epochs=60).fit(graph, split).score(graph, split.pool[0]))
    assert accuracy[0] > 0.8
    assert accuracy[1] > accuracy[0] - 0.04
