"""Node classification from few, unrepresentative labels.

Names are imported on first use, so that ``import dcgst`` and ``dcgst --help`` are fast.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

# PyTorch reads this variable when it first allocates: large tensors then use huge pages, which
# takes a third off the time per epoch on graphs of 100,000 nodes. Set it to 0 to disable it.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

from dcgst.version import VERSION as __version__  # noqa: N811

if TYPE_CHECKING:
    from dcgst.datasets import Dataset, load, register_dataset, synthetic
    from dcgst.errors import InputError
    from dcgst.graph import Graph
    from dcgst.insight import compare, diagnose, draw_audit, explain, suggest, write_report
    from dcgst.methods import (
        APPNP,
        DCGST,
        DRGST,
        EERM,
        EM,
        GCN,
        M3S,
        METHODS,
        MLP,
        SIGN,
        SRGNN,
        SRGNNST,
        ST,
        CorrectAndSmooth,
        Ensemble,
        GaussianProcess,
        LabelPropagation,
        Majority,
        Method,
        Result,
        method,
        register_method,
    )
    from dcgst.nn import Backbone, register_backbone
    from dcgst.runs import Run, fit, open_run
    from dcgst.splits import Split, register_sampler, sample
    from dcgst.tables import Columns, Query, read

_MODULES = {
    "dcgst.datasets": "Dataset load register_dataset synthetic",
    "dcgst.errors": "InputError",
    "dcgst.graph": "Graph",
    "dcgst.insight": "compare diagnose draw_audit explain suggest write_report",
    "dcgst.tables": "Columns Query read",
    "dcgst.methods": (
        "APPNP DCGST DRGST EERM EM GCN M3S METHODS MLP SIGN SRGNN SRGNNST ST "
        "CorrectAndSmooth Ensemble GaussianProcess LabelPropagation Majority Method Result method "
        "register_method"
    ),
    "dcgst.nn": "Backbone register_backbone",
    "dcgst.runs": "Run fit open_run",
    "dcgst.splits": "Split register_sampler sample",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'dcgst' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


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
    "SIGN",
    "SRGNN",
    "SRGNNST",
    "ST",
    "Backbone",
    "Columns",
    "CorrectAndSmooth",
    "Dataset",
    "Ensemble",
    "GaussianProcess",
    "Graph",
    "InputError",
    "LabelPropagation",
    "Majority",
    "Method",
    "Query",
    "Result",
    "Run",
    "Split",
    "__version__",
    "compare",
    "diagnose",
    "draw_audit",
    "explain",
    "fit",
    "load",
    "method",
    "open_run",
    "read",
    "register_backbone",
    "register_dataset",
    "register_method",
    "register_sampler",
    "sample",
    "suggest",
    "synthetic",
    "write_report",
]
