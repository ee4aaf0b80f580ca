"""Products of sparse matrices with dense ones, for all replicas together, with gradients."""

from __future__ import annotations

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from dcgst.numerics.sparse import Pattern, SparseMatrix

for _message in ("Sparse CSR tensor support is in beta", "Sparse invariant checks are implicitly"):
    warnings.filterwarnings("ignore", message=_message)

_BLOCK = 1 << 24
"""Maximum numbers in a gathered block while entry gradients are computed."""

NARROW = 16
"""Columns below which a product is computed transposed."""


def spmm(matrix: SparseMatrix, dense: Tensor) -> Tensor:
    """``matrix @ dense`` for ``(n, d)`` or, for each replica, ``(R, n, d)``.

    Differentiable in ``dense`` and in the values of the matrix.
    """
    if dense.dim() == 2 and matrix.values.dim() == 1:
        return spmm(matrix, dense.unsqueeze(0)).squeeze(0)
    if dense.dim() == 2:
        dense = dense.expand(matrix.values.shape[0], -1, -1)
    product: Tensor = _SpMM.apply(dense, matrix.values, matrix)  # type: ignore[no-untyped-call]
    return product


def narrow_product(left: Tensor, right: Tensor) -> Tensor:
    """``left @ right`` for ``(n, d)`` and ``(d, k)``, fast also if k is small.

    On a CPU, a product with few rows is up to four times as fast as one with few columns.
    """
    if left.is_cuda or right.shape[1] >= NARROW:
        return torch.mm(left, right)
    return torch.mm(right.T, left.T).T


class _SpMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, dense: Tensor, values: Tensor, matrix: SparseMatrix) -> Tensor:
        ctx.matrix = matrix  # type: ignore[attr-defined]
        # Saving the values makes autograd detect changes before the backward pass.
        ctx.save_for_backward(dense if values.requires_grad else None, values)  # type: ignore[attr-defined]
        return _multiply(matrix.pattern, values, dense)

    @staticmethod
    @once_differentiable
    def backward(ctx: object, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        matrix: SparseMatrix = ctx.matrix  # type: ignore[attr-defined]
        dense, _ = ctx.saved_tensors  # type: ignore[attr-defined]
        need_dense, need_values, _ = ctx.needs_input_grad  # type: ignore[attr-defined]
        to_dense = to_values = None
        if need_dense:
            transposed = matrix.transposed
            to_dense = _multiply(transposed.pattern, transposed.values, grad)
        if need_values:
            to_values = entry_products(matrix.pattern, grad, dense)
            if matrix.values.dim() == 1:
                to_values = to_values.sum(0)
        return to_dense, to_values, None


def entry_products(pattern: Pattern, left: Tensor, right: Tensor) -> Tensor:
    """Inner product of row i of ``left`` and row j of ``right`` for each entry (i, j): ``(R, E)``.

    This is the gradient of a sparse product with respect to its entries, computed in blocks.
    """
    replicas, _, width = left.shape
    block = max(1, _BLOCK // (replicas * width))
    parts = []
    for start in range(0, max(1, pattern.num_entries), block):
        rows = pattern.rows[start : start + block]
        cols = pattern.indices[start : start + block]
        ends = left.index_select(1, rows), right.index_select(1, cols)
        parts.append((ends[0] * ends[1]).sum(-1))
    return torch.cat(parts, dim=-1)


def _multiply(pattern: Pattern, values: Tensor, dense: Tensor) -> Tensor:
    replicas, n, width = dense.shape
    if values.dim() == 2:  # own values for each replica: one block-diagonal product
        blocks = pattern.block_diagonal(replicas)
        product = _csr_product(blocks, values.reshape(-1), dense.reshape(replicas * n, width))
        return product.view(replicas, pattern.num_rows, width)
    if replicas == 1:
        return _csr_product(pattern, values, dense[0]).unsqueeze(0)
    wide = dense.transpose(0, 1).reshape(n, replicas * width)
    product = _csr_product(pattern, values, wide)
    return product.view(pattern.num_rows, replicas, width).transpose(0, 1)


def _csr_product(pattern: Pattern, values: Tensor, dense: Tensor) -> Tensor:
    if not dense.is_cuda:
        # A weighted sum of rows for each row of the matrix. Its kernel prefetches the rows, which
        # makes it two to eight times as fast as the sparse products.
        return F.embedding_bag(
            pattern.indices,
            dense.contiguous(),
            pattern.indptr,
            mode="sum",
            per_sample_weights=values.detach(),
            include_last_offset=True,
        )
    csr = torch.sparse_csr_tensor(
        pattern.indptr,
        pattern.indices,
        values.detach(),
        size=(pattern.num_rows, pattern.num_cols),
        check_invariants=False,
    )
    product: Tensor = torch.sparse.mm(csr, dense.contiguous())
    return product
