"""The most frequent class of the given labels: what any method must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dcgst.methods.base import Method
from dcgst.methods.labels import class_shares
from dcgst.methods.outcome import Outcome, Problem
from dcgst.methods.stages import Stages


@dataclass(eq=False, kw_only=True)
class Majority(Method):
    """Say of every node what is most often said of the labeled ones.

    Its probabilities are the classes' shares among the given labels; of equally frequent ones the
    first is taken.
    """

    name: ClassVar[str] = "majority"
    all_at_once: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True

    def solve(self, problem: Problem) -> Outcome:
        proba = class_shares(problem)[:, None].repeat(1, problem.labels.shape[1], 1)
        stages = Stages(problem.labels, problem.pool)
        stages.begin(proba)
        stages.reasons = ["nothing to learn"] * len(problem.seeds)
        return Outcome(proba, stages)
