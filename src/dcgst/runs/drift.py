"""How another graph differs from the one that a model was fitted on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.graph import FeatureMatrix, Graph
from dcgst.io.encoders import FeatureEncoder
from dcgst.io.encoders.cells import Cells

MOST_UNSEEN = 0.05
"""Increase of the share of unseen or missing values that counts as drift."""

SMALLEST_EFFECT = 0.25
"""Difference of means, in standard deviations, that counts as drift."""

NOISE = 3.0
"""A difference of means is drift if it is so many times as large as by chance."""

DEGREE_FACTOR = 2.0
"""Factor between the mean numbers of neighbors that counts as drift."""

SPREAD_FACTOR = 2.0
"""Factor between standard deviations that counts as drift."""

FEW_ROWS = 30
"""With fewer rows, standard deviations are not compared."""

MOST_ROWS = 100_000
"""Rows that are compared, evenly spaced."""


@dataclass(frozen=True)
class Drift:
    """One difference between a graph and that of the fit.

    Attributes:
        what: a column, ``edges``, ``features of neighbors`` or ``representation``.
        text: the difference, for the user.
    """

    what: str
    text: str

    def __str__(self) -> str:
        return f"{self.what}: {self.text}"


def find_drift(
    fitted: Graph,
    new: Graph,
    encoder: FeatureEncoder | None,
    fitted_table: Mapping[str, Sequence[str]],
    new_table: Mapping[str, Sequence[str]],
    rows: slice = slice(None),
) -> list[Drift]:
    """Compare a graph with the one that a model was fitted on.

    Args:
        fitted: the graph of the fit.
        new: the other graph, with the same features.
        encoder: of the columns; None if the graphs have a feature matrix.
        fitted_table: columns of the node table of the fit; may be empty.
        new_table: columns of the other node table; may be empty.
        rows: the nodes of the other graph that are compared.
    """
    found = []
    start = 0
    features = _some_rows(fitted.features), _some_rows(new.features[rows])
    for column in encoder.columns if encoder else ():
        own = slice(start, start + column.width)
        start = own.stop
        if column.name in fitted_table and column.name in new_table:
            cells = [Cells.of(column.name, t[column.name]) for t in (fitted_table, new_table)]
            unseen = [float(column.unknown(part).mean()) for part in cells]
            unseen[0] = max(unseen[0], share_of_single_values(fitted_table[column.name]))
            missing = [part.num_missing / max(1, len(part)) for part in cells]
            sizes = [len(part) for part in cells]
            for (before, now), what in ((unseen, "unseen or unreadable"), (missing, "missing")):
                if now > before + max(MOST_UNSEEN, NOISE * standard_error(before, now, *sizes)):
                    text = f"{now:.0%} of the values are {what}, {before:.0%} in the fit"
                    found.append(Drift(column.name, text))
        parts = features[0][:, own], features[1][:, own]
        effect, spread = mean_difference(*parts), spread_ratio(*parts)
        if effect:
            found.append(Drift(column.name, f"differs by {effect:.1f} standard deviations"))
        if spread is not None:
            found.append(Drift(column.name, f"{spread:.3g} times the spread of the fit"))
    if encoder is None:
        effect = mean_difference(*features)
        if effect:
            found.append(Drift("features", f"differ by {effect:.1f} standard deviations"))
        spread = spread_ratio(*features)
        if spread is not None:
            found.append(Drift("features", f"{spread:.3g} times the spread of the fit"))
    return [*found, *_edge_drift(fitted, new, rows)]


def share_of_single_values(texts: Sequence[str]) -> float:
    """Share of the values of a column that occur once: about as many new values are unseen.

    The estimate of Good and Turing (Good, Biometrika 1953).

    Example:
        >>> share_of_single_values(["a", "a", "b", ""])
        0.25
    """
    counts = Counter(text for text in texts if text)
    return sum(count == 1 for count in counts.values()) / max(1, len(texts))


def standard_error(left: float, right: float, count: int, other: int) -> float:
    """Of the difference between two shares of ``count`` and of ``other`` rows."""
    share = (left * count + right * other) / max(1, count + other)
    return float((share * (1 - share) * (1 / max(1, count) + 1 / max(1, other))) ** 0.5)


def _edge_drift(fitted: Graph, new: Graph, rows: slice) -> list[Drift]:
    degrees = fitted.degrees, new.degrees[rows]
    before, now = (float(own.mean()) for own in degrees)
    error = float(degrees[0].var()) * sum(1 / max(1, len(own)) for own in degrees)
    by_chance = abs(now - before) <= NOISE * error**0.5
    found = []
    if max(before, now) > DEGREE_FACTOR * min(before, now) and not by_chance:
        text = f"{now:.1f} neighbors on average, {before:.1f} in the fit"
        found.append(Drift("edges", text))
    effect = mean_difference(neighbor_means(fitted), neighbor_means(new, rows))
    if effect:
        text = f"differ by {effect:.1f} standard deviations"
        found.append(Drift("features of neighbors", text))
    return found


def representation_drift(fitted: NDArray[np.float32], new: NDArray[np.float32]) -> list[Drift]:
    """Compare node embeddings of a stored network: what the model itself sees of two graphs.

    Args:
        fitted: ``(n, d)`` on the graph of the fit.
        new: ``(m, d)`` on the other graph.
    """
    effect = mean_difference(fitted, new)
    text = f"the embeddings of the network differ by {effect:.1f} standard deviations"
    return [Drift("representation", text)] if effect else []


def neighbor_means(graph: Graph, rows: slice = slice(None)) -> Any:
    """``(m, d)`` means of the features over the neighbors of some of the nodes in a range."""
    edges = _some_rows(graph.adjacency[rows])
    total = np.asarray(edges.sum(axis=1)).reshape(-1)
    factor = sp.diags_array(1 / np.where(total > 0, total, 1), dtype=np.float32)
    return (factor @ edges) @ graph.features


def mean_difference(fitted: FeatureMatrix, new: FeatureMatrix) -> float:
    """Distance between two means, in standard deviations; zero if it may be chance.

    Args:
        fitted: ``(n, d)`` features.
        new: ``(m, d)`` features.
    """
    parts = [_some_rows(matrix) for matrix in (fitted, new)]
    if min(part.shape[0] for part in parts) < 2:
        return 0.0
    means = [_mean(part) for part in parts]
    variance = float(_squares(parts[0], means[0]).mean())
    distance = float(np.linalg.norm(means[0] - means[1]))
    # The variance of few new rows may be small by chance, that of the fit is known.
    chance = (variance * sum(1 / part.shape[0] for part in parts)) ** 0.5
    spread = variance**0.5
    if spread == 0:
        return distance if distance > 1e-6 else 0.0
    effect = distance / spread
    return effect if distance > NOISE * chance and effect > SMALLEST_EFFECT else 0.0


def spread_ratio(fitted: FeatureMatrix, new: FeatureMatrix) -> float | None:
    """Standard deviation of new features divided by that of the fit; None if about the same.

    Arguments as in :func:`mean_difference`.
    """
    parts = [_some_rows(matrix) for matrix in (fitted, new)]
    if min(part.shape[0] for part in parts) < FEW_ROWS:
        return None
    before, now = (_squares(part, _mean(part)) for part in parts)
    variance, new_variance = float(before.mean()), float(now.mean())
    if variance <= 1e-12:
        return None
    chance = float(before.std()) * sum(1 / len(own) for own in (before, now)) ** 0.5
    ratio = round((new_variance / variance) ** 0.5, 6)
    differs = ratio > SPREAD_FACTOR or ratio * SPREAD_FACTOR < 1
    return ratio if differs and abs(new_variance - variance) > NOISE * chance else None


def _some_rows(matrix: FeatureMatrix) -> Any:
    step = -(-matrix.shape[0] // MOST_ROWS) or 1
    return matrix[::step]


def _mean(matrix: Any) -> NDArray[np.float64]:
    """``(d,)`` in double precision."""
    return np.asarray(matrix.astype(np.float64).mean(axis=0)).reshape(-1)


def _squares(matrix: Any, mean: NDArray[Any]) -> NDArray[np.float64]:
    """``(m,)`` squared distance of each row from the mean."""
    if not sp.issparse(matrix):
        dense: NDArray[np.float64] = np.square(np.asarray(matrix, np.float64) - mean).sum(axis=1)
        return dense
    wide = matrix.astype(np.float64)
    own = np.asarray(wide.multiply(wide).sum(axis=1)).reshape(-1)
    sparse: NDArray[np.float64] = np.maximum(own - 2 * (wide @ mean) + np.square(mean).sum(), 0.0)
    return sparse
