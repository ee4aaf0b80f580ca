"""SR-GNN with self-training: the strongest baseline of the DC-GST paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from dcgst.methods.core.network import Network
from dcgst.methods.core.params import param
from dcgst.methods.core.problem import Problem
from dcgst.methods.srgnn import SRGNN
from dcgst.methods.st import ST


@dataclass(eq=False, kw_only=True)
class SRGNNST(ST, SRGNN):
    """Self-training in which every network is an SR-GNN.

    Each training draws its own random sample of the pool, as large as the set of all labels,
    pseudo-labels included.
    """

    name: ClassVar[str] = "srgnn_st"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        preset: {"stages": 1, "cmd_weight": 1.0, **settings} if settings else {}
        for preset, settings in SRGNN.presets.items()
    }

    stages: int = param(5, "number of stages; each adds an equal part", low=1, high=40)
    cmd_weight: float = param(0.3, "weight of the CMD", low=0, symbol="λ")

    def train_new(self, labels: Tensor, problem: Problem, stage: int) -> Network:
        network, _ = self.train_robust(labels, problem, stage)
        return network
