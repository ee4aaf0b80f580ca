"""A network that does not see the graph: what the features alone tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dcgst.methods.gcn import GCN
from dcgst.methods.params import param


@dataclass(eq=False, kw_only=True)
class MLP(GCN):
    """Train two layers on the features of the labeled nodes; edges are not used."""

    name: ClassVar[str] = "mlp"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}

    backbone: str = param("mlp", "the network", choices=("mlp",))
