"""Methods by name: ``method("gcn")``, ``method("dcgst", "paper/cora")``, or all in ``METHODS``."""

from __future__ import annotations

from typing import Any

from dcgst.methods.base import Method, param
from dcgst.methods.dcgst.algorithm import DCGST
from dcgst.methods.drgst import DRGST
from dcgst.methods.eerm import EERM
from dcgst.methods.em import EM
from dcgst.methods.ensemble import Ensemble
from dcgst.methods.gaussian_process import GaussianProcess
from dcgst.methods.label_propagation import CorrectAndSmooth, LabelPropagation, Majority
from dcgst.methods.networks import APPNP, GCN, MLP, SIGN, NeuralMethod
from dcgst.methods.problem import Problem
from dcgst.methods.result import Result, results_without_stages
from dcgst.methods.srgnn import SRGNN, SRGNNST
from dcgst.methods.st import M3S, ST
from dcgst.registry import Registry, subclass_of

METHODS: Registry[type[Method]] = Registry("method", "dcgst.methods", subclass_of(Method))
# The methods of the paper, in the order of its tables, then the others, simplest first.
_PAPER: tuple[type[Method], ...] = (DCGST, GCN, ST, M3S, DRGST, SRGNN, EERM, SRGNNST)
_OTHERS: tuple[type[Method], ...] = (
    Majority,
    LabelPropagation,
    MLP,
    APPNP,
    CorrectAndSmooth,
    SIGN,
    EM,
    GaussianProcess,
    Ensemble,
)
for _method in (*_PAPER, *_OTHERS):
    METHODS.register(_method.name, _method)
Ensemble.registry = METHODS

DEFAULT_METHOD = Ensemble.name
"""The method of ``dcgst fit``."""


def method(name: str, preset: str = "default", **settings: Any) -> Method:
    """Create a method by name with the settings of a preset, overridden by ``settings``.

    Args:
        name: a name in ``METHODS``, or ``package.module:Class``.
        preset: one of the method's presets.
        **settings: other settings.

    Example:
        >>> method("gcn", hidden=16).hidden
        16
    """
    return METHODS[name].from_preset(preset, **settings)


def register_method(kind: type[Method]) -> type[Method]:
    """Make a method available by its ``name``; works as a class decorator.

    Example:
        >>> from dcgst import GCN, METHODS
        >>> @register_method
        ... class WideGCN(GCN):
        ...     name = "wide_gcn"
        >>> METHODS["wide_gcn"] is WideGCN
        True
    """
    return METHODS.register(kind.name, kind)


__all__ = [
    "APPNP",
    "DCGST",
    "DEFAULT_METHOD",
    "DRGST",
    "EERM",
    "EM",
    "GCN",
    "M3S",
    "METHODS",
    "MLP",
    "SIGN",
    "SRGNN",
    "SRGNNST",
    "ST",
    "CorrectAndSmooth",
    "Ensemble",
    "GaussianProcess",
    "LabelPropagation",
    "Majority",
    "Method",
    "NeuralMethod",
    "Problem",
    "Result",
    "method",
    "param",
    "register_method",
    "results_without_stages",
]
