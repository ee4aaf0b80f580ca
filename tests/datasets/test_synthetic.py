"""The synthetic graph: every argument has its documented effect."""

from __future__ import annotations

import numpy as np
import pytest

from dcgst.datasets import synthetic
from dcgst.errors import InputError


@pytest.mark.parametrize("homophily", [0.3, 0.9])
def test_homophily_is_the_share_of_edges_within_classes(homophily):
    assert synthetic(1000, homophily=homophily).homophily() == pytest.approx(homophily, abs=0.03)


def test_degree_is_the_mean_number_of_neighbors():
    assert synthetic(1000, degree=10).degrees.mean() == pytest.approx(10, rel=0.1)


def test_balance_is_the_ratio_of_class_sizes():
    assert np.bincount(synthetic(1400, 3, balance=0.5).labels).tolist() == [800, 400, 200]


def test_shift_moves_the_labels_to_the_start_of_each_arc():
    def position(shift):
        graph = synthetic(1000, 2, shift=shift, labels_per_class=50)
        return (np.flatnonzero(graph.masks["train"]) % 500).mean() / 500

    assert position(0.0) == pytest.approx(0.5, abs=0.1)
    assert position(1.0) < position(0.3) < 0.4
    assert position(1.0) < 0.1


def test_noise_spreads_the_features():
    exact, noisy = (synthetic(300, noise=noise).features for noise in (0.0, 0.5))
    np.testing.assert_allclose(np.linalg.norm(exact, axis=1), 1, rtol=1e-5)
    assert np.linalg.matrix_rank(exact, tol=1e-4) == 2
    # The squared noise of a row is 0.25 on average, orthogonal to the circle but for chance.
    assert (np.linalg.norm(noisy, axis=1) ** 2).mean() == pytest.approx(1.25, abs=0.03)


def test_masks_hold_the_labels_of_each_class_and_the_rest():
    graph = synthetic(300, 3, labels_per_class=7, features=9)
    assert np.bincount(graph.labels[graph.masks["train"]]).tolist() == [7, 7, 7]
    np.testing.assert_array_equal(graph.masks["test"], ~graph.masks["train"])
    assert (graph.num_classes, graph.num_features) == (3, 9)


def test_the_seed_determines_the_graph():
    first, again, other = (synthetic(200, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.features, again.features)
    assert abs(first.adjacency - again.adjacency).nnz == 0
    assert not np.array_equal(first.features, other.features)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shift": 2.0}, "shift=2.0"),
        ({"homophily": -1.0}, "homophily=-1.0"),
        ({"balance": 0.0}, "balance=0.0"),
        ({"nodes": 10, "classes": 5}, "the smallest class has 2 nodes, too few for 5 labels"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        synthetic(**arguments)
