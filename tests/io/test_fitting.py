"""Encoders are fitted to columns. Expected numbers are worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from dcgst.errors import InputError
from dcgst.io.features import ColumnEncoder, FeatureEncoder
from dcgst.io.fitting import fit_encoder

from .conftest import make_table


def fit_column(values: list[str], kind: str | None = None) -> FeatureEncoder:
    """Fit an encoder to a table with the single column ``x``."""
    return fit_encoder(make_table(x=values), ["x"], {"x": kind} if kind else {})


def features(encoder: FeatureEncoder, values: list[str]) -> np.ndarray:
    """Return the features of the single column ``x`` as a dense array."""
    matrix = encoder.transform(make_table(x=values))
    return matrix.toarray() if sp.issparse(matrix) else matrix


# --- numbers ------------------------------------------------------------------------------------


def test_numbers_have_mean_0_and_standard_deviation_1():
    values = ["2", "6", "", "2", "6"]  # mean 4, variance 4, standard deviation 2
    encoder = fit_column(values)
    assert encoder.columns == (ColumnEncoder("x", "number", mean=4, std=2),)
    assert features(encoder, values).tolist() == [[-1], [1], [0], [-1], [1]]
    assert encoder.notes == ("feature x: number, standardized, missing values set to the mean: 1",)


def test_zeros_and_ones_stay_unchanged():
    values = ["0", "1", "", "1.0"]
    encoder = fit_column(values)
    assert encoder.columns == (ColumnEncoder("x", "flag"),)
    assert features(encoder, values).tolist() == [[0], [1], [0], [1]]
    assert encoder.notes == ("feature x: binary (0 or 1), missing values set to 0: 1",)
    assert fit_column(["0", "1"]).notes == ("feature x: binary (0 or 1)",)


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


def test_a_value_that_is_present_in_some_rows_only_is_a_category():
    assert features(fit_column(["a", "", "a"]), ["a", "", "b"]).tolist() == [[1], [0], [0]]


def test_numbers_with_a_decimal_comma_are_not_used():
    encoder = fit_column([f"{number},5" for number in range(90)])
    assert encoder.columns == ()
    assert encoder.notes == (
        "feature x: not used: numbers with a decimal comma; write a decimal point instead",
    )
    with pytest.raises(InputError, match=r"line 2: column 'x' .* got '0,5'; write a decimal point"):
        fit_column(["0,5", "1,5", "2"], "number")


def test_a_column_of_numbers_with_few_other_values_names_the_first_of_them():
    values = [str(1.5 * number) for number in range(90)]
    values[7], values[8] = "n.a.", "?"
    assert fit_column(values).notes == (
        "feature x: not used: numbers except for values like 'n.a.' in line 9; fix them, or leave "
        "the cells empty",
    )


@pytest.mark.parametrize(
    ("num_names", "num_commas", "num_numbers", "reason"),
    [
        (1, 9, 0, "numbers with a decimal comma"),
        (2, 8, 0, "10 distinct values"),  # not more than 80 % with a decimal comma
        (1, 0, 9, "numbers except for values like 'n0'"),
        (2, 0, 8, "10 distinct values"),  # not less than 20 % that are not numbers
        (7, 0, 3, "10 distinct values"),
    ],
)
def test_the_reason_for_not_using_a_column_is_the_most_likely_one(
    num_names, num_commas, num_numbers, reason
):
    values = [f"n{number}" for number in range(num_names)]
    values += [f"{number},5" for number in range(num_commas)]
    values += [f"{number}.5" for number in range(num_numbers)]
    assert fit_column(values).notes[0].startswith(f"feature x: not used: {reason}")


# --- categories ---------------------------------------------------------------------------------


def test_categories_are_encoded_one_hot():
    encoder = fit_column(["red", "blue", "", "red", "blue"])
    assert encoder.columns == (ColumnEncoder("x", "category", values=("blue", "red")),)
    assert features(encoder, ["red", "green", "", "blue", "Red"]).tolist() == [
        [0, 1],
        [0, 0],
        [0, 0],
        [1, 0],
        [0, 0],
    ]
    assert encoder.notes == ("feature x: category, 2 values",)


def test_up_to_50_distinct_values_are_guessed_to_be_categories():
    names = [f"n{number:02d}" for number in range(51)]
    assert fit_column(2 * names[:50]).columns[0].values == tuple(names[:50])
    encoder = fit_column(2 * names)
    assert encoder.columns == ()
    assert encoder.notes == (
        "feature x: not used: 51 distinct values, too many for categories and too few words for "
        "text",
    )


def test_categories_are_guessed_if_each_value_occurs_twice_on_average():
    assert fit_column([*"abcde", *"abcde"]).columns[0].values == tuple("abcde")
    assert fit_column([*"abcde", *"abcd"]).columns == ()
    assert fit_column([*"abcde", *"abcd", "", ""]).columns == (), "missing values do not count"
    assert fit_column(["a", "b", ""]).columns[0].values == ("a", "b"), "two values always fit"
    assert fit_column(["a", "b", "c", ""]).columns == (), "three values need six rows"


def test_the_1000_most_frequent_categories_become_features():
    names = [f"n{number:04d}" for number in range(1001)]
    exact = fit_column(names[:1000], "category")
    assert exact.columns[0].values == tuple(names[:1000])
    assert exact.notes == ("feature x: category, 1000 values",)
    more = fit_column([*names, *names[1:]], "category")
    assert more.columns[0].values == tuple(names[1:])
    assert more.notes == ("feature x: category, 1000 values, rarer values ignored: 1",)


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
    assert encoder.notes == ("feature x: text, tf-idf of 3 words",)


def test_words_are_two_or_more_letters_digits_or_underscores_in_lower_case():
    texts = ["Größe naïve-x snake_case 数据 12 y", "GRÖßE NAÏVE Snake_Case 数据! 12,7 y", "x"]
    words = ("12", "größe", "naïve", "snake_case", "数据")
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


def test_text_is_guessed_if_values_have_three_words_on_average():
    def texts(num_words: int) -> list[str]:
        return [" ".join([f"first{i}", "red", "cat"][:num_words]) for i in range(4)] + [
            "blue car on"
        ]

    assert fit_column(texts(3)).columns[0].kind == "text"
    assert fit_column(texts(2)).columns == ()


# --- notes ---------------------------------------------------------------------------------------


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
