"""How much columns count, and what is said about them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dcgst.graph import Graph
from dcgst.methods.gaussian_process import GaussianProcess
from dcgst.splits import sample
from dcgst.tables import encoders as fitting
from dcgst.tables.encoders import fit_encoder

from .conftest import make_table

WORDS = [f"{a}{b}{c}" for a in "bdfgklmnpr" for b in "aeiou" for c in "tsnmlrkpdb"]


def some_columns(rng: np.random.Generator, rows: int, words: int) -> dict[str, list[str]]:
    """A number, a flag, a category, a date, and a text with so many words."""
    texts = [" ".join(rng.choice(WORDS[:words], 5)) for _ in range(rows)]
    return {
        "size": [f"{value:.4f}" if value > -1 else "" for value in rng.normal(size=rows)],
        "on": [("no", "yes")[value] for value in rng.integers(0, 2, rows)],
        "color": [("red", "green", "blue")[value] for value in rng.integers(0, 3, rows)],
        "day": [
            f"2024-{value // 28 + 1:02}-{value % 28 + 1:02}" for value in rng.integers(0, 300, rows)
        ],
        "note": texts,
    }


@pytest.mark.parametrize("words", [10, 500])
def test_all_columns_have_the_same_total_variance(rng, words):
    table = make_table(**some_columns(rng, 300, words))
    encoder = fit_encoder(table, table.names, {"note": "text"})
    assert len(encoder.columns) == 5
    for column in encoder.columns:
        block = column.transform(table.column(column.name)).toarray()
        assert block.var(axis=0).sum() == pytest.approx(1, rel=1e-6), column.name


def test_weights_do_not_depend_on_the_order_of_rows(rng):
    columns = some_columns(rng, 300, 100)
    order = rng.permutation(300)
    mixed = {name: [values[row] for row in order] for name, values in columns.items()}
    one, other = (fit_encoder(make_table(**own), list(own), {}) for own in (columns, mixed))
    assert [column.weight for column in one.columns] == [column.weight for column in other.columns]


def test_weights_of_many_rows_are_those_of_some(rng, monkeypatch):
    table = make_table(**some_columns(rng, 2000, 30))
    exact = fit_encoder(table, table.names, {}).columns
    monkeypatch.setattr(fitting, "MOST_ROWS", 500)
    for own, other in zip(exact, fit_encoder(table, table.names, {}).columns, strict=True):
        assert own.weight == pytest.approx(other.weight, rel=0.05), own.name


def test_a_column_that_differs_in_few_rows_does_not_outweigh_all_others():
    (column,) = fit_encoder(make_table(rare=["1"] * 2 + ["0"] * 2000), ["rare"], {}).columns
    assert column.weight == fitting.MOST_WEIGHT


def test_a_column_of_random_words_leaves_the_accuracy_of_nine_numbers(rng):
    n = 600
    truth = rng.integers(0, 3, n)
    numbers = rng.normal(size=(3, 9))[truth] + 1.5 * rng.normal(size=(n, 9))
    columns = {f"x{j}": [f"{value:.4f}" for value in own] for j, own in enumerate(numbers.T)}
    words = rng.integers(0, 500, (n, 8))
    texts = {"words": [" ".join(WORDS[word] for word in own) for own in words]}
    pairs = rng.integers(0, n, (2, 6000))
    pairs = pairs[:, (truth[pairs[0]] == truth[pairs[1]]) | (rng.random(6000) < 0.3)]
    accuracy = []
    for table in (make_table(**columns), make_table(**columns, **texts)):
        features = fit_encoder(table, table.names, {}).transform(table)
        graph = replace(Graph.from_edges(pairs, features, truth), columns_weighted=True)
        split = sample(graph, per_class=10, runs=5, val_count=0)
        results = GaussianProcess().fit_runs(graph, split)
        right = [result.proba.argmax(axis=1) == truth for result in results]
        accuracy.append(
            np.mean([own[pool].mean() for own, pool in zip(right, split.pool, strict=True)])
        )
    assert features.shape == (n, 509)
    assert accuracy[0] > 0.7
    assert accuracy[1] == pytest.approx(accuracy[0], abs=0.01)


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
