"""Graph neural networks with a replica axis."""

from __future__ import annotations

from dcgst.errors import unknown
from dcgst.nn.appnp import APPNP
from dcgst.nn.base import Backbone, Output
from dcgst.nn.gat import GAT
from dcgst.nn.gcn import GCN
from dcgst.nn.mlp import MLP
from dcgst.nn.sage import GraphSAGE

BACKBONES: dict[str, type[Backbone]] = {
    "gcn": GCN,
    "gat": GAT,
    "sage": GraphSAGE,
    "appnp": APPNP,
    "mlp": MLP,
}


def backbone(name: str) -> type[Backbone]:
    """The backbone class of that name."""
    if name not in BACKBONES:
        raise unknown("backbone", name, BACKBONES)
    return BACKBONES[name]


__all__ = ["APPNP", "BACKBONES", "GAT", "GCN", "MLP", "Backbone", "GraphSAGE", "Output", "backbone"]
