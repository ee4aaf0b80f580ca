"""Backbones: equal to their PyG counterparts, and replica by replica to themselves alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg

from dcgst.datasets import synthetic
from dcgst.engine.random import Streams
from dcgst.engine.sparse import SparseMatrix
from dcgst.errors import InputError
from dcgst.nn import BACKBONES, GAT, backbone
from dcgst.nn.base import features_on, receptive_field

D, HIDDEN, C = 12, 16, 3
NAMES = list(BACKBONES)


@pytest.fixture(scope="module")
def adjacency() -> SparseMatrix:
    graph = synthetic(60, C, features=D, degree=4, labels_per_class=2)
    return SparseMatrix.from_scipy(graph.adjacency)


@pytest.fixture(scope="module")
def x() -> torch.Tensor:
    return torch.randn(60, D, generator=torch.Generator().manual_seed(0))


def edge_index(adjacency: SparseMatrix) -> torch.Tensor:
    return torch.stack([adjacency.pattern.indices, adjacency.pattern.rows])


def like_gcn(m, r, x, edges, weights):
    one, two = pyg.GCNConv(D, HIDDEN), pyg.GCNConv(HIDDEN, C)
    for conv, weight, bias in ((one, m.weight1, m.bias1), (two, m.weight2, m.bias2)):
        conv.lin.weight.data, conv.bias.data = weight[r].T, bias[r, 0]
    return two(one(x, edges, weights).relu(), edges, weights)


def like_gat(m, r, x, edges, weights):
    one, two = pyg.GATConv(D, HIDDEN // 8, heads=8), pyg.GATConv(HIDDEN, C)
    parts = (one, m.weight1, m.bias1, m.attention1), (two, m.weight2, m.bias2, m.attention2)
    for conv, weight, bias, attention in parts:
        conv.lin.weight.data, conv.bias.data = weight[r].T, bias[r, 0]
        conv.att_src.data, conv.att_dst.data = attention[r, 0][None], attention[r, 1][None]
    return two(F.elu(one(x, edges)), edges)


def like_sage(m, r, x, edges, weights):
    one, two = pyg.SAGEConv(D, HIDDEN), pyg.SAGEConv(HIDDEN, C)
    for conv, weight, bias in ((one, m.weight1, m.bias1), (two, m.weight2, m.bias2)):
        neighbours, own = weight[r].chunk(2, dim=1)
        conv.lin_l.weight.data, conv.lin_l.bias.data = neighbours.T, bias[r, 0]
        conv.lin_r.weight.data = own.T
    return two(one(x, edges).relu(), edges)


def like_appnp(m, r, x, edges, weights):
    start = F.relu(x @ m.weight1[r] + m.bias1[r]) @ m.weight2[r] + m.bias2[r]
    return pyg.APPNP(K=10, alpha=0.1)(start, edges, weights)


def like_mlp(m, r, x, edges, weights):
    model = pyg.MLP([D, HIDDEN, C], norm=None)
    for layer, weight, bias in zip(
        model.lins, (m.weight1, m.weight2), (m.bias1, m.bias2), strict=True
    ):
        layer.weight.data, layer.bias.data = weight[r].T, bias[r, 0]
    return model(x)


COUNTERPARTS = {
    "gcn": like_gcn,
    "gat": like_gat,
    "sage": like_sage,
    "appnp": like_appnp,
    "mlp": like_mlp,
}


def make(name, seeds=(1, 2), dropout=0.5):
    return backbone(name)(seeds, D, HIDDEN, C, dropout)


@pytest.mark.parametrize("name", NAMES)
def test_equals_pyg(name, x, adjacency):
    model = make(name)
    logits = model(x, model.operator(adjacency)).logits
    for replica in range(2):
        expected = COUNTERPARTS[name](model, replica, x, edge_index(adjacency), None)
        torch.testing.assert_close(logits[replica], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["gcn", "appnp"])
def test_equals_pyg_with_edge_weights(name, x, adjacency):
    # Symmetric weights: an edge has one weight, whichever way it is walked.
    ends = torch.stack([adjacency.pattern.rows, adjacency.pattern.indices])
    weights = 0.5 + ((ends.sum(0) * 7) % 10) / 10
    model = make(name)
    logits = model(x, model.operator(adjacency.with_values(weights))).logits
    expected = COUNTERPARTS[name](model, 0, x, edge_index(adjacency), weights)
    torch.testing.assert_close(logits[0], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_sparse_features_equal_dense_ones(name, x, adjacency):
    import scipy.sparse as sp

    words = torch.where(x > 1, x, 0)
    sparse = SparseMatrix.from_scipy(sp.csr_array(words.numpy()))
    model = make(name)
    operator = model.operator(adjacency)
    torch.testing.assert_close(model(sparse, operator).logits, model(words, operator).logits)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("training", [True, False])
def test_a_batch_equals_its_members_alone(name, training, x, adjacency):
    seeds = [3, 1, 4]
    together = make(name, seeds)
    operator = together.operator(adjacency)
    batch = together(x, operator, Streams(seeds) if training else None)
    batch.logits.square().sum().backward()
    for replica, seed in enumerate(seeds):
        alone = make(name, [seed])
        single = alone(x, operator, Streams([seed]) if training else None)
        single.logits.square().sum().backward()
        torch.testing.assert_close(batch.logits[replica], single.logits[0])
        torch.testing.assert_close(batch.hidden[replica], single.hidden[0])
        for left, right in zip(together.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(left.grad[replica], right.grad[0], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_an_edge_of_weight_zero_is_no_edge(name, x, adjacency):
    weights = torch.ones(2, adjacency.pattern.num_entries)
    gone = (adjacency.pattern.rows < 10) | (adjacency.pattern.indices < 10)
    weights[1, gone] = 0
    model = make(name, [5, 5])
    logits = model(x, model.operator(adjacency.with_values(weights))).logits
    dense = torch.zeros(60, 60)
    dense[adjacency.pattern.rows[~gone], adjacency.pattern.indices[~gone]] = 1
    import scipy.sparse as sp

    cut = SparseMatrix.from_scipy(sp.csr_array(dense.numpy()))
    torch.testing.assert_close(logits[0], model(x, model.operator(adjacency)).logits[0])
    torch.testing.assert_close(logits[1], model(x, model.operator(cut)).logits[1])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "mlp"])
def test_gradients_reach_edge_weights(name, x, adjacency):
    weights = torch.rand(2, adjacency.pattern.num_entries, dtype=torch.float64) + 0.5
    weights.requires_grad_()
    model = make(name).double()

    def total(w):
        return model(x.double(), model.operator(adjacency.with_values(w))).logits.square().sum()

    (gradient,) = torch.autograd.grad(total(weights), weights)
    for entry in (0, 50, 100):
        step = torch.zeros_like(weights)
        step[1, entry] = 1e-6
        with torch.no_grad():
            slope = (total(weights + step) - total(weights - step)) / 2e-6
        assert float(gradient[1, entry]) == pytest.approx(float(slope), rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_permuting_nodes_permutes_the_answer(name, x, adjacency):
    order = torch.randperm(60, generator=torch.Generator().manual_seed(1))
    model = make(name)
    permuted = adjacency.select_rows(order).select_columns(order)
    logits = model(x, model.operator(adjacency)).logits
    again = model(x[order], model.operator(permuted)).logits
    torch.testing.assert_close(again, logits[:, order], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_one_product_of_the_features_serves_several_graphs(name, x, adjacency):
    model = backbone(name)([1, 2], D, HIDDEN, C)
    operator = model.operator(adjacency)
    entered = model.enter(x)
    for graph in (operator, operator.with_values(operator.values * 0.5)):
        torch.testing.assert_close(model(entered, graph).logits, model(x, graph).logits)
    streams = Streams([3, 4])
    first, second = (model(model.enter(x, streams), operator).logits for _ in range(2))
    assert not torch.allclose(first, second), "entering is where features are dropped"


@pytest.mark.parametrize("name", NAMES)
def test_chosen_rows_and_their_receptive_field(name, x, adjacency):
    model = make(name)
    operator = model.operator(adjacency)
    rows = torch.tensor([7, 30])
    expected = model(x, operator).logits[:, rows]
    torch.testing.assert_close(model(x, operator, rows=rows).logits, expected)
    small_x, small, inside = receptive_field(x, operator, rows, model.hops)
    torch.testing.assert_close(model(small_x, small, rows=inside).logits, expected)
    if name != "appnp":
        assert small.shape[0] < 60


@pytest.mark.parametrize("name", NAMES)
def test_isolated_nodes_are_no_trouble(name, x):
    import scipy.sparse as sp

    model = make(name)
    alone = SparseMatrix.from_scipy(sp.csr_array((60, 60), dtype=np.float32))
    output = model(x, model.operator(alone), Streams([0, 1]))
    output.logits.sum().backward()
    assert output.logits.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_features_are_sparse_where_that_pays(x):
    import scipy.sparse as sp

    assert isinstance(features_on(sp.csr_array(torch.where(x > 1, x, 0).numpy())), SparseMatrix)
    torch.testing.assert_close(features_on(sp.csr_array(x.numpy())), x)


def test_gat_ignores_absent_edges_however_loud(x, adjacency):
    model = make("gat")
    weights = torch.ones(adjacency.pattern.num_entries)
    weights[::2] = 0
    logits = model(1000 * x, model.operator(adjacency.with_values(weights))).logits
    assert logits.isfinite().all()


def test_streams_must_match_the_replicas(x, adjacency):
    model = make("gcn")
    with pytest.raises((ValueError, RuntimeError)):
        model(x, model.operator(adjacency), Streams([0, 1, 2])).logits.sum().backward()


def test_gat_needs_room_for_its_heads():
    with pytest.raises(InputError, match="multiple of 8"):
        GAT([0], D, 12, C)


def test_unknown_backbone():
    with pytest.raises(InputError, match="unknown backbone 'gin'; choose one of: appnp, gat"):
        backbone("gin")
