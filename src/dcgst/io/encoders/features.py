"""Convert the columns of a table to a feature matrix with fitted encoders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.io.encoders.base import ColumnEncoder
from dcgst.io.encoders.columns import from_json
from dcgst.io.encoders.tokenized import TokenEncoder
from dcgst.io.table import Table

DENSE = 0.5
"""Features with a larger share of nonzero entries are dense, and so are those of numbers alone."""

DENSE_BEFORE = 0.1
"""The same in version 0.1."""


@dataclass(frozen=True)
class FeatureEncoder:
    """Fitted encoder of a table: converts columns to features.

    :func:`dcgst.io.encoders.fitting.fit_encoder` fits one.

    Args:
        columns: one encoder per column, in the order of the features.
        notes: for the user, how each column is encoded or why it is not used.
        dense: features with a larger share of nonzero entries are dense.

    Example:
        >>> from pathlib import Path
        >>> from dcgst.io.encoders.numeric import NumberEncoder
        >>> size = NumberEncoder("size", "number", mean=2.0, std=0.5)
        >>> color = TokenEncoder("color", "category", "value", values=("blue", "red"))
        >>> columns = {"color": ["red", "green"], "size": ["3", ""]}
        >>> table = Table(Path("nodes.csv"), columns, [2, 3])
        >>> FeatureEncoder((size, color)).transform(table).toarray()
        array([[2., 0., 1.],
               [0., 0., 0.]], dtype=float32)
    """

    columns: tuple[ColumnEncoder, ...]
    notes: tuple[str, ...] = field(default=(), compare=False)
    dense: float = DENSE

    @property
    def width(self) -> int:
        """Number of features."""
        return sum(column.width for column in self.columns)

    @property
    def widths(self) -> dict[str, int]:
        """Number of features of each column, by name."""
        return {column.name: column.width for column in self.columns}

    def transform(self, table: Table) -> NDArray[np.float32] | sp.csr_array:
        """Return the ``(n, d)`` float32 features, CSR if most of them are zero.

        Categories, words and parts of codes that the encoder does not know are ignored.

        Raises:
            InputError: if the table does not have all columns of the encoder.
        """
        self.names_in(table)
        parts = [column.transform(table.column(column.name)) for column in self.columns]
        return self.join(parts)

    def names_in(self, table: Table) -> list[str]:
        """The names of the columns of the encoder; raises if the table does not have all."""
        names = [column.name for column in self.columns]
        missing = [name for name in names if name not in table.columns]
        if missing:
            raise InputError(
                f"{table.path} has no column {missing[0]!r}; the model requires the feature "
                f"columns: {', '.join(names)}"
            )
        return names

    def join(self, parts: Iterable[sp.csr_array]) -> NDArray[np.float32] | sp.csr_array:
        """The features of all columns as one matrix."""
        matrix = sp.csr_array(sp.hstack(list(parts), format="csr")).astype(np.float32)
        return matrix if self.is_sparse(matrix) else matrix.toarray()

    def is_sparse(self, matrix: sp.csr_array) -> bool:
        """Whether features stay sparse."""
        texts = any(isinstance(column, TokenEncoder) for column in self.columns)
        return texts and bool(matrix.nnz < self.dense * matrix.shape[0] * matrix.shape[1])

    def to_json(self) -> list[dict[str, Any]]:
        """Return the encoder as it is stored in ``run.json``: one object per column."""
        return [column.to_json() for column in self.columns]

    @classmethod
    def from_json(cls, columns: Iterable[Mapping[str, Any]]) -> FeatureEncoder:
        """Restore an encoder from the output of :meth:`to_json`, or from a file of version 0.1."""
        stored = list(columns)
        before = any("weight" not in column for column in stored)
        restored = tuple(from_json(column) for column in stored)
        return cls(restored, dense=DENSE_BEFORE if before else DENSE)
