"""Supervised training of a graph neural network: the basic baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dcgst.engine.training import TrainingLog
from dcgst.methods.core.network import Network, NeuralMethod
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.result import Result


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
