"""Shift-robust GNN (Zhu et al., NeurIPS 2021), and SR-GNN with self-training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from dcgst.methods.base import param
from dcgst.methods.networks import Network, NeuralMethod
from dcgst.methods.problem import Problem
from dcgst.methods.result import Result
from dcgst.methods.st import ST
from dcgst.nn.backbones import Output
from dcgst.shift.cmd import cmd
from dcgst.shift.kmm import kmm_weights
from dcgst.shift.ppr import sparse_ppr_rows
from dcgst.shift.selection import ranks
from dcgst.train.random import Purpose, Streams, derive
from dcgst.train.training import TrainingLog, cross_entropy

SCRIPT: dict[str, Any] = {
    "feature_norm": "row",
    "hidden": 128,
    "dropout": 0.0,
    "weight_decay": 0.0,
    "keep_epoch": "last",
}
"""Settings of the authors' script for small graphs."""


@dataclass(eq=False, kw_only=True)
class SRGNN(NeuralMethod):
    r"""Train a network with a penalty on the shift between labeled and unlabeled nodes.

    .. math:: \frac{1}{|L|} \sum_{i \in L} w_i\,CE_i + \lambda\,CMD(Z_L, Z_S)

    S is a random sample of unlabeled nodes, as large as the set of labeled ones, and Z is the
    hidden layer, bounded by tanh. The optional weights w match the labeled nodes to S by kernel
    mean matching on their PageRank rows.

    Zhu et al., NeurIPS 2021, https://arxiv.org/abs/2108.01099.

    Example:
        >>> from dcgst import SRGNN, load
        >>> graph = load("synthetic")
        >>> model = SRGNN(epochs=50).fit(graph)
        >>> model.score(graph) > 0.3, model.embed().shape
        (True, (1200, 64))
    """

    name: ClassVar[str] = "srgnn"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "default": {},
        **{f"paper/{data}": SCRIPT for data in ("cora", "citeseer", "pubmed")},
    }
    activation: ClassVar[str | None] = "tanh"

    cmd_weight: float = param(1.0, "weight of the CMD", low=0, symbol="λ")
    weighting: str = param(
        "none",
        "weights of the labeled nodes: equal, or by kernel mean matching",
        choices=("none", "kmm"),
    )
    teleport: float = param(
        0.1, "kernel mean matching: teleport probability of PageRank", low=1e-3, high=0.999
    )
    least_weight: float = param(0.2, "kernel mean matching: smallest weight", low=0, high=1)

    def solve(self, problem: Problem) -> list[Result]:
        network, training = self.train_robust(problem.train_labels, problem, 0)
        return self.results(problem, training, network.predict(), model=network.model)

    def train_robust(
        self, labels: Tensor, problem: Problem, stage: int
    ) -> tuple[Network, TrainingLog]:
        """Train a new network against a new random sample of the pool."""
        labeled = labels >= 0
        sample = self.sample_pool(labeled.sum(1), problem, stage)
        weights = self.weights(labels, sample, problem)
        nodes = (labeled | sample).any(0).nonzero().flatten()
        masks = [mask[:, nodes].float() for mask in (labeled, sample)]
        sampled = sample.any(1)  # without a sample there is no penalty

        def loss(output: Output, rows: Tensor, targets: Tensor) -> Tensor:
            z = output.embedding[:, nodes]
            distance = cmd(z, z, *masks, support=1.0) * sampled
            own = None if weights is None else weights[:, rows]
            return cross_entropy(output.logits, targets, own) + self.cmd_weight * distance

        network = self.create_network(problem, stage)
        training = network.train(
            f"training-{stage}", labels, problem, self.training_options, number=stage, loss=loss
        )
        return network, training

    def sample_pool(self, count: Tensor, problem: Problem, stage: int) -> Tensor:
        """``(R, n)`` bool: ``count`` ``(R,)`` random nodes of the pool, or all of it."""
        seeds = [derive(seed, Purpose.UNLABELED_SAMPLE, stage) for seed in problem.seeds]
        uniform = Streams(seeds, count.device).uniform(problem.pool.shape[1])
        return problem.pool & (ranks(uniform, problem.pool) < count[:, None])

    def weights(self, labels: Tensor, sample: Tensor, problem: Problem) -> Tensor | None:
        """``(R, n)`` weights of the labeled nodes by kernel mean matching; None if all are one."""
        if self.weighting == "none":
            return None
        adjacency = problem.adjacency.to_scipy()
        weights = torch.ones(labels.shape)
        for run in range(len(labels)):
            labeled = np.flatnonzero(labels[run].numpy(force=True) >= 0)
            others = np.flatnonzero(sample[run].numpy(force=True))
            rows = sparse_ppr_rows(adjacency, np.concatenate([labeled, others]), self.teleport)
            weights[run, labeled] = torch.from_numpy(
                kmm_weights(
                    rows[: len(labeled)],
                    rows[len(labeled) :],
                    labels[run].numpy(force=True)[labeled],
                    least=self.least_weight,
                )
            ).float()
        return weights.to(labels.device)


@dataclass(eq=False, kw_only=True)
class SRGNNST(ST, SRGNN):
    """Self-training in which every network is an SR-GNN.

    Each training draws its own random sample of the pool, as large as the set of all labels,
    pseudo-labels included.

    Example:
        >>> from dcgst import SRGNNST, load
        >>> graph = load("synthetic")
        >>> model = SRGNNST(stages=1, epochs=30).fit(graph)
        >>> model.score(graph) > 0.3, model.proba_.shape
        (True, (1200, 4))
    """

    name: ClassVar[str] = "srgnn_st"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        preset: {"stages": 1, "cmd_weight": 1.0, **settings} if settings else {}
        for preset, settings in SRGNN.presets.items()
    }

    stages: int = param(5, "number of stages; each adds an equal part", low=1, high=40)
    cmd_weight: float = param(0.3, "weight of the CMD", low=0, symbol="λ")

    def train_new(self, labels: Tensor, problem: Problem, stage: int) -> Network:
        network, _ = self.train_robust(labels, problem, stage)
        return network
