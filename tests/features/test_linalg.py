"""Factorizations are verified, and another algorithm is used if one fails."""

from __future__ import annotations

import pytest
import torch

from dcgst.errors import NumericalError
from dcgst.features import linalg
from dcgst.features.linalg import eigh, orthonormalize
from tests.methods.helpers import draw


def assert_orthonormal(q: torch.Tensor) -> None:
    torch.testing.assert_close(q.T @ q, torch.eye(q.shape[1]), atol=1e-5, rtol=0)


@pytest.fixture
def matrix() -> torch.Tensor:
    return draw(0, 30, 5)


def projection(q: torch.Tensor) -> torch.Tensor:
    return q @ q.T


def test_the_columns_span_the_same_space(matrix):
    q = orthonormalize(matrix)
    assert_orthonormal(q)
    torch.testing.assert_close(projection(q) @ matrix, matrix, atol=1e-5, rtol=0)


def not_finite(matrix):
    return torch.full_like(matrix, float("nan"))


def not_orthonormal(matrix):
    return torch.ones_like(matrix)


def raising(matrix):
    raise RuntimeError("CUSOLVER_STATUS_EXECUTION_FAILED")


@pytest.mark.parametrize("wrong", [not_finite, not_orthonormal, raising])
@pytest.mark.parametrize("failures", [1, 2])
def test_another_attempt_replaces_a_wrong_result(matrix, monkeypatch, wrong, failures):
    householder, calls = linalg._householder, []

    def sometimes_wrong(given):
        calls.append(given)
        return wrong(given) if len(calls) <= failures else householder(given)

    monkeypatch.setattr(linalg, "_householder", sometimes_wrong)
    q = orthonormalize(matrix)
    assert len(calls) == 2
    assert_orthonormal(q)
    torch.testing.assert_close(projection(q), projection(householder(matrix)), atol=1e-5, rtol=0)


def test_the_cpu_is_the_last_resort(matrix, monkeypatch):
    householder, calls = linalg._householder, []

    def wrong_twice(given):
        calls.append(given)
        return not_finite(given) if len(calls) <= 2 else householder(given)

    monkeypatch.setattr(linalg, "_householder", wrong_twice)
    monkeypatch.setattr(linalg, "_cholesky", not_finite)
    assert_orthonormal(orthonormalize(matrix))
    assert len(calls) == 3


@pytest.mark.parametrize("function", [orthonormalize, eigh])
def test_a_matrix_that_is_not_finite_is_an_error(function):
    with pytest.raises(NumericalError, match="of a matrix that is not finite"):
        function(torch.full((3, 3), float("inf")))


def test_an_error_is_raised_if_nothing_succeeds(matrix, monkeypatch):
    monkeypatch.setattr(linalg, "_householder", not_finite)
    monkeypatch.setattr(linalg, "_cholesky", raising)
    with pytest.raises(NumericalError, match="QR decomposition failed on the cpu and on the CPU"):
        orthonormalize(matrix)


def test_cholesky_qr_is_as_accurate_as_householder_for_nearly_dependent_columns():
    matrix = draw(1, 40, 4)
    matrix[:, 3] = matrix[:, 2] + 1e-4 * matrix[:, 3]
    q = linalg._cholesky(matrix)
    assert_orthonormal(q)
    torch.testing.assert_close(projection(q) @ matrix, matrix, atol=1e-4, rtol=0)


def test_eigenvectors_of_a_symmetric_matrix(monkeypatch):
    square = draw(2, 6, 6)
    symmetric = (square + square.T) / 2
    decompose, calls = linalg._eigh, []

    def wrong_once(given):
        calls.append(given)
        found = decompose(given)
        return found * float("nan") if len(calls) == 1 else found

    monkeypatch.setattr(linalg, "_eigh", wrong_once)
    values, vectors = eigh(symmetric)
    assert len(calls) == 2
    torch.testing.assert_close(vectors @ torch.diag(values) @ vectors.T, symmetric)
    assert (values.diff() >= 0).all()


def test_orthonormal_columns_of_another_space_are_not_accepted(matrix, monkeypatch):
    calls, householder = [], linalg._householder

    def other_space(given):
        calls.append(given)
        return torch.eye(30, 5) if len(calls) == 1 else householder(given)

    monkeypatch.setattr(linalg, "_householder", other_space)
    torch.testing.assert_close(
        projection(orthonormalize(matrix)) @ matrix, matrix, atol=1e-5, rtol=0
    )
    assert len(calls) == 2


def test_missing_memory_is_not_hidden(matrix, monkeypatch):
    def no_memory(given):
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(linalg, "_householder", no_memory)
    with pytest.raises(RuntimeError, match="out of memory"):
        orthonormalize(matrix)
