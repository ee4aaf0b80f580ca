"""Fitted encoders convert columns to features and can be stored."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import scipy.sparse as sp

from dcgst.errors import InputError
from dcgst.tables.encoders import (
    DateEncoder,
    FeatureEncoder,
    FlagEncoder,
    NumberEncoder,
    TokenEncoder,
    fit_encoder,
)

from .conftest import make_table


def test_features_are_in_the_order_of_the_columns():
    table = make_table(size=["2", "6", "2", "6"], color=["b", "r", "r", "b"])
    encoder = fit_encoder(table, ["color", "size"], {})
    color, size = (column.weight for column in encoder.columns)
    expected = [[color, 0, -size], [0, color, size], [0, color, -size], [color, 0, size]]
    np.testing.assert_allclose(encoder.transform(table), expected, rtol=1e-6)
    assert encoder.transform(table).dtype == np.float32


def test_features_of_texts_are_sparse_if_less_than_half_are_nonzero():
    two, three = (TokenEncoder("x", "category", "value", values=tuple(v)) for v in ("ab", "abc"))
    table = make_table(x=["a", "b"])
    assert not sp.issparse(FeatureEncoder((two,)).transform(table)), "exactly half"
    matrix = FeatureEncoder((three,)).transform(table)
    assert isinstance(matrix, sp.csr_array)
    assert matrix.dtype == np.float32
    np.testing.assert_array_equal(matrix.toarray(), np.eye(2, 3))
    flags = FlagEncoder("x", "flag", true="c")
    assert not sp.issparse(FeatureEncoder((flags,)).transform(table)), "no texts"


def test_a_missing_column_is_an_error():
    encoder = fit_encoder(make_table(x=["1", "2"], y=["3", "4"]), ["x", "y"], {})
    with pytest.raises(InputError, match=r"nodes.csv has no column 'y'; .* feature columns: x, y$"):
        encoder.transform(make_table(x=["1", "2"]))


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (NumberEncoder, "std", 0.0),
        (NumberEncoder, "mean", float("nan")),
        (NumberEncoder, "mean", "1"),
        (NumberEncoder, "decimal", "x"),
        (NumberEncoder, "log", True),
        (NumberEncoder, "weight", -1.0),
        (NumberEncoder, "name", 7),
        (DateEncoder, "form", "roman"),
        (DateEncoder, "parts", ("century",)),
        (TokenEncoder, "values", "abc"),
        (TokenEncoder, "idf", (1.0, 2.0)),
        (TokenEncoder, "form", "tea leaves"),
        (FlagEncoder, "true", 1),
    ],
)
def test_damaged_fields_are_refused(kind, field, value):
    valid = {NumberEncoder: "", FlagEncoder: "", DateEncoder: "digits", TokenEncoder: "words"}
    encoder = kind("x", "kind", valid[kind])
    encoder.check()
    with pytest.raises((TypeError, ValueError)):
        dataclasses.replace(encoder, **{field: value}).check()


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="the encoder of x has kind 'smell'"):
        FeatureEncoder.from_json([{"name": "x", "kind": "smell"}])


def test_a_restored_encoder_equals_the_fitted_one():
    table = make_table(
        size=["2", "6", ""], about=["red cat", "red dog", "cat"], color=["b", "r", "b"]
    )
    fitted = fit_encoder(table, table.names, {"about": "text"})
    restored = FeatureEncoder.from_json(json.loads(json.dumps(fitted.to_json())))
    assert restored == fitted, "notes are not stored and not compared"
    found, expected = (sp.csr_array(own.transform(table)).toarray() for own in (restored, fitted))
    np.testing.assert_array_equal(found, expected)
