"""Methods by name: ``method("gcn")``, with settings by name: ``method("gcn", "default")``."""

from __future__ import annotations

from typing import Any

from dcgst.errors import unknown
from dcgst.methods.base import Method
from dcgst.methods.dcgst import DCGST
from dcgst.methods.em import EM
from dcgst.methods.gcn import GCN
from dcgst.methods.outcome import Result

METHODS: dict[str, type[Method]] = {"dcgst": DCGST, "gcn": GCN, "em": EM}


def method(name: str, preset: str = "default", **settings: Any) -> Method:
    """A method with a preset's settings, and any others on top."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name].from_preset(preset, **settings)


__all__ = ["DCGST", "EM", "GCN", "METHODS", "Method", "Result", "method"]
