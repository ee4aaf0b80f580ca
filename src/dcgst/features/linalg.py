"""Matrix factorizations whose results are verified.

On a GPU shared by several processes, a factorization of a finite matrix sometimes returns values
that are not finite, or raises. Both functions check the result and fall back to another algorithm,
then to the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from dcgst.errors import NumericalError
from dcgst.memory import is_out_of_memory

_TOLERANCE = 1e-3
"""Largest deviation of QᵀQ from the identity."""


def orthonormalize(matrix: Tensor) -> Tensor:
    """``(n, k)`` orthonormal columns that span the columns of an ``(n, k)`` matrix, k ≤ n.

    Raises:
        NumericalError: if the matrix is not finite, or no algorithm succeeds.

    Example:
        >>> q = orthonormalize(torch.tensor([[2.0, 1.0], [0.0, 1.0], [0.0, 1.0]]))
        >>> torch.allclose(q.T @ q, torch.eye(2))
        True
    """
    attempts: list[Callable[[], Tensor]] = [
        lambda: _householder(matrix),
        lambda: _householder(matrix),
        lambda: _cholesky(matrix),
        lambda: _householder(matrix.cpu()).to(matrix.device),
    ]
    return _first_valid(
        "QR decomposition",
        matrix,
        attempts,
        lambda q: _is_orthonormal(q) and _is_small(matrix - q @ (q.T @ matrix), matrix),
    )


def eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues in ascending order and eigenvectors of a symmetric matrix.

    Raises:
        NumericalError: if the matrix is not finite, or no algorithm succeeds.

    Example:
        >>> eigh(torch.diag(torch.tensor([3.0, 1.0])))[0]
        tensor([1., 3.])
    """
    attempts: list[Callable[[], Tensor]] = [
        lambda: _eigh(matrix),
        lambda: _eigh(matrix),
        lambda: _eigh(matrix.cpu()).to(matrix.device),
    ]
    joined = _first_valid(
        "eigenvalue decomposition",
        matrix,
        attempts,
        lambda found: (
            _is_orthonormal(found[1:].T)
            and _is_small(matrix @ found[1:].T - found[1:].T * found[0], matrix)
        ),
    )
    return joined[0], joined[1:].T


def _first_valid(
    name: str,
    matrix: Tensor,
    attempts: Iterable[Callable[[], Tensor]],
    is_valid: Callable[[Tensor], bool],
) -> Tensor:
    if not bool(matrix.isfinite().all()):
        raise NumericalError(f"{name} of a matrix that is not finite")
    for attempt in attempts:
        try:
            found = attempt()
        except RuntimeError as error:  # torch.linalg.LinAlgError, or one of the GPU library
            if is_out_of_memory(error):
                raise
            continue
        if bool(found.isfinite().all()) and is_valid(found):
            return found
    raise NumericalError(f"{name} failed on the {matrix.device.type} and on the CPU; try again")


def _householder(matrix: Tensor) -> Tensor:
    q: Tensor = torch.linalg.qr(matrix).Q
    return q


def _cholesky(matrix: Tensor) -> Tensor:
    """CholeskyQR2 in double precision: uses matrix products and triangular solves only."""
    q = matrix.double()
    for _ in range(2):
        gram = q.T @ q
        ridge = 1e-14 * gram.diagonal().mean().clamp_min(torch.finfo(q.dtype).tiny)
        gram.diagonal().add_(ridge)
        factor = torch.linalg.cholesky(gram)
        q = torch.linalg.solve_triangular(factor.T, q, upper=True, left=False)
    return q.to(matrix.dtype)


def _eigh(matrix: Tensor) -> Tensor:
    """``(1 + k, k)``: the eigenvalues above the transposed eigenvectors."""
    values, vectors = torch.linalg.eigh(matrix)
    return torch.cat([values[None], vectors.T])


def _is_small(residual: Tensor, matrix: Tensor) -> bool:
    return bool(residual.norm() <= _TOLERANCE * matrix.norm())


def _is_orthonormal(q: Tensor) -> bool:
    gram = q.T @ q
    gram.diagonal().sub_(1)
    return bool((gram.abs() < _TOLERANCE).all())
