"""Networks: how they are trained, and the methods that train one on the given labels."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from dcgst.features.columns import Features, scale_rows
from dcgst.features.sparse import SparseMatrix
from dcgst.graph import FeatureMatrix
from dcgst.methods.base import Method, param
from dcgst.methods.problem import Problem
from dcgst.methods.result import Result, results_without_stages, with_row_model
from dcgst.methods.row_models import NetworkRows
from dcgst.nn.backbones import (
    BACKBONES,
    Backbone,
    Output,
    Projected,
    drop_features,
    project,
    receptive_field,
)
from dcgst.train.random import Purpose, Streams, derive
from dcgst.train.training import (
    RepeatedLoss,
    TrainingLog,
    TrainingOptions,
    Validation,
    cross_entropy,
    train,
)

ROWS_PER_EPOCH = 512
"""An epoch of a network without edges uses at most so many labeled rows, drawn at random."""

SPARSE_ROWS_PER_EPOCH = 1024
"""The same for sparse features: products with them are cheap, drawing rows is not."""

SPARSE = 0.1
"""Sparse features stay sparse on a CPU if less than this share is not zero."""


def stays_sparse(x: SparseMatrix, labels: Tensor) -> bool:
    """Whether a loss of sparse rows is faster than one of dense rows."""
    sparse = x.pattern.num_entries < SPARSE * x.shape[0] * x.shape[1]
    return sparse and labels.device.type == "cpu"


def loss_of_sparse_rows(
    model: Backbone,
    operator: SparseMatrix,
    x: SparseMatrix,
    labels: Tensor,
    seeds: Sequence[int],
) -> Callable[[], Tensor]:
    """The same for sparse inputs: only the stored features are dropped and multiplied."""
    rows, targets = own_rows(labels)
    counts = (targets >= 0).sum(1).tolist()
    used = [min(count, SPARSE_ROWS_PER_EPOCH) for count in counts]
    streams = Streams(seeds, labels.device, used)
    batches = Streams([derive(seed, Purpose.BATCHES) for seed in seeds], labels.device)
    everything = [x.select_rows(own[:count]) for own, count in zip(rows, used, strict=True)]

    def draw(fit: int) -> tuple[SparseMatrix, Tensor]:
        """Rows of one fit and their labels: all, or some at random."""
        if counts[fit] <= SPARSE_ROWS_PER_EPOCH:
            return everything[fit], targets[fit, : counts[fit]]
        numbers = batches.of(fit).uniform(SPARSE_ROWS_PER_EPOCH)[0]
        positions = (numbers * counts[fit]).long()
        return x.select_rows(rows[fit, positions]), targets[fit, positions]

    def compute() -> Tensor:
        products, wanted = [], []
        for fit, count in enumerate(used):
            part, own = draw(fit)
            dropped = drop_features(part, model.dropout, streams.of(fit))
            product = project(dropped, model.weight1[fit : fit + 1])
            products.append(F.pad(product, (0, 0, 0, max(used) - count)))
            wanted.append(F.pad(own, (0, max(used) - count), value=-1))
        first = Projected(products[0] if len(products) == 1 else torch.cat(products))
        logits = model(first, operator, streams).logits
        return cross_entropy(logits, torch.stack(wanted))

    return compute


def loss_of_rows(
    model: Backbone, operator: SparseMatrix, x: Tensor, labels: Tensor, seeds: Sequence[int]
) -> RepeatedLoss:
    """The loss ``(R,)`` of the labeled rows of each fit: all, or some drawn in each epoch.

    Args:
        model: a network without edges.
        operator: of the network; not used.
        x: ``(n, d)`` its inputs.
        labels: ``(R, n)``, -1 elsewhere.
        seeds: of dropout and of the rows that are drawn.
    """
    rows, targets = own_rows(labels)
    counts = (targets >= 0).sum(1)
    used = counts.clamp_max(ROWS_PER_EPOCH).tolist()
    streams = Streams(seeds, labels.device, used)
    if rows.shape[1] <= ROWS_PER_EPOCH:
        chosen = x[rows]
        return RepeatedLoss(
            lambda: cross_entropy(model(chosen, operator, streams).logits, targets), [streams]
        )
    batches = Streams([derive(seed, Purpose.BATCHES) for seed in seeds], labels.device)
    everything = torch.arange(ROWS_PER_EPOCH, device=labels.device)

    def compute() -> Tensor:
        drawn = (batches.uniform(ROWS_PER_EPOCH) * counts[:, None]).long()
        positions = torch.where(counts[:, None] > ROWS_PER_EPOCH, drawn, everything)
        logits = model(x[rows.gather(1, positions)], operator, streams).logits
        return cross_entropy(logits, targets.gather(1, positions))

    return RepeatedLoss(compute, [streams, batches])


def own_rows(labels: Tensor) -> tuple[Tensor, Tensor]:
    """``(R, m)`` labeled nodes of each fit and their labels; -1 where a fit has fewer than m."""
    labeled = labels >= 0
    most = int(labeled.sum(1).amax())
    rows = labeled.int().argsort(dim=1, descending=True, stable=True)[:, :most]
    return rows, labels.gather(1, rows)


Loss = Callable[[Output, Tensor, Tensor], Tensor]
"""A function ``loss(output, rows, targets)`` that returns ``(R,)``.

``output.logits`` holds the labeled ``rows`` only; ``targets`` ``(R, len(rows))`` are their labels,
-1 where a fit has none.
"""

MOST_DENSE = 100_000_000
"""Sparse features of labeled nodes are made dense if they have at most so many entries."""


@dataclass(eq=False, kw_only=True)
class NeuralMethod(Method):
    """Settings of the network and its training."""

    backbone: str | type[Backbone] = param(
        "gcn", "the network: a name, or a subclass of Backbone", registry=BACKBONES
    )
    hidden: int = param(64, "width of the hidden layer", low=1)
    dropout: float = param(0.5, "dropout rate of inputs and hidden units", low=0, high=0.99)
    lr: float = param(0.01, "learning rate of Adam", low=1e-8)
    weight_decay: float = param(5e-4, "L2 penalty on all weights", low=0)
    epochs: int = param(200, "maximum number of epochs", low=1)
    patience: int | None = param(
        None, "epochs without a better validation value before stopping; None: never", low=1
    )
    keep_epoch: str = param(
        "loss",
        "epoch to keep: lowest validation loss, highest validation accuracy, or the last",
        choices=("loss", "accuracy", "last"),
    )
    feature_norm: str = param(
        "l2",
        "scaling of each node's features: none, row (sum 1) or l2 (length 1)",
        choices=("none", "row", "l2"),
    )

    activation: ClassVar[str | None] = None
    """Activation of the hidden layer; None for the default of the backbone."""

    @property
    def by_rows(self) -> bool:
        return BACKBONES.resolve(self.backbone).hops == 0

    @property
    def training_options(self) -> TrainingOptions:
        return TrainingOptions(self.epochs, self.lr, self.weight_decay, self.patience)

    def scale_features(self, rows: FeatureMatrix) -> FeatureMatrix:
        return scale_rows(rows, self.feature_norm)

    def create_network(self, problem: Problem, number: int = 0) -> Network:
        """Create a network with new parameters; another number gives another initialization."""
        seeds = [derive(seed, Purpose.TRAINING + number) for seed in problem.seeds]
        columns = problem.x.shape[1]
        model = BACKBONES.resolve(self.backbone)(
            seeds, columns, self.hidden, problem.num_classes, self.dropout, self.activation
        ).to(problem.device)
        model.adapt(problem.graph)
        inputs = model.inputs(problem.graph)
        return Network(model, inputs, model.operator(problem.adjacency), self.keep_epoch)

    def results(
        self,
        problem: Problem,
        training: TrainingLog,
        output: Output,
        *,
        model: Backbone | None = None,
        proba: Tensor | None = None,
    ) -> list[Result]:
        """Results of a single training.

        Args:
            problem: the input.
            training: what the training reports.
            output: output of the network; the shift is measured in its hidden layer.
            model: the network, if it can be applied to other graphs.
            proba: ``(R, n, C)``; default: the softmax of the logits.
        """
        if proba is None:
            proba = output.logits.softmax(-1)
        reasons = self.stop_reasons(training)
        results = results_without_stages(problem, proba, output.embedding, reasons, model)
        for result, epoch in zip(results, training.best_epoch.tolist(), strict=True):
            result.history[0]["epochs"] = epoch + 1
        if model is None or model.hops > 0:
            return results
        return with_row_model(results, NetworkRows(model), problem)

    def stop_reasons(self, training: TrainingLog) -> list[str]:
        """Why the training of each replica ended."""

        def reason(best_epoch: int) -> str:
            if self.patience is not None and training.validation is not None:
                waited = self.epochs - 1 - best_epoch
                if waited >= self.patience:
                    better = "increase" if self.keep_epoch == "accuracy" else "decrease"
                    return (
                        f"validation {self.keep_epoch} did not {better} for {self.patience} epochs"
                    )
            return f"maximum number of epochs ({self.epochs})"

        return [reason(epoch) for epoch in training.best_epoch.tolist()]


@dataclass(frozen=True)
class Network:
    """A backbone together with the features and the operator of the graph it is trained on.

    Attributes:
        model: the backbone.
        x: inputs of the backbone.
        operator: matrix for message passing, computed from the adjacency by the backbone.
        keep_epoch: epoch to keep in a training: ``loss``, ``accuracy`` or ``last``.
    """

    model: Backbone
    x: Features
    operator: SparseMatrix
    keep_epoch: str

    @property
    def device(self) -> torch.device:
        return self.operator.values.device

    def predict(self, operator: SparseMatrix | None = None) -> Output:
        """Output for every node, without dropout or gradients; optionally with another operator."""
        with torch.no_grad():
            output: Output = self.model(self.x, operator or self.operator)
        return output

    def predict_with_dropout(self, streams: Streams, rate: float) -> Output:
        """Output with dropout at the given rate, without gradients."""
        model = copy.copy(self.model)  # shares the parameters
        model.dropout = rate
        with torch.no_grad():
            output: Output = model(self.x, self.operator, streams)
        return output

    def training_loss(
        self, labels: Tensor, seeds: Sequence[int], loss: Loss | None = None
    ) -> Callable[[], Tensor]:
        """Return a function that computes the loss ``(R,)`` of ``(R, n)`` labels, with dropout.

        Without edges, only the labeled rows of each fit are computed: all of them, or
        some drawn again in each epoch.
        """
        rows = labeled_rows(labels)
        if loss is None and self.model.hops == 0:
            if not isinstance(self.x, SparseMatrix):
                return loss_of_rows(self.model, self.operator, self.x, labels, seeds)
            if stays_sparse(self.x, labels):
                return loss_of_sparse_rows(self.model, self.operator, self.x, labels, seeds)
            if len(rows) * self.x.shape[1] <= MOST_DENSE:
                dense = self.x.select_rows(rows).to_dense()
                return loss_of_rows(self.model, self.operator, dense, labels[:, rows], seeds)
        streams = Streams(seeds, labels.device)
        targets = labels[:, rows]

        def compute() -> Tensor:
            output: Output = self.model(self.x, self.operator, streams, rows)
            if loss is None:
                return cross_entropy(output.logits, targets)
            return loss(output, rows, targets)

        return compute

    def train(
        self,
        name: str,
        labels: Tensor,
        problem: Problem,
        options: TrainingOptions,
        *,
        number: int = 0,
        loss: Loss | None = None,
    ) -> TrainingLog:
        """Minimize the cross entropy of ``(R, n)`` labels; keep the best state by validation.

        Args:
            name: name of the checkpoint step.
            labels: -1 for unlabeled nodes.
            problem: validation labels, seeds, callbacks and checkpoint.
            options: epochs, learning rate, weight decay and patience.
            number: number of the training within the method; another number, other random numbers.
            loss: replaces the cross entropy.
        """
        seeds = [derive(seed, Purpose.TRAINING + number, 1) for seed in problem.seeds]
        return train(
            name,
            self.model,
            self.training_loss(labels, seeds, loss),
            options,
            validation=self.validation(problem),
            callbacks=problem.callbacks,
            checkpoint=problem.checkpoint,
        )

    def validation(self, problem: Problem) -> Validation | None:
        """Validation loss or error, computed on the receptive field of the validation nodes.

        None if the last epoch is kept or no fit has validation nodes.
        """
        if self.keep_epoch == "last" or not bool(problem.has_validation.any()):
            return None
        labels = problem.val_labels
        rows = labeled_rows(labels)
        x, operator, inside = receptive_field(self.x, self.operator, rows, self.model.hops)
        targets = labels[:, rows]

        def measure() -> Tensor:
            logits = self.model(x, operator, rows=inside).logits
            value = cross_entropy(logits, targets)
            if self.keep_epoch == "accuracy":  # ties between epochs are resolved by the loss
                wrong = ((logits.argmax(-1) != targets) & (targets >= 0)).sum(1)
                value = wrong + value / (1 + value)
            return value

        return Validation(measure, problem.has_validation)


def labeled_rows(labels: Tensor) -> Tensor:
    """Nodes that have a label in at least one fit, of labels ``(R, n)``."""
    return (labels >= 0).any(0).nonzero().flatten()


def copy_parameters(source: Network, target: Network) -> None:
    """Copy the parameters of one network to another."""
    target.model.load_state_dict(source.model.state_dict())


@dataclass(eq=False, kw_only=True)
class GCN(NeuralMethod):
    """Train a network on the given labels and predict all nodes with it.

    The default backbone is a GCN (Kipf & Welling, ICLR 2017, https://arxiv.org/abs/1609.02907).
    Validation nodes, if there are any, determine which epoch to keep.

    Example:
        >>> from dcgst import GCN, load
        >>> model = GCN(epochs=50).fit(load("synthetic"))
        >>> model.proba_.shape
        (1200, 4)
    """

    name: ClassVar[str] = "gcn"
    # The paper does not state how it scaled features. These presets are meant to reproduce its GCN
    # row, not to be accurate; the learning rate of PubMed is published.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "default": {},
        "paper/cora": {"feature_norm": "none"},
        "paper/citeseer": {"feature_norm": "row"},
        "paper/pubmed": {"feature_norm": "none", "lr": 0.001},
    }

    def solve(self, problem: Problem) -> list[Result]:
        network, training = self.train_network(problem)
        return self.results(problem, training, network.predict(), model=network.model)

    def train_network(self, problem: Problem) -> tuple[Network, TrainingLog]:
        """Train a new network on the training labels."""
        network = self.create_network(problem)
        labels, options = problem.train_labels, self.training_options
        return network, network.train("training", labels, problem, options)


@dataclass(eq=False, kw_only=True)
class APPNP(GCN):
    """Train an MLP whose logits are propagated ten steps along the edges.

    Gasteiger et al., ICLR 2019, https://arxiv.org/abs/1810.05997.

    Example:
        >>> from dcgst import APPNP, load
        >>> graph = load("synthetic")
        >>> model = APPNP(epochs=50).fit(graph)
        >>> model.score(graph) > 0.3, model.proba_.shape
        (True, (1200, 4))
    """

    name: ClassVar[str] = "appnp"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}

    backbone: str | type[Backbone] = param("appnp", "the network", choices=("appnp",))


@dataclass(eq=False, kw_only=True)
class MLP(GCN):
    """Train two layers on the features of the labeled nodes; edges are not used.

    Example:
        >>> from dcgst import MLP, load
        >>> graph = load("synthetic")
        >>> model = MLP(epochs=50).fit(graph)
        >>> model.score(graph) > 0.3, model.proba_.shape
        (True, (1200, 4))
    """

    name: ClassVar[str] = "mlp"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}

    backbone: str | type[Backbone] = param("mlp", "the network", choices=("mlp",))


@dataclass(eq=False, kw_only=True)
class SIGN(GCN):
    """Train two layers on features of 0 to 3 hops, concatenated and computed once.

    The idea of SIGN (Frasca et al., 2020, https://arxiv.org/abs/2004.11198), with the features of
    :class:`dcgst.features.smoothing.Propagation`. Training needs the labeled rows only.

    Example:
        >>> from dcgst import SIGN, load
        >>> graph = load("synthetic")
        >>> model = SIGN(epochs=50).fit(graph)
        >>> model.score(graph) > 0.3, model.proba_.shape
        (True, (1200, 4))
    """

    name: ClassVar[str] = "sign"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}

    backbone: str | type[Backbone] = param("sign", "the network", choices=("sign",))
