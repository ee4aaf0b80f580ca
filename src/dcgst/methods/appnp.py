"""Predict then propagate (Gasteiger et al., 2019), as a method of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dcgst.methods.gcn import GCN
from dcgst.methods.params import param


@dataclass(eq=False, kw_only=True)
class APPNP(GCN):
    """Train an MLP whose predictions flow ten steps along the edges."""

    name: ClassVar[str] = "appnp"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}

    backbone: str = param("appnp", "the network", choices=("appnp",))
