"""A network that uses features only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dcgst.methods.core.params import param
from dcgst.methods.gcn import GCN
from dcgst.nn.base import Backbone


@dataclass(eq=False, kw_only=True)
class MLP(GCN):
    """Train two layers on the features of the labeled nodes; edges are not used."""

    name: ClassVar[str] = "mlp"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}

    backbone: str | type[Backbone] = param("mlp", "the network", choices=("mlp",))
