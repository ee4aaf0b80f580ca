"""The edge predictor: draws, variants and losses, by hand and by frequency."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.engine.random import Streams
from dcgst.engine.sparse import SparseMatrix
from dcgst.nn.edge_predictor import (
    EdgePredictor,
    Variants,
    pair_logits,
    reconstruction_loss,
    sample_edges,
)


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


def test_pair_logits_by_hand():
    t = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]], [[1.0, 0.0], [5.0, 0.0], [0.0, 2.0]]])
    shared = torch.tensor([[0, 1], [1, 2]])
    assert pair_logits(t, shared).tolist() == [[11.0, 4.0], [5.0, 0.0]]
    own = torch.tensor([[[0, 1]], [[2, 2]]])
    assert pair_logits(t, own).tolist() == [[11.0], [4.0]]


class TestDraws:
    logits = torch.tensor([[-2.0, 0.0, 1.5]]).repeat(1, 4000)

    @pytest.mark.parametrize("noise", ["logistic", "gumbel"])
    def test_frequencies(self, noise):
        drawn = sample_edges(self.logits, Streams([0]), noise=noise).view(4000, 3)
        odds = self.logits[0, :3].sigmoid()
        expected = odds if noise == "logistic" else 1 - (-odds).exp()
        torch.testing.assert_close(drawn.mean(0), expected, atol=0.03, rtol=0)
        assert set(drawn.flatten().tolist()) == {0.0, 1.0}

    def test_the_printed_formula_never_draws_more_than_63_percent(self):
        certain = torch.full((1, 20_000), 50.0)
        drawn = sample_edges(certain, Streams([0]), noise="gumbel")
        assert float(drawn.mean()) == pytest.approx(1 - exp(-1), abs=0.02)

    def test_gradient_is_that_of_the_relaxed_draw(self):
        logits = torch.tensor([[-1.0, 0.3, 2.0]], requires_grad=True)
        sample_edges(logits, Streams([5]), temperature=1.2).sum().backward()
        u = Streams([5]).uniform(3)
        relaxed = ((logits.detach() + u.log() - (1 - u).log()) / 1.2).sigmoid()
        torch.testing.assert_close(logits.grad, relaxed * (1 - relaxed) / 1.2)


class TestVariants:
    adjacency = graph_of(5, (0, 1), (1, 2), (3, 4))
    pairs = torch.tensor([[[0, 1], [0, 2], [2, 0], [3, 3]], [[4, 3], [1, 3], [0, 1], [1, 0]]])

    def test_by_hand(self):
        variants = Variants.of(self.adjacency, self.pairs)
        drawn = torch.tensor([[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
        matrix = variants.with_edges(drawn)
        # Run 0 loses 0-1 and gains 0-2; the repetition and the loop do not count.
        assert torch.equal(dense_of(matrix, 0), dense_of(_two(graph_of(5, (0, 2), (1, 2), (3, 4)))))
        # Run 1 keeps 3-4 and loses 0-1; the pairs of run 0 leave it alone.
        assert torch.equal(dense_of(matrix, 1), dense_of(_two(graph_of(5, (1, 2), (3, 4)))))

    def test_a_pair_keeps_the_weight_of_its_edge(self):
        weighted = graph_of(5, (0, 1), (3, 4), weight=3.0)
        matrix = Variants.of(weighted, self.pairs[:1]).with_edges(torch.ones(1, 4))
        dense = dense_of(matrix)
        assert dense[0, 1] == dense[1, 0] == 3
        assert dense[0, 2] == dense[2, 0] == 3  # new edges weigh what edges weigh on average

    def test_gradient(self):
        drawn = torch.tensor([[0.3, 0.6, 0.1, 0.2], [0.4, 0.5, 0.6, 0.7]], dtype=torch.float64)
        adjacency = self.adjacency.with_values(self.adjacency.values.double())
        variants = Variants.of(adjacency, self.pairs)
        drawn.requires_grad_(True)
        assert torch.autograd.gradcheck(lambda d: variants.with_edges(d).values, drawn)

    def test_alone_or_together_the_graph_is_the_same(self):
        drawn = torch.tensor([[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
        together = Variants.of(self.adjacency, self.pairs).with_edges(drawn)
        for run in range(2):
            part = slice(run, run + 1)
            alone = Variants.of(self.adjacency, self.pairs[part]).with_edges(drawn[part])
            assert torch.equal(dense_of(alone), dense_of(together, run))

    def test_graph_without_edges(self):
        matrix = Variants.of(graph_of(5), self.pairs).with_edges(torch.ones(2, 4))
        assert dense_of(matrix, 1)[1, 3] == 1


def _two(matrix: SparseMatrix) -> SparseMatrix:
    return matrix.with_values(matrix.values[None])


def test_loss_by_hand():
    """One vector for all nodes: every pair has the same odds."""
    t = torch.full((1, 4, 1), 2.0)
    loss = reconstruction_loss(t, graph_of(4, (0, 1)).pattern, Streams([0]), count=64)
    expected = (log(1 + exp(-4)) + log(1 + exp(4))) / 2
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    assert float(reconstruction_loss(t, graph_of(4).pattern, Streams([0]))) == 0


def test_it_learns_which_nodes_are_joined():
    """After training, edges within two cliques are likelier than pairs between them."""
    cliques = [(i, j) for base in (0, 6) for i in range(6) for j in range(i) if base == 0]
    edges = cliques + [(i + 6, j + 6) for i, j in cliques]
    adjacency = graph_of(12, *edges)
    predictor = EdgePredictor([0, 1], 12, 8)
    operator, x = predictor.operator(adjacency), torch.eye(12)
    optimiser = torch.optim.Adam(predictor.parameters(), lr=0.05)
    streams = Streams([0, 1])
    for _ in range(60):
        optimiser.zero_grad()
        reconstruction_loss(predictor(x, operator), adjacency.pattern, streams, 64).sum().backward()
        optimiser.step()
    odds = pair_logits(predictor(x, operator), torch.tensor([[0, 3], [7, 9], [1, 8], [5, 11]]))
    assert (odds[:, :2].min(1).values > odds[:, 2:].max(1).values).all()
