"""Kinds of edges that say opposite things: each gets features of its own."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dcgst import Columns, Ensemble, fit, open_run, read
from dcgst.methods.relations import add_relation_features

KINDS = (("friend", 0.85), ("trade", 0.15), ("random", 0.5))


def opposing(folder, seed, count=600, labels=60) -> np.ndarray:
    """Tables of two classes: friends are mostly of the same class, trades mostly not."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 2, count)
    rows = ["id,a,b,label"]
    for i, own in enumerate(classes):
        label = "xy"[own] if i < labels else ""
        rows.append(f"n{i},{rng.normal() + 0.6 * own:.3f},{rng.normal() - 0.6 * own:.3f},{label}")
    edges = ["source,target,type"]
    for kind, same in KINDS:
        found = 0
        while found < 3 * count:
            i, j = rng.integers(0, count, 2)
            if i != j and rng.random() < (same if classes[i] == classes[j] else 1 - same):
                edges.append(f"n{i},n{j},{kind}")
                found += 1
    (folder / "nodes.csv").write_text("\n".join(rows))
    (folder / "edges.csv").write_text("\n".join(edges))
    return classes


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("opposing")
    return folder, opposing(folder, seed=1)


@pytest.fixture(scope="module")
def run(tables):
    folder, _ = tables
    return fit(read(folder / "nodes.csv", folder / "edges.csv"), folder / "run", Ensemble())


def test_they_are_kept_apart_and_help(tables, run):
    folder, classes = tables
    kept = {own.name for own in open_run(run.folder).relations if own.own_features}
    assert kept == {"friend", "trade"}
    columns = Columns(edge_type="none")
    alike = fit(read(folder / "nodes.csv", folder / "edges.csv", columns), folder / "a", Ensemble())
    pool = run.split.pool[0]
    apart, together = ((r.result.labels == classes)[pool].mean() for r in (run, alike))
    assert apart > together + 0.08
    assert run.graph.num_features == 3 * alike.graph.num_features


def test_another_graph_gets_the_same_features(tables, run):
    folder, _ = tables
    stored = open_run(run.folder)
    found = stored.predict_other(folder / "nodes.csv", folder / "edges.csv")
    pool = stored.split.pool[0]
    np.testing.assert_allclose(
        found.predictions.result.proba[pool], stored.result.proba[pool], atol=1e-4
    )
    assert not found.drift


def test_means_over_the_neighbors_of_each_relation():
    x = np.array([[1.0], [2.0], [4.0]], dtype=np.float32)
    one = sp.csr_array(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=np.float32))
    two = sp.csr_array(np.array([[0, 0, 0], [0, 0, 2], [0, 2, 0]], dtype=np.float32))
    expected = [[1, 3, 0], [2, 1, 4], [4, 1, 2]]
    found = add_relation_features(x, {"one": one, "two": two})
    assert found.tolist() == expected
    sparse = add_relation_features(sp.csr_array(x), {"one": one, "two": two})
    assert sparse.toarray().tolist() == expected
