"""Settings of version 0.1.0 that were renamed or removed, for reading stored results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dcgst.errors import InputError

RENAMED = {"keep": "keep_epoch", "chunk": "chunk_size"}
RENAMED_BY_METHOD = {
    "dcgst": {
        "nodes": "edge_nodes",
        "pairs": "edge_pairs",
        "temperature": "edge_temperature",
        "ensemble": "experts",
        "quota": "class_balance",
        "ner_sum": "ner_reduction",
    }
}
REMOVED: dict[str, dict[str, Any]] = {
    "dcgst": {
        "similar": 20,
        "q_steps": 50,
        "constraint": "projection",
        "ner_edges": "normalised",
        "growth_rule": "factor",
        "warm": True,
        "representation": "hidden",
        "support": "range",
        "edge_noise": "logistic",
        "select_on": "graph",
        "best_teacher": "validation",
        "student": "teacher",
    }
}
"""Removed settings with the values that are now fixed."""


VALUES: dict[tuple[str, str], dict[Any, Any]] = {
    ("dcgst", "experts"): {"none": False, "em": True},
}
"""New values of renamed settings. EM alone was the ensemble of version 0.1."""


def upgrade_settings(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Convert stored settings of any earlier version to current ones.

    Raises:
        InputError: if a removed setting has a value that is no longer supported.
    """
    renamed, removed = RENAMED | RENAMED_BY_METHOD.get(method, {}), REMOVED.get(method, {})
    current = {}
    if method == "dcgst" and isinstance(settings.get("prior"), str):
        # In version 0.1 this was the ensemble; now it is the known class shares.
        settings = {"ensemble" if name == "prior" else name: v for name, v in settings.items()}
    for name, value in settings.items():
        if name not in removed:
            new = renamed.get(name, name)
            changed = VALUES.get((method, new), {})
            current[new] = changed.get(value, value) if isinstance(value, str) else value
        elif value != removed[name]:
            raise InputError(
                f"{method} with {name}={value} is not supported since version 0.2; only "
                f"{removed[name]} is"
            )
    return current
