"""Multi-stage self-supervised training (Sun et al., AAAI 2020, https://arxiv.org/abs/1902.11038)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from dcgst.engine.random import Purpose, Streams, derive
from dcgst.methods.core.params import param
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.trace import Selection
from dcgst.methods.st import ST
from dcgst.nn.base import Output
from dcgst.numerics.clusters import group_means, k_means


@dataclass(eq=False, kw_only=True)
class M3S(ST):
    """Self-training in stages that selects a confident node only if its cluster agrees.

    In each stage all nodes are clustered by their hidden layer. A cluster is assigned the class
    whose labeled nodes have the nearest mean. The most confident nodes of each class become
    pseudo-labels if their cluster is of the same class. Pseudo-labels are kept, and a new network
    is trained.
    """

    name: ClassVar[str] = "m3s"

    stages: int = param(5, "number of stages; each adds an equal part", low=1, high=40)
    clusters: int = param(200, "number of clusters", low=1)

    def select(self, output: Output, labels: Tensor, problem: Problem, stage: int) -> Selection:
        """Select the most confident nodes whose cluster agrees; the score is 1 if it does."""
        selection = super().select(output, labels, problem, stage)
        agrees = (
            self.cluster_labels(output.embedding, labels, problem, stage) == selection.predicted
        )
        score = agrees.to(output.embedding.dtype)
        return replace(selection, selected=selection.selected & agrees, selection_score=score)

    def cluster_labels(
        self, hidden: Tensor, labels: Tensor, problem: Problem, stage: int
    ) -> Tensor:
        """``(R, n)`` the class of each node's cluster."""
        z = F.normalize(hidden, dim=-1)
        seeds = [derive(seed, Purpose.CLUSTERING, stage) for seed in problem.seeds]
        cluster = k_means(z, self.clusters, Streams(seeds, z.device))
        class_means, class_sizes = group_means(z, labels, problem.num_classes)
        unlabeled = torch.where(labels < 0, cluster, -1)
        cluster_means, _ = group_means(z, unlabeled, self.clusters)
        distance = torch.cdist(cluster_means, class_means)  # (R, clusters, C)
        distance = distance.masked_fill(class_sizes[:, None] == 0, float("inf"))
        return distance.argmin(-1).gather(1, cluster)
