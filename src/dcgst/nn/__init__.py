"""Graph neural networks with a replica axis: backbones by name in ``BACKBONES``."""

from __future__ import annotations

from dcgst.nn.backbones import (
    BACKBONES,
    APPNPBackbone,
    Backbone,
    GATBackbone,
    GCNBackbone,
    MLPBackbone,
    Output,
    SAGEBackbone,
    SIGNBackbone,
    glorot,
    project,
    zeros,
)
from dcgst.train.random import dropout

BACKBONES.register("gcn", GCNBackbone)
BACKBONES.register("gat", GATBackbone)
BACKBONES.register("sage", SAGEBackbone)
BACKBONES.register("appnp", APPNPBackbone)
BACKBONES.register("mlp", MLPBackbone)
BACKBONES.register("sign", SIGNBackbone)


def register_backbone(name: str, backbone: type[Backbone]) -> type[Backbone]:
    """Make a backbone available by name: ``DCGST(backbone=name)``, ``--set backbone=name``.

    Example:
        >>> from dcgst.nn.backbones import BACKBONES, GCNBackbone
        >>> class Wide(GCNBackbone):
        ...     pass
        >>> _ = register_backbone("wide", Wide)
        >>> "wide" in BACKBONES
        True
    """
    return BACKBONES.register(name, backbone)


__all__ = [
    "BACKBONES",
    "APPNPBackbone",
    "Backbone",
    "GATBackbone",
    "GCNBackbone",
    "MLPBackbone",
    "Output",
    "SAGEBackbone",
    "SIGNBackbone",
    "dropout",
    "glorot",
    "project",
    "register_backbone",
    "zeros",
]
