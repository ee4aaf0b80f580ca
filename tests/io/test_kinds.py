"""What columns of real tables contain, as guessed from their names and values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dcgst.io.encoders.cells import Cells
from dcgst.io.encoders.fitting import fit_column
from dcgst.io.encoders.kinds import KINDS, UNUSED, guess_kind

SHAPES = json.loads((Path(__file__).parent.parent / "data" / "columns.json").read_text("utf-8"))
"""Values of a column by ``name|expected kind|description``."""


@pytest.mark.parametrize("shape", SHAPES)
def test_the_kind_of_a_column_is_recognized(shape):
    name, expected, _ = shape.split("|")
    guess = guess_kind(Cells.of(name, SHAPES[shape]))
    assert guess.kind == expected
    assert guess.kind in (*KINDS, UNUSED)
    assert (guess.reason != "") == (guess.kind == UNUSED)


def test_there_are_at_least_thirty_shapes_and_every_kind():
    assert len(SHAPES) >= 30
    assert {shape.split("|")[1] for shape in SHAPES} == {*KINDS, UNUSED}


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if "|ignore|" not in shape])
def test_encoders_are_restored_and_predict_the_same(shape):
    from dcgst.io.encoders.columns import from_json

    name, kind, _ = shape.split("|")
    texts = SHAPES[shape] * 3  # every part occurs in at least two rows
    encoder, note = fit_column(Cells.of(name, texts), kind)
    assert encoder is not None, note
    encoder.check()
    again = from_json(json.loads(json.dumps(encoder.to_json())))
    assert again == encoder
    found = encoder.transform(texts)
    assert found.shape == (len(texts), encoder.width)
    assert (abs(found - again.transform(texts))).sum() == 0
    assert abs(found).sum() > 0
    unseen = encoder.transform(["", "völlig ☃ anders"])
    assert unseen.shape == (2, encoder.width)


@pytest.mark.parametrize(
    ("name", "texts", "kind"),
    [
        ("year", ["1999", "2004", "2011", "2020", "1987"], "number"),
        ("version", ["1.2.3", "1.2.4", "2.0.1", "1.3.0"], "code"),
        ("amount", ["20240131", "15", "7", "99"], "number"),
        ("room", ["A4", "B12", "C7", "A9", "B3", "D1"], "code"),
        ("time", ["08:15", "12:30", "23:59", "00:01"], "date"),
        ("code", ["red", "blue", "red", "blue"], "category"),
        ("city", ["Rome", "Oslo", "Lima", "Rome", "Oslo", "Lima"], "category"),
        ("number_of_visits", ["3", "4", "9", "12"], "number"),
        ("account_number", ["3", "4", "9", "12"], "ignore"),
        ("rank", ["1", "2", "3", "4", "5"], "number"),
    ],
)
def test_similar_columns_are_told_apart(name, texts, kind):
    assert guess_kind(Cells.of(name, texts)).kind == kind
