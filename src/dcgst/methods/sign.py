"""A network on features of several hops, computed before training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dcgst.methods.core.params import param
from dcgst.methods.gcn import GCN
from dcgst.nn.base import Backbone


@dataclass(eq=False, kw_only=True)
class SIGN(GCN):
    """Train two layers on features of 0 to 3 hops, concatenated and computed once.

    The idea of SIGN (Frasca et al., 2020, https://arxiv.org/abs/2004.11198), with the features of
    :class:`dcgst.numerics.propagation.Propagation`. Training needs the labeled rows only.
    """

    name: ClassVar[str] = "sign"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}

    backbone: str | type[Backbone] = param("sign", "the network", choices=("sign",))
