"""Data sets by name: ``load("cora")``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dcgst.datasets import arxiv, digits, npz, planetoid, shifted
from dcgst.datasets.shifted import synthetic
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
    name: Dataset(name, *counts, origin, module.present, module.load)
    for name, counts, origin, module in (
        ("cora", (2708, 5278, 1433, 7), "kimiyoung/planetoid", planetoid),
        ("citeseer", (3327, 4552, 3703, 6), "kimiyoung/planetoid", planetoid),
        ("pubmed", (19717, 44324, 500, 3), "kimiyoung/planetoid", planetoid),
        ("ogbn-arxiv", (169343, 1157799, 128, 40), "OGB", arxiv),
        ("cora_ml", (2995, 8158, 2879, 7), "EdisonLeeeee/GraphData", npz),
        ("amazon_photo", (7650, 119081, 745, 8), "EdisonLeeeee/GraphData", npz),
        ("actor", (7600, 26659, 932, 5), "yandex-research", npz),
        ("chameleon_filtered", (890, 8854, 2325, 5), "yandex-research", npz),
        ("digits", (1797, 6309, 64, 10), "scikit-learn", digits),
        ("synthetic", (1200, 3456, 32, 4), "made on the spot", shifted),
    )
}
"""What there is; the last two need no files."""


def load(name: str) -> Graph:
    """Load a data set by name; see ``dcgst datasets`` or ``CATALOGUE`` for what there is.

    ``synthetic/5000`` is the synthetic graph with so many nodes.
    """
    kind, _, nodes = name.partition("/")
    if kind == "synthetic" and nodes.isdecimal():
        return synthetic(int(nodes), name=name)
    if name not in CATALOGUE:
        raise unknown("data set", name, CATALOGUE)
    return CATALOGUE[name].load(name)


def official_here(name: str) -> bool:
    """Whether the published data are at hand, not a substitute; for all but ogbn-arxiv they are."""
    return name != "ogbn-arxiv" or arxiv.official_folder() is not None


__all__ = ["CATALOGUE", "Dataset", "load", "official_here", "synthetic"]
