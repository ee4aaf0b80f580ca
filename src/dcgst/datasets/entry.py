"""An entry of the dataset registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dcgst.errors import InputError
from dcgst.graph import Graph
from dcgst.registry import Registry


@dataclass(frozen=True)
class Dataset:
    """A dataset: its name and how to load it.

    Attributes:
        name: its name.
        load: returns the graph.
        available: whether the files are on this machine.
        origin: where the data come from.
        nodes: number of nodes, if known; likewise ``edges``, ``features`` and ``classes``.
    """

    name: str
    load: Callable[[], Graph]
    available: Callable[[], bool] = lambda: True
    origin: str = ""
    nodes: int | None = None
    edges: int | None = None
    features: int | None = None
    classes: int | None = None


def _check_dataset(item: Any) -> None:
    if not isinstance(item, Dataset):
        raise InputError(f"expected a dcgst.datasets.Dataset, got {item!r}")


DATASETS: Registry[Dataset] = Registry("dataset", "dcgst.datasets", _check_dataset)
