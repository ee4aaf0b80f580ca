"""How much columns count, and what is said about them."""

from __future__ import annotations

import math

import pytest

from dcgst.io.encoders import fit_encoder

from .conftest import make_table


def test_columns_count_by_the_logarithm_of_the_number_of_their_features():
    table = make_table(
        size=["1", "2", "4", "8"], color=["a", "b", "b", "a"], note=["", "x", "", ""]
    )
    columns = fit_encoder(table, ["size", "color", "note"], {}).columns
    weights = {column.name: column.weight for column in columns}
    assert weights["color"] == 1.0
    assert weights["size"] == weights["note"] == pytest.approx(math.sqrt(1 / math.log2(3)))


def test_equal_notes_are_combined():
    names = ["a", "b: c", "d", "e", "f"]
    table = make_table(**{name: ["1", "2", "3"] for name in names})
    assert fit_encoder(table, names, {}).notes == (
        "feature a, b: c, d and 2 more: number, standardized",
    )
    assert fit_encoder(table, names[:4], {}).notes == (
        "feature a, b: c, d and 1 more: number, standardized",
    )
    assert fit_encoder(table, names[:3], {}).notes == ("feature a, b: c, d: number, standardized",)
