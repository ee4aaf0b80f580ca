"""Kernel mean matching (Huang et al., 2006): weights that make one sample look like another."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Vector = NDArray[np.float64]

GAMMAS = (1.0, 0.1, 0.001)
"""Widths of the kernels that are averaged."""


class Gram:
    r"""Kernel values :math:`\exp(-\gamma\lVert x_i - y_j\rVert^2)` of sparse rows, averaged over γ.

    Where two rows share no column, the value is the product :math:`u_i v_j` of
    :math:`u_i = \exp(-\gamma\lVert x_i\rVert^2)` and likewise v. So the matrix is of rank one plus
    what the pairs with common columns add, and only those are held: nothing is lost.

    Args:
        left: ``(m, n)`` rows.
        right: ``(k, n)`` rows.
        gammas: widths.
    """

    def __init__(
        self, left: sp.csr_array, right: sp.csr_array, gammas: tuple[float, ...] = GAMMAS
    ) -> None:
        inner = sp.csr_array(left @ right.T)
        lengths = [np.asarray((rows * rows).sum(axis=1)).reshape(-1) for rows in (left, right)]
        self.parts = []
        for gamma in gammas:
            u, v = (np.exp(-gamma * length) for length in lengths)
            extra = inner.copy()
            extra.data = np.expm1(2 * gamma * inner.data)
            self.parts.append((u, v, extra))

    def __matmul__(self, weights: Vector) -> Vector:
        """``(m,)`` the product with weights ``(k,)``."""
        total = 0.0
        for u, v, extra in self.parts:
            scaled = v * weights
            total = total + u * (scaled.sum() + extra @ scaled)
        return np.asarray(total / len(self.parts))


def kmm_weights(
    source: sp.csr_array,
    target: sp.csr_array,
    groups: NDArray[np.int64],
    *,
    least: float = 0.2,
    steps: int = 500,
) -> Vector:
    r"""``(m,)`` weights under which the source's mean is nearest to the target's in kernel space.

    .. math:: \min_w \tfrac12 w^\top H w - \tfrac{m}{k} \mathbf 1^\top K^\top w \quad
              w_i \ge least, \; \textstyle\sum_{i \in g} w_i = |g|

    by accelerated projected gradient.

    Args:
        source: ``(m, n)`` sparse rows.
        target: ``(k, n)`` sparse rows.
        groups: ``(m,)`` group of each source row; within each the mean weight is one.
        least: the smallest weight.
        steps: of the descent; it stops earlier when nothing moves.
    """
    count = source.shape[0]
    gram = Gram(source, source)
    pull = count / max(1, target.shape[0]) * (Gram(source, target) @ np.ones(target.shape[0]))
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    step = 1 / _largest_eigenvalue(gram, count)
    weights = looked = np.ones(count)
    momentum = 1.0
    for _ in range(steps):
        moved = looked - step * (gram @ looked - pull)
        new = np.empty(count)
        for group in members:
            new[group] = least + _onto_simplex(moved[group] - least, len(group) * (1 - least))
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        looked = new + (momentum - 1) / faster * (new - weights)
        change = np.abs(new - weights).max()
        weights, momentum = new, faster
        if change < 1e-7:
            break
    return weights


def _onto_simplex(point: Vector, total: float) -> Vector:
    """The nearest point whose parts are not negative and sum to ``total``."""
    ordered = np.sort(point)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(point) + 1)
    shift = excess[np.flatnonzero(ordered > excess)[-1]] if total > 0 else ordered[0]
    nearest: Vector = np.maximum(point - shift, 0)
    return nearest


def _largest_eigenvalue(gram: Gram, count: int) -> float:
    """An upper bound that is nearly met: kernel values are not negative, so row sums bound it."""
    return float((gram @ np.ones(count)).max())
