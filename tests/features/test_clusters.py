"""k-means for all replicas together."""

from __future__ import annotations

import numpy as np
import torch

from dcgst.features import components as clusters
from dcgst.features.components import group_means, k_means
from dcgst.train.random import Streams


def blobs():
    """Four groups of ten points, far apart."""
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0], [50, 0], [0, 50], [50, 50]])
    truth = np.repeat(np.arange(4), 10)
    return torch.tensor(centers[truth] + rng.normal(size=(40, 2)), dtype=torch.float32), truth


def inertia(z, cluster):
    means, _ = group_means(z[None], cluster[None], int(cluster.max()) + 1)
    return float((z - means[0, cluster]).square().sum())


def test_the_best_of_several_starts_finds_separated_groups():
    z, truth = blobs()
    found = k_means(z.expand(8, -1, -1), 4, Streams(range(8)))
    best = min(found, key=lambda cluster: inertia(z, cluster)).numpy()
    for group in range(4):
        assert len(np.unique(best[truth == group])) == 1
    assert len(np.unique(best)) == 4


def test_every_point_is_closest_to_the_mean_of_its_cluster():
    z = torch.randn(1, 200, 5, generator=torch.Generator().manual_seed(0))
    cluster = k_means(z, 7, Streams([0]), steps=500)
    means, sizes = group_means(z, cluster, 7)
    assert (sizes > 0).all()
    assert torch.equal(torch.cdist(z, means).argmin(-1), cluster)


def test_replicas_are_independent_and_blocks_change_nothing(monkeypatch):
    z = torch.randn(3, 60, 4, generator=torch.Generator().manual_seed(1))
    together = k_means(z, 5, Streams([0, 1, 2]))
    for replica in range(3):
        alone = k_means(z[replica : replica + 1], 5, Streams([replica]))
        assert torch.equal(together[replica], alone[0])
    monkeypatch.setattr(clusters, "_BLOCK", 100)
    assert torch.equal(k_means(z, 5, Streams([0, 1, 2])), together)


def test_no_more_clusters_than_points():
    z = torch.randn(1, 4, 2, generator=torch.Generator().manual_seed(2))
    assert sorted(k_means(z, 9, Streams([0]))[0].tolist()) == [0, 1, 2, 3]


def test_an_empty_cluster_keeps_its_center():
    """Two centers start at 10 and one at 100, so one cluster is empty after the first step.

    Its center stays at 10, where it takes the points at 10 in the second step: the other center is
    at 9.6 by then. A center at zero would stay empty.
    """
    z = torch.tensor([10.0] * 9 + [6.0] + [100.0] * 5)
    first = Streams([0]).uniform(15).argsort(dim=1)[0, :3]
    assert sorted(z[first].tolist()) == [10, 10, 100]
    found = k_means(z.view(1, 15, 1), 3, Streams([0]))[0]
    assert [found[z == value].unique().numel() for value in (10, 6, 100)] == [1, 1, 1]
    assert found.unique().numel() == 3


def test_group_means_by_hand():
    z = torch.tensor([[[1.0], [3.0], [10.0], [7.0]]])
    means, sizes = group_means(z, torch.tensor([[0, 0, 2, -1]]), 3)
    assert means.tolist() == [[[2.0], [0.0], [10.0]]]
    assert sizes.tolist() == [[2, 0, 1]]
