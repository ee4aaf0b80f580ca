"""Predictions as records: one per node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcgst.methods.core.result import Result
from dcgst.methods.core.trace import NOT_LABELED

GIVEN, PSEUDO, PREDICTED = "given", "pseudo", "predicted"
"""Sources of a node's class: a given label, a pseudo-label, or neither."""

MAX_CLASS_COLUMNS = 50
"""Number of classes up to which predictions have one probability column per class."""


def sources_of(result: Result) -> NDArray[np.str_]:
    """``(n,)`` source of each node's class."""
    pseudo = np.where(result.labeled_stage > 0, PSEUDO, PREDICTED)
    return np.where(result.given >= 0, GIVEN, pseudo)


def prediction_rows(
    ids: NDArray[Any], names: Sequence[str], result: Result, *, agreement: bool = True
) -> list[dict[str, Any]]:
    """One record per node: class, probability, margin, source, stage.

    Args:
        ids: ``(n,)`` node ids.
        names: class names.
        result: the predictions.
        agreement: whether to include the agreement of the replicas.
    """
    proba, labels = result.proba, result.labels
    top = -np.partition(-proba, 1, axis=1)[:, :2]
    columns: dict[str, list[Any]] = {
        "id": ids.tolist(),
        "class": [names[code] for code in labels],
        "probability": _rounded(proba[np.arange(len(labels)), labels]),
        "margin": _rounded(top[:, 0] - top[:, 1]),
        "source": sources_of(result).tolist(),
        "stage": [
            "" if number == NOT_LABELED else number for number in result.labeled_stage.tolist()
        ],
    }
    if agreement:
        columns["agreement"] = _rounded(result.agreement, 3)
    if len(names) <= MAX_CLASS_COLUMNS:
        for code, name in enumerate(names):
            columns[f"p({name})"] = _rounded(proba[:, code])
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _rounded(values: NDArray[np.float32], digits: int = 4) -> list[float]:
    rounded: list[float] = np.round(values.astype(float), digits).tolist()
    return rounded
