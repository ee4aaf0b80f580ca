"""Datasets by name: ``load("cora")``; all names are in ``DATASETS``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from dcgst.datasets import arxiv, digits, npz, planetoid, tables
from dcgst.datasets.source import DATASETS, Dataset
from dcgst.datasets.synthetic import synthetic
from dcgst.graph import Graph
from dcgst.tables import read

for _name, _counts, _origin, _module in (
    ("cora", (2708, 5278, 1433, 7), "kimiyoung/planetoid", planetoid),
    ("citeseer", (3327, 4552, 3703, 6), "kimiyoung/planetoid", planetoid),
    ("pubmed", (19717, 44324, 500, 3), "kimiyoung/planetoid", planetoid),
    ("ogbn-arxiv", (169343, 1157799, 128, 40), "OGB", arxiv),
    ("cora_ml", (2995, 8158, 2879, 7), "EdisonLeeeee/GraphData", npz),
    ("amazon_photo", (7650, 119081, 745, 8), "EdisonLeeeee/GraphData", npz),
    ("blogcatalog", (5196, 171743, 8189, 6), "EdisonLeeeee/GraphData", npz),
    ("uai", (3067, 28308, 4973, 19), "EdisonLeeeee/GraphData", npz),
    ("polblogs", (1490, 16715, 1490, 2), "EdisonLeeeee/GraphData", npz),
    ("minesweeper", (10000, 39402, 7, 2), "yandex-research", npz),
    ("actor", (7600, 26659, 932, 5), "yandex-research", npz),
    ("chameleon_filtered", (890, 8854, 2325, 5), "yandex-research", npz),
    ("cornell", (183, 277, 1703, 5), "EdisonLeeeee/GraphData", npz),
    ("facebook", (22470, 170823, 2000, 4), "benedekrozemberczki/MUSAE", tables),
    ("DE", (9498, 153138, 1003, 2), "benedekrozemberczki/MUSAE", tables),
    (
        "counties_winner",
        (3111, 9228, 1057, 2),
        "000Justin000/gnn-residual-correlation",
        tables,
    ),
    (
        "counties_economy",
        (3111, 9228, 1057, 6),
        "000Justin000/gnn-residual-correlation",
        tables,
    ),
    ("german", (1000, 21742, 38, 2), "chirag126/nifty", tables),
    ("wikispeedia", (4597, 106519, 1000, 15), "angelpras/epfl_ADA_project", tables),
    ("digits", (1797, 6309, 64, 10), "scikit-learn", digits),
):
    DATASETS.register(
        _name,
        Dataset(
            _name,
            partial(_module.load, _name),
            partial(_module.available, _name),
            _origin,
            *_counts,
        ),
    )
DATASETS.register(
    "synthetic", Dataset("synthetic", synthetic, lambda: True, "generated", 1200, 3456, 32, 4)
)


def load(name: str) -> Graph:
    """Load a dataset by name, or a graph from a path.

    Args:
        name: a name in ``DATASETS``, ``package.module:DATASET``, ``synthetic/5000`` for a synthetic
            graph of that size, a graph file (``.npz``, ``.pt``, ``.graphml``), or a folder with
            ``nodes.csv``, ``edges.csv`` and, if the labels are not in ``nodes.csv``, ``truth.csv``
            with id and class.

    Example:
        >>> load("digits")
        Graph('digits': 1797 nodes, 6309 edges, 64 features, 10 classes, 1797 labels)
    """
    kind, _, nodes = name.partition("/")
    if kind == "synthetic" and nodes.isdecimal():
        return synthetic(int(nodes), name=name)
    path = Path(name)
    if name not in DATASETS and path.exists():
        if (path / "truth.csv").exists():
            return tables.load_folder(path)
        if path.is_dir():
            return read(path / "nodes.csv", path / "edges.csv").graph
        return read(path).graph
    return DATASETS[name].load()


def check_name(name: str) -> None:
    """Raise unless :func:`load` knows a name or finds a path; nothing is read."""
    kind, _, nodes = name.partition("/")
    generated = kind == "synthetic" and nodes.isdecimal()
    if not generated and name not in DATASETS and not Path(name).exists():
        _ = DATASETS[name]


def register_dataset(dataset: Dataset) -> Dataset:
    """Make a dataset available by name: ``load(name)``, ``--dataset name``.

    Example:
        >>> from dcgst import Dataset, load, synthetic
        >>> _ = register_dataset(Dataset("tiny", lambda: synthetic(100)))
        >>> load("tiny").num_nodes
        100
    """
    return DATASETS.register(dataset.name, dataset)


def official_available(name: str) -> bool:
    """Whether the published data are available, not a substitute."""
    return name != "ogbn-arxiv" or arxiv.official_folder() is not None


__all__ = [
    "DATASETS",
    "Dataset",
    "check_name",
    "load",
    "official_available",
    "register_dataset",
    "synthetic",
]
