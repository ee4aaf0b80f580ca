"""The nodes that contribute most to the shift between labeled and pool nodes."""

from __future__ import annotations

import pytest
import torch

from dcgst.methods.dcgst.teacher import most_shifted

# Labeled nodes at 0 and 1 (mean 0.5), pool nodes at 2, 9 and 5 (mean 5.33).
Z = torch.tensor([[[0.0], [1.0], [2.0], [9.0], [5.0]]])
LABELED = torch.tensor([[True, True, False, False, False]])


@pytest.mark.parametrize(("count", "expected"), [(2, [0, 3]), (4, [0, 1, 3, 4])])
def test_half_are_the_labeled_nodes_farthest_from_the_pool(count, expected):
    assert most_shifted(Z, LABELED, ~LABELED, count).tolist() == [expected]


def test_the_pool_fills_up_if_there_are_too_few_labeled_nodes():
    one = torch.tensor([[False, True, False, False, False]])
    pool = torch.tensor([[False, False, True, True, True]])
    assert sorted(most_shifted(Z, one, pool, 4)[0].tolist()) == [1, 2, 3, 4]


def test_runs_are_independent():
    z = torch.randn(3, 20, 2, generator=torch.Generator().manual_seed(0))
    labeled = torch.rand(3, 20, generator=torch.Generator().manual_seed(1)) < 0.3
    together = most_shifted(z, labeled, ~labeled, 6)
    for run in range(3):
        part = slice(run, run + 1)
        alone = most_shifted(z[part], labeled[part], ~labeled[part], 6)
        assert torch.equal(alone[0], together[run])
