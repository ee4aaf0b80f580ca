"""Convert the columns of a table to a feature matrix with a fitted encoder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.io.table import Table

TOKEN_PATTERN = r"(?u)\w\w+"
"""A word: two or more letters, digits or underscores."""


KINDS = ("number", "flag", "category", "text")
"""Kinds of encoded columns."""


@dataclass(frozen=True)
class ColumnEncoder:
    """Fitted encoder of one column.

    Args:
        name: name of the column.
        kind: ``number`` (standardized), ``flag`` (0 or 1, unchanged), ``category`` (one-hot, one
            feature per value) or ``text`` (tf-idf, one feature per word).
        mean: mean of a ``number`` column; also replaces missing values.
        std: standard deviation of a ``number`` column.
        values: values of a ``category`` column, or words of a ``text`` column.
        idf: inverse document frequency of each word of a ``text`` column.
    """

    name: str
    kind: str
    mean: float = 0.0
    std: float = 1.0
    values: tuple[str, ...] = ()
    idf: tuple[float, ...] = ()

    def transform(self, table: Table) -> sp.csr_array:
        """Return the ``(n, d)`` features of the column; d is 1 or the number of ``values``."""
        if self.kind in ("number", "flag"):
            return _standardize(table.numbers(self.name), self.mean, self.std)
        if self.kind == "category":
            return _one_hot(table.column(self.name), self.values)
        return _tf_idf(table.column(self.name), self.values, self.idf)


@dataclass(frozen=True)
class FeatureEncoder:
    """Fitted encoder of a table: converts columns to features.

    :func:`dcgst.io.fitting.fit_encoder` fits one.

    Args:
        columns: one encoder per column, in the order of the features.
        notes: for the user, how each column is encoded or why it is not used.

    Example:
        >>> from pathlib import Path
        >>> size = ColumnEncoder("size", "number", mean=2.0, std=0.5)
        >>> color = ColumnEncoder("color", "category", values=("blue", "red"))
        >>> columns = {"color": ["red", "green"], "size": ["3", ""]}
        >>> table = Table(Path("nodes.csv"), columns, [2, 3])
        >>> FeatureEncoder((size, color)).transform(table)
        array([[2., 0., 1.],
               [0., 0., 0.]], dtype=float32)
    """

    columns: tuple[ColumnEncoder, ...]
    notes: tuple[str, ...] = field(default=(), compare=False)

    def transform(self, table: Table) -> NDArray[np.float32] | sp.csr_array:
        """Return the ``(n, d)`` float32 features, CSR if fewer than 10% of them are nonzero.

        Categories and words that the encoder does not know are ignored.

        Raises:
            InputError: if the table does not have all columns of the encoder.
        """
        missing = [c.name for c in self.columns if c.name not in table.columns]
        if missing:
            raise InputError(
                f"{table.path} has no column {missing[0]!r}; the model requires the feature "
                f"columns: {', '.join(c.name for c in self.columns)}"
            )
        matrix = sp.hstack([c.transform(table) for c in self.columns], format="csr")
        matrix = sp.csr_array(matrix).astype(np.float32)
        sparse = 10 * matrix.nnz < matrix.shape[0] * matrix.shape[1]
        return matrix if sparse else matrix.toarray()

    def to_json(self) -> list[dict[str, Any]]:
        """Return the encoder as it is stored in ``run.json``: one object per column."""
        return [asdict(column) for column in self.columns]

    @classmethod
    def from_json(cls, columns: Iterable[Mapping[str, Any]]) -> FeatureEncoder:
        """Restore an encoder from the output of :meth:`to_json`."""

        def restore(stored: Mapping[str, Any]) -> ColumnEncoder:
            values: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value
                for key, value in stored.items()
            }
            return ColumnEncoder(**values)

        return cls(tuple(restore(column) for column in columns))


def _standardize(numbers: NDArray[np.float64], mean: float, std: float) -> sp.csr_array:
    filled = np.where(np.isnan(numbers), mean, numbers)
    return sp.csr_array(((filled - mean) / std)[:, None])


def _one_hot(texts: Sequence[str], values: Sequence[str]) -> sp.csr_array:
    """One column per value; rows of unknown and missing values are zero."""
    index = {value: position for position, value in enumerate(values)}
    rows = np.array([row for row, text in enumerate(texts) if text in index], dtype=np.int64)
    codes = np.array([index[texts[row]] for row in rows], dtype=np.int64)
    return sp.csr_array((np.ones(len(rows)), (rows, codes)), shape=(len(texts), len(values)))


def _tf_idf(texts: Sequence[str], words: Sequence[str], idf: Sequence[float]) -> sp.csr_array:
    """Word counts times ``idf``, rows scaled to unit Euclidean length; empty rows stay zero."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import normalize

    vectorizer = CountVectorizer(
        vocabulary=words, token_pattern=TOKEN_PATTERN, lowercase=True, dtype=np.float64
    )
    matrix = sp.csr_array(vectorizer.transform(texts))
    matrix.data *= np.asarray(idf)[matrix.indices]
    return sp.csr_array(normalize(matrix))
