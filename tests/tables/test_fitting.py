"""Encoders are fitted to columns. Expected numbers are worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from dcgst.errors import InputError
from dcgst.tables.encoders import (
    FeatureEncoder,
    FlagEncoder,
    NumberEncoder,
    TokenEncoder,
    fit_encoder,
)

from .conftest import make_table


def fit_column(values: list[str], kind: str | None = None, name: str = "x") -> FeatureEncoder:
    """Fit an encoder to a table with a single column, and remove its weight."""
    found = fit_encoder(make_table(**{name: values}), [name], {name: kind} if kind else {})
    return replace(found, columns=tuple(replace(own, weight=1.0) for own in found.columns))


def features(encoder: FeatureEncoder, values: list[str]) -> np.ndarray:
    """Return the features of the single column ``x`` as a dense array."""
    matrix = encoder.transform(make_table(x=values))
    return matrix.toarray() if sp.issparse(matrix) else matrix


# --- numbers ------------------------------------------------------------------------------------


def test_numbers_have_mean_0_and_standard_deviation_1():
    values = ["2", "6", "2", "6"]  # mean 4, variance 4, standard deviation 2
    encoder = fit_column(values)
    assert encoder.columns == (NumberEncoder("x", "number", mean=4, std=2),)
    assert features(encoder, [*values, ""]).tolist() == [[-1], [1], [-1], [1], [0]]
    assert encoder.notes == ("feature x: number, standardized",)


def test_missing_values_become_a_feature():
    values = ["2", "6", "", "2", "6"]
    encoder = fit_column(values)
    assert features(encoder, values).tolist() == [[-1, 0], [1, 0], [0, 1], [-1, 0], [1, 0]]
    assert encoder.notes == (
        "feature x: number, standardized, missing values: 1 (a feature of their own)",
    )


def test_zeros_and_ones_stay_unchanged():
    values = ["0", "1", "0", "1.0"]
    encoder = fit_column(values, "number")
    assert encoder.columns == (FlagEncoder("x", "flag"),)
    assert features(encoder, values).tolist() == [[0], [1], [0], [1]]
    assert fit_column(["0", "1"]).notes == ("feature x: yes or no",)


def test_words_for_true_and_false():
    encoder = fit_column(["Yes", "no", "NO", "yes"])
    assert features(encoder, ["yes", "no", "YES", "other"]).tolist() == [[1], [0], [1], [0]]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["7", "7", "7"], "all values are equal"),
        (["7", "7.0", "7.00"], "all values are equal"),
        (["a", "a", "a"], "all values are equal"),
        (["", "", ""], "all values are missing"),
    ],
)
def test_constant_and_empty_columns_are_not_used(values, reason):
    encoder = fit_column(values)
    assert encoder.columns == ()
    assert encoder.notes == (f"feature x: not used: {reason}",)


@pytest.mark.parametrize(
    ("values", "used"),
    [
        (["1000000000", "1000000000.0001"], False),  # std 5e-5, limit 1e-12 * 1e9 = 1e-3
        (["1000000000", "1000000001"], True),  # std 0.5
        (["1e-13", "2e-13"], True),  # the scale does not matter
        (["1e-100", "1.0000000000001e-100"], False),
        (["1e-10", "2e-10"], True),  # std 5e-11
        (["-3", "3"], True),  # mean 0, so the limit is 0
        (["1", "1.000000000003"], True),  # std 1.5e-12, limit 1e-12
        (["1", "1.000000000001"], False),  # std 5e-13
    ],
)
def test_numbers_that_differ_only_by_rounding_errors_are_not_used(values, used):
    assert bool(fit_column(values).columns) == used


def test_money_and_decimal_commas_are_numbers():
    encoder = fit_column(["$1,000.00", "$3,000.00"])
    assert features(encoder, ["$2,000", "4,000.00", "3.000,00 €"]).tolist() == [[0], [2], [0]]
    assert encoder.notes == ("feature x: number in $, standardized",)
    encoder = fit_column(["0,5", "1,5", "2"])
    assert encoder.columns[0].mean == pytest.approx(4 / 3)
    assert encoder.notes == ("feature x: number with decimal commas, standardized",)


def test_units_of_the_same_quantity_are_converted():
    assert features(fit_column(["1 kg", "3 kg"]), ["2000 g", "2 m"]).tolist() == [[0], [0]]


def test_skewed_numbers_are_replaced_by_logarithms():
    values = [str(2**k) for k in range(20)]
    encoder = fit_column(values)
    assert encoder.columns[0].log
    np.testing.assert_allclose(features(encoder, values).mean(), 0, atol=1e-6)
    median = (2**9 + 2**10) / 2
    logarithms = np.log1p(2.0 ** np.arange(20) / median)
    expected = (math.log1p(8 / median) - logarithms.mean()) / logarithms.std()
    assert features(encoder, ["8"])[0, 0] == pytest.approx(expected, rel=1e-6)
    assert "logarithm" in encoder.notes[0]
    assert not fit_column([f"-{value}" for value in values]).columns[0].log, "negative numbers"


def test_values_that_are_not_numbers_count_as_missing_and_are_named():
    values = [str(1.5 * number) for number in range(90)]
    values[7], values[8] = "n.a.", "?"
    encoder = fit_column(values)
    assert encoder.columns[0].kind == "number"
    assert features(encoder, ["?"]).tolist() == [[0]]
    assert encoder.notes == (
        "feature x: number, standardized; 2 values cannot be read, like 'n.a.' in line 9; they "
        "count as missing",
    )


def test_a_given_kind_that_most_values_do_not_have_is_an_error():
    with pytest.raises(InputError, match=r"line 2: column 'x' should contain numbers, got 'Rome'"):
        fit_column(["Rome", "Oslo", "7"], "number")
    with pytest.raises(InputError, match=r"line 3: .* should contain dates, got 'b', and 2 other"):
        fit_column(["2024-01-01", "b", "c", "2024-05-01", "d"], "date")


# --- dates ---------------------------------------------------------------------------------------


def test_dates_become_elapsed_time_and_positions_on_circles():
    encoder = fit_column(["2024-01-01", "2024-07-01", "2024-01-08", "2024-12-31"])
    (column,) = encoder.columns
    assert column.parts == ("year", "week")
    found = features(encoder, ["2024-01-01", "2024-01-08", "2024-07-01", ""])
    np.testing.assert_allclose(found[0, 3:], found[1, 3:], atol=1e-6)  # both are Mondays
    np.testing.assert_allclose(np.linalg.norm(found[:3, 1:3], axis=1), 1, rtol=1e-6)
    assert found[0, 1:3] @ found[2, 1:3] < -0.99, "January and July are opposite"
    assert (found[3] == 0).all()
    days = (found[1, 0] - found[0, 0]) * column.std / column.weight
    assert days == pytest.approx(7, rel=1e-4)
    assert encoder.notes == (
        "feature x: date (year first): elapsed time, time of year, day of week",
    )


# --- categories ---------------------------------------------------------------------------------


def test_categories_are_encoded_one_hot():
    encoder = fit_column(["red", "blue", "red", "blue"])
    assert encoder.columns == (TokenEncoder("x", "category", "value", values=("blue", "red")),)
    assert features(encoder, ["red", "green", "", "blue", "Red"]).tolist() == [
        [0, 1],
        [0, 0],
        [0, 0],
        [1, 0],
        [0, 0],
    ]
    assert encoder.notes == ("feature x: category, 2 values",)


def test_a_value_in_some_rows_only_is_a_flag():
    assert features(fit_column(["a", "", "a"]), ["a", "", "b"]).tolist() == [[1], [0], [1]]


def test_up_to_50_distinct_values_are_guessed_to_be_categories():
    names = [f"n{'abcdefghij'[i // 10]}{'abcdefghij'[i % 10]}" for i in range(51)]
    assert fit_column(2 * names[:50]).columns[0].kind == "category"
    assert fit_column(2 * names).columns[0].kind == "string"
    assert fit_column(5 * names).columns[0].kind == "category", "five rows for each value"


def test_the_1000_most_frequent_categories_become_features():
    names = [f"n{number:04d}" for number in range(1001)]
    more = fit_column([*names, *names, *names[1:]], "category")
    assert more.columns[0].values == tuple(names[1:])
    assert more.notes == ("feature x: category, 1,000 values, rare values ignored: 1",)


# --- codes and lists ------------------------------------------------------------------------------


def test_codes_share_their_beginnings():
    encoder = fit_column(["02139", "02140", "94110", "94117", "02139"], name="zip")
    found = encoder.transform(make_table(zip=["02139", "02199", "94110"])).toarray()
    similar = found @ found.T
    assert similar[0, 1] > similar[0, 2] == 0


def test_lists_are_sets_of_items():
    encoder = fit_column(["red|blue", "blue", "green|red", "red|green|blue", "blue|green", "green"])
    assert encoder.columns[0].values == ("blue", "green", "red")
    found = features(encoder, ["red|blue", "BLUE|Red"])
    np.testing.assert_allclose(found[0], found[1])


def test_short_texts_with_similar_spellings_are_similar():
    titles = ["Senior Engineer", "Sr. Engineer", "Enginer", "Sales Manager", "Sales Mgr"]
    found = features(fit_column(titles), ["Engineer", "Enginer", "Sales"])
    similar = found @ found.T
    assert similar[0, 1] > 0.5 > similar[0, 2]


# --- text ---------------------------------------------------------------------------------------

TEXTS = ["Red red cat", "red dog", "red CAT!", "dog a"]


def test_text_is_encoded_as_tf_idf_with_smoothed_idf():
    encoder = fit_column(TEXTS, "text")
    # n = 4 rows; document frequency: cat 2, dog 2, red 3; idf = ln((1 + n) / (1 + df)) + 1
    cat = dog = math.log(5 / 3) + 1
    red = math.log(5 / 4) + 1
    assert encoder.columns[0].values == ("cat", "dog", "red")
    assert encoder.columns[0].idf == pytest.approx((cat, dog, red), rel=1e-15)
    np.testing.assert_allclose(
        features(encoder, [*TEXTS, "", "unseen words"]),
        [
            np.array([cat, 0, 2 * red]) / math.hypot(cat, 2 * red),
            np.array([0, dog, red]) / math.hypot(dog, red),
            np.array([cat, 0, red]) / math.hypot(cat, red),
            [0, 1, 0],
            [0, 0, 0],
            [0, 0, 0],
        ],
        rtol=1e-6,
    )
    # The first row in numbers: (1.5108, 0, 2 * 1.2231) / 2.8752
    assert features(encoder, TEXTS)[0] == pytest.approx([0.52546, 0, 0.85081], abs=1e-4)
    assert encoder.notes == ("feature x: text, 3 words",)


def test_words_are_two_or_more_letters_digits_or_underscores_in_lower_case():
    texts = ["Größe naïve-x snake_case 数据集 12 y", "GRÖßE NAÏVE Snake_Case 数据集! 12,7 y", "x"]
    words = ("12", "größe", "naïve", "snake_case", "据集", "数据")
    assert fit_column(texts, "text").columns[0].values == words


def test_words_in_at_least_2_rows_and_at_most_90_percent_of_rows_are_used():
    rows = [["filler"] for _ in range(10)]
    for word, df in {"one": 1, "two": 2, "nine": 9, "ten": 10}.items():
        for row in rows[:df]:
            row.append(word)
    texts = [" ".join(row).replace("filler", f"filler{i}") for i, row in enumerate(rows)]
    assert fit_column(texts, "text").columns[0].values == ("nine", "two")


def test_text_without_common_words_is_not_used():
    encoder = fit_column(["one two three", "four five six", "seven eight nine"], "text")
    assert encoder.columns == ()
    assert encoder.notes == (
        "feature x: not used: no word is in at least 2 rows and at most 90% of the rows",
    )


def test_the_1000_words_in_the_most_rows_become_features():
    words = [f"w{number:04d}" for number in range(1001)]
    empty = [""] * 8

    def chosen(*texts: str) -> tuple[str, ...]:
        return fit_column([*texts, *empty], "text").columns[0].values

    exact = " ".join(words[:1000])
    assert chosen(exact, exact) == tuple(words[:1000])
    every = " ".join(words)
    assert chosen(every, every) == tuple(words[:1000]), "ties are resolved in alphabetical order"
    # w1000 is in three rows. w0999 is in two rows, but occurs most often.
    often = every + 50 * " w0999"
    assert chosen(often, often, "w1000") == (*words[:999], "w1000")


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("category", ["a", "b"] * 4, "category, 2 values"),
        ("text", ["red fox", "blue fox"] * 4, "text, "),
        ("list", ["a|b", "b|c"] * 4, "list, 2 items"),  # b is in all rows
        ("code", ["A-1", "A-2", "B-1", "B-2"] * 4, "code ("),
        ("string", ["anna", "anne"] * 4, "short texts, "),
    ],
)
def test_columns_of_texts_are_described_by_their_kind(kind, values, expected):
    (column,) = fit_column(values, kind).columns
    assert isinstance(column, TokenEncoder)
    assert column.describe().startswith(expected)
