"""Audit: a uniform random sample of the nodes to predict."""

from __future__ import annotations

import numpy as np
import pytest

from dcgst import EM, InputError, draw_audit, fit
from dcgst.insight.suggestion import predictions_of, rows_to_label
from tests.runs.helpers import small_graph


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fit(small_graph(), tmp_path_factory.mktemp("audited") / "run", EM())


def test_only_nodes_without_label_are_drawn_each_once(run):
    nodes = draw_audit(run, 108)
    assert sorted(nodes) == np.flatnonzero(run.split.pool[0]).tolist()
    with pytest.raises(InputError, match="between 1 and 108 nodes can be audited, got 109"):
        draw_audit(run, 109)


def test_more_nodes_start_with_the_same_and_seeds_differ(run):
    assert draw_audit(run, 50)[:20].tolist() == draw_audit(run, 20).tolist()
    assert draw_audit(run, 20, seed=1).tolist() != draw_audit(run, 20).tolist()


def test_every_node_is_drawn_equally_often(run):
    counts = np.zeros(run.graph.num_nodes)
    for seed in range(2000):
        counts[draw_audit(run, 27, seed=seed)] += 1
    pool = run.split.pool[0]
    assert (counts[~pool] == 0).all()
    expected, deviation = 500, np.sqrt(2000 * 0.25 * 0.75)
    assert (np.abs(counts[pool] - expected) < 5 * deviation).all()


def test_rows_have_an_empty_label_and_no_prediction(run):
    rows = rows_to_label(run, [3, 50])
    assert rows == [
        {"id": run.graph.ids[3].item(), "label": ""},
        {"id": run.graph.ids[50].item(), "label": ""},
    ]
    shown = rows_to_label(run, [3, 50], predictions_of(run, [3, 50]))
    assert shown[1]["predicted"] == run.predictions[50]["class"]
    assert shown[1]["probability"] == pytest.approx(run.predictions[50]["probability"], abs=1e-3)
