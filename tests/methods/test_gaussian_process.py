"""Gaussian process: leave-one-out and prediction by hand, choice of hops, limits."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.datasets import synthetic
from dcgst.graph import Graph
from dcgst.methods import GCN, GaussianProcess
from dcgst.methods.gaussian_process import (
    Kernel,
    scale_of_logits,
    spread_over_classes,
    squared_distance,
)
from dcgst.methods.result import LEFT_OUT
from dcgst.splits import Split, sample


@pytest.fixture
def blocks(rng) -> dict[str, torch.Tensor]:
    return {
        "0 hops": torch.tensor(rng.normal(size=(30, 3)), dtype=torch.float32),
        "PageRank": torch.tensor(rng.normal(size=(30, 2)), dtype=torch.float32),
    }


def test_distances(rng):
    left, right = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    expected = ((left[:, None] - right[None]) ** 2).sum(-1)
    assert squared_distance(torch.tensor(left), torch.tensor(right)).numpy() == pytest.approx(
        expected
    )


def test_the_kernel_is_a_weighted_sum(blocks):
    nodes = torch.tensor([2, 5, 11])
    kernel = Kernel(blocks, nodes)
    kernel.log_weights = torch.log(torch.tensor([0.25, 0.75], dtype=torch.double))
    kernel.log_lengths = torch.log(torch.tensor([1.0, 2.0], dtype=torch.double))
    kernel.log_noise = torch.log(torch.tensor(0.5, dtype=torch.double))
    first, second = (block.double().numpy() for block in blocks.values())

    def distance(block, i, j):
        every = ((block[:, None] - block[None]) ** 2).sum(-1)
        # torch.median is the lower of two middle values
        return every[i, j] / np.sort(every.ravel())[(every.size - 1) // 2]

    expected = 0.25 * math.exp(-distance(first, 2, 11)) + 0.75 * math.exp(
        -distance(second, 2, 11) / 2
    )
    matrix = kernel.matrix()
    assert float(matrix[0, 2]) == pytest.approx(expected, abs=1e-5)
    assert float(matrix[1, 1]) == pytest.approx(1 + 0.5 + 1e-4)
    ones = torch.eye(3, dtype=torch.double)
    found = kernel.sum_of(ones, torch.tensor([7.0, 0.0, 0.0]))(SimpleNamespace(propagated=blocks))
    assert float(found[11, 0]) == pytest.approx(7 + expected, abs=1e-5)


def test_the_evidence_chooses_the_informative_block(rng):
    labels = torch.tensor([0, 1] * 15)
    informative = torch.tensor(rng.normal(size=(30, 2)) / 4, dtype=torch.float32)
    informative[:, 0] += 2 * labels
    noise = torch.tensor(rng.normal(size=(30, 2)), dtype=torch.float32)
    targets = torch.nn.functional.one_hot(labels).double() - 0.5
    for name in ("1 hop", "3 hops"):
        blocks = {"1 hop": noise, "3 hops": noise} | {name: informative}
        kernel = Kernel(blocks, torch.arange(30))
        kernel.fit(targets, steps=100, strength=0.1)
        weights = dict(zip(blocks, kernel.log_weights.softmax(0).tolist(), strict=True))
        assert weights[name] > 0.7
        strong = Kernel(blocks, torch.arange(30))
        strong.fit(targets, steps=100, strength=1000.0)
        assert strong.log_weights.softmax(0).tolist() == pytest.approx([0.5, 0.5], abs=0.01)


def test_more_evidence_after_the_search(blocks, rng):
    targets = torch.nn.functional.one_hot(torch.tensor([0, 1, 2] * 10)).double() - 1 / 3

    def loss(kernel):
        """With the best variance, minus twice the log marginal likelihood up to a constant."""
        matrix = kernel.matrix()
        fit = float((targets * torch.linalg.solve(matrix, targets)).sum())
        return 90 * math.log(fit) + 3 * float(torch.logdet(matrix))

    kernel = Kernel(blocks, torch.arange(30))
    before = loss(kernel)
    kernel.fit(targets, steps=60, strength=0.01)
    assert loss(kernel) < before


def test_the_scale_follows_the_errors():
    right = torch.tensor([[0.5, -0.5]], dtype=torch.double).repeat(30, 1)
    labels = torch.zeros(30, dtype=torch.long)
    half_wrong = torch.tensor([0, 1] * 15)
    assert scale_of_logits(right, labels) > 8
    assert scale_of_logits(right, half_wrong) == pytest.approx(1)


def test_labels_are_spread_over_the_classes():
    labels = torch.tensor([0] * 90 + [1] * 6 + [-1] * 4)
    assert spread_over_classes(labels, 2, 96).tolist() == list(range(96))
    chosen = spread_over_classes(labels, 2, 20)
    counts = torch.bincount(labels[chosen]).tolist()
    assert counts == [10, 6]
    assert chosen.tolist() == sorted(chosen.tolist())


def bipartite(rng, nodes: int = 200) -> Graph:
    """Neighbors have different classes; only they have informative features."""
    side = np.arange(nodes) % 2
    source = rng.integers(0, nodes, 5 * nodes)
    target = rng.integers(0, nodes, 5 * nodes)
    kept = side[source] != side[target]
    edges = np.stack([source[kept], target[kept]])
    x = rng.normal(size=(nodes, 2)).astype(np.float32)
    x[:, 0] += 1.5 * side
    return Graph.from_edges(edges, x, side)


def test_heterophily_does_not_hurt(rng):
    graph = bipartite(rng)
    train = np.zeros(200, dtype=bool)
    train[:20] = True
    split = Split.of(train)
    ours = GaussianProcess().fit(graph, split).score(graph)
    assert ours > 0.9
    assert ours > GCN(epochs=60).fit(graph, split).score(graph)


def test_a_class_without_labels_is_never_predicted(rng):
    graph = bipartite(rng)
    labels = graph.labels.copy()
    labels[100:110] = 2
    graph = Graph.from_edges(
        np.stack(sp.csr_array(graph.adjacency).nonzero()), graph.features, labels
    )
    train = np.zeros(200, dtype=bool)
    train[:20] = True
    model = GaussianProcess(steps=5).fit(graph, Split.of(train))
    assert model.proba_.shape == (200, 3)
    assert model.proba_[:, 2].max() < 1e-3


def test_the_left_out_accuracy_is_that_of_fits_without_each_label():
    graph = synthetic(120, 3, features=4, seed=2)
    split = sample(graph, "uniform", per_class=5, runs=1)
    model = GaussianProcess(steps=0).fit(graph, split)
    right = []
    for node in np.flatnonzero(split.train[0]):
        others = split.train[0].copy()
        others[node] = False
        alone = GaussianProcess(steps=0).fit(graph, Split.of(others))
        right.append(alone.proba_[node].argmax() == graph.labels[node])
    assert model.result_.expectation == {LEFT_OUT: pytest.approx(np.mean(right))}
    assert 0.4 < np.mean(right) < 1


def test_many_labels_share_a_kernel_learned_from_some(monkeypatch):
    graph = synthetic(300, 3, features=8, seed=4)
    split = sample(graph, "uniform", per_class=40, runs=1)
    sizes = []
    fit = Kernel.fit

    def recorded(self, targets, steps, strength):
        sizes.append(len(targets))
        fit(self, targets, steps, strength)

    monkeypatch.setattr(Kernel, "fit", recorded)
    monkeypatch.setattr("dcgst.methods.gaussian_process.KERNEL_LABELS", 30)
    few = GaussianProcess(steps=20).fit(graph, split)
    monkeypatch.setattr("dcgst.methods.gaussian_process.KERNEL_LABELS", 500)
    everything = GaussianProcess(steps=20).fit(graph, split)
    assert sizes == [30, 120]
    assert (few.labels_ == everything.labels_).mean() > 0.9
    assert not np.array_equal(few.proba_, everything.proba_)
