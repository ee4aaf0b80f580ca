"""What columns of real tables contain, as guessed from their names and values."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dcgst.tables.encoders import days_of, fit_column
from dcgst.tables.kinds import DAY_FIRST, KINDS, MONTH_FIRST, UNUSED, Cells, guess_kind
from dcgst.tables.values import NumberFormat

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
    assert {shape.split("|")[1] for shape in SHAPES} | {DAY_FIRST, MONTH_FIRST} == {*KINDS, UNUSED}


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if "|ignore|" not in shape])
def test_encoders_are_restored_and_predict_the_same(shape):
    from dcgst.tables.encoders import from_json

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
        ("phase", ["Phase 1", "Phase 2", "Phase 1", "Phase 3", "Phase 2", "Phase 3"], "category"),
        ("customer_id", ["CUST-469750", "CUST-459838", "CUST-777064"], "ignore"),
        ("CustomerID", ["469750", "459838", "777064"], "ignore"),
        ("store_id", ["28", "32", "28", "40", "32", "40"], "category"),
        ("Unnamed: 0", ["0", "1", "2", "3"], "ignore"),
        ("num_phone_calls", ["5", "32", "7", "1"], "number"),
        ("lines_of_code", ["563", "8555", "12"], "number"),
        ("age", ["7", "10", "11", "12", "14", "15", "18", "21", "23", "24", "07"], "number"),
        ("mac", ["00:1A:2B:D8:64:77", "00:1A:2B:01:02:03", "F0:1A:2B:D8:64:70"], "code"),
        ("track_length", ["29:16", "50:03", "38:38"], "number"),
        ("firmware", ["1.8.25", "4.3.16", "8.5.30"], "code"),
        ("Name", ["García, Max", "Rossi, José", "Rossi, Max", "García, José"], "string"),
        ("updated", ["06-NOV-21", "17-JAN-20", "30-DEC-19"], "date"),
        ("ts", ["2020-04-18 03:55:33+00", "2021-01-02 13:00:01+00"], "date"),
        ("fecha", ["18 de abril de 2021", "2 de mayo de 2020"], "date"),
        ("jp_date", ["2020年10月5日", "2019年3月13日", "2022年7月7日"], "date"),
        ("preco", ["R$ 130,16", "R$ 5,00", "R$ 1.200,00"], "number"),
        ("fx", ["$5.00", "€7.50", "£3.20", "$1.00"], "number"),
        ("volume", ["46.1 m3", "12 m3", "7.5 m3"], "number"),
        ("size", ["512 B", "1.5 KB", "3 MB", "20 B"], "number"),
        ("period", ["1 year", "2 years", "5 years", "10 years"], "number"),
        ("sap", ["5282.07-", "12.00", "7.25-"], "number"),
        ("newsletter", ["да", "нет", "нет", "да"], "flag"),
    ],
)
def test_similar_columns_are_told_apart(name, texts, kind):
    assert guess_kind(Cells.of(name, texts)).kind == kind


@pytest.mark.parametrize(
    "texts",
    [
        ["12e4567", "a1b2c3d", "9f8e7d6"],
        ["1e999", "1e999 kg", "1e" + "9" * 5000],
        ["[" * 3000 + "]" * 3000, "[" * 3001 + "]" * 3001],
        ["PAYMENTREFERENCE2023000012345678 x", "ab", "cd", "ef"],
        ["2024-01-01" + " " * 20_000 + "x", "2024-01-02"],
        ["A1-" * 5000 + "1", "B1"],
        ["(((", "[", "[]", "{}", " | ", "\x00", "😀"],
        ["0000-00-00", "9999-99-99", "0001-01-01", "9999-12-31"],
        ["1e-200"] * 95 + ["1e-190"] * 5,
    ],
)
@pytest.mark.parametrize("kind", [None, *KINDS])
def test_hostile_values_give_finite_features_or_a_reason(texts, kind):
    encoder, note = fit_column(Cells.of("x", texts), kind)
    if encoder is None:
        assert note.startswith("not used: ")
        return
    encoder.check()
    assert np.isfinite(encoder.transform([*texts, "1e300"]).data).all()


def test_percent_and_money_of_zero_and_one_are_numbers():
    for texts in (["0%", "1%"] * 5, ["$0.00", "$1.00"] * 5):
        encoder, _ = fit_column(Cells.of("x", texts))
        assert encoder.transform(texts).toarray()[:, 0].std() > 0


def test_bytes_are_not_billions():
    encoder, _ = fit_column(Cells.of("size", ["512 B", "1.5 KB", "3 KB", "20 B"]))
    assert encoder.numbers(Cells.of("size", ["512 B", "1.5 KB"])).tolist() == [512, 1500]
    encoder, _ = fit_column(Cells.of("revenue", ["2.5M", "300k", "1.2B"]))
    assert encoder.numbers(Cells.of("revenue", ["1.2B"])).tolist() == [1.2e9]


def test_a_value_that_is_neither_true_nor_false_is_unknown():
    encoder, _ = fit_column(Cells.of("x", ["yes", "no"]))
    assert encoder.unknown(Cells.of("x", ["yes", "maybe", ""])).tolist() == [False, True, False]


def test_units_that_differ_in_letter_case_only():
    power = NumberFormat.of(["5 mW", "2 W", "1 MW"])
    assert [power.parse(text) for text in ("5 mW", "2 W", "1 MW")] == [0.005, 2, 1e6]


def test_dates_in_several_formats():
    texts = ["2021-03-04", "05.01.2012", "Jan 5, 2012", "31.12.2020", "2020-02-01", "7 May 2019"]
    guess = guess_kind(Cells.of("signup", texts))
    assert (guess.kind, guess.form) == ("date", "several formats, day first")
    assert (
        guess_kind(Cells.of("signup", ["red", "05.01.2012", "blue", "2020-02-01"])).kind != "date"
    )


def test_the_order_of_day_and_month_can_be_given():
    texts = ["03/04/2021", "05/06/2021", "01/02/2022", "2021-08-09"]
    cells = Cells.of("day", texts)
    days = {}
    for kind in (DAY_FIRST, MONTH_FIRST):
        encoder, _ = fit_column(cells, kind)
        assert encoder.kind == "date"
        days[kind] = [days_of(text, encoder.form) for text in texts]
    assert days[DAY_FIRST][0] == days_of("2021-04-03", "year first")
    assert days[MONTH_FIRST][0] == days_of("2021-03-04", "year first")
    assert days[DAY_FIRST][3] == days[MONTH_FIRST][3]
