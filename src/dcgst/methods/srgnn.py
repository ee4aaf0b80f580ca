"""Shift-robust graph neural networks (Zhu et al., NeurIPS 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from dcgst.engine.random import Streams, derive
from dcgst.engine.training import Training, cross_entropy
from dcgst.methods.neural import Network, NeuralMethod
from dcgst.methods.outcome import Outcome, Problem
from dcgst.methods.params import param
from dcgst.nn.base import Output
from dcgst.shift.cmd import cmd
from dcgst.shift.kmm import kmm_weights
from dcgst.shift.ppr import sparse_ppr_rows
from dcgst.shift.selection import ranks

SAMPLE = 70
"""Purpose for which random numbers are drawn."""


SCRIPT: dict[str, Any] = {
    "feature_norm": "row",
    "hidden": 128,
    "dropout": 0.0,
    "weight_decay": 0.0,
    "keep": "last",
}
"""What the authors' script for small graphs sets."""


@dataclass(eq=False, kw_only=True)
class SRGNN(NeuralMethod):
    r"""Train a network to which labeled nodes look like any others.

    .. math:: \frac{1}{|L|} \sum_{i \in L} w_i\,CE_i + \lambda\,CMD(Z_L, Z_S)

    S is a random sample of unlabeled nodes, as many as there are labeled ones, and Z the hidden
    layer, bounded by tanh. The weights w, if wanted, match the labeled nodes to S by kernel mean
    matching on their PageRank rows.
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
        "weights of the labeled nodes: all one, or by kernel mean matching",
        choices=("none", "kmm"),
    )
    teleport: float = param(
        0.1, "kernel mean matching: restarts of the PageRank walks", low=1e-3, high=0.999
    )
    least_weight: float = param(0.2, "kernel mean matching: the smallest weight", low=0, high=1)

    def solve(self, problem: Problem) -> Outcome:
        network, training = self.learn_robustly(problem.labels, problem, 0)
        output = network.outputs()
        stages = self.book(output, training, problem)
        return Outcome(output.logits.softmax(-1), stages, network.model)

    def learn_robustly(
        self, labels: Tensor, problem: Problem, number: int
    ) -> tuple[Network, Training]:
        """A fresh network that sees labeled nodes like a new random sample of the pool."""
        labeled = labels >= 0
        sample = self.sample(labeled.sum(1), problem, number)
        weights = self.weights(labels, sample, problem)
        nodes = (labeled | sample).any(0).nonzero().squeeze(-1)
        masks = [mask[:, nodes].float() for mask in (labeled, sample)]
        sampled = sample.any(1)  # an empty pool is near to everything

        def loss(output: Output, rows: Tensor, targets: Tensor) -> Tensor:
            z = output.hidden[:, nodes]
            distance = cmd(z, z, *masks, support=1.0) * sampled
            own = None if weights is None else weights[:, rows]
            return cross_entropy(output.logits, targets, own) + self.cmd_weight * distance

        network = self.network(problem, number)
        training = network.train(labels, problem, self.schedule, number, loss)
        return network, training

    def sample(self, count: Tensor, problem: Problem, number: int) -> Tensor:
        """``(R, n)`` bool: ``count`` ``(R,)`` random nodes of the pool, or all that it has."""
        streams = Streams([derive(s, SAMPLE, number) for s in problem.seeds], count.device)
        order = ranks(streams.uniform(problem.pool.shape[1]), problem.pool)
        return problem.pool & (order < count[:, None])

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
