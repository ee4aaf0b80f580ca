"""A network on features of several hops, computed before training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch

from dcgst.methods.core.params import param
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.result import Result
from dcgst.methods.gcn import GCN
from dcgst.nn.base import Backbone


@dataclass(eq=False, kw_only=True)
class SIGN(GCN):
    """Train two layers on features of 0 to 3 hops, kept apart and computed once.

    The idea of SIGN (Frasca et al., 2020, https://arxiv.org/abs/2004.11198), with the features of
    :func:`dcgst.numerics.propagation.propagated_features`. Training needs the labeled rows only.
    """

    name: ClassVar[str] = "sign"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}

    backbone: str | type[Backbone] = param("mlp", "the network", choices=("mlp",))

    def solve(self, problem: Problem) -> list[Result]:
        hops = torch.cat(list(problem.graph.propagated.values()), dim=1)
        results = super().solve(replace(problem, graph=problem.graph.with_features(hops)))
        # Without model: it cannot be applied to the features of another graph.
        return [replace(result, models=()) for result in results]
