"""Distribution recovered graph self-training (Liu et al., WWW 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from dcgst.engine.clusters import group_means
from dcgst.engine.random import Streams, derive
from dcgst.engine.sparse import SparseMatrix
from dcgst.engine.training import BestState
from dcgst.methods.neural import Network, NeuralMethod, copy_state
from dcgst.methods.outcome import Outcome, Problem
from dcgst.methods.params import param
from dcgst.methods.stages import Stage, Stages
from dcgst.nn.base import Output
from dcgst.shift.ner import entropy
from dcgst.shift.selection import ranks

PASSES = 60
"""Purpose for which random numbers are drawn."""

PUBLISHED: dict[str, dict[int, tuple[float, float, float, int]]] = {
    "cora": {
        3: (0.70, 1 / 2, 0.3, 3),
        5: (0.60, 1 / 2, 0.5, 2),
        10: (0.70, 1 / 3, 0.3, 6),
        20: (0.53, 1 / 3, 0.5, 2),
    },
    "citeseer": {
        3: (0.45, 2 / 3, 0.3, 2),
        5: (0.45, 2 / 3, 0.5, 9),
        10: (0.55, 1 / 2, 0.3, 4),
        20: (0.70, 1 / 2, 0.3, 9),
    },
    "pubmed": {
        3: (0.78, 1 / 2, 0.5, 1),
        5: (0.87, 1.0, 0.3, 1),
        10: (0.75, 1.0, 0.3, 1),
        20: (0.74, 1.0, 0.5, 2),
    },
}
"""Threshold, β, drop rate and stages by data set and labels per class, with dropout."""


def published() -> dict[str, dict[str, Any]]:
    """Presets like ``paper/cora/20``.

    The authors count the first training as a stage: with one there are no pseudo-labels.
    """
    return {
        f"paper/{data}/{labels}": {
            "threshold": threshold,
            "beta": beta,
            "drop_rate": rate,
            "stages": stages - 1,
            "best_stage": False,
            "epochs": 2000,
            "patience": 100,
            "feature_norm": "row",
        }
        for data, rows in PUBLISHED.items()
        for labels, (threshold, beta, rate, stages) in rows.items()
    }


@dataclass(eq=False, kw_only=True)
class DRGST(NeuralMethod):
    r"""Self-training on all confident nodes, each weighted by what can be learned from it.

    After each training, every node more confident than a threshold is pseudo-labeled anew. A fresh
    network then minimises

    .. math:: -\frac{1}{|L|}\sum_{i \in L} w_i \log\,(p_i T)_{y_i}, \qquad
              w_i = \frac{B_i}{\beta\,\mathrm{mean}_L B}

    where B is the information gain, :math:`H(\bar p) - \overline{H(p)}` over random passes through
    the last network, and T corrects for what that network confuses on the given labels.
    """

    name: ClassVar[str] = "drgst"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}, **published()}

    stages: int = param(1, "rounds of pseudo-labels", low=0, high=40)
    threshold: float = param(
        0.6, "confidence above which a node is pseudo-labeled", low=0, high=1, symbol="τ"
    )
    beta: float = param(0.5, "scale of the weights, the smaller the larger", low=1e-3, symbol="β")
    gain: str = param(
        "dropout",
        "what makes the passes of the information gain random",
        choices=("dropout", "dropedge"),
    )
    drop_rate: float = param(
        0.5, "share of units or edges dropped in these passes", low=0.01, high=0.99
    )
    passes: int = param(100, "random passes of the information gain", low=2)
    best_stage: bool = param(
        True, "end with the stage that tells most validation nodes right; else with the last"
    )
    correct: bool = param(True, "correct the loss by T")

    @property
    def trainings(self) -> int:
        return 1 + self.stages

    def solve(self, problem: Problem) -> Outcome:
        stages = Stages(problem.labels, problem.pool, self.stages, callbacks=problem.callbacks)
        network = self.network(problem)
        network.train(problem.labels, problem, self.schedule)
        output = network.outputs()
        stages.begin(output.hidden)
        best = BestState(list(network.model.parameters()))
        best.update(0, mistakes(output, problem, 0))
        for number in range(1, self.stages + 1):
            gain = self.information_gain(network, problem, number)
            correction = confusion(output, problem)
            stage = self.choose(output, gain, problem)
            stages.enter(stage, output.hidden)
            self.learn(network, stage, stages.labels, correction, problem, number)
            output = network.outputs()
            best.update(number, mistakes(output, problem, number))
        if self.best_stage:
            best.restore()
            stages.return_to(best.epoch)
        return Outcome(network.outputs().logits.softmax(-1), stages, network.model)

    def choose(self, output: Output, gain: Tensor, problem: Problem) -> Stage:
        """All pool nodes more confident than the threshold."""
        confidence, predicted = output.logits.softmax(-1).max(-1)
        chosen = problem.pool & (confidence > self.threshold)
        rank = ranks(confidence, problem.pool, predicted)
        weight = self.weights(gain, chosen | (problem.labels >= 0))
        return Stage(predicted, confidence, problem.pool, rank, chosen, weight=weight)

    def weights(self, gain: Tensor, labeled: Tensor) -> Tensor:
        """``(R, n)`` w: the gain over its mean among the labeled nodes and β."""
        gain = gain.clamp_min(0) + 1e-6
        mean = (gain * labeled).sum(1, keepdim=True) / labeled.sum(1, keepdim=True)
        return gain / (self.beta * mean)

    def learn(
        self,
        network: Network,
        stage: Stage,
        labels: Tensor,
        correction: Tensor,
        problem: Problem,
        number: int,
    ) -> None:
        """Train the network from the beginning, with weights and correction."""
        weights = stage.weight
        assert weights is not None

        def loss(output: Output, rows: Tensor, targets: Tensor) -> Tensor:
            proba = output.logits.softmax(-1)
            corrected = proba @ correction if self.correct else proba
            return weighted_loss(corrected, targets, weights[:, rows])

        copy_state(self.network(problem, number), network)
        network.train(labels, problem, self.schedule, number, loss)

    def information_gain(self, network: Network, problem: Problem, number: int) -> Tensor:
        """``(R, n)`` B: how much the random passes disagree, beyond each being unsure."""
        streams = Streams([derive(s, PASSES, number) for s in problem.seeds], network.device)
        mean = own = torch.zeros((), device=network.device)
        for _ in range(self.passes):
            if self.gain == "dropout":
                logits = network.dropped_outputs(streams, self.drop_rate).logits
            else:
                thinned = drop_edges(problem.adjacency, self.drop_rate, streams)
                logits = network.outputs(network.model.operator(thinned)).logits
            mean = mean + logits.softmax(-1) / self.passes
            own = own + entropy(logits) / self.passes
        return entropy((mean + 1e-12).log()) - own


def mistakes(output: Output, problem: Problem, number: int) -> Tensor:
    """``(R,)`` validation nodes that are told wrong; nan where there are none.

    Of stages that are equally wrong a later one counts less: it has learned from more.
    """
    validation = problem.val_labels >= 0
    wrong = (output.logits.argmax(-1) != problem.val_labels) & validation
    later = number / (number + 1)
    return torch.where(validation.any(1), wrong.sum(1) - later, float("nan"))


def weighted_loss(proba: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """``(R,)`` mean of -w log p over the labeled of ``(R, m)`` nodes; probabilities (R, m, C)."""
    labeled = targets >= 0
    likelihood = proba.gather(-1, targets.clamp_min(0)[..., None]).squeeze(-1)
    each = -(likelihood + 1e-12).log() * weights * labeled
    return each.sum(1) / labeled.sum(1)


def confusion(output: Output, problem: Problem) -> Tensor:
    r"""``(R, C, C)`` T: the mean probabilities of each class's given labels, drawn to the identity.

    The least squares of :math:`\mathrm{mean}_i \lVert p_i - T_{y_i}\rVert^2 + \frac1C \lVert T -
    I\rVert^2`, whose minimum is known, so that there is nothing to descend.
    """
    classes = problem.num_classes
    means, sizes = group_means(output.logits.softmax(-1), problem.labels, classes)
    share = classes * sizes / sizes.sum(1, keepdim=True)  # one for each class if balanced
    identity = torch.eye(classes, device=means.device)
    return (share[..., None] * means + identity) / (share[..., None] + 1)


def drop_edges(adjacency: SparseMatrix, rate: float, streams: Streams) -> SparseMatrix:
    """The graph without a random share of its edges, both ways at once; values ``(R, E)``."""
    count, edge = adjacency.pattern.undirected
    kept = streams.uniform(count) >= rate
    return adjacency.with_values(adjacency.values * kept[:, edge])
