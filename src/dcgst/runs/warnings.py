"""What a user should know about the predictions of a run before using them."""

from __future__ import annotations

import numpy as np

from dcgst.graph import UNKNOWN
from dcgst.numerics.arrays import mean_rows
from dcgst.runs.run import Run

LARGE_DIFFERENCE = 0.15
"""Half the sum of differences between class shares from which a warning is given."""

LITTLE_CONFIDENCE = 0.1
"""Mean confidence above the largest class share, as a part of what is possible, from which the
classes count as learnable."""


def prediction_warnings(run: Run) -> list[str]:
    """Warnings about class shares and about classes that cannot be distinguished."""
    pool = run.split.pool[0]
    if not pool.any():
        return []
    predicted = mean_rows(run.result.proba, pool)
    warnings = []
    largest = predicted.max()
    if run.result.confidence[pool].mean() - largest < LITTLE_CONFIDENCE * (1 - largest):
        warnings.append(
            "the graph and the features say little about these classes: the probabilities are "
            "close to the class shares. More labels, other features or other edges may help"
        )
    train = run.graph.labels[run.split.train[0]]
    labeled = np.bincount(train[train != UNKNOWN], minlength=len(predicted)) / train.size
    if run.info["settings"].get("prior") is None and not run.audited:
        difference = np.abs(predicted - labeled)
        if difference.sum() / 2 > LARGE_DIFFERENCE:
            # Of equal differences, those of classes that are predicted more often come first.
            most = np.lexsort((labeled - predicted, -np.round(difference, 6)))[:3]
            names = run.graph.class_names
            parts = [f"{names[c]} {predicted[c]:.0%}, not {labeled[c]:.0%}" for c in most]
            warnings.append(
                f"the predicted class shares differ from those of your labels: {'; '.join(parts)}. "
                f"If you know the true shares, give them: --prior {names[most[0]]}=SHARE"
            )
    return warnings
