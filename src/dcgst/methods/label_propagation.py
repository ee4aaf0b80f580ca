"""Label propagation (Zhou et al., NeurIPS 2003, "Learning with local and global consistency")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dcgst.errors import InputError
from dcgst.methods.core.base import Method
from dcgst.methods.core.params import param
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.result import Result, results_without_stages, with_row_model
from dcgst.methods.core.row_models import ProbabilityRows, RowModel
from dcgst.numerics.graph_tensors import NodeFunction, NodeTensors
from dcgst.numerics.smoothing import Filter


@dataclass(eq=False, kw_only=True)
class LabelPropagation(Method):
    r"""Propagate the given labels along the edges; no features, no training.

    .. math:: F \leftarrow \alpha\,\hat A F + (1 - \alpha)\,Y

    A node that no label reaches gets the class shares among the labels.
    """

    name: ClassVar[str] = "lp"
    all_at_once: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True
    propagates_labels: ClassVar[bool] = True

    alpha: float = param(0.99, "share of the neighbors' labels", low=0, high=1, symbol="α")
    steps: int = param(50, "propagation steps", low=1)

    @property
    def by_rows(self) -> bool:
        return True

    def solve(self, problem: Problem) -> list[Result]:
        function = self.fit_rows(problem)
        proba = function(problem.graph)
        reasons = [f"maximum number of steps ({self.steps})"] * problem.num_fits
        results = results_without_stages(problem, proba, proba, reasons)
        return with_row_model(results, ProbabilityRows(function), problem)

    def model_on(self, model: RowModel | None, problem: Problem) -> RowModel | None:
        """On another graph: the labels that are known there are propagated."""
        if not bool((problem.train_labels >= 0).any()):
            raise InputError("label propagation needs labels in the other graph")
        return ProbabilityRows(self.fit_rows(problem))

    def fit_rows(self, problem: Problem) -> NodeFunction:
        """A function that returns ``(R, m, C)`` probabilities of nodes."""
        by = Filter(1 - self.alpha, self.steps)
        given = problem.given_labels()
        propagated = problem.graph.smooth(given, by, problem.checkpoint.prefix + "labels")
        shares = problem.class_shares()[:, None]

        def proba(nodes: NodeTensors) -> Tensor:
            found = propagated(nodes)
            total = found.sum(-1, keepdim=True)
            return torch.where(total > 0, found / total, shares)

        return proba
