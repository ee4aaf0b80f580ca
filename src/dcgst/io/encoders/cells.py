"""The cells of a column: distinct values and the row of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

SAMPLE = 2000
"""Distinct values that decide the kind of a column."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a column. A missing value is the empty text.

    What is computed from a value is computed once for all rows that have it.

    Attributes:
        name: name of the column.
        distinct: distinct values, the empty text included if it occurs, in ascending order.
        codes: ``(n,)`` position of each row's value in ``distinct``.
    """

    name: str
    distinct: list[str]
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, name: str, texts: Iterable[str]) -> Cells:
        """The cells of a list of texts.

        Example:
            >>> Cells.of("color", ["red", "", "red"]).distinct
            ['', 'red']
        """
        first: dict[str, int] = {}
        codes = np.fromiter((first.setdefault(text, len(first)) for text in texts), np.int64)
        distinct = sorted(first)
        rank = np.empty(len(distinct), dtype=np.int64)
        rank[[first[text] for text in distinct]] = np.arange(len(distinct))
        return cls(name, distinct, rank[codes] if len(distinct) else codes)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows of each distinct value."""
        return np.bincount(self.codes, minlength=len(self.distinct))

    @cached_property
    def values(self) -> list[str]:
        """Distinct values that are not missing."""
        return [text for text in self.distinct if text]

    @property
    def num_missing(self) -> int:
        """Number of rows without a value."""
        has_missing = bool(self.distinct) and self.distinct[0] == ""
        return int(self.counts[0]) if has_missing else 0

    @property
    def num_present(self) -> int:
        return len(self) - self.num_missing

    @cached_property
    def sample(self) -> list[str]:
        """Some distinct values, evenly spaced in their order."""
        step = -(-len(self.values) // SAMPLE) or 1
        return self.values[::step]

    def map(self, function: Callable[[str], float]) -> NDArray[np.float64]:
        """``(n,)`` the number that a function returns for the value of each row."""
        by_value = np.array([function(text) for text in self.distinct], dtype=np.float64)
        found: NDArray[np.float64] = by_value[self.codes]
        return found

    def share(
        self, condition: Callable[[str], object], texts: Iterable[str] | None = None
    ) -> float:
        """Share of distinct values, or of some of them, that meet a condition."""
        chosen = self.sample if texts is None else list(texts)
        return sum(bool(condition(text)) for text in chosen) / max(1, len(chosen))
