"""Comparison of two runs."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from dcgst import EM, InputError, compare, draw_audit, fit
from dcgst.insight.comparison import paired_interval
from dcgst.insight.report import write_comparison
from tests.runs.helpers import small_graph, with_known_truth

TRUTH = with_known_truth(small_graph()).labels


def table(path, graph, nodes):
    rows = "".join(f"{graph.ids[node]},{graph.class_names[TRUTH[node]]}\n" for node in nodes)
    path.write_text(f"id,label\n{rows}")
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run, and one with the labels of 20 random nodes and 6 others."""
    folder = tmp_path_factory.mktemp("compared")
    graph = replace(small_graph(), class_names=("<a>", "b", "c"))
    first = fit(graph, folder / "first", EM())
    audit = table(folder / "audit.csv", graph, draw_audit(first, 20))
    more = table(folder / "more.csv", graph, np.flatnonzero(first.split.pool[0])[::18])
    return first, fit(first, folder / "second", labels=[more], audit=[audit])


def test_counts_and_changes(runs):
    first, second = runs
    found = compare(first, second)
    assert (found.nodes, found.only_before, found.only_after) == (120, 0, 0)
    assert found.labels_before == 12
    assert found.labels_after == second.split.given[0].sum()
    pool = second.split.pool[0]
    before, after = (run.result.proba[pool].argmax(1) for run in runs)
    assert found.compared == pool.sum()
    assert found.changed == (before != after).sum()
    assert sum(count for _, _, count in found.flows) == found.changed
    names = first.graph.class_names
    for a, b, count in found.flows:
        expected = (before == names.index(a)) & (after == names.index(b))
        assert count == expected.sum()
    products = [c.probability_before * c.probability_after for c in found.changes]
    assert (np.diff(products) < 1e-3).all(), "rounded, decreasing"
    assert found.shares_after["b"] == pytest.approx(second.result.proba[pool, 1].mean())
    assert found.confidence_before == pytest.approx(first.result.proba[pool].max(1).mean())
    assert found.shift_after < found.shift_before, "random labels reduce the shift"


def test_both_runs_are_compared_on_the_audited_nodes(runs):
    first, second = runs
    audit = compare(first, second).audit
    val = second.split.val[0]
    assert audit.nodes == val.sum() == 20
    assert audit.right_before == (first.result.proba[val].argmax(1) == TRUTH[val]).sum()
    assert audit.right_after == (second.result.proba[val].argmax(1) == TRUTH[val]).sum()
    assert audit.low < (audit.right_after - audit.right_before) / 20 < audit.high
    assert compare(second, first).audit is None, "the second was not audited"


def test_a_run_equals_itself(runs):
    found = compare(runs[1], runs[1])
    assert (found.changed, found.flows, found.changes) == (0, [], [])
    assert found.audit.right_before == found.audit.right_after
    assert found.estimate_before == found.estimate_after


def test_nodes_are_matched_by_id(runs, tmp_path):
    graph = small_graph()
    order = np.random.default_rng(0).permutation(120)
    ids = np.where(np.arange(120) < 110, np.arange(120), np.arange(120) + 1000)
    moved = fit(replace(graph, ids=ids).reorder(order), tmp_path / "moved", EM())
    found = compare(fit(graph, tmp_path / "same", EM()), moved)
    assert (found.nodes, found.only_before, found.only_after) == (110, 10, 10)
    assert found.changed <= 3


def test_runs_without_common_nodes_raise(runs, tmp_path):
    other = replace(small_graph(), ids=np.array([f"x{i}" for i in range(120)]))
    with pytest.raises(InputError, match="has the id of a node of"):
        compare(runs[0], fit(other, tmp_path / "other", EM()))


def test_runs_without_common_predictions_raise(tmp_path):
    graph = with_known_truth(small_graph())
    halves = [np.arange(120) % 2 == side for side in (0, 1)]
    first, second = (
        fit(replace(graph, masks={"train": half}), tmp_path / str(i), EM())
        for i, half in enumerate(halves)
    )
    with pytest.raises(InputError, match="no node is without a label in both"):
        compare(first, second)


def test_paired_interval_covers_the_difference():
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(3000):
        gained, lost, _ = rng.multinomial(40, [0.25, 0.1, 0.65])
        low, high = paired_interval(gained, lost, 40)
        covered.append(low <= 0.15 <= high)
    assert 0.935 < np.mean(covered) < 0.975
    low, high = paired_interval(0, 0, 10)
    assert low == -high < 0


def test_the_page_is_one_file_and_escapes_names(runs, tmp_path):
    path = write_comparison(compare(*runs), tmp_path / "c.html", "first", "<second>")
    text = path.read_text()
    assert not re.search(r"https?://", text)
    assert "<second>" not in text
    assert "<a>" not in text
    assert "20 randomly chosen nodes" in text
    assert text.count("<circle") == 6, "two per class"


def test_accuracies_are_of_the_same_nodes(tmp_path):
    """Only the first run was evaluated; both are compared with its true classes."""
    truth = with_known_truth(small_graph())
    audit = table(tmp_path / "audit.csv", truth, np.flatnonzero(~truth.masks["train"])[::6])
    runs = [
        fit(small_graph(), tmp_path / "a", EM()),
        fit(small_graph(), tmp_path / "b", EM(), audit=[audit]),
    ]
    names = [truth.class_names[code] for code in truth.labels]
    runs[0].evaluate(dict(zip(truth.ids.tolist(), names, strict=True)), store=True)
    found = compare(*runs)
    both = runs[0].split.pool[0] & runs[1].split.pool[0]
    assert found.accuracy_on == "true classes"
    for run, estimate in zip(runs, (found.estimate_before, found.estimate_after), strict=True):
        right = run.result.labels[both] == truth.labels[both]
        assert (estimate.value, estimate.labels) == (pytest.approx(right.mean()), both.sum())
