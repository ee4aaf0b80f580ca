"""What all methods that train a graph neural network share."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.engine.random import Streams, derive
from dcgst.engine.sparse import SparseMatrix
from dcgst.engine.training import Schedule, Training, cross_entropy, train
from dcgst.graph import FeatureMatrix, Graph
from dcgst.methods.base import Method
from dcgst.methods.outcome import Problem
from dcgst.methods.params import param
from dcgst.methods.stages import Stages
from dcgst.nn import BACKBONES, backbone
from dcgst.nn.base import Backbone, Features, Output, receptive_field

Loss = Callable[[Output, Tensor, Tensor], Tensor]
"""``(R,)`` from an output with logits for labeled rows, those rows, and their labels (R, rows)."""


@dataclass(eq=False, kw_only=True)
class NeuralMethod(Method):
    """Settings of the network and its training."""

    backbone: str = param("gcn", "the network", choices=tuple(BACKBONES))
    hidden: int = param(64, "width of the hidden layer", low=1)
    dropout: float = param(
        0.5, "share of inputs and hidden units dropped in training", low=0, high=0.99
    )
    lr: float = param(0.01, "Adam's learning rate", low=1e-8)
    weight_decay: float = param(5e-4, "L2 penalty on all weights", low=0)
    epochs: int = param(200, "the most epochs of a training", low=1)
    patience: int | None = param(
        None, "epochs without a better validation value after which to stop; None never", low=1
    )
    keep: str = param(
        "loss",
        "which epoch to keep: of lowest validation loss, of highest accuracy, or the last",
        choices=("loss", "accuracy", "last"),
    )
    feature_norm: str = param(
        "l2",
        "scaling of each node's features: none, row (sum 1) or l2 (length 1)",
        choices=("none", "row", "l2"),
    )

    activation: ClassVar[str | None] = None
    """Of the hidden layer; None for the network's usual one."""

    def features(self, graph: Graph) -> FeatureMatrix:
        return scale_rows(graph.features, self.feature_norm)

    def stop_reason(self, training: Training, run: int) -> str:
        """Why a training ended, in words."""
        if self.patience is not None and training.validation is not None:
            waited = self.epochs - 1 - int(training.best_epoch[run])
            if waited >= self.patience:
                better = "rise" if self.keep == "accuracy" else "fall"
                return f"validation {self.keep} did not {better} for {self.patience} epochs"
        return f"all {self.epochs} epochs done"

    @property
    def schedule(self) -> Schedule:
        return Schedule(self.epochs, self.lr, self.weight_decay, self.patience, self.keep)

    def book(self, output: Output, training: Training, problem: Problem) -> Stages:
        """The book of a single training: no pseudo-labels, when it ended and why."""
        stages = Stages(problem.labels, problem.pool)
        stages.begin(output.hidden)
        for run, best in enumerate(training.best_epoch.tolist()):
            stages.history[run][0]["epochs"] = best + 1
            stages.reasons[run] = self.stop_reason(training, run)
        return stages

    def network(self, problem: Problem, purpose: int = 0) -> Network:
        """A freshly initialised network; another purpose, another initialisation."""
        seeds = [derive(seed, purpose) for seed in problem.seeds]
        columns = problem.x.shape[1]
        model = backbone(self.backbone)(
            seeds, columns, self.hidden, problem.num_classes, self.dropout, self.activation
        ).to(problem.labels.device)
        return Network(model, problem.x, model.operator(problem.adjacency))


@dataclass(frozen=True)
class Network:
    """A backbone on a graph."""

    model: Backbone
    x: Features
    operator: SparseMatrix

    @property
    def device(self) -> torch.device:
        return self.operator.values.device

    def outputs(self, operator: SparseMatrix | None = None) -> Output:
        """What the network computes for every node, here or with another operator.

        Without dropout or gradients.
        """
        with torch.no_grad():
            output: Output = self.model(self.x, operator or self.operator)
        return output

    def dropped_outputs(self, streams: Streams, rate: float) -> Output:
        """The same with dropout at a rate that need not be the one of the training."""
        model = copy.copy(self.model)  # of the same parameters
        model.dropout = rate
        with torch.no_grad():
            output: Output = model(self.x, self.operator, streams)
        return output

    def train(
        self,
        labels: Tensor,
        problem: Problem,
        schedule: Schedule,
        purpose: int = 0,
        loss: Loss | None = None,
    ) -> Training:
        """Minimise the cross entropy of ``(R, n)`` labels; keep the state best on validation.

        Another purpose, other random numbers. Another ``loss`` takes the place of cross entropy.
        """
        streams = Streams([derive(s, purpose, 1) for s in problem.seeds], labels.device)
        rows = (labels >= 0).any(0).nonzero().squeeze(-1)
        targets = labels[:, rows]

        def evaluate() -> Tensor:
            output: Output = self.model(self.x, self.operator, streams, rows)
            if loss is None:
                return cross_entropy(output.logits, targets)
            return loss(output, rows, targets)

        validate = self.validation(problem, schedule.keep)
        return train(
            self.model,
            evaluate,
            schedule,
            validate=validate,
            callbacks=problem.callbacks,
            memory=problem.memory,
        )

    def validation(self, problem: Problem, keep: str) -> Callable[[], Tensor] | None:
        """What the validation nodes say, the lower the better; None if they are not to be asked.

        Computed on no more of the graph than they depend on.
        """
        if keep == "last" or not problem.has_validation:
            return None
        labels = problem.val_labels
        rows = (labels >= 0).any(0).nonzero().squeeze(-1)
        x, operator, inside = receptive_field(self.x, self.operator, rows, self.model.hops)
        targets = labels[:, rows]
        nothing = (targets < 0).all(1)  # replicas without validation nodes keep their last state

        def validate() -> Tensor:
            logits = self.model(x, operator, rows=inside).logits
            value = cross_entropy(logits, targets)
            if keep == "accuracy":  # of equally accurate epochs the one with the lower loss
                wrong = ((logits.argmax(-1) != targets) & (targets >= 0)).sum(1)
                value = wrong + value / (1 + value)
            return value.masked_fill(nothing, float("nan"))

        return validate


def copy_state(source: Network, target: Network) -> None:
    """Give one network the parameters of another."""
    target.model.load_state_dict(source.model.state_dict())


def scale_rows(features: FeatureMatrix, norm: str) -> FeatureMatrix:
    """Rows of features that sum to one in absolute value, or have length one."""
    if norm == "none":
        return features
    order = 1 if norm == "row" else 2
    if sp.issparse(features):
        lengths = sp.linalg.norm(features, ord=order, axis=1)
        inverse = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        return sp.csr_array(sp.diags_array(inverse) @ features).astype(np.float32)
    lengths = np.linalg.norm(features, ord=order, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = features / np.maximum(lengths, np.finfo(np.float32).tiny)
    return scaled
