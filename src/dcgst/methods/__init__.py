"""Methods by name: ``method("gcn")``, with settings by name: ``method("gcn", "default")``."""

from __future__ import annotations

from typing import Any

from dcgst.errors import unknown
from dcgst.methods.appnp import APPNP
from dcgst.methods.base import Method
from dcgst.methods.correct_and_smooth import CorrectAndSmooth
from dcgst.methods.dcgst import DCGST
from dcgst.methods.drgst import DRGST
from dcgst.methods.eerm import EERM
from dcgst.methods.em import EM
from dcgst.methods.gcn import GCN
from dcgst.methods.label_propagation import LabelPropagation
from dcgst.methods.m3s import M3S
from dcgst.methods.majority import Majority
from dcgst.methods.mlp import MLP
from dcgst.methods.outcome import Result
from dcgst.methods.srgnn import SRGNN
from dcgst.methods.srgnn_st import SRGNNST
from dcgst.methods.st import ST

_ALL: tuple[type[Method], ...] = (
    # the paper's, in the order of its tables
    *(DCGST, GCN, ST, M3S, DRGST, SRGNN, EERM, SRGNNST),
    # what else there is, from the plainest on
    *(Majority, LabelPropagation, MLP, APPNP, CorrectAndSmooth, EM),
)
METHODS: dict[str, type[Method]] = {kind.name: kind for kind in _ALL}


def method(name: str, preset: str = "default", **settings: Any) -> Method:
    """A method with a preset's settings, and any others on top."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name].from_preset(preset, **settings)


__all__ = [
    "APPNP",
    "DCGST",
    "DRGST",
    "EERM",
    "EM",
    "GCN",
    "M3S",
    "METHODS",
    "MLP",
    "SRGNN",
    "SRGNNST",
    "ST",
    "CorrectAndSmooth",
    "LabelPropagation",
    "Majority",
    "Method",
    "Result",
    "method",
]
