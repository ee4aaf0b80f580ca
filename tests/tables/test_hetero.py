"""PyG HeteroData with one labeled type of nodes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData

from dcgst import DCGST, InputError, fit, open_run, read

COUNT = 240


@pytest.fixture
def data() -> HeteroData:
    """Papers of two classes: authors write papers of one class, citations are random."""
    rng = np.random.default_rng(0)
    classes = np.arange(COUNT) % 2
    found = HeteroData()
    found["paper"].x = torch.tensor(rng.normal(size=(COUNT, 4)), dtype=torch.float32)
    found["paper"].y = torch.tensor(np.where(np.arange(COUNT) < 40, classes, -1))
    found["author"].x = torch.tensor(rng.normal(size=(60, 3)), dtype=torch.float32)
    wrote = [(2 * rng.integers(30) + classes[i], i) for i in range(COUNT) for _ in range(3)]
    found["author", "wrote", "paper"].edge_index = torch.tensor(np.array(wrote).T)
    cites = rng.integers(0, COUNT, (2, 600))
    found["paper", "cites", "paper"].edge_index = torch.tensor(cites)
    found["paper", "rev_wrote", "author"].edge_index = torch.tensor(np.array(wrote).T[::-1].copy())
    found["author", "knows", "author"].edge_index = torch.tensor([[0], [1]])
    return found


def test_relations_and_features(data):
    found = read(data)
    assert list(found.relations) == ["cites", "wrote (author)"]
    assert found.graph.num_features == 4 + 3
    assert "edges author knows author: not used" in found.notes
    authors = data["author", "wrote", "paper"].edge_index
    of_first = authors[0, authors[1] == 0].unique()
    expected = data["author"].x[of_first].mean(0)
    np.testing.assert_allclose(found.graph.features[0, 4:], expected, atol=1e-6)
    shared = found.relations["wrote (author)"]
    sizes = torch.bincount(torch.unique(authors, dim=1)[0], minlength=60)
    others = authors[1, torch.isin(authors[0], of_first)].unique()
    assert set(shared[[0]].indices) == set(others.tolist()) - {0}
    np.testing.assert_allclose(
        shared[[0]].sum(), sum(1.0 for a in of_first if sizes[a] > 1), rtol=1e-5
    )


def test_the_relation_that_tells_the_classes_is_found(data, tmp_path):
    run = fit(data, tmp_path / "run", DCGST(max_stages=2, epochs=30))
    weights = {relation.name: relation.weight for relation in open_run(run.folder).relations}
    assert weights["wrote (author)"] == 1
    assert weights["cites"] < 0.5
    pool = run.split.pool[0]
    right = run.result.labels == np.arange(COUNT) % 2
    assert right[pool].mean() > 0.85  # two classes


def test_a_stored_run_predicts_on_hetero_data(data, tmp_path):
    run = fit(data, tmp_path / "run", DCGST(max_stages=1, epochs=5))
    found = open_run(run.folder).predict_other(data).predictions.result.proba
    pool = run.split.pool[0]
    np.testing.assert_allclose(found[pool], run.result.proba[pool], atol=1e-4)


def test_without_features(data):
    del data["paper"].x, data["author"].x
    data["paper"].num_nodes, data["author"].num_nodes = COUNT, 60
    found = read(data)
    assert found.spectral
    assert found.graph.num_features == 64


def test_edges_of_both_directions_are_one_relation(data):
    """The two relations of a pair of types may have the same name in both directions."""
    wrote = data["author", "wrote", "paper"].edge_index
    del data["author", "wrote", "paper"], data["paper", "rev_wrote", "author"]
    data["author", "to", "paper"].edge_index = wrote[:, :400]
    data["paper", "to", "author"].edge_index = wrote[:, 400:].flip(0)
    found = read(data)
    assert found.graph.num_features == 4 + 3
    data["author", "to", "paper"].edge_index = wrote
    del data["paper", "to", "author"]
    assert (found.relations["to (author)"] != read(data).relations["to (author)"]).nnz == 0


def test_data_without_labels_or_with_one_relation_is_predicted(data, tmp_path):
    run = fit(data, tmp_path / "run", DCGST(max_stages=1, epochs=5))
    del data["paper"].y
    assert len(run.predict(data)) == COUNT
    del data["paper", "cites", "paper"]
    assert len(run.predict(data)) == COUNT


def test_mistakes_are_named(data):
    with pytest.raises(InputError, match=r"use dcgst.fit, or dcgst.read\(data\).graph"):
        DCGST().fit(data)
    data["author"].y = torch.zeros(60)
    with pytest.raises(
        InputError, match=r"exactly one node type must have labels .* paper, author"
    ):
        read(data)
    broken = data.clone()
    del broken["author"].y
    broken["paper", "cites", "paper"].edge_index = torch.tensor([[0], [COUNT]])
    with pytest.raises(InputError):
        read(broken)
    del data["author"].y, data["paper"].y
    with pytest.raises(InputError, match="found none; the node types are: paper, author"):
        read(data)


def test_a_file_with_edge_weights(data, tmp_path):
    edges = data["paper", "cites", "paper"]
    edges.edge_weight = torch.full((edges.edge_index.shape[1],), 2.5)
    torch.save(data, tmp_path / "papers.pt")
    found = read(tmp_path / "papers.pt")
    assert set(found.relations["cites"].data.tolist()) == {2.5}
    assert found.graph.num_nodes == COUNT
