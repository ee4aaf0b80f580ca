"""The accuracy that fit and report show: on true classes, of an audit, or what is expected."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from dcgst import EM, Ensemble, Run, compare, fit, open_run
from dcgst.insight import diagnose_run, shown_accuracy, write_report
from dcgst.methods.result import AGREEMENT, LEFT_OUT
from tests.cli.helpers import dcgst
from tests.runs.helpers import small_graph, with_known_truth


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fit(
        small_graph(), tmp_path_factory.mktemp("expected") / "run", Ensemble(members="lp,em,gp")
    )


def text_of(run: Run, *, biased: bool = False) -> str:
    diagnosis = diagnose_run(run)
    shifts = [replace(shift, p=0.0 if biased else 1.0) for shift in diagnosis.shifts]
    found = shown_accuracy(run, replace(diagnosis, shifts=shifts))
    assert (found.origin, found.estimate) == ("not measured", None)
    return found.text


def test_cross_validation_and_agreement_are_stored_and_said(run):
    found = open_run(run.folder).result.expectation
    assert found == run.result.expectation
    text = text_of(run)
    assert f"{found[LEFT_OUT]:.0%} of the given labels are predicted right in cross" in text
    assert f"two members agree on {found[AGREEMENT]:.0%} of the nodes" in text
    assert "dcgst audit" in text


def test_biased_labels_are_a_reason_to_expect_less(run):
    assert "may be much lower" in text_of(run, biased=True)
    assert "may be much lower" not in text_of(run)


def test_other_methods_have_only_their_mean_probability(tmp_path):
    other = fit(small_graph(), tmp_path / "run", EM())
    mean = other.result.proba[other.split.pool[0]].max(1).mean()
    assert text_of(other).startswith(f"About {mean:.0%} may be right: the mean probability, which")


def test_true_classes_come_first(tmp_path):
    """With an audit as well, the accuracy is that on the true classes."""
    graph = with_known_truth(small_graph())
    run = fit(graph, tmp_path / "run", EM())
    found = shown_accuracy(run, diagnose_run(run))
    right = (run.result.labels == graph.labels)[run.split.pool[0]]
    assert found.origin == "true classes"
    assert found.estimate.value == pytest.approx(right.mean())
    assert found.text.startswith(f"{right.mean():.1%} of the {len(right)} predictions are right")


def test_an_audit_comes_before_what_is_expected(tmp_path):
    truth = with_known_truth(small_graph())
    names = [truth.class_names[code] for code in truth.labels]
    path = tmp_path / "audit.csv"
    nodes = np.flatnonzero(~truth.masks["train"])[::6]
    path.write_text("id,label\n" + "".join(f"{truth.ids[n]},{names[n]}\n" for n in nodes))
    run = fit(small_graph(), tmp_path / "run", EM(), audit=[path])
    found = shown_accuracy(run, diagnose_run(run))
    assert found.origin == "audit"
    assert found.estimate == run.estimate.accuracy
    assert found.text == f"{run.estimate}."


@pytest.mark.parametrize("known", [True, False])
def test_terminal_json_and_report_say_the_same(tmp_path, known):
    graph = small_graph()
    graph = with_known_truth(graph) if known else graph
    path = tmp_path / "graph.pt"
    torch.save(graph.to_pyg(), path)
    fitted = dcgst("fit", path, "--method", "em", "-o", tmp_path / "run")
    listed = dcgst("fit", path, "--method", "em", "-o", tmp_path / "other", "--json")
    assert (fitted.code, listed.code) == (0, 0)
    found = json.loads(listed.out)["accuracy"]
    assert found["origin"] == ("true classes" if known else "not measured")
    for output in (fitted.out, (tmp_path / "run" / "report.html").read_text()):
        assert " ".join(found["text"].split()) in " ".join(output.split())


def test_stored_true_classes_are_shown_by_later_commands(tmp_path):
    graph = small_graph()
    truth = with_known_truth(graph)
    run = fit(graph, tmp_path / "run", EM())
    write_report(run)
    path = tmp_path / "truth.csv"
    names = [truth.class_names[code] for code in truth.labels]
    path.write_text(
        "id,class\n" + "".join(f"{i},{n}\n" for i, n in zip(graph.ids, names, strict=True))
    )
    assert dcgst("evaluate", run.folder, path).code == 0
    again = open_run(run.folder)
    found = shown_accuracy(again, diagnose_run(again))
    right = (run.result.labels == truth.labels)[run.split.pool[0]]
    assert (found.origin, found.estimate.value) == ("true classes", pytest.approx(right.mean()))
    assert dcgst("report", run.folder).code == 0
    assert found.text in (run.folder / "report.html").read_text()
    assert dcgst("check", run.folder).code == 0
    compared = compare(again, fit(graph, tmp_path / "other", EM(), overwrite=True))
    assert compared.estimate_before.value == found.estimate.value
    assert compared.accuracy_on == "true classes"


def test_all_predictions_compared_is_no_estimate(tmp_path):
    truth = with_known_truth(small_graph())
    run = fit(small_graph(), tmp_path / "run", EM())
    names = [truth.class_names[code] for code in truth.labels]
    classes = dict(zip(map(str, truth.ids.tolist()), names, strict=True))
    diagnosis = diagnose_run(run)
    found = shown_accuracy(run, diagnosis, run.evaluate(classes))
    assert found.estimate.low == found.estimate.value == found.estimate.high
    assert f"of the {run.split.pool[0].sum()} predictions are right: all were" in found.text
    del classes[str(truth.ids[np.flatnonzero(run.split.pool[0])[0]])]
    some = shown_accuracy(run, diagnosis, run.evaluate(classes))
    assert some.estimate.low < some.estimate.value < some.estimate.high
