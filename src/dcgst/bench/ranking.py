"""Compare methods by their records: best method, mean ranks, significance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata, wilcoxon

from dcgst.bench.records import StoredRecord
from dcgst.evaluate.metrics import holm

Column = Sequence[StoredRecord | None]
"""Records of several methods in the same setting; None where a record is missing."""

BETTER, WORSE = "°", "†"
"""Marks of baselines that DC-GST is significantly better or worse than."""

SIGNIFICANCE_LEVEL = 0.05


def mean_accuracy(record: StoredRecord | None) -> float:
    """Return the mean accuracy of a record; minus infinity if the record is missing."""
    return float("-inf") if record is None else float(record["mean"])


def best_row(column: Column) -> int | None:
    """Return the index of the record with the highest accuracy, or None without records."""
    rows = [row for row, record in enumerate(column) if record is not None]
    return max(rows, key=lambda row: mean_accuracy(column[row]), default=None)


def adjusted_p_values(reference: StoredRecord, others: Sequence[StoredRecord]) -> list[float]:
    """Test the reference against each other record, with Holm's correction."""
    return holm([_p_value(reference, other) for other in others])


def _p_value(first: StoredRecord, second: StoredRecord) -> float:
    """Two-sided Wilcoxon signed-rank test over the runs of two records."""
    differences = np.subtract(first["accuracy"], second["accuracy"])
    if differences.size <= 1 or not differences.any():
        return 1.0
    return float(wilcoxon(differences).pvalue)


def significance_marks(column: Column) -> dict[int, str]:
    """Mark the rows that differ significantly from the last one, which is DC-GST."""
    *baselines, ours = column
    present = [(row, record) for row, record in enumerate(baselines) if record is not None]
    if ours is None or not present:
        return {}
    p_values = adjusted_p_values(ours, [record for _, record in present])
    return {
        row: BETTER if ours["mean"] > record["mean"] else WORSE
        for (row, record), p in zip(present, p_values, strict=True)
        if p < SIGNIFICANCE_LEVEL
    }


def mean_ranks(grid: Sequence[Column]) -> list[float] | None:
    """Average the rank of each row over the columns without missing records.

    Args:
        grid: One row of records per method.

    Returns:
        One mean rank per row, where 1 is best; None if every column has a missing record.
    """
    means = np.array([[mean_accuracy(record) for record in row] for row in grid])
    complete = np.isfinite(means).all(axis=0)
    if not complete.any():
        return None
    ranks = np.stack([rankdata(-column) for column in means[:, complete].T])
    return [float(rank) for rank in ranks.mean(axis=0)]
