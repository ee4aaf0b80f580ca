"""SR-GNN with self-training: the strongest rival in the paper of DC-GST."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from dcgst.methods.neural import Network
from dcgst.methods.outcome import Problem
from dcgst.methods.params import param
from dcgst.methods.srgnn import SRGNN
from dcgst.methods.st import ST


@dataclass(eq=False, kw_only=True)
class SRGNNST(ST, SRGNN):
    """Self-training whose teacher and student are both SR-GNNs.

    Each training draws a random sample of its own to be near to, as large as all labels together,
    pseudo-labels included.
    """

    name: ClassVar[str] = "srgnn_st"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        preset: {"stages": 1, "cmd_weight": 1.0, **settings} if settings else {}
        for preset, settings in SRGNN.presets.items()
    }

    stages: int = param(5, "rounds of pseudo-labels, which share them out", low=1, high=40)
    cmd_weight: float = param(0.3, "weight of the CMD", low=0, symbol="λ")

    def learn(self, labels: Tensor, problem: Problem, number: int) -> Network:
        network, _ = self.learn_robustly(labels, problem, number)
        return network
