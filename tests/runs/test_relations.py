"""Several kinds of edges: those that say something about the classes are found and used."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import average_precision_score

from dcgst import DCGST, EM, Columns, InputError, fit, open_run, read
from dcgst.methods.relations import combine_relations
from tests.cli.helpers import dcgst
from tests.fraud import make_fraud_case


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return make_fraud_case(tmp_path_factory.mktemp("fraud"))


@pytest.fixture(scope="module")
def run(case):
    return fit(read(case.nodes, case.edges), case.nodes.parent / "run", DCGST(device="cpu"))


def test_fraud_rings_are_found_in_one_of_three_kinds_of_edges(case, run):
    rest = ~case.labeled
    proba = run.result.proba[rest, run.graph.class_names.index("fraud")]
    assert average_precision_score(case.fraud[rest], proba) >= 0.9
    assert (proba > 0.5).sum() <= 2 * case.fraud[rest].sum()


def test_the_weights_say_which_kind_matters(run):
    found = {relation.name: relation for relation in run.relations}
    assert set(found) == {"device", "same_city", "transfer"}
    assert found["device"].weight == 1
    assert found["transfer"].weight == found["same_city"].weight == 0
    assert found["transfer"].coverage > 0.9
    assert "left out" in found["transfer"].describe()
    assert open_run(run.folder).relations == run.relations


def test_without_the_kinds_of_edges_they_are_not_found(case):
    data = read(case.nodes, case.edges, Columns(edge_type="none"))
    assert not data.relations
    fitted = DCGST(device="cpu").fit(data.graph)
    rest = ~case.labeled
    proba = fitted.proba_[rest, data.graph.class_names.index("fraud")]
    assert average_precision_score(case.fraud[rest], proba) < 0.6


def test_another_graph_is_predicted_with_the_same_weights(case, run):
    rows = run.predict(case.nodes, case.edges)
    p = np.array([row["p(fraud)"] for row in rows])
    rest = ~case.labeled
    assert average_precision_score(case.fraud[rest], p[rest]) > 0.6
    lines = case.edges.read_text().splitlines()
    other = case.nodes.parent / "other.csv"
    kinds = ["ring", "loop"]
    renamed = [f"{line.rsplit(',', 2)[0]},{kinds[i % 2]},1" for i, line in enumerate(lines[1:])]
    other.write_text("\n".join([lines[0], *renamed]))
    with pytest.raises(InputError, match=r"none of the relations loop, ring is one of .*: device"):
        run.predict(case.nodes, other)


def test_the_command_prints_the_relations(case, tmp_path):
    done = dcgst("fit", case.nodes, case.edges, "-o", tmp_path / "run", "--method", "em")
    assert done.code == 0, done.err
    assert "kind of edges: column 'type'" in done.err
    assert "Relation device: " in done.out
    assert "left out" in done.out
    shown = dcgst(
        "fit", case.nodes, case.edges, "-o", tmp_path / "json", "--method", "em", "--json"
    )
    facts = json.loads(shown.out)
    assert [relation["name"] for relation in facts["relations"]] == [
        "device",
        "same_city",
        "transfer",
    ]


def test_matrices_are_combined_by_weight_and_mean_degree():
    a = sp.csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=np.float32))
    b = sp.csr_array(np.array([[0, 4, 0], [4, 0, 4], [0, 4, 0]], dtype=np.float32))
    found = combine_relations({"a": a, "b": b}, {"a": 1.0, "b": 0.5}).toarray()
    # a: two connected nodes, sum 2, factor 1; b: three connected nodes, sum 16, factor 0.5 * 3 / 16
    expected = a.toarray() + b.toarray() * 0.5 * 3 / 16
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert combine_relations({"a": a, "b": b}, {"a": 0.0, "b": 1.0}) is b


def test_older_edges_count_less(tmp_path):
    (tmp_path / "n.csv").write_text(
        "id,x,label\n" + "".join(f"{i},{i},{'ab'[i % 2]}\n" for i in range(4))
    )
    (tmp_path / "e.csv").write_text(
        "source,target,when\n0,1,2024-01-01\n1,2,2024-01-11\n2,3,2023-12-22\n"
    )
    columns = Columns(edge_time="when", half_life=10)
    data = read(tmp_path / "n.csv", tmp_path / "e.csv", columns)
    assert data.graph.adjacency[1, 2] == 1
    assert data.graph.adjacency[0, 1] == pytest.approx(0.5)
    assert data.graph.adjacency[2, 3] == pytest.approx(0.25)
    assert "edges count half after 10 days, by 'when'" in data.notes
    (tmp_path / "e.csv").write_text(
        "source,target,when\n0,1,2024-01-01\n1,2,soon\n2,3,2024-01-02\n"
    )
    with pytest.raises(
        InputError, match=r"e.csv, line 3: the time in column 'when' cannot be read"
    ):
        read(tmp_path / "n.csv", tmp_path / "e.csv", columns)


def test_skewed_weights_become_logarithms(tmp_path):
    (tmp_path / "n.csv").write_text(
        "id,x,label\n" + "".join(f"{i},{i},{'ab'[i % 2]}\n" for i in range(22))
    )
    rows = [f"{i},{i + 1},{10 if i else 1e7}" for i in range(21)]
    (tmp_path / "e.csv").write_text("\n".join(["source,target,weight", *rows]))
    data = read(tmp_path / "n.csv", tmp_path / "e.csv")
    assert data.graph.adjacency[1, 2] == pytest.approx(1)
    assert data.graph.adjacency[0, 1] == pytest.approx(np.log2(1 + 1e6), rel=1e-5)
    assert any(note.startswith("weights: logarithms") for note in data.notes)


def test_a_refit_keeps_the_weighted_edges(case, run, tmp_path):
    again = fit(run, tmp_path / "again", EM())
    np.testing.assert_array_equal(again.graph.adjacency.data, run.graph.adjacency.data)
