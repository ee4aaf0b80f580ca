"""Backbones: equal to their PyG counterparts, and each replica equal to itself alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg

from dcgst.datasets import synthetic
from dcgst.errors import InputError
from dcgst.features.sparse import SparseMatrix
from dcgst.nn import BACKBONES, Backbone, GATBackbone
from dcgst.nn.backbones import receptive_field
from dcgst.train.random import Streams

D, HIDDEN, C = 12, 16, 3
NAMES = [name for name in BACKBONES if name != "sign"]  # its inputs are tested in test_sign.py


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
        from_neighbors, own = weight[r].chunk(2, dim=1)
        conv.lin_l.weight.data, conv.lin_l.bias.data = from_neighbors.T, bias[r, 0]
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


def make(name, seeds=(1, 2), **options):
    return BACKBONES[name](seeds, D, HIDDEN, C, **options)


@pytest.mark.parametrize("name", NAMES)
def test_equals_pyg(name, x, adjacency):
    model = make(name)
    logits = model(x, model.operator(adjacency)).logits
    for replica in range(2):
        expected = COUNTERPARTS[name](model, replica, x, edge_index(adjacency), None)
        torch.testing.assert_close(logits[replica], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["gcn", "appnp"])
def test_equals_pyg_with_edge_weights(name, x, adjacency):
    # Symmetric weights: both directions of an edge have the same weight.
    ends = torch.stack([adjacency.pattern.rows, adjacency.pattern.indices])
    weights = 0.5 + ((ends.sum(0) * 7) % 10) / 10
    model = make(name)
    logits = model(x, model.operator(adjacency.with_values(weights))).logits
    expected = COUNTERPARTS[name](model, 0, x, edge_index(adjacency), weights)
    torch.testing.assert_close(logits[0], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_sparse_features_equal_dense_ones(name, x, adjacency):
    words = torch.where(x > 1, x, 0)
    sparse = SparseMatrix.from_scipy(sp.csr_array(words.numpy()))
    model = make(name)
    operator = model.operator(adjacency)
    torch.testing.assert_close(model(sparse, operator).logits, model(words, operator).logits)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("training", [True, False])
def test_replicas_together_equal_each_replica_alone(name, training, x, adjacency):
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
        torch.testing.assert_close(batch.embedding[replica], single.embedding[0])
        for left, right in zip(together.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(left.grad[replica], right.grad[0], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_an_edge_of_weight_zero_acts_like_no_edge(name, x, adjacency):
    weights = torch.ones(2, adjacency.pattern.num_entries)
    gone = (adjacency.pattern.rows < 10) | (adjacency.pattern.indices < 10)
    weights[1, gone] = 0
    model = make(name, [5, 5])
    logits = model(x, model.operator(adjacency.with_values(weights))).logits
    dense = torch.zeros(60, 60)
    dense[adjacency.pattern.rows[~gone], adjacency.pattern.indices[~gone]] = 1
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
def test_permuting_nodes_permutes_the_output(name, x, adjacency):
    order = torch.randperm(60, generator=torch.Generator().manual_seed(1))
    model = make(name)
    permuted = adjacency.select_rows(order).select_columns(order)
    logits = model(x, model.operator(adjacency)).logits
    again = model(x[order], model.operator(permuted)).logits
    torch.testing.assert_close(again, logits[:, order], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_several_graphs_can_share_the_projected_features(name, x, adjacency):
    model = make(name)
    operator = model.operator(adjacency)
    projected = model.project_features(x)
    for graph in (operator, operator.with_values(operator.values * 0.5)):
        torch.testing.assert_close(model(projected, graph).logits, model(x, graph).logits)
    assert model.project_features(projected) is projected


@pytest.mark.parametrize("name", NAMES)
def test_projection_includes_dropout_of_the_features(name, x, adjacency):
    model = make(name)
    operator, streams = model.operator(adjacency), Streams([3, 4])
    first, second = (model(model.project_features(x, streams), operator).logits for _ in range(2))
    assert not torch.allclose(first, second)


@pytest.mark.parametrize("name", NAMES)
def test_selected_rows_and_their_receptive_field_give_the_same_logits(name, x, adjacency):
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
def test_outputs_and_gradients_are_finite_without_edges(name, x):
    model = make(name)
    alone = SparseMatrix.from_scipy(sp.csr_array((60, 60), dtype=np.float32))
    output = model(x, model.operator(alone), Streams([0, 1]))
    output.logits.sum().backward()
    assert output.logits.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_absent_edges_do_not_make_attention_overflow(x, adjacency):
    model = make("gat")
    weights = torch.ones(adjacency.pattern.num_entries)
    weights[::2] = 0
    logits = model(1000 * x, model.operator(adjacency.with_values(weights))).logits
    assert logits.isfinite().all()


def test_dropout_needs_one_stream_per_replica(x, adjacency):
    model = make("mlp")
    with pytest.raises(RuntimeError, match="size of tensor"):
        model(x, model.operator(adjacency), Streams([0, 1, 2]))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_parameters(name):
    first, again, other = make(name, [7]), make(name, [7]), make(name, [8])
    pairs = list(zip(first.parameters(), again.parameters(), strict=True))
    assert all(torch.equal(left, right) for left, right in pairs)
    assert not torch.equal(first.weight1, other.weight1)


@pytest.mark.parametrize("name", NAMES)
def test_a_network_can_be_created_again_from_its_config_and_state(name, x, adjacency):
    model = make(name, activation="tanh", dropout=0.2)
    again = Backbone.from_config(model.config())
    again.load_state_dict(model.state_dict())
    operator = model.operator(adjacency)
    assert torch.equal(again(x, operator).logits, model(x, operator).logits)
    assert again.config() == model.config()


@pytest.mark.parametrize("name", NAMES)
def test_a_selected_replica_gives_its_own_output(name, x, adjacency):
    model = make(name)
    operator = model.operator(adjacency)
    selected = model.select_replica(1)
    assert selected.replicas == 1
    torch.testing.assert_close(selected(x, operator).logits[0], model(x, operator).logits[1])


def test_an_unknown_activation_in_a_config_is_refused():
    config = make("gcn").config() | {"activation": "gelu"}
    with pytest.raises(InputError, match="unknown activation 'gelu'"):
        Backbone.from_config(config)


def test_the_width_of_gat_must_be_a_multiple_of_its_heads():
    with pytest.raises(InputError, match="hidden must be a multiple of 8 for gat, got 12"):
        GATBackbone([0], D, 12, C)


def test_an_unknown_backbone_is_refused_with_a_list():
    with pytest.raises(InputError, match=r"unknown backbone 'gin'; .*: appnp, gat"):
        BACKBONES["gin"]
