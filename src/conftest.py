"""Examples in docstrings: what they register is removed afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dcgst.datasets import DATASETS
from dcgst.methods import METHODS
from dcgst.nn.backbones import BACKBONES
from dcgst.splits.samplers import SAMPLERS


@pytest.fixture(autouse=True)
def unchanged_registries() -> Iterator[None]:
    registries = (DATASETS, METHODS, BACKBONES, SAMPLERS)
    before = [dict(vars(registry)["_items"]) for registry in registries]
    yield
    for registry, items in zip(registries, before, strict=True):
        vars(registry)["_items"].clear()
        vars(registry)["_items"].update(items)
