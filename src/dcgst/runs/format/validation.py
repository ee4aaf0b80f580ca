"""Checks of what a run folder contains: digests, entries of ``run.json``, arrays."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import InputError, UnregisteredError
from dcgst.evaluate.calibration import Calibration
from dcgst.graph import Graph
from dcgst.io import Columns, FeatureEncoder
from dcgst.memory import forget
from dcgst.methods import METHODS
from dcgst.methods.core.trace import NOT_LABELED
from dcgst.methods.relations import Relation
from dcgst.numerics.arrays import row_ranges
from dcgst.runs.columns import ColumnUse
from dcgst.runs.format.layout import (
    ALWAYS,
    CANDIDATE_TABLE,
    METRICS,
    MODELS,
    NODE_TABLE,
    OF_STORE,
    OF_TABLES,
    PREDICTIONS,
    PREDICTIONS_PARQUET,
    PREDICTORS,
    RUN,
    digest_of_file,
    seal,
)

DERIVED = (PREDICTIONS, PREDICTIONS_PARQUET, CANDIDATE_TABLE, METRICS)
"""Files for people, which are never read back."""

REQUIRED: dict[str, type] = {
    "method": str,
    "settings": dict,
    "models": list,
    "columns": dict,
    "spectral": bool,
    "calibration": dict,
    "notes": list,
    "node_columns": list,
    "stop_reason": str,
}
"""Required keys of ``run.json`` and their types."""


def verify_digests(folder: Path, info: Mapping[str, Any]) -> None:
    """Compare every file with its digest.

    A changed file is an error that names it, or a warning if the run does not depend on the file.
    """
    files = info.get("files")
    if info != seal(info) or not isinstance(files, dict):
        raise InputError(f"{folder / RUN} was changed or damaged; fit again with --overwrite")
    expected = {*ALWAYS, *(OF_STORE if info.get("store") else OF_TABLES)}
    optional = ((MODELS, "models"), (PREDICTORS, "predictors"), (NODE_TABLE, "node_columns"))
    for name, key in optional:
        if not info.get(key):
            expected.discard(name)
    if set(files) != expected:
        raise InputError(f"{folder / RUN} lists other files than a run has; fit again")
    for name, digest in files.items():
        path = folder / name
        try:
            found = digest_of_file(path)
        except InputError as error:
            raise InputError(f"{error}; restore it, or fit again with --overwrite") from error
        if found == digest:
            continue
        if name in DERIVED:
            warnings.warn(
                f"{path} was changed or damaged since the fit; the run itself is intact",
                stacklevel=4,  # the caller of open_run
            )
        else:
            raise InputError(
                f"{path} was changed or damaged since the fit; restore it, or fit again with "
                "--overwrite"
            )


def check_info(info: Mapping[str, Any]) -> None:
    """Raise ``TypeError`` or ``ValueError`` if an entry of ``run.json`` is not as it must be."""
    for key, kind in REQUIRED.items():
        if not isinstance(info[key], kind):
            raise TypeError(f"{key} is {type(info[key]).__name__}")
    calibration = Calibration(**info["calibration"])
    _check_number("calibration.temperature", calibration.temperature, above=0)
    if "seconds" in info:
        _check_number("seconds", info["seconds"])
    columns = Columns.from_json(info["columns"])
    for name in ("id", "label", "source", "target", "weight", "edge_type", "edge_time"):
        _check_text(f"columns.{name}", getattr(columns, name), optional=True)
    for relation in info.get("relations", []):
        _check_number("weight of a relation", Relation(**relation).weight, above=-1)
    for column in info.get("columns_used", []):
        _check_number("share of a column", ColumnUse(**column).explained, above=-1)
    for name in ("features", "ignore"):
        names = getattr(columns, name)
        for column in () if names is None else _sequence(f"columns.{name}", names):
            _check_text(f"columns.{name}", column)
    for encoder in FeatureEncoder.from_json(info["encoder"] or []).columns:
        _check_text("name of an encoder", encoder.name)
        encoder.check()
    if info["method"] in METHODS:  # the backbone may be of another package: it is not resolved here
        settings = {key: value for key, value in info["settings"].items() if key != "backbone"}
        with suppress(UnregisteredError):  # code of another package is not imported here
            METHODS[info["method"]].from_stored(settings).check_values()


def check_arrays(arrays: Mapping[str, NDArray[Any]], graph: Graph) -> None:
    """Raise ``ValueError`` unless all arrays have the shape, type and range of their meaning."""
    n, classes = graph.num_nodes, graph.num_classes
    expected = {
        "proba": ("f", (n, classes)),
        "labeled_stage": ("i", (n,)),
        "agreement": ("f", (n,)),
        **dict.fromkeys(("train", "val", "pool", "test"), ("b", (n,))),
    }
    for name, (kind, shape) in expected.items():
        array = arrays[name]
        if array.shape != shape or array.dtype.kind != kind:
            raise ValueError(f"{name} is {array.dtype} {array.shape}, expected {shape}")
    proba, agreement = arrays["proba"], arrays["agreement"]
    for nodes in row_ranges(n):
        own = proba[nodes]
        if not ((own >= 0).all() and np.allclose(own.sum(axis=1), 1, rtol=0, atol=1e-2)):
            raise ValueError("proba has values that are not probabilities")
    forget(proba)
    if not ((agreement >= 0) & (agreement <= 1)).all():
        raise ValueError("agreement has values outside 0 … 1")
    if (arrays["labeled_stage"] < NOT_LABELED).any():
        raise ValueError("labeled_stage has negative stages")


def _check_number(name: str, value: Any, above: float = -1) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is {type(value).__name__}")
    if not (math.isfinite(value) and value > above):
        raise ValueError(f"{name} is {value}")


def _check_text(name: str, value: Any, optional: bool = False) -> None:
    if not (isinstance(value, str) or (optional and value is None)):
        raise TypeError(f"{name} is {type(value).__name__}")


def _sequence(name: str, values: Any) -> Sequence[Any]:
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{name} is {type(values).__name__}")
    return values
