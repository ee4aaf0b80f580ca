"""Networks trained on the given labels: GCN, APPNP, MLP and SIGN."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dcgst.methods.network import Network, NeuralMethod
from dcgst.methods.params import param
from dcgst.methods.problem import Problem
from dcgst.methods.result import Result
from dcgst.nn.backbones import Backbone
from dcgst.train.training import TrainingLog


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
    :class:`dcgst.features.propagation.Propagation`. Training needs the labeled rows only.

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
