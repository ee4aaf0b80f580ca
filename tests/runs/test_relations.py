"""Several relations: those that say something about the classes are found and used."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from make_fraud import make_fraud_case
from sklearn.metrics import average_precision_score

from dcgst import GCN, Columns, Ensemble, InputError, fit, open_run, read
from dcgst.insight import write_report
from dcgst.methods.relations import combine_relations, weigh_relations
from dcgst.runs.apply import read_other
from tests.cli.helpers import dcgst


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return make_fraud_case(tmp_path_factory.mktemp("fraud"))


@pytest.fixture(scope="module")
def run(case):
    return fit(read(case.nodes, case.edges), case.nodes.parent / "run", Ensemble(device="cpu"))


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


def test_the_report_lists_them(run):
    page = write_report(run).read_text()
    assert "Which relations are used?" in page
    assert "are used (device): they predict left-out labels better" in page


def test_without_the_kinds_of_edges_they_are_not_found(case):
    data = read(case.nodes, case.edges, Columns(edge_type="none"))
    assert not data.relations
    fitted = Ensemble(device="cpu").fit(data.graph)
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
    with (
        pytest.warns(UserWarning, match="edges of kind loop, ring are not used"),
        pytest.raises(InputError, match=r"relations loop, ring is one of those .* uses: device"),
    ):
        run.predict(case.nodes, other)
    one = [line for line in lines if ",device," in line]
    other.write_text("\n".join([lines[0], *one]))
    found = [row["p(fraud)"] for row in run.predict(case.nodes, other)]
    assert found == p.tolist(), "the other kinds are left out anyway"


def test_runs_without_relations_use_all_edges(case, tmp_path):
    columns = Columns(edge_type="none")
    plain = fit(read(case.nodes, case.edges, columns), tmp_path / "run", GCN(epochs=2, hidden=4))
    assert plain.relations == []
    assert len(plain.predict(case.nodes, case.edges)) == 2000


def write_kinds(folder, kinds_of_edge, *, seed=0, shuffled=False, labels=8):
    """Three classes with homophilous edges, whose kinds a function chooses."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 600)
    x = 0.5 * np.eye(3)[y] + rng.normal(size=(600, 3))
    chosen = np.concatenate([np.flatnonzero(y == c)[:labels] for c in range(3)])
    rows = [
        f"n{i:03d},{x[i, 0]:.4f},{x[i, 1]:.4f},{x[i, 2]:.4f},{'abc'[y[i]] if i in chosen else ''}"
        for i in range(600)
    ]
    edges = []
    for _ in range(4000):
        i, same = rng.integers(600), rng.random() < 0.4
        j = rng.choice(np.flatnonzero(y == y[i])) if same else rng.integers(600)
        edges.append(f"n{i:03d},n{j:03d},{kinds_of_edge(rng, same)}")
    if shuffled:
        rows, edges = list(rng.permutation(rows)), list(rng.permutation(edges))
    (folder / "n.csv").write_text("\n".join(["id,x,y,z,label", *rows]))
    (folder / "e.csv").write_text("\n".join(["source,target,type", *edges]))
    return read(folder / "n.csv", folder / "e.csv")


def weights_of(data) -> dict[str, float]:
    found = weigh_relations(data.graph, data.relations, data.graph.labels >= 0)
    return {relation.name: relation.weight for relation in found}


@pytest.mark.parametrize("labels", [8, 40])
def test_kinds_without_meaning_change_nothing(tmp_path, labels):
    for seed in range(3):
        data = write_kinds(
            tmp_path, lambda rng, _: rng.choice(["p", "q", "r"]), seed=seed, labels=labels
        )
        weights = weights_of(data)
        assert weights == {"p": 1.0, "q": 1.0, "r": 1.0}
        assert combine_relations(data.relations, weights) is None


def test_two_kinds_that_matter_are_both_used(tmp_path):
    def kind(rng, same):
        return rng.choice(["p", "q"]) if same else rng.choice(["r", "s"])

    weights = weights_of(write_kinds(tmp_path, kind, labels=40))
    assert weights["p"] > 0.5
    assert weights["q"] > 0.5
    assert weights["r"] == weights["s"] == 0


def test_weights_do_not_depend_on_the_order_of_rows(tmp_path):
    def kind(rng, same):
        return rng.choice(["p", "q"]) if same else "r"

    found = [
        weights_of(write_kinds(tmp_path / str(shuffled), kind, labels=150, shuffled=shuffled))
        for shuffled in (False, True)
    ]
    assert found[0] == found[1]


def test_a_column_cannot_have_two_roles(case):
    with pytest.raises(InputError, match=r"column 'source' of .* cannot have two roles"):
        read(case.nodes, case.edges, Columns(edge_type="source"))


def test_the_command_prints_the_relations(case, tmp_path):
    done = dcgst("fit", case.nodes, case.edges, "-o", tmp_path / "run", "--method", "em")
    assert done.code == 0, done.err
    assert "relation: column 'type'" in done.err
    assert "are used (device): they predict left-out labels better." in done.words
    assert "relation device: " in done.out
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
    # a: sum 2, two connected nodes, mean 1; b: sum 16, three connected nodes, mean 16 / 3
    expected = a.toarray() + b.toarray() * 0.5 * 3 / 16
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    only = combine_relations({"a": a, "b": b}, {"a": 0.0, "b": 1.0})
    np.testing.assert_array_equal(only.toarray(), b.toarray())
    assert combine_relations({"a": a, "b": b}, {"a": 1.0, "b": 1.0}) is None


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
    assert any(note.startswith("weights are skewed: logarithms") for note in data.notes)


def test_a_refit_keeps_the_weighted_edges(case, run, tmp_path):
    more = tmp_path / "more.csv"
    more.write_text("id,label\na00000,ok\n")
    again = fit(run, tmp_path / "again", GCN(epochs=2, hidden=4), labels=[more])
    np.testing.assert_array_equal(again.graph.adjacency.data, run.graph.adjacency.data)
    assert again.relations == run.relations
    assert len(again.predict(case.nodes, case.edges)) == 2000


def test_the_scale_of_weights_is_that_of_the_fit(tmp_path):
    rows = [f"{i},{i},{'ab'[i % 2] if i < 6 else ''}" for i in range(22)]
    (tmp_path / "n.csv").write_text("\n".join(["id,x,label", *rows]))
    edges = [f"{i},{i + 1},{10 if i else 1e7}" for i in range(21)]
    (tmp_path / "e.csv").write_text("\n".join(["source,target,weight", *edges]))
    run = fit(read(tmp_path / "n.csv", tmp_path / "e.csv"), tmp_path / "run", GCN(epochs=2))
    (tmp_path / "e.csv").write_text("\n".join(["source,target,weight", *edges[1:]]))
    data = read_other(run, tmp_path / "n.csv", tmp_path / "e.csv", None, False)
    assert data.graph.adjacency[1, 2] == pytest.approx(1), "not 10, although nothing is skewed now"


def test_one_time_in_the_far_future_does_not_age_all_edges(tmp_path):
    rows = [f"{i},{i},{'ab'[i % 2] if i < 6 else ''}" for i in range(202)]
    (tmp_path / "n.csv").write_text("\n".join(["id,x,label", *rows]))
    edges = [f"{i},{i + 1},2024-01-0{1 + i % 9}" for i in range(200)]
    (tmp_path / "e.csv").write_text("\n".join(["source,target,when", *edges, "200,201,2199-12-31"]))
    graph = read(tmp_path / "n.csv", tmp_path / "e.csv", Columns(edge_time="when")).graph
    assert graph.adjacency.data.min() > 0.9
    with pytest.raises(
        InputError, match="the half-life must be a finite number of days above 0, got 0"
    ):
        Columns(half_life=0)


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (["a", ""], r"e.csv, line 3: the relation in column 'type' is missing"),
        (["a", "A"], "the relations 'A' and 'a' differ in letter case only"),
        ([f"k{i}" for i in range(40)], "there are 40 relations, at most 20 are possible"),
    ],
)
def test_mistakes_in_kinds_of_edges(tmp_path, kinds, message):
    rows = [f"{i},{i},{'ab'[i % 2] if i < 6 else ''}" for i in range(82)]
    (tmp_path / "n.csv").write_text("\n".join(["id,x,label", *rows]))
    edges = [f"{i},{i + 1},{kinds[i % len(kinds)]}" for i in range(81)]
    (tmp_path / "e.csv").write_text("\n".join(["source,target,type", *edges]))
    with pytest.raises(InputError, match=message):
        read(tmp_path / "n.csv", tmp_path / "e.csv", Columns(edge_type="type"))


def test_a_half_life_needs_times(case):
    done = dcgst("diagnose", case.nodes, case.edges, "--half-life", 30)
    assert done.code == 2
    assert "--half-life has no effect without --edge-time COLUMN" in done.err


def test_an_unknown_kind_of_edges_changes_nothing():
    """Edges that the fit did not have are left out; the others keep their weights."""
    a, b, c = (
        sp.csr_array(np.array(rows, dtype=np.float32))
        for rows in (
            [[0, 1, 0], [1, 0, 0], [0, 0, 0]],
            [[0, 0, 0], [0, 0, 5], [0, 5, 0]],
            [[0, 0, 1], [0, 0, 0], [1, 0, 0]],
        )
    )
    weights = {"a": 1.0, "b": 1.0}
    found = combine_relations({"a": a, "b": b, "c": c}, weights).toarray()
    np.testing.assert_array_equal(found, (a + b).toarray())
