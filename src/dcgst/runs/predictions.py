"""What is told of every node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcgst.methods.stages import NEVER

GIVEN_LABEL, PSEUDO_LABEL, PREDICTED = "given", "pseudo", "predicted"
"""Where a node's class comes from: the user, a pseudo-label that was trained on, the model."""

MOST_COLUMNS = 50
"""Classes up to which a table of predictions has a column for the probability of each."""


def sources_of(given: NDArray[np.bool_], stage: NDArray[np.int64]) -> NDArray[np.str_]:
    """``(n,)`` where each node's class comes from."""
    return np.where(given, GIVEN_LABEL, np.where(stage > 0, PSEUDO_LABEL, PREDICTED))


def prediction_rows(
    ids: NDArray[Any],
    names: Sequence[str],
    proba: NDArray[np.float32],
    labels: NDArray[np.int64],
    stage: NDArray[np.int64],
    given: NDArray[np.bool_],
    agreement: NDArray[np.float32] | None = None,
) -> list[dict[str, Any]]:
    """One record per node: its class, how sure that is, and where it comes from."""
    likeliest = -np.partition(-proba, 1, axis=1)[:, :2]
    columns: dict[str, list[Any]] = {
        "id": ids.tolist(),
        "class": [names[code] for code in labels],
        "probability": np.round(proba[np.arange(len(labels)), labels].astype(float), 4).tolist(),
        "margin": np.round((likeliest[:, 0] - likeliest[:, 1]).astype(float), 4).tolist(),
        "source": sources_of(given, stage).tolist(),
        "stage": ["" if number == NEVER else number for number in stage.tolist()],
    }
    if agreement is not None:
        columns["agreement"] = np.round(agreement.astype(float), 3).tolist()
    if len(names) <= MOST_COLUMNS:
        for code, name in enumerate(names):
            columns[f"p({name})"] = np.round(proba[:, code].astype(float), 4).tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
