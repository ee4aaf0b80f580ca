"""k-means for all replicas at once."""

from __future__ import annotations

import numpy as np
import torch

from dcgst.engine.clusters import group_means, k_means
from dcgst.engine.random import Streams


def blobs(seed=0):
    """Four clouds of ten points, far apart."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0, 0], [50, 0], [0, 50], [50, 50]])
    truth = np.repeat(np.arange(4), 10)
    return torch.tensor(centres[truth] + rng.normal(size=(40, 2)), dtype=torch.float32), truth


def inertia(z, cluster):
    means, _ = group_means(z[None], cluster[None], int(cluster.max()) + 1)
    return float((z - means[0, cluster]).square().sum())


def test_points_of_a_cloud_stay_together():
    z, truth = blobs()
    # As many random starts as there are seeds; the best one must have found the clouds.
    found = k_means(z.expand(8, -1, -1), 4, Streams(range(8)))
    best = min(found, key=lambda cluster: inertia(z, cluster)).numpy()
    for cloud in range(4):
        assert len(np.unique(best[truth == cloud])) == 1
    assert len(np.unique(best)) == 4


def test_every_point_is_nearest_to_its_own_mean():
    z = torch.randn(1, 200, 5, generator=torch.Generator().manual_seed(0))
    cluster = k_means(z, 7, Streams([0]), steps=500)
    means, sizes = group_means(z, cluster, 7)
    assert (sizes > 0).all()
    assert torch.equal(torch.cdist(z, means).argmin(-1), cluster)


def test_replicas_are_as_if_alone():
    z = torch.randn(3, 60, 4, generator=torch.Generator().manual_seed(1))
    together = k_means(z, 5, Streams([0, 1, 2]))
    for replica in range(3):
        alone = k_means(z[replica : replica + 1], 5, Streams([replica]))
        assert torch.equal(together[replica], alone[0])


def test_more_clusters_than_points():
    z = torch.randn(1, 4, 2, generator=torch.Generator().manual_seed(2))
    assert sorted(k_means(z, 9, Streams([0]))[0].tolist()) == [0, 1, 2, 3]


def test_means_by_hand():
    z = torch.tensor([[[1.0], [3.0], [10.0], [7.0]]])
    means, sizes = group_means(z, torch.tensor([[0, 0, 2, -1]]), 3)
    assert means.tolist() == [[[2.0], [0.0], [10.0]]]
    assert sizes.tolist() == [[2, 0, 1]]
