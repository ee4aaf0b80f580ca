"""Kernel mean matching (Huang et al., NeurIPS 2006): sample weights under covariate shift."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Vector = NDArray[np.float64]

GAMMAS = (1.0, 0.1, 0.001)
"""Kernel widths γ to average over."""


class Gram:
    r"""Kernel values :math:`\exp(-\gamma\lVert x_i - y_j\rVert^2)` of sparse rows, averaged over γ.

    If two rows share no column, the value is :math:`u_i v_j` with
    :math:`u_i = \exp(-\gamma\lVert x_i\rVert^2)` and likewise v. So the matrix is, for each γ, a
    rank-one matrix plus a sparse correction for pairs with common columns. This is exact.

    Args:
        left: ``(m, n)`` rows.
        right: ``(k, n)`` rows.
    """

    def __init__(self, left: sp.csr_array, right: sp.csr_array) -> None:
        inner = sp.coo_array(left @ right.T)
        squares = [np.asarray((rows * rows).sum(axis=1)).ravel() for rows in (left, right)]
        self.u, self.v = (np.exp(-np.outer(GAMMAS, square)) for square in squares)
        extra = np.zeros_like(inner.data)
        for gamma, u, v in zip(GAMMAS, self.u, self.v, strict=True):
            extra += u[inner.row] * v[inner.col] * np.expm1(2 * gamma * inner.data)
        self.extra = sp.csr_array((extra, (inner.row, inner.col)), shape=inner.shape)

    def __matmul__(self, weights: Vector) -> Vector:
        """``(m,)`` the product with weights ``(k,)``."""
        product: Vector = (self.u.T @ (self.v @ weights) + self.extra @ weights) / len(GAMMAS)
        return product


def kmm_weights(
    source: sp.csr_array,
    target: sp.csr_array,
    groups: NDArray[np.int64],
    *,
    least: float = 0.2,
    steps: int = 5000,
) -> Vector:
    r"""``(m,)`` weights that match the means of source and target in kernel space.

    .. math:: \min_w \tfrac12 w^\top H w - \tfrac{m}{k} \mathbf 1^\top K^\top w \quad
              w_i \ge least, \; \textstyle\sum_{i \in g} w_i = |g|

    Computed by accelerated projected gradient descent with restarts.

    Args:
        source: ``(m, n)`` sparse rows.
        target: ``(k, n)`` sparse rows.
        groups: ``(m,)`` group of each source row; the mean weight of each group is one.
        least: the smallest weight.
        steps: maximum number of steps; it stops when the weights no longer change.
    """
    count = source.shape[0]
    gram = Gram(source, source)
    attraction = count / max(1, target.shape[0]) * (Gram(source, target) @ np.ones(target.shape[0]))
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    step = 1 / _largest_curvature(gram, members, count)
    weights = extrapolated = np.ones(count)
    momentum = 1.0
    for _ in range(steps):
        moved = extrapolated - step * (gram @ extrapolated - attraction)
        new = np.empty(count)
        for group in members:
            new[group] = least + _onto_simplex(moved[group] - least, len(group) * (1 - least))
        if (extrapolated - new) @ (new - weights) > 0:
            momentum = 1.0
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        change = new - weights
        extrapolated, weights = new + (momentum - 1) / faster * change, new
        momentum = faster
        if np.abs(change).max() < 1e-9:
            break
    return weights


def _onto_simplex(point: Vector, total: float) -> Vector:
    """The nearest point with nonnegative coordinates that sum to ``total``."""
    if total <= 0:
        return np.zeros_like(point)
    ordered = np.sort(point)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(point) + 1)
    nearest: Vector = np.maximum(point - excess[np.flatnonzero(ordered > excess)[-1]], 0)
    return nearest


def _largest_curvature(gram: Gram, members: list[NDArray[np.int64]], count: int) -> float:
    """Largest curvature along directions that keep the sum of every group.

    It is far below the largest eigenvalue of the kernel matrix, which allows much longer steps.
    Computed by power iteration, with a safety margin of 1.3.
    """

    def without_sums(vector: Vector) -> Vector:
        moved = vector.copy()
        for group in members:
            moved[group] -= moved[group].mean()
        return moved

    vector = without_sums(np.cos(np.arange(count, dtype=np.float64) ** 2))
    for _ in range(50):
        length = np.linalg.norm(vector)
        if length < 1e-9:  # no such direction, for example if every group has one member
            return 1.0
        vector = without_sums(gram @ (vector / length))
    return 1.3 * float(np.linalg.norm(vector))
