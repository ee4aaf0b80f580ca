"""Sparse matrices whose structure is shared by all replicas, and their products."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Pattern:
    """Positions of the entries of a CSR matrix.

    Attributes:
        indptr: ``(rows + 1,)`` start of each row.
        indices: ``(E,)`` the column of each entry.
        num_cols: number of columns.
    """

    indptr: Tensor
    indices: Tensor
    num_cols: int

    @property
    def num_rows(self) -> int:
        return self.indptr.numel() - 1

    @property
    def num_entries(self) -> int:
        return self.indices.numel()

    @cached_property
    def rows(self) -> Tensor:
        """``(E,)`` the row of each entry."""
        counts = self.indptr.diff()
        return torch.repeat_interleave(counts, output_size=self.num_entries)

    @cached_property
    def transposed(self) -> tuple[Pattern, Tensor]:
        """The transpose, and for each of its entries the index of the original entry."""
        order = torch.argsort(self.indices, stable=True)
        indptr = _pointers(self.indices, self.num_cols)
        return Pattern(indptr, self.rows[order], self.num_rows), order

    @cached_property
    def with_loops(self) -> tuple[Pattern, Tensor]:
        """The pattern with a full diagonal, and the old index of each entry (diagonal last)."""
        nodes = torch.arange(self.num_rows, device=self.indices.device)
        rows = torch.cat([self.rows, nodes])
        cols = torch.cat([self.indices, nodes])
        order = torch.argsort(rows * self.num_cols + cols)
        return Pattern(_pointers(rows, self.num_rows), cols[order], self.num_cols), order

    @cached_property
    def undirected(self) -> tuple[int, Tensor]:
        """Number of connected node pairs, and ``(E,)`` the index of each entry's pair."""
        low = torch.minimum(self.rows, self.indices)
        high = torch.maximum(self.rows, self.indices)
        pairs, number = torch.unique(low * self.num_rows + high, return_inverse=True)
        return len(pairs), number

    def select_rows(self, rows: Tensor) -> tuple[Pattern, Tensor]:
        """The given rows, and the index of each of their entries in this pattern; cached."""

        def select() -> tuple[Pattern, Tensor]:
            counts = self.indptr.diff()[rows]
            new_rows = torch.repeat_interleave(counts)
            skipped = self.indptr[rows] - (counts.cumsum(0) - counts)
            entries = torch.arange(new_rows.numel(), device=rows.device) + skipped[new_rows]
            indptr = _pointers(new_rows, rows.numel())
            return Pattern(indptr, self.indices[entries], self.num_cols), entries

        return _cached(self, "_selected", (rows,), select)

    @cached_property
    def _blocks(self) -> dict[int, Pattern]:
        return {}

    def block_diagonal(self, copies: int) -> Pattern:
        """``copies`` of this pattern along the diagonal of one matrix; cached."""
        if copies == 1:
            return self
        if copies not in self._blocks:
            shift = torch.arange(copies, device=self.indices.device)[:, None]
            indptr = (self.indptr[:-1] + shift * self.num_entries).flatten()
            self._blocks[copies] = Pattern(
                torch.cat([indptr, indptr.new_tensor([copies * self.num_entries])]),
                (self.indices + shift * self.num_cols).flatten(),
                copies * self.num_cols,
            )
        return self._blocks[copies]

    def row_sums(self, values: Tensor) -> Tensor:
        """Sum of ``(..., E)`` values over each row: ``(..., rows)``, differentiable."""
        sums = values.new_zeros(*values.shape[:-1], self.num_rows)
        return sums.index_add(-1, self.rows, values)


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A pattern with values ``(E,)``, shared by all replicas, or ``(R, E)``, one set each."""

    pattern: Pattern
    values: Tensor

    @classmethod
    def from_scipy(
        cls,
        matrix: sp.csr_array,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> SparseMatrix:
        pattern = Pattern(
            torch.tensor(matrix.indptr.astype(np.int64), device=device),
            torch.tensor(matrix.indices.astype(np.int64), device=device),
            matrix.shape[1],
        )
        return cls(pattern, torch.tensor(matrix.data, dtype=dtype, device=device))

    def to_scipy(self) -> sp.csr_array:
        """Convert to SciPy; all replicas must share the values."""
        parts = (self.values, self.pattern.indices, self.pattern.indptr)
        return sp.csr_array(tuple(part.numpy(force=True) for part in parts), shape=self.shape)

    def to_dense(self) -> Tensor:
        """``(rows, columns)``; all replicas must share the values."""
        dense = self.values.new_zeros(self.shape)
        return dense.index_put((self.pattern.rows, self.pattern.indices), self.values)

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.num_rows, self.pattern.num_cols

    @property
    def transposed(self) -> SparseMatrix:
        """The transpose, without gradient; cached until the values change."""
        pattern, order = self.pattern.transposed
        return _cached(
            self,
            "_transposed",
            (self.values._version,),
            lambda: SparseMatrix(pattern, self.values.detach()[..., order]),
        )

    def with_values(self, values: Tensor) -> SparseMatrix:
        return SparseMatrix(self.pattern, values)

    def with_loops(self, weight: float = 1.0) -> SparseMatrix:
        """Add ``weight`` times the identity to a square matrix with an empty diagonal.

        Differentiable in the values.
        """
        pattern, order = self.pattern.with_loops
        loops = self.values.new_full((*self.values.shape[:-1], pattern.num_rows), weight)
        return SparseMatrix(pattern, torch.cat([self.values, loops], dim=-1)[..., order])

    def select_rows(self, rows: Tensor) -> SparseMatrix:
        """Select rows, in the given order; differentiable in the values.

        If the values need no gradient, the last selection is cached.
        """

        def select() -> SparseMatrix:
            pattern, entries = self.pattern.select_rows(rows)
            return SparseMatrix(pattern, self.values[..., entries])

        if self.values.requires_grad:
            return select()
        return _cached(self, "_selected", (rows, self.values._version), select)

    def select_columns(self, cols: Tensor) -> SparseMatrix:
        """Select columns, renumbered in the given order."""
        position = torch.full((self.pattern.num_cols,), -1, device=self.values.device)
        position[cols] = torch.arange(cols.numel(), device=self.values.device)
        new_cols = position[self.pattern.indices]
        inside = new_cols >= 0
        indptr = _pointers(self.pattern.rows[inside], self.pattern.num_rows)
        pattern = Pattern(indptr, new_cols[inside], cols.numel())
        return SparseMatrix(pattern, self.values[..., inside])

    def reach(self, rows: Tensor, hops: int) -> Tensor:
        """The nodes, sorted, whose values can influence ``rows`` within ``hops`` products."""
        inside = torch.zeros(self.pattern.num_cols, dtype=torch.bool, device=rows.device)
        inside[rows] = True
        for _ in range(hops):
            before = int(inside.sum())
            inside[self.pattern.indices[inside[self.pattern.rows]]] = True
            if int(inside.sum()) == before:
                break
        return inside.nonzero().squeeze(-1)


def _cached(owner: object, name: str, key: tuple[object, ...], compute: Callable[[], T]) -> T:
    """Return the last result of ``compute`` if its key was the same, else compute and store it."""
    stored = owner.__dict__.get(name)
    if stored is None or not all(map(_same, stored[0], key)):
        stored = owner.__dict__[name] = (key, compute())
    value: T = stored[1]
    return value


def _same(old: object, new: object) -> bool:
    """Whether two key parts are the identical tensor or equal numbers."""
    return old is new if isinstance(new, Tensor) else old == new


def _pointers(rows: Tensor, num_rows: int) -> Tensor:
    """CSR row pointers from the row of each entry."""
    counts = torch.bincount(rows, minlength=num_rows)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


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


def normalize_adjacency(adjacency: SparseMatrix) -> SparseMatrix:
    """``D^-1/2 (A + I) D^-1/2``, differentiable in the values."""
    looped = adjacency.with_loops()
    pattern = looped.pattern
    scale = pattern.row_sums(looped.values).rsqrt()
    ends = scale[..., pattern.rows] * scale[..., pattern.indices]
    return looped.with_values(looped.values * ends)


def normalize_scipy(adjacency: sp.csr_array, loops: bool = False) -> sp.csr_array:
    """``D^-1/2 A D^-1/2`` of a SciPy matrix, in its precision; with ``loops``, of A + I.

    Rows of isolated nodes stay zero.
    """
    matrix = adjacency + sp.eye_array(adjacency.shape[0], format="csr") if loops else adjacency
    degree = np.asarray(matrix.sum(axis=1)).reshape(-1)
    scale = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    return sp.csr_array(sp.diags_array(scale) @ matrix @ sp.diags_array(scale))


def random_walk(adjacency: sp.csr_array) -> sp.csr_array:
    """``A D^-1``: column j holds the transition probabilities of a random walk from node j."""
    degree = np.asarray(adjacency.sum(axis=0)).reshape(-1)
    inverse = np.divide(1, degree, out=np.zeros_like(degree), where=degree > 0)
    return sp.csr_array(adjacency @ sp.diags_array(inverse))
