"""Sparse matrices whose structure is shared by all replicas, and their product with dense ones.

A :class:`Pattern` is where the entries are; a :class:`SparseMatrix` adds what they are: one value
per entry, ``(E,)``, or one per replica and entry, ``(R, E)``. The transpose is worked out once per
pattern. Gradients with respect to values are gathered on the entries, never on an n x n matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

for _message in ("Sparse CSR tensor support is in beta", "Sparse invariant checks are implicitly"):
    warnings.filterwarnings("ignore", message=_message)

T = TypeVar("T")

_BLOCK = 1 << 24
"""How many numbers a gathered block holds at most while entry gradients are computed."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where the entries of a CSR matrix are.

    Attributes:
        indptr: ``(rows + 1,)`` where each row begins.
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
        """The transpose, and for each of its entries the entry here that it came from."""
        order = torch.argsort(self.indices, stable=True)
        indptr = _pointers(self.indices, self.num_cols)
        return Pattern(indptr, self.rows[order], self.num_rows), order

    @cached_property
    def with_loops(self) -> tuple[Pattern, Tensor]:
        """The pattern with a full diagonal, and where each entry was before (diagonal last)."""
        nodes = torch.arange(self.num_rows, device=self.indices.device)
        rows = torch.cat([self.rows, nodes])
        cols = torch.cat([self.indices, nodes])
        order = torch.argsort(rows * self.num_cols + cols)
        return Pattern(_pointers(rows, self.num_rows), cols[order], self.num_cols), order

    @cached_property
    def undirected(self) -> tuple[int, Tensor]:
        """How many pairs of nodes are joined, and ``(E,)`` the number of each entry's pair."""
        low = torch.minimum(self.rows, self.indices)
        high = torch.maximum(self.rows, self.indices)
        pairs, number = torch.unique(low * self.num_rows + high, return_inverse=True)
        return len(pairs), number

    def select_rows(self, rows: Tensor) -> tuple[Pattern, Tensor]:
        """The given rows, and where each of their entries is here; remembered likewise."""

        def select() -> tuple[Pattern, Tensor]:
            counts = self.indptr.diff()[rows]
            new_rows = torch.repeat_interleave(counts)
            skipped = self.indptr[rows] - (counts.cumsum(0) - counts)
            entries = torch.arange(new_rows.numel(), device=rows.device) + skipped[new_rows]
            indptr = _pointers(new_rows, rows.numel())
            return Pattern(indptr, self.indices[entries], self.num_cols), entries

        return _remember((self, "_selected"), (rows,), select)

    @cached_property
    def _blocks(self) -> dict[int, Pattern]:
        return {}

    def block_diagonal(self, copies: int) -> Pattern:
        """``copies`` of this pattern along the diagonal of one matrix; remembered."""
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
        """The matrix outside of torch; its values must be shared by all replicas."""
        parts = (self.values, self.pattern.indices, self.pattern.indptr)
        return sp.csr_array(tuple(part.numpy(force=True) for part in parts), shape=self.shape)

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.num_rows, self.pattern.num_cols

    @property
    def transposed(self) -> SparseMatrix:
        """The transpose, outside of any gradient; remembered until the values change."""
        pattern, order = self.pattern.transposed
        return _remember(
            (self, "_transposed"),
            (self.values._version,),
            lambda: SparseMatrix(pattern, self.values.detach()[..., order]),
        )

    def with_values(self, values: Tensor) -> SparseMatrix:
        return SparseMatrix(self.pattern, values)

    def with_loops(self, weight: float = 1.0) -> SparseMatrix:
        """Add to a square matrix ``weight`` times the identity, where the diagonal is empty.

        Differentiable in the values.
        """
        pattern, order = self.pattern.with_loops
        loops = self.values.new_full((*self.values.shape[:-1], pattern.num_rows), weight)
        return SparseMatrix(pattern, torch.cat([self.values, loops], dim=-1)[..., order])

    def select_rows(self, rows: Tensor) -> SparseMatrix:
        """The given rows, in the order given; differentiable in the values.

        Constant values are remembered for the rows last asked for.
        """

        def select() -> SparseMatrix:
            pattern, entries = self.pattern.select_rows(rows)
            return SparseMatrix(pattern, self.values[..., entries])

        if self.values.requires_grad:
            return select()
        return _remember((self, "_selected"), (rows, self.values._version), select)

    def select_columns(self, cols: Tensor) -> SparseMatrix:
        """The given columns, renumbered in the order given."""
        place = torch.full((self.pattern.num_cols,), -1, device=self.values.device)
        place[cols] = torch.arange(cols.numel(), device=self.values.device)
        new_cols = place[self.pattern.indices]
        inside = new_cols >= 0
        indptr = _pointers(self.pattern.rows[inside], self.pattern.num_rows)
        pattern = Pattern(indptr, new_cols[inside], cols.numel())
        return SparseMatrix(pattern, self.values[..., inside])

    def reach(self, rows: Tensor, hops: int) -> Tensor:
        """The nodes, in order, whose values can influence ``rows`` within ``hops`` products."""
        inside = torch.zeros(self.pattern.num_cols, dtype=torch.bool, device=rows.device)
        inside[rows] = True
        for _ in range(hops):
            before = int(inside.sum())
            inside[self.pattern.indices[inside[self.pattern.rows]]] = True
            if int(inside.sum()) == before:
                break
        return inside.nonzero().squeeze(-1)


def spmm(matrix: SparseMatrix, dense: Tensor) -> Tensor:
    """``matrix @ dense`` for ``(n, d)`` or, replica by replica, ``(R, n, d)``.

    Differentiable in ``dense`` and, where they require it, in the matrix's values.
    """
    if dense.dim() == 2 and matrix.values.dim() == 1:
        return spmm(matrix, dense.unsqueeze(0)).squeeze(0)
    if dense.dim() == 2:
        dense = dense.expand(matrix.values.shape[0], -1, -1)
    product: Tensor = _SpMM.apply(dense, matrix.values, matrix)  # type: ignore[no-untyped-call]
    return product


class _SpMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, dense: Tensor, values: Tensor, matrix: SparseMatrix) -> Tensor:
        ctx.matrix = matrix  # type: ignore[attr-defined]
        # The values are kept so that changing them before the way back is noticed.
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
    """Inner product of ``left``'s row and ``right``'s column vector at each entry: ``(R, E)``.

    The gradient of a sparse product with respect to its entries, block by block.
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
    if values.dim() == 2:  # each replica its own values: one block-diagonal product
        blocks = pattern.block_diagonal(replicas)
        product = _csr_product(blocks, values.reshape(-1), dense.reshape(replicas * n, width))
        return product.view(replicas, pattern.num_rows, width)
    if replicas == 1:
        return _csr_product(pattern, values, dense[0]).unsqueeze(0)
    side_by_side = dense.transpose(0, 1).reshape(n, replicas * width)
    product = _csr_product(pattern, values, side_by_side)
    return product.view(pattern.num_rows, replicas, width).transpose(0, 1)


def _csr_product(pattern: Pattern, values: Tensor, dense: Tensor) -> Tensor:
    csr = torch.sparse_csr_tensor(
        pattern.indptr,
        pattern.indices,
        values.detach(),
        size=(pattern.num_rows, pattern.num_cols),
        check_invariants=False,
    )
    # On a CPU the reducing kernel is about twice as fast as the plain product.
    how = () if dense.is_cuda else ("sum",)
    product: Tensor = torch.sparse.mm(csr, dense.contiguous(), *how)
    return product


def _remember(slot: tuple[object, str], key: tuple[object, ...], compute: Callable[[], T]) -> T:
    """What ``compute`` gave the last time, if that was for the same key, else what it gives now."""
    owner, name = slot
    kept = owner.__dict__.get(name)
    if kept is None or not all(map(_same, kept[0], key)):
        kept = owner.__dict__[name] = (key, compute())
    value: T = kept[1]
    return value


def _same(old: object, new: object) -> bool:
    """The very tensor, or an equal number."""
    return old is new if isinstance(new, Tensor) else old == new


def _pointers(rows: Tensor, num_rows: int) -> Tensor:
    """CSR row pointers from the row of each entry."""
    counts = torch.bincount(rows, minlength=num_rows)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
