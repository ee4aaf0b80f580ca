"""An MLP on features of several hops (SIGN: Frasca et al., 2020, arXiv:2004.11198)."""

from __future__ import annotations

from dataclasses import fields

import torch
from torch import Tensor

from dcgst.engine.random import Streams
from dcgst.nn.mlp import MLPBackbone
from dcgst.numerics.graph_tensors import GraphTensors, NodeTensors
from dcgst.numerics.propagation import DIMENSIONS, HOPS, Propagation


class SIGNBackbone(MLPBackbone):
    """Two layers on features of 0 to 3 hops, concatenated and computed before the training.

    The weights and the projection of the features are learned on the graph of the fit and stored
    with the parameters, so that the network can be applied to other graphs.
    """

    @property
    def num_inputs(self) -> int:
        return (len(HOPS) + 1) * min(DIMENSIONS, self.num_features) + 1

    def build(self, streams: Streams) -> None:
        super().build(streams)
        self._store(Propagation.empty(self.num_features))

    def adapt(self, graph: GraphTensors) -> None:
        self._store(graph.propagation)

    def inputs(self, graph: NodeTensors) -> Tensor:
        tensors = {field.name: getattr(self, field.name) for field in fields(Propagation)}
        return torch.cat(list(graph.propagated_by(Propagation(**tensors)).values()), dim=1)

    def _store(self, propagation: Propagation) -> None:
        for field in fields(Propagation):
            self.register_buffer(field.name, getattr(propagation, field.name))
