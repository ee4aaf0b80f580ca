"""Defaults, bounds and presets of all settings, compared with a reviewed file.

A changed default changes everyone's results, and a changed preset no longer is the published one.
To change one on purpose, run ``python -m tests.methods.test_published_settings`` and review the
difference.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from dcgst.methods import METHODS
from dcgst.nn import BACKBONES
from dcgst.splits import SAMPLERS

FILE = Path(__file__).with_name("settings.json")
STORED = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def describe(name: str) -> dict[str, Any]:
    """All settings of a method: default, and what else is declared."""
    method = METHODS[name]
    fields = {
        field.name: {
            "default": field.default,
            **{
                key: field.metadata[key]
                for key in ("low", "high", "choices")
                if field.metadata.get(key) is not None
            },
        }
        for field in dataclasses.fields(method)
    }
    presets = {preset: dict(settings) for preset, settings in method.presets.items()}
    about = {key: getattr(method, key) for key in ("all_at_once", "deterministic")}
    described = {"settings": fields, "presets": presets, **about}
    return json.loads(json.dumps(described))


@pytest.mark.parametrize("name", list(METHODS))
def test_settings_are_the_reviewed_ones(name):
    assert describe(name) == STORED[name]


def test_all_methods_backbones_and_samplers_are_registered():
    assert list(METHODS) == list(STORED)
    assert sorted(BACKBONES) == ["appnp", "gat", "gcn", "mlp", "sage", "sign"]
    assert sorted(SAMPLERS) == ["degree", "ppr-s", "released", "uniform"]


if __name__ == "__main__":
    settings = {name: describe(name) for name in METHODS}
    FILE.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
