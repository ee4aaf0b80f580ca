"""A fit that is resumed with other chunks, or in another mode, does not use wrong files."""

from __future__ import annotations

import numpy as np
import pytest

from dcgst.datasets import synthetic
from dcgst.methods import SIGN, Ensemble
from dcgst.methods import sampling as large_predictions
from dcgst.splits import sample

QUICK = {"members": "lp,em,gp,mlp,sign", "replicas": 2}


@pytest.fixture(scope="module")
def graph():
    return synthetic(400, 3, features=8, seed=2)


@pytest.fixture(scope="module")
def split(graph):
    return sample(graph, per_class=5, runs=1)


@pytest.fixture
def large(sample_sizes):
    """Graphs of this size count as large."""
    sample_sizes(large=100, pool=150)


def stop(*_):
    raise KeyboardInterrupt


def interrupted(graph, split, folder, monkeypatch, *, fit=False, **settings):
    """A fit that is interrupted before its first prediction of a range, or in the fit."""
    with monkeypatch.context() as patch:
        if fit:
            patch.setattr(SIGN, "solve", stop)
        else:
            patch.setattr("dcgst.methods.sampling._predict_range", once_then_stop())
        with pytest.raises(KeyboardInterrupt):
            Ensemble(**QUICK, **settings).fit(graph, split, checkpoint=folder)


def once_then_stop():
    calls, predict = [], large_predictions._predict_range

    def interrupted_predict(*arguments):
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return predict(*arguments)

    return interrupted_predict


def test_other_chunks(graph, split, large, tmp_path, monkeypatch):
    """A file of one number of fits never counts as complete for another."""
    expected = Ensemble(**QUICK).fit(graph, split).proba_
    interrupted(graph, split, tmp_path, monkeypatch, chunk_size=1)
    interrupted(graph, split, tmp_path, monkeypatch, fit=True, chunk_size=2)
    found = Ensemble(**QUICK, chunk_size=2).fit(graph, split, checkpoint=tmp_path).proba_
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("first", ["sample", "all"])
def test_another_mode(graph, split, first, tmp_path, monkeypatch, sample_sizes):
    def mode(name):
        sample_sizes(large=100 if name == "sample" else 10**6, pool=150)

    second = "all" if first == "sample" else "sample"
    mode(second)
    expected = Ensemble(**QUICK).fit(graph, split).proba_
    mode(first)
    Ensemble(**QUICK).fit(graph, split, checkpoint=tmp_path)
    mode(second)
    found = Ensemble(**QUICK).fit(graph, split, checkpoint=tmp_path).proba_
    np.testing.assert_allclose(found, expected, atol=1e-4)
