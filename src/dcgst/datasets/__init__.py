"""Data sets by name: ``load("cora")``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dcgst.datasets import arxiv, digits, npz, planetoid
from dcgst.datasets.synthetic import synthetic
from dcgst.errors import unknown
from dcgst.graph import Graph


@dataclass(frozen=True)
class Dataset:
    """An entry of the catalogue: what the data set is, and how to get it."""

    name: str
    nodes: int
    edges: int
    features: int
    classes: int
    origin: str
    present: Callable[[str], bool]
    load: Callable[[str], Graph]


CATALOGUE: dict[str, Dataset] = {
    entry.name: entry
    for entry in (
        Dataset("cora", 2708, 5278, 1433, 7, planetoid.SOURCE.origin, planetoid.present, planetoid.load),
        Dataset(
            "citeseer", 3327, 4552, 3703, 6, planetoid.SOURCE.origin, planetoid.present, planetoid.load
        ),
        Dataset(
            "pubmed", 19717, 44324, 500, 3, planetoid.SOURCE.origin, planetoid.present, planetoid.load
        ),
        Dataset("ogbn-arxiv", 169343, 1157799, 128, 40, "OGB", arxiv.present, arxiv.load),
        Dataset("cora_ml", 2995, 8158, 2879, 7, npz.SOURCE.origin, npz.present, npz.load),
        Dataset("amazon_photo", 7650, 119081, 745, 8, npz.SOURCE.origin, npz.present, npz.load),
        Dataset("actor", 7600, 26659, 932, 5, npz.SOURCE.origin, npz.present, npz.load),
        Dataset("chameleon_filtered", 890, 8854, 2325, 5, npz.SOURCE.origin, npz.present, npz.load),
        Dataset("digits", 1797, 6308, 64, 10, "scikit-learn, embedded", digits.present, digits.load),
        Dataset(
            "synthetic",
            1200,
            3456,
            32,
            4,
            "made on the spot, embedded",
            lambda _: True,
            lambda name: synthetic(name=name),
        ),
    )
}


def load(name: str) -> Graph:
    """Load a data set by name; see ``dcgst datasets`` or ``CATALOGUE`` for what there is."""
    if name not in CATALOGUE:
        raise unknown("data set", name, CATALOGUE)
    return CATALOGUE[name].load(name)


__all__ = ["CATALOGUE", "Dataset", "load", "synthetic"]
