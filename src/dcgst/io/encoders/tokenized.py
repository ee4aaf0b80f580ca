"""Encoders of categories, codes, lists and texts: by their parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.io.encoders import kinds
from dcgst.io.encoders.base import ColumnEncoder
from dcgst.io.encoders.cells import Cells
from dcgst.io.encoders.tokens import FORMS, tokenizer


@dataclass(frozen=True)
class TokenEncoder(ColumnEncoder):
    """Parts of texts: the number of each, times its weight, in rows of length one.

    Args:
        values: the parts, sorted.
        idf: weight of each part; empty for ones.
    """

    values: tuple[str, ...] = ()
    idf: tuple[float, ...] = ()

    @property
    def size(self) -> int:
        return len(self.values)

    def check(self) -> None:
        super().check()
        if len(self.idf) != (0 if self.form == "value" else len(self.values)):
            raise ValueError(f"the encoder of {self.name} has another number of words and idf")
        if not self.form.startswith("list ") and self.form not in FORMS:
            raise ValueError(f"the texts of {self.name} have form {self.form!r}")

    def encode(self, cells: Cells) -> sp.csr_array:
        counts = self.count(cells.distinct)
        if self.idf:
            counts.data *= np.asarray(self.idf)[counts.indices]
        if self.form != "value":
            counts = unit_length(counts)
        return sp.csr_array(counts[cells.codes])

    def count(self, texts: Sequence[str]) -> sp.csr_array:
        """``(m, size)`` number of each part in each text."""
        index = {value: number for number, value in enumerate(self.values)}
        split = tokenizer(self.form)
        columns: list[int] = []
        pointers = [0]
        for text in texts:
            found = [index[token] for token in split(text) if token in index] if text else []
            columns += found
            pointers.append(len(columns))
        parts = np.ones(len(columns)), np.array(columns, dtype=np.int64), np.array(pointers)
        matrix = sp.csr_array(parts, shape=(len(texts), self.size))
        matrix.sum_duplicates()
        return matrix

    def unknown(self, cells: Cells) -> NDArray[np.bool_]:
        known = np.diff(self.count(cells.distinct).indptr) > 0
        present = np.array([text != "" for text in cells.distinct], dtype=bool)
        found: NDArray[np.bool_] = (present & ~known)[cells.codes]
        return found

    def describe(self) -> str:
        count = f"{len(self.values):,}"
        if self.kind == kinds.CATEGORY:
            return f"category, {count} values"
        if self.kind == kinds.TEXT:
            return f"text, {count} words"
        if self.kind == kinds.LIST:
            return f"list, {count} items"
        if self.kind == kinds.CODE:
            form = "codes" if self.form == "prefixes" else self.form
            return f"code ({form}), {count} parts"
        return f"short texts, {count} groups of three letters"


def unit_length(matrix: sp.csr_array) -> sp.csr_array:
    """Rows of Euclidean length one; rows of zeros stay zero."""
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).reshape(-1))
    lengths[lengths == 0] = 1
    matrix.data = matrix.data / np.repeat(lengths, np.diff(matrix.indptr))
    return matrix


def frequent_tokens(cells: Cells, form: str) -> dict[str, int]:
    """Number of rows of each part of the texts of a column."""
    split, counts = tokenizer(form), Counter[str]()
    for text, rows in zip(cells.distinct, cells.counts.tolist(), strict=True):
        if text:
            for token in set(split(text)):
                counts[token] += rows
    return dict(counts)
