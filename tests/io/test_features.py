"""Fitted encoders convert columns to features and can be stored."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

from dcgst.errors import InputError
from dcgst.io.features import ColumnEncoder, FeatureEncoder
from dcgst.io.fitting import fit_encoder

from .conftest import make_table


def test_features_are_in_the_order_of_the_columns():
    table = make_table(size=["2", "6", "2", "6"], color=["b", "r", "r", "b"])
    encoder = fit_encoder(table, ["color", "size"], {})
    assert encoder.transform(table).tolist() == [[1, 0, -1], [0, 1, 1], [0, 1, -1], [1, 0, 1]]
    assert encoder.transform(table).dtype == np.float32


def test_features_are_sparse_if_fewer_than_a_tenth_are_nonzero():
    ten = ColumnEncoder("x", "category", values=tuple("abcdefghij"))
    eleven = ColumnEncoder("x", "category", values=tuple("abcdefghijk"))
    table = make_table(x=["a", "b"])
    assert not sp.issparse(FeatureEncoder((ten,)).transform(table)), "exactly a tenth"
    matrix = FeatureEncoder((eleven,)).transform(table)
    assert isinstance(matrix, sp.csr_array)
    assert matrix.dtype == np.float32
    np.testing.assert_array_equal(matrix.toarray(), np.eye(2, 11))


def test_a_missing_column_is_an_error():
    encoder = fit_encoder(make_table(x=["1", "2"], y=["3", "4"]), ["x", "y"], {})
    with pytest.raises(InputError, match=r"nodes.csv has no column 'y'; .* feature columns: x, y$"):
        encoder.transform(make_table(x=["1", "2"]))


STORED = [
    {"name": "year", "kind": "number", "mean": 4.0, "std": 2.0, "values": [], "idf": []},
    {"name": "on", "kind": "flag", "mean": 0.0, "std": 1.0, "values": [], "idf": []},
    {
        "name": "city",
        "kind": "category",
        "mean": 0.0,
        "std": 1.0,
        "values": ["Oslo", "Rome"],
        "idf": [],
    },
    {
        "name": "about",
        "kind": "text",
        "mean": 0.0,
        "std": 1.0,
        "values": ["cat", "dog"],
        "idf": [1.5, 1.25],
    },
]
"""An encoder as it is stored in run.json."""


def test_stored_encoders_can_be_read():
    assert FeatureEncoder.from_json(STORED).columns == (
        ColumnEncoder("year", "number", mean=4, std=2),
        ColumnEncoder("on", "flag"),
        ColumnEncoder("city", "category", values=("Oslo", "Rome")),
        ColumnEncoder("about", "text", values=("cat", "dog"), idf=(1.5, 1.25)),
    )


def test_the_stored_format_is_fixed():
    stored = json.loads(json.dumps(FeatureEncoder.from_json(STORED).to_json()))
    assert stored == STORED
    assert [list(column) for column in stored] == [list(column) for column in STORED]


def test_a_restored_encoder_equals_the_fitted_one():
    table = make_table(
        size=["2", "6", ""], about=["red cat", "red dog", "cat"], color=["b", "r", "b"]
    )
    fitted = fit_encoder(table, table.names, {"about": "text"})
    restored = FeatureEncoder.from_json(json.loads(json.dumps(fitted.to_json())))
    assert restored == fitted, "notes are not stored and not compared"
    np.testing.assert_array_equal(restored.transform(table), fitted.transform(table))
