"""Self-training (Li et al., AAAI 2018), and in several stages (M3S; Sun et al., AAAI 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from dcgst.features.components import group_means, k_means
from dcgst.methods.base import param
from dcgst.methods.networks import GCN, Network, NeuralMethod
from dcgst.methods.problem import Problem
from dcgst.methods.result import Result, Selection
from dcgst.methods.self_training import SelfTraining, StopRule
from dcgst.nn.backbones import Output
from dcgst.shift.selection import ranks
from dcgst.train.random import Purpose, Streams, derive


@dataclass(eq=False, kw_only=True)
class ST(NeuralMethod):
    r"""Train, add the most confident nodes of each class to the labels, train a new network.

    Class j gets :math:`t_j = \lfloor 3\eta\,s_j \rfloor` pseudo-labels: :math:`s_j` is its share
    among the given labels, and :math:`\eta = n / \bar d^{\,2}` the number of labels from which two
    layers would reach all n nodes at mean degree :math:`\bar d`.

    Li et al., AAAI 2018, https://arxiv.org/abs/1801.07606.

    Example:
        >>> from dcgst import ST, load
        >>> graph = load("synthetic")
        >>> model = ST(stages=1, epochs=50).fit(graph)
        >>> [int(r["labeled"]) for r in model.history_][0]
        20
    """

    name: ClassVar[str] = "st"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = dict(GCN.presets)

    stages: int = param(1, "number of stages; each adds an equal part", low=1, high=40)
    per_class: int | None = param(
        None, "total pseudo-labels of each class; default t, from the graph", low=1, symbol="t"
    )

    def count_trainings(self, validation: bool = False) -> int:
        return 1 + self.stages

    def solve(self, problem: Problem) -> list[Result]:
        network = self.train_new(problem.train_labels, problem, 0)
        output = network.predict()
        state = SelfTraining(
            problem, output.embedding, StopRule(problem, self.stages), accumulate=True
        )
        for stage in range(1, self.stages + 1):
            selection = self.select(output, state.labels, problem, stage)
            state.finish_stage(selection, output.embedding)
            network = self.train_new(state.labels, problem, stage)
            output = network.predict()
        return state.results(output.logits.softmax(-1), network.model)

    def train_new(self, labels: Tensor, problem: Problem, stage: int) -> Network:
        """Train a network with new parameters."""
        network = self.create_network(problem, stage)
        network.train(f"training-{stage}", labels, problem, self.training_options, number=stage)
        return network

    def select(self, output: Output, labels: Tensor, problem: Problem, stage: int) -> Selection:
        """Select the most confident of the nodes without a label."""
        unlabeled = problem.pool & (labels < 0)
        return most_confident(output.logits, unlabeled, self.quota(problem, stage))

    def quota(self, problem: Problem, stage: int) -> Tensor:
        """``(R, C)`` pseudo-labels that a stage adds to each class; over all stages they sum to t.

        A class without training labels gets none.
        """
        shares = problem.class_shares()
        if self.per_class is None:
            total = (3 * labels_to_reach_all(problem) * shares).floor().clamp_min(1)
        else:
            total = shares.new_full(shares.shape, self.per_class)
        total = total * (shares > 0)
        before, after = (total * part / self.stages for part in (stage - 1, stage))
        return after.floor() - before.floor()


def labels_to_reach_all(problem: Problem) -> float:
    """η: number of nodes from which all others are within two edges, on average."""
    nodes = problem.train_labels.shape[1]
    degree = problem.adjacency.pattern.num_entries / nodes
    return float(nodes / max(1.0, degree) ** 2)


def most_confident(logits: Tensor, unlabeled: Tensor, quota: Tensor) -> Selection:
    """Select the unlabeled nodes ``(R, n)`` of highest confidence, ``quota`` ``(R, C)`` per class.

    There are twice as many candidates, so that the table shows which nodes came next.
    """
    confidence, predicted = logits.softmax(-1).max(-1)
    rank = ranks(confidence, unlabeled, predicted)
    limit = quota.gather(1, predicted)
    return Selection(
        predicted=predicted,
        confidence=confidence,
        candidates=unlabeled & (rank < 2 * limit),
        rank=rank,
        selected=unlabeled & (rank < limit),
    )


@dataclass(eq=False, kw_only=True)
class M3S(ST):
    """Self-training in stages that selects a confident node only if its cluster agrees.

    In each stage all nodes are clustered by their hidden layer. A cluster is assigned the class
    whose labeled nodes have the nearest mean. The most confident nodes of each class become
    pseudo-labels if their cluster is of the same class. Pseudo-labels are kept, and a new network
    is trained.

    Sun et al., AAAI 2020, https://arxiv.org/abs/1902.11038.

    Example:
        >>> from dcgst import M3S, load
        >>> graph = load("synthetic")
        >>> model = M3S(stages=1, epochs=30).fit(graph)
        >>> model.score(graph) > 0.3, model.proba_.shape
        (True, (1200, 4))
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
