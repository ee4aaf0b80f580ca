"""Problem: what a method may know, built from arrays."""

from __future__ import annotations

import numpy as np
import torch

from tests.methods.helpers import normalized, ring, ring_problem


def test_default_pool_is_all_nodes_without_training_label():
    problem = ring_problem([[0, -1, 1], [-1, -1, 0]])
    assert problem.pool.tolist() == [[False, True, False], [True, True, False]]
    assert problem.num_fits == 2
    assert problem.seeds == (0, 0)
    assert not problem.has_validation.any()


def test_has_validation_is_per_run():
    val = np.array([[-1, 1, -1], [-1, -1, -1]])
    problem = ring_problem([[0, -1, 1], [-1, -1, 0]], val_labels=val)
    assert problem.has_validation.tolist() == [True, False]


def test_one_hot_is_zero_for_unlabeled_nodes():
    one_hot = ring_problem([0, -1, 2], 3).one_hot()
    assert one_hot.tolist() == [[[1, 0, 0], [0, 0, 0], [0, 0, 1]]]


def test_class_shares_are_of_the_training_labels():
    shares = ring_problem([0, 0, 0, 2, -1], 3).class_shares()
    assert shares.tolist() == [[0.75, 0, 0.25]]


def test_normalized_adjacency():
    found = ring_problem([0, 1, -1, -1, -1]).graph.normalized
    np.testing.assert_allclose(found.to_scipy().toarray(), normalized(ring(5)), rtol=1e-6)


def test_shared_computations_are_done_once():
    graph = ring_problem([0, 1, -1, -1, -1]).graph
    assert graph.normalized is graph.normalized
    assert graph.views is graph.views
    assert graph.similar_nodes(2) is graph.similar_nodes(2)
    assert graph.similar_nodes(2) is not graph.similar_nodes(3)
    assert graph.device == torch.device("cpu")
