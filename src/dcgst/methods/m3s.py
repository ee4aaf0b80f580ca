"""Multi-stage self-supervised training (Sun et al., 2020)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from dcgst.engine.clusters import group_means, k_means
from dcgst.engine.random import Streams, derive
from dcgst.methods.outcome import Problem
from dcgst.methods.params import param
from dcgst.methods.st import ST
from dcgst.methods.stages import Stage
from dcgst.nn.base import Output

CLUSTERS = 50
"""Purpose for which random numbers are drawn."""


@dataclass(eq=False, kw_only=True)
class M3S(ST):
    """Self-training in stages that trusts a confident node only if its cluster agrees.

    In each stage all nodes are clustered by their hidden layer. A cluster is given the class whose
    labeled nodes have their mean nearest to that of its unlabeled ones. The most confident nodes of
    each class join the labels where their cluster has that class too; there they stay, and a fresh
    network is trained.
    """

    name: ClassVar[str] = "m3s"

    stages: int = param(5, "stages, which share out the pseudo-labels", low=1, high=40)
    clusters: int = param(200, "clusters of all nodes", low=1)

    def choose(self, output: Output, labels: Tensor, problem: Problem, number: int) -> Stage:
        """The most confident nodes, as far as their clusters agree."""
        stage = super().choose(output, labels, problem, number)
        agrees = self.cluster_labels(output.hidden, labels, problem, number) == stage.predicted
        return replace(stage, chosen=stage.chosen & agrees, q=agrees.to(output.hidden.dtype))

    def cluster_labels(
        self, hidden: Tensor, labels: Tensor, problem: Problem, number: int
    ) -> Tensor:
        """``(R, n)`` the class of each node's cluster."""
        z = F.normalize(hidden, dim=-1)
        seeds = [derive(seed, CLUSTERS, number) for seed in problem.seeds]
        cluster = k_means(z, self.clusters, Streams(seeds, z.device))
        class_means, class_sizes = group_means(z, labels, problem.num_classes)
        unlabeled = torch.where(labels < 0, cluster, -1)
        cluster_means, _ = group_means(z, unlabeled, self.clusters)
        distance = torch.cdist(cluster_means, class_means)  # (R, clusters, C)
        distance = distance.masked_fill(class_sizes[:, None] == 0, float("inf"))
        return distance.argmin(-1).gather(1, cluster)
