"""Weights of feature columns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dcgst.features.columns import ColumnWeights, to_features


@pytest.mark.parametrize("sparse", [True, False])
def test_weighted_columns_keep_their_weights(rng, sparse):
    rows = ((1 + rng.random((40, 6))) * (rng.random((40, 6)) < 0.05)).astype(np.float32)
    x = to_features(sp.csr_array(rows) if sparse else rows)
    parts = [to_features(sp.csr_array(p) if sparse else p) for p in (rows[:15], rows[15:])]
    for weights in (ColumnWeights.of(lambda: [x], True), ColumnWeights.of(lambda: parts, True)):
        assert (weights.factor == 1).all()
        expected = 0 if sparse else rows.mean(axis=0)
        np.testing.assert_allclose(weights.center, np.broadcast_to(expected, 6), rtol=1e-5)
    assert (ColumnWeights.of(lambda: [x]).factor != 1).any()
