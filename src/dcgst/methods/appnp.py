"""Predict then propagate, as a method of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dcgst.methods.core.params import param
from dcgst.methods.gcn import GCN
from dcgst.nn.base import Backbone


@dataclass(eq=False, kw_only=True)
class APPNP(GCN):
    """Train an MLP whose logits are propagated ten steps along the edges.

    Gasteiger et al., ICLR 2019, https://arxiv.org/abs/1810.05997.
    """

    name: ClassVar[str] = "appnp"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}

    backbone: str | type[Backbone] = param("appnp", "the network", choices=("appnp",))
