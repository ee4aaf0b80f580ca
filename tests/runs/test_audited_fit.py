"""Fits with added labels and audits: what is trained on, what is estimated, what is stored."""

from __future__ import annotations

import numpy as np
import pytest

from dcgst import EM, GCN, Ensemble, InputError, draw_audit, fit, open_run
from dcgst.evaluate.quality import estimate_share
from tests.runs.helpers import small_graph, with_known_truth


@pytest.fixture(scope="module")
def truth() -> np.ndarray:
    return with_known_truth(small_graph()).labels


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    return fit(small_graph(), tmp_path_factory.mktemp("first") / "run", EM())


@pytest.fixture
def write(first, truth, tmp_path):
    """Write a table with the true classes of nodes."""

    def table(name: str, nodes):
        path = tmp_path / f"{name}.csv"
        rows = [f"{first.graph.ids[node]},{truth[node]}" for node in nodes]
        path.write_text("\n".join(["id,label", *rows]))
        return path

    return table


def test_an_audit_gives_an_estimate_with_an_interval(first, truth, write, tmp_path):
    nodes = draw_audit(first, 25)
    run = fit(first, tmp_path / "run", audit=[write("audit", nodes)])
    assert run.info["method"] == "em"
    assert sorted(np.flatnonzero(run.split.val[0])) == sorted(nodes)
    found = run.estimate
    assert found.accuracy.labels == 25
    proba, val, pool = run.result.proba, run.split.val[0], run.split.pool[0]
    confidence = proba.max(1)
    right = proba.argmax(1) == truth
    expected = estimate_share(right[val], confidence[val], confidence[pool])
    assert found.accuracy == expected
    assert str(found).endswith(
        "of the predictions are right, estimated from 25 randomly chosen nodes"
    )
    assert found.shares.keys() == set(run.graph.class_names)
    of_first = estimate_share(truth[val] == 0, proba[val, 0], proba[pool, 0])
    assert found.shares[run.graph.class_names[0]] == of_first
    assert open_run(tmp_path / "run").estimate == found


def test_without_an_audit_there_is_no_estimate(first, write, tmp_path):
    assert first.estimate is None
    assert not first.audited
    run = fit(first, tmp_path / "run", labels=[write("more", range(60, 70))])
    assert run.estimate is None
    assert run.split.train[0].sum() == 22


def test_later_fits_keep_the_audit_and_the_method(first, write, tmp_path):
    model = Ensemble(members="lp,em,mlp", replicas=2)
    second = fit(first, tmp_path / "second", model, audit=[write("audit", draw_audit(first, 20))])
    third = fit(
        open_run(tmp_path / "second"), tmp_path / "third", labels=[write("more", [5, 45, 85])]
    )
    assert third.audited
    assert third.info["settings"] == second.info["settings"]
    new = {5, 45, 85} - set(np.flatnonzero(second.split.given[0]).tolist())
    assert third.split.train[0].sum() == second.split.train[0].sum() + len(new)
    assert (third.split.val[0] == second.split.val[0]).all()


def test_held_out_labels_are_trained_on_in_a_later_fit(first, write, tmp_path):
    model = Ensemble(members="lp,em,mlp")
    second = fit(first, tmp_path / "second", model, validate=0.25)
    assert second.split.val[0].any()
    assert second.info["settings"]["random_validation"] is False
    third = fit(second, tmp_path / "third", audit=[write("audit", draw_audit(second, 5))])
    assert third.info["settings"]["random_validation"] is True
    assert third.split.train[0].sum() == 12
    assert third.split.val[0].sum() == 5


def test_validate_and_audit_exclude_each_other(first, write, tmp_path):
    with pytest.raises(InputError, match="both choose validation nodes"):
        fit(first, tmp_path / "run", audit=[write("audit", [60])], validate=0.2)
    assert not (tmp_path / "run").exists()


def test_the_predictions_of_audited_nodes_do_not_know_their_labels(first, tmp_path):
    """With random labels for audited nodes, one in three predictions there is right."""
    nodes = draw_audit(first, 45)
    labels = np.random.default_rng(0).integers(3, size=45)
    path = tmp_path / "random.csv"
    rows = [f"{first.graph.ids[node]},{code}" for node, code in zip(nodes, labels, strict=True)]
    path.write_text("\n".join(["id,label", *rows]))
    for name, model in (("ensemble", Ensemble(replicas=3)), ("gcn", GCN(replicas=2))):
        run = fit(first, tmp_path / name, model, audit=[path])
        right = run.result.proba[nodes].argmax(1) == run.graph.labels[nodes]
        assert right.mean() < 0.5, name
