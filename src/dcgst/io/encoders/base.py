"""What encoders of all kinds of columns share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.io.encoders.cells import Cells


@dataclass(frozen=True)
class ColumnEncoder(ABC):
    """Fitted encoder of one column.

    Args:
        name: name of the column.
        kind: what the column contains; see :mod:`dcgst.io.encoders.kinds`.
        form: how its values are written.
        weight: that the features are multiplied by, so that columns count according to their
            content.
        missing: whether the last feature is 1 for a missing value and 0 otherwise.
    """

    name: str
    kind: str
    form: str = ""
    weight: float = 1.0
    missing: bool = False

    unreadable_is_missing: ClassVar[bool] = False

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of features without the one for missing values."""

    @abstractmethod
    def encode(self, cells: Cells) -> sp.csr_array:
        """``(n, size)`` features before they are weighted; zero for missing values."""

    @abstractmethod
    def describe(self) -> str:
        """What was made of the column, for the user."""

    @property
    def width(self) -> int:
        """Number of features."""
        return self.size + int(self.missing)

    def transform(self, texts: Sequence[str]) -> sp.csr_array:
        """``(n, width)`` features of the cells of a column."""
        cells = Cells.of(self.name, texts)
        found = self.encode(cells)
        if self.missing:
            absent = cells.map(lambda text: float(text == ""))
            if self.unreadable_is_missing:
                absent = np.maximum(absent, self.unknown(cells))
            found = sp.csr_array(sp.hstack([found, sp.csr_array(absent[:, None])], format="csr"))
        return found * self.weight if self.weight != 1.0 else found

    def unknown(self, cells: Cells) -> NDArray[np.bool_]:
        """``(n,)`` rows whose value was never seen or cannot be read."""
        return np.zeros(len(cells), dtype=bool)

    def to_json(self) -> dict[str, Any]:
        """All fields, for a file."""
        return asdict(self)

    def check(self) -> None:
        """Raise ``TypeError`` or ``ValueError`` if a field read from a file is invalid."""
        for field in fields(self):
            _check_field(f"{field.name} of {self.name}", getattr(self, field.name), field.default)
        if not self.weight > 0:
            raise ValueError(f"the weight of {self.name} is {self.weight!r}")


def _check_field(name: str, value: object, default: object) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless a value has the type of its default."""
    if isinstance(default, bool) and not isinstance(value, bool):
        raise TypeError(f"{name} is {type(value).__name__}")
    if isinstance(default, float) and not isinstance(default, bool):
        _check_number(name, value)
    elif isinstance(default, tuple):
        if not isinstance(value, tuple):
            raise TypeError(f"{name} is {type(value).__name__}")
        for item in value:
            if name.startswith("idf"):
                _check_number(name, item)
            elif not isinstance(item, str):
                raise TypeError(f"{name} is {type(item).__name__}")
    elif not isinstance(value, (str, bool)):
        raise TypeError(f"{name} is {type(value).__name__}")


def _check_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is {type(value).__name__}")
    if not math.isfinite(value) or (name.startswith("idf") and value < 0):
        raise ValueError(f"{name} is {value}")


def check_std(name: str, std: float) -> None:
    if not std > 0:
        raise ValueError(f"std of {name} is {std!r}")
