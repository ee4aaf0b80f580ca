"""Conversion of run folders of format 1 (version 0.1.0)."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcgst.graph import UNKNOWN, Graph
from dcgst.methods.core.trace import CANDIDATE, EDGE_PROBABILITIES
from dcgst.methods.legacy import upgrade_settings
from dcgst.runs.format.layout import OLD_CANDIDATE_TABLE

BACKBONES = {"gcn": "gcn", "gat": "gat", "graphsage": "sage", "appnp": "appnp", "mlp": "mlp"}
"""Names of backbone classes in lower case, and their current names."""

ENCODER_KEYS = {"spread": "std", "rarity": "idf"}
"""Renamed keys of the feature encoder."""


def upgrade_info(info: Mapping[str, Any]) -> dict[str, Any]:
    """Convert ``run.json``."""
    models = [
        {
            "backbone": BACKBONES[model["backbone"]],
            "replicas": model["replicas"],
            "num_features": model["features"],
            "hidden": model["hidden"],
            "num_classes": model["classes"],
            "dropout": model["dropout"],
            "activation": model["activation"],
        }
        for model in info["models"]
    ]
    encoder = info["recipe"] and [
        {ENCODER_KEYS.get(key, key): value for key, value in column.items()}
        for column in info["recipe"]
    ]
    settings = upgrade_settings(info["method"], info["settings"])
    calibration = dict(info["calibration"])
    calibration["description"] = calibration.pop("words")
    upgraded = {
        **info,
        "models": models,
        "settings": settings,
        "encoder": encoder,
        "calibration": calibration,
        "node_columns": [],
    }
    del upgraded["recipe"]
    return upgraded


def upgrade_arrays(
    arrays: Mapping[str, NDArray[Any]], folder: Path, graph: Graph
) -> dict[str, NDArray[Any]]:
    """Rename arrays of ``graph.npz``, and add the candidates from its CSV file."""
    table = _read_candidates(folder / OLD_CANDIDATE_TABLE, graph)
    return {
        "labeled_stage": arrays["stage"],
        "test": arrays["pool"] & (graph.labels != UNKNOWN),
        **{f"candidates_{name}": table[name] for name in CANDIDATE.names or ()},
        **{
            f"edge_probabilities_{name}": np.zeros(0, EDGE_PROBABILITIES)[name]
            for name in EDGE_PROBABILITIES.names or ()
        },
    }


def _read_candidates(path: Path, graph: Graph) -> NDArray[np.void]:
    code_of = {name: code for code, name in enumerate(graph.class_names)}
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    table = np.zeros(len(rows), dtype=CANDIDATE)
    table["truth"] = UNKNOWN
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        if name == "node":
            table[name] = [graph.node_of[value] for value in values]
        elif name == "label":
            table[name] = [code_of[value] for value in values]
        elif name == "chosen":
            table["selected"] = [value == "True" for value in values]
        else:
            column = "selection_score" if name == "q" else name
            table[column] = [float(value) if value else np.nan for value in values]
    table["rank"] += 1  # format 1 counts from 0
    return table
