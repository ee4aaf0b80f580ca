"""Distribution recovered graph self-training (Liu et al., WWW 2022).

https://arxiv.org/abs/2201.11349
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from dcgst.features.components import group_means
from dcgst.features.sparse import SparseMatrix
from dcgst.methods.base import param
from dcgst.methods.networks import Network, NeuralMethod, copy_parameters
from dcgst.methods.problem import Problem
from dcgst.methods.result import Result, Selection
from dcgst.methods.self_training import SelfTraining, StopRule
from dcgst.nn.backbones import Output
from dcgst.shift.ner import entropy
from dcgst.shift.selection import ranks
from dcgst.train.random import Purpose, Streams, derive
from dcgst.train.training import BestState

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
"""Published threshold, β, drop rate and stages by dataset and labels per class."""


def published() -> dict[str, dict[str, Any]]:
    """Presets such as ``paper/cora/20``.

    The authors count the first training as a stage: one stage means no pseudo-labels.
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
    r"""Self-training on all confident nodes, weighted by information gain.

    After each training, all nodes with confidence above a threshold get a pseudo-label. A new
    network then minimizes

    .. math:: -\frac{1}{|L|}\sum_{i \in L} w_i \log\,(p_i T)_{y_i}, \qquad
              w_i = \frac{B_i}{\beta\,\mathrm{mean}_L B}

    where B is the information gain, :math:`H(\bar p) - \overline{H(p)}` over random passes through
    the last network, and T is that network's confusion matrix on the given labels.

    Liu et al., WWW 2022, https://arxiv.org/abs/2201.11349.

    Example:
        >>> from dcgst import DRGST, load
        >>> graph = load("synthetic")
        >>> model = DRGST(stages=1, epochs=30).fit(graph)
        >>> model.score(graph) > 0.3, model.proba_.shape
        (True, (1200, 4))
    """

    name: ClassVar[str] = "drgst"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}, **published()}

    stages: int = param(1, "number of stages with pseudo-labels", low=0, high=40)
    threshold: float = param(
        0.6, "confidence above which a node gets a pseudo-label", low=0, high=1, symbol="τ"
    )
    beta: float = param(
        0.5, "scale of the weights; smaller values give larger weights", low=1e-3, symbol="β"
    )
    gain: str = param(
        "dropout",
        "source of randomness for the information gain",
        choices=("dropout", "dropedge"),
    )
    drop_rate: float = param(
        0.5, "share of units or edges dropped for the information gain", low=0.01, high=0.99
    )
    passes: int = param(100, "random forward passes for the information gain", low=2)
    best_stage: bool = param(
        True, "return to the stage with the best validation accuracy; else use the last"
    )
    correct: bool = param(True, "correct the loss by T")

    def count_trainings(self, validation: bool = False) -> int:
        return 1 + self.stages

    def solve(self, problem: Problem) -> list[Result]:
        network = self.create_network(problem)
        network.train("training-0", problem.train_labels, problem, self.training_options)
        output = network.predict()
        state = SelfTraining(problem, output.embedding, StopRule(problem, self.stages))
        best = BestState(list(network.model.parameters()))
        update_best(best, 0, output, problem)
        for stage in range(1, self.stages + 1):
            gain = self.information_gain(network, problem, stage)
            correction = confusion(output, problem)
            selection = self.select(output, gain, problem)
            state.finish_stage(selection, output.embedding)
            self.train_weighted(network, selection, state.labels, correction, problem, stage)
            output = network.predict()
            update_best(best, stage, output, problem)
        if self.best_stage:
            best.restore()
            state.restore(best.number)
        return state.results(network.predict().logits.softmax(-1), network.model)

    def select(self, output: Output, gain: Tensor, problem: Problem) -> Selection:
        """Select all pool nodes with confidence above the threshold."""
        confidence, predicted = output.logits.softmax(-1).max(-1)
        selected = problem.pool & (confidence > self.threshold)
        rank = ranks(confidence, problem.pool, predicted)
        weight = self.weights(gain, selected | (problem.train_labels >= 0))
        return Selection(
            predicted=predicted,
            confidence=confidence,
            candidates=problem.pool,
            rank=rank,
            selected=selected,
            weight=weight,
        )

    def weights(self, gain: Tensor, labeled: Tensor) -> Tensor:
        """``(R, n)`` w: the gain divided by β and by its mean over the labeled nodes."""
        gain = gain.clamp_min(0) + 1e-6
        mean = (gain * labeled).sum(1, keepdim=True) / labeled.sum(1, keepdim=True)
        return gain / (self.beta * mean)

    def train_weighted(
        self,
        network: Network,
        selection: Selection,
        labels: Tensor,
        correction: Tensor,
        problem: Problem,
        stage: int,
    ) -> None:
        """Train the network from new parameters, with weights and corrected predictions."""
        weights = selection.weight
        assert weights is not None

        def loss(output: Output, rows: Tensor, targets: Tensor) -> Tensor:
            proba = output.logits.softmax(-1)
            corrected = proba @ correction if self.correct else proba
            return weighted_loss(corrected, targets, weights[:, rows])

        copy_parameters(self.create_network(problem, stage), network)
        network.train(
            f"training-{stage}", labels, problem, self.training_options, number=stage, loss=loss
        )

    def information_gain(self, network: Network, problem: Problem, stage: int) -> Tensor:
        """``(R, n)`` B: entropy of the mean prediction minus mean entropy of the predictions."""
        seeds = [derive(seed, Purpose.INFORMATION_GAIN, stage) for seed in problem.seeds]
        streams = Streams(seeds, network.device)
        mean = own = torch.zeros((), device=network.device)
        for _ in range(self.passes):
            if self.gain == "dropout":
                logits = network.predict_with_dropout(streams, self.drop_rate).logits
            else:
                thinned = drop_edges(problem.adjacency, self.drop_rate, streams)
                logits = network.predict(network.model.operator(thinned)).logits
            mean = mean + logits.softmax(-1) / self.passes
            own = own + entropy(logits) / self.passes
        return entropy((mean + 1e-12).log()) - own


def update_best(best: BestState, stage: int, output: Output, problem: Problem) -> None:
    """Store the parameters of runs with the fewest validation errors so far.

    Ties go to the later stage, which has learned from more labels. Runs without validation nodes
    store every stage.
    """
    wrong = (output.logits.argmax(-1) != problem.val_labels) & (problem.val_labels >= 0)
    later = stage / (stage + 1)
    best.update(stage, wrong.sum(1) - later, always=~problem.has_validation)


def weighted_loss(proba: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """``(R,)`` mean of -w log p over the labeled of ``(R, m)`` nodes; probabilities (R, m, C)."""
    labeled = targets >= 0
    likelihood = proba.gather(-1, targets.clamp_min(0)[..., None]).squeeze(-1)
    each = -(likelihood + 1e-12).log() * weights * labeled
    return each.sum(1) / labeled.sum(1)


def confusion(output: Output, problem: Problem) -> Tensor:
    r"""``(R, C, C)`` T: mean probabilities of each class's given labels, shrunk to the identity.

    It minimizes :math:`\mathrm{mean}_i \lVert p_i - T_{y_i}\rVert^2 + \frac1C \lVert T -
    I\rVert^2`, in closed form.
    """
    classes = problem.num_classes
    means, sizes = group_means(output.logits.softmax(-1), problem.train_labels, classes)
    share = classes * sizes / sizes.sum(1, keepdim=True)  # one for each class if they are balanced
    identity = torch.eye(classes, device=means.device)
    return (share[..., None] * means + identity) / (share[..., None] + 1)


def drop_edges(adjacency: SparseMatrix, rate: float, streams: Streams) -> SparseMatrix:
    """Remove a random share of the undirected edges; values ``(R, E)``."""
    count, edge = adjacency.pattern.undirected
    kept = streams.uniform(count) >= rate
    return adjacency.with_values(adjacency.values * kept[:, edge])
