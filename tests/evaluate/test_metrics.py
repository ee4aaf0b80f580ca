"""Accuracy, and p-values corrected for multiple tests."""

from __future__ import annotations

import numpy as np
import pytest

from dcgst.errors import InputError
from dcgst.evaluate import accuracy
from dcgst.evaluate.quality import holm


def test_accuracy_counts_the_nodes_of_the_mask_only():
    predicted, truth = np.array([0, 1, 1, 0]), np.array([0, 1, 0, 1])
    assert accuracy(predicted, truth, np.array([True, True, True, False])) == pytest.approx(2 / 3)


def test_accuracy_of_no_nodes_is_an_error():
    with pytest.raises(InputError, match="at least one node"):
        accuracy(np.array([0]), np.array([0]), np.array([False]))


def test_holm_by_hand():
    # Sorted: .01, .02, .03, .04, multiplied by 4, 3, 2, 1.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_holm_keeps_the_order_never_decreases_and_ends_at_one(rng):
    p = rng.random(20) ** 2
    corrected = np.array(holm(p))
    assert (corrected >= p).all()
    assert (np.diff(corrected[np.argsort(p)]) >= 0).all()
    assert corrected.max() == 1
    assert holm([0.6, 0.7]) == [1.0, 1.0]


def test_one_p_value_is_not_changed():
    assert holm([0.3]) == [0.3]
    assert holm([]) == []
