"""The edge predictor: samples, graph variants and losses, by hand and by frequency."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.features.sparse import SparseMatrix
from dcgst.nn.edge_predictor import (
    EdgePredictor,
    Variants,
    pair_logits,
    reconstruction_loss,
    sample_edges,
)
from dcgst.train.random import Streams


def graph_of(n: int, *edges: tuple[int, int], weight: float = 1.0) -> SparseMatrix:
    dense = np.zeros((n, n), dtype=np.float32)
    for i, j in edges:
        dense[i, j] = dense[j, i] = weight
    return SparseMatrix.from_scipy(sp.csr_array(dense))


def dense_of(matrix: SparseMatrix, run: int = 0) -> torch.Tensor:
    pattern = matrix.pattern
    result = torch.zeros(pattern.num_rows, pattern.num_cols)
    result[pattern.rows, pattern.indices] = matrix.values[run].detach()
    return result


def test_pair_logits_are_inner_products():
    t = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]], [[1.0, 0.0], [5.0, 0.0], [0.0, 2.0]]])
    shared = torch.tensor([[0, 1], [1, 2]])
    assert pair_logits(t, shared).tolist() == [[11.0, 4.0], [5.0, 0.0]]
    own = torch.tensor([[[0, 1]], [[2, 2]]])
    assert pair_logits(t, own).tolist() == [[11.0], [4.0]]


class TestSamples:
    @pytest.mark.parametrize("temperature", [0.5, 1.2])
    def test_an_edge_is_sampled_with_its_probability(self, temperature):
        logits = torch.tensor([[-2.0, 0.0, 1.5]])
        repeated = logits.repeat(1, 4000)
        sampled = sample_edges(repeated, Streams([0]), temperature).view(4000, 3)
        torch.testing.assert_close(sampled.mean(0), logits[0].sigmoid(), atol=0.03, rtol=0)
        assert set(sampled.flatten().tolist()) == {0.0, 1.0}

    def test_gradients_are_those_of_the_relaxed_sample(self):
        logits = torch.tensor([[-1.0, 0.3, 2.0]], requires_grad=True)
        sample_edges(logits, Streams([5]), temperature=1.2).sum().backward()
        u = Streams([5]).uniform(3)
        relaxed = ((logits.detach() + u.log() - (1 - u).log()) / 1.2).sigmoid()
        torch.testing.assert_close(logits.grad, relaxed * (1 - relaxed) / 1.2)


class TestVariants:
    adjacency = graph_of(5, (0, 1), (1, 2), (3, 4))
    pairs = torch.tensor([[[0, 1], [0, 2], [2, 0], [3, 3]], [[4, 3], [1, 3], [0, 1], [1, 0]]])

    def test_pairs_are_added_and_removed_for_each_run(self):
        variants = Variants.of(self.adjacency, self.pairs)
        sampled = torch.tensor([[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
        matrix = variants.with_edges(sampled)
        # Run 0 loses 0-1 and gains 0-2; the repeated pair and the self-loop are ignored.
        assert torch.equal(dense_of(matrix, 0), dense_of(_two(graph_of(5, (0, 2), (1, 2), (3, 4)))))
        # Run 1 keeps 3-4 and loses 0-1; the pairs of run 0 have no effect on it.
        assert torch.equal(dense_of(matrix, 1), dense_of(_two(graph_of(5, (1, 2), (3, 4)))))

    def test_an_edge_keeps_its_weight_and_a_new_edge_has_the_mean_weight(self):
        weights = np.zeros((5, 5), dtype=np.float32)
        weights[[0, 1], [1, 0]], weights[[3, 4], [4, 3]] = 3, 5
        weighted = SparseMatrix.from_scipy(sp.csr_array(weights))
        matrix = Variants.of(weighted, self.pairs[:1]).with_edges(torch.ones(1, 4))
        dense = dense_of(matrix)
        assert dense[0, 1] == dense[1, 0] == 3
        assert dense[0, 2] == dense[2, 0] == 4
        assert dense[3, 4] == dense[4, 3] == 5

    def test_gradients_equal_finite_differences(self):
        sampled = torch.tensor([[0.3, 0.6, 0.1, 0.2], [0.4, 0.5, 0.6, 0.7]], dtype=torch.float64)
        adjacency = self.adjacency.with_values(self.adjacency.values.double())
        variants = Variants.of(adjacency, self.pairs)
        sampled.requires_grad_(True)
        assert torch.autograd.gradcheck(lambda d: variants.with_edges(d).values, sampled)

    def test_a_run_has_the_same_graph_alone_and_with_others(self):
        sampled = torch.tensor([[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
        together = Variants.of(self.adjacency, self.pairs).with_edges(sampled)
        for run in range(2):
            part = slice(run, run + 1)
            alone = Variants.of(self.adjacency, self.pairs[part]).with_edges(sampled[part])
            assert torch.equal(dense_of(alone), dense_of(together, run))

    def test_edges_can_be_added_to_a_graph_without_edges(self):
        matrix = Variants.of(graph_of(5), self.pairs).with_edges(torch.ones(2, 4))
        assert dense_of(matrix, 1)[1, 3] == 1


def _two(matrix: SparseMatrix) -> SparseMatrix:
    return matrix.with_values(matrix.values[None])


def test_the_loss_weights_edges_and_random_pairs_equally():
    """All nodes have the same vector, so every pair has the same log-odds."""
    t = torch.full((1, 4, 1), 2.0)
    loss = reconstruction_loss(t, graph_of(4, (0, 1)).pattern, Streams([0]), count=64)
    expected = (log(1 + exp(-4)) + log(1 + exp(4))) / 2
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    assert float(reconstruction_loss(t, graph_of(4).pattern, Streams([0]))) == 0


def test_training_separates_connected_from_unconnected_pairs():
    """After training, pairs within two cliques are more likely than pairs between them."""
    edges = [(start + i, start + j) for start in (0, 6) for i in range(6) for j in range(i)]
    adjacency = graph_of(12, *edges)
    predictor = EdgePredictor([0, 1], 12, 8)
    operator, x = predictor.operator(adjacency), torch.eye(12)
    optimizer = torch.optim.Adam(predictor.parameters(), lr=0.05)
    streams = Streams([0, 1])
    for _ in range(60):
        optimizer.zero_grad()
        reconstruction_loss(predictor(x, operator), adjacency.pattern, streams, 64).sum().backward()
        optimizer.step()
    log_odds = pair_logits(predictor(x, operator), torch.tensor([[0, 3], [7, 9], [1, 8], [5, 11]]))
    assert (log_odds[:, :2].min(1).values > log_odds[:, 2:].max(1).values).all()


def test_gumbel_noise_samples_an_edge_with_the_printed_probability():
    """1 - exp(-M) for M = 0.5 and 0.9."""
    share = torch.tensor([[0.5, 0.9]])
    logits = (share / (1 - share)).log().expand(20_000, 2).reshape(1, -1)
    sampled = sample_edges(logits, Streams([0]), 1.2, "gumbel").view(-1, 2)
    expected = 1 - (-share[0]).exp()
    torch.testing.assert_close(sampled.mean(0), expected, atol=0.015, rtol=0)
