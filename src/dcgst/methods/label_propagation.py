"""Label propagation (Zhou et al., 2004): labels flow along the edges, features are not used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from dcgst.engine.smoothing import Filter
from dcgst.methods.base import Method
from dcgst.methods.labels import class_shares, one_hot
from dcgst.methods.outcome import Outcome, Problem
from dcgst.methods.params import param
from dcgst.methods.stages import Stages
from dcgst.nn.gcn import symmetric_normalised


@dataclass(eq=False, kw_only=True)
class LabelPropagation(Method):
    r"""Let the given labels flow along the edges; no features, nothing to train.

    .. math:: F \leftarrow \alpha\,\hat A F + (1 - \alpha)\,Y

    A node that no label reaches is given the classes' shares among the labels.
    """

    name: ClassVar[str] = "lp"
    all_at_once: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True

    alpha: float = param(0.99, "share of what comes from the neighbours", low=0, high=1, symbol="α")
    steps: int = param(50, "how far labels flow, in edges", low=1)

    def solve(self, problem: Problem) -> Outcome:
        operator = symmetric_normalised(problem.adjacency)
        flowed = Filter(1 - self.alpha, self.steps)(operator, one_hot(problem))
        arrived = flowed.sum(-1, keepdim=True)
        shares = class_shares(problem)[:, None]
        proba = torch.where(arrived > 0, flowed / arrived, shares)
        stages = Stages(problem.labels, problem.pool)
        stages.begin(proba)
        stages.reasons = [f"all {self.steps} steps done"] * len(problem.seeds)
        return Outcome(proba, stages)
