"""Self-training (Li et al., 2018): the most confident nodes of each class, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from dcgst.methods.gcn import GCN
from dcgst.methods.labels import class_shares
from dcgst.methods.neural import Network, NeuralMethod
from dcgst.methods.outcome import Outcome, Problem
from dcgst.methods.params import param
from dcgst.methods.stages import Stage, Stages
from dcgst.nn.base import Output
from dcgst.shift.selection import ranks


@dataclass(eq=False, kw_only=True)
class ST(NeuralMethod):
    r"""Train, take the most confident nodes of each class as labeled, train afresh.

    Class j is given :math:`t_j = \lfloor 3\eta\,s_j \rfloor` pseudo-labels: :math:`s_j` is its
    share among the given labels, and :math:`\eta = n / \bar d^{\,2}` the number of labels from
    which two layers would reach all n nodes at mean degree :math:`\bar d`.
    """

    name: ClassVar[str] = "st"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = dict(GCN.presets)

    stages: int = param(1, "rounds of pseudo-labels, which share them out", low=1, high=40)
    per_class: int | None = param(
        None, "pseudo-labels of each class in all; by default t, from the graph", low=1, symbol="t"
    )

    @property
    def trainings(self) -> int:
        return 1 + self.stages

    def solve(self, problem: Problem) -> Outcome:
        stages = Stages(
            problem.labels,
            problem.pool,
            self.stages,
            accumulate=True,
            callbacks=problem.callbacks,
        )
        network = self.learn(problem.labels, problem, 0)
        output = network.outputs()
        stages.begin(output.hidden)
        for number in range(1, self.stages + 1):
            stage = self.choose(output, stages.labels, problem, number)
            stages.enter(stage, output.hidden)
            network = self.learn(stages.labels, problem, number)
            output = network.outputs()
        return Outcome(output.logits.softmax(-1), stages, network.model)

    def learn(self, labels: Tensor, problem: Problem, number: int) -> Network:
        """A fresh network that has learned the labels."""
        network = self.network(problem, number)
        network.train(labels, problem, self.schedule, number)
        return network

    def choose(self, output: Output, labels: Tensor, problem: Problem, number: int) -> Stage:
        """The most confident of the nodes that have no label yet."""
        free = problem.pool & (labels < 0)
        return most_confident(output.logits, free, self.share(problem, number))

    def share(self, problem: Problem, number: int) -> Tensor:
        """``(R, C)`` how many pseudo-labels a stage adds to each class; all stages add up to t."""
        shares = class_shares(problem)
        if self.per_class is None:
            total = (3 * labels_to_reach_all(problem) * shares).floor().clamp_min(1)
        else:
            total = shares.new_full(shares.shape, self.per_class)
        total = total * (shares > 0)  # what no label names is not to be trusted
        before, after = (total * part / self.stages for part in (number - 1, number))
        return after.floor() - before.floor()


def labels_to_reach_all(problem: Problem) -> float:
    """η: how many nodes it takes to have all others within two edges, on average."""
    nodes = problem.labels.shape[1]
    degree = problem.adjacency.pattern.num_entries / nodes
    return float(nodes / max(1.0, degree) ** 2)


def most_confident(logits: Tensor, free: Tensor, count: Tensor) -> Stage:
    """The free nodes ``(R, n)`` of highest confidence, ``count`` ``(R, C)`` of each class.

    Candidates are twice as many, so that the audit shows who came next.
    """
    confidence, predicted = logits.softmax(-1).max(-1)
    rank = ranks(confidence, free, predicted)
    limit = count.gather(1, predicted)
    return Stage(predicted, confidence, free & (rank < 2 * limit), rank, free & (rank < limit))
