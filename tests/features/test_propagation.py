"""Propagated features: every block compared with dense NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.features.graph_features import GraphFeatures
from dcgst.features.matrix import Neighbors


@pytest.fixture
def dense(rng) -> np.ndarray:
    upper = np.triu(rng.random((12, 12)) < 0.3, 1)
    dense = (upper | upper.T).astype(np.float32)
    dense[0] = dense[:, 0] = 0  # a node without edges
    return dense


def blocks_of(x, dense) -> dict[str, torch.Tensor]:
    return GraphFeatures(x, Neighbors(sp.csr_array(dense))).propagated(slice(None))


def centered_unit(block: np.ndarray) -> np.ndarray:
    block = block - block.mean(0)
    return block / np.linalg.norm(block, axis=1, keepdims=True)


def test_hops_are_means_over_walks_without_self_loops(rng, dense):
    # Blocks are compared by similarity, because the reduction may rotate them.
    reduced = rng.normal(size=(12, 4)).astype(np.float32)
    standardized = (reduced - reduced.mean(0)) / reduced.std(0)
    unit = standardized / np.linalg.norm(standardized, axis=1, keepdims=True)
    blocks = blocks_of(reduced, dense)
    walk = dense / np.maximum(dense.sum(1, keepdims=True), 1e-12)
    connected = dense.sum(1) > 0
    expected = unit - unit[connected].mean(0)
    names = ("0 hops", "1 hop", "2 hops", "3 hops")
    for name in names:
        inner = centered_unit(expected) @ centered_unit(expected).T
        got = (blocks[name] @ blocks[name].T).numpy()
        assert got == pytest.approx(inner, abs=1e-3), name
        expected = walk @ expected


def test_pagerank_block_is_a_weighted_mean(rng, dense):
    x = rng.normal(size=(12, 3)).astype(np.float32)
    standardized = (x - x.mean(0)) / x.std(0)
    unit = standardized / np.linalg.norm(standardized, axis=1, keepdims=True)
    loops = dense + np.eye(12)
    scale = 1 / np.sqrt(loops.sum(1))
    operator = scale[:, None] * loops * scale
    weights = current = np.eye(12)
    for _ in range(15):
        current = 0.9 * operator @ current + 0.1 * weights
    mean = current / current.sum(1, keepdims=True)
    expected = centered_unit(mean @ (unit - unit[dense.sum(1) > 0].mean(0)))
    got = blocks_of(x, dense)["PageRank"]
    assert (got @ got.T).numpy() == pytest.approx(expected @ expected.T, abs=1e-3)


def test_degrees_are_standardized_logarithms(rng, dense):
    degree = blocks_of(rng.normal(size=(12, 3)).astype(np.float32), dense)["degree"].numpy()
    expected = np.log1p(dense.sum(1))
    expected = (expected - expected.mean()) / expected.std()
    assert degree[:, 0] == pytest.approx(expected, abs=1e-5)


def test_many_features_are_reduced(rng, dense):
    wide = sp.csr_array((rng.random((12, 300)) < 0.2).astype(np.float32))
    blocks = blocks_of(wide, dense)
    assert blocks["0 hops"].shape == (12, 64)
    assert not blocks["0 hops"][:, 12:].any()  # there are only twelve components
    assert all(bool(block.isfinite().all()) for block in blocks.values())


def test_a_graph_of_equal_degrees_has_no_degree_feature():
    ring = np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1)
    degree = blocks_of(np.eye(6, dtype=np.float32), ring.astype(np.float32))["degree"]
    assert degree.abs().max() == 0
