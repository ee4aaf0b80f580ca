"""The most frequent class of the given labels: the lowest baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from dcgst.methods.core.base import Method
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.result import Result, results_without_stages


@dataclass(eq=False, kw_only=True)
class Majority(Method):
    """Predict the most frequent training class for every node.

    The probabilities are the class shares among the given labels. Ties go to the first class.
    """

    name: ClassVar[str] = "majority"
    all_at_once: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True

    def solve(self, problem: Problem) -> list[Result]:
        proba = problem.class_shares()[:, None].repeat(1, problem.train_labels.shape[1], 1)
        return results_without_stages(problem, proba, proba, ["no training"] * problem.num_fits)

    def apply(self, result: Result, problem: Problem) -> list[Tensor]:
        """On another graph: the class shares of the fit."""
        shares = torch.from_numpy(np.array(result.proba[:1]))
        return [shares.expand(1, problem.train_labels.shape[1], -1)]
