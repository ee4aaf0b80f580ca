"""Plain supervised training of a graph neural network: the baseline of baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dcgst.methods.neural import NeuralMethod
from dcgst.methods.outcome import Outcome, Problem


@dataclass(eq=False, kw_only=True)
class GCN(NeuralMethod):
    """Train a backbone on the given labels and predict all nodes with it.

    Where there are validation nodes, they tell which epoch to keep; otherwise it is the last.
    """

    name: ClassVar[str] = "gcn"
    # The paper does not say how it scaled features. These readings are meant to land on its row,
    # not settings chosen for accuracy; the learning rate of PubMed is published.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "default": {},
        "paper/cora": {"feature_norm": "none"},
        "paper/citeseer": {"feature_norm": "row"},
        "paper/pubmed": {"feature_norm": "none", "lr": 0.001},
    }

    def solve(self, problem: Problem) -> Outcome:
        network = self.network(problem)
        training = network.train(problem.labels, problem, self.schedule)
        output = network.outputs()
        stages = self.book(output, training, problem)
        return Outcome(output.logits.softmax(-1), stages, network.model)
