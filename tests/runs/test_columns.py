"""Which columns the predictions have to do with, and weights of columns on other tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from dcgst import EM, fit, open_run, read
from dcgst.runs.predictions import ColumnUse, column_use, verdict
from dcgst.tables.encoders import FeatureEncoder, NumberEncoder, TokenEncoder


def write_tables(folder: Path, rng: np.random.Generator) -> tuple[Path, Path]:
    """Two classes that differ in ``income``; ``noise`` and ``name`` are random."""
    folder.mkdir()
    lines = ["id,label,income,noise,name"]
    truth = np.arange(200) % 2
    for node, label in enumerate(truth):
        name = " ".join(f"word{word}" for word in rng.integers(0, 60, 4))
        given = "ab"[label] if node < 40 else ""
        lines.append(f"n{node},{given},{rng.normal(3 * label):.3f},{rng.normal():.3f},{name}")
    (folder / "nodes.csv").write_text("\n".join(lines))
    pairs = rng.integers(0, 200, (2, 1200))
    pairs = pairs[:, truth[pairs[0]] == truth[pairs[1]]]
    edges = ["source,target", *(f"n{a},n{b}" for a, b in pairs.T)]
    (folder / "edges.csv").write_text("\n".join(edges))
    return folder / "nodes.csv", folder / "edges.csv"


def test_a_fit_says_in_which_columns_the_classes_differ(rng, tmp_path):
    run = fit(read(*write_tables(tmp_path / "one", rng)), tmp_path / "run", EM())
    used = {column.name: column.explained for column in open_run(run.folder).columns_used}
    assert next(iter(used)) == "income"
    assert used["income"] > 0.4
    assert max(used["noise"], used["name"]) < 0.04
    text = verdict(run.columns_used)
    assert text.startswith("The predicted classes differ most in the columns: income. Hardly")
    assert {"noise", "name"} == set(text.split(": ")[-1].split(", "))


def test_another_table_is_read_with_the_weights_of_the_fit(rng, tmp_path):
    run = fit(read(*write_tables(tmp_path / "one", rng)), tmp_path / "run", EM())
    nodes, edges = write_tables(tmp_path / "other", rng)
    encoder = FeatureEncoder.from_json(open_run(run.folder).info["encoder"])
    other = read(nodes, edges, encoder=encoder)
    assert other.encoder == encoder != read(nodes, edges).encoder
    assert other.graph.columns_weighted
    assert open_run(run.folder).graph.columns_weighted
    features = other.graph.features
    weights = {column.name: column.weight for column in encoder.columns}
    assert list(weights) == ["income", "name", "noise"]
    lengths = np.sqrt(features[:, 1:-1].power(2).sum(axis=1))
    np.testing.assert_allclose(lengths, weights["name"], rtol=1e-5)


def test_the_share_of_the_variance_is_that_between_classes():
    encoder = FeatureEncoder((NumberEncoder("x", "number"), NumberEncoder("y", "number")))
    features = np.array([[0, 1], [2, 1], [0, 3], [2, 3]] * 50, dtype=np.float32)
    classes = np.array([0, 0, 1, 1] * 50)
    expected = [ColumnUse("y", round(1 - 1 / 199, 4)), ColumnUse("x", 0.0)]
    assert column_use(encoder, features, classes) == expected
    assert column_use(encoder, sp.csr_array(features), classes) == expected


def test_random_categories_explain_nothing_however_many_there_are(rng):
    for count in (3, 100):
        values = tuple(f"v{number:03}" for number in range(count))
        encoder = FeatureEncoder((TokenEncoder("c", "category", "value", values=values),))
        features = sp.csr_array(np.eye(count, dtype=np.float32)[rng.integers(0, count, 2000)])
        (column,) = column_use(encoder, features, rng.integers(0, 5, 2000))
        assert column.explained < 0.005


@pytest.mark.parametrize("used", [[], [ColumnUse("x", 0.4)], [ColumnUse(n, 0.0) for n in "xy"]])
def test_nothing_is_said_where_there_is_nothing_to_compare(used):
    assert verdict(used) == ""


def test_at_most_three_names_are_listed():
    used = [ColumnUse(f"a{number}", 0.5) for number in range(4)]
    used += [ColumnUse(f"b{number}", 0.01) for number in range(5)]
    assert verdict(used) == (
        "The predicted classes differ most in the columns: a0, a1, a2. "
        "Hardly at all in: b4, b3, b2 and 2 more"
    )
